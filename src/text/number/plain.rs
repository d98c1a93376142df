//! The plain twin: every type by the simplest way that is exact.

use super::grammar::{self, Digits, Magnitude, Real};
use super::half_float::{Half, narrow};
use super::{NumberError, NumberOptions};
use num_complex::Complex;
use std::cmp::Ordering;
use std::fmt::Write;
use std::str::FromStr;

/// More digits than any number half way between two neighbouring doubles has (767), so that
/// beyond them only whether there is anything matters.
const DIGITS: usize = 800;

/// What a float type is to this module.
pub(super) trait Real64: Copy + FromStr {
    const INFINITY: Self;
    const NAN: Self;
    fn is_infinite(self) -> bool;
    fn negate(self) -> Self;
}

macro_rules! real64 {
    ($($t:ident)*) => { $(
        impl Real64 for $t {
            const INFINITY: $t = $t::INFINITY;
            const NAN: $t = $t::NAN;
            fn is_infinite(self) -> bool {
                self.is_infinite()
            }
            fn negate(self) -> $t {
                -self
            }
        }
    )* };
}

real64!(f32 f64);

/// A fixed buffer to print into.
struct Line<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Line<N> {
    fn new() -> Self {
        Line { bytes: [0; N], len: 0 }
    }

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.len) {
            *place = byte;
            self.len += 1;
        }
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or("")
    }
}

impl<const N: usize> Write for Line<N> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        text.bytes().for_each(|b| self.push(b));
        Ok(())
    }
}

/// The nearest `F`, by the standard library, from a text in normal form: so its limits on the
/// length of an exponent never matter.
fn nearest<F: Real64>(digits: &Digits<'_>) -> Option<F> {
    let mut line = Line::<{ DIGITS + 32 }>::new();
    let mut exponent = digits.exponent;
    digits.iter().take(DIGITS).for_each(|digit| line.push(digit));
    if let Some(more) = digits.len().checked_sub(DIGITS + 1) {
        // The last digit of all is not a zero, so the tail is not nothing: one digit stands for it.
        line.push(b'1');
        exponent = exponent.saturating_add_unsigned(more as u64);
    }
    write!(line, "e{}", exponent.clamp(-9999, 9999)).ok()?;
    line.text().parse().ok()
}

/// A `f32` or `f64`.
pub(super) fn real<F: Real64>(field: &[u8], options: NumberOptions) -> Result<F, NumberError> {
    let Real { negative, value } = grammar::real(field)?;
    let value = match value {
        Magnitude::Infinity => F::INFINITY,
        Magnitude::Nan => F::NAN,
        Magnitude::Finite(digits) if digits.is_zero() => "0".parse().map_err(|_| NumberError::NotANumber)?,
        Magnitude::Finite(digits) => {
            let value: F = nearest(&digits).ok_or(NumberError::NotANumber)?;
            if value.is_infinite() && !options.allow_overflow {
                return Err(NumberError::OutOfRange);
            }
            value
        }
    };
    Ok(if negative { value.negate() } else { value })
}

/// A `f16` or `bf16`: by way of the nearest double, which decides everything except on which
/// side of a point half way between two halves the digits are, when the double is that point.
pub(super) fn half<H: Half>(field: &[u8], options: NumberOptions) -> Result<H, NumberError> {
    let Real { negative, value } = grammar::real(field)?;
    let bits = match value {
        Magnitude::Infinity => H::INFINITY,
        Magnitude::Nan => H::NAN,
        Magnitude::Finite(digits) if digits.is_zero() => 0,
        Magnitude::Finite(digits) => {
            let double: f64 = nearest(&digits).ok_or(NumberError::NotANumber)?;
            let bits = narrow::<H>(double, || compare(&digits, double));
            if bits == H::INFINITY && !options.allow_overflow {
                return Err(NumberError::OutOfRange);
            }
            bits
        }
    };
    Ok(H::from_bits(if negative { bits | 0x8000 } else { bits }))
}

