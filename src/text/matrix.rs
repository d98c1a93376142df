//! The hot loop of a matrix in text: plain rows, as many as there are, straight into their place.
//!
//! A row is plain if it is nothing but the right number of plain numbers. All else (comments,
//! quotes, blank lines, missing fields, wrong values) ends the loop before its line, and is for
//! slower code with a complete view of the dialect. So nothing here has to explain an error: it
//! must only never take what [`Number::parse`] refuses, and never give another value.

use super::number::{Number, NumberOptions, scan};
use half::{bf16, f16};
use num_complex::Complex;

/// What stands between two fields of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Delim {
    /// One byte. Blanks (space and tab) beside it belong to no field.
    Byte(u8),
    /// A run of spaces and tabs; there may be some at both ends of a line too.
    Blanks,
}

/// Why [`parse_rows`] came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stop {
    /// What is left of the text has no end of line, so it is no whole row yet.
    End,
    /// The output is full.
    Full,
    /// The next line is not plain.
    Line,
}

/// What [`parse_rows`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Parsed {
    /// Rows that are now in the output. What is behind them there is unspecified.
    pub rows: usize,
    /// Bytes of these rows, with their ends of line.
    pub consumed: usize,
    /// Why there are no more.
    pub stop: Stop,
}

/// A number that [`parse_rows`] can read.
pub trait FastNumber: Number {
    /// The number at the beginning of `text` and what comes after it; only if it is a plain one.
    #[doc(hidden)]
    fn head(text: &[u8], delim: Delim) -> Option<(Self, &[u8])>;

    /// The work of [`parse_rows`].
    #[doc(hidden)]
    fn rows(text: &[u8], delim: Delim, columns: usize, out: &mut [Self]) -> Parsed {
        portable(text, delim, columns, out)
    }
}

/// Parses plain rows of `columns` fields from the start of `text` (which is the start of a line)
/// into `out`, row after row, until something else comes. Lines end in LF or CR LF.
///
/// No row is plain where the delimiter could be part of a number (a digit, letter, sign or point).
///
/// `out` should hold a whole number of rows; what is beyond the last whole one is never written.
pub fn parse_rows<T: FastNumber>(text: &[u8], delim: Delim, columns: usize, out: &mut [T]) -> Parsed {
    if columns == 0 || matches!(delim, Delim::Byte(byte) if is_odd(byte)) {
        return Parsed { rows: 0, consumed: 0, stop: if out.is_empty() { Stop::Full } else { stop(text) } };
    }
    let whole = out.len() - out.len() % columns;
    T::rows(text, delim, columns, &mut out[..whole])
}

/// Whether a byte, as a delimiter, could also be part of a number or of an end of line.
fn is_odd(delim: u8) -> bool {
    delim.is_ascii_alphanumeric() || b"+-.\r\n".contains(&delim)
}

/// The same result from simple code that runs anywhere: one number after the other.
pub(super) fn portable<T: FastNumber>(text: &[u8], delim: Delim, columns: usize, out: &mut [T]) -> Parsed {
    let mut rest = text;
    let mut rows = 0;
    let stop = 'rows: {
        for row in out.chunks_exact_mut(columns) {
            let mut line = rest;
            for (column, place) in row.iter_mut().enumerate() {
                if column > 0 {
                    line = match (delim, line) {
                        (Delim::Byte(byte), [first, line @ ..]) if *first == byte => line,
                        (Delim::Blanks, [b' ' | b'\t', line @ ..]) => line,
                        _ => break 'rows stop(rest),
                    };
                }
                let Some((value, after)) = T::head(skip_blanks(line, delim), delim) else {
                    break 'rows stop(rest);
                };
                *place = value;
                line = after;
                // The blanks that separate are looked at above, and are as good before a number.
                if delim != Delim::Blanks || column + 1 == columns {
                    line = skip_blanks(line, delim);
                }
            }
            rest = match line {
                [b'\n', line @ ..] | [b'\r', b'\n', line @ ..] => line,
                _ => break 'rows stop(rest),
            };
            rows += 1;
        }
        Stop::Full
    };
    Parsed { rows, consumed: text.len() - rest.len(), stop }
}

