//! Checking every checksum of a dataset, in parallel by blocks.

use crate::checksum::crc32;
use crate::dataset::{ArrayFiles, Dataset};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::folder::read_exact_at;
use crate::layout::{HEADER_BYTES, ShardLayout};
use crate::manifest::ArrayEntry;
use crate::progress::Progress;
use rayon::prelude::*;
use std::fs::File;
use std::ops::Range;

/// A part of a dataset that is not what was sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// Name of the array.
    pub array: String,
    /// Number of the shard, from 0.
    pub shard: u64,
    /// The rows of the array that can't be trusted.
    pub rows: Range<u64>,
    /// `Corrupt`, `NotFound` for a file that is gone, `Io` for what can't be read.
    pub kind: ErrorKind,
    /// What was expected and what was found, with its place.
    pub reason: String,
}

/// What [`Dataset::verify`] has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Damaged parts, in order of array, shard and row.
    pub damage: Vec<Damage>,
    /// Shards looked at.
    pub shards: u64,
    /// Bytes of row data that were read and hashed.
    pub bytes: u64,
}

impl Report {
    /// Whether all is as it was sealed.
    pub fn is_whole(&self) -> bool {
        self.damage.is_empty()
    }
}

impl Dataset {
    /// Reads all data and compares it with every checksum: block, shard and sidecar; also that
    /// bools are 0 or 1 and strings are UTF-8 between offsets that never run backwards.
    ///
    /// # Errors
    ///
    /// Damage is a part of the report, not an error; only an array folder that can't be opened is.
    pub fn verify(&self, progress: &Progress) -> Result<Report> {
        let mut report = Report::default();
        progress.start(self.arrays().iter().map(|array| array.layout.nbytes()).sum());
        for array in self.arrays() {
            let files = match self.open_array(array) {
                Ok(files) => files,
                Err(e) => {
                    report.damage.push(damage(array, 0, 0..array.layout.rows(), &e));
                    continue;
                }
            };
            for shard in array.layout.shards() {
                report.shards += 1;
                report.bytes += shard.data_bytes;
                report.damage.extend(verify_shard(array, &files, &shard, progress)?);
            }
        }
        for name in &self.manifest().strings {
            self.verify_strings(name, &mut report)?;
        }
        Ok(report)
    }

    /// Reads the strings by copy, in runs of bounded size, so that no file can pull the map away.
    fn verify_strings(&self, name: &str, report: &mut Report) -> Result<()> {
        let (offsets, bytes) = (format!("{name}.offsets"), format!("{name}.bytes"));
        let damaged = |array: &str| report.damage.iter().any(|d| d.array == array);
        if damaged(&offsets) || damaged(&bytes) {
            return Ok(());
        }
        let total = self.array(&bytes)?.layout.rows();
        let entry = self.array(&offsets)?;
        let count = entry.layout.rows();
        let mut fault = |row: u64, reason: String| {
            let reason = format!("array {}: {reason}", quoted(offsets.as_bytes()));
            let shard = row / entry.layout.by_row().rows_per_shard;
            let kind = ErrorKind::Corrupt;
            report.damage.push(Damage { array: offsets.clone(), shard, rows: row..row + 1, kind, reason });
        };
        const RUN: u64 = 1 << 18;
        let (mut previous, mut before) = (0, None);
        for start in (0..count).step_by(RUN as usize) {
            let run = self.read_rows::<u64>(&offsets, start..count.min(start + RUN))?;
            for (row, &offset) in (start..).zip(run.iter()) {
                let in_order = if row == 0 { offset == 0 } else { offset >= previous && offset <= total };
                if !in_order || row + 1 == count && offset != total {
                    fault(
                        row,
                        format!("row {row}: expected offsets that grow from 0 to {total}, found {offset}"),
                    );
                    return Ok(());
                }
                previous = offset;
            }
            // The string that ends with the run's first offset begins with the last one's last.
            let starts: Vec<u64> = before.into_iter().chain(run).collect();
            before = Some(previous);
            if self.are_utf8(&bytes, &starts)? {
                continue;
            }
            for (string, ends) in (start.saturating_sub(1)..).zip(starts.windows(2)) {
                if let Some(at) = self.first_not_utf8(&bytes, ends[0]..ends[1])? {
                    fault(string, format!("string {string}: expected UTF-8, found another byte at {at}"));
                }
            }
        }
        Ok(())
    }

    /// Whether each string between neighbours of `offsets`, which are in order, is UTF-8: all
    /// together are, and none starts within a character.
    fn are_utf8(&self, bytes: &str, offsets: &[u64]) -> Result<bool> {
        const RUN: u64 = 1 << 20;
        let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else {
            return Ok(true);
        };
        let mut starts = offsets.iter().peekable();
        let mut at = first;
        while at < last {
            let end = last.min(at + RUN);
            let run = self.read_rows::<u8>(bytes, at..end)?;
            let run = run.as_slice().unwrap_or_default();
            let text = match std::str::from_utf8(run) {
                Ok(text) => text,
                // Only the cut of this run through a character may be forgiven.
                Err(e) if e.error_len().is_none() && end < last => {
                    std::str::from_utf8(&run[..e.valid_up_to()]).unwrap_or_default()
                }
                Err(_) => return Ok(false),
            };
            let next = at + text.len() as u64;
            while let Some(start) = starts.next_if(|&&start| start < next) {
                if !text.is_char_boundary((start - at) as usize) {
                    return Ok(false);
                }
            }
            at = next;
        }
        Ok(true)
    }

