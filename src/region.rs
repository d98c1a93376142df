//! A run of whole blocks of one shard, in the hands of one writer.

use crate::buffer::Buffer;
use crate::checksum::crc32;
use crate::dtype::Element;
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::folder::write_all_at;
use crate::layout::{ArrayLayout, HEADER_BYTES, ShardLayout};
use crate::map::map_range_mut;
use memmap2::MmapMut;
use ndarray::{ArrayViewMut, ArrayViewMutD, Dimension, IxDyn};
use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// How a region's bytes reach the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Transfer {
    /// A buffer, written by `pwrite` when the region is finished.
    #[default]
    Write,
    /// The file itself, mapped; only where its blocks are allocated.
    Map,
}

const FREE: u8 = 0;
const CLAIMED: u8 = 1;
const DONE: u8 = 2;

/// Which blocks of a shard are claimed and done, and their checksums.
#[derive(Debug)]
pub(crate) struct Blocks {
    states: Vec<AtomicU8>,
    crcs: Vec<AtomicU32>,
}

impl Blocks {
    pub(crate) fn new(count: u64) -> Self {
        let count = count as usize;
        Self {
            states: (0..count).map(|_| AtomicU8::new(FREE)).collect(),
            crcs: (0..count).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// Claims all of `range` or, if one is taken, none; gives the one that is.
    fn claim(&self, range: Range<u64>) -> std::result::Result<(), (u64, bool)> {
        for block in range.clone() {
            let state = &self.states[block as usize];
            if let Err(found) = state.compare_exchange(FREE, CLAIMED, Ordering::AcqRel, Ordering::Acquire) {
                self.release(range.start..block);
                return Err((block, found == DONE));
            }
        }
        Ok(())
    }

    fn release(&self, range: Range<u64>) {
        for block in range {
            let _ = self.states[block as usize].compare_exchange(
                CLAIMED,
                FREE,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
        }
    }

    fn finish(&self, block: u64, crc: u32) {
        self.crcs[block as usize].store(crc, Ordering::Relaxed);
        self.states[block as usize].store(DONE, Ordering::Release);
    }

    /// The checksums of all blocks, or the first block that is not done.
    pub(crate) fn finished(&self) -> std::result::Result<Vec<u32>, u64> {
        match self.states.iter().position(|state| state.load(Ordering::Acquire) != DONE) {
            Some(block) => Err(block as u64),
            None => Ok(self.crcs.iter().map(|crc| crc.load(Ordering::Relaxed)).collect()),
        }
    }

    /// The blocks that are not done.
    pub(crate) fn missing(&self) -> impl Iterator<Item = u64> + '_ {
        let open = self.states.iter().enumerate().filter(|(_, state)| state.load(Ordering::Acquire) != DONE);
        open.map(|(block, _)| block as u64)
    }
}

/// What a region needs to know of the shard it lies in.
#[derive(Debug)]
pub(crate) struct OpenShard {
    pub(crate) name: String,
    pub(crate) layout: ArrayLayout,
    pub(crate) shard: ShardLayout,
    pub(crate) path: PathBuf,
    pub(crate) blocks: Arc<Blocks>,
}

impl OpenShard {
    /// Checks that array rows `rows` are whole blocks of this shard, and claims them.
    fn claim(&self, rows: &Range<u64>) -> Result<Range<u64>> {
        let by_row = self.layout.by_row();
        let text = |what: String| {
            Error::new(ErrorKind::InvalidArgument, format!("array {}: {what}", quoted(self.name.as_bytes())))
        };
        let own = &self.shard.rows;
        if rows.start > rows.end || rows.start < own.start || rows.end > own.end {
            return Err(text(format!(
                "expected rows within {}..{} of one shard, found {}..{}",
                own.start, own.end, rows.start, rows.end
            )));
        }
        let within = rows.start - own.start..rows.end - own.start;
        let step = by_row.rows_per_block;
        if !within.start.is_multiple_of(step) || !within.end.is_multiple_of(step) && rows.end != own.end {
            let from = rows.start - within.start % step;
            let to = own.end.min(own.start + within.end.next_multiple_of(step));
            return Err(text(format!(
                "expected rows in whole blocks of {step}, found {}..{}",
                rows.start, rows.end
            ))
            .hint(format!("rows {from}..{to} are whole blocks")));
        }
        let blocks = by_row.blocks_of(within);
        self.blocks.claim(blocks.clone()).map_err(|(block, done)| {
            let taken = by_row.block_rows(block, self.shard.len());
            let state = if done { "are written already" } else { "are being written" };
            Error::new(
                ErrorKind::Locked,
                format!(
                    "array {}: expected free rows {}..{}, found that {}..{} {state}",
                    quoted(self.name.as_bytes()),
                    rows.start,
                    rows.end,
                    own.start + taken.start,
                    own.start + taken.end
                ),
            )
        })?;
        Ok(blocks)
    }
}

enum Memory {
    Buffer(Buffer),
    Map(MmapMut),
}

/// Rows of an array that one writer fills. Nobody else can have them until it is finished, after which
/// they are written, or dropped, after which they are free again.
#[derive(Debug)]
pub struct Region {
    shard: Arc<OpenShard>,
    rows: Range<u64>,
    blocks: Range<u64>,
    file: File,
    memory: Memory,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Memory::Buffer(_) => "Buffer",
            Memory::Map(_) => "Map",
        })
    }
}

