//! The element types of arrays.

use crate::error::{Error, ErrorKind, Result, quoted};
use half::{bf16, f16};
use num_complex::Complex;
use std::fmt;

/// The type of an array's elements. Names are NumPy's (`float32`), as the manifest holds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DType {
    /// One byte, 0 or 1.
    Bool,
    /// Signed, 1 byte.
    Int8,
    /// Signed, 2 bytes.
    Int16,
    /// Signed, 4 bytes.
    Int32,
    /// Signed, 8 bytes.
    Int64,
    /// Unsigned, 1 byte.
    UInt8,
    /// Unsigned, 2 bytes.
    UInt16,
    /// Unsigned, 4 bytes.
    UInt32,
    /// Unsigned, 8 bytes.
    UInt64,
    /// IEEE 754 binary16.
    Float16,
    /// The upper half of a binary32; a `.npy` file shows it as `<V2`.
    BFloat16,
    /// IEEE 754 binary32.
    Float32,
    /// IEEE 754 binary64.
    Float64,
    /// Two `Float32`: real, imaginary.
    Complex64,
    /// Two `Float64`: real, imaginary.
    Complex128,
}

use DType::*;

/// dtype, NumPy's name, NumPy's short name, bit-width name, `descr` in a shard's header, bytes.
const TABLE: [(DType, &str, &str, &str, &str, u64); 15] = [
    (Bool, "bool", "b1", "bool", "|b1", 1),
    (Int8, "int8", "i1", "", "|i1", 1),
    (Int16, "int16", "i2", "i16", "<i2", 2),
    (Int32, "int32", "i4", "i32", "<i4", 4),
    (Int64, "int64", "i8", "i64", "<i8", 8),
    (UInt8, "uint8", "u1", "", "|u1", 1),
    (UInt16, "uint16", "u2", "u16", "<u2", 2),
    (UInt32, "uint32", "u4", "u32", "<u4", 4),
    (UInt64, "uint64", "u8", "u64", "<u8", 8),
    (Float16, "float16", "f2", "f16", "<f2", 2),
    (BFloat16, "bfloat16", "bf2", "bf16", "<V2", 2),
    (Float32, "float32", "f4", "f32", "<f4", 4),
    (Float64, "float64", "f8", "f64", "<f8", 8),
    (Complex64, "complex64", "c8", "c64", "<c8", 8),
    (Complex128, "complex128", "c16", "c128", "<c16", 16),
];

impl DType {
    /// Every dtype, in the order of this enum.
    pub fn all() -> impl Iterator<Item = DType> {
        TABLE.iter().map(|row| row.0)
    }

