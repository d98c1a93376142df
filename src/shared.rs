//! Many processes, one dataset: each joins the plan, fills regions, and any of them seals.

use crate::building::{Building, PRESENCE, SEALING};
use crate::dataset::Dataset;
use crate::dtype::Element;
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::generation::Next;
use crate::layout::{ArrayLayout, BLOCK_BYTES};
use crate::lock::{is_unsupported, try_lock, unlock, wait_lock};
use crate::manifest::{MANIFEST_MAX_BYTES, MANIFEST_NAME, Manifest};
use crate::plan::{PLAN_NAME, Plan};
use crate::region::{Region, Transfer};
use crate::seal::{clean, complete, finished, seal_array};
use crate::staging::{REPLACED_NAME, Staging, check_target, clear, is_same, publish};
use crate::storage::Storage;
use crate::writer::{Builder, WriteOptions, copy_rows, first_error};
use ndarray::{ArrayView, Dimension};
use std::fs::{self, File, TryLockError};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Which boot of the machine has last looked at all that is done.
const SESSION_NAME: &str = "session";
/// How long to wait for another process that is laying down a plan.
const PATIENCE: Duration = Duration::from_secs(2);

/// A dataset that any number of threads and processes write together.
///
/// Every process calls [`Builder::create_shared`] with the same plan or [`Self::join`], fills
/// regions that no other has, and one calls [`Self::seal`] in the end. Any of them may be killed at any
/// time: regions it has finished stay, the others are free again. Dropping it neither seals nor
/// removes anything.
///
/// Processes of several hosts may work on one file system if each keeps to its own [`Self::part`]:
/// locks are relied on only between processes of one host. Between processes they need Linux; on other systems,
/// and on file systems without locks, two regions exclude each other only within one process.
#[derive(Debug)]
pub struct Shared {
    building: Arc<Building>,
    plan: Plan,
    target: PathBuf,
    options: WriteOptions,
    /// Open as long as this process is at work, with a lock on its first byte.
    presence: Option<File>,
    /// The building folder, locked against a writer that wants it alone.
    folder: File,
    kept: u64,
}

/// How far a dataset is that is being written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The arrays in the order of the plan.
    pub arrays: Vec<ArrayStatus>,
}

/// How far one array is. The three lists of row ranges are in order, disjoint, and cover all its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArrayStatus {
    /// Its name.
    pub name: String,
    /// Its dtype, shape, and how its rows fall into shards.
    pub layout: ArrayLayout,
    /// Rows that are written.
    pub done: Vec<Range<u64>>,
    /// Rows that nobody has written or is writing.
    pub missing: Vec<Range<u64>>,
    /// Rows in the hands of a writer, seen from this host.
    pub writing: Vec<Range<u64>>,
}

impl Status {
    /// Whether all rows are written.
    pub fn is_done(&self) -> bool {
        self.arrays.iter().all(|array| array.missing.is_empty() && array.writing.is_empty())
    }

    /// Of the dataset that is being written at `path`, without joining it.
    ///
    /// # Errors
    ///
    /// `NotFound` if nothing is being written there.
    pub fn of(path: impl AsRef<Path>) -> Result<Self> {
        let path = Staging::path_for(path.as_ref())?;
        let storage = Storage::new(false, None);
        let (plan, token) = match read_plan(&path)? {
            Some(found) => found,
            None => (Plan::of_manifest(&read_manifest(&path)?.ok_or_else(|| nothing(&path))?), [0; 32]),
        };
        status(&building(&path, &plan, token, Transfer::Auto, storage)?)
    }
}

fn status(building: &Building) -> Result<Status> {
    let arrays = building.arrays().iter().enumerate().map(|(index, array)| {
        let survey = building.survey(index)?;
        let mut open: Vec<_> = survey.missing.iter().chain(&survey.writing).cloned().collect();
        open.sort_by_key(|rows| rows.start);
        let rows = array.layout.rows();
        let mut done = Vec::new();
        let mut at = 0;
        for gap in open {
            if at < gap.start {
                done.push(at..gap.start);
            }
            at = gap.end;
        }
        if at < rows {
            done.push(at..rows);
        }
        Ok(ArrayStatus {
            name: array.name.clone(),
            layout: array.layout.clone(),
            done,
            missing: survey.missing,
            writing: survey.writing,
        })
    });
    Ok(Status { arrays: arrays.collect::<Result<_>>()? })
}

