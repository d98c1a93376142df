//! One value by one conversion, by Python's rules.

use super::decimal::{self, MAX_EXPONENT_PRECISION, MAX_FIXED_PRECISION};
use super::digits::{self, WINDOW, Window};
use super::printf::{Conversion, Spec};
use super::shortest::put_special;
use super::sink::Sink;
use super::value::Value;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};

/// A conversion chosen for a dtype. All but `General` write straight into the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kernel {
    Shortest,
    /// The real part within `(1.5-2j)`: shortest, without `.0`.
    Real,
    /// The imaginary part: the same with a sign in any case.
    Imaginary,
    /// `%.{p}e`
    Exponent(usize),
    /// `%.{p}f`
    Fixed(usize),
    /// `%d` of an integer.
    Integer,
    /// A text column, quoted where needed.
    Text,
    General(Spec),
}

impl Kernel {
    /// The kernel for `spec` on `dtype`, or on text.
    pub(super) fn choose(spec: &Spec, dtype: Option<DType>) -> Result<Kernel> {
        spec.check(dtype)?;
        let Some(dtype) = dtype else { return Ok(Kernel::General(spec.clone())) };
        let whole = dtype.is_integer() || dtype == DType::Bool;
        Ok(match (spec.conversion, spec.precision.unwrap_or(6)) {
            _ if !spec.is_bare() => Kernel::General(spec.clone()),
            (Conversion::Exponent, p) if p <= MAX_EXPONENT_PRECISION => Kernel::Exponent(p),
            (Conversion::Fixed, p) if p <= MAX_FIXED_PRECISION => Kernel::Fixed(p),
            (Conversion::Decimal, _) if whole && spec.precision.is_none() => Kernel::Integer,
            (Conversion::Text, _) if dtype.is_integer() && spec.precision.is_none() => Kernel::Integer,
            (Conversion::Text, _) if dtype == DType::Float64 && spec.precision.is_none() => Kernel::Shortest,
            _ => Kernel::General(spec.clone()),
        })
    }

    /// Writes `v` into the output.
    ///
    /// # Errors
    /// For `nan` and infinities where an integer is wanted.
    #[inline]
    pub(super) fn put<T: Value>(&self, v: T, sink: &mut Sink<'_>, scratch: &mut Vec<u8>) -> Result<()> {
        let n = match self {
            Kernel::Shortest => v.shortest(sink.window()),
            Kernel::Integer => put_integer(v, sink.window()),
            Kernel::Exponent(p) => put_exponent(v.double(), *p, sink.window()),
            Kernel::Fixed(p) => put_fixed(v.double(), *p, sink.window()),
            Kernel::Real => put_part(v, false, sink.window()),
            Kernel::Imaginary => put_part(v, true, sink.window()),
            Kernel::General(spec) => return put_general(spec, v, sink, scratch),
            Kernel::Text => return Ok(()),
        };
        if n == 0 {
            return self.put_slow(v, sink, scratch);
        }
        sink.advance(n);
        Ok(())
    }

    /// Writes a value that the kernel gave up on.
    #[cold]
    pub(super) fn put_slow<T: Value>(&self, v: T, sink: &mut Sink<'_>, scratch: &mut Vec<u8>) -> Result<()> {
        let spec = match self {
            Kernel::Exponent(p) => Spec::plain(Conversion::Exponent, Some(*p)),
            Kernel::Fixed(p) => Spec::plain(Conversion::Fixed, Some(*p)),
            _ => Spec::plain(Conversion::Text, None),
        };
        put_general(&spec, v, sink, scratch)
    }
}

#[inline(always)]
pub(super) fn put_integer<T: Value>(v: T, w: &mut Window) -> usize {
    let (negative, size) = v.integer().unwrap_or_default();
    w[0] = b'-';
    digits::put(size, w, usize::from(negative))
}

#[inline(always)]
pub(super) fn put_exponent(v: f64, p: usize, w: &mut Window) -> usize {
    if !v.is_finite() {
        return put_special(v, w);
    }
    w[0] = b'-';
    decimal::put_exponent(v, p, w, usize::from(v.is_sign_negative()))
}