/// How the digits compare with a double of at most 140 significant digits (such are all points
/// half way between two halves: those of `bf16` go down to 2^-134).
fn compare(digits: &Digits<'_>, double: f64) -> Ordering {
    let mut line = Line::<160>::new();
    if write!(line, "{double:.140e}").is_err() {
        return Ordering::Equal;
    }
    let (mantissa, exponent) = line.text().split_once('e').unwrap_or(("", ""));
    let ours = digits.iter().chain(std::iter::repeat(b'0'));
    let theirs = mantissa.bytes().filter(|&b| b != b'.');
    let magnitude = exponent.parse().unwrap_or(0);
    digits
        .magnitude()
        .cmp(&magnitude)
        .then_with(|| ours.zip(theirs).map(|(a, b)| a.cmp(&b)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal))
        .then(if digits.len() > 141 { Ordering::Greater } else { Ordering::Equal })
}

/// Whether a whole number of the given digits is a double exactly.
pub(super) fn is_exact_double(field: &[u8]) -> bool {
    let Ok(Real { value: Magnitude::Finite(digits), .. }) = grammar::real(field) else { return false };
    let Some(double) = nearest::<f64>(&digits).filter(|d| d.is_finite()) else { return false };
    let mut line = Line::<320>::new();
    if digits.is_zero() || write!(line, "{double:.0}").is_err() {
        return digits.is_zero();
    }
    let printed = line.text().trim_end_matches('0');
    printed.bytes().eq(digits.iter()) && line.text().len() as i64 == digits.magnitude().saturating_add(1)
}

/// An integer, in decimal arithmetic throughout; `8.0` and `1.5e1` are integers too.
pub(super) fn integer<I: TryFrom<i128>>(field: &[u8]) -> Result<I, NumberError> {
    let Real { negative, value } = grammar::real(field)?;
    let Magnitude::Finite(digits) = value else { return Err(NumberError::Inexact) };
    if digits.is_zero() {
        return signed(negative, 0).ok_or(NumberError::OutOfRange);
    }
    if digits.magnitude() >= 20 {
        return Err(NumberError::OutOfRange);
    }
    if digits.exponent < 0 {
        return Err(NumberError::Inexact);
    }
    let zeros = std::iter::repeat_n(b'0', digits.exponent as usize);
    let magnitude = digits
        .iter()
        .chain(zeros)
        .try_fold(0u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
    magnitude.and_then(|m| signed(negative, m)).ok_or(NumberError::OutOfRange)
}

/// A sign and a magnitude as an integer of any type that holds it.
pub(super) fn signed<I: TryFrom<i128>>(negative: bool, magnitude: u64) -> Option<I> {
    let value = i128::from(magnitude);
    I::try_from(if negative { -value } else { value }).ok()
}

/// `1.5`, `2j`, `1.5+2j`, with or without parentheses, and `1.5+-2j` as NumPy's `savetxt` writes.
pub(super) fn complex<F: Default>(
    field: &[u8],
    mut part: impl FnMut(&[u8]) -> Result<F, NumberError>,
) -> Result<Complex<F>, NumberError> {
    let mut text = grammar::trim(field);
    if let [b'(', inner @ .., b')'] = text {
        text = grammar::trim(inner);
        if text.is_empty() {
            return Err(NumberError::NotANumber);
        }
    }
    let [front @ .., b'j' | b'J'] = text else { return Ok(Complex::new(part(text)?, F::default())) };
    // A sign begins the imaginary part unless an exponent's `e` stands before it.
    let cut = (0..front.len())
        .rev()
        .find(|&i| matches!(front[i], b'+' | b'-') && !(i > 0 && matches!(front[i - 1], b'e' | b'E')))
        .unwrap_or(0);
    let (mut real, mut imaginary) = front.split_at(cut);
    if let ([before @ .., b'+'], [b'-', ..]) = (real, imaginary) {
        // `+-2j` alone is none: something must stand before.
        if before.is_empty() {
            return Err(NumberError::NotANumber);
        }
        real = before;
    }
    if real.iter().chain(imaginary).any(|&b| b <= b' ') {
        return Err(NumberError::NotANumber);
    }
    // Python takes a lone `j` for `1j`.
    if matches!(imaginary, [] | [b'+'] | [b'-']) {
        imaginary = if imaginary == b"-" { b"-1" } else { b"1" };
    }
    let re = if real.is_empty() { F::default() } else { part(real)? };
    Ok(Complex::new(re, part(imaginary)?))
}
