//! A manifest from the files that it named, for a dataset that has lost it.
//!
//! Checksums are taken from the sidecars alone. One made anew from the data would call whatever the data
//! is now right, and hide the very damage that is looked for.

use crate::checksum::{Sidecar, crc32};
use crate::dataset::Dataset;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::folder::{Folder, read_exact_at};
use crate::generation::begun_from;
use crate::layout::{ArrayLayout, DEFAULT_SHARD_BYTES, HEADER_BYTES};
use crate::manifest::{
    ArrayEntry, Attributes, MANIFEST_NAME, Manifest, ShardEntry, name_of_folder, shard_of_file, shard_stem,
};
use crate::npy::Descr;
use crate::npy::header::{read_header, shard_header};
use crate::plan::PLAN_NAME;
use crate::progress::Progress;
use crate::verify::{Damage, Report};
use crate::writer::WriteOptions;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A manifest with more shards would be longer than one may be.
const SHARDS_MOST: u64 = 1 << 20;
/// No shard has a longer sidecar.
const SIDECAR_MOST: u64 = 64 << 20;
/// Where a damaged manifest goes.
pub(crate) const ASIDE_NAME: &str = "arrshard.json.damaged";

/// What [`repair`] has found and made.
#[derive(Debug)]
#[non_exhaustive]
pub struct Repaired {
    /// The dataset by its new manifest, or by its old one if nothing was wrong with that.
    pub dataset: Dataset,
    /// Whether a manifest was missing or damaged.
    pub was_lost: bool,
    /// Rows that are missing or not what was sealed, as [`Dataset::verify`] reports them by the new manifest,
    /// and those of arrays that could not be told at all. Empty if the manifest was whole.
    pub report: Report,
    /// What no file tells any more, a line each.
    pub notes: Vec<String>,
}

/// Rebuilds the manifest of the dataset in the folder `path` from its shards and sidecars, and checks
/// all data by it. A manifest that is whole stays as it is. With `dry_run` nothing is written.
///
/// The order of the arrays and all attributes are lost with a manifest, and so are shards at the end of an
/// array of which no file is left. Shards that are damaged or missing, and shards without a sidecar, are named
/// by the new manifest in such a way that `verify` goes on reporting them.
///
/// # Errors
///
/// `NotFound` if there are no shards there; `Incomplete` for a dataset that is being written;
/// `Unsupported` if a newer arrshard has written the manifest; `Io`.
pub fn repair(
    path: impl AsRef<Path>,
    dry_run: bool,
    options: &WriteOptions,
    progress: &Progress,
) -> Result<Repaired> {
    let path = path.as_ref();
    let old = path.join(MANIFEST_NAME);
    let was_there = match Dataset::open(path) {
        Ok(dataset) => {
            let (report, notes) = (Report::default(), Vec::new());
            return Ok(Repaired { dataset, was_lost: false, report, notes });
        }
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Corrupt) => {
            old.symlink_metadata().is_ok()
        }
        Err(e) => return Err(e),
    };
    let folder = Folder::open(path)?;
    if path.join(PLAN_NAME).symlink_metadata().is_ok() {
        return Err(
            Error::new(ErrorKind::Incomplete, "expected a sealed dataset, found one being written").at(path)
        );
    }
    // What a killed writer has begun was never part of the dataset.
    let mut found = Found { known: begun_from(path).unwrap_or(u64::MAX), ..Found::default() };
    for name in array_names(path)? {
        found.array(&folder, &name)?;
    }
    if found.arrays.is_empty() && found.damage.is_empty() {
        return Err(
            Error::new(ErrorKind::NotFound, "expected shards to tell a manifest from, found none").at(path)
        );
    }
    let Found { arrays, damage, mut notes, generation, passed_over, .. } = found;
    if passed_over > 0 {
        notes.push(format!("{passed_over} files of a generation that was being written are passed over"));
    }
    let attributes = Attributes::new();
    let mut manifest = Manifest { arrays, attributes, generation: generation.max(1), strings: Vec::new() };
    notes.push(
        "attributes, names of columns and the order of the arrays are lost with the manifest".to_owned(),
    );
    let dataset = Dataset::assume(folder, manifest.clone());
    manifest.strings = strings(&dataset);
    let bytes = manifest.to_bytes()?;
    let dataset = Dataset::assume(Folder::open(path)?, manifest);
    let mut report = dataset.verify(progress)?;
    report.damage.extend(damage);
    if !dry_run {
        let storage = options.storage();
        if was_there {
            storage.rename(&old, &path.join(ASIDE_NAME))?;
            notes.push(format!("the damaged manifest is now {ASIDE_NAME}"));
        }
        storage.write_new(&old, &bytes)?;
        storage.sync_folder(path)?;
    }
    Ok(Repaired { dataset, was_lost: true, report, notes })
}