#[inline(always)]
pub(super) fn put_fixed(v: f64, p: usize, w: &mut Window) -> usize {
    if !v.is_finite() {
        return put_special(v, w);
    }
    w[0] = b'-';
    decimal::put_fixed(v, p, w, usize::from(v.is_sign_negative()))
}

fn put_part<T: Value>(v: T, signed: bool, w: &mut Window) -> usize {
    let mut end = v.shortest(w);
    if w[..end].ends_with(b".0") {
        end -= 2;
    }
    if signed && w[0] != b'-' {
        w.copy_within(..end, 1);
        w[0] = b'+';
        end += 1;
    }
    end
}

fn put_general<T: Value>(spec: &Spec, v: T, sink: &mut Sink<'_>, body: &mut Vec<u8>) -> Result<()> {
    body.clear();
    let mut prefix: &[u8] = b"";
    let negative = match spec.conversion {
        Conversion::Text => {
            let mut w = [0; WINDOW];
            let end = v.string(&mut w);
            put_text(spec, &w[..end], sink);
            return Ok(());
        }
        Conversion::Decimal | Conversion::Octal | Conversion::Hex => {
            let negative = match v.integer() {
                Some((negative, size)) => {
                    integer_body(spec.conversion, size, body);
                    negative
                }
                None => cut_body(v.double(), body)?,
            };
            prefix = match (spec.alternate, spec.conversion) {
                (true, Conversion::Hex) => b"0x",
                (true, Conversion::Octal) => b"0o",
                _ => b"",
            };
            let missing = spec.precision.unwrap_or(0).saturating_sub(body.len());
            body.splice(0..0, std::iter::repeat_n(b'0', missing));
            negative
        }
        Conversion::Exponent | Conversion::Fixed | Conversion::General => {
            let v = v.double();
            if v.is_finite() {
                float_body(spec, v, body);
            } else {
                body.extend_from_slice(if v.is_nan() { b"nan" } else { b"inf" });
            }
            v.is_sign_negative() && !v.is_nan()
        }
    };
    if spec.upper {
        body.make_ascii_uppercase();
        prefix = if prefix == b"0x" { b"0X" } else { prefix };
    }
    let sign: &[u8] = if negative {
        b"-"
    } else if spec.plus {
        b"+"
    } else if spec.space {
        b" "
    } else {
        b""
    };
    let missing = spec.width.saturating_sub(sign.len() + prefix.len() + body.len());
    let zeros = spec.zero && !spec.left;
    if !spec.left && !zeros {
        sink.fill(b' ', missing);
    }
    sink.put(sign);
    sink.put(prefix);
    if zeros {
        sink.fill(b'0', missing);
    }
    sink.put(body);
    if spec.left {
        sink.fill(b' ', missing);
    }
    Ok(())
}

/// Writes text by `%s`: the precision cuts it, the width pads it, both in characters.
pub(super) fn put_text(spec: &Spec, text: &[u8], sink: &mut Sink<'_>) {
    let text = cut_text(spec, text);
    let missing = spec.width.saturating_sub(text.iter().filter(|&&b| starts_character(b)).count());
    if !spec.left {
        sink.fill(b' ', missing);
    }
    sink.put(text);
    if spec.left {
        sink.fill(b' ', missing);
    }
}

/// The first `precision` characters of `text`.
pub(super) fn cut_text<'a>(spec: &Spec, text: &'a [u8]) -> &'a [u8] {
    let Some(precision) = spec.precision else { return text };
    let starts = text.iter().enumerate().filter(|(_, b)| starts_character(**b));
    match { starts }.nth(precision) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

