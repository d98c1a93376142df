//! The next generation of a sealed dataset: rows at its end or arrays beside its own.
//!
//! What is new comes from another dataset, so that everything that can be packed can be appended. Its
//! shards get their names in the folders of the old one, where no reader looks for them, and the
//! new manifest shows them all at once.

use crate::building::Building;
use crate::dataset::Dataset;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::garbage::Garbage;
use crate::layout::{ArrayLayout, BLOCK_BYTES, array_bytes};
use crate::manifest::{ArrayEntry, Attributes, MANIFEST_NAME, Manifest, Naming, ShardEntry};
use crate::plan::PLAN_NAME;
use crate::region::Transfer;
use crate::seal::{finished, seal_array};
use crate::staging::{Staging, claim, clear};
use crate::storage::Storage;
use crate::text::svmlight::SPARSE;
use crate::verify::check_shard;
use crate::writer::WriteOptions;
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// In the building folder: what is being added, to what.
const TASK_NAME: &str = "task";
/// In the building folder: the manifest that is going to be the dataset's.
const NEXT_NAME: &str = "next.json";
/// In the building folder: the dataset of what is added.
const ADDED_NAME: &str = "added";

/// Appends the rows of the dataset `rows` to the one in the folder `dataset`, array by array, as its next
/// generation. Readers of the old generation go on undisturbed.
///
/// # Errors
///
/// `TypeMismatch` if dtypes or the shapes of rows differ; `InvalidArgument` if not both have the same
/// arrays, or arrays of one length would get different ones, or an array has no rows (shape `()`);
/// `Corrupt` if the last shard, which is written anew with more rows, is damaged; `Locked` if somebody else
/// is writing; `Unsupported` for a dataset of a newer arrshard; `Io`. After an error the dataset is
/// what it was.
pub fn append(dataset: impl AsRef<Path>, rows: &Dataset, options: &WriteOptions) -> Result<Dataset> {
    let mut next = Next::claim(dataset.as_ref(), options)?;
    next.begin("append", false)?;
    next.append(rows)
}

/// Adds the arrays of the dataset `arrays` to the one in the folder `dataset`, as its next generation.
///
/// # Errors
///
/// `Exists` if a name is taken; `InvalidArgument` if an array has not as many rows as the
/// dataset's; else as [`append`].
pub fn add(dataset: impl AsRef<Path>, arrays: &Dataset, options: &WriteOptions) -> Result<Dataset> {
    let mut next = Next::claim(dataset.as_ref(), options)?;
    next.begin("add", false)?;
    next.add(arrays)
}

/// Whether the building folder `path` is that of a next generation, of a dataset that is there.
pub(crate) fn is_begun(path: &Path) -> bool {
    path.join(TASK_NAME).symlink_metadata().is_ok()
}

/// The generation of the dataset in the folder `target` that a killed writer has begun to go on from.
pub(crate) fn begun_from(target: &Path) -> Option<u64> {
    let task = fs::read_to_string(Staging::path_for(target).ok()?.join(TASK_NAME)).ok()?;
    task.lines().next()?.rsplit_once(" of generation ")?.1.parse().ok()
}

/// Whether a killed writer of a next generation has left something to go on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// All is to be done, or what remains.
    Work,
    /// The next generation was there already.
    Done,
}

/// The next generation of a dataset, for one writer alone. Removes what it has written when it is
/// dropped, unless it is to be gone on with.
#[derive(Debug)]
pub(crate) struct Next {
    base: Dataset,
    /// The bytes of its manifest.
    manifest: Vec<u8>,
    path: PathBuf,
    storage: Storage,
    keep: bool,
    _lock: Option<File>,
}

