//! Digits eight at a time: the fast way from bytes to an integer and a power of ten.

use super::half_float::{Half, narrow};
use super::lemire::{lemire_f32, lemire_f64};
use half::{bf16, f16};
use std::cmp::Ordering;

/// A number in text, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scan {
    pub(crate) negative: bool,
    /// The first 19 significant digits.
    pub(crate) mantissa: u64,
    /// The power of ten that belongs to them.
    pub(crate) power: i64,
    /// There are more digits, so the number lies between `mantissa` and `mantissa + 1`.
    pub(crate) cut: bool,
    /// A sign and digits, nothing more.
    pub(crate) integer: bool,
}

/// Whether these are eight digits; and the number they write.
///
/// Both are the well-known tricks within one word: adding 0x46 or taking away 0x30 sets the high
/// bit of a byte that is no digit, and three multiplications add neighbours, pairs and fours.
#[inline(always)]
fn eight(bytes: &[u8; 8]) -> Option<u64> {
    let word = u64::from_le_bytes(*bytes);
    let low = word.wrapping_sub(0x3030_3030_3030_3030);
    if (word.wrapping_add(0x4646_4646_4646_4646) | low) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    let pairs = low.wrapping_mul(10).wrapping_add(low >> 8);
    let a = (pairs & 0x0000_00FF_0000_00FF).wrapping_mul(100 + (1_000_000 << 32));
    let b = (pairs >> 16 & 0x0000_00FF_0000_00FF).wrapping_mul(1 + (10_000 << 32));
    Some(a.wrapping_add(b) >> 32)
}

/// Adds the digits at the beginning of `text` to `value`, which wraps beyond 64 bits; gives the rest.
#[inline(always)]
fn digits<'a>(mut text: &'a [u8], value: &mut u64) -> &'a [u8] {
    while let Some((chunk, rest)) = text.split_first_chunk::<8>()
        && let Some(number) = eight(chunk)
    {
        *value = value.wrapping_mul(100_000_000).wrapping_add(number);
        text = rest;
    }
    while let Some((&byte, rest)) = text.split_first()
        && byte.is_ascii_digit()
    {
        *value = value.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
        text = rest;
    }
    text
}

/// Takes the number at the beginning of `text` apart and gives the bytes after it; none of `inf`
/// and `nan`, nor an exponent of five digits or more.
#[inline]
pub(crate) fn scan(text: &[u8]) -> Option<(Scan, &[u8])> {
    let (negative, start) = super::grammar::sign(text);
    let mut mantissa = 0;
    let mut rest = digits(start, &mut mantissa);
    let mut count = start.len() - rest.len();
    let mut power = 0;
    let mut integer = true;
    if let [b'.', after @ ..] = rest {
        rest = digits(after, &mut mantissa);
        let places = after.len() - rest.len();
        count += places;
        power = -(places as i64);
        integer = false;
    }
    if count == 0 {
        return None;
    }
    let mut cut = false;
    if count > 19 {
        let text = &start[..start.len() - rest.len()];
        (mantissa, cut) = first_digits(text, &mut power);
    }
    if let [b'e' | b'E', after @ ..] = rest {
        let (below, after) = super::grammar::sign(after);
        let mut exponent = 0;
        rest = digits(after, &mut exponent);
        if !(1..=4).contains(&(after.len() - rest.len())) {
            return None;
        }
        power += if below { -(exponent as i64) } else { exponent as i64 };
        integer = false;
    }
    Some((Scan { negative, mantissa, power, cut, integer }, rest))
}

/// The first 19 significant digits of a number, and whether there are more; each of those adds one
/// to the power of ten.
#[cold]
fn first_digits(text: &[u8], power: &mut i64) -> (u64, bool) {
    let mut digits = text.iter().filter(|&&b| b != b'.').skip_while(|&&b| b == b'0');
    let mantissa = digits.by_ref().take(19).fold(0, |value, &digit| value * 10 + u64::from(digit - b'0'));
    let more = digits.count();
    *power += more as i64;
    (mantissa, more > 0)
}

impl Scan {
    /// The nearest double, unless that takes more than 19 digits to find or is an infinity.
    #[inline]
    pub(crate) fn to_f64(self) -> Option<f64> {
        let value = lemire_f64(self.mantissa, self.power);
        if value.is_infinite() || self.cut && value != lemire_f64(self.mantissa + 1, self.power) {
            return None;
        }
        Some(if self.negative { -value } else { value })
    }

    /// The nearest `f32`, on the same terms.
    #[inline]
    pub(crate) fn to_f32(self) -> Option<f32> {
        let value = lemire_f32(self.mantissa, self.power);
        if value.is_infinite() || self.cut && value != lemire_f32(self.mantissa + 1, self.power) {
            return None;
        }
        Some(if self.negative { -value } else { value })
    }

    /// The nearest half, where the nearest double leaves no doubt.
    fn to_half<H: Half>(self) -> Option<H> {
        let double = self.to_f64()?;
        let mut doubt = false;
        let bits = narrow::<H>(double.abs(), || {
            doubt = true;
            Ordering::Equal
        });
        if doubt || bits == H::INFINITY {
            return None;
        }
        Some(H::from_bits(bits | if self.negative { 0x8000 } else { 0 }))
    }
}

fn whole_field(field: &[u8]) -> Option<Scan> {
    match scan(field)? {
        (scan, []) => Some(scan),
        _ => None,
    }
}

pub(super) fn field_f64(field: &[u8]) -> Option<f64> {
    whole_field(field)?.to_f64()
}

pub(super) fn field_f32(field: &[u8]) -> Option<f32> {
    whole_field(field)?.to_f32()
}

pub(super) fn field_f16(field: &[u8]) -> Option<f16> {
    whole_field(field)?.to_half()
}

pub(super) fn field_bf16(field: &[u8]) -> Option<bf16> {
    whole_field(field)?.to_half()
}

/// Sign and magnitude of a field that is a sign and at most 19 significant digits.
pub(super) fn field_integer(field: &[u8]) -> Option<(bool, u64)> {
    let scan = whole_field(field)?;
    (scan.integer && !scan.cut).then_some((scan.negative, scan.mantissa))
}
