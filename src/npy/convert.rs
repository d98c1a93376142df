//! Pure kernels that turn foreign layouts into little-endian C order: byte swaps, fields out of records,
//! Fortran order into C order. They work on slices, so that threads can share an array by rows.

use crate::error::{Error, ErrorKind, Result};
use std::ops::Range;

/// Reverses the bytes of each `unit` (1, 2, 4 or 8 bytes; see [`DType::swap_unit`](crate::DType::swap_unit)).
///
/// # Panics
/// If `buf` isn't a whole number of units, or the unit another one.
pub fn swap_in_place(buf: &mut [u8], unit: usize) {
    fn swap<const N: usize>(buf: &mut [u8]) {
        for item in buf.as_chunks_mut::<N>().0 {
            item.reverse();
        }
    }
    check_units(buf.len(), unit);
    match unit {
        2 => swap::<2>(buf),
        4 => swap::<4>(buf),
        8 => swap::<8>(buf),
        _ => {}
    }
}

/// As [`swap_in_place`], from `src` to `out`.
///
/// # Panics
/// If the lengths differ or aren't a whole number of units, or the unit is another one.
pub fn copy_swapped(src: &[u8], out: &mut [u8], unit: usize) {
    fn swap<const N: usize>(src: &[u8], out: &mut [u8]) {
        for (from, to) in src.as_chunks::<N>().0.iter().zip(out.as_chunks_mut::<N>().0) {
            let mut item = *from;
            item.reverse();
            *to = item;
        }
    }
    check_units(src.len(), unit);
    assert_eq!(src.len(), out.len());
    match unit {
        2 => swap::<2>(src, out),
        4 => swap::<4>(src, out),
        8 => swap::<8>(src, out),
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
        1 => transpose_items(src.as_chunks::<1>().0, geometry, columns, out.as_chunks_mut::<1>().0),
        2 => transpose_items(src.as_chunks::<2>().0, geometry, columns, out.as_chunks_mut::<2>().0),
        4 => transpose_items(src.as_chunks::<4>().0, geometry, columns, out.as_chunks_mut::<4>().0),
        8 => transpose_items(src.as_chunks::<8>().0, geometry, columns, out.as_chunks_mut::<8>().0),
        16 => transpose_items(src.as_chunks::<16>().0, geometry, columns, out.as_chunks_mut::<16>().0),
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

/// Columns of a tile: their cache lines of the input and their pages fit into the first-level caches.
const TILE: usize = 32;

fn transpose_items<T: Copy>(src: &[T], geometry: Geometry, mut columns: Columns, out: &mut [T]) {
    let Geometry { height, rows, width } = geometry;
    let mut starts = [0; TILE];
    for left in (0..width).step_by(TILE) {
        let starts = &mut starts[..TILE.min(width - left)];
        for start in starts.iter_mut() {
            *start = columns.next() * height;
        }
        for top in rows.clone().step_by(TILE) {
            let tile_rows = top..rows.end.min(top + TILE);
            // The inner loop goes down a column: it reads contiguous items and writes into lines that the
            // other columns of the tile will fill while they are in the cache.
            for (column, start) in starts.iter().enumerate() {
                let items = &src[start + tile_rows.start..start + tile_rows.end];
                let first = (top - rows.start) * width + left + column;
                for (item, to) in items.iter().zip(out[first..].iter_mut().step_by(width)) {
                    *to = *item;
                }
            }
        }
    }
}

/// For records and other items whose size is no power of two.
fn transpose_bytes(src: &[u8], size: usize, geometry: Geometry, mut columns: Columns, out: &mut [u8]) {
    let Geometry { height, rows, width } = geometry;
    for column in 0..width {
        let start = (columns.next() * height + rows.start) * size;
        let items = src[start..start + rows.len() * size].chunks_exact(size);
        for (item, row) in items.zip(out.chunks_exact_mut(width * size)) {
            row[column * size..(column + 1) * size].copy_from_slice(item);
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