impl Next {
    /// Keeps other writers from the dataset `target`.
    pub(crate) fn claim(target: &Path, options: &WriteOptions) -> Result<Self> {
        // Shards must be on the file system of the dataset, wherever a symlink to it is.
        let is_link = target.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
        let target = if is_link {
            fs::canonicalize(target).map_err(|e| Error::io(target, "resolve", e))?
        } else {
            target.to_owned()
        };
        Dataset::open(&target).map_err(|e| match e.kind() {
            ErrorKind::NotFound => {
                Error::new(ErrorKind::NotFound, "expected a dataset, found none").at(&target)
            }
            _ => e,
        })?;
        let storage = options.storage();
        let path = Staging::path_for(&target)?;
        let lock = claim(&path, &storage)?;
        let file = target.join(MANIFEST_NAME);
        // It may have changed before the claim; from now on it doesn't.
        let read = Dataset::open(&target)
            .and_then(|base| Ok((base, fs::read(&file).map_err(|e| Error::io(&file, "read", e))?)));
        let (base, manifest) = read.inspect_err(|_| {
            let _ = fs::remove_dir(&path);
        })?;
        Ok(Self { base, manifest, path, storage, keep: true, _lock: lock })
    }

    pub(crate) fn base(&self) -> &Dataset {
        &self.base
    }

    /// Where the dataset of what is added goes.
    pub(crate) fn added(&self) -> PathBuf {
        self.path.join(ADDED_NAME)
    }