    fn first_not_utf8(&self, bytes: &str, range: Range<u64>) -> Result<Option<u64>> {
        const RUN: u64 = 1 << 20;
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min(at + RUN);
            let run = self.read_rows::<u8>(bytes, at..end)?;
            let run = run.as_slice().unwrap_or_default();
            match std::str::from_utf8(run) {
                Ok(_) => at = end,
                // Only the cut of this run through a character may be forgiven.
                Err(e) if e.error_len().is_none() && end < range.end => at += e.valid_up_to() as u64,
                Err(e) => return Ok(Some(at + e.valid_up_to() as u64)),
            }
        }
        Ok(None)
    }
}

fn damage(array: &ArrayEntry, shard: u64, rows: Range<u64>, reason: &Error) -> Damage {
    Damage { array: array.name.clone(), shard, rows, kind: reason.kind(), reason: reason.to_string() }
}

/// An error with the rows, if the shard `index` of an array is damaged.
pub(crate) fn check_shard(dataset: &Dataset, array: &ArrayEntry, index: u64) -> Result<()> {
    let files = dataset.open_array(array)?;
    let Some(shard) = array.layout.shard(index) else { return Ok(()) };
    match verify_shard(array, &files, &shard, &Progress::new())?.first() {
        None => Ok(()),
        Some(Damage { rows, kind, reason, .. }) => Err(Error::new(
            *kind,
            format!(
                "array {}: expected whole rows to go on from, found rows {}..{} damaged: {reason}",
                quoted(array.name.as_bytes()),
                rows.start,
                rows.end
            ),
        )),
    }
}

fn verify_shard(
    array: &ArrayEntry,
    files: &ArrayFiles<'_>,
    shard: &ShardLayout,
    progress: &Progress,
) -> Result<Vec<Damage>> {
    let whole = |reason: Error| vec![damage(array, shard.index, shard.rows.clone(), &reason)];
    let file = match files.open(shard.index) {
        Ok(file) => file,
        Err(e) => return Ok(whole(e)),
    };
    let sidecar = match files.sidecar(shard.index) {
        Ok(sidecar) => sidecar,
        Err(e) => return Ok(whole(e)),
    };
    let by_row = array.layout.by_row();
    let entry = &array.shards[shard.index as usize];
    let found = sidecar.shard_crc(by_row);
    if found != entry.crc32 {
        let text = format!("expected the blocks of checksum {:08x}, found {found:08x}", entry.crc32);
        return Ok(whole(Error::new(ErrorKind::Corrupt, text).at(files.path(shard.index, "crc"))));
    }
    let path = files.path(shard.index, "npy");
    let blocks: Result<Vec<Option<(u64, Error)>>> = sidecar
        .blocks
        .par_iter()
        .enumerate()
        .map_init(Vec::new, |buffer, (block, &expected)| {
            let bytes = by_row.block_bytes(block as u64, shard.len());
            buffer.resize((bytes.end - bytes.start) as usize, 0);
            let reason = match check_block(&file, &path, buffer, bytes.start, expected, array.layout.dtype())
            {
                Ok(()) => None,
                Err(e) => Some((block as u64, e)),
            };
            progress.advance(buffer.len() as u64)?;
            Ok(reason)
        })
        .collect();
    let mut damages: Vec<Damage> = Vec::new();
    for (block, reason) in blocks?.into_iter().flatten() {
        let rows = by_row.block_rows(block, shard.len());
        let rows = rows.start + shard.rows.start..rows.end + shard.rows.start;
        match damages.last_mut() {
            // Blocks of one long row, or neighbours with the same kind of fault, are one range.
            Some(last) if last.rows.end >= rows.start => last.rows.end = rows.end,
            _ => damages.push(damage(array, shard.index, rows, &reason)),
        }
    }
    Ok(damages)
}

fn check_block(
    file: &File,
    path: &std::path::Path,
    buffer: &mut [u8],
    start: u64,
    expected: u32,
    dtype: DType,
) -> Result<()> {
    read_exact_at(file, path, buffer, HEADER_BYTES + start)?;
    let found = crc32(buffer);
    if found != expected {
        return Err(Error::new(
            ErrorKind::Corrupt,
            format!("expected checksum {expected:08x}, found {found:08x}"),
        )
        .offset(HEADER_BYTES + start)
        .at(path));
    }
    match buffer.iter().position(|&byte| byte > 1).filter(|_| dtype == DType::Bool) {
        Some(at) => {
            Err(Error::new(ErrorKind::Corrupt, format!("expected a bool of 0 or 1, found {}", buffer[at]))
                .offset(HEADER_BYTES + start + at as u64)
                .at(path))
        }
        None => Ok(()),
    }
}
