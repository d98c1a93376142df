//! The files of a dataset that is being built: preallocated shards and their block tables.
//!
//! Both kinds of writer work on these: the one that has the folder to itself, and the many that share it.

use crate::buffer::Buffer;
use crate::checksum::crc32;
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::folder::read_exact_at;
use crate::layout::{ArrayLayout, HEADER_BYTES, ShardLayout};
use crate::lock::{Claims, RangeLock, holders, is_unsupported, wait_lock};
use crate::manifest::{MANIFEST_NAME, Naming};
use crate::plan::PLAN_NAME;
use crate::region::{Region, Transfer};
use crate::storage::Storage;
use crate::table::{SLOT_BYTES, TableKey, table_bytes};
use crate::writer::first_error;
use rayon::prelude::*;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Arrays of known shape in a folder that is not yet a dataset.
#[derive(Debug)]
pub(crate) struct Building {
    path: PathBuf,
    token: [u8; 32],
    arrays: Vec<BuildingArray>,
    storage: Storage,
    transfer: Transfer,
    /// Whether a map of this file system's files is known to be fast and safe.
    mappable: bool,
    claims: Arc<Claims>,
    /// Buffers of finished regions, so that a long write allocates as many as it has threads.
    spare: Mutex<Vec<Buffer>>,
    written: AtomicU64,
}

/// One array and its folder.
#[derive(Debug)]
pub(crate) struct BuildingArray {
    pub(crate) name: String,
    pub(crate) layout: ArrayLayout,
    pub(crate) folder: PathBuf,
    pub(crate) naming: Naming,
    /// Shards of the arrays before it.
    first_shard: u64,
}

/// Whole blocks of one shard.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) array: usize,
    pub(crate) shard: ShardLayout,
    pub(crate) rows: Range<u64>,
    pub(crate) blocks: Range<u64>,
}

/// Which rows are done and which are in somebody's hands: runs of blocks, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Survey {
    pub(crate) missing: Vec<Range<u64>>,
    pub(crate) writing: Vec<Range<u64>>,
}

impl Building {
    pub(crate) fn new(
        path: &Path,
        token: [u8; 32],
        arrays: impl Iterator<Item = (String, ArrayLayout)>,
        transfer: Transfer,
        storage: Storage,
    ) -> Result<Self> {
        let arrays = arrays.map(|(name, layout)| (name, layout, Naming::NEW));
        Self::within(path, path, token, arrays, transfer, storage)
    }

