//! Writing a new dataset: plan, preallocate, fill regions in any order and by any threads, seal.

use crate::append::Appender;
use crate::buffer::Buffer;
use crate::checksum::Sidecar;
use crate::dataset::Dataset;
use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::folder::{sync_folder, write_all_at};
use crate::layout::{ArrayLayout, BLOCK_BYTES, DEFAULT_SHARD_BYTES, HEADER_BYTES, RowLayout};
use crate::manifest::{ArrayEntry, Attributes, MANIFEST_NAME, Manifest, ShardEntry, folder_name, shard_stem};
use crate::npy::header::shard_header;
use crate::region::{Blocks, OpenShard, Region, Transfer};
use crate::staging::{Staging, check_target};
use ndarray::{ArrayView, Dimension};
use rayon::prelude::*;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Settings of a new dataset.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    shard_bytes: u64,
    sync: bool,
    replace: bool,
    transfer: Transfer,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { shard_bytes: DEFAULT_SHARD_BYTES, sync: true, replace: false, transfer: Transfer::default() }
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
}

/// What a new dataset will hold.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    arrays: Vec<Planned>,
    strings: Vec<String>,
    attributes: Attributes,
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

    /// Claims the place of the dataset `path` and preallocates every shard of known size.
    ///
    /// # Errors
    ///
    /// `Exists` if `path` is there and not to be replaced; `Locked` if somebody else is
    /// building it; `Io` with a full disk; `InvalidArgument` for a name that can't be.
    pub fn create(self, path: impl AsRef<Path>) -> Result<Writer> {
        let path = path.as_ref();
        check_target(path, self.options.replace)?;
        let manifest = Manifest {
            arrays: Vec::new(),
            attributes: self.attributes,
            generation: 1,
            strings: self.strings,
        };
        let mut names = std::collections::HashSet::new();
        for name in self.arrays.iter().map(|array| &array.name).chain(&manifest.strings) {
            folder_name(name)?;
            if !names.insert(name) {
                return Err(Error::new(
                    ErrorKind::InvalidArgument,
                    format!("expected distinct array names, found {} twice", quoted(name.as_bytes())),
                ));
            }
        }
        let shard_bytes = self.options.shard_bytes;
        let plans: Vec<(Planned, RowPlan)> = self
            .arrays
            .into_iter()
            .map(|planned| {
                let at = |e: Error| {
                    Error::new(e.kind(), format!("array {}: {e}", quoted(planned.name.as_bytes())))
                };
                let plan = if planned.grows {
                    let row_bytes = crate::layout::array_bytes(planned.dtype, &planned.shape).map_err(at)?;
                    RowPlan::Grows(RowLayout::new(row_bytes, shard_bytes).map_err(at)?)
                } else {
                    RowPlan::Fixed(ArrayLayout::new(planned.dtype, &planned.shape, shard_bytes).map_err(at)?)
                };
                Ok((planned, plan))
            })
            .collect::<Result<_>>()?;
        let staging = Staging::create(path, self.options.replace)?;
        let mut arrays = Vec::with_capacity(plans.len());
        for (planned, plan) in plans {
            let folder = staging.path().join(folder_name(&planned.name)?);
            std::fs::create_dir(&folder).map_err(|e| Error::io(&folder, "create", e))?;
            let state = match plan {
                RowPlan::Grows(by_row) => {
                    let appender = Appender::new(
                        planned.name.clone(),
                        folder.clone(),
                        planned.dtype,
                        planned.shape,
                        by_row,
                    );
                    ArrayState::Growing(Mutex::new(Growth::Idle(appender)))
                }
                RowPlan::Fixed(layout) => ArrayState::Fixed(preallocate(&planned.name, &folder, layout)?),
            };
            arrays.push(WriterArray { name: planned.name, folder, attributes: planned.attributes, state });
        }
        Ok(Writer { staging, manifest, arrays, options: self.options, spare: Mutex::new(Vec::new()) })
    }
}