/// Names of arrays that have a folder here, sorted.
fn array_names(path: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(|e| Error::io(path, "list", e))? {
        let entry = entry.map_err(|e| Error::io(path, "list", e))?;
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        names.extend(entry.file_name().to_str().filter(|_| is_folder).and_then(name_of_folder));
    }
    names.sort_unstable();
    Ok(names)
}

/// What the files tell.
#[derive(Default)]
struct Found {
    arrays: Vec<ArrayEntry>,
    /// Arrays, or ends of arrays, that no manifest can describe any more.
    damage: Vec<Damage>,
    notes: Vec<String>,
    /// The highest of any file, also of those that are left out: what comes next is after all of them.
    generation: u64,
    /// The highest that was there, where a killed writer has said so.
    known: u64,
    /// Files of higher ones.
    passed_over: u64,
}

/// What is left of a shard.
struct Remains {
    generation: u64,
    /// By its header page, if that is one of a shard, byte for byte.
    header: Option<(DType, Vec<u64>)>,
    sidecar: Option<Vec<u8>>,
    /// Bytes of its data, by the length of its file.
    len: Option<u64>,
}

impl Remains {
    fn of(folder: &Folder, index: u64, generation: u64) -> Self {
        let stem = shard_stem(index, generation);
        let sidecar = folder.read(&format!("{stem}.crc"), 0..=SIDECAR_MOST).ok();
        let Ok((file, len)) = folder.open_file(&format!("{stem}.npy")) else {
            return Self { generation, header: None, sidecar, len: None };
        };
        let mut page = [0; HEADER_BYTES as usize];
        let path = folder.path().join(&stem);
        let header = read_exact_at(&file, &path, &mut page, 0)
            .and_then(|()| read_header(&page, None, true))
            .ok()
            .and_then(|header| match header.descr {
                Descr::Plain { dtype, .. } => Some((dtype, header.shape)),
                Descr::Record { .. } => None,
            })
            .filter(|(dtype, shape)| shard_header(*dtype, shape) == page);
        Self { generation, header, sidecar, len: len.checked_sub(HEADER_BYTES) }
    }

    /// Its rows, by the first of its parts that tells them.
    fn rows(&self, dtype: DType, row: Option<&[u64]>, row_bytes: u64) -> Option<u64> {
        let by_header = self.header.as_ref().and_then(|(found, shape)| match (row, shape.split_first()) {
            (Some(row), Some((rows, rest))) if *found == dtype && rest == row => Some(*rows),
            (None, None) if *found == dtype => Some(1),
            _ => None,
        });
        let claims = self.sidecar.as_deref().and_then(Sidecar::claims);
        let by_sidecar = claims.filter(|(bytes, _)| *bytes == row_bytes).map(|(_, rows)| rows);
        let by_len = || self.len.and_then(|len| len.checked_div(row_bytes));
        by_header.or(by_sidecar).or_else(by_len)
    }
}

impl Found {
    fn lost(&mut self, array: &str, shard: u64, rows: std::ops::Range<u64>, why: &str) {
        let reason = format!("array {}: {why}", quoted(array.as_bytes()));
        self.damage.push(Damage { array: array.to_owned(), shard, rows, kind: ErrorKind::Corrupt, reason });
    }