    /// For shards whose folders are in `root`, under the names of a later generation.
    pub(crate) fn within(
        root: &Path,
        path: &Path,
        token: [u8; 32],
        arrays: impl Iterator<Item = (String, ArrayLayout, Naming)>,
        transfer: Transfer,
        storage: Storage,
    ) -> Result<Self> {
        let mut first_shard = 0;
        let arrays = arrays.map(|(name, layout, naming)| {
            let folder = root.join(crate::manifest::folder_name(&name)?);
            let array = BuildingArray { name, layout, folder, naming, first_shard };
            first_shard += array.layout.shard_count();
            Ok(array)
        });
        Ok(Self {
            path: path.to_owned(),
            token,
            arrays: arrays.collect::<Result<_>>()?,
            storage,
            transfer,
            mappable: is_mappable(path),
            claims: Arc::default(),
            spare: Mutex::default(),
            written: AtomicU64::new(0),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn arrays(&self) -> &[BuildingArray] {
        &self.arrays
    }

    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    pub(crate) fn transfer(&self) -> Transfer {
        self.transfer
    }

    pub(crate) fn is_mappable(&self) -> bool {
        self.mappable
    }

    /// Bytes of rows that this process has finished.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub(crate) fn count_written(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The buffer of a finished region, or a new one.
    pub(crate) fn spare(&self) -> Buffer {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Keeps a buffer for the next region: memory that is new costs more than a copy to it.
    pub(crate) fn keep(&self, buffer: Buffer) {
        if buffer.bytes().len() <= KEEP_BYTES {
            self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
        }
    }

    /// The number of the array called `name`.
    pub(crate) fn find(&self, name: &str) -> Result<usize> {
        self.arrays.iter().position(|array| array.name == name).ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!("expected an array of the plan, found {}", quoted(name.as_bytes())),
            )
        })
    }

    fn key(&self, array: usize, shard: u64) -> TableKey {
        TableKey { token: self.token, array: array as u64, shard }
    }

    fn file(&self, array: usize, shard: u64, ending: &str) -> PathBuf {
        let array = &self.arrays[array];
        array.folder.join(format!("{}.{ending}", array.naming.stem(shard)))
    }

    /// Whether all that is left to do is to clear up and rename.
    pub(crate) fn is_sealed(&self) -> bool {
        self.path.join(MANIFEST_NAME).symlink_metadata().is_ok()
    }

    pub(crate) fn table_path(&self, array: usize, shard: u64) -> PathBuf {
        self.file(array, shard, "blocks")
    }

    /// Where the rows of a shard are while some are missing.
    pub(crate) fn partial_path(&self, array: usize, shard: u64) -> PathBuf {
        self.file(array, shard, "npy.partial")
    }

    /// Creates every file of every array; what is there stays.
    pub(crate) fn lay_all(&self) -> Result<()> {
        self.check_room()?;
        for (index, array) in self.arrays.iter().enumerate() {
            self.storage.create_folder(&array.folder)?;
            let shards: Vec<_> = array.layout.shards().collect();
            shards.into_par_iter().try_for_each(|shard| self.open_table(index, &shard).map(drop))?;
        }
        Ok(())
    }

    /// A disk without room for all of it is not filled up first.
    fn check_room(&self) -> Result<()> {
        let shards = self.arrays.iter().flat_map(|array| array.layout.shards());
        let bytes = shards.map(|shard| shard.file_bytes()).fold(0, u64::saturating_add);
        #[cfg(unix)]
        if let Ok(disk) = rustix::fs::statvfs(&self.path)
            // Some network file systems don't tell.
            && disk.f_blocks > 0
            && disk.f_bfree.saturating_mul(disk.f_frsize) < bytes
        {
            let full = rustix::io::Errno::NOSPC.into();
            return Err(Error::io(&self.path, &format!("allocate {bytes} bytes"), full));
        }
        Ok(())
    }

    /// Opens the block table of a shard, by itself, and lays the shard's files if they are not there.
    pub(crate) fn open_table(&self, array: usize, shard: &ShardLayout) -> Result<File> {
        let path = self.table_path(array, shard.index);
        let blocks = self.arrays[array].layout.by_row().block_count(shard.len());
        if let Some(file) = open_exact(&path, table_bytes(blocks))? {
            return Ok(file);
        }
        // One process lays a shard, the others wait for it; each asks through an open file of its own.
        let plan = self.path.join(PLAN_NAME);
        let _gate = match File::options().read(true).write(true).open(&plan) {
            Ok(gate) => {
                let at = LAY_BYTE.saturating_add(self.arrays[array].first_shard + shard.index);
                match wait_lock(&gate, at..at + 1, true) {
                    Err(e) if !is_unsupported(&e) => return Err(Error::io(&plan, "lock", e)),
                    _ => Some(gate),
                }
            }
            // A writer that has the folder to itself needs none.
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(Error::io(&plan, "open", e)),
        };
        if let Some(file) = open_exact(&path, table_bytes(blocks))? {
            return Ok(file);
        }
        self.lay(array, shard, &path, table_bytes(blocks))
    }

    /// New files for a shard of which nothing is done. The table comes last: it says that the
    /// data file is whole.
    fn lay(&self, array: usize, shard: &ShardLayout, table: &Path, len: u64) -> Result<File> {
        // A table is missing from a complete dataset too, whose shards must stay. Its manifest is
        // older than the removal of its tables, so that it can't be overlooked here.
        if self.is_sealed() {
            return Err(
                Error::new(ErrorKind::Exists, "expected a dataset to write, found it sealed").at(&self.path)
            );
        }
        self.storage.create_folder(&self.arrays[array].folder)?;
        let data = self.partial_path(array, shard.index);
        for old in
            [table, &data, &self.file(array, shard.index, "npy"), &self.file(array, shard.index, "crc")]
        {
            if old.symlink_metadata().is_ok() {
                self.storage.remove(old)?;
            }
        }
        let file = self.storage.create(&data)?;
        // The first page is left zero, so that no reader takes the file for an array.
        self.storage.allocate(&file, &data, shard.file_bytes())?;
        let file = self.storage.create(table)?;
        self.storage.resize(&file, table, len)?;
        Ok(file)
    }

    /// Checks that array rows `rows` are whole blocks of one shard.
    pub(crate) fn place(&self, array: usize, rows: Range<u64>) -> Result<Place> {
        let BuildingArray { name, layout, .. } = &self.arrays[array];
        let by_row = layout.by_row();
        let text = |what: String| {
            Error::new(ErrorKind::InvalidArgument, format!("array {}: {what}", quoted(name.as_bytes())))
        };
        let index = (rows.start / by_row.rows_per_shard).min(layout.shard_count() - 1);
        let shard = layout.shard(index).ok_or_else(|| text("expected shards, found none".into()))?;
        let own = shard.rows.clone();
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
            let to = own.end.min(own.start.saturating_add(within.end.next_multiple_of(step)));
            return Err(text(format!(
                "expected rows in whole blocks of {step}, found {}..{}",
                rows.start, rows.end
            ))
            .hint(format!("rows {from}..{to} are whole blocks")));
        }
        // An empty run of rows is no block, wherever it starts.
        let blocks = if within.is_empty() { 0..0 } else { by_row.blocks_of(within) };
        Ok(Place { array, shard, rows, blocks })
    }