    /// Begins `task`, which is equal for equal inputs; or goes on with it, if `resume` says so and a
    /// killed writer has left something.
    pub(crate) fn begin(&mut self, task: &str, resume: bool) -> Result<Begin> {
        if Manifest::is_later(&self.manifest) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "expected a dataset of this version to write to, found one of a later version",
            )
            .hint("a newer arrshard may write to it")
            .at(self.base.path()));
        }
        let file = self.path.join(TASK_NAME);
        let manifest = self.base.manifest();
        let of_base = format!("{} of generation {}\n", manifest.id()?, manifest.generation);
        let whole = format!("{of_base}{task}\n");
        let left = fs::read_to_string(&file).ok().filter(|_| resume);
        let (theirs, theirs_of) = match &left {
            Some(left) => left.split_once('\n').map_or(("", ""), |(of, task)| (task.trim_end(), of)),
            None => ("", ""),
        };
        if left.is_some() && self.is_published() {
            if theirs == task {
                self.finish()?;
                return Ok(Begin::Done);
            }
        } else if left.as_deref() == Some(&whole) {
            return Ok(Begin::Work);
        } else if theirs_of == of_base.trim_end() {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "expected the inputs and settings of what was begun, {}, found {}",
                    quoted(theirs.as_bytes()),
                    quoted(task.as_bytes())
                ),
            )
            .hint("go on with the same, or abandon what was begun")
            .at(&self.path));
        }
        self.keep = false;
        clear(&self.path, &self.storage)?;
        // What an older writer has left under names that are needed now.
        self.sweep()?;
        self.storage.write_new(&file, whole.as_bytes())?;
        self.keep = resume;
        Ok(Begin::Work)
    }

    /// Whether the manifest that was to come is the dataset's.
    fn is_published(&self) -> bool {
        fs::read(self.path.join(NEXT_NAME)).is_ok_and(|bytes| bytes == self.manifest)
    }

    /// Removes what a writer has left that was killed with all done.
    pub(crate) fn end_if_published(mut self) -> Result<()> {
        if self.is_published() { self.finish() } else { Ok(()) }
    }

    /// Removes shards in the dataset that no manifest names yet.
    fn sweep(&self) -> Result<()> {
        let dataset = Dataset::open(self.base.path())?;
        Garbage::of(dataset.path(), dataset.manifest(), true)?.remove(&self.storage, dataset.path())
    }

    /// Adds the rows of `rows`, array by array.
    pub(crate) fn append(self, rows: &Dataset) -> Result<Dataset> {
        let path = self.base.path().to_owned();
        self.append_rows(rows).map_err(|e| placed(e, &path))
    }

    fn append_rows(mut self, rows: &Dataset) -> Result<Dataset> {
        if self.base.attributes().contains_key(SPARSE) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "expected arrays whose rows can be appended, found a sparse matrix in compressed rows",
            )
            .hint("pack all inputs together"));
        }
        let (old, new) = (tables(self.base.manifest()), tables(rows.manifest()));
        let missing = old.keys().find(|name| !new.contains_key(*name));
        let foreign = new.keys().find(|name| !old.contains_key(*name));
        let list = |tables: &BTreeMap<&str, Table>| {
            let names: Vec<_> = tables.keys().map(|name| quoted(name.as_bytes())).collect();
            crate::error::escape(names.join(", ").as_bytes(), 400)
        };
        if missing.is_some() || foreign.is_some() {
            return Err(invalid(format!(
                "expected rows for each array, {}, found {}",
                list(&old),
                list(&new)
            )));
        }
        for (name, old) in &old {
            same_rows(name, old, &new[name])?;
        }
        // Arrays whose rows belong together stay as long as each other.
        for (name, table) in &old {
            for (other, _) in old.iter().filter(|(_, other)| other.rows == table.rows) {
                let (found, expected) = (new[other].rows, new[name].rows);
                if found != expected {
                    return Err(invalid(format!(
                        "array {}: expected {expected} rows as for {}, which is as long, found {found}",
                        quoted(other.as_bytes()),
                        quoted(name.as_bytes())
                    )));
                }
            }
        }
        if new.values().all(|table| table.rows == 0) {
            return self.end();
        }
        let generation = self.base.manifest().generation + 1;
        let mut steps = Vec::new();
        for entry in self.base.arrays() {
            steps.push(self.step(entry, rows)?);
        }
        let arrays = self.write(rows, steps, generation)?;
        let manifest = Manifest { arrays, generation, ..self.base.manifest().clone() };
        self.publish(&manifest)
    }

    /// Adds the arrays of `arrays`.
    pub(crate) fn add(self, arrays: &Dataset) -> Result<Dataset> {
        let path = self.base.path().to_owned();
        self.add_arrays(arrays).map_err(|e| placed(e, &path))
    }

    fn add_arrays(self, arrays: &Dataset) -> Result<Dataset> {
        let (old, new) = (tables(self.base.manifest()), tables(arrays.manifest()));
        for (name, table) in &new {
            if old.values().all(|old| old.rows != table.rows) && !old.is_empty() {
                let mut expected: BTreeMap<u64, &str> = BTreeMap::new();
                for (name, old) in &old {
                    expected.entry(old.rows).or_insert(name);
                }
                let expected: Vec<_> = expected
                    .iter()
                    .map(|(rows, name)| format!("{rows} as in {}", quoted(name.as_bytes())))
                    .collect();
                return Err(invalid(format!(
                    "array {}: expected as many rows as the dataset has, {}, found {}",
                    quoted(name.as_bytes()),
                    crate::error::escape(expected.join(" or ").as_bytes(), 400),
                    table.rows
                )));
            }
        }
        let base = self.base.manifest();
        let taken = |name: &&String| base.array(name).is_some() || base.strings.contains(name);
        let names = arrays.arrays().iter().map(|array| &array.name).chain(&arrays.manifest().strings);
        if let Some(name) = names.into_iter().find(taken) {
            return Err(Error::new(
                ErrorKind::Exists,
                format!("expected a new name, found that array {} is there", quoted(name.as_bytes())),
            )
            .hint("--name gives it another")
            .at(self.base.path()));
        }
        let generation = base.generation + 1;
        let steps = arrays.arrays().iter().map(|entry| Step {
            source: entry,
            layout: entry.layout.clone(),
            kept: Vec::new(),
            tail: 0,
            skip: 0,
            shift: 0,
            base: None,
        });
        let steps = steps.collect();
        let mut manifest = base.clone();
        let added = self.write(arrays, steps, generation)?;
        manifest.arrays.extend(added);
        manifest.strings.extend(arrays.manifest().strings.iter().cloned());
        manifest.generation = generation;
        self.publish(&manifest)
    }

    /// What becomes of one array of the dataset.
    fn step<'a>(&'a self, base: &'a ArrayEntry, rows: &'a Dataset) -> Result<Step<'a>> {
        let source = rows.array(&base.name)?;
        // The offsets of strings start with a 0 that is no string's end.
        let text = self.base.manifest().strings.iter().find(|name| base.name == format!("{name}.offsets"));
        let skip = u64::from(text.is_some());
        let new = source.layout.rows() - skip;
        let old = base.layout.rows();
        let mut shape = base.layout.shape().to_vec();
        let rows = old.checked_add(new).ok_or_else(|| crate::layout::too_large(&[old, new]))?;
        if let Some(first) = shape.first_mut() {
            *first = rows;
        }
        array_bytes(base.layout.dtype(), &shape)?;
        let by_row = base.layout.by_row();
        if new == 0 {
            let (layout, kept) = (base.layout.clone(), base.shards.clone());
            return Ok(Step { source, layout, kept, tail: 0, skip, shift: 0, base: Some(base) });
        }
        let shift = match text {
            Some(name) => self.last_offset(base, name)?,
            None => 0,
        };
        let layout = ArrayLayout::split_as(by_row, base.layout.dtype(), &shape)?;
        if by_row.row_bytes == 0 {
            return Ok(Step { source, layout, kept: Vec::new(), tail: old, skip, shift, base: Some(base) });
        }
        let full = old / by_row.rows_per_shard;
        let tail = old % by_row.rows_per_shard;
        if tail > 0 {
            // New checksums must not declare right what is damaged.
            check_shard(&self.base, base, full)?;
        }
        let kept = base.shards[..full as usize].to_vec();
        Ok(Step { source, layout, kept, tail, skip, shift, base: Some(base) })
    }

    /// Where the last string ends, which is where the first new one starts.
    fn last_offset(&self, offsets: &ArrayEntry, name: &str) -> Result<u64> {
        let rows = offsets.layout.rows();
        let last = self.base.read_rows::<u64>(&offsets.name, rows.saturating_sub(1)..rows)?;
        let last = last.first().copied().unwrap_or(0);
        let total = self.base.array(&format!("{name}.bytes"))?.layout.rows();
        if last == total {
            return Ok(last);
        }
        Err(Error::new(
            ErrorKind::Corrupt,
            format!(
                "array {}: expected the last offset to be {total}, found {last}",
                quoted(offsets.name.as_bytes())
            ),
        )
        .at(self.base.path()))
    }

    /// Writes the new shards of all arrays, under names that no manifest knows yet.
    fn write(&self, rows: &Dataset, steps: Vec<Step<'_>>, generation: u64) -> Result<Vec<ArrayEntry>> {
        let root = self.base.path();
        let mut arrays = Vec::with_capacity(steps.len());
        for step in steps {
            let entry = step.base.unwrap_or(step.source);
            let naming = Naming { first: step.kept.len() as u64, generation };
            let mut shards = step.kept.clone();
            if (shards.len() as u64) < step.layout.shard_count() {
                shards.extend(match self.link(&step, rows, naming)? {
                    Some(linked) => linked,
                    None => self.copy(&step, rows, naming)?,
                });
            }
            arrays.push(ArrayEntry {
                name: entry.name.clone(),
                layout: step.layout,
                attributes: entry.attributes.clone(),
                shards,
            });
        }
        self.storage.sync_folder(root)?;
        Ok(arrays)
    }

    /// Gives shards that are what is wanted, to the byte, a name in the dataset; `None` if they are not
    /// or it can't be done.
    fn link(&self, step: &Step<'_>, rows: &Dataset, naming: Naming) -> Result<Option<Vec<ShardEntry>>> {
        let (old, new) = (&step.source.layout, &step.layout);
        // Only what this writer has made itself may be shared with it.
        let is_own = rows.path() == self.added();
        let (old_rows, new_rows) = (old.by_row(), new.by_row());
        let same = old_rows.rows_per_block == new_rows.rows_per_block
            && (old_rows.rows_per_shard == new_rows.rows_per_shard
                || old.rows() <= old_rows.rows_per_shard.min(new_rows.rows_per_shard));
        if !is_own || step.tail > 0 || step.skip > 0 || !same {
            return Ok(None);
        }
        let folder = self.base.path().join(step.source.folder()?);
        self.storage.create_folder(&folder)?;
        let from = rows.path().join(step.source.folder()?);
        let mut linked = Vec::with_capacity(step.source.shards.len());
        for (shard, index) in step.source.shards.iter().zip(0..) {
            for ending in ["npy", "crc"] {
                let to = folder.join(format!("{}.{ending}", naming.stem(index)));
                self.storage.remove(&to)?;
                let from = from.join(format!("{}.{ending}", shard.stem(index)));
                if !self.storage.share(&from, &to)? {
                    return Ok(None);
                }
            }
            linked.push(ShardEntry { generation: naming.generation, ..*shard });
        }
        self.storage.sync_folder(&folder)?;
        Ok(Some(linked))
    }

    /// Writes the shards from the first that is not full on: the rows it has and then the new ones.
    fn copy(&self, step: &Step<'_>, rows: &Dataset, naming: Naming) -> Result<Vec<ShardEntry>> {
        let entry = step.base.unwrap_or(step.source);
        let mut shape = step.layout.shape().to_vec();
        let by_row = step.layout.by_row();
        let before = naming.first * by_row.rows_per_shard;
        if let Some(first) = shape.first_mut() {
            *first -= before;
        }
        let dtype = step.layout.dtype();
        let layout = ArrayLayout::split_as(by_row, dtype, &shape)?;
        let arrays = std::iter::once((entry.name.clone(), layout.clone(), naming));
        let (root, storage) = (self.base.path(), self.storage.clone());
        let building = Building::within(root, &self.path, [0; 32], arrays, Transfer::Write, storage)?;
        let building = Arc::new(building);
        // A file of this name would be one that a killed writer has begun.
        for shard in layout.shards() {
            self.storage.remove(&building.table_path(0, shard.index))?;
        }
        building.lay_all()?;
        let row_bytes = by_row.row_bytes as usize;
        building.fill(0, BLOCK_BYTES, 0..u64::MAX, |wanted: Range<u64>, out| {
            let from_base = wanted.start.min(step.tail)..wanted.end.min(step.tail);
            let (head, rest) = out.split_at_mut((from_base.end - from_base.start) as usize * row_bytes);
            if let Some(base) = step.base.filter(|_| !head.is_empty()) {
                self.base.read_into(base, from_base.start + before..from_base.end + before, head)?;
            }
            if rest.is_empty() {
                return Ok(());
            }
            let start = wanted.start.max(step.tail) - step.tail + step.skip;
            let count = (wanted.end - wanted.start) - (from_base.end - from_base.start);
            rows.read_into(step.source, start..start + count, rest)?;
            if step.skip > 0 { shift_offsets(rest, step.shift) } else { Ok(()) }
        })?;
        let done = finished(&building, 0)?;
        let folder = root.join(entry.folder()?);
        let sealed = seal_array(&self.storage, &folder, &entry.name, Attributes::new(), done, naming)?;
        for shard in layout.shards() {
            self.storage.remove(&building.table_path(0, shard.index))?;
        }
        Ok(sealed.shards)
    }

    /// Makes `manifest` the dataset's, in one step.
    fn publish(mut self, manifest: &Manifest) -> Result<Dataset> {
        let root = self.base.path().to_owned();
        let file = root.join(MANIFEST_NAME);
        let bytes = manifest.to_bytes()?;
        // By this a writer that goes on knows that it has nothing left to do.
        self.storage.write_new(&self.path.join(NEXT_NAME), &bytes)?;
        self.storage.sync_folder(&self.path)?;
        let found = fs::read(&file).map_err(|e| Error::io(&file, "read", e))?;
        if found != self.manifest {
            return Err(Error::new(
                ErrorKind::Locked,
                "expected the dataset as it was when its next generation was begun, found another",
            )
            .hint("somebody else writes to it, from a host whose locks don't show here")
            .at(&file));
        }
        self.storage.write_new(&file, &bytes)?;
        self.storage.sync_folder(&root)?;
        self.end()
    }

    /// Nothing is left to do: the building folder goes.
    fn end(&mut self) -> Result<Dataset> {
        self.finish()?;
        Dataset::open(self.base.path())
    }

    fn finish(&mut self) -> Result<()> {
        self.keep = true;
        let at = |e| Error::io(&self.path, "clear", e);
        // Whoever goes on with a task that is done must find that out, so its name goes last.
        let last = self.path.join(TASK_NAME);
        for entry in fs::read_dir(&self.path).map_err(at)? {
            let path = entry.map_err(at)?.path();
            if path != last && path != self.path.join(NEXT_NAME) {
                self.storage.remove_all(&path)?;
            }
        }
        self.storage.remove(&last)?;
        self.storage.remove_all(&self.path)
    }

    /// Gives up what a killed writer has left of the next generation of `target`; `false` if there is
    /// nothing of the kind.
    pub(crate) fn discard(target: &Path) -> Result<bool> {
        let path = Staging::path_for(target)?;
        // Killed before it had said what it is about to do, it has left nothing that another can use.
        let is_other =
            [PLAN_NAME, MANIFEST_NAME].iter().any(|name| path.join(name).symlink_metadata().is_ok());
        if is_other || !path.is_dir() || Dataset::open(target).is_err() {
            return Ok(false);
        }
        let mut next = Self::claim(target, &WriteOptions::new())?;
        next.keep = false;
        Ok(true)
    }
}