    /// Adds the array `name`, if its folder has files of shards.
    fn array(&mut self, dataset: &Folder, name: &str) -> Result<()> {
        let folder = dataset.open_folder(&crate::manifest::folder_name(name)?)?;
        let mut shards = self.shards(&folder, name)?;
        let Some(last) = shards.last_key_value().map(|(index, _)| *index) else { return Ok(()) };
        let Some((dtype, shape)) = most_common(shards.values().filter_map(|remains| {
            let (dtype, shape) = remains.header.clone()?;
            Some((dtype, shape.split_first().map(|(_, row)| row.to_vec())))
        })) else {
            let claims = shards.values().filter_map(|r| r.sidecar.as_deref().and_then(Sidecar::claims));
            let rows = claims.fold(0, |sum: u64, (_, rows)| sum.saturating_add(rows));
            self.lost(name, 0, 0..rows, "expected a shard with a whole header, found none; left out");
            return Ok(());
        };
        let row = shape.as_deref();
        let row_bytes = crate::layout::array_bytes(dtype, row.unwrap_or_default())?;
        let rows = |remains: &Remains| remains.rows(dtype, row, row_bytes);
        let full = most_common(shards.range(..last).filter_map(|(_, remains)| rows(remains)));
        let at_end = shards.get(&last).and_then(rows);
        let known = match (full, at_end) {
            (Some(full), Some(rows)) if rows > 0 => Some((full, rows.min(full))),
            (None, Some(rows)) if last == 0 => {
                Some((shard_rows(dtype, row, rows, row_bytes).unwrap_or(rows.max(1)), rows))
            }
            _ => None,
        };
        let layout = known.and_then(|(full, rows)| {
            let rows = full.checked_mul(last)?.checked_add(rows)?;
            let shape: Vec<u64> = match row {
                Some(row) => [&[rows], row].concat(),
                None => Vec::new(),
            };
            ArrayLayout::with_rows_per_shard(dtype, &shape, full).ok()
        });
        let Some(layout) = layout.filter(|layout| layout.shard_count() == last + 1) else {
            let start = full.unwrap_or(0).saturating_mul(last);
            self.lost(
                name,
                last,
                start..start,
                "expected to learn its rows from its files, found too few; left out",
            );
            return Ok(());
        };
        if last == 0 && layout.by_row().rows_per_shard > layout.rows() {
            self.notes.push(format!(
                "{}: rows_per_shard {} is a guess, as there is one shard",
                quoted(name.as_bytes()),
                layout.by_row().rows_per_shard
            ));
        }
        if layout.rows() == layout.by_row().rows_per_shard * (last + 1) && row_bytes > 0 && row.is_some() {
            self.notes.push(format!(
                "{}: its last shard is full; if more followed, no file tells of them",
                quoted(name.as_bytes())
            ));
        }
        let entries = layout.shards().map(|shard| {
            let remains = shards.remove(&shard.index);
            let (generation, sidecar) = remains.map_or((1, None), |r| (r.generation, r.sidecar));
            // Without a sidecar nothing can be right any more, and `verify` is to say so.
            let mut entry = ShardEntry { crc32: 0, sidecar_crc32: 0, generation };
            if let Some(bytes) = sidecar
                && let Ok(sidecar) = Sidecar::from_bytes(&bytes, layout.by_row(), shard.len())
            {
                entry.crc32 = sidecar.shard_crc(layout.by_row());
                entry.sidecar_crc32 = crc32(&bytes);
            }
            entry
        });
        let entries = entries.collect();
        self.arrays.push(ArrayEntry {
            name: name.to_owned(),
            layout,
            attributes: Attributes::new(),
            shards: entries,
        });
        Ok(())
    }