    fn row(self) -> &'static (DType, &'static str, &'static str, &'static str, &'static str, u64) {
        &TABLE[self as usize]
    }

    /// NumPy's name, as the manifest holds it: `float32`.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// What a shard's npy header calls it: `<f4`.
    pub fn descr(self) -> &'static str {
        self.row().4
    }

    /// Bytes of one element.
    pub fn size(self) -> u64 {
        self.row().5
    }

    /// The dtype that the manifest calls `name`.
    pub fn from_name(name: &str) -> Option<DType> {
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// The dtype a person calls `text`: NumPy's name (`float32`), its short name (`f4`, so `i8`
    /// has eight bytes), or one by bits (`f32`, `bf16`).
    pub fn parse(text: &str) -> Result<DType> {
        TABLE
            .iter()
            .find(|row| text == row.1 || text == row.2 || (!row.3.is_empty() && text == row.3))
            .map(|row| row.0)
            .ok_or_else(|| {
                let known: Vec<_> = TABLE.iter().map(|row| row.2).collect();
                Error::new(
                    ErrorKind::InvalidArgument,
                    format!("expected a dtype, found {}", quoted(text.as_bytes())),
                )
                .hint(format!("known are {} and names such as float32 or f32", known.join(" ")))
            })
    }

    /// Whether elements are `float16`, `bfloat16`, `float32` or `float64`.
    pub fn is_float(self) -> bool {
        matches!(self, Float16 | BFloat16 | Float32 | Float64)
    }

    /// Whether elements are complex.
    pub fn is_complex(self) -> bool {
        matches!(self, Complex64 | Complex128)
    }

    /// Whether elements are signed or unsigned integers.
    pub fn is_integer(self) -> bool {
        (Int8..=UInt64).contains(&self)
    }

    /// Bytes of the unit whose order an endian swap reverses: half an element if complex.
    pub fn swap_unit(self) -> usize {
        (if self.is_complex() { self.size() / 2 } else { self.size() }) as usize
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    pub trait Sealed: Sized {
        /// The plain memory of the type: itself, or `u8` for bool.
        type Raw: bytemuck::Pod + Send + Sync;

        /// Takes plain memory as values, or tells the first element that is none.
        fn check(raw: Vec<Self::Raw>) -> Result<Vec<Self>, usize>;
    }
}

/// A Rust type that is stored as one of the dtypes.
pub trait Element:
    sealed::Sealed
    + bytemuck::CheckedBitPattern
    + bytemuck::NoUninit
    + PartialEq
    + fmt::Debug
    + Send
    + Sync
    + 'static
{
    /// The dtype that this type is stored as.
    const DTYPE: DType;
}

/// Aligned bytes as values to be set, all of them.
pub(crate) fn values_mut<T: Element>(bytes: &mut [u8]) -> Result<&mut [T]> {
    if T::DTYPE == DType::Bool && bytes.iter().any(|&byte| byte > 1) {
        // What is left in a buffer or a file may be no bool.
        bytes.fill(0);
    }
    bytemuck::checked::try_cast_slice_mut(bytes).map_err(|e| {
        Error::new(ErrorKind::InvalidArgument, format!("expected whole aligned {}, found {e}", T::DTYPE))
    })
}

/// Fills `len` values through their bytes, without a second copy of them.
pub(crate) fn fill<T: Element>(len: usize, with: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Vec<T>> {
    let mut raw: Vec<T::Raw> = Vec::new();
    raw.try_reserve_exact(len).map_err(|_| {
        Error::new(ErrorKind::Io, format!("expected memory for {len} values of {}, found less", T::DTYPE))
    })?;
    raw.resize(len, bytemuck::Zeroable::zeroed());
    with(bytemuck::cast_slice_mut(&mut raw))?;
    T::check(raw).map_err(|at| {
        Error::new(ErrorKind::Corrupt, format!("element {at}: expected a bool of 0 or 1, found another byte"))
    })
}

macro_rules! elements {
    ($($t:ty => $d:ident),* $(,)?) => { $(
        impl sealed::Sealed for $t {
            type Raw = $t;

            fn check(raw: Vec<$t>) -> std::result::Result<Vec<$t>, usize> {
                Ok(raw)
            }
        }
        impl Element for $t {
            const DTYPE: DType = DType::$d;
        }
    )* };
}

elements! {
    i8 => Int8, i16 => Int16, i32 => Int32, i64 => Int64,
    u8 => UInt8, u16 => UInt16, u32 => UInt32, u64 => UInt64,
    f16 => Float16, bf16 => BFloat16, f32 => Float32, f64 => Float64,
    Complex<f32> => Complex64, Complex<f64> => Complex128,
}

impl sealed::Sealed for bool {
    type Raw = u8;

    fn check(raw: Vec<u8>) -> std::result::Result<Vec<bool>, usize> {
        match raw.iter().position(|&byte| byte > 1) {
            Some(at) => Err(at),
            None => Ok(raw.into_iter().map(|byte| byte == 1).collect()),
        }
    }
}

impl Element for bool {
    const DTYPE: DType = DType::Bool;
}

/// Runs `$body` with `$T` as the Rust type of the dtype.
macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr) => {{
        use $crate::dtype::DType;
        match $dtype {
            DType::Bool => {
                type $T = bool;
                $body
            }
            DType::Int8 => {
                type $T = i8;
                $body
            }
            DType::Int16 => {
                type $T = i16;
                $body
            }
            DType::Int32 => {
                type $T = i32;
                $body
            }
            DType::Int64 => {
                type $T = i64;
                $body
            }
            DType::UInt8 => {
                type $T = u8;
                $body
            }
            DType::UInt16 => {
                type $T = u16;
                $body
            }
            DType::UInt32 => {
                type $T = u32;
                $body
            }
            DType::UInt64 => {
                type $T = u64;
                $body
            }
            DType::Float16 => {
                type $T = half::f16;
                $body
            }
            DType::BFloat16 => {
                type $T = half::bf16;
                $body
            }
            DType::Float32 => {
                type $T = f32;
                $body
            }
            DType::Float64 => {
                type $T = f64;
                $body
            }
            DType::Complex64 => {
                type $T = num_complex::Complex<f32>;
                $body
            }
            DType::Complex128 => {
                type $T = num_complex::Complex<f64>;
                $body
            }
        }
    }};
}
pub(crate) use with_element;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (i, row) in TABLE.iter().enumerate() {
            assert_eq!(row.0 as usize, i);
            assert_eq!(DType::from_name(row.0.name()), Some(row.0));
            for alias in [row.1, row.2, row.3].into_iter().filter(|a| !a.is_empty()) {
                assert_eq!(DType::parse(alias).unwrap(), row.0, "{alias}");
            }
        }
        assert_eq!(DType::parse("i8").unwrap(), Int64);
        assert!(DType::parse("f1").is_err());
    }
}
