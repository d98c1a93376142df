//! Writing a new dataset: plan, preallocate, fill regions in any order and by any threads, seal.

use crate::append::Appender;
use crate::building::Building;
use crate::dataset::Dataset;
use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::layout::{ArrayLayout, BLOCK_BYTES, DEFAULT_SHARD_BYTES, RowLayout};
use crate::manifest::{Attributes, Manifest, Naming, folder_name};
use crate::plan::{Plan, PlanArray};
use crate::region::{Region, Transfer};
use crate::seal::{Finished, complete, finished, seal_array};
use crate::shared::lay_plan;
use crate::staging::{Staging, check_target};
use crate::storage::{Storage, Watch};
use ndarray::{ArrayView, ArrayViewD, Dimension};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Settings of a new dataset.
#[derive(Clone)]
pub struct WriteOptions {
    shard_bytes: u64,
    sync: bool,
    replace: bool,
    transfer: Transfer,
    watch: Option<Arc<dyn Watch>>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            shard_bytes: DEFAULT_SHARD_BYTES,
            sync: true,
            replace: false,
            transfer: Transfer::default(),
            watch: None,
        }
    }
}

impl std::fmt::Debug for WriteOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteOptions")
            .field("shard_bytes", &self.shard_bytes)
            .field("sync", &self.sync)
            .field("replace", &self.replace)
            .field("transfer", &self.transfer)
            .finish_non_exhaustive()
    }
}

impl WriteOptions {
    /// The defaults: shards of 1 GiB, everything synced, nothing replaced.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes of row data that a shard holds at most, unless the rows' length asks for more.
    #[must_use]
    pub fn shard_bytes(mut self, bytes: u64) -> Self {
        self.shard_bytes = bytes;
        self
    }

    /// Whether files and folders are synced before the dataset appears. Without it a power cut
    /// may leave a dataset whose data is not on the disk; a killed process may not.
    #[must_use]
    pub fn sync(mut self, sync: bool) -> Self {
        self.sync = sync;
        self
    }

    /// Whether a dataset that is already there is replaced, at the end and in one step.
    #[must_use]
    pub fn replace(mut self, replace: bool) -> Self {
        self.replace = replace;
        self
    }

    pub(crate) fn replaces(&self) -> bool {
        self.replace
    }

    /// How regions reach the file.
    #[must_use]
    pub fn transfer(mut self, transfer: Transfer) -> Self {
        self.transfer = transfer;
        self
    }

    /// Shows every file operation to `watch` before it is done. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn watch(mut self, watch: Arc<dyn Watch>) -> Self {
        self.watch = Some(watch);
        self
    }

    pub(crate) fn how(&self) -> Transfer {
        self.transfer
    }

    pub(crate) fn storage(&self) -> Storage {
        Storage::new(self.sync, self.watch.clone())
    }
}

/// What a new dataset will hold.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    arrays: Vec<Planned>,
    strings: Vec<String>,
    attributes: Attributes,
    inputs: Vec<String>,
    options: WriteOptions,
}

#[derive(Debug, Clone)]
struct Planned {
    name: String,
    dtype: DType,
    /// The whole shape, or the shape of a row of an array that grows.
    shape: Vec<u64>,
    grows: bool,
    attributes: Attributes,
}

