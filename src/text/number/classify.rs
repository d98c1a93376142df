//! What a field looks like, before the type of its column is known.

use super::grammar::{self, Magnitude};
use super::{NumberError, plain, scan};

/// What one field could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// Nothing, or blanks alone.
    Empty,
    /// `true` or `false` in any case. (`0` and `1` are integers.)
    Bool,
    /// A sign and digits, nothing more.
    Int {
        /// It is in the range of an `i64`.
        i64: bool,
        /// It is in the range of an `u64`.
        u64: bool,
        /// It is a double exactly.
        f64: bool,
    },
    /// Any other real number: with a point, an exponent, or `inf` or `nan`.
    Float,
    /// Anything else.
    Text,
}

/// Says what one field, already cut out of its line, could be.
pub fn classify(field: &[u8]) -> Class {
    let field = grammar::trim(field);
    if let Some((negative, magnitude)) = scan::field_integer(field) {
        return Class::Int {
            i64: plain::signed::<i64>(negative, magnitude).is_some(),
            u64: plain::signed::<u64>(negative, magnitude).is_some(),
            f64: fits_double(magnitude),
        };
    }
    let digits = grammar::sign(field).1;
    match grammar::real(field) {
        Ok(real) if matches!(real.value, Magnitude::Finite(_)) && digits.iter().all(u8::is_ascii_digit) => {
            Class::Int {
                i64: plain::integer::<i64>(field).is_ok(),
                u64: plain::integer::<u64>(field).is_ok(),
                f64: plain::is_exact_double(field),
            }
        }
        Ok(_) => Class::Float,
        Err(NumberError::Empty) => Class::Empty,
        Err(_) if field.eq_ignore_ascii_case(b"true") || field.eq_ignore_ascii_case(b"false") => Class::Bool,
        Err(_) => Class::Text,
    }
}

/// Whether no bit is lost when a double takes this integer.
fn fits_double(magnitude: u64) -> bool {
    magnitude == 0 || magnitude.ilog2() - magnitude.trailing_zeros() < 53
}
