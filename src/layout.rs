//! Where every row, block and shard of an array lies: pure arithmetic, before a byte is written.
//!
//! The rules and their reasons are in `format-spec/README.md`, "Geometry".

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use std::ops::Range;

/// Bytes of a shard's npy header, so that row data starts on a page.
pub const HEADER_BYTES: u64 = 4096;
/// The page that row data of adjacent shards meet on.
pub const PAGE_BYTES: u64 = 4096;
/// The most that one checksum covers.
pub const BLOCK_BYTES: u64 = 1 << 20;
/// Shards are at most about this long unless the user says otherwise.
pub const DEFAULT_SHARD_BYTES: u64 = 1 << 30;
/// The longest data of a shard, so that its file's length is an i64 too.
const MAX_SHARD_BYTES: u64 = i64::MAX as u64 - HEADER_BYTES;
/// NumPy's own limit.
pub const MAX_DIMENSIONS: usize = 64;

/// How rows of one length fall into blocks and shards, whatever their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLayout {
    /// Bytes of one row.
    pub row_bytes: u64,
    /// Rows of a full block; 1 where a row is longer than a block, all of a shard shorter than one.
    pub rows_per_block: u64,
    /// Blocks of one row; 1 unless a row is longer than a block.
    pub blocks_per_row: u64,
    /// Rows of every shard but the last.
    pub rows_per_shard: u64,
}

/// The layout of an array: its dtype, shape, and how its rows fall into shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayLayout {
    dtype: DType,
    shape: Vec<u64>,
    rows: u64,
    by_row: RowLayout,
}

/// One shard of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardLayout {
    /// Position among the array's shards, from 0.
    pub index: u64,
    /// Its rows, counted in the array.
    pub rows: Range<u64>,
    /// Bytes of row data, without the header.
    pub data_bytes: u64,
}

impl ShardLayout {
    /// The exact length of the shard's file.
    pub fn file_bytes(&self) -> u64 {
        HEADER_BYTES + self.data_bytes
    }

    /// Number of its rows.
    pub fn len(&self) -> u64 {
        self.rows.end - self.rows.start
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl RowLayout {
    /// Plans shards of about `shard_bytes` for rows of `row_bytes`.
    pub fn new(row_bytes: u64, shard_bytes: u64) -> Result<Self> {
        let (block, _) = blocks(row_bytes);
        let page = page_rows(row_bytes);
        // A shard shorter than a block need only be whole pages: it is then one block.
        let unit = if shard_bytes < block * row_bytes { page } else { page.max(block) };
        let unit_bytes = unit.checked_mul(row_bytes).filter(|&bytes| bytes <= MAX_SHARD_BYTES);
        let unit_bytes = unit_bytes.ok_or_else(|| too_large(&[unit, row_bytes]))?;
        let units = shard_bytes.min(MAX_SHARD_BYTES).checked_div(unit_bytes).unwrap_or(1).max(1);
        Ok(Self::with_rows_per_shard(row_bytes, units * unit))
    }

    fn with_rows_per_shard(row_bytes: u64, rows_per_shard: u64) -> Self {
        let (block, blocks_per_row) = blocks(row_bytes);
        Self { row_bytes, rows_per_block: block.min(rows_per_shard), blocks_per_row, rows_per_shard }
    }

    /// The blocks of a shard of `rows` rows.
    pub fn block_count(&self, rows: u64) -> u64 {
        if self.row_bytes == 0 { 0 } else { rows.div_ceil(self.rows_per_block) * self.blocks_per_row }
    }

    /// Where block `block` lies in the data of a shard of `rows` rows, in bytes.
    pub fn block_bytes(&self, block: u64, rows: u64) -> Range<u64> {
        let first_row = block / self.blocks_per_row * self.rows_per_block;
        let row_start = first_row * self.row_bytes;
        if self.blocks_per_row == 1 {
            row_start..rows.min(first_row + self.rows_per_block) * self.row_bytes
        } else {
            let start = row_start + block % self.blocks_per_row * BLOCK_BYTES;
            start..(start + BLOCK_BYTES).min(row_start + self.row_bytes)
        }
    }

    /// The blocks that hold rows `rows` of a shard, which must start and end at block edges.
    pub fn blocks_of(&self, rows: Range<u64>) -> Range<u64> {
        if self.row_bytes == 0 {
            return 0..0;
        }
        rows.start / self.rows_per_block * self.blocks_per_row
            ..rows.end.div_ceil(self.rows_per_block) * self.blocks_per_row
    }

    /// The rows of block `block` in a shard of `rows` rows.
    pub fn block_rows(&self, block: u64, rows: u64) -> Range<u64> {
        let first = block / self.blocks_per_row * self.rows_per_block;
        first..rows.min(first + self.rows_per_block)
    }
}

/// Rows per block and blocks per row. A power of two, so that the block rule and the page rule
/// meet at the larger of the two instead of at their product.
fn blocks(row_bytes: u64) -> (u64, u64) {
    if row_bytes > BLOCK_BYTES {
        (1, row_bytes.div_ceil(BLOCK_BYTES))
    } else {
        let fit = BLOCK_BYTES / row_bytes.max(1);
        (1 << fit.ilog2(), 1)
    }
}

/// Part `index` of `count` of `total` things, as even as can be.
fn split(total: u64, index: u64, count: u64) -> Result<Range<u64>> {
    if index >= count {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("expected one of {count} parts, counted from 0, found {index}"),
        ));
    }
    let edge = |index: u64| (u128::from(total) * u128::from(index) / u128::from(count)) as u64;
    Ok(edge(index)..edge(index + 1))
}