    /// Takes the blocks of `place`, none of which may be done or in other hands.
    pub(crate) fn claim(&self, place: &Place) -> Result<RangeLock> {
        let path = self.table_path(place.array, place.shard.index);
        let number = self.arrays[place.array].first_shard + place.shard.index;
        let slots = table_bytes(place.blocks.start)..table_bytes(place.blocks.end);
        let lock = loop {
            let table = self.open_table(place.array, &place.shard)?;
            let taken = RangeLock::take(table, slots.clone(), &self.claims, number)
                .map_err(|e| Error::io(&path, "lock", e))?;
            match taken {
                Err(held) => {
                    let block = held.start / SLOT_BYTES;
                    let more = (held.end.min(slots.end) / SLOT_BYTES).max(block + 1);
                    return Err(self.taken(place, block..more, "are being written"));
                }
                // Given up and laid anew between the two calls.
                Ok(lock) if !place.blocks.is_empty() && is_unlinked(lock.file()) => {}
                Ok(lock) => break lock,
            }
        };
        let done = self.read_slots(lock.file(), place.array, &place.shard, place.blocks.clone())?;
        // Of a row longer than a block some blocks may be lost and others done; it is then free.
        let per_row = self.arrays[place.array].layout.by_row().blocks_per_row;
        let mut rows = done.chunks(per_row as usize);
        match rows.position(|blocks| blocks.iter().all(Option::is_some)) {
            Some(at) => {
                let block = place.blocks.start + at as u64 * per_row;
                Err(self.taken(place, block..block + 1, "are written already"))
            }
            None => Ok(lock),
        }
    }

    fn taken(&self, place: &Place, blocks: Range<u64>, state: &str) -> Error {
        let BuildingArray { name, layout, .. } = &self.arrays[place.array];
        let rows = self.rows_of(layout, &place.shard, blocks);
        Error::new(
            ErrorKind::Locked,
            format!(
                "array {}: expected free rows {}..{}, found that {}..{} {state}",
                quoted(name.as_bytes()),
                place.rows.start,
                place.rows.end,
                rows.start,
                rows.end
            ),
        )
    }