enum RowPlan {
    Fixed(ArrayLayout),
    Grows(RowLayout),
}

/// Creates every shard file of an array at its full length.
fn preallocate(name: &str, folder: &Path, layout: ArrayLayout) -> Result<Vec<Arc<OpenShard>>> {
    let shards: Vec<_> = layout.shards().collect();
    shards
        .into_par_iter()
        .map(|shard| {
            let path = folder.join(format!("{}.npy.partial", shard_stem(shard.index, 1)));
            create_shard_file(&path, shard.file_bytes())?;
            let blocks = Arc::new(Blocks::new(layout.by_row().block_count(shard.len())));
            Ok(Arc::new(OpenShard { name: name.to_owned(), layout: layout.clone(), shard, path, blocks }))
        })
        .collect()
}

/// Creates a file of `len` bytes whose blocks are allocated where the file system can. The first
/// page is left zero, so that no reader takes it for an array.
fn create_shard_file(path: &Path, len: u64) -> Result<()> {
    let file = File::create_new(path).map_err(|e| Error::io(path, "create", e))?;
    allocate(&file, path, len)
}

/// Makes a new file `len` bytes long, with room for all of them where the file system can.
pub(crate) fn allocate(file: &File, path: &Path, len: u64) -> Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        // Never posix_fallocate: its emulation writes zeros, over a neighbour's bytes on NFS.
        match fallocate(file, FallocateFlags::empty(), 0, len) {
            Ok(()) => return Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
            Err(e) => return Err(Error::io(path, &format!("allocate {len} bytes for"), e.into())),
        }
    }
    file.set_len(len).map_err(|e| Error::io(path, "resize", e))
}

/// A dataset that is being written. Dropped without [`Self::seal`] it leaves nothing behind.
#[derive(Debug)]
pub struct Writer {
    staging: Staging,
    manifest: Manifest,
    arrays: Vec<WriterArray>,
    options: WriteOptions,
    /// Buffers of finished regions, so that a long write allocates as many as it has threads.
    spare: Mutex<Vec<Buffer>>,
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
    Fixed(Vec<Arc<OpenShard>>),
    Growing(Mutex<Growth>),
}

#[derive(Debug)]
enum Growth {
    Idle(Appender),
    Lent,
    Done(Finished),
}

