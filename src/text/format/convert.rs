//! One value by one conversion, by Python's rules.

use super::decimal::{self, MAX_EXPONENT_PRECISION, MAX_FIXED_PRECISION};
use super::digits::{self, WINDOW, Window};
use super::printf::{Conversion, Spec};
use super::shortest::put_special;
use super::sink::Sink;
use super::value::Value;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, escape};

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

fn put_general<T: Value>(spec: &Spec, v: T, sink: &mut Sink<'_>, scratch: &mut Vec<u8>) -> Result<()> {
    let mut w = [0; WINDOW];
    scratch.clear();
    let mut prefix: &[u8] = b"";
    let mut zeros = 0;
    let (negative, end) = match spec.conversion {
        Conversion::Text => {
            let end = v.string(&mut w);
            put_text(spec, &w[..end], sink);
            return Ok(());
        }
        Conversion::Decimal | Conversion::Octal | Conversion::Hex => {
            let (negative, end) = match v.integer() {
                Some((negative, size)) => (negative, integer_body(spec.conversion, size, &mut w)),
                None => cut_body(v.double(), &mut w, scratch)?,
            };
            prefix = match (spec.alternate, spec.conversion) {
                (true, Conversion::Hex) => b"0x",
                (true, Conversion::Octal) => b"0o",
                _ => b"",
            };
            zeros = spec.precision.unwrap_or(0).saturating_sub(if end > 0 { end } else { scratch.len() });
            (negative, end)
        }
        Conversion::Exponent | Conversion::Fixed | Conversion::General => {
            let v = v.double();
            if v.is_finite() {
                (v.is_sign_negative(), float_body(spec, v, &mut w, scratch))
            } else {
                (v == f64::NEG_INFINITY, put_special(v.abs(), &mut w))
            }
        }
    };
    let body = if end > 0 { &mut w[..end] } else { &mut scratch[..] };
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
    let missing = spec.width.saturating_sub(sign.len() + prefix.len() + zeros + body.len());
    if !spec.left && !spec.zero {
        sink.fill(b' ', missing);
    } else if !spec.left {
        zeros += missing;
    }
    sink.put(sign);
    sink.put(prefix);
    sink.fill(b'0', zeros);
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

/// Writes the digits of `size` and gives the end.
fn integer_body(conversion: Conversion, size: u64, w: &mut Window) -> usize {
    let bits = match conversion {
        Conversion::Hex => 4,
        Conversion::Octal => 3,
        _ => return digits::put(size, w, 0),
    };
    let end = (u64::BITS - size.leading_zeros()).div_ceil(bits).max(1) as usize;
    let mut rest = size;
    for place in w[..end].iter_mut().rev() {
        let digit = (rest & ((1 << bits) - 1)) as u8;
        *place = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
        rest >>= bits;
    }
    end
}

/// Writes the digits of `v` cut towards zero and gives whether a minus goes before them, and the end: 0 if
/// they are in `long`.
fn cut_body(v: f64, w: &mut Window, long: &mut Vec<u8>) -> Result<(bool, usize)> {
    if !v.is_finite() {
        let mut w = [0; WINDOW];
        let end = put_special(v, &mut w);
        let found = escape(&w[..end], WINDOW);
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("expected a finite number for an integer format, found {found}"),
        )
        .hint("%.0f writes it"));
    }
    let size = v.trunc().abs();
    if size < 18_446_744_073_709_551_616.0 {
        return Ok((v <= -1.0, digits::put(size as u64, w, 0)));
    }
    long.extend_from_slice(decimal::fixed_slow(size, 0).as_bytes());
    Ok((v < 0.0, 0))
}

/// Writes |v| by `e`, `f` or `g`, in lower case, and gives the end: 0 if it is in `long`. `v` is finite.
fn float_body(spec: &Spec, v: f64, w: &mut Window, long: &mut Vec<u8>) -> usize {
    let p = spec.precision.unwrap_or(6);
    match spec.conversion {
        Conversion::General => {
            general_body(v, p.max(1), spec.alternate, long);
            0
        }
        Conversion::Fixed => {
            let end = if p <= MAX_FIXED_PRECISION { decimal::put_fixed(v, p, w, 0) } else { 0 };
            let point = p == 0 && spec.alternate;
            if end == 0 {
                long.extend_from_slice(decimal::fixed_slow(v, p).as_bytes());
                long.extend(point.then_some(b'.'));
                return 0;
            }
            w[end] = b'.';
            end + usize::from(point)
        }
        _ => {
            let point = p == 0 && spec.alternate;
            if p <= MAX_EXPONENT_PRECISION && !point {
                let end = decimal::put_exponent(v, p, w, 0);
                if end > 0 {
                    return end;
                }
            }
            let (digits, k) = significant_slow(v, p);
            with_exponent(&digits, k, point, long);
            0
        }
    }
}

fn significant_slow(v: f64, p: usize) -> (Vec<u8>, i32) {
    if v == 0.0 { (vec![b'0'; p + 1], 0) } else { decimal::significant_slow(v, p) }
}

/// |v| by `%.{p}g`.
fn general_body(v: f64, p: usize, alternate: bool, long: &mut Vec<u8>) {
    let mut fast = [0; WINDOW];
    let slow;
    let found =
        if p - 1 <= MAX_EXPONENT_PRECISION && v != 0.0 { decimal::significant(v, p - 1) } else { None };
    let (mut digits, k) = match found {
        Some((q, k)) => {
            let end = digits::put(q, &mut fast, 0);
            (&fast[..end], k)
        }
        None => {
            slow = significant_slow(v, p - 1);
            (&slow.0[..], slow.1)
        }
    };
    if !alternate {
        let end = digits.iter().rposition(|&d| d != b'0').unwrap_or(0);
        digits = &digits[..=end];
    }
    if -4 <= k && k < p as i32 {
        without_exponent(digits, k, alternate, long);
    } else {
        with_exponent(digits, k, alternate, long);
    }
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
        body.extend_from_slice(&b"0.000"[..(1 - k) as usize]);
        body.extend_from_slice(digits);
        return;
    }
    body.extend_from_slice(&digits[..whole.min(digits.len())]);
    body.resize(body.len() + whole.saturating_sub(digits.len()), b'0');
    let rest = digits.get(whole..).unwrap_or_default();
    if !rest.is_empty() || point {
        body.push(b'.');
    }
    body.extend_from_slice(rest);
}
