//! All `unsafe` of the library: maps of files, one address range over many of them, and the one
//! system call that no safe crate here offers, the lock on a range of a file.
//!
//! The danger of a map is one: whoever truncates the file under it turns a load into SIGBUS, and
//! whoever rewrites it changes memory that Rust believes constant. So the one public door,
//! [`Dataset::map`](crate::Dataset::map), is an `unsafe fn` whose contract says that nobody does; everything behind
//! it is safe.
#![allow(unsafe_code)]

use crate::error::{Error, ErrorKind, Result};
use crate::layout::{HEADER_BYTES, PAGE_BYTES};
use memmap2::{Mmap, MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::ops::Range;

/// The row data of one array in memory.
#[derive(Debug)]
pub(crate) enum ArrayMap {
    /// All shards side by side in one address range.
    #[cfg(unix)]
    Contiguous(Contiguous),
    /// Each shard by itself, where the system's pages do not meet the format's.
    Separate(Vec<Mmap>),
}

impl ArrayMap {
    /// Maps the data of shards given by file and data length. The caller vouches for the files as
    /// [`Dataset::map`](crate::Dataset::map) demands, and for their exact lengths.
    pub(crate) fn new(total: u64, shards: impl Iterator<Item = Result<(File, u64)>>) -> Result<Self> {
        #[cfg(unix)]
        if PAGE_BYTES.is_multiple_of(rustix::param::page_size() as u64) {
            return Contiguous::new(total, shards).map(Self::Contiguous);
        }
        let _ = total;
        let mut maps = Vec::new();
        for shard in shards {
            let (file, len) = shard?;
            maps.push(map_range(&file, HEADER_BYTES, len).map_err(|e| Error::io("shard", "map", e))?);
        }
        Ok(Self::Separate(maps))
    }
}

/// Maps `len` bytes of `file` for reading. The caller vouches that nobody changes them meanwhile.
pub(crate) fn map_range(file: &File, offset: u64, len: u64) -> io::Result<Mmap> {
    let len = usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    // SAFETY: the caller's promise, which every public path to here takes from the user, is that
    // the file is neither truncated nor written while it is mapped.
    unsafe { MmapOptions::new().offset(offset).len(len).map(file) }
}

/// A range of a file, mapped for writing.
#[derive(Debug)]
pub(crate) struct RangeMut {
    map: MmapRaw,
    start: usize,
    len: usize,
}

/// The kernel maps a file in pieces of this size at one fault, if all of the piece is in the map.
const HUGE_PAGE_BYTES: u64 = 2 << 20;

impl RangeMut {
    /// Maps `range` of `file`, which has `file_bytes` bytes. Only for files that this process has
    /// created or claimed under a lock, and whose blocks are allocated, so that no store can meet a full disk.
    ///
    /// The map reaches beyond the range, to the edges of huge pages, though nobody is given a byte
    /// of that: a page that is mapped in part costs a fault and the file system's work on the whole
    /// of it for each 4 KiB. Measured on ext4 (6.18, CPU time of 512 MiB, a map a region): regions of
    /// 1 MiB 0.19 GB/s without and 2.5 with; of 4 MiB 0.34 and 2.8; of 64 MiB 1.8 and 2.9; `pwrite` 3.0.
    pub(crate) fn new(file: &File, range: Range<u64>, file_bytes: u64) -> io::Result<Self> {
        let too_long = |_| io::Error::from(io::ErrorKind::OutOfMemory);
        let from = range.start - range.start % HUGE_PAGE_BYTES;
        let to = range.end.checked_next_multiple_of(HUGE_PAGE_BYTES).unwrap_or(range.end).min(file_bytes);
        if range.start > range.end || range.end > to {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let map = MmapOptions::new()
            .offset(from)
            .len(usize::try_from(to - from).map_err(too_long)?)
            .map_raw(file)?;
        let start = usize::try_from(range.start - from).map_err(too_long)?;
        let len = usize::try_from(range.end - range.start).map_err(too_long)?;
        Ok(Self { map, start, len })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `start + len` bytes are mapped (checked in `new`) until `self` is dropped. The range is
        // claimed by one region at a time, by a lock that holds between threads and processes,
        // so nobody else writes to these bytes; what is mapped around them is not part of the slice.
        // The file is not yet part of a dataset, so nobody has a reason to truncate it.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(self.start), self.len) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`, and `&mut self` is the only way to the bytes in this process.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().add(self.start), self.len) }
    }
}

/// Sets, waits for, or asks for a lock on `len` bytes of an open file (0: to its end and beyond),
/// owned by the open file and not by the process, so that it holds between threads too. `command` is
/// one of `F_OFD_SETLK`, `F_OFD_SETLKW`, `F_OFD_GETLK`; gives what the kernel made of the question.
#[cfg(target_os = "linux")]
pub(crate) fn range_lock(
    file: &File,
    command: libc::c_int,
    kind: libc::c_int,
    start: u64,
    len: u64,
) -> io::Result<(libc::c_int, u64, u64)> {
    use std::os::fd::AsRawFd;
    let too_far = |_| io::Error::from(io::ErrorKind::InvalidInput);
    // SAFETY: `flock64` is plain integers, for which all bits zero is a value.
    let mut lock: libc::flock64 = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = i64::try_from(start).map_err(too_far)?;
    lock.l_len = i64::try_from(len).map_err(too_far)?;
    loop {
        // SAFETY: the descriptor is open as long as `file` is borrowed, and each of the three
        // commands reads and writes one `flock64`, which `lock` is, and nothing else.
        let result = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
        if result != -1 {
            let number = |n: i64| u64::try_from(n).unwrap_or(0);
            return Ok((libc::c_int::from(lock.l_type), number(lock.l_start), number(lock.l_len)));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// One address range over the data of many files.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct Contiguous {
    base: std::ptr::NonNull<u8>,
    /// Bytes of data.
    len: usize,
    /// Bytes reserved: `len` up to a whole page; 0 if nothing is.
    reserved: usize,
}

// SAFETY: the range is mapped read-only and owned by this value alone until it is dropped, so
// shared references to its bytes may be used from any thread.
#[cfg(unix)]
unsafe impl Send for Contiguous {}
// SAFETY: as for `Send`; there is no interior mutability.
#[cfg(unix)]
unsafe impl Sync for Contiguous {}

#[cfg(unix)]
impl Contiguous {
    /// Reserves one range of `total` bytes and maps each shard's data at its place in it. Every
    /// piece but the last must be whole pages long. One file is open at a time.
    fn new(total: u64, shards: impl Iterator<Item = Result<(File, u64)>>) -> Result<Self> {
        use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};
        let out_of_space = || {
            Error::new(ErrorKind::Io, format!("expected {total} bytes of address space, found less"))
                .hint("read() copies a part of the rows")
        };
        if total == 0 {
            // A map of nothing is an error of the system's; the files have been checked all the same.
            shards.into_iter().try_for_each(|shard| shard.map(drop))?;
            return Ok(Self { base: std::ptr::NonNull::dangling(), len: 0, reserved: 0 });
        }
        let len = usize::try_from(total)
            .ok()
            .filter(|&len| isize::try_from(len).is_ok())
            .ok_or_else(out_of_space)?;
        let reserved = len.checked_next_multiple_of(PAGE_BYTES as usize).ok_or_else(out_of_space)?;
        // SAFETY: a null address lets the kernel choose an unused range, so no memory of anybody
        // is replaced; nothing can be loaded from it until a shard is mapped over it.
        let base = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                reserved,
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }
        .map_err(|_| out_of_space())?;
        let base = std::ptr::NonNull::new(base.cast::<u8>()).ok_or_else(out_of_space)?;
        // From here on a return drops the range with all that is mapped in it.
        let map = Self { base, len, reserved };
        let mut at = 0usize;
        for shard in shards {
            let (file, data) = shard?;
            if data == 0 {
                continue;
            }
            let end =
                usize::try_from(data).ok().and_then(|data| at.checked_add(data)).filter(|&end| end <= len);
            let Some(end) = end.filter(|_| at.is_multiple_of(PAGE_BYTES as usize)) else {
                return Err(Error::new(
                    ErrorKind::Corrupt,
                    format!(
                        "expected shards of whole pages and {total} bytes in all, found {data} more at {at}"
                    ),
                ));
            };
            // SAFETY: `at` is a multiple of the page and `end <= len <= reserved`, so the range
            // replaced by MAP_FIXED lies within the reservation above, which this value owns and
            // from which nothing has been lent yet.
            let mapped = unsafe {
                mmap(
                    map.base.as_ptr().add(at).cast(),
                    end - at,
                    ProtFlags::READ,
                    MapFlags::SHARED | MapFlags::FIXED,
                    &file,
                    HEADER_BYTES,
                )
            };
            mapped.map_err(|e| Error::io("shard", "map", e.into()))?;
            at = end;
        }
        if at != len {
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!("expected {total} bytes in all shards, found {at}"),
            ));
        }
        Ok(map)
    }

    /// The data of all shards.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `len` bytes from `base` are mapped for reading (checked at the end of `new`)
        // until `self` is dropped, `len` fits an isize, and by the contract of `Dataset::map`
        // nobody changes them. With `len` 0 the pointer is dangling but aligned, as a slice asks.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }

    /// Tells the kernel how the data will be read.
    pub(crate) fn advise(&self, advice: Access) {
        use rustix::mm::{Advice, madvise};
        if self.reserved == 0 {
            return;
        }
        let advice = match advice {
            Access::Normal => Advice::Normal,
            Access::Random => Advice::Random,
            Access::Sequential => Advice::Sequential,
            #[cfg(target_os = "linux")]
            Access::Populate => Advice::LinuxPopulateRead,
            #[cfg(not(target_os = "linux"))]
            Access::Populate => Advice::WillNeed,
        };
        // SAFETY: the range is exactly the mapping that this value owns; none of these advices
        // changes what a load from it gives.
        let _ = unsafe { madvise(self.base.as_ptr().cast(), self.reserved, advice) };
    }
}

#[cfg(unix)]
impl Drop for Contiguous {
    fn drop(&mut self) {
        if self.reserved > 0 {
            // SAFETY: the range was reserved by `new`, belongs to this value alone, and every
            // slice lent from it borrowed `self`, so none is left.
            let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.reserved) };
        }
    }
}

/// How an array is about to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// The system's default.
    Normal,
    /// Single rows here and there: do not read ahead.
    Random,
    /// From start to end: read far ahead.
    Sequential,
    /// All of it: bring it into memory now.
    Populate,
}
