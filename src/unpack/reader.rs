//! Row data of a dataset by copy, piece by piece, with few of its files open at a time.

use crate::dataset::Dataset;
use crate::error::{Error, ErrorKind, Result};
use crate::folder::read_exact_at;
use crate::layout::HEADER_BYTES;
use crate::manifest::ArrayEntry;
use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The least and most files that are kept open.
const OPEN_FILES: (usize, usize) = (64, 1024);

/// Reads from any thread.
pub(super) struct Reader<'a> {
    dataset: &'a Dataset,
    /// How many files are kept open: a table may have more columns than a process may have files.
    most: usize,
    /// The newest last.
    open: Mutex<VecDeque<Arc<Shard<'a>>>>,
}

struct Shard<'a> {
    array: &'a ArrayEntry,
    index: u64,
    file: File,
    path: PathBuf,
}

impl<'a> Reader<'a> {
    pub(super) fn new(dataset: &'a Dataset) -> Self {
        #[cfg(unix)]
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        #[cfg(not(unix))]
        let limit = None;
        // The other half is for all else that the process does.
        let most = limit.map_or(OPEN_FILES.1, |limit| usize::try_from(limit / 2).unwrap_or(usize::MAX));
        Self { dataset, most: most.clamp(OPEN_FILES.0, OPEN_FILES.1), open: Mutex::default() }
    }

    /// Whether so many arrays can be read side by side without opening files again and again.
    pub(super) fn keeps_open(&self, arrays: usize) -> bool {
        arrays <= self.most
    }

    /// Copies row data from byte `start` of an array on: as much as `out` takes.
    ///
    /// # Errors
    /// `Corrupt` for files that are not as they were sealed; I/O.
    pub(super) fn read(&self, array: &'a ArrayEntry, start: u64, out: &mut [u8]) -> Result<()> {
        let by_row = array.layout.by_row();
        let shard_bytes = by_row.rows_per_shard.saturating_mul(by_row.row_bytes).max(1);
        let (mut at, mut rest) = (start, out);
        while !rest.is_empty() {
            let (index, within) = (at / shard_bytes, at % shard_bytes);
            let here = rest.len().min(usize::try_from(shard_bytes - within).unwrap_or(usize::MAX));
            let piece;
            (piece, rest) = rest.split_at_mut(here);
            let shard = self.shard(array, index)?;
            read_exact_at(&shard.file, &shard.path, piece, HEADER_BYTES + within)?;
            at += here as u64;
        }
        Ok(())
    }

    /// The offsets `first..first + count` of a string array.
    pub(super) fn offsets(
        &self,
        array: &'a ArrayEntry,
        first: u64,
        count: usize,
        raw: &mut Vec<u8>,
        out: &mut Vec<u64>,
    ) -> Result<()> {
        raw.resize(count * 8, 0);
        self.read(array, first * 8, raw)?;
        out.clear();
        out.extend(raw.as_chunks().0.iter().map(|offset| u64::from_le_bytes(*offset)));
        Ok(())
    }

    /// An error at the dataset.
    pub(super) fn corrupt(&self, what: String) -> Error {
        Error::new(ErrorKind::Corrupt, what).at(self.dataset.path())
    }

    fn shard(&self, array: &'a ArrayEntry, index: u64) -> Result<Arc<Shard<'a>>> {
        let open = || self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |shard: &&Arc<Shard<'a>>| std::ptr::eq(shard.array, array) && shard.index == index;
        if let Some(shard) = open().iter().rev().find(is_it) {
            return Ok(shard.clone());
        }
        let files = self.dataset.open_array(array)?;
        let file = files.open(index)?;
        let shard = Arc::new(Shard { array, index, file, path: files.path(index, "npy") });
        let mut open = open();
        if open.len() >= self.most {
            open.pop_front();
        }
        open.push_back(shard.clone());
        Ok(shard)
    }
}