fn nothing(path: &Path) -> Error {
    Error::new(ErrorKind::NotFound, "expected a dataset that is being written, found none").at(path)
}

fn building(
    path: &Path,
    plan: &Plan,
    token: [u8; 32],
    transfer: Transfer,
    storage: Storage,
) -> Result<Building> {
    let arrays = plan.arrays.iter().map(|array| (array.name.clone(), array.layout.clone()));
    Building::new(path, token, arrays, transfer, storage)
}

/// What is done about blocks that are marked done when a process begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    /// They are read if the machine may have lost some: it was started since.
    IfDoubtful,
    /// They are read.
    Always,
    /// Nothing: they are going to be removed.
    Never,
}

impl Builder {
    /// Lays down the plan of a dataset at `path` that many processes write, and preallocates its
    /// shards; or joins the others, if they have laid down the same.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if another plan has been laid down, naming the first difference, or if an
    /// array grows; `Exists` if `path` is there and not to be replaced; `Locked` if a writer has the place
    /// to itself; `Io` with a full disk.
    pub fn create_shared(self, path: impl AsRef<Path>) -> Result<Shared> {
        let (plan, options) = self.into_plan()?;
        Shared::enter(path.as_ref(), Some(plan), options, Check::IfDoubtful)
    }
}

impl Shared {
    /// Joins the processes that write the dataset at `path`. Of `options` the shard size is not used:
    /// it is in the plan.
    ///
    /// If the machine was started anew since the last writer, and nobody else is at work, every block marked
    /// done is read and compared with its checksum, in parallel; what is damaged is missing again.
    ///
    /// # Errors
    ///
    /// `NotFound` if nothing is being written there, `Exists` if it has been sealed; `Locked` if a writer has
    /// the place to itself.
    pub fn join(path: impl AsRef<Path>, options: WriteOptions) -> Result<Self> {
        Self::enter(path.as_ref(), None, options, Check::IfDoubtful)
    }

    /// As [`Self::join`], but reads and compares in any case, unless others are at work, who have done
    /// so. For a restart after a kill, or whenever the disk is in doubt.
    pub fn resume(path: impl AsRef<Path>, options: WriteOptions) -> Result<Self> {
        Self::enter(path.as_ref(), None, options, Check::Always)
    }

    /// Gives up the dataset that is being written at `path`, whatever state it is in, or the next
    /// generation of the one that is there.
    ///
    /// # Errors
    ///
    /// As [`Self::abandon`]; `NotFound` if nothing is being written there.
    pub fn discard(path: impl AsRef<Path>) -> Result<()> {
        if Next::discard(path.as_ref())? {
            return Ok(());
        }
        Self::enter(path.as_ref(), None, WriteOptions::new(), Check::Never)?.abandon()
    }

