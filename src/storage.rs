//! The file operations of writing, in one place, so that a test can watch each of them, refuse it,
//! or cut it short. Crash safety is a matter of their order.
//!
//! Not part of the public interface: hidden, and free to change.

use crate::error::{Error, Result};
use crate::folder::exists;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// One operation, before it is done.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Op<'a> {
    /// A folder is created.
    CreateFolder(&'a Path),
    /// A file is created, empty.
    Create(&'a Path),
    /// A file gets a length, with or without blocks for it.
    Resize(&'a Path, u64),
    /// Bytes are written at an offset, by a call or through a map.
    Write(&'a Path, u64, &'a [u8]),
    /// A file's data is made durable.
    Sync(&'a Path),
    /// A folder's names are made durable.
    SyncFolder(&'a Path),
    /// A file or folder gets another name, whatever had it.
    Rename(&'a Path, &'a Path),
    /// Two folders exchange their names.
    Exchange(&'a Path, &'a Path),
    /// A file gets a second name, which must be free.
    Link(&'a Path, &'a Path),
    /// A file is removed.
    Remove(&'a Path),
    /// A folder is removed with all that is in it.
    RemoveAll(&'a Path),
}

/// What becomes of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is done.
    Whole,
    /// Of a write, only so many bytes; the rest is asked for again.
    Short(usize),
}

/// Sees every operation before it is done and may refuse it with an error.
pub trait Watch: Send + Sync {
    /// Decides about `op`.
    fn before(&self, op: Op<'_>) -> io::Result<Fate>;
}

/// The disk, or the disk as a test shows it.
#[derive(Clone)]
pub(crate) struct Storage {
    sync: bool,
    watch: Option<Arc<dyn Watch>>,
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storage").field("sync", &self.sync).field("watched", &self.watch.is_some()).finish()
    }
}

impl Storage {
    /// The disk; without `sync` nothing is made durable.
    pub(crate) fn new(sync: bool, watch: Option<Arc<dyn Watch>>) -> Self {
        Self { sync, watch }
    }

    fn ask(&self, op: Op<'_>) -> io::Result<Fate> {
        match &self.watch {
            None => Ok(Fate::Whole),
            Some(watch) => watch.before(op),
        }
    }

    /// Creates a folder unless it is there; says whether it did.
    pub(crate) fn create_folder(&self, path: &Path) -> Result<bool> {
        match self.ask(Op::CreateFolder(path)).and_then(|_| fs::create_dir(path)) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(false),
            Err(e) => Err(Error::io(path, "create", e)),
        }
    }

    /// Creates a file that must not be there.
    pub(crate) fn create(&self, path: &Path) -> Result<File> {
        self.ask(Op::Create(path))
            .and_then(|_| File::options().read(true).write(true).create_new(true).open(path))
            .map_err(|e| Error::io(path, "create", e))
    }

    /// Sets a file's length and allocates its blocks where the file system can; a full disk shows here.
    pub(crate) fn allocate(&self, file: &File, path: &Path, len: u64) -> Result<()> {
        self.ask(Op::Resize(path, len)).map_err(|e| Error::io(path, "resize", e))?;
        allocate(file, path, len)
    }

    /// Sets a file's length.
    pub(crate) fn resize(&self, file: &File, path: &Path, len: u64) -> Result<()> {
        self.ask(Op::Resize(path, len))
            .and_then(|_| file.set_len(len))
            .map_err(|e| Error::io(path, "resize", e))
    }

    /// Writes all of `bytes` at `offset`.
    pub(crate) fn write(&self, file: &File, path: &Path, mut bytes: &[u8], mut offset: u64) -> Result<()> {
        while !bytes.is_empty() {
            let written = self.ask(Op::Write(path, offset, bytes)).and_then(|fate| {
                let len = if let Fate::Short(len) = fate { len.min(bytes.len()) } else { bytes.len() };
                write_at(file, &bytes[..len], offset)
            });
            match written {
                Ok(0) => return Err(Error::io(path, "write", io::ErrorKind::WriteZero.into())),
                Ok(len) => {
                    bytes = &bytes[len..];
                    offset += len as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io(path, "write", e)),
            }
        }
        Ok(())
    }

    /// Tells of bytes that have been written through a map.
    pub(crate) fn wrote(&self, path: &Path, bytes: &[u8], offset: u64) -> Result<()> {
        self.ask(Op::Write(path, offset, bytes)).map(drop).map_err(|e| Error::io(path, "write", e))
    }

    /// Makes a file durable. After an error its pages may be lost though marked clean, so that
    /// a second try would succeed and prove nothing.
    pub(crate) fn sync(&self, file: &File, path: &Path) -> Result<()> {
        if !self.sync {
            return Ok(());
        }
        self.ask(Op::Sync(path)).and_then(|_| file.sync_all()).map_err(|e| Error::io(path, "sync", e))
    }

    /// Makes the names in a folder durable.
    pub(crate) fn sync_folder(&self, path: &Path) -> Result<()> {
        if !self.sync {
            return Ok(());
        }
        self.ask(Op::SyncFolder(path)).map_err(|e| Error::io(path, "sync", e))?;
        crate::folder::sync_folder(path)
    }

    /// Renames a file over whatever has the name.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.ask(Op::Rename(from, to))
            .and_then(|_| fs::rename(from, to))
            .map_err(|e| Error::io(to, "rename to", e))
    }

    /// Renames to a name that must be free.
    pub(crate) fn rename_new(&self, from: &Path, to: &Path) -> Result<()> {
        self.ask(Op::Rename(from, to)).map_err(|e| Error::io(to, "rename to", e))?;
        rename_new(from, to)
    }

    /// Exchanges what stands at two paths; `false` if this file system can't.
    pub(crate) fn exchange(&self, new: &Path, old: &Path) -> Result<bool> {
        self.ask(Op::Exchange(new, old)).map_err(|e| Error::io(old, "rename to", e))?;
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            match renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE) {
                Ok(()) => return Ok(true),
                Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {}
                Err(e) => return Err(Error::io(old, "rename to", e.into())),
            }
        }
        Ok(false)
    }

    /// Gives a file a second name unless that is taken; says whether it did.
    pub(crate) fn link(&self, from: &Path, to: &Path) -> Result<bool> {
        match self.ask(Op::Link(from, to)).and_then(|_| fs::hard_link(from, to)) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(e)
                if matches!(e.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied)
                    && self.watch.is_none() =>
            {
                // A file system without hard links; a rename that replaces nothing does as well.
                match self.rename_new(from, to) {
                    Ok(()) => Ok(true),
                    Err(e) if e.kind() == crate::ErrorKind::Exists => Ok(false),
                    Err(e) => Err(e),
                }
            }
            Err(e) => Err(Error::io(to, "link", e)),
        }
    }

    /// Gives a file a second name in another folder, which must be free; `false` if that can't be done.
    pub(crate) fn share(&self, from: &Path, to: &Path) -> Result<bool> {
        self.ask(Op::Link(from, to)).map_err(|e| Error::io(to, "link", e))?;
        Ok(fs::hard_link(from, to).is_ok())
    }

    /// Removes a file; one that is gone is no error.
    pub(crate) fn remove(&self, path: &Path) -> Result<()> {
        match self.ask(Op::Remove(path)).and_then(|_| fs::remove_file(path)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io(path, "remove", e)),
            _ => Ok(()),
        }
    }

    /// Removes a folder with all that is in it, or a file; what is gone is no error.
    pub(crate) fn remove_all(&self, path: &Path) -> Result<()> {
        let is_folder = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        if !is_folder {
            return self.remove(path);
        }
        match self.ask(Op::RemoveAll(path)).and_then(|_| fs::remove_dir_all(path)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io(path, "remove", e)),
            _ => Ok(()),
        }
    }

    /// Writes a file whole and durably under a temporary name and gives it its name at the end.
    pub(crate) fn write_new(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = std::path::PathBuf::from(partial);
        // A new file for each try: one whose sync has failed must not be synced again.
        self.remove(&partial)?;
        let file = self.create(&partial)?;
        self.write(&file, &partial, bytes, 0)?;
        self.sync(&file, &partial)?;
        self.rename(&partial, path)
    }
}

fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::write_at(file, bytes, offset);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_write(file, bytes, offset);
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
            Err(e) => return Err(Error::io(path, &format!("allocate {len} bytes"), e.into())),
        }
    }
    file.set_len(len).map_err(|e| Error::io(path, "resize", e))
}

/// Renames to a name that must be free.
pub(crate) fn rename_new(from: &Path, to: &Path) -> Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::EXIST) => return Err(exists(to)),
            // Not every file system has the flag; the check below leaves a short race there.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {}
            Err(e) => return Err(Error::io(to, "rename to", e.into())),
        }
    }
    if to.symlink_metadata().is_ok() {
        return Err(exists(to));
    }
    fs::rename(from, to).map_err(|e| Error::io(to, "rename to", e))
}
