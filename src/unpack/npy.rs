//! One array as `.npy`: NumPy's header, and the row data as it is.

use super::ordered;
use super::place::{Partial, Stream};
use super::reader::Reader;
use crate::error::Result;
use crate::folder::write_all_at;
use crate::manifest::ArrayEntry;
use crate::npy::npy_header;
use crate::progress::Progress;
use std::ops::Range;

/// What is copied at a time; it stays in a second-level cache between the read and the write.
pub(super) const COPY_BYTES: u64 = 256 << 10;
/// What one thread copies before it takes another run.
const RUN_BYTES: u64 = 4 << 20;

/// Rows of an array.
pub(super) struct Npy<'a> {
    pub(super) reader: &'a Reader<'a>,
    pub(super) array: &'a ArrayEntry,
    pub(super) progress: &'a Progress,
}

impl Npy<'_> {
    fn header(&self, rows: &Range<u64>) -> Vec<u8> {
        let layout = &self.array.layout;
        npy_header(layout.dtype(), &layout.shard_shape(rows.end - rows.start))
    }

    fn bytes(&self, rows: &Range<u64>) -> Range<u64> {
        let row_bytes = self.array.layout.by_row().row_bytes;
        rows.start * row_bytes..rows.end * row_bytes
    }

    /// Writes rows `rows`, with `workers` threads.
    pub(super) fn file(&self, rows: Range<u64>, workers: usize, out: &Partial) -> Result<()> {
        let (header, bytes) = (self.header(&rows), self.bytes(&rows));
        let len = header.len() as u64 + (bytes.end - bytes.start);
        let (file, path) = (out.file()?, out.target());
        crate::storage::allocate(file, path, len)?;
        write_all_at(file, path, &header, 0)?;
        let data = header.len() as u64;
        let copy = |buffer: &mut Vec<u8>, run: Range<u64>| {
            for piece in pieces(run, COPY_BYTES) {
                buffer.resize((piece.end - piece.start) as usize, 0);
                self.reader.read(self.array, piece.start, buffer)?;
                write_all_at(file, path, buffer, data + (piece.start - bytes.start))?;
                self.progress.advance(piece.end - piece.start)?;
            }
            Ok(())
        };
        let mut runs = pieces(bytes.clone(), RUN_BYTES);
        // Nothing is left to be written in order, but errors are.
        ordered::run(workers, || Ok(runs.next()), |run, buffer, _| copy(buffer, run), |_| Ok(()))
    }

    /// Writes rows `rows` from start to end.
    pub(super) fn stream(&self, rows: Range<u64>, workers: usize, out: &mut Stream) -> Result<()> {
        out.write(&self.header(&rows))?;
        in_order(self.reader, self.array, self.bytes(&rows), workers, self.progress, |block| out.write(block))
    }
}

/// Reads a range of row data ahead of `write`, which gets it in order.
pub(super) fn in_order<'a>(
    reader: &Reader<'a>,
    array: &'a ArrayEntry,
    bytes: Range<u64>,
    workers: usize,
    progress: &Progress,
    write: impl FnMut(&[u8]) -> Result<()> + Send,
) -> Result<()> {
    let mut runs = pieces(bytes, COPY_BYTES);
    ordered::run(
        workers,
        || Ok(runs.next()),
        |run: Range<u64>, (): &mut (), block| {
            block.resize((run.end - run.start) as usize, 0);
            reader.read(array, run.start, block)?;
            progress.advance(run.end - run.start)
        },
        write,
    )
}

fn pieces(bytes: Range<u64>, size: u64) -> impl Iterator<Item = Range<u64>> {
    let mut at = bytes.start;
    std::iter::from_fn(move || {
        let start = at;
        at = bytes.end.min(start.saturating_add(size));
        (start < at).then_some(start..at)
    })
}
