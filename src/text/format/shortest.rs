//! The shortest digits that read back to the same value, laid out as Python's `repr(float)`.
//!
//! Digits of `f32` and `f64` come from zmij; the two 16-bit types, for which there is no such library,
//! search the few digits that they need.

use super::decimal::{put_power, significant};
use super::digits::{self, POW10, Window};
use half::{bf16, f16};

/// Where a number changes from `0.001` to `1e-03`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// As `repr(float)`: exponents below -4 and from 16 on, by the digits that are written.
    Python,
    /// As `str(np.float32(v))` since NumPy 2.3: values below 1e-4, and from 1e3 (`float16`), 1e6 (`float32`)
    /// or 1e16 on.
    Numpy,
}

/// Writes `nan`, `inf` or `-inf`.
#[cold]
pub(super) fn put_special(v: f64, w: &mut Window) -> usize {
    let text: &[u8] = if v.is_nan() {
        b"nan"
    } else if v < 0.0 {
        b"-inf"
    } else {
        b"inf"
    };
    w[..text.len()].copy_from_slice(text);
    text.len()
}

/// Writes `v` at the window's start and gives the end.
#[inline]
pub(super) fn put_f64(v: f64, w: &mut Window) -> usize {
    if !v.is_finite() {
        return put_special(v, w);
    }
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(v).as_bytes();
    if (1e-4..1e16).contains(&v.abs()) || v == 0.0 || same_exponent(v.abs()) {
        copy(text, w)
    } else {
        let (digits, n, k) = take_apart(text);
        lay_out(v < 0.0, &digits[..n], k, false, w)
    }
}

/// Writes `v` at the window's start and gives the end.
#[inline]
pub(super) fn put_f32(v: f32, rule: Rule, w: &mut Window) -> usize {
    if !v.is_finite() {
        return put_special(v.into(), w);
    }
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(v).as_bytes();
    let size = v.abs();
    let certain = if rule == Rule::Python { 1e-4..1e13 } else { 1.1e-4..1e6 };
    if certain.contains(&size) || v == 0.0 || same_exponent(size.into()) {
        return copy(text, w);
    }
    let (digits, n, k) = take_apart(text);
    let plain = match rule {
        Rule::Python => (-4..16).contains(&k),
        Rule::Numpy => (1e-4..1e6).contains(&f64::from(size)),
    };
    lay_out(v < 0.0, &digits[..n], k, plain, w)
}

/// Writes a number that has at most 8 digits after the point and 15 in all, which most measured and typed
/// data has, in a third of the time. `None` if `v` is no such number.
///
/// Doubles tell all decimals of 15 digits apart: if one of them reads back to `v`, no other does, so without
/// its last zeros it is the shortest. The division, of two integers below 2^53, is what reading it back gives.
#[inline(always)]
pub(super) fn put_short(v: f64, w: &mut Window) -> Option<usize> {
    const UNIT: u64 = 100_000_000;
    let size = v.abs();
    if size.is_nan() || size >= 1e7 {
        return None;
    }
    let units = (size * UNIT as f64 + 0.5) as i64 as u64;
    let plain = units >= UNIT / 10_000 || units == 0;
    if units as i64 as f64 / UNIT as f64 != size || !plain {
        return None;
    }
    w[0] = b'-';
    let at = usize::from(v.is_sign_negative());
    let end = digits::put(units / UNIT, w, at);
    w[end] = b'.';
    let (text, n) = digits::eight_trimmed(units % UNIT);
    w[end + 1..end + 9].copy_from_slice(&text);
    Some(end + 1 + n)
}

/// Copies at most 24 bytes as two pieces of one size that may overlap, which spares a call of memcpy.
#[inline(always)]
fn copy(text: &[u8], w: &mut Window) -> usize {
    #[inline(always)]
    fn ends<const N: usize>(text: &[u8], w: &mut Window) -> bool {
        let (Some(first), Some(last)) = (text.first_chunk::<N>(), text.last_chunk::<N>()) else {
            return false;
        };
        let (first, last) = (*first, *last);
        let at = text.len() - N;
        w[..N].copy_from_slice(&first);
        w[at..at + N].copy_from_slice(&last);
        true
    }
    if !(ends::<16>(text, w) || ends::<8>(text, w) || ends::<4>(text, w)) {
        w[..text.len()].copy_from_slice(text);
    }
    text.len()
}