impl Region {
    pub(crate) fn open(
        shard: Arc<OpenShard>,
        rows: Range<u64>,
        transfer: Transfer,
        mut buffer: Buffer,
    ) -> Result<Self> {
        let blocks = shard.claim(&rows)?;
        let open = || -> Result<(File, Memory)> {
            let file = File::options()
                .read(true)
                .write(true)
                .open(&shard.path)
                .map_err(|e| Error::io(&shard.path, "open", e))?;
            let row_bytes = shard.layout.by_row().row_bytes;
            let len = (rows.end - rows.start) * row_bytes;
            let memory = if transfer == Transfer::Map && len > 0 {
                let offset = HEADER_BYTES + (rows.start - shard.shard.rows.start) * row_bytes;
                Memory::Map(map_range_mut(&file, offset, len).map_err(|e| Error::io(&shard.path, "map", e))?)
            } else {
                buffer.resize(len as usize);
                Memory::Buffer(buffer)
            };
            Ok((file, memory))
        };
        match open() {
            Ok((file, memory)) => Ok(Self { shard, rows, blocks, file, memory }),
            Err(e) => {
                shard.blocks.release(blocks);
                Err(e)
            }
        }
    }

    /// Its rows, counted in the array.
    pub fn rows(&self) -> Range<u64> {
        self.rows.clone()
    }

    /// The memory of its rows: their row-major bytes, little-endian.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Buffer(buffer) => buffer.bytes_mut(),
            Memory::Map(map) => map,
        }
    }

    /// The memory of its rows as values, row-major.
    pub fn values_mut<T: Element>(&mut self) -> Result<&mut [T]> {
        let found = self.shard.layout.dtype();
        if found != T::DTYPE {
            return Err(Error::new(
                ErrorKind::TypeMismatch,
                format!("array {}: expected {}, found {found}", quoted(self.shard.name.as_bytes()), T::DTYPE),
            ));
        }
        crate::dtype::values_mut(self.bytes_mut())
    }

    /// Its rows as a view to write to: shape (`rows`, …).
    pub fn view_mut<T: Element, D: Dimension>(&mut self) -> Result<ArrayViewMut<'_, T, D>> {
        let shape =
            crate::dataset::to_usize(&self.shard.layout.shard_shape(self.rows.end - self.rows.start))?;
        let values = self.values_mut::<T>()?;
        let view: ArrayViewMutD<'_, T> = ArrayViewMut::from_shape(IxDyn(&shape), values).map_err(|e| {
            Error::new(ErrorKind::InvalidArgument, format!("expected shape {shape:?}, found {e}"))
        })?;
        view.into_dimensionality::<D>().map_err(|_| {
            Error::new(
                ErrorKind::InvalidArgument,
                format!("expected {:?} dimensions, found shape {shape:?}", D::NDIM),
            )
        })
    }

    /// Writes what has not been written, with the checksum of each block; the rows are then done.
    pub fn finish(self) -> Result<()> {
        self.finish_reuse().map(drop)
    }

    /// As [`Self::finish`]; gives the buffer back for the next region.
    pub(crate) fn finish_reuse(mut self) -> Result<Buffer> {
        let by_row = *self.shard.layout.by_row();
        let rows = self.shard.shard.len();
        let start = (self.rows.start - self.shard.shard.rows.start) * by_row.row_bytes;
        let bytes: &[u8] = match &self.memory {
            Memory::Buffer(buffer) => buffer.bytes(),
            Memory::Map(map) => map,
        };
        check_bools(&self.shard, &self.rows, bytes)?;
        let mut crcs = Vec::with_capacity((self.blocks.end - self.blocks.start) as usize);
        for block in self.blocks.clone() {
            let at = by_row.block_bytes(block, rows);
            let piece = &bytes[(at.start - start) as usize..(at.end - start) as usize];
            // Each block is hashed just before it is copied to the file, while it is in cache.
            crcs.push(crc32(piece));
            if let Memory::Buffer(_) = self.memory {
                write_all_at(&self.file, &self.shard.path, piece, HEADER_BYTES + at.start)?;
            }
        }
        for (block, crc) in self.blocks.clone().zip(crcs) {
            self.shard.blocks.finish(block, crc);
        }
        self.blocks = 0..0;
        Ok(match std::mem::replace(&mut self.memory, Memory::Buffer(Buffer::default())) {
            Memory::Buffer(buffer) => buffer,
            Memory::Map(_) => Buffer::default(),
        })
    }
}

/// A byte above 1 would be undefined in Rust and true or not in C, by chance.
fn check_bools(shard: &OpenShard, rows: &Range<u64>, bytes: &[u8]) -> Result<()> {
    if shard.layout.dtype() != crate::DType::Bool {
        return Ok(());
    }
    match bytes.iter().position(|&byte| byte > 1) {
        Some(at) => {
            let row = rows.start + at as u64 / shard.layout.by_row().row_bytes;
            Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "array {}: row {row}: expected a bool of 0 or 1, found {}",
                    quoted(shard.name.as_bytes()),
                    bytes[at]
                ),
            ))
        }
        None => Ok(()),
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.shard.blocks.release(self.blocks.clone());
    }
}