/// Why a row was not taken whose line begins here.
#[cold]
pub(super) fn stop(line: &[u8]) -> Stop {
    match memchr::memchr(b'\n', line) {
        Some(_) => Stop::Line,
        None => Stop::End,
    }
}

#[inline(always)]
fn skip_blanks(mut text: &[u8], delim: Delim) -> &[u8] {
    while let [byte @ (b' ' | b'\t'), rest @ ..] = text
        && delim != Delim::Byte(*byte)
    {
        text = rest;
    }
    text
}

/// A field of a line on its own, by the complete parser: for what a fast kernel did not take.
#[cold]
#[inline(never)]
pub(super) fn field<T: Number>(field: &[u8]) -> Option<T> {
    // A carriage return here is no end of line, so it is for the dialect to judge, like its kin.
    if field.iter().any(|&b| b < b' ' && b != b'\t') {
        return None;
    }
    T::parse(field, NumberOptions::default()).ok()
}

/// Up to the end of the field, for the types without a kernel of their own.
fn slow_head<T: Number>(text: &[u8], delim: Delim) -> Option<(T, &[u8])> {
    let end = text.iter().position(|&b| match delim {
        Delim::Byte(byte) => b == byte || b == b'\n',
        Delim::Blanks => matches!(b, b' ' | b'\t' | b'\n' | b'\r'),
    })?;
    let (front, mut rest) = text.split_at(end);
    let mut front = front;
    if let ([before @ .., b'\r'], [b'\n', ..]) = (front, rest) {
        front = before;
        rest = &text[end - 1..];
    }
    Some((field(front)?, rest))
}

macro_rules! floats {
    ($($t:ident $to:ident),*) => { $(
        impl FastNumber for $t {
            #[inline]
            fn head(text: &[u8], delim: Delim) -> Option<(Self, &[u8])> {
                if let Some((scan, rest)) = scan(text)
                    && is_end(rest, delim)
                    && let Some(value) = scan.$to()
                {
                    return Some((value, rest));
                }
                slow_head(text, delim)
            }

            #[cfg(target_arch = "x86_64")]
            fn rows(text: &[u8], delim: Delim, columns: usize, out: &mut [Self]) -> Parsed {
                super::simd::rows(text, delim, columns, out)
                    .unwrap_or_else(|| portable(text, delim, columns, out))
            }
        }
    )* };
}

floats!(f64 to_f64, f32 to_f32);

macro_rules! integers {
    ($($t:ident)*) => { $(
        impl FastNumber for $t {
            #[inline]
            fn head(text: &[u8], delim: Delim) -> Option<(Self, &[u8])> {
                if let Some((scan, rest)) = scan(text)
                    && is_end(rest, delim)
                    && scan.integer
                    && !scan.cut
                {
                    let magnitude = i128::from(scan.mantissa);
                    let value = if scan.negative { -magnitude } else { magnitude };
                    return Some((value.try_into().ok()?, rest));
                }
                slow_head(text, delim)
            }

            #[cfg(target_arch = "x86_64")]
            fn rows(text: &[u8], delim: Delim, columns: usize, out: &mut [Self]) -> Parsed {
                super::simd::rows(text, delim, columns, out)
                    .unwrap_or_else(|| portable(text, delim, columns, out))
            }
        }
    )* };
}

integers!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! others {
    ($($t:ty),*) => { $(
        impl FastNumber for $t {
            fn head(text: &[u8], delim: Delim) -> Option<(Self, &[u8])> {
                slow_head(text, delim)
            }
        }
    )* };
}

others!(bool, f16, bf16, Complex<f32>, Complex<f64>);

/// Whether a field ends here, rather than the number within a longer one.
#[inline(always)]
fn is_end(rest: &[u8], delim: Delim) -> bool {
    match rest {
        [] => true,
        [b' ' | b'\t' | b'\n' | b'\r', ..] => true,
        [byte, ..] => delim == Delim::Byte(*byte),
    }
}

#[cfg(test)]
mod tests;