/// Whether zmij writes an exponent, and of two digits or more, as Python does.
fn same_exponent(size: f64) -> bool {
    !(9e-10..1e16).contains(&size)
}

/// Writes `v` at the window's start and gives the end.
pub(super) fn put_f16(v: f16, rule: Rule, w: &mut Window) -> usize {
    let bits = v.to_bits() & 0x7FFF;
    put_half(v.to_f64(), bits, |b| f16::from_bits(b).to_f64(), rule, w)
}

/// Writes `v` at the window's start and gives the end. NumPy has no such type, so there is one rule.
pub(super) fn put_bf16(v: bf16, w: &mut Window) -> usize {
    let bits = v.to_bits() & 0x7FFF;
    put_half(v.to_f64(), bits, |b| bf16::from_bits(b).to_f64(), Rule::Python, w)
}

fn put_half(v: f64, bits: u16, value: impl Fn(u16) -> f64, rule: Rule, w: &mut Window) -> usize {
    if !v.is_finite() {
        return put_special(v, w);
    }
    let negative = v.is_sign_negative();
    if bits == 0 {
        return lay_out(negative, b"0", 0, true, w);
    }
    let size = v.abs();
    let (q, n, k) = search(size, bits, value);
    let mut digits = [b'0'; 5];
    let mut rest = q;
    for digit in digits[..n].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let plain = match rule {
        Rule::Python => (-4..16).contains(&k),
        Rule::Numpy => (1e-4..1e3).contains(&size),
    };
    lay_out(negative, &digits[..n], k, plain, w)
}

/// The fewest digits that lie between the midpoints to the neighbours of `size`, their count and the
/// exponent of the first. Midpoints have 12 bits, so a decimal of 5 digits is never so near one that
/// rounding to a double could hide on which side it lies (a test compares all values with std's parser).
fn search(size: f64, bits: u16, value: impl Fn(u16) -> f64) -> (u64, usize, i32) {
    let below = value(bits - 1);
    let above = match value(bits + 1) {
        next if next.is_finite() => next,
        _ => size + (size - below),
    };
    let (low, high) = ((size + below) / 2.0, (size + above) / 2.0);
    let inside = |c: f64| if bits & 1 == 0 { (low..=high).contains(&c) } else { low < c && c < high };
    // Where the gap above is the wider one, the digits one up may fit though the nearest don't.
    let fits = |n: usize| {
        let (q, k) = significant(size, n - 1)?;
        let fit = [q, q + 1].into_iter().find(|&q| inside(scaled(q, k - (n as i32 - 1))))?;
        Some(if fit == POW10[n] { (1, 1, k + 1) } else { (fit, n, k) })
    };
    // What fits with n digits fits with more. Three is the usual number.
    let mut found = [3, 4, 5].into_iter().find_map(fits).unwrap_or((0, 1, 0));
    while found.1 > 1
        && found.1 <= 3
        && let Some(shorter) = fits(found.1 - 1)
    {
        found = shorter;
    }
    found
}

fn scaled(q: u64, power: i32) -> f64 {
    let size = match POW10.get(power.unsigned_abs() as usize) {
        Some(&size) => size as f64,
        None => 10f64.powi(power.abs()),
    };
    if power < 0 { q as f64 / size } else { q as f64 * size }
}

/// Digits without zeros at either end, their count, and the exponent of the first.
fn take_apart(text: &[u8]) -> ([u8; 24], usize, i32) {
    let mut digits = [b'0'; 24];
    let (mut n, mut k, mut power, mut point) = (0, 0, 0i32, false);
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'0'..=b'9' => {
                if n == 0 && byte == b'0' {
                    k -= i32::from(point);
                    continue;
                }
                k += i32::from(!point && n > 0);
                // The first digit after the point stands one further down than the point.
                k -= i32::from(point && n == 0);
                if let Some(place) = digits.get_mut(n) {
                    *place = byte;
                }
                n += 1;
            }
            b'.' => point = true,
            b'e' => {
                let negative = bytes.as_slice().first() == Some(&b'-');
                for digit in bytes.by_ref().filter(|b| b.is_ascii_digit()) {
                    power = power * 10 + i32::from(digit - b'0');
                }
                if negative {
                    power = -power;
                }
            }
            _ => {}
        }
    }
    n = n.min(digits.len());
    while n > 1 && digits[n - 1] == b'0' {
        n -= 1;
    }
    (digits, n, k + power)
}