fn starts_character(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

fn integer_body(conversion: Conversion, size: u64, body: &mut Vec<u8>) {
    let mut w = [0; WINDOW];
    if conversion == Conversion::Decimal {
        let end = digits::put(size, &mut w, 0);
        body.extend_from_slice(&w[..end]);
        return;
    }
    let (bits, mut rest, mut at) = (if conversion == Conversion::Hex { 4 } else { 3 }, size, WINDOW);
    loop {
        at -= 1;
        let digit = (rest & ((1 << bits) - 1)) as u8;
        w[at] = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
        rest >>= bits;
        if rest == 0 {
            break;
        }
    }
    body.extend_from_slice(&w[at..]);
}

/// The digits of `v` cut towards zero, and whether a minus goes before them.
fn cut_body(v: f64, body: &mut Vec<u8>) -> Result<bool> {
    if !v.is_finite() {
        let found = if v.is_nan() {
            "nan"
        } else if v > 0.0 {
            "inf"
        } else {
            "-inf"
        };
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("expected a finite number for an integer format, found {found}"),
        )
        .hint("%.0f writes it"));
    }
    let size = v.trunc().abs();
    if size < 18_446_744_073_709_551_616.0 {
        integer_body(Conversion::Decimal, size as u64, body);
    } else {
        body.extend_from_slice(decimal::fixed_slow(size, 0).as_bytes());
    }
    Ok(v <= -1.0)
}

/// |v| by `e`, `f` or `g`, in lower case. `v` is finite.
fn float_body(spec: &Spec, v: f64, body: &mut Vec<u8>) {
    let p = spec.precision.unwrap_or(6);
    let mut w = [0; WINDOW];
    match spec.conversion {
        Conversion::Fixed => {
            let end = if p <= MAX_FIXED_PRECISION { decimal::put_fixed(v, p, &mut w, 0) } else { 0 };
            if end > 0 {
                body.extend_from_slice(&w[..end]);
            } else {
                body.extend_from_slice(decimal::fixed_slow(v, p).as_bytes());
            }
            if p == 0 && spec.alternate {
                body.push(b'.');
            }
        }
        Conversion::Exponent => {
            let (digits, k) = significant(v, p, &mut w);
            with_exponent(&digits, k, spec.alternate, body);
        }
        _ => {
            let p = p.max(1);
            let (digits, k) = significant(v, p - 1, &mut w);
            let mut digits = &digits[..];
            if !spec.alternate {
                let end = digits.iter().rposition(|&d| d != b'0').unwrap_or(0);
                digits = &digits[..=end];
            }
            if -4 <= k && k < p as i32 {
                without_exponent(digits, k, spec.alternate, body);
            } else {
                with_exponent(digits, k, spec.alternate, body);
            }
        }
    }
}

/// The first `p + 1` significant digits and the exponent of the first.
fn significant(v: f64, p: usize, w: &mut Window) -> (std::borrow::Cow<'_, [u8]>, i32) {
    if v == 0.0 {
        return (vec![b'0'; p + 1].into(), 0);
    }
    if p <= MAX_EXPONENT_PRECISION
        && let Some((q, k)) = decimal::significant(v, p)
    {
        let end = digits::put(q, w, 0);
        return (w[..end].into(), k);
    }
    let (digits, k) = decimal::significant_slow(v, p);
    (digits.into(), k)
}

fn with_exponent(digits: &[u8], k: i32, point: bool, body: &mut Vec<u8>) {
    let (first, rest) = digits.split_at(1.min(digits.len()));
    body.extend_from_slice(first);
    if !rest.is_empty() || point {
        body.push(b'.');
    }
    body.extend_from_slice(rest);
    let mut w = [0; WINDOW];
    let end = decimal::put_power(k, &mut w, 0);
    body.extend_from_slice(&w[..end]);
}

/// The digits of `%g` where no exponent is due: `k` is at least -4.
fn without_exponent(digits: &[u8], k: i32, point: bool, body: &mut Vec<u8>) {
    let whole = (k + 1).max(0) as usize;
    if whole == 0 {
        body.extend_from_slice(b"0.");
        body.extend(std::iter::repeat_n(b'0', (-k - 1) as usize));
        body.extend_from_slice(digits);
        return;
    }
    body.extend_from_slice(&digits[..whole.min(digits.len())]);
    body.extend(std::iter::repeat_n(b'0', whole.saturating_sub(digits.len())));
    let rest = digits.get(whole..).unwrap_or_default();
    if !rest.is_empty() || point {
        body.push(b'.');
    }
    body.extend_from_slice(rest);
}