impl Builder {
    /// Plans a dataset without arrays.
    pub fn new(options: WriteOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Adds an array of known shape; its regions can be filled in any order.
    #[must_use]
    pub fn array(self, name: &str, dtype: DType, shape: &[u64]) -> Self {
        self.plan(name, dtype, shape, false)
    }

    /// Adds an array whose number of rows shows in the end, by an [`Appender`]; a row has
    /// the shape `row`.
    #[must_use]
    pub fn growing(self, name: &str, dtype: DType, row: &[u64]) -> Self {
        self.plan(name, dtype, row, true)
    }

    /// Adds an array of strings, kept as the growing arrays `NAME.offsets` and `NAME.bytes`.
    #[must_use]
    pub fn strings(mut self, name: &str) -> Self {
        self.strings.push(name.to_owned());
        self.plan(&format!("{name}.offsets"), DType::UInt64, &[], true).plan(
            &format!("{name}.bytes"),
            DType::UInt8,
            &[],
            true,
        )
    }

    fn plan(mut self, name: &str, dtype: DType, shape: &[u64], grows: bool) -> Self {
        let attributes = Attributes::new();
        self.arrays.push(Planned { name: name.to_owned(), dtype, shape: shape.to_vec(), grows, attributes });
        self
    }

    /// Free JSON of the dataset.
    #[must_use]
    pub fn attributes(mut self, attributes: Attributes) -> Self {
        self.attributes = attributes;
        self
    }

    /// Free JSON of the array added last.
    #[must_use]
    pub fn array_attributes(mut self, attributes: Attributes) -> Self {
        if let Some(array) = self.arrays.last_mut() {
            array.attributes = attributes;
        }
        self
    }

    /// Says what the values come from, in a few words that differ for other inputs, so that
    /// processes with other inputs do not join.
    #[must_use]
    pub fn inputs(mut self, inputs: Vec<String>) -> Self {
        self.inputs = inputs;
        self
    }

    /// The plan that many processes can share, and the settings of this one.
    pub(crate) fn into_plan(self) -> Result<(Plan, WriteOptions)> {
        if let Some(array) = self.arrays.iter().find(|array| array.grows) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "array {}: expected a known shape, found one that grows",
                    quoted(array.name.as_bytes())
                ),
            )
            .hint("only arrays of known shape can be written by many"));
        }
        let plan = self.plan_of_fixed()?;
        plan.check_names()?;
        Ok((plan, self.options))
    }

    /// The arrays of known shape.
    fn plan_of_fixed(&self) -> Result<Plan> {
        let arrays = self.arrays.iter().filter(|array| !array.grows).map(|array| {
            let layout = ArrayLayout::new(array.dtype, &array.shape, self.options.shard_bytes)
                .map_err(|e| within(&array.name, &e))?;
            Ok(PlanArray { name: array.name.clone(), layout, attributes: array.attributes.clone() })
        });
        Ok(Plan {
            arrays: arrays.collect::<Result<_>>()?,
            attributes: self.attributes.clone(),
            inputs: self.inputs.clone(),
            strings: self.strings.clone(),
        })
    }

    /// Claims the place of the dataset `path` for this process alone and preallocates every shard
    /// of known size. If all are, others can take over from a killed process by
    /// [`crate::Shared::resume`].
    ///
    /// # Errors
    ///
    /// `Exists` if `path` is there and not to be replaced; `Locked` if somebody else is
    /// building it; `Io` with a full disk; `InvalidArgument` for a name that can't be.
    pub fn create(self, path: impl AsRef<Path>) -> Result<Writer> {
        let path = path.as_ref();
        check_target(path, self.options.replace)?;
        let plan = self.plan_of_fixed()?;
        self.check_names()?;
        let (_, token) = plan.to_bytes()?;
        let growing: Vec<(&Planned, RowLayout)> = self
            .arrays
            .iter()
            .filter(|array| array.grows)
            .map(|array| {
                let row_bytes = crate::layout::array_bytes(array.dtype, &array.shape);
                let by_row = row_bytes.and_then(|bytes| RowLayout::new(bytes, self.options.shard_bytes));
                Ok((array, by_row.map_err(|e| within(&array.name, &e))?))
            })
            .collect::<Result<_>>()?;
        let storage = self.options.storage();
        let staging = Staging::create(path, self.options.replace, storage.clone())?;
        if growing.is_empty() {
            lay_plan(staging.path(), &plan, &storage)?;
        }
        let fixed = plan.arrays.iter().map(|array| (array.name.clone(), array.layout.clone()));
        let building = Building::new(staging.path(), token, fixed, self.options.transfer, storage.clone())?;
        building.lay_all()?;
        let mut growing = growing.into_iter();
        let mut arrays = Vec::with_capacity(self.arrays.len());
        let mut next_fixed = 0..;
        for planned in &self.arrays {
            let folder = staging.path().join(folder_name(&planned.name)?);
            let state = if !planned.grows {
                ArrayState::Fixed(next_fixed.next().unwrap_or_default())
            } else if let Some((_, by_row)) = growing.next() {
                storage.create_folder(&folder)?;
                let (name, row) = (planned.name.clone(), planned.shape.clone());
                let appender =
                    Appender::new(name, folder.clone(), planned.dtype, row, by_row, storage.clone());
                ArrayState::Growing(Box::new(Mutex::new(Growth::Idle(appender))))
            } else {
                continue;
            };
            let (name, attributes) = (planned.name.clone(), planned.attributes.clone());
            arrays.push(WriterArray { name, folder, attributes, state });
        }
        let manifest = Manifest {
            arrays: Vec::new(),
            attributes: self.attributes,
            generation: 1,
            strings: self.strings,
        };
        Ok(Writer { staging, manifest, arrays, building: Arc::new(building) })
    }

    fn check_names(&self) -> Result<()> {
        let mut names = std::collections::HashSet::new();
        for name in self.arrays.iter().map(|array| &array.name).chain(&self.strings) {
            folder_name(name)?;
            if !names.insert(name) {
                return Err(Error::new(
                    ErrorKind::InvalidArgument,
                    format!("expected distinct array names, found {} twice", quoted(name.as_bytes())),
                ));
            }
        }
        Ok(())
    }
}