/// Writes the digits, of which the first counts 10^k, plainly or with an exponent, and gives the end.
fn lay_out(negative: bool, digits: &[u8], k: i32, plain: bool, w: &mut Window) -> usize {
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        w[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    const ZEROS: &[u8] = b"00000000000000000000";
    if negative {
        put(b"-");
    }
    if !plain {
        put(&digits[..1]);
        if digits.len() > 1 {
            put(b".");
            put(&digits[1..]);
        }
        return put_power(k, w, at);
    }
    if k < 0 {
        put(b"0.");
        put(&ZEROS[..(-k - 1) as usize]);
        put(digits);
    } else {
        let whole = k as usize + 1;
        if digits.len() > whole {
            put(&digits[..whole]);
            put(b".");
            put(&digits[whole..]);
        } else {
            put(digits);
            put(&ZEROS[..whole - digits.len()]);
            put(b".0");
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::super::digits::WINDOW;
    use super::*;
    use proptest::prelude::*;

    fn text(f: impl Fn(&mut Window) -> usize) -> String {
        let mut w = [b'?'; WINDOW];
        let end = f(&mut w);
        String::from_utf8(w[..end].to_vec()).unwrap()
    }

    fn double(v: f64) -> String {
        let long = text(|w| put_f64(v, w));
        let short = text(|w| put_short(v, w).unwrap_or(0));
        assert!(short.is_empty() || short == long, "{short} for {long}");
        long
    }

    fn float(v: f32) -> String {
        text(|w| put_f32(v, Rule::Python, w))
    }

    /// The digits of std's `{:e}`, which are the shortest too, with a tie between two of them broken to the
    /// even one as Python does it: std's round up.
    macro_rules! digits_of {
        ($v:expr) => {{
            let shortest = format!("{:e}", $v);
            let n = shortest.bytes().take_while(|b| *b != b'e').filter(u8::is_ascii_digit).count();
            let rounded = format!("{:.*e}", n - 1, $v);
            if rounded.parse() == Ok($v) { rounded } else { shortest }
        }};
    }

    /// Digits in Python's layout.
    fn plain_twin(scientific: &str, places: impl Fn(i32) -> bool) -> String {
        let (mantissa, k) = scientific.split_once('e').unwrap();
        let k: i32 = k.parse().unwrap();
        let (sign, mantissa) = match mantissa.strip_prefix('-') {
            Some(rest) => ("-", rest),
            None => ("", mantissa),
        };
        if !places(k) {
            return format!("{sign}{mantissa}e{}{:02}", if k < 0 { '-' } else { '+' }, k.abs());
        }
        let digits = mantissa.replace('.', "");
        if k < 0 {
            return format!("{sign}0.{}{digits}", "0".repeat((-k - 1) as usize));
        }
        let digits = format!("{digits:0<width$}", width = k as usize + 2);
        let (whole, fraction) = digits.split_at(k as usize + 1);
        format!("{sign}{whole}.{fraction}")
    }

    #[test]
    fn as_python_says() {
        for (v, expected) in [
            (0.1, "0.1"),
            (1e-5, "1e-05"),
            (1e-4, "0.0001"),
            (9.999999999999999e-5, "9.999999999999999e-05"),
            (1e16, "1e+16"),
            (9999999999999998.0, "9999999999999998.0"),
            (123456789012345.0, "123456789012345.0"),
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (f64::NAN, "nan"),
            (-f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
            (5e-324, "5e-324"),
            (1.5e300, "1.5e+300"),
        ] {
            assert_eq!(double(v), expected);
        }
        for (v, expected) in [
            (0.1f32, "0.1"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
        ] {
            assert_eq!(float(v), expected);
        }
    }

    #[test]
    fn numpy_rule() {
        for (v, expected) in [
            (1e-4f32, "1e-04"),
            (0.000_100_000_005, "0.000100000005"),
            (999_999.94, "999999.94"),
            (1e6, "1e+06"),
            (16_777_216.0, "1.6777216e+07"),
        ] {
            assert_eq!(text(|w| put_f32(v, Rule::Numpy, w)), expected);
        }
        assert_eq!(text(|w| put_f16(f16::from_f32(1000.0), Rule::Numpy, w)), "1e+03");
        assert_eq!(text(|w| put_f16(f16::from_f32(65504.0), Rule::Python, w)), "65500.0");
    }

    /// All 16-bit values: they read back, no shorter text does, and no text of that length is nearer.
    fn every_half(
        put: impl Fn(u16, &mut Window) -> usize,
        value: impl Fn(u16) -> f64,
        near: impl Fn(f64) -> u16,
    ) {
        // half's conversion from f64 drops low bits before it rounds: what it gives is only near.
        let back = |v: f64| {
            let bits = near(v);
            if !v.is_finite() {
                return bits;
            }
            let size = bits & 0x7FFF;
            let candidates = [size.saturating_sub(1), size, size + 1].map(|b| b | (bits & 0x8000));
            let distance = |b: &u16| {
                let at = value(b & 0x7FFF);
                // Infinity starts half a step above the largest number, as if it were the next one.
                let last = (b & 0x7FFF).saturating_sub(1);
                let at = if at.is_infinite() { 2.0 * value(last) - value(last - 1) } else { at };
                if at.is_nan() { f64::MAX } else { (at - v.abs()).abs() }
            };
            let nearer = |a: &u16, b: &u16| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1)));
            candidates.into_iter().min_by(nearer).unwrap_or(bits)
        };
        for bits in 0..=u16::MAX {
            let v = value(bits);
            let written = text(|w| put(bits, w));
            if v.is_nan() {
                assert_eq!(written, "nan");
                continue;
            }
            assert_eq!(back(written.parse().unwrap()), bits, "{written}");
            if v == 0.0 || v.is_infinite() {
                continue;
            }
            let (_, n, _) = take_apart(written.as_bytes());
            let nearest = format!("{:.*e}", n - 1, v);
            if back(nearest.parse().unwrap()) == bits {
                let distance = |t: &str| (t.parse::<f64>().unwrap() - v).abs();
                assert!(distance(&written) <= distance(&nearest), "{written}, not {nearest}");
            }
            if n > 1 {
                let (mantissa, power) = nearest.split_once('e').unwrap();
                let (mantissa, power): (f64, i32) = (mantissa.parse().unwrap(), power.parse().unwrap());
                let unit = 10f64.powi(2 - n as i32);
                for units in [(mantissa / unit).floor(), (mantissa / unit).ceil()] {
                    let shorter = format!("{units}e{}", power + 2 - n as i32);
                    assert_ne!(back(shorter.parse().unwrap()), bits, "{shorter} is enough for {written}");
                }
            }
        }
    }

    #[test]
    fn every_f16() {
        every_half(
            |b, w| put_f16(f16::from_bits(b), Rule::Python, w),
            |b| f16::from_bits(b).to_f64(),
            |v| f16::from_f64(v).to_bits(),
        );
    }

    #[test]
    fn every_bf16() {
        every_half(
            |b, w| put_bf16(bf16::from_bits(b), w),
            |b| bf16::from_bits(b).to_f64(),
            |v| bf16::from_f64(v).to_bits(),
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn f64_like_std(bits: u64) {
            let v = f64::from_bits(bits);
            if v.is_finite() {
                prop_assert_eq!(double(v), plain_twin(&digits_of!(v), |k| (-4..16).contains(&k)));
            }
        }

        #[test]
        fn f64_of_few_digits(units in -2_000_000_000_000_000i64..2_000_000_000_000_000, cut in 0u32..15, point in 0i32..12) {
            let units = (units / 10i64.pow(cut)) as f64;
            let v = units / 10f64.powi(point);
            for v in [v, v.next_up(), v.next_down()] {
                prop_assert_eq!(double(v), plain_twin(&digits_of!(v), |k| (-4..16).contains(&k)));
            }
        }

        #[test]
        fn f64_of_usual_sizes(v in -1e3f64..1e3, power in -9i32..20) {
            for v in [v * 10f64.powi(power), (v * 100.0).round() * 10f64.powi(power)] {
                prop_assert_eq!(double(v), plain_twin(&digits_of!(v), |k| (-4..16).contains(&k)));
            }
        }

        #[test]
        fn f32_like_std(bits: u32, v in -1e3f32..1e3, power in -9i32..20) {
            for v in [f32::from_bits(bits), v * 10f32.powi(power), v.round() * 10f32.powi(power)] {
                if v.is_finite() {
                    prop_assert_eq!(float(v), plain_twin(&digits_of!(v), |k| (-4..16).contains(&k)));
                    let size = f64::from(v.abs());
                    let plain = v == 0.0 || (1e-4..1e6).contains(&size);
                    let numpy = text(|w| put_f32(v, Rule::Numpy, w));
                    prop_assert_eq!(numpy, plain_twin(&digits_of!(v), |_| plain));
                }
            }
        }
    }
}
