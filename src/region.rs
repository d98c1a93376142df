//! A run of whole blocks of one shard, in the hands of one writer.

use crate::buffer::Buffer;
use crate::building::{Building, BuildingArray, Place};
use crate::checksum::crc32;
use crate::dtype::Element;
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::layout::{ArrayLayout, HEADER_BYTES};
use crate::lock::RangeLock;
use crate::map::RangeMut;
use ndarray::{ArrayViewMut, ArrayViewMutD, Dimension, IxDyn};
use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// How a region's bytes reach the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Transfer {
    /// [`Self::Map`] for regions of 32 MiB or more on ext4, xfs and btrfs, if the file's blocks are
    /// allocated, else [`Self::Write`], which is faster there. Calls that fill whole arrays, and conversions, take [`Self::Write`].
    #[default]
    Auto,
    /// A buffer, written by `pwrite` when the region is finished.
    Write,
    /// The file itself, mapped; only where its blocks are allocated, because a store into a hole
    /// of a full disk kills the process.
    Map,
}

enum Memory {
    Buffer(Buffer),
    Map(RangeMut),
}

/// Rows of an array that one writer fills. Nobody else can have them, in this process or another,
/// until it is finished, after which they are written, or dropped, after which they are free again.
///
/// Memory that the caller does not fill is zero, or what an unfinished writer has left there.
#[derive(Debug)]
pub struct Region {
    building: Arc<Building>,
    place: Place,
    lock: RangeLock,
    path: PathBuf,
    file: File,
    memory: Memory,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Memory::Buffer(_) => "Buffer",
            Memory::Map(_) => "Map",
        })
    }
}

impl Region {
    /// Takes rows `rows` of array number `array`. Unless it is to be `clear`, a buffer holds anything.
    pub(crate) fn open(
        building: Arc<Building>,
        array: usize,
        rows: Range<u64>,
        transfer: Transfer,
        clear: bool,
    ) -> Result<Self> {
        let place = building.place(array, rows)?;
        let lock = building.claim(&place)?;
        let path = building.partial_path(array, place.shard.index);
        let file =
            File::options().read(true).write(true).open(&path).map_err(|e| Error::io(&path, "open", e))?;
        let row_bytes = building.arrays()[array].layout.by_row().row_bytes;
        let len = (place.rows.end - place.rows.start) * row_bytes;
        let memory = if len > 0 && may_map(&building, &file, &path, &place, len, transfer)? {
            let offset = HEADER_BYTES + (place.rows.start - place.shard.rows.start) * row_bytes;
            let map = RangeMut::new(&file, offset..offset + len, place.shard.file_bytes());
            Memory::Map(map.map_err(|e| Error::io(&path, "map", e))?)
        } else {
            let mut buffer = building.spare();
            buffer.resize(len as usize);
            if clear {
                buffer.bytes_mut().fill(0);
            }
            Memory::Buffer(buffer)
        };
        Ok(Self { building, place, lock, path, file, memory })
    }

    fn array(&self) -> &BuildingArray {
        &self.building.arrays()[self.place.array]
    }

    fn layout(&self) -> &ArrayLayout {
        &self.array().layout
    }

    /// Whether its memory is the file itself.
    pub fn is_mapped(&self) -> bool {
        matches!(self.memory, Memory::Map(_))
    }

    /// Its rows, counted in the array.
    pub fn rows(&self) -> Range<u64> {
        self.place.rows.clone()
    }

