//! An array that grows at its end, for inputs whose length shows only when they end.

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::layout::{ArrayLayout, HEADER_BYTES, RowLayout, too_large};
use crate::manifest::shard_stem;
use crate::seal::Finished;
use crate::storage::Storage;
use crc32fast::Hasher;
use std::fs::File;
use std::path::PathBuf;

/// What is held in memory for one write.
const PENDING_BYTES: usize = 16 << 10;

/// Takes rows in order; holds a few kilobytes of them in memory.
#[derive(Debug)]
pub struct Appender {
    name: String,
    folder: PathBuf,
    dtype: DType,
    /// The shape of a row.
    row: Vec<u64>,
    by_row: RowLayout,
    rows: u64,
    /// The path of each shard and the checksums of its blocks.
    shards: Vec<(PathBuf, Vec<u32>)>,
    storage: Storage,
    /// The last shard, while it is not full.
    file: Option<File>,
    /// Bytes of the last shard that are in its file.
    written: u64,
    /// Bytes of its last block that are in its file, and their checksum so far.
    in_block: u64,
    hasher: Hasher,
    /// Bytes after those, kept to save calls: a table may have thousands of columns, so not many.
    pending: Vec<u8>,
}

impl Appender {
    pub(crate) fn new(
        name: String,
        folder: PathBuf,
        dtype: DType,
        row: Vec<u64>,
        by_row: RowLayout,
        storage: Storage,
    ) -> Self {
        Self {
            name,
            folder,
            dtype,
            row,
            by_row,
            rows: 0,
            shards: Vec::new(),
            storage,
            file: None,
            written: 0,
            in_block: 0,
            hasher: Hasher::new(),
            pending: Vec::new(),
        }
    }

    /// Name of the array.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn error(&self, kind: ErrorKind, what: String) -> Error {
        Error::new(kind, format!("array {}: {what}", quoted(self.name.as_bytes())))
    }

    /// Adds whole rows, given as their row-major little-endian bytes.
    pub fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        let row_bytes = self.by_row.row_bytes;
        if row_bytes == 0 || !(bytes.len() as u64).is_multiple_of(row_bytes) {
            return Err(self.error(
                ErrorKind::InvalidArgument,
                format!("expected whole rows of {row_bytes} bytes, found {} bytes", bytes.len()),
            ));
        }
        if self.dtype == DType::Bool && bytes.iter().any(|&byte| byte > 1) {
            return Err(
                self.error(ErrorKind::InvalidArgument, "expected bools of 0 or 1, found another byte".into())
            );
        }
        let total = (self.rows * row_bytes).checked_add(bytes.len() as u64);
        if total.is_none_or(|total| total > i64::MAX as u64) {
            return Err(too_large(&[self.rows, row_bytes]));
        }
        self.rows += bytes.len() as u64 / row_bytes;
        while !bytes.is_empty() {
            let room = self.block_bytes() - self.in_block - self.pending.len() as u64;
            let (now, later) = bytes.split_at(room.min(bytes.len() as u64) as usize);
            bytes = later;
            if self.pending.is_empty() && now.len() >= PENDING_BYTES {
                self.write(now)?;
                continue;
            }
            self.pending.extend_from_slice(now);
            if self.pending.len() >= PENDING_BYTES || now.len() as u64 == room {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Bytes of the block that is being written, if enough rows follow.
    fn block_bytes(&self) -> u64 {
        let block = match (&self.file, self.shards.last()) {
            (Some(_), Some((_, crcs))) => crcs.len() as u64,
            _ => 0,
        };
        let at = self.by_row.block_bytes(block, self.by_row.rows_per_shard);
        at.end - at.start
    }

    fn flush(&mut self) -> Result<()> {
        let mut bytes = std::mem::take(&mut self.pending);
        self.write(&bytes)?;
        bytes.clear();
        self.pending = bytes;
        Ok(())
    }

    /// Adds rows without bytes, of an array like (3, 0).
    pub fn append_empty(&mut self, rows: u64) -> Result<()> {
        if self.by_row.row_bytes != 0 {
            return Err(self.error(ErrorKind::InvalidArgument, "expected rows with bytes, found none".into()));
        }
        self.rows = self.rows.saturating_add(rows);
        Ok(())
    }

    fn open_shard(&mut self) -> Result<()> {
        let path = self.folder.join(format!("{}.npy.partial", shard_stem(self.shards.len() as u64, 1)));
        let file = self.storage.create(&path)?;
        self.storage.resize(&file, &path, HEADER_BYTES)?;
        self.file = Some(file);
        self.shards.push((path, Vec::new()));
        self.written = 0;
        Ok(())
    }

    /// Writes bytes that end in the block they start in, or with it.
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if self.file.is_none() {
            self.open_shard()?;
        }
        let whole = self.block_bytes();
        if let (Some(file), Some((path, crcs))) = (&self.file, self.shards.last_mut()) {
            self.hasher.update(bytes);
            self.storage.write(file, path, bytes, HEADER_BYTES + self.written)?;
            self.written += bytes.len() as u64;
            self.in_block += bytes.len() as u64;
            if self.in_block == whole {
                crcs.push(std::mem::take(&mut self.hasher).finalize());
                self.in_block = 0;
            }
        }
        if self.written == self.by_row.rows_per_shard * self.by_row.row_bytes {
            self.file = None;
        }
        Ok(())
    }

    /// Writes the last block; the number of rows is now known.
    pub(crate) fn into_finished(mut self) -> Result<Finished> {
        if !self.pending.is_empty() {
            self.flush()?;
        }
        if self.in_block > 0
            && let Some((_, crcs)) = self.shards.last_mut()
        {
            crcs.push(std::mem::take(&mut self.hasher).finalize());
        }
        if self.shards.is_empty() {
            self.open_shard()?;
        }
        let mut shape = vec![self.rows];
        shape.extend_from_slice(&self.row);
        let layout = ArrayLayout::split_as(&self.by_row, self.dtype, &shape)?;
        Ok(Finished { layout, shards: self.shards.into_iter().map(|(_, crcs)| crcs).collect() })
    }
}
