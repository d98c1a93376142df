//! Pure kernels that turn foreign layouts into little-endian C order: byte swaps, fields out of records,
//! Fortran order into C order. They work on slices, so that threads can share an array by rows.

use crate::error::{Error, ErrorKind, Result};
use std::ops::Range;

/// Reverses the bytes of each `unit` (1, 2, 4 or 8 bytes; see [`DType::swap_unit`](crate::DType::swap_unit)).
///
/// # Panics
/// If `buf` isn't a whole number of units, or the unit another one.
pub fn swap_in_place(buf: &mut [u8], unit: usize) {
    check_units(buf.len(), unit);
    // Through integers, which compilers swap many at a time, unlike arrays of bytes.
    match unit {
        2 => buf.as_chunks_mut().0.iter_mut().for_each(|b| *b = u16::from_le_bytes(*b).to_be_bytes()),
        4 => buf.as_chunks_mut().0.iter_mut().for_each(|b| *b = u32::from_le_bytes(*b).to_be_bytes()),
        8 => buf.as_chunks_mut().0.iter_mut().for_each(|b| *b = u64::from_le_bytes(*b).to_be_bytes()),
        _ => {}
    }
}

/// As [`swap_in_place`], from `src` to `out`.
///
/// # Panics
/// If the lengths differ or aren't a whole number of units, or the unit is another one.
pub fn copy_swapped(src: &[u8], out: &mut [u8], unit: usize) {
    fn each<const N: usize>(src: &[u8], out: &mut [u8], swap: impl Fn([u8; N]) -> [u8; N]) {
        src.as_chunks().0.iter().zip(out.as_chunks_mut().0).for_each(|(from, to)| *to = swap(*from));
    }
    check_units(src.len(), unit);
    assert_eq!(src.len(), out.len());
    match unit {
        2 => each(src, out, |b| u16::from_le_bytes(b).to_be_bytes()),
        4 => each(src, out, |b| u32::from_le_bytes(b).to_be_bytes()),
        8 => each(src, out, |b| u64::from_le_bytes(b).to_be_bytes()),
        _ => out.copy_from_slice(src),
    }
}

fn check_units(len: usize, unit: usize) {
    assert!(matches!(unit, 1 | 2 | 4 | 8) && len.is_multiple_of(unit), "{len} bytes in units of {unit}");
}

/// Copies `size` bytes at `offset` of each record of `itemsize` bytes to `out`, one after the other.
///
/// # Panics
/// If `records` isn't a whole number of records, the field isn't inside of a record, or `out` isn't
/// as many times `size` bytes.
pub fn gather_field(records: &[u8], itemsize: usize, offset: usize, size: usize, out: &mut [u8]) {
    fn gather<const N: usize>(records: &[u8], itemsize: usize, offset: usize, out: &mut [u8]) {
        for (record, to) in records.chunks_exact(itemsize).zip(out.as_chunks_mut::<N>().0) {
            if let Some(from) = record[offset..].first_chunk() {
                *to = *from;
            }
        }
    }
    if itemsize == 0 || size == 0 {
        assert!(size <= itemsize && records.len() >= out.len() && out.is_empty());
        return;
    }
    assert!(offset <= itemsize && size <= itemsize - offset, "{size} bytes at {offset} of {itemsize}");
    assert!(records.len().is_multiple_of(itemsize) && out.len().is_multiple_of(size));
    assert_eq!(records.len() / itemsize, out.len() / size);
    match size {
        1 => gather::<1>(records, itemsize, offset, out),
        2 => gather::<2>(records, itemsize, offset, out),
        4 => gather::<4>(records, itemsize, offset, out),
        8 => gather::<8>(records, itemsize, offset, out),
        16 => gather::<16>(records, itemsize, offset, out),
        _ => {
            for (record, to) in records.chunks_exact(itemsize).zip(out.chunks_exact_mut(size)) {
                to.copy_from_slice(&record[offset..offset + size]);
            }
        }
    }
}