    pub(crate) fn enter(
        target: &Path,
        plan: Option<Plan>,
        options: WriteOptions,
        check: Check,
    ) -> Result<Self> {
        let path = Staging::path_for(target)?;
        let storage = options.storage();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let retry = Instant::now() < deadline;
            if plan.is_some() {
                check_target(target, options.replaces())?;
            }
            let Some((folder, found, fresh)) = Self::meet(target, &path, plan.as_ref(), &storage)? else {
                if retry {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                }
                return Err(Error::new(ErrorKind::Locked, "expected no other writer, found one at work")
                    .hint("wait for it, or write to another place")
                    .at(&path));
            };
            let Some((theirs, token)) = found else {
                let manifest = read_manifest(&path)?.ok_or_else(|| nothing(&path))?;
                let theirs = Plan::of_manifest(&manifest);
                if let Some(mine) = &plan {
                    Plan { inputs: Vec::new(), ..mine.clone() }.agree(&theirs).map_err(|e| e.at(&path))?;
                }
                let building = building(&path, &theirs, [0; 32], options.how(), storage.clone())?;
                let building = Arc::new(building);
                let target = target.to_owned();
                return Ok(Self { building, plan: theirs, target, options, presence: None, folder, kept: 0 });
            };
            if let Some(mine) = &plan {
                mine.agree(&theirs).map_err(|e| e.at(&path))?;
            }
            let building = Arc::new(building(&path, &theirs, token, options.how(), storage.clone())?);
            let target = target.to_owned();
            let mut shared = Self {
                building,
                plan: theirs,
                target,
                options: options.clone(),
                presence: None,
                folder,
                kept: 0,
            };
            if !shared.appear(if fresh { Check::Never } else { check }, fresh)? {
                if retry {
                    continue;
                }
                return Err(nothing(&path));
            }
            if fresh && let Err(error) = shared.building.lay_all() {
                // Nothing is written yet. If others have joined it is theirs too, and stays.
                let _ = shared.abandon();
                return Err(error);
            }
            return Ok(shared);
        }
    }

    /// Opens the building folder and reads the plan in it, or lays down `plan`. `None` if another
    /// process is at work in a way that has an end. Of a dataset that is complete but for its rename
    /// there is no plan. Says whether the plan is new.
    #[expect(clippy::type_complexity)]
    fn meet(
        target: &Path,
        path: &Path,
        plan: Option<&Plan>,
        storage: &Storage,
    ) -> Result<Option<(File, Option<(Plan, [u8; 32])>, bool)>> {
        if plan.is_some() {
            storage.create_folder(path)?;
        }
        let folder = match open_folder(path) {
            Ok(folder) => folder,
            Err(e) if e.kind() == io::ErrorKind::NotFound && plan.is_some() => return Ok(None),
            Err(e) if e.kind() == io::ErrorKind::NotFound && target.join(MANIFEST_NAME).is_file() => {
                return Err(Error::new(
                    ErrorKind::Exists,
                    "expected a dataset that is being written, found it sealed",
                )
                .at(target));
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(nothing(target)),
            Err(e) => return Err(Error::io(path, "open", e)),
        };
        // A network file system may have no locks on folders; the link of the plan then decides alone.
        if let Err(TryLockError::WouldBlock) = folder.try_lock_shared() {
            return Ok(None);
        }
        if !is_same(&folder, path) {
            return Ok(None);
        }
        if let Some(found) = read_plan(path)? {
            return Ok(Some((folder, Some(found), false)));
        }
        let replaced = path.join(REPLACED_NAME).symlink_metadata().is_ok();
        if !replaced && read_manifest(path)?.is_some() {
            return Ok(Some((folder, None, false)));
        }
        let Some(plan) = plan else { return Err(nothing(target)) };
        let alone = match folder.try_lock() {
            Ok(()) => {
                if !is_same(&folder, path) || path.join(PLAN_NAME).symlink_metadata().is_ok() {
                    return Ok(None);
                }
                // What a killed writer without a plan has left, or a dataset that was replaced.
                clear(path, storage)?;
                true
            }
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(_)) => false,
        };
        let fresh = lay_plan(path, plan, storage).inspect_err(|_| {
            if alone {
                let _ = storage.remove_all(path);
            }
        })?;
        let _ = folder.lock_shared();
        let found = read_plan(path)?;
        Ok(found.filter(|_| is_same(&folder, path)).map(|found| (folder, Some(found), fresh)))
    }

    /// Takes part: from now on nobody may have the plan alone. Checks what is done if nobody else
    /// takes part. `false` if the plan is gone.
    fn appear(&mut self, check: Check, fresh: bool) -> Result<bool> {
        let path = self.building.path().join(PLAN_NAME);
        let at = |e: io::Error| Error::io(&path, "lock", e);
        let file = match File::options().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(Error::io(&path, "open", e)),
        };
        let session = self.building.path().join(SESSION_NAME);
        loop {
            let alone = match try_lock(&file, PRESENCE, true) {
                Ok(alone) => alone,
                Err(e) if is_unsupported(&e) => true,
                Err(e) => return Err(at(e)),
            };
            if alone {
                let boot = boot_id();
                let known = boot.is_some() && fs::read(&session).ok() == boot;
                if check == Check::Always || check == Check::IfDoubtful && !known {
                    // Gone while it is not true: a check that is cut short must be made again.
                    self.building.storage().remove(&session)?;
                    self.kept = self.building.check_done()?;
                }
                if fresh || check != Check::Never {
                    let boot = boot.unwrap_or_else(|| b"unknown".to_vec());
                    fs::write(&session, boot).map_err(|e| Error::io(&session, "write", e))?;
                }
            }
            match wait_lock(&file, PRESENCE, false) {
                Ok(()) => {}
                Err(e) if is_unsupported(&e) => {}
                Err(e) => return Err(at(e)),
            }
            if alone || check == Check::Never || session.is_file() {
                break;
            }
            // Whoever was checking was killed.
            unlock(&file, PRESENCE);
            if !path.exists() {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(1 + u64::from(std::process::id()) % 7));
        }
        let same = is_same(&file, &path);
        self.presence = Some(file);
        Ok(same)
    }

    pub(crate) fn building(&self) -> &Arc<Building> {
        &self.building
    }

    /// The folder in which the dataset is built.
    pub fn path(&self) -> &Path {
        self.building.path()
    }

    /// Names of the arrays, in the order of the plan.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.plan.arrays.iter().map(|array| array.name.as_str())
    }

    /// The layout of the array `name`.
    pub fn layout(&self, name: &str) -> Result<&ArrayLayout> {
        Ok(&self.building.arrays()[self.building.find(name)?].layout)
    }

    /// The rows of host `index` of `count` (0-based): whole shards, so that no two hosts write one
    /// file. Every row is in one part; a part is empty if there are fewer shards than parts.
    pub fn part(&self, name: &str, index: u64, count: u64) -> Result<Range<u64>> {
        self.layout(name)?.part(index, count)
    }

    /// The rows of the array cut into `count` shares of nearly the same number of blocks, for as many
    /// threads or processes of one host: each a list of regions. Some are empty if there
    /// are fewer blocks.
    pub fn regions(&self, name: &str, count: u64) -> Result<Vec<Vec<Range<u64>>>> {
        let layout = self.layout(name)?;
        (0..count).map(|index| layout.share(index, count)).collect()
    }

    /// Claims rows `rows` of the array `name`: whole blocks of one shard.
    ///
    /// # Errors
    ///
    /// `Locked` if another region, of any thread or process, has some of these rows or has written them;
    /// `InvalidArgument` if they are not whole blocks of one shard. Both name the rows.
    pub fn region(&self, name: &str, rows: Range<u64>) -> Result<Region> {
        self.region_by(name, rows, self.building.transfer())
    }

    /// As [`Self::region`], by another way to the file than that of the options.
    pub fn region_by(&self, name: &str, rows: Range<u64>, transfer: Transfer) -> Result<Region> {
        let array = self.building.find(name)?;
        Region::open(Arc::clone(&self.building), array, rows, transfer, true)
    }

    /// Writes `values` as the rows of the array `name` from row `start` on, in parallel and by
    /// `pwrite`. They must be whole blocks, but may lie in several shards.
    ///
    /// # Errors
    ///
    /// As [`Self::region`]; `TypeMismatch` if dtype or shape of a row are others. After an error
    /// some of the rows may be written: [`Self::status`] says which.
    pub fn write_rows<T: Element, D: Dimension>(
        &self,
        name: &str,
        start: u64,
        values: &ArrayView<'_, T, D>,
    ) -> Result<()> {
        let array = self.building.find(name)?;
        let layout = self.layout(name)?;
        let shape: Vec<u64> = values.shape().iter().map(|&dim| dim as u64).collect();
        let rows = shape.first().copied().unwrap_or(1);
        if layout.dtype() != T::DTYPE || layout.shard_shape(rows) != shape {
            return Err(Error::new(
                ErrorKind::TypeMismatch,
                format!(
                    "array {}: expected rows of {} {:?}, found {} of shape {shape:?}",
                    quoted(name.as_bytes()),
                    layout.dtype(),
                    layout.shape().get(1..).unwrap_or_default(),
                    T::DTYPE
                ),
            ));
        }
        let end = start.saturating_add(rows);
        let inside = |rows: &Range<u64>| rows.start < end && start < rows.end;
        let pieces: Vec<Range<u64>> = layout
            .regions(BLOCK_BYTES)
            .filter(inside)
            .map(|rows| rows.start.max(start)..rows.end.min(end))
            .collect();
        // Said before anything is written.
        let places: Vec<_> =
            pieces.iter().map(|rows| self.building.place(array, rows.clone())).collect::<Result<_>>()?;
        for place in &places {
            self.building.claim(place)?;
        }
        if end > layout.rows() {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "array {}: expected rows within 0..{}, found {start}..{end}",
                    quoted(name.as_bytes()),
                    layout.rows()
                ),
            ));
        }
        let values = values.view().into_dyn();
        first_error(pieces.len(), |i| {
            let rows = pieces[i].clone();
            let building = Arc::clone(&self.building);
            let mut region = Region::open(building, array, rows.clone(), Transfer::Write, false)?;
            copy_rows(&values, rows.start - start..rows.end - start, region.bytes_mut());
            region.finish()
        })
    }

    /// Runs of rows of the array `name` that are not done, each a region of at most about
    /// `bytes`, in order. Some of them may be in other hands.
    pub fn missing(&self, name: &str, bytes: u64) -> Result<Vec<Range<u64>>> {
        let array = self.building.find(name)?;
        self.building.runs(array, bytes, 0..u64::MAX)
    }

    /// Which rows are done, missing, and being written.
    pub fn status(&self) -> Result<Status> {
        status(&self.building)
    }

    /// Bytes of rows that this process has finished.
    pub fn written(&self) -> u64 {
        self.building.written()
    }

    /// Bytes of rows that were done when this process joined, and were read and found whole.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// Completes the dataset: it appears at its path whole, or not at all. Any process may do so,
    /// and several: the others are given the dataset too.
    ///
    /// # Errors
    ///
    /// `Incomplete` with the rows that are missing or being written; `Exists` if the path has been taken
    /// meanwhile; `NotFound` if the writing was abandoned; `Io`, after which sealing may be tried again.
    /// If it was a sync that failed, the rows of its shard are missing again.
    pub fn seal(&self) -> Result<Dataset> {
        let path = self.building.path();
        let plan_path = path.join(PLAN_NAME);
        let storage = self.building.storage();
        loop {
            let lock = match File::options().read(true).write(true).open(&plan_path) {
                Ok(lock) => lock,
                Err(e) if e.kind() == io::ErrorKind::NotFound => return self.seal_complete(),
                Err(e) => return Err(Error::io(&plan_path, "open", e)),
            };
            match wait_lock(&lock, SEALING, true) {
                Err(e) if !is_unsupported(&e) => return Err(Error::io(&plan_path, "lock", e)),
                _ => {}
            }
            // Whoever had the lock may have sealed; and another may be writing anew.
            if !is_same(&lock, &plan_path) {
                continue;
            }
            if !is_same(&self.folder, path) {
                return self.seal_complete();
            }
            let result = self.seal_locked(storage);
            unlock(&lock, SEALING);
            return result;
        }
    }

    fn seal_locked(&self, storage: &Storage) -> Result<Dataset> {
        let path = self.building.path();
        check_target(&self.target, self.options.replaces())?;
        if let Some(manifest) = read_manifest(path)? {
            clean(storage, path, &manifest)?;
        } else {
            let done: Vec<_> = (0..self.plan.arrays.len())
                .map(|index| finished(&self.building, index))
                .collect::<Result<_>>()?;
            let mut arrays = Vec::with_capacity(done.len());
            for ((plan, array), finished) in self.plan.arrays.iter().zip(self.building.arrays()).zip(done) {
                let attributes = plan.attributes.clone();
                arrays.push(seal_array(
                    storage,
                    &array.folder,
                    &array.name,
                    attributes,
                    finished,
                    array.naming,
                )?);
            }
            let manifest = Manifest {
                arrays,
                attributes: self.plan.attributes.clone(),
                generation: 1,
                strings: self.plan.strings.clone(),
            };
            complete(storage, path, &manifest)?;
        }
        publish(path, &self.target, self.options.replaces(), storage)?;
        Dataset::open(&self.target)
    }

    /// Ends the work of a sealer that was killed just before the rename, or finds that it is done.
    fn seal_complete(&self) -> Result<Dataset> {
        let path = self.building.path();
        if is_same(&self.folder, path)
            && let Some(manifest) = read_manifest(path)?
        {
            let storage = self.building.storage();
            clean(storage, path, &manifest)?;
            match publish(path, &self.target, self.options.replaces(), storage) {
                Err(_) if is_same(&self.folder, &self.target) => {}
                result => result?,
            }
        }
        if is_same(&self.folder, &self.target) {
            return Dataset::open(&self.target);
        }
        Err(Error::new(
            ErrorKind::NotFound,
            "expected the dataset or what has been written of it, found neither; it was abandoned",
        )
        .at(path))
    }

    /// Gives up the dataset and removes all that has been written of it.
    ///
    /// # Errors
    ///
    /// `Locked` if others are at work on it.
    pub fn abandon(self) -> Result<()> {
        let path = self.building.path();
        if let Some(presence) = &self.presence {
            match try_lock(presence, PRESENCE, true) {
                Ok(false) => {
                    return Err(Error::new(ErrorKind::Locked, "expected no other writer, found one at work")
                        .hint("wait for it or end it first")
                        .at(path));
                }
                Err(e) if !is_unsupported(&e) => return Err(Error::io(path, "lock", e)),
                _ => {}
            }
        }
        if !is_same(&self.folder, path) {
            return Ok(());
        }
        // Without its plan nobody joins it any more.
        self.building.storage().remove(&path.join(PLAN_NAME))?;
        self.building.storage().remove_all(path)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Closing would do, but a process forked meanwhile has the descriptors too.
        if let Some(presence) = &self.presence {
            unlock(presence, PRESENCE);
        }
        let _ = self.folder.unlock();
    }
}

