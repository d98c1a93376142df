//! One field of a text file as a number, exactly.
//!
//! The grammar of real numbers is that of Python's `float()` on ASCII text without underscores:
//! an optional sign, then digits with at most one point among them and an optional exponent, or
//! `inf`, `infinity`, `nan` in any case. Every value is the nearest one of its own type, ties to
//! even: a `f32` or a half is never rounded twice.

mod classify;
mod grammar;
mod half_float;
mod lemire;
mod notation;
mod plain;
mod scan;

pub use classify::{Class, classify};
#[cfg(target_arch = "x86_64")]
pub(super) use lemire::POWERS;
pub use notation::Notation;
pub(super) use scan::scan;

use crate::dtype::{DType, Element};
use half::{bf16, f16};
use num_complex::Complex;
use std::fmt;

/// What a number may be beside the plain rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct NumberOptions {
    /// A finite literal beyond the largest value of a float type is an infinity, not an error.
    pub allow_overflow: bool,
}

/// Why a field is no value of the type asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NumberError {
    /// Nothing, or blanks alone.
    Empty,
    /// Text that is no number (or no truth value, for `bool`).
    NotANumber,
    /// A number beyond the limits of the type.
    OutOfRange,
    /// A number with a fraction, or an infinity or NaN, where an integer is wanted.
    Inexact,
    /// A number but for Fortran's `D` before its exponent: `1.5D+03`.
    FortranExponent,
}

impl NumberError {
    /// The `expected ...` part of a message: what a field of this type had to be.
    pub fn expected(self, dtype: DType) -> Expected {
        Expected { error: self, dtype }
    }

    /// What may be done about it, as a hint of an error.
    pub fn hint(self) -> Option<&'static str> {
        match self {
            NumberError::FortranExponent => {
                Some("--fortran-exponent reads exponents with d, as Fortran writes them")
            }
            _ => None,
        }
    }
}

/// Writes `expected float32` or `expected int8 (-128 to 127)`.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    error: NumberError,
    dtype: DType,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.dtype)?;
        match (self.error, self.dtype) {
            (NumberError::Inexact, _) => f.write_str(" (a whole number)"),
            (NumberError::NotANumber, DType::Bool) => f.write_str(" (0, 1, true or false)"),
            (NumberError::OutOfRange, dtype) => match limits(dtype) {
                Some((low, high)) => write!(f, " ({low} to {high})"),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

/// The least and the greatest finite value of a type, as text.
fn limits(dtype: DType) -> Option<(&'static str, &'static str)> {
    Some(match dtype {
        DType::Int8 => ("-128", "127"),
        DType::Int16 => ("-32768", "32767"),
        DType::Int32 => ("-2147483648", "2147483647"),
        DType::Int64 => ("-9223372036854775808", "9223372036854775807"),
        DType::UInt8 => ("0", "255"),
        DType::UInt16 => ("0", "65535"),
        DType::UInt32 => ("0", "4294967295"),
        DType::UInt64 => ("0", "18446744073709551615"),
        DType::Float16 => ("-65504", "65504"),
        DType::BFloat16 => ("-3.38953139e38", "3.38953139e38"),
        DType::Float32 | DType::Complex64 => ("-3.4028235e38", "3.4028235e38"),
        DType::Float64 | DType::Complex128 => ("-1.7976931348623157e308", "1.7976931348623157e308"),
        _ => return None,
    })
}

/// A number of nothing but digits.
pub(super) fn whole_number(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?;
    if field.iter().all(u8::is_ascii_digit) { text.parse().ok() } else { None }
}

/// A type whose values can be read from text.
pub trait Number: Element {
    /// The value of one field, already cut out of its line. White space around it is ignored.
    ///
    /// # Errors
    /// Each kind of [`NumberError`]. Underflow is none: the value is then a zero of the same sign.
    fn parse(field: &[u8], options: NumberOptions) -> Result<Self, NumberError>;

    /// The same value by the shortest and slowest way, the oracle of every faster one.
    #[doc(hidden)]
    fn parse_plainly(field: &[u8], options: NumberOptions) -> Result<Self, NumberError>;
}

macro_rules! floats {
    ($($t:ident: $fast:ident, $plain:path);* $(;)?) => { $(
        impl Number for $t {
            fn parse(field: &[u8], options: NumberOptions) -> Result<Self, NumberError> {
                match scan::$fast(grammar::trim(field)) {
                    Some(value) => Ok(value),
                    None => $plain(field, options),
                }
            }

            fn parse_plainly(field: &[u8], options: NumberOptions) -> Result<Self, NumberError> {
                $plain(field, options)
            }
        }
    )* };
}

floats! {
    f64: field_f64, plain::real;
    f32: field_f32, plain::real;
    f16: field_f16, plain::half;
    bf16: field_bf16, plain::half;
}

macro_rules! integers {
    ($($t:ident)*) => { $(
        impl Number for $t {
            fn parse(field: &[u8], options: NumberOptions) -> Result<Self, NumberError> {
                match scan::field_integer(grammar::trim(field)) {
                    Some((negative, magnitude)) => {
                        plain::signed(negative, magnitude).ok_or(NumberError::OutOfRange)
                    }
                    None => Self::parse_plainly(field, options),
                }
            }

            fn parse_plainly(field: &[u8], _: NumberOptions) -> Result<Self, NumberError> {
                plain::integer(field)
            }
        }
    )* };
}

integers! { i8 i16 i32 i64 u8 u16 u32 u64 }

impl Number for bool {
    fn parse(field: &[u8], options: NumberOptions) -> Result<Self, NumberError> {
        Self::parse_plainly(field, options)
    }

    fn parse_plainly(field: &[u8], _: NumberOptions) -> Result<Self, NumberError> {
        match grammar::trim(field) {
            b"" => Err(NumberError::Empty),
            b"0" => Ok(false),
            b"1" => Ok(true),
            word if word.eq_ignore_ascii_case(b"false") => Ok(false),
            word if word.eq_ignore_ascii_case(b"true") => Ok(true),
            _ => Err(NumberError::NotANumber),
        }
    }
}

macro_rules! complexes {
    ($($t:ty),*) => { $(
        impl Number for Complex<$t> {
            fn parse(field: &[u8], options: NumberOptions) -> Result<Self, NumberError> {
                plain::complex(field, |part| <$t>::parse(part, options))
            }

            fn parse_plainly(field: &[u8], options: NumberOptions) -> Result<Self, NumberError> {
                plain::complex(field, |part| <$t>::parse_plainly(part, options))
            }
        }
    )* };
}

complexes!(f32, f64);

#[cfg(test)]
pub(super) mod tests;