    /// The array rows of a run of blocks of a shard.
    fn rows_of(&self, layout: &ArrayLayout, shard: &ShardLayout, blocks: Range<u64>) -> Range<u64> {
        let rows = |block| layout.by_row().block_rows(block, shard.len());
        let (first, last) = (rows(blocks.start), rows(blocks.end.saturating_sub(1)));
        shard.rows.start + first.start..shard.rows.start + last.end
    }

    /// Reads the slots of some blocks: the checksum of each that is done.
    fn read_slots(
        &self,
        table: &File,
        array: usize,
        shard: &ShardLayout,
        blocks: Range<u64>,
    ) -> Result<Vec<Option<u32>>> {
        let mut bytes = vec![0; table_bytes(blocks.end - blocks.start) as usize];
        let path = self.table_path(array, shard.index);
        read_exact_at(table, &path, &mut bytes, table_bytes(blocks.start))?;
        let key = self.key(array, shard.index);
        let slots = bytes.chunks_exact(SLOT_BYTES as usize);
        Ok(blocks.zip(slots).map(|(block, slot)| key.crc(self.position(array, shard, block), slot)).collect())
    }

    /// Where a block starts in its shard's file.
    fn position(&self, array: usize, shard: &ShardLayout, block: u64) -> u64 {
        HEADER_BYTES + self.arrays[array].layout.by_row().block_bytes(block, shard.len()).start
    }

    /// Marks the blocks from `first` on as done, each with its checksum.
    pub(crate) fn mark(&self, table: &File, place: &Place, crcs: &[u32]) -> Result<()> {
        let key = self.key(place.array, place.shard.index);
        let slots: Vec<u8> = place
            .blocks
            .clone()
            .zip(crcs)
            .flat_map(|(block, &crc)| key.slot(self.position(place.array, &place.shard, block), crc))
            .collect();
        let path = self.table_path(place.array, place.shard.index);
        self.storage.write(table, &path, &slots, table_bytes(place.blocks.start))
    }

    /// The checksums of all blocks of a shard, `None` for those not done; nothing is laid.
    pub(crate) fn slots(&self, array: usize, shard: &ShardLayout) -> Result<Vec<Option<u32>>> {
        let blocks = self.arrays[array].layout.by_row().block_count(shard.len());
        match open_exact(&self.table_path(array, shard.index), table_bytes(blocks))? {
            Some(table) => self.read_slots(&table, array, shard, 0..blocks),
            None => Ok(vec![None; blocks as usize]),
        }
    }

    /// Which rows of an array are not done, and which of them somebody holds.
    pub(crate) fn survey(&self, array: usize) -> Result<Survey> {
        let layout = &self.arrays[array].layout;
        // A complete dataset has no tables any more, because nothing is missing.
        if self.is_sealed() {
            return Ok(Survey::default());
        }
        let shards: Vec<_> = layout.shards().collect();
        let found: Vec<_> =
            shards.into_par_iter().map(|shard| self.survey_shard(array, &shard)).collect::<Result<_>>()?;
        let mut all = Survey::default();
        for survey in found {
            survey.missing.into_iter().for_each(|rows| push_joined(&mut all.missing, rows));
            survey.writing.into_iter().for_each(|rows| push_joined(&mut all.writing, rows));
        }
        Ok(all)
    }