/// Copies `rows` of an array in Fortran order to `out` in C order. `src` is the data of the whole array of
/// `shape`, whose items have `itemsize` bytes; `out` has room for exactly these rows. The bytes of an item
/// stay as they are.
///
/// Each column of the input gives as many items in a row as there are `rows`: below 64 bytes of them,
/// cache lines are read in part, so ask for at least 64 rows at a time where memory allows.
///
/// # Panics
/// If there are no dimensions, `rows` are outside of the array, or `src` or `out` don't have the bytes that
/// `shape`, `itemsize` and `rows` ask for.
pub fn transpose_rows(src: &[u8], shape: &[u64], itemsize: usize, rows: Range<u64>, out: &mut [u8]) {
    let dims: Vec<usize> = shape.iter().map(|dim| usize::try_from(*dim).unwrap_or(usize::MAX)).collect();
    let (&height, inner) = dims.split_first().expect("an array with dimensions");
    let width = inner.iter().try_fold(1usize, |n, dim| n.checked_mul(*dim));
    let bytes_of = |rows: usize| width?.checked_mul(rows)?.checked_mul(itemsize);
    assert!(rows.start <= rows.end && rows.end <= shape[0], "rows {rows:?} of {height}");
    let rows = rows.start as usize..rows.end as usize;
    assert_eq!(bytes_of(height), Some(src.len()), "bytes of the array");
    assert_eq!(bytes_of(rows.len()), Some(out.len()), "bytes of the rows");
    if out.is_empty() {
        return;
    }
    let columns = Columns::new(inner);
    let geometry = Geometry { height, rows, width: width.unwrap_or(0) };
    match itemsize {
        1 => transpose_items::<1, 64>(src, geometry, columns, out),
        2 => transpose_items::<2, 64>(src, geometry, columns, out),
        4 => transpose_items::<4, 64>(src, geometry, columns, out),
        8 => transpose_items::<8, 32>(src, geometry, columns, out),
        16 => transpose_items::<16, 32>(src, geometry, columns, out),
        _ => transpose_bytes(src, itemsize, geometry, columns, out),
    }
}

/// The array as a matrix of `height` rows, of which `rows` are wanted, and `width` items in a row.
#[derive(Clone)]
struct Geometry {
    height: usize,
    rows: Range<usize>,
    width: usize,
}

/// The columns of that matrix in the order of the output, each as its place in the order of the input:
/// an odometer whose last digit runs fastest, while the first one weighs least.
struct Columns {
    /// Length, place in the input of the next one, digit; the last dimension first.
    digits: Vec<(usize, usize, usize)>,
    at: usize,
}

impl Columns {
    fn new(inner: &[usize]) -> Self {
        let mut stride = 1;
        let mut digits = Vec::with_capacity(inner.len());
        for &len in inner {
            digits.push((len, stride, 0));
            stride *= len;
        }
        digits.reverse();
        Self { digits, at: 0 }
    }

    fn next(&mut self) -> usize {
        let now = self.at;
        for (len, stride, digit) in &mut self.digits {
            *digit += 1;
            if *digit < *len {
                self.at += *stride;
                break;
            }
            self.at -= (*len - 1) * *stride;
            *digit = 0;
        }
        now
    }
}

/// Turns tiles of `E` columns and rows over, each from a copy of its columns: the columns of an array are often a
/// power of two apart and then share few cache sets, so that they would evict each other when read across.
fn transpose_items<const N: usize, const E: usize>(
    src: &[u8],
    Geometry { height, rows, width }: Geometry,
    mut columns: Columns,
    out: &mut [u8],
) {
    let (src, out) = (src.as_chunks::<N>().0, out.as_chunks_mut::<N>().0);
    let mut starts = [0; E];
    let mut tile = vec![[[0u8; N]; E]; E];
    for left in (0..width).step_by(E) {
        let starts = &mut starts[..E.min(width - left)];
        for start in starts.iter_mut() {
            *start = columns.next() * height;
        }
        for top in rows.clone().step_by(E) {
            let bottom = rows.end.min(top + E);
            for (column, start) in tile.iter_mut().zip(&*starts) {
                column[..bottom - top].copy_from_slice(&src[start + top..start + bottom]);
            }
            for row in 0..bottom - top {
                let first = (top - rows.start + row) * width + left;
                for (to, column) in out[first..first + starts.len()].iter_mut().zip(&tile) {
                    *to = column[row];
                }
            }
        }
    }
}

/// For records and other items of odd sizes.
fn transpose_bytes(
    src: &[u8],
    size: usize,
    Geometry { height, rows, width }: Geometry,
    mut columns: Columns,
    out: &mut [u8],
) {
    let mut starts = [0; 32];
    for left in (0..width).step_by(32) {
        let starts = &mut starts[..32.min(width - left)];
        for start in starts.iter_mut() {
            *start = columns.next() * height;
        }
        for row in rows.clone() {
            let first = ((row - rows.start) * width + left) * size;
            let to = out[first..first + starts.len() * size].chunks_exact_mut(size);
            for (to, start) in to.zip(&*starts) {
                let from = (start + row) * size;
                to.copy_from_slice(&src[from..from + size]);
            }
        }
    }
}

/// Sees that each byte is 0 or 1, as a bool must be. `first` is the number of the first one in its array.
///
/// # Errors
/// Corrupt, with the number of the element and its byte.
pub fn check_bools(bytes: &[u8], first: u64) -> Result<()> {
    for (block, chunk) in bytes.chunks(4096).enumerate() {
        if chunk.iter().fold(0, |all, byte| all | byte) <= 1 {
            continue;
        }
        if let Some(at) = chunk.iter().position(|byte| *byte > 1) {
            let element = first.saturating_add((block * 4096 + at) as u64);
            let what = format!("element {element}: expected a bool of 0 or 1, found byte {}", chunk[at]);
            return Err(Error::new(ErrorKind::Corrupt, what));
        }
    }
    Ok(())
}
