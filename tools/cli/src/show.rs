//! Values of a dataset as text: numbers by the shortest digits that read back, strings escaped.

use crate::catalog::Entry;
use arrshard::error::escape;
use arrshard::{DType, Dataset, Element, Error, ErrorKind, Result};
use half::{bf16, f16};
use num_complex::Complex;
use std::ops::Range;

/// Longest string shown, in bytes.
const STRING_BYTES: usize = 60;
/// Strings that are together at most this long are read in one go.
const TOGETHER_BYTES: u64 = 1 << 20;

/// The values `values` of an array, counted in row-major order.
pub(crate) fn cells(dataset: &Dataset, entry: &Entry<'_>, values: Range<u64>) -> Result<Vec<String>> {
    let Some(dtype) = entry.dtype else { return strings(dataset, entry.name, values) };
    match dtype {
        DType::Bool => shown::<bool>(dataset, entry, values),
        DType::Int8 => shown::<i8>(dataset, entry, values),
        DType::Int16 => shown::<i16>(dataset, entry, values),
        DType::Int32 => shown::<i32>(dataset, entry, values),
        DType::Int64 => shown::<i64>(dataset, entry, values),
        DType::UInt8 => shown::<u8>(dataset, entry, values),
        DType::UInt16 => shown::<u16>(dataset, entry, values),
        DType::UInt32 => shown::<u32>(dataset, entry, values),
        DType::UInt64 => shown::<u64>(dataset, entry, values),
        DType::Float16 => shown::<f16>(dataset, entry, values),
        DType::BFloat16 => shown::<bf16>(dataset, entry, values),
        DType::Float32 => shown::<f32>(dataset, entry, values),
        DType::Float64 => shown::<f64>(dataset, entry, values),
        DType::Complex64 => shown::<Complex<f32>>(dataset, entry, values),
        DType::Complex128 => shown::<Complex<f64>>(dataset, entry, values),
        other => Err(Error::new(ErrorKind::Unsupported, format!("expected a known dtype, found {other}"))),
    }
}

fn shown<T: Element + Show>(dataset: &Dataset, entry: &Entry<'_>, values: Range<u64>) -> Result<Vec<String>> {
    Ok(dataset.read_values::<T>(entry.name, values)?.iter().map(Show::show).collect())
}

fn strings(dataset: &Dataset, name: &str, which: Range<u64>) -> Result<Vec<String>> {
    let (offsets, bytes) = (format!("{name}.offsets"), format!("{name}.bytes"));
    if which.is_empty() {
        return Ok(Vec::new());
    }
    let offsets = dataset.read_values::<u64>(&offsets, which.start..which.end.saturating_add(1))?;
    let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else { return Ok(Vec::new()) };
    if let Some(pair) = offsets.windows(2).find(|pair| pair[0] > pair[1]) {
        return Err(Error::new(
            ErrorKind::Corrupt,
            format!("expected offsets that grow, found {} after {}", pair[1], pair[0]),
        )
        .at(dataset.path().join(format!("{name}.offsets"))));
    }
    if last - first <= TOGETHER_BYTES {
        let all = dataset.read_values::<u8>(&bytes, first..last)?;
        let piece = |pair: &[u64]| &all[(pair[0] - first) as usize..(pair[1] - first) as usize];
        return Ok(offsets.windows(2).map(|pair| escape(piece(pair), STRING_BYTES)).collect());
    }
    offsets
        .windows(2)
        .map(|pair| {
            // A byte more than is shown, so that the cut shows.
            let end = pair[1].min(pair[0] + STRING_BYTES as u64 + 1);
            Ok(escape(&dataset.read_values::<u8>(&bytes, pair[0]..end)?, STRING_BYTES))
        })
        .collect()
}

/// A value as a person reads it.
trait Show {
    fn show(&self) -> String;
}

macro_rules! show_whole {
    ($($t:ty)*) => { $(
        impl Show for $t {
            fn show(&self) -> String {
                self.to_string()
            }
        }
    )* };
}

show_whole!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! show_float {
    ($($t:ty)*) => { $(
        impl Show for $t {
            fn show(&self) -> String {
                if self.is_nan() { "nan".to_owned() } else { format!("{self:?}") }
            }
        }
        impl Show for Complex<$t> {
            fn show(&self) -> String {
                let (re, im) = (self.re.show(), self.im.show());
                let sign = if im.starts_with('-') { "" } else { "+" };
                format!("{re}{sign}{im}j")
            }
        }
    )* };
}

show_float!(f32 f64);

impl Show for bool {
    fn show(&self) -> String {
        (if *self { "True" } else { "False" }).to_owned()
    }
}

impl Show for f16 {
    fn show(&self) -> String {
        short(self.to_f32(), |value| f16::from_f32(value) == *self)
    }
}

impl Show for bf16 {
    fn show(&self) -> String {
        short(self.to_f32(), |value| bf16::from_f32(value) == *self)
    }
}

/// A narrow float by the fewest digits from which `reads_back`.
fn short(value: f32, reads_back: impl Fn(f32) -> bool) -> String {
    (0..9)
        .filter_map(|digits| format!("{value:.digits$e}").parse::<f32>().ok())
        .find(|&near| reads_back(near))
        .unwrap_or(value)
        .show()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_fewest_digits() {
        assert_eq!(0.1f64.show(), "0.1");
        assert_eq!(1f32.show(), "1.0");
        assert_eq!((-0.0f64).show(), "-0.0");
        assert_eq!(1e300f64.show(), "1e300");
        assert_eq!(f64::NAN.show(), "nan");
        assert_eq!(f32::NEG_INFINITY.show(), "-inf");
        assert_eq!(f16::from_f32(0.1).show(), "0.1");
        assert_eq!(f16::MAX.show(), "65500.0");
        assert_eq!(f16::NAN.show(), "nan");
        assert_eq!(bf16::from_f32(3.14).show(), "3.14");
        assert_eq!(bf16::INFINITY.show(), "inf");
        assert_eq!(Complex::new(1.5f32, -2.0).show(), "1.5-2.0j");
        assert_eq!(Complex::new(0.0f64, f64::NAN).show(), "0.0+nanj");
    }

    #[test]
    fn every_half_reads_back() {
        for bits in 0..=u16::MAX {
            let (half, brain) = (f16::from_bits(bits), bf16::from_bits(bits));
            let back = half.show().parse::<f32>().unwrap();
            assert!(half.is_nan() || f16::from_f32(back).to_bits() == bits, "{half:?}");
            let back = brain.show().parse::<f32>().unwrap();
            assert!(brain.is_nan() || bf16::from_f32(back).to_bits() == bits, "{brain:?}");
        }
    }
}
