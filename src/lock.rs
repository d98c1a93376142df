//! Locks on ranges of a file: between threads as between processes, and gone with their owner.
//!
//! On Linux they are open-file-description locks: each belongs to one open file, not to a process, so
//! two threads exclude each other as two processes do, and a killed process leaves none behind.
//! Where the system or the file system has none, claims are kept in memory: they hold between the
//! threads of one process, and nothing holds between processes.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// What has been claimed in this process where the file system has no locks: file and range.
pub(crate) type Claims = Mutex<Vec<(u64, Range<u64>)>>;

/// A range of an open file that nobody else has while this lives.
#[derive(Debug)]
pub(crate) struct RangeLock {
    file: File,
    range: Range<u64>,
    claimed: Option<(Arc<Claims>, u64)>,
}

impl RangeLock {
    /// Locks `range` of `file`, which must be open for writing and by this caller alone; or gives
    /// a range that somebody else holds. `number` tells the file from others of the same `claims`.
    pub(crate) fn take(
        file: File,
        range: Range<u64>,
        claims: &Arc<Claims>,
        number: u64,
    ) -> io::Result<Result<Self, Range<u64>>> {
        if range.is_empty() {
            return Ok(Ok(Self { file, range, claimed: None }));
        }
        match try_lock(&file, range.clone(), true) {
            Ok(true) => Ok(Ok(Self { file, range, claimed: None })),
            Ok(false) => Ok(Err(holder(&file, range.clone())?.unwrap_or(range))),
            Err(e) if is_unsupported(&e) => {
                let mut held = claims.lock().unwrap_or_else(PoisonError::into_inner);
                let meets = |(other, taken): &&(u64, Range<u64>)| {
                    *other == number && taken.start < range.end && range.start < taken.end
                };
                if let Some((_, taken)) = held.iter().find(meets) {
                    return Ok(Err(taken.clone()));
                }
                held.push((number, range.clone()));
                drop(held);
                Ok(Ok(Self { file, range, claimed: Some((Arc::clone(claims), number)) }))
            }
            Err(e) => Err(e),
        }
    }

    /// The file, for reading and writing within the range.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for RangeLock {
    fn drop(&mut self) {
        match &self.claimed {
            Some((claims, number)) => {
                let mut held = claims.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(at) = held.iter().position(|(n, r)| n == number && *r == self.range) {
                    held.swap_remove(at);
                }
            }
            // Closing would do, but a process forked meanwhile has the descriptor too.
            None if !self.range.is_empty() => unlock(&self.file, self.range.clone()),
            None => {}
        }
    }
}

/// Whether an error says that there are no such locks here.
pub(crate) fn is_unsupported(error: &io::Error) -> bool {
    #[cfg(target_os = "linux")]
    if let Some(code) = error.raw_os_error() {
        return matches!(code, libc::EINVAL | libc::ENOLCK | libc::EOPNOTSUPP | libc::ENOSYS);
    }
    error.kind() == io::ErrorKind::Unsupported
}

#[cfg(target_os = "linux")]
mod system {
    use crate::map::range_lock;
    use std::fs::File;
    use std::io;
    use std::ops::Range;

    fn kind(exclusive: bool) -> libc::c_int {
        if exclusive { libc::F_WRLCK } else { libc::F_RDLCK }
    }

    /// Locks a range or says that somebody has some of it.
    pub(crate) fn try_lock(file: &File, range: Range<u64>, exclusive: bool) -> io::Result<bool> {
        let len = range.end - range.start;
        match range_lock(file, libc::F_OFD_SETLK, kind(exclusive), range.start, len) {
            Ok(_) => Ok(true),
            Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Locks a range, waiting for whoever has it.
    pub(crate) fn wait_lock(file: &File, range: Range<u64>, exclusive: bool) -> io::Result<()> {
        let len = range.end - range.start;
        range_lock(file, libc::F_OFD_SETLKW, kind(exclusive), range.start, len).map(drop)
    }

    /// Gives a range back.
    pub(crate) fn unlock(file: &File, range: Range<u64>) {
        let len = range.end - range.start;
        let _ = range_lock(file, libc::F_OFD_SETLK, libc::F_UNLCK, range.start, len);
    }

    /// A range that another open file has locked and that meets `range`, cut to it.
    pub(crate) fn holder(file: &File, range: Range<u64>) -> io::Result<Option<Range<u64>>> {
        let len = range.end - range.start;
        let (found, start, len) = range_lock(file, libc::F_OFD_GETLK, libc::F_WRLCK, range.start, len)?;
        if found == libc::F_UNLCK {
            return Ok(None);
        }
        let end = if len == 0 { range.end } else { range.end.min(start.saturating_add(len)) };
        Ok(Some(range.start.max(start)..end))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::fs::File;
    use std::io;
    use std::ops::Range;

    pub(crate) fn try_lock(_: &File, _: Range<u64>, _: bool) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn wait_lock(_: &File, _: Range<u64>, _: bool) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn unlock(_: &File, _: Range<u64>) {}

    pub(crate) fn holder(_: &File, _: Range<u64>) -> io::Result<Option<Range<u64>>> {
        Ok(None)
    }
}

pub(crate) use system::{holder, try_lock, unlock, wait_lock};

/// All ranges within `range` that other open files have locked, in order.
pub(crate) fn holders(file: &File, range: Range<u64>) -> io::Result<Vec<Range<u64>>> {
    // The kernel names any one of them; what is left and right of it is asked for in turn.
    let mut open = vec![range];
    let mut found = Vec::new();
    while let Some(range) = open.pop().filter(|range| !range.is_empty()) {
        match holder(file, range.clone()) {
            Ok(Some(held)) if !held.is_empty() => {
                open.extend(
                    [range.start..held.start, held.end..range.end].into_iter().filter(|r| !r.is_empty()),
                );
                found.push(held);
            }
            Ok(_) => {}
            Err(e) if is_unsupported(&e) => {}
            Err(e) => return Err(e),
        }
    }
    found.sort_by_key(|range| range.start);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_exclude_each_other_and_are_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let open =
            || File::options().read(true).write(true).create(true).truncate(false).open(&path).unwrap();
        let claims = Arc::new(Claims::default());
        let take = |range| RangeLock::take(open(), range, &claims, 0).unwrap();
        let first = take(16..48).unwrap();
        assert_eq!(take(32..64).unwrap_err(), 32..48);
        let second = take(48..64).unwrap();
        assert!(take(7..7).is_ok());
        if cfg!(target_os = "linux") {
            assert_eq!(holders(&open(), 0..1000).unwrap(), [16..48, 48..64]);
        }
        drop(first);
        assert!(take(0..48).is_ok());
        drop(second);
        assert!(take(0..64).is_ok());
    }
}