/// An error of the array called `name`.
fn within(name: &str, error: &Error) -> Error {
    Error::new(error.kind(), format!("array {}: {error}", quoted(name.as_bytes())))
}

/// A dataset that is being written. Dropped without [`Self::seal`] it leaves nothing behind.
#[derive(Debug)]
pub struct Writer {
    staging: Staging,
    manifest: Manifest,
    arrays: Vec<WriterArray>,
    building: Arc<Building>,
}

#[derive(Debug)]
struct WriterArray {
    name: String,
    folder: PathBuf,
    attributes: Attributes,
    state: ArrayState,
}

#[derive(Debug)]
enum ArrayState {
    /// Its number among the arrays of known shape.
    Fixed(usize),
    Growing(Box<Mutex<Growth>>),
}

#[derive(Debug)]
enum Growth {
    Idle(Appender),
    Lent,
    Done(Finished),
}

impl Writer {
    fn find(&self, name: &str) -> Result<&WriterArray> {
        self.arrays.iter().find(|array| array.name == name).ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!("expected an array of the plan, found {}", quoted(name.as_bytes())),
            )
        })
    }

    pub(crate) fn building(&self) -> &Arc<Building> {
        &self.building
    }

    fn fixed(&self, name: &str) -> Result<usize> {
        match &self.find(name)?.state {
            ArrayState::Fixed(index) => Ok(*index),
            ArrayState::Growing(_) => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("array {}: expected a known shape, found one that grows", quoted(name.as_bytes())),
            )
            .hint("use its appender")),
        }
    }

    /// The layout of the array `name`, whose shape must be known.
    pub fn layout(&self, name: &str) -> Result<&ArrayLayout> {
        Ok(&self.building.arrays()[self.fixed(name)?].layout)
    }

    /// Claims rows `rows` of the array `name`: whole blocks of one shard
    /// ([`ArrayLayout::regions`] cuts an array so).
    ///
    /// # Errors
    ///
    /// `Locked` if another region has some of these rows, or has written them; `InvalidArgument` if they
    /// are not whole blocks of one shard. Both name the rows.
    pub fn region(&self, name: &str, rows: Range<u64>) -> Result<Region> {
        let array = self.fixed(name)?;
        Region::open(Arc::clone(&self.building), array, rows, self.building.transfer(), true)
    }

    /// Fills the array `name` block after block by `fill(rows, bytes)`, in parallel; `fill` sets
    /// every byte. The first error by row is returned, whatever the number of threads.
    pub fn fill(&self, name: &str, fill: impl Fn(Range<u64>, &mut [u8]) -> Result<()> + Sync) -> Result<()> {
        self.building.fill(self.fixed(name)?, BLOCK_BYTES, 0..u64::MAX, fill)
    }

    /// Writes `values` as the whole array `name`, in parallel.
    pub fn write<T: Element, D: Dimension>(&self, name: &str, values: &ArrayView<'_, T, D>) -> Result<()> {
        let layout = self.layout(name)?;
        let shape: Vec<u64> = values.shape().iter().map(|&dim| dim as u64).collect();
        if layout.dtype() != T::DTYPE || layout.shape() != shape {
            return Err(Error::new(
                ErrorKind::TypeMismatch,
                format!(
                    "array {}: expected {} of shape {:?}, found {} of shape {shape:?}",
                    quoted(name.as_bytes()),
                    layout.dtype(),
                    layout.shape(),
                    T::DTYPE
                ),
            ));
        }
        let values = values.view().into_dyn();
        self.fill(name, |rows, bytes| {
            copy_rows(&values, rows, bytes);
            Ok(())
        })
    }

    /// Takes the appender of the growing array `name`. Give it back with [`Self::finish`].
    pub fn appender(&self, name: &str) -> Result<Appender> {
        let growth = self.growing(name)?;
        let mut growth = growth.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *growth, Growth::Lent) {
            Growth::Idle(appender) => Ok(appender),
            other => {
                *growth = other;
                Err(Error::new(
                    ErrorKind::Locked,
                    format!("array {}: expected a free appender, found one at work", quoted(name.as_bytes())),
                ))
            }
        }
    }

    /// Ends a growing array: its last rows are written, and its shape is known.
    pub fn finish(&self, appender: Appender) -> Result<()> {
        let growth = self.growing(appender.name())?;
        let finished = appender.into_finished()?;
        *growth.lock().unwrap_or_else(PoisonError::into_inner) = Growth::Done(finished);
        Ok(())
    }

    fn growing(&self, name: &str) -> Result<&Mutex<Growth>> {
        match &self.find(name)?.state {
            ArrayState::Growing(growth) => Ok(growth),
            ArrayState::Fixed(_) => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("array {}: expected one that grows, found a known shape", quoted(name.as_bytes())),
            )
            .hint("use its regions")),
        }
    }

    /// Free JSON of the dataset, set or replaced while it is written.
    pub fn set_attributes(&mut self, attributes: Attributes) {
        self.manifest.attributes = attributes;
    }

    /// A folder for files that are needed only while the dataset is written; gone afterwards.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.staging.path().to_owned()
    }

    /// Completes the dataset: it appears at its path whole, or not at all.
    ///
    /// # Errors
    ///
    /// `Incomplete` with the missing rows if something has not been written; `Exists` if the path
    /// has been taken meanwhile; `Io`. After any error nothing is left behind.
    pub fn seal(mut self) -> Result<Dataset> {
        let storage = self.building.storage();
        let mut done = Vec::with_capacity(self.arrays.len());
        for array in &self.arrays {
            done.push(array.finished(&self.building)?);
        }
        for (array, finished) in self.arrays.iter().zip(done) {
            let attributes = array.attributes.clone();
            self.manifest.arrays.push(seal_array(
                storage,
                &array.folder,
                &array.name,
                attributes,
                finished,
                Naming::NEW,
            )?);
        }
        complete(storage, self.staging.path(), &self.manifest)?;
        Dataset::open(self.staging.publish()?)
    }
}