/// Every shard but the last holds a multiple of this many rows: whole pages.
fn page_rows(row_bytes: u64) -> u64 {
    PAGE_BYTES / gcd(row_bytes, PAGE_BYTES)
}

/// The product of dimensions and item size overflows what a file or an address space can hold.
pub(crate) fn too_large(factors: &[u64]) -> Error {
    let text: Vec<_> = factors.iter().map(u64::to_string).collect();
    Error::new(
        ErrorKind::Unsupported,
        format!("expected a shape of at most {} bytes, found {}", i64::MAX, text.join(" x ")),
    )
}

/// Bytes of an array, or an error that names the dimensions.
pub fn array_bytes(dtype: DType, shape: &[u64]) -> Result<u64> {
    // A zero anywhere makes the array empty, but the strides of the others must still fit.
    let mut product = dtype.size();
    for &dim in shape.iter().filter(|&&dim| dim != 0) {
        product = product.checked_mul(dim).filter(|&bytes| bytes <= i64::MAX as u64).ok_or_else(|| {
            let mut factors = shape.to_vec();
            factors.push(dtype.size());
            too_large(&factors)
        })?;
    }
    Ok(if shape.contains(&0) { 0 } else { product })
}

impl ArrayLayout {
    /// Plans an array of `shape` in shards of about `shard_bytes`.
    pub fn new(dtype: DType, shape: &[u64], shard_bytes: u64) -> Result<Self> {
        let (rows, row_bytes) = Self::rows_of(dtype, shape)?;
        let mut by_row = RowLayout::new(row_bytes, shard_bytes)?;
        if row_bytes == 0 {
            by_row = RowLayout::with_rows_per_shard(row_bytes, rows.max(1));
        }
        Ok(Self { dtype, shape: shape.to_vec(), rows, by_row })
    }

    /// The layout that a manifest describes, if it keeps the rules.
    pub fn with_rows_per_shard(dtype: DType, shape: &[u64], rows_per_shard: u64) -> Result<Self> {
        let (rows, row_bytes) = Self::rows_of(dtype, shape)?;
        let wrong = |rule: String| {
            let what = format!("expected rows_per_shard {rule}, found {rows_per_shard}");
            Error::new(ErrorKind::Corrupt, what)
        };
        if row_bytes == 0 {
            if rows_per_shard != rows.max(1) {
                return Err(wrong(format!("{} for rows without bytes", rows.max(1))));
            }
        } else {
            let (block, _) = blocks(row_bytes);
            let page = page_rows(row_bytes);
            let unit = if rows_per_shard < block { page } else { page.max(block) };
            if rows_per_shard == 0 || !rows_per_shard.is_multiple_of(unit) {
                return Err(wrong(format!("to be a multiple of {unit}")));
            }
            if rows_per_shard.checked_mul(row_bytes).is_none_or(|bytes| bytes > MAX_SHARD_BYTES) {
                return Err(wrong(format!("of at most {MAX_SHARD_BYTES} bytes")));
            }
        }
        let by_row = RowLayout::with_rows_per_shard(row_bytes, rows_per_shard);
        Ok(Self { dtype, shape: shape.to_vec(), rows, by_row })
    }