/// An array of which every row is written.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) layout: ArrayLayout,
    /// Each shard's file and the checksums of its blocks.
    pub(crate) shards: Vec<(PathBuf, Vec<u32>)>,
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

    fn fixed(&self, name: &str) -> Result<&[Arc<OpenShard>]> {
        match &self.find(name)?.state {
            ArrayState::Fixed(shards) => Ok(shards),
            ArrayState::Growing(_) => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("array {}: expected a known shape, found one that grows", quoted(name.as_bytes())),
            )
            .hint("use its appender")),
        }
    }

    /// The layout of the array `name`, whose shape must be known.
    pub fn layout(&self, name: &str) -> Result<&ArrayLayout> {
        let shards = self.fixed(name)?;
        shards.first().map(|shard| &shard.layout).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidArgument,
                format!("array {}: expected shards, found none", quoted(name.as_bytes())),
            )
        })
    }

    /// Claims rows `rows` of the array `name`: whole blocks of one shard
    /// ([`ArrayLayout::regions`] cuts an array so).
    ///
    /// # Errors
    ///
    /// `Locked` if another region has some of these rows, or has written them; `InvalidArgument` if they
    /// are not whole blocks of one shard. Both name the rows.
    pub fn region(&self, name: &str, rows: Range<u64>) -> Result<Region> {
        let mut region = self.open_region(name, rows)?;
        if self.options.transfer == Transfer::Write {
            // The buffer may hold another region's rows.
            region.bytes_mut().fill(0);
        }
        Ok(region)
    }

    /// A region whose memory holds anything.
    pub(crate) fn open_region(&self, name: &str, rows: Range<u64>) -> Result<Region> {
        let shards = self.fixed(name)?;
        let per_shard = shards.first().map_or(1, |shard| shard.layout.by_row().rows_per_shard);
        let index = (rows.start / per_shard).min(shards.len().saturating_sub(1) as u64);
        let shard = shards.get(index as usize).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidArgument,
                format!("array {}: expected shards, found none", quoted(name.as_bytes())),
            )
        })?;
        let buffer = self.spare().pop().unwrap_or_default();
        Region::open(Arc::clone(shard), rows, self.options.transfer, buffer)
    }

    /// Fills the array `name` block after block by `fill(rows, bytes)`, in parallel; `fill` sets
    /// every byte. The first error by row is returned, whatever the number of threads.
    pub fn fill(&self, name: &str, fill: impl Fn(Range<u64>, &mut [u8]) -> Result<()> + Sync) -> Result<()> {
        self.fill_regions(name, BLOCK_BYTES, fill)
    }

    /// As [`Self::fill`], in regions of about `bytes`.
    pub(crate) fn fill_regions(
        &self,
        name: &str,
        bytes: u64,
        fill: impl Fn(Range<u64>, &mut [u8]) -> Result<()> + Sync,
    ) -> Result<()> {
        let regions: Vec<Range<u64>> = self.layout(name)?.regions(bytes).collect();
        first_error(regions.len(), |i| {
            let mut region = self.open_region(name, regions[i].clone())?;
            fill(regions[i].clone(), region.bytes_mut())?;
            self.recycle(region)
        })
    }

    /// Finishes a region and keeps its buffer for the next.
    pub(crate) fn recycle(&self, region: Region) -> Result<()> {
        let buffer = region.finish_reuse()?;
        self.spare().push(buffer);
        Ok(())
    }

    fn spare(&self) -> std::sync::MutexGuard<'_, Vec<Buffer>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
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
        let row_bytes = layout.by_row().row_bytes;
        self.fill(name, |rows, bytes| {
            if row_bytes == 0 {
                return Ok(());
            }
            if let Some(all) = values.as_slice() {
                let all: &[u8] = bytemuck::cast_slice(all);
                bytes.copy_from_slice(
                    &all[(rows.start * row_bytes) as usize..(rows.end * row_bytes) as usize],
                );
                return Ok(());
            }
            let mut out = bytes.chunks_exact_mut(size_of::<T>());
            let part = if values.ndim() == 0 {
                values.view()
            } else {
                values.slice_axis(
                    ndarray::Axis(0),
                    ndarray::Slice::from(rows.start as usize..rows.end as usize),
                )
            };
            for (value, out) in part.iter().zip(&mut out) {
                out.copy_from_slice(bytemuck::bytes_of(value));
            }
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
        let sync = self.options.sync;
        let arrays = std::mem::take(&mut self.arrays);
        for array in arrays {
            let Finished { layout, shards } = array.finished()?;
            let jobs: Vec<_> = layout.shards().zip(shards).collect();
            let shards = jobs
                .into_par_iter()
                .map(|(shard, (path, crcs))| {
                    let stem = array.folder.join(shard_stem(shard.index, 1));
                    let header = shard_header(layout.dtype(), &layout.shard_shape(shard.len()));
                    let sidecar =
                        Sidecar { row_bytes: layout.by_row().row_bytes, rows: shard.len(), blocks: crcs };
                    seal_shard(&path, &stem, &header, &sidecar, sync)?;
                    Ok(ShardEntry {
                        crc32: sidecar.shard_crc(layout.by_row()),
                        sidecar_crc32: crate::checksum::crc32(&sidecar.to_bytes()),
                        generation: 1,
                    })
                })
                .collect::<Result<Vec<_>>>()?;
            if sync {
                sync_folder(&array.folder)?;
            }
            self.manifest.arrays.push(ArrayEntry {
                name: array.name,
                layout,
                attributes: array.attributes,
                shards,
            });
        }
        let bytes = self.manifest.to_bytes()?;
        write_new(&self.staging.path().join(MANIFEST_NAME), &bytes, sync)?;
        if sync {
            sync_folder(self.staging.path())?;
        }
        Dataset::open(self.staging.publish(sync)?)
    }
}