    fn survey_shard(&self, array: usize, shard: &ShardLayout) -> Result<Survey> {
        let layout = &self.arrays[array].layout;
        let count = layout.by_row().block_count(shard.len());
        let mut survey = Survey::default();
        let Some(table) = open_exact(&self.table_path(array, shard.index), table_bytes(count))? else {
            if count > 0 {
                survey.missing.push(shard.rows.clone());
            }
            return Ok(survey);
        };
        // Locks first: a region that is finished between the two questions then shows as done.
        let path = self.table_path(array, shard.index);
        let held =
            holders(&table, 0..table_bytes(count)).map_err(|e| Error::io(&path, "look for locks of", e))?;
        let slots = self.read_slots(&table, array, shard, 0..count)?;
        let open = (0..count).zip(&slots).filter(|(_, slot)| slot.is_none()).map(|(block, _)| block);
        for block in open {
            let slot = table_bytes(block);
            let is_held = held.iter().any(|range| range.contains(&slot));
            let rows = self.rows_of(layout, shard, block..block + 1);
            push_joined(if is_held { &mut survey.writing } else { &mut survey.missing }, rows);
        }
        Ok(survey)
    }

    /// Reads every block that is marked done and compares it with its checksum; what does not
    /// match is to be written again. Only while nobody else is at work. Gives the bytes that stay.
    pub(crate) fn check_done(&self) -> Result<u64> {
        if self.is_sealed() {
            return Ok(0);
        }
        let kept = AtomicU64::new(0);
        for (index, array) in self.arrays.iter().enumerate() {
            let shards: Vec<_> = array.layout.shards().collect();
            shards.into_par_iter().try_for_each(|shard| {
                kept.fetch_add(self.check_shard(index, &shard)?, Ordering::Relaxed);
                Ok::<_, Error>(())
            })?;
        }
        Ok(kept.into_inner())
    }

    fn check_shard(&self, array: usize, shard: &ShardLayout) -> Result<u64> {
        let by_row = self.arrays[array].layout.by_row();
        let count = by_row.block_count(shard.len());
        let path = self.table_path(array, shard.index);
        let Some(table) = open_exact(&path, table_bytes(count))? else { return Ok(0) };
        let (partial, sealed) = (self.partial_path(array, shard.index), self.file(array, shard.index, "npy"));
        let mut data_path = &partial;
        let mut data = open_exact(data_path, shard.file_bytes())?;
        if data.is_none() {
            data_path = &sealed;
            data = open_exact(data_path, shard.file_bytes())?;
        }
        let Some(data) = data else {
            // A table without its data proves nothing; the next writer lays both anew.
            self.storage.remove(&path)?;
            return Ok(0);
        };
        let slots = self.read_slots(&table, array, shard, 0..count)?;
        let done: Vec<(u64, u32)> = (0..).zip(slots).filter_map(|(at, slot)| Some((at, slot?))).collect();
        let good: Vec<(u64, u64)> = done
            .par_chunks(CHECK_BLOCKS)
            .map(|run| {
                let mut buffer = Vec::new();
                let mut good = Vec::new();
                for &(block, crc) in run {
                    let at = by_row.block_bytes(block, shard.len());
                    buffer.resize((at.end - at.start) as usize, 0);
                    // A block that can't be read is as lost as one that is wrong.
                    let read = read_exact_at(&data, data_path, &mut buffer, HEADER_BYTES + at.start);
                    if read.is_ok() && crc32(&buffer) == crc {
                        good.push((block, at.end - at.start));
                    }
                }
                good
            })
            .flatten()
            .collect();
        if good.len() < count as usize && data_path == &sealed {
            self.storage.remove(&self.file(array, shard.index, "crc"))?;
            self.storage.rename(&sealed, &partial)?;
        }
        if good.len() < done.len() {
            let is_good = |block: &u64| good.binary_search_by_key(block, |(good, _)| *good).is_ok();
            for (block, _) in done.iter().filter(|(block, _)| !is_good(block)) {
                self.storage.write(&table, &path, &[0; SLOT_BYTES as usize], table_bytes(*block))?;
            }
        }
        Ok(good.iter().map(|(_, bytes)| bytes).sum())
    }

