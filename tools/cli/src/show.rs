//! Values of a dataset as text: numbers by the fewest digits that read back, strings escaped.

use crate::catalog::Entry;
use arrshard::error::escape;
use arrshard::text::format::{RowFormatter, Style};
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

/// Each value as `unpack` writes it.
fn shown<T: Element>(dataset: &Dataset, entry: &Entry<'_>, values: Range<u64>) -> Result<Vec<String>> {
    let values = dataset.read_values::<T>(entry.name, values)?;
    let mut text = Vec::new();
    RowFormatter::new(T::DTYPE, 1, &Style::Shortest, b"", b"\n")?.rows(&values, &mut text)?;
    Ok(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
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