impl WriterArray {
    /// Its layout and shards, or an error with the missing rows.
    fn finished(&self) -> Result<Finished> {
        let incomplete = |what: String| {
            Error::new(ErrorKind::Incomplete, format!("array {}: {what}", quoted(self.name.as_bytes())))
        };
        match &self.state {
            ArrayState::Growing(growth) => {
                let mut growth = growth.lock().unwrap_or_else(PoisonError::into_inner);
                match std::mem::replace(&mut *growth, Growth::Lent) {
                    Growth::Done(finished) => Ok(finished),
                    _ => Err(incomplete("expected its appender to be finished, found it open".into())),
                }
            }
            ArrayState::Fixed(shards) => {
                let layout = shards.first().map(|shard| shard.layout.clone());
                let layout = layout.ok_or_else(|| incomplete("expected shards, found none".into()))?;
                let missing = missing_rows(shards);
                if !missing.is_empty() {
                    let text: Vec<_> =
                        missing.iter().take(8).map(|r| format!("{}..{}", r.start, r.end)).collect();
                    let more = if missing.len() > 8 { ", …" } else { "" };
                    return Err(incomplete(format!(
                        "expected all rows to be written, found rows {}{more} missing",
                        text.join(", ")
                    )));
                }
                let finished = shards.iter().map(|shard| {
                    let crcs = shard.blocks.finished().map_err(|block| {
                        incomplete(format!("expected block {block} to be written, found it open"))
                    })?;
                    Ok((shard.path.clone(), crcs))
                });
                Ok(Finished { layout, shards: finished.collect::<Result<_>>()? })
            }
        }
    }
}

/// Array rows that are not written, neighbours joined.
fn missing_rows(shards: &[Arc<OpenShard>]) -> Vec<Range<u64>> {
    let mut missing: Vec<Range<u64>> = Vec::new();
    for shard in shards {
        for block in shard.blocks.missing() {
            let rows = shard.layout.by_row().block_rows(block, shard.shard.len());
            let (start, end) = (shard.shard.rows.start + rows.start, shard.shard.rows.start + rows.end);
            match missing.last_mut() {
                Some(last) if last.end >= start => last.end = end,
                _ => missing.push(start..end),
            }
        }
    }
    missing
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

/// Data first, then the header that makes it an array, then the name that makes it a shard.
fn seal_shard(
    partial: &Path,
    stem: &Path,
    header: &[u8; HEADER_BYTES as usize],
    sidecar: &Sidecar,
    sync: bool,
) -> Result<()> {
    let file = File::options().write(true).open(partial).map_err(|e| Error::io(partial, "open", e))?;
    if sync {
        file.sync_all().map_err(|e| Error::io(partial, "sync", e))?;
    }
    write_all_at(&file, partial, header, 0)?;
    if sync {
        file.sync_all().map_err(|e| Error::io(partial, "sync", e))?;
    }
    let with_ending = |ending: &str| {
        let mut path = stem.as_os_str().to_owned();
        path.push(ending);
        PathBuf::from(path)
    };
    let path = with_ending(".npy");
    std::fs::rename(partial, &path).map_err(|e| Error::io(&path, "rename to", e))?;
    write_new(&with_ending(".crc"), &sidecar.to_bytes(), sync)
}

/// Writes a file whole under a temporary name and gives it its name at the end.
fn write_new(path: &Path, bytes: &[u8], sync: bool) -> Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let file = File::create(&partial).map_err(|e| Error::io(&partial, "create", e))?;
    write_all_at(&file, &partial, bytes, 0)?;
    if sync {
        file.sync_all().map_err(|e| Error::io(&partial, "sync", e))?;
    }
    std::fs::rename(&partial, path).map_err(|e| Error::io(path, "rename to", e))
}