    /// Fills the missing rows of an array within `within`, in regions of about `bytes`, by
    /// `fill(rows, bytes)`, in parallel; `fill` sets every byte. Of several errors the first by row is
    /// returned, whatever the number of threads.
    pub(crate) fn fill(
        self: &Arc<Self>,
        array: usize,
        bytes: u64,
        within: Range<u64>,
        fill: impl Fn(Range<u64>, &mut [u8]) -> Result<()> + Sync,
    ) -> Result<()> {
        let regions = self.runs(array, bytes, within)?;
        first_error(regions.len(), |i| {
            let mut region = self.open_region(array, regions[i].clone())?;
            fill(regions[i].clone(), region.bytes_mut())?;
            region.finish()
        })
    }

    /// A region of which every byte is going to be set: a buffer, which is in cache when it is
    /// written, unless a map is asked for.
    pub(crate) fn open_region(self: &Arc<Self>, array: usize, rows: Range<u64>) -> Result<Region> {
        let transfer = if self.transfer == Transfer::Auto { Transfer::Write } else { self.transfer };
        Region::open(Arc::clone(self), array, rows, transfer, false)
    }

    /// Runs of missing rows within `within`, each whole blocks of one shard and at most about
    /// `bytes` long, in order.
    pub(crate) fn runs(&self, array: usize, bytes: u64, within: Range<u64>) -> Result<Vec<Range<u64>>> {
        let survey = self.survey(array)?;
        let mut open = survey.missing;
        open.extend(survey.writing);
        open.sort_by_key(|rows| rows.start);
        let mut open = open.into_iter().peekable();
        let mut runs = Vec::new();
        for region in self.arrays[array].layout.regions(bytes) {
            while open.next_if(|rows| rows.end <= region.start).is_some() {}
            // Several missing runs may meet one region, and one run many regions.
            while let Some(rows) = open.peek() {
                let run =
                    rows.start.max(region.start).max(within.start)..rows.end.min(region.end).min(within.end);
                let more = rows.end < region.end;
                if !run.is_empty() {
                    runs.push(run);
                }
                if !more {
                    break;
                }
                open.next();
            }
        }
        Ok(runs)
    }
}

/// Longer buffers are not kept.
const KEEP_BYTES: usize = 16 << 20;
/// Blocks that one thread checks in a row.
const CHECK_BLOCKS: usize = 8;

/// Byte of the plan file that whoever is at work holds for reading, and whoever must be alone for writing.
pub(crate) const PRESENCE: Range<u64> = 0..1;
/// Byte of the plan file that whoever seals holds.
pub(crate) const SEALING: Range<u64> = 1..2;
/// From this byte of the plan file on, one a shard: whoever lays its files holds it.
const LAY_BYTE: u64 = 1 << 32;

/// Adds a run at the end of a list, joined with the last if it follows it.
fn push_joined(list: &mut Vec<Range<u64>>, rows: Range<u64>) {
    match list.last_mut() {
        Some(last) if last.end >= rows.start => last.end = rows.end,
        _ => list.push(rows),
    }
}

/// Opens a file for reading and writing; `None` if it is not there or not of this length.
fn open_exact(path: &Path, len: u64) -> Result<Option<File>> {
    match File::options().read(true).write(true).open(path) {
        Ok(file) => {
            let found = file.metadata().map_err(|e| Error::io(path, "stat", e))?.len();
            Ok((found == len).then_some(file))
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(path, "open", e)),
    }
}

fn is_unlinked(file: &File) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        file.metadata().is_ok_and(|meta| meta.nlink() == 0)
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        false
    }
}

/// Whether the file system at `path` is one whose maps are coherent, fast, and backed by what
/// `fallocate` has allocated. On NFS, Lustre and FUSE mapped writes are slow at best; on tmpfs, which has
/// no huge pages by default, they run at half the speed of `pwrite`.
fn is_mappable(path: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        const LOCAL: [u32; 3] = [0xEF53, 0x5846_5342, 0x9123_683E]; // ext4, xfs, btrfs
        rustix::fs::statfs(path).is_ok_and(|stat| LOCAL.contains(&(stat.f_type as u32)))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = path;
        false
    }
}