impl Drop for Next {
    fn drop(&mut self) {
        // Nobody is left to tell of a failure; the next writer tries again, and so does `gc`.
        if self.keep {
            // Goes only if nothing is in it.
            let _ = fs::remove_dir(&self.path);
            return;
        }
        let _ = self.sweep();
        let _ = self.storage.remove_all(&self.path);
    }
}

/// What becomes of one array.
struct Step<'a> {
    /// Where its new rows are.
    source: &'a ArrayEntry,
    /// Its layout in the end.
    layout: ArrayLayout,
    /// Shards that stay.
    kept: Vec<ShardEntry>,
    /// Rows of the old array behind those, which are written anew.
    tail: u64,
    /// Rows of `source` that are left out.
    skip: u64,
    /// What is added to each offset.
    shift: u64,
    /// What it was.
    base: Option<&'a ArrayEntry>,
}

/// What a user calls an array: a numeric one, or one of strings.
struct Table {
    rows: u64,
    /// `None` for strings.
    dtype: Option<DType>,
    shape: Vec<u64>,
}

fn tables(manifest: &Manifest) -> BTreeMap<&str, Table> {
    let mut tables = BTreeMap::new();
    let mut halves = HashSet::new();
    for name in &manifest.strings {
        let offsets = format!("{name}.offsets");
        let rows = manifest.array(&offsets).map_or(0, |array| array.layout.rows().saturating_sub(1));
        halves.extend([offsets, format!("{name}.bytes")]);
        tables.insert(name.as_str(), Table { rows, dtype: None, shape: vec![rows] });
    }
    for array in manifest.arrays.iter().filter(|array| !halves.contains(&array.name)) {
        let layout = &array.layout;
        let (rows, dtype, shape) = (layout.rows(), Some(layout.dtype()), layout.shape().to_vec());
        tables.insert(array.name.as_str(), Table { rows, dtype, shape });
    }
    tables
}

