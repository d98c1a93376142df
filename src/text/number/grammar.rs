//! The one grammar of real numbers: which bytes are one, and where its parts are.

use super::NumberError;

/// A field that is a real number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Real<'a> {
    pub(super) negative: bool,
    pub(super) value: Magnitude<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Magnitude<'a> {
    Finite(Digits<'a>),
    Infinity,
    Nan,
}

/// The integer written by `head` then `tail`, times ten to the `exponent`. Neither begins the
/// number with a zero nor ends it with one, so a zero has no digits at all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Digits<'a> {
    head: &'a [u8],
    tail: &'a [u8],
    pub(super) exponent: i64,
}

impl<'a> Digits<'a> {
    fn new(mut head: &'a [u8], mut tail: &'a [u8], exponent: i64) -> Self {
        let mut exponent = exponent.saturating_sub_unsigned(tail.len() as u64);
        head = trim_zeros_start(head);
        let kept = trim_zeros_end(tail);
        exponent = exponent.saturating_add_unsigned((tail.len() - kept.len()) as u64);
        tail = kept;
        if head.is_empty() {
            tail = trim_zeros_start(tail);
        }
        if tail.is_empty() {
            let kept = trim_zeros_end(head);
            exponent = exponent.saturating_add_unsigned((head.len() - kept.len()) as u64);
            head = kept;
        }
        Digits { head, tail, exponent }
    }

    pub(super) fn len(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    pub(super) fn is_zero(&self) -> bool {
        self.len() == 0
    }

    /// The digits as ASCII bytes, the most significant first.
    pub(super) fn iter(&self) -> impl Iterator<Item = u8> + use<'a> {
        self.head.iter().chain(self.tail).copied()
    }

    /// The power of ten of the first digit.
    pub(super) fn magnitude(&self) -> i64 {
        self.exponent.saturating_add_unsigned(self.len() as u64).saturating_sub(1)
    }
}

fn trim_zeros_start(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|&&b| b == b'0').count();
    &digits[zeros..]
}

fn trim_zeros_end(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().rev().take_while(|&&b| b == b'0').count();
    &digits[..digits.len() - zeros]
}

/// What Python's `str.strip` takes of ASCII.
fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t'..=b'\r' | 0x1c..=0x1f)
}

/// The field without the white space around it.
pub(super) fn trim(mut field: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = field
        && is_space(*first)
    {
        field = rest;
    }
    while let [rest @ .., last] = field
        && is_space(*last)
    {
        field = rest;
    }
    field
}

/// Cuts a sign off.
pub(super) fn sign(field: &[u8]) -> (bool, &[u8]) {
    match field {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, field),
    }
}

fn split_digits(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().take_while(|b| b.is_ascii_digit()).count())
}

/// Reads a field that is a real number and nothing else, but for white space around it.
pub(super) fn real(field: &[u8]) -> Result<Real<'_>, NumberError> {
    let field = trim(field);
    if field.is_empty() {
        return Err(NumberError::Empty);
    }
    let (negative, text) = sign(field);
    if text.eq_ignore_ascii_case(b"inf") || text.eq_ignore_ascii_case(b"infinity") {
        return Ok(Real { negative, value: Magnitude::Infinity });
    }
    if text.eq_ignore_ascii_case(b"nan") {
        return Ok(Real { negative, value: Magnitude::Nan });
    }
    let (head, rest) = split_digits(text);
    let (tail, rest) = match rest {
        [b'.', rest @ ..] => split_digits(rest),
        _ => (&[][..], rest),
    };
    if head.is_empty() && tail.is_empty() {
        return Err(NumberError::NotANumber);
    }
    let exponent = match rest {
        [] => 0,
        [b'e' | b'E', rest @ ..] => exponent(rest).ok_or(NumberError::NotANumber)?,
        [b'd' | b'D', rest @ ..] if exponent(rest).is_some() => return Err(NumberError::FortranExponent),
        _ => return Err(NumberError::NotANumber),
    };
    Ok(Real { negative, value: Magnitude::Finite(Digits::new(head, tail, exponent)) })
}

/// Beyond any exponent that digits which fit in memory could bring back into range.
const EXPONENT_CAP: i64 = 1 << 60;

fn exponent(text: &[u8]) -> Option<i64> {
    let (negative, text) = sign(text);
    let (digits, []) = split_digits(text) else { return None };
    if digits.is_empty() {
        return None;
    }
    let value = digits.iter().fold(0i64, |value, &digit| {
        value.saturating_mul(10).saturating_add(i64::from(digit - b'0')).min(EXPONENT_CAP)
    });
    Some(if negative { -value } else { value })
}