    /// For `shape`, with as many rows in a shard as `by_row` has; rows without bytes are all in one.
    pub(crate) fn split_as(by_row: &RowLayout, dtype: DType, shape: &[u64]) -> Result<Self> {
        if by_row.row_bytes == 0 {
            Self::new(dtype, shape, 1)
        } else {
            Self::with_rows_per_shard(dtype, shape, by_row.rows_per_shard)
        }
    }

    fn rows_of(dtype: DType, shape: &[u64]) -> Result<(u64, u64)> {
        if shape.len() > MAX_DIMENSIONS {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("expected at most {MAX_DIMENSIONS} dimensions, found {}", shape.len()),
            ));
        }
        array_bytes(dtype, shape)?;
        let Some((&rows, rest)) = shape.split_first() else {
            return Ok((1, dtype.size()));
        };
        Ok((rows, array_bytes(dtype, rest)?))
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Length of each dimension; empty for a single value.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Length of the first dimension; 1 for a single value.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes of the whole array, headers not counted.
    pub fn nbytes(&self) -> u64 {
        self.rows * self.by_row.row_bytes
    }

    /// How its rows fall into blocks and shards.
    pub fn by_row(&self) -> &RowLayout {
        &self.by_row
    }

    /// Number of shards: at least one, so that an empty array has a file that tells its dtype.
    pub fn shard_count(&self) -> u64 {
        self.rows.div_ceil(self.by_row.rows_per_shard).max(1)
    }

    /// Shard `index`, or `None` behind the last.
    pub fn shard(&self, index: u64) -> Option<ShardLayout> {
        if index >= self.shard_count() {
            return None;
        }
        let start = index * self.by_row.rows_per_shard;
        let end = self.rows.min(start.saturating_add(self.by_row.rows_per_shard));
        Some(ShardLayout { index, rows: start..end, data_bytes: (end - start) * self.by_row.row_bytes })
    }

    /// All shards in order.
    pub fn shards(&self) -> impl Iterator<Item = ShardLayout> + '_ {
        (0..self.shard_count()).filter_map(|index| self.shard(index))
    }

    /// The shape that stands in the header of a shard of `rows` rows.
    pub fn shard_shape(&self, rows: u64) -> Vec<u64> {
        let mut shape = self.shape.clone();
        if let Some(first) = shape.first_mut() {
            *first = rows;
        }
        shape
    }

    /// Part `index` of `count`: the rows of a run of whole shards. The parts cover the array in order;
    /// some are empty if there are fewer shards.
    pub fn part(&self, index: u64, count: u64) -> Result<Range<u64>> {
        let shards = split(self.shard_count(), index, count)?;
        let row = |shard: u64| self.rows.min(shard.saturating_mul(self.by_row.rows_per_shard));
        Ok(row(shards.start)..row(shards.end))
    }

    /// Share `index` of `count`: the runs, each of whole blocks of one shard, that hold its part of all
    /// blocks. The shares cover the array in order; some are empty if there are fewer blocks.
    pub fn share(&self, index: u64, count: u64) -> Result<Vec<Range<u64>>> {
        let RowLayout { rows_per_block, rows_per_shard, .. } = self.by_row;
        let in_shard = rows_per_shard.div_ceil(rows_per_block);
        let full = self.rows / rows_per_shard;
        let all = full.saturating_mul(in_shard) + (self.rows % rows_per_shard).div_ceil(rows_per_block);
        let blocks = split(all, index, count)?;
        let row = |block: u64| {
            let start = (block / in_shard).saturating_mul(rows_per_shard);
            self.rows.min(start.saturating_add(block % in_shard * rows_per_block))
        };
        let mut runs = Vec::new();
        let mut at = blocks.start;
        while at < blocks.end {
            let next = blocks.end.min((at / in_shard + 1) * in_shard);
            runs.push(row(at)..row(next));
            at = next;
        }
        Ok(runs)
    }

    /// The array rows cut into runs of whole blocks of one shard, of at most `bytes` each.
    pub fn regions(&self, bytes: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let by_row = self.by_row;
        let block_bytes = (by_row.rows_per_block * by_row.row_bytes).max(1);
        let step = (bytes / block_bytes).max(1) * by_row.rows_per_block;
        self.shards().flat_map(move |shard| {
            let Range { start, end } = shard.rows;
            (start..end).step_by(step as usize).map(move |row| row..end.min(row.saturating_add(step)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn worked_examples() {
        let l = |row, shard| RowLayout::new(row, shard).unwrap();
        assert_eq!(l(40, 1 << 30).rows_per_block, 16384);
        assert_eq!(l(40, 1 << 30).rows_per_shard % 16384, 0);
        assert_eq!(l(4, 4096).rows_per_shard, 1024);
        assert_eq!(l(4, 4096).rows_per_block, 1024);
        assert_eq!(l(4, 1 << 20).rows_per_block, 262_144);
        assert_eq!(l(4097, 1 << 20).rows_per_block, 128);
        assert_eq!(l(4097, 1 << 20).rows_per_shard, 4096);
        assert_eq!(l(3 << 20, 1 << 30).blocks_per_row, 3);
        assert_eq!(l(3 << 20, 1 << 30).rows_per_shard, 341);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_dimensions() {
        let err = ArrayLayout::new(DType::Float64, &[1 << 32, 1 << 32, 16], 1 << 30).unwrap_err();
        assert!(err.to_string().contains("4294967296"), "{err}");
        assert!(ArrayLayout::new(DType::Float64, &[0, u64::MAX], 1 << 30).is_err());
        assert_eq!(ArrayLayout::new(DType::Float64, &[1 << 59, 0], 1 << 30).unwrap().shard_count(), 1);
        let longest = RowLayout::new(8, u64::MAX).unwrap();
        assert!(longest.rows_per_shard * 8 + HEADER_BYTES <= i64::MAX as u64);
        assert!(RowLayout::new((1 << 52) + 1, 1).is_err(), "4096 rows of it");
        let kept = |rows| ArrayLayout::with_rows_per_shard(DType::UInt64, &[3], rows).is_ok();
        assert!(kept(512) && kept(131_072) && kept(longest.rows_per_shard));
        assert!(!kept(0) && !kept(513) && !kept(131_072 + 512) && !kept(longest.rows_per_shard + 131_072));
    }

    proptest! {
        #[test]
        fn shards_and_blocks_tile_the_array(
            row in prop_oneof![1u64..5000, 900_000u64..3_000_000, Just(4096), Just(1 << 20)],
            rows in 0u64..20_000, shard_bytes in 1u64..(64 << 20),
        ) {
            let layout = ArrayLayout::new(DType::UInt8, &[rows, row], shard_bytes).unwrap();
            let by_row = layout.by_row();
            let mut next = 0;
            let shards: Vec<_> = layout.shards().collect();
            for (i, shard) in shards.iter().enumerate() {
                prop_assert_eq!(shard.rows.start, next);
                next = shard.rows.end;
                if i + 1 < shards.len() {
                    prop_assert_eq!(shard.len(), by_row.rows_per_shard);
                    prop_assert_eq!(shard.data_bytes % PAGE_BYTES, 0);
                }
                let mut at = 0;
                for block in 0..by_row.block_count(shard.len()) {
                    let bytes = by_row.block_bytes(block, shard.len());
                    prop_assert_eq!(bytes.start, at);
                    prop_assert!(bytes.end > bytes.start && bytes.end - bytes.start <= BLOCK_BYTES);
                    at = bytes.end;
                }
                prop_assert_eq!(at, shard.data_bytes);
            }
            prop_assert_eq!(next, rows);
            let mut next = 0;
            for region in layout.regions(4 << 20) {
                prop_assert_eq!(region.start, next);
                next = region.end;
            }
            prop_assert_eq!(next, rows);
            for count in [1, 2, 3, 7, 100] {
                let (mut part_end, mut share_end) = (0, 0);
                for index in 0..count {
                    let part = layout.part(index, count).unwrap();
                    prop_assert_eq!(part.start, part_end);
                    prop_assert!(part.start.is_multiple_of(by_row.rows_per_shard) || part.is_empty());
                    part_end = part.end;
                    for run in layout.share(index, count).unwrap() {
                        prop_assert_eq!(run.start, share_end);
                        prop_assert!(!run.is_empty());
                        let shard = layout.shard(run.start / by_row.rows_per_shard).unwrap();
                        prop_assert!(run.end <= shard.rows.end);
                        prop_assert_eq!((run.start - shard.rows.start) % by_row.rows_per_block, 0);
                        share_end = run.end;
                    }
                }
                prop_assert_eq!((part_end, share_end), (rows, rows));
                prop_assert!(layout.part(count, count).is_err());
            }
            prop_assert_eq!(
                ArrayLayout::with_rows_per_shard(DType::UInt8, &[rows, row], by_row.rows_per_shard).unwrap(),
                layout
            );
        }
    }
}