    /// The memory of its rows: their row-major bytes, little-endian.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Buffer(buffer) => buffer.bytes_mut(),
            Memory::Map(map) => map.bytes_mut(),
        }
    }

    /// The memory of its rows as values, row-major.
    pub fn values_mut<T: Element>(&mut self) -> Result<&mut [T]> {
        let found = self.layout().dtype();
        if found != T::DTYPE {
            return Err(Error::new(
                ErrorKind::TypeMismatch,
                format!(
                    "array {}: expected {}, found {found}",
                    quoted(self.array().name.as_bytes()),
                    T::DTYPE
                ),
            ));
        }
        crate::dtype::values_mut(self.bytes_mut())
    }

    /// Its rows as a view to write to: shape (`rows`, …).
    pub fn view_mut<T: Element, D: Dimension>(&mut self) -> Result<ArrayViewMut<'_, T, D>> {
        let rows = self.place.rows.end - self.place.rows.start;
        let shape = crate::dataset::to_usize(&self.layout().shard_shape(rows))?;
        let values = self.values_mut::<T>()?;
        let view: ArrayViewMutD<'_, T> = ArrayViewMut::from_shape(IxDyn(&shape), values).map_err(|e| {
            Error::new(ErrorKind::InvalidArgument, format!("expected shape {shape:?}, found {e}"))
        })?;
        view.into_dimensionality::<D>().map_err(|_| {
            Error::new(
                ErrorKind::InvalidArgument,
                format!("expected {:?} dimensions, found shape {shape:?}", D::NDIM),
            )
        })
    }

    /// Writes what has not been written, with the checksum of each block; the rows are then done.
    pub fn finish(self) -> Result<()> {
        let by_row = *self.layout().by_row();
        let shard = &self.place.shard;
        let start = (self.place.rows.start - shard.rows.start) * by_row.row_bytes;
        let bytes: &[u8] = match &self.memory {
            Memory::Buffer(buffer) => buffer.bytes(),
            Memory::Map(map) => map.bytes(),
        };
        check_bools(self.array(), &self.place.rows, bytes)?;
        let storage = self.building.storage();
        let mut crcs = Vec::with_capacity((self.place.blocks.end - self.place.blocks.start) as usize);
        for block in self.place.blocks.clone() {
            let at = by_row.block_bytes(block, shard.len());
            let piece = &bytes[(at.start - start) as usize..(at.end - start) as usize];
            // Each block is hashed just before it is copied to the file, while it is in cache.
            crcs.push(crc32(piece));
            match self.memory {
                Memory::Buffer(_) => storage.write(&self.file, &self.path, piece, HEADER_BYTES + at.start)?,
                Memory::Map(_) => storage.wrote(&self.path, piece, HEADER_BYTES + at.start)?,
            }
        }
        let written = bytes.len() as u64;
        let Self { building, place, lock, file, memory, .. } = self;
        // A network file system sends the data when the file is closed, so before it may count as done.
        drop(file);
        building.mark(lock.file(), &place, &crcs)?;
        building.count_written(written);
        if let Memory::Buffer(buffer) = memory {
            building.keep(buffer);
        }
        Ok(())
    }
}

/// Shorter regions are written: a buffer stays in cache from the caller's last store to the copy, where
/// fresh pages of a map are zeroed, filled and hashed in three passes over memory. Longer ones
/// are mapped, at about the speed of `pwrite` and without a second copy in memory.
const MAP_BYTES: u64 = 32 << 20;

/// Whether the file may be mapped for writing; an error where it must and can't.
fn may_map(
    building: &Building,
    file: &File,
    path: &std::path::Path,
    place: &Place,
    len: u64,
    transfer: Transfer,
) -> Result<bool> {
    let wanted = match transfer {
        Transfer::Write => false,
        Transfer::Auto => building.is_mappable() && len >= MAP_BYTES,
        Transfer::Map => true,
    };
    if !wanted {
        return Ok(false);
    }
    let meta = file.metadata().map_err(|e| Error::io(path, "stat", e))?;
    #[cfg(unix)]
    let allocated = std::os::unix::fs::MetadataExt::blocks(&meta).saturating_mul(512);
    #[cfg(not(unix))]
    let allocated = meta.len();
    let expected = place.shard.file_bytes();
    if meta.len() == expected && allocated >= expected {
        return Ok(true);
    }
    if transfer == Transfer::Auto {
        return Ok(false);
    }
    Err(Error::new(
        ErrorKind::Unsupported,
        format!("expected {expected} bytes allocated on the disk, found {allocated}"),
    )
    .hint("this file system can't allocate; write to it instead of mapping it")
    .at(path))
}

/// A byte above 1 would be undefined in Rust and true or not in C, by chance.
fn check_bools(array: &BuildingArray, rows: &Range<u64>, bytes: &[u8]) -> Result<()> {
    if array.layout.dtype() != crate::DType::Bool {
        return Ok(());
    }
    match bytes.iter().position(|&byte| byte > 1) {
        Some(at) => {
            let row = rows.start + at as u64 / array.layout.by_row().row_bytes;
            Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "array {}: row {row}: expected a bool of 0 or 1, found {}",
                    quoted(array.name.as_bytes()),
                    bytes[at]
                ),
            ))
        }
        None => Ok(()),
    }
}
