//! What a formatter needs to know of each element type.

use super::digits::{self, WINDOW, Window};
use super::shortest::{self, Rule};
use half::{bf16, f16};

/// A real element: a number or a bool. A complex element is two of them.
pub(super) trait Value: Copy {
    /// Reads one from its little-endian bytes. `None`: the wrong length, or a bool that is not 0 or 1.
    fn from_le(bytes: &[u8]) -> Option<Self>;
    /// The nearest double, exactly the value but for large 64-bit integers.
    fn double(self) -> f64;
    /// Sign and size, of integers and bools.
    fn integer(self) -> Option<(bool, u64)>;
    /// Writes the shortest text that reads back and gives the end.
    fn shortest(self, w: &mut Window) -> usize;
    /// The same text by the way that is quicker for values of many digits.
    #[inline(always)]
    fn shortest_long(self, w: &mut Window) -> usize {
        self.shortest(w)
    }
    /// Whether most of `values` have so many digits that [`Value::shortest_long`] pays.
    fn are_long(_values: &[Self]) -> bool {
        false
    }
    /// Writes what NumPy's `str` gives and returns the end.
    fn string(self, w: &mut Window) -> usize;
}

macro_rules! integers {
    ($($t:ty),*) => { $(
        impl Value for $t {
            #[inline(always)]
            fn from_le(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self::from_le_bytes)
            }
            #[inline(always)]
            fn double(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn integer(self) -> Option<(bool, u64)> {
                #[allow(unused_comparisons, reason = "unsigned types share the text")]
                Some((self < 0, (self as i128).unsigned_abs() as u64))
            }
            #[inline(always)]
            fn shortest(self, w: &mut Window) -> usize {
                #[allow(unused_comparisons, reason = "unsigned types share the text")]
                let negative = self < 0;
                w[0] = b'-';
                digits::put((self as i128).unsigned_abs() as u64, w, usize::from(negative))
            }
            fn string(self, w: &mut Window) -> usize {
                self.shortest(w)
            }
        }
    )* };
}

integers!(i8, i16, i32, i64, u8, u16, u32, u64);

impl Value for bool {
    #[inline(always)]
    fn from_le(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
    fn double(self) -> f64 {
        self.into()
    }
    fn integer(self) -> Option<(bool, u64)> {
        Some((false, self.into()))
    }
    #[inline(always)]
    fn shortest(self, w: &mut Window) -> usize {
        w[..5].copy_from_slice(if self { b"true\0" } else { b"false" });
        5 - usize::from(self)
    }
    fn string(self, w: &mut Window) -> usize {
        let text: &[u8] = if self { b"True" } else { b"False" };
        w[..text.len()].copy_from_slice(text);
        text.len()
    }
}

macro_rules! floats {
    ($($t:ty, |$v:ident, $w:ident| $shortest:expr, $string:expr;)*) => { $(
        impl Value for $t {
            #[inline(always)]
            fn from_le(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self::from_le_bytes)
            }
            #[inline(always)]
            fn double(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn integer(self) -> Option<(bool, u64)> {
                None
            }
            #[inline(always)]
            fn shortest(self, $w: &mut Window) -> usize {
                let $v = self;
                $shortest
            }
            fn string(self, $w: &mut Window) -> usize {
                let $v = self;
                $string
            }
        }
    )* };
}

impl Value for f64 {
    #[inline(always)]
    fn from_le(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_le_bytes)
    }
    #[inline(always)]
    fn double(self) -> f64 {
        self
    }
    #[inline(always)]
    fn integer(self) -> Option<(bool, u64)> {
        None
    }
    #[inline(always)]
    fn shortest(self, w: &mut Window) -> usize {
        shortest::put_short(self, w).unwrap_or_else(|| shortest::put_f64(self, w))
    }
    #[inline(always)]
    fn shortest_long(self, w: &mut Window) -> usize {
        shortest::put_f64(self, w)
    }
    fn are_long(values: &[Self]) -> bool {
        let sample = values.iter().step_by(values.len() / 32 + 1);
        let (n, mut w) = (sample.len(), [0; WINDOW]);
        sample.filter(|v| shortest::put_short(**v, &mut w).is_some()).count() * 2 < n
    }
    fn string(self, w: &mut Window) -> usize {
        self.shortest(w)
    }
}

floats! {
    f16, |v, w| shortest::put_f16(v, Rule::Python, w), shortest::put_f16(v, Rule::Numpy, w);
    bf16, |v, w| shortest::put_bf16(v, w), shortest::put_bf16(v, w);
    f32, |v, w| shortest::put_f32(v, Rule::Python, w), shortest::put_f32(v, Rule::Numpy, w);
}