    /// What is left of each shard, by its highest generation.
    fn shards(&mut self, folder: &Folder, name: &str) -> Result<BTreeMap<u64, Remains>> {
        let at = |e| Error::io(folder.path(), "list", e);
        let mut newest = BTreeMap::<u64, u64>::new();
        for entry in fs::read_dir(folder.path()).map_err(at)? {
            let entry = entry.map_err(at)?;
            let file = entry.file_name();
            if !entry.file_type().map_err(at)?.is_file() {
                continue;
            }
            let Some((index, generation, ending)) = file.to_str().and_then(shard_of_file) else { continue };
            if !matches!(ending, "npy" | "crc") {
                continue;
            }
            if index >= SHARDS_MOST {
                self.notes.push(format!(
                    "{}: shard {index} is passed over, as no manifest could name so many",
                    quoted(name.as_bytes())
                ));
                continue;
            }
            if generation > self.known {
                self.passed_over += 1;
                continue;
            }
            self.generation = self.generation.max(generation);
            let newest = newest.entry(index).or_insert(generation);
            *newest = generation.max(*newest);
        }
        Ok(newest
            .into_iter()
            .map(|(index, generation)| (index, Remains::of(folder, index, generation)))
            .collect())
    }
}

/// rows_per_shard of an array of which there is one shard of `rows` rows: that of the default shard size,
/// or if that is too small, the least that is allowed.
fn shard_rows(dtype: DType, row: Option<&[u64]>, rows: u64, row_bytes: u64) -> Option<u64> {
    let Some(row) = row else {
        return ArrayLayout::new(dtype, &[], DEFAULT_SHARD_BYTES).ok().map(|l| l.by_row().rows_per_shard);
    };
    let shape = [&[rows], row].concat();
    let by_default = ArrayLayout::new(dtype, &shape, DEFAULT_SHARD_BYTES).ok()?.by_row().rows_per_shard;
    if rows <= by_default || row_bytes == 0 {
        return Some(by_default);
    }
    // Whole blocks and whole pages are both powers of two.
    (0..40)
        .filter_map(|power| rows.checked_next_multiple_of(1 << power))
        .find(|&full| ArrayLayout::with_rows_per_shard(dtype, &shape, full).is_ok())
}

/// Names of arrays of which both halves are there and fit each other.
fn strings(dataset: &Dataset) -> Vec<String> {
    let flat = |name: &str, dtype| {
        dataset
            .manifest()
            .array(name)
            .is_some_and(|array| array.layout.dtype() == dtype && array.layout.shape().len() == 1)
    };
    let is_strings = |name: &str| {
        let (offsets, bytes) = (format!("{name}.offsets"), format!("{name}.bytes"));
        if !flat(&offsets, DType::UInt64) || !flat(&bytes, DType::UInt8) {
            return false;
        }
        let rows = |name: &str| dataset.array(name).map_or(0, |array| array.layout.rows());
        let (count, total) = (rows(&offsets), rows(&bytes));
        let offset = |at: u64| dataset.read_values::<u64>(&offsets, at..at + 1).ok().map(|v| v[0]);
        // What can't be read is damage, which does not make them numbers.
        count > 0
            && offset(0).is_none_or(|first| first == 0)
            && offset(count - 1).is_none_or(|last| last == total)
    };
    let names = dataset.arrays().iter().filter_map(|array| array.name.strip_suffix(".offsets"));
    // A string array's own name must be free.
    names
        .filter(|name| dataset.manifest().array(name).is_none() && is_strings(name))
        .map(str::to_owned)
        .collect()
}

/// The value that is there most often; of several the first.
fn most_common<T: PartialEq>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut counts: Vec<(T, usize)> = Vec::new();
    for value in values {
        match counts.iter_mut().find(|(known, _)| *known == value) {
            Some((_, count)) => *count += 1,
            None => counts.push((value, 1)),
        }
    }
    let most = counts.iter().map(|(_, count)| *count).max()?;
    counts.into_iter().find(|(_, count)| *count == most).map(|(value, _)| value)
}