impl WriterArray {
    /// Its layout and checksums, or an error with the missing rows.
    fn finished(&self, building: &Building) -> Result<Finished> {
        match &self.state {
            ArrayState::Fixed(index) => finished(building, *index),
            ArrayState::Growing(growth) => {
                let mut growth = growth.lock().unwrap_or_else(PoisonError::into_inner);
                match std::mem::replace(&mut *growth, Growth::Lent) {
                    Growth::Done(finished) => Ok(finished),
                    _ => Err(Error::new(
                        ErrorKind::Incomplete,
                        format!(
                            "array {}: expected its appender to be finished, found it open",
                            quoted(self.name.as_bytes())
                        ),
                    )),
                }
            }
        }
    }
}

/// Copies rows of `values` to `out` in row-major order.
pub(crate) fn copy_rows<T: Element>(values: &ArrayViewD<'_, T>, rows: Range<u64>, out: &mut [u8]) {
    let count = rows.end - rows.start;
    if out.is_empty() || count == 0 {
        return;
    }
    let row_bytes = out.len() as u64 / count;
    if let Some(all) = values.as_slice() {
        let all: &[u8] = bytemuck::cast_slice(all);
        out.copy_from_slice(&all[(rows.start * row_bytes) as usize..(rows.end * row_bytes) as usize]);
        return;
    }
    let part = if values.ndim() == 0 {
        values.view()
    } else {
        let rows = ndarray::Slice::from(rows.start as usize..rows.end as usize);
        values.slice_axis(ndarray::Axis(0), rows)
    };
    for (value, out) in part.iter().zip(out.chunks_exact_mut(size_of::<T>())) {
        out.copy_from_slice(bytemuck::bytes_of(value));
    }
}

/// Runs `job(0..count)` in parallel; of several errors the one with the lowest number is returned,
/// so that a message never depends on the number of threads.
pub(crate) fn first_error(count: usize, job: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let lowest = AtomicUsize::new(usize::MAX);
    let found = Mutex::new(None::<(usize, Error)>);
    let next = AtomicUsize::new(0);
    // Jobs are handed out in order, so that memory and disk are met front to back.
    let work = || loop {
        let i = next.fetch_add(1, Ordering::Relaxed);
        if i >= count || i > lowest.load(Ordering::Acquire) {
            break;
        }
        if let Err(error) = job(i) {
            lowest.fetch_min(i, Ordering::AcqRel);
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            if found.as_ref().is_none_or(|(at, _)| i < *at) {
                *found = Some((i, error));
            }
        }
    };
    rayon::broadcast(|_| work());
    match found.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}