/// Whether rows of `new` can stand behind those of `old`.
fn same_rows(name: &str, old: &Table, new: &Table) -> Result<()> {
    let name = quoted(name.as_bytes());
    if old.shape.is_empty() {
        return Err(invalid(format!("array {name}: expected rows to append to, found a single value")));
    }
    if (old.dtype, old.shape.get(1..)) == (new.dtype, new.shape.get(1..)) {
        return Ok(());
    }
    let shown = |table: &Table| match table.dtype {
        Some(dtype) => format!("{dtype} {:?}", table.shape.get(1..).unwrap_or_default()),
        None => "strings".to_owned(),
    };
    let found = if new.shape.is_empty() { "a single value".to_owned() } else { shown(new) };
    Err(Error::new(
        ErrorKind::TypeMismatch,
        format!("array {name}: expected rows of {}, found {found}", shown(old)),
    ))
}

/// An error that has no path is one of the dataset.
fn placed(error: Error, dataset: &Path) -> Error {
    if error.path().is_some() { error } else { error.at(dataset) }
}

fn invalid(what: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, what)
}

/// Adds `shift` to each offset.
fn shift_offsets(bytes: &mut [u8], shift: u64) -> Result<()> {
    for offset in crate::dtype::values_mut::<u64>(bytes)? {
        *offset = offset.checked_add(shift).ok_or_else(|| crate::layout::too_large(&[*offset, shift]))?;
    }
    Ok(())
}