/// Opens a folder to lock it.
fn open_folder(path: &Path) -> io::Result<File> {
    #[cfg(windows)]
    {
        use std::os::windows::fs::OpenOptionsExt;
        const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
        return File::options().read(true).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path);
    }
    #[cfg(not(windows))]
    File::open(path)
}

/// Which start of this machine it is, where the system says.
fn boot_id() -> Option<Vec<u8>> {
    if cfg!(target_os = "linux") { fs::read("/proc/sys/kernel/random/boot_id").ok() } else { None }
}

fn read_capped(path: &Path) -> Result<Option<Vec<u8>>> {
    use std::io::Read;
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io(path, "open", e)),
    };
    let mut bytes = Vec::new();
    file.take(MANIFEST_MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|e| Error::io(path, "read", e))?;
    Ok(Some(bytes))
}

fn read_plan(path: &Path) -> Result<Option<(Plan, [u8; 32])>> {
    let path = path.join(PLAN_NAME);
    read_capped(&path)?.map(|bytes| Plan::from_bytes(&bytes).map_err(|e| e.at(&path))).transpose()
}

/// The manifest of a folder that is complete.
fn read_manifest(path: &Path) -> Result<Option<Manifest>> {
    let path = path.join(MANIFEST_NAME);
    read_capped(&path)?.map(|bytes| Manifest::from_bytes(&bytes).map_err(|e| e.at(&path))).transpose()
}

/// Lays the plan down, whole and durable at once; the first of several wins. Says whether this did.
pub(crate) fn lay_plan(folder: &Path, plan: &Plan, storage: &Storage) -> Result<bool> {
    let (bytes, _) = plan.to_bytes()?;
    let mut number = 0;
    let (partial, file) = loop {
        let partial = folder.join(format!("{PLAN_NAME}.{number}.partial"));
        match storage.create(&partial) {
            Ok(file) => break (partial, file),
            Err(e) if e.kind() == ErrorKind::Exists => number += 1,
            Err(e) => return Err(e),
        }
    };
    storage.write(&file, &partial, &bytes, 0)?;
    storage.sync(&file, &partial)?;
    let won = storage.link(&partial, &folder.join(PLAN_NAME))?;
    storage.remove(&partial)?;
    Ok(won)
}
