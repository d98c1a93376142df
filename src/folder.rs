//! A folder held open, and the files in it opened relative to it.
//!
//! A dataset may come from a stranger: no symlink is followed below its folder, nothing but a
//! regular file is opened, and opening never blocks (a FIFO would).

use crate::error::{Error, ErrorKind, Result};
use std::fs::File;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    #[cfg(unix)]
    handle: rustix::fd::OwnedFd,
}

impl Folder {
    /// Opens the folder at `path`, which may itself be a symlink: the user named it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        #[cfg(unix)]
        {
            use rustix::fs::{Mode, OFlags};
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let handle =
                rustix::fs::open(path, flags, Mode::empty()).map_err(|e| folder_error(path, e.into()))?;
            Ok(Self { path: path.to_owned(), handle })
        }
        #[cfg(not(unix))]
        {
            let meta = std::fs::metadata(path).map_err(|e| folder_error(path, e))?;
            if !meta.is_dir() {
                return Err(folder_error(path, io::Error::from(io::ErrorKind::NotADirectory)));
            }
            Ok(Self { path: path.to_owned() })
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the folder `name` in this one.
    pub(crate) fn open_folder(&self, name: &str) -> Result<Self> {
        let path = self.path.join(name);
        #[cfg(unix)]
        {
            use rustix::fs::{Mode, OFlags};
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match rustix::fs::openat(&self.handle, name, flags, Mode::empty()) {
                Ok(handle) => Ok(Self { path, handle }),
                Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => {
                    Err(unexpected(&path, "a folder", "something else"))
                }
                Err(e) => Err(Error::io(&path, "open", e.into())),
            }
        }
        #[cfg(not(unix))]
        {
            let meta = std::fs::symlink_metadata(&path).map_err(|e| Error::io(&path, "open", e))?;
            if !meta.is_dir() {
                return Err(unexpected(&path, "a folder", "something else"));
            }
            Ok(Self { path })
        }
    }

    /// Opens the regular file `name` in this folder for reading; also gives its length.
    pub(crate) fn open_file(&self, name: &str) -> Result<(File, u64)> {
        let path = self.path.join(name);
        #[cfg(unix)]
        let file = {
            use rustix::fs::{Mode, OFlags};
            let flags =
                OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
            match rustix::fs::openat(&self.handle, name, flags, Mode::empty()) {
                Ok(handle) => File::from(handle),
                Err(rustix::io::Errno::LOOP) => return Err(unexpected(&path, "a regular file", "a symlink")),
                // What a socket, or a device without a driver, says.
                Err(rustix::io::Errno::NXIO | rustix::io::Errno::NODEV | rustix::io::Errno::NOTDIR) => {
                    return Err(unexpected(&path, "a regular file", "something else"));
                }
                Err(e) => return Err(Error::io(&path, "open", e.into())),
            }
        };
        #[cfg(not(unix))]
        let file = {
            let meta = std::fs::symlink_metadata(&path).map_err(|e| Error::io(&path, "open", e))?;
            if !meta.is_file() {
                return Err(unexpected(&path, "a regular file", "something else"));
            }
            File::open(&path).map_err(|e| Error::io(&path, "open", e))?
        };
        let meta = file.metadata().map_err(|e| Error::io(&path, "stat", e))?;
        if !meta.is_file() {
            return Err(unexpected(&path, "a regular file", "something else"));
        }
        Ok((file, meta.len()))
    }

    /// Opens the regular file `name`, which must have exactly `expected` bytes.
    pub(crate) fn open_exact(&self, name: &str, expected: u64) -> Result<File> {
        let (file, found) = self.open_file(name)?;
        if found == expected {
            return Ok(file);
        }
        let hint = if found < expected {
            "it was truncated after it was sealed"
        } else {
            "it grew after it was sealed"
        };
        Err(Error::new(ErrorKind::Corrupt, format!("expected {expected} bytes, found {found}"))
            .hint(hint)
            .at(self.path.join(name)))
    }

    /// Reads the file `name` whole if its length is one of `allowed`.
    pub(crate) fn read(&self, name: &str, allowed: RangeInclusive<u64>) -> Result<Vec<u8>> {
        let path = self.path.join(name);
        let (file, len) = self.open_file(name)?;
        let wrong = |found: u64| {
            let (least, most) = (allowed.start(), allowed.end());
            let expected = if least == most { least.to_string() } else { format!("{least} to {most}") };
            Error::new(ErrorKind::Corrupt, format!("expected {expected} bytes, found {found}")).at(&path)
        };
        if !allowed.contains(&len) {
            return Err(wrong(len));
        }
        let mut bytes = Vec::with_capacity(len as usize);
        // A file that grows meanwhile must not fill the memory.
        file.take(allowed.end() + 1).read_to_end(&mut bytes).map_err(|e| Error::io(&path, "read", e))?;
        if !allowed.contains(&(bytes.len() as u64)) {
            return Err(wrong(bytes.len() as u64));
        }
        Ok(bytes)
    }
}

fn unexpected(path: &Path, expected: &str, found: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("expected {expected}, found {found}")).at(path)
}

fn folder_error(path: &Path, source: io::Error) -> Error {
    if source.kind() == io::ErrorKind::NotADirectory {
        return Error::new(ErrorKind::NotFound, "expected a dataset folder, found a file").at(path);
    }
    Error::io(path, "open", source)
}

/// Reads exactly `buf.len()` bytes at `offset`; `path` is for the error.
pub(crate) fn read_exact_at(file: &File, path: &Path, buf: &mut [u8], offset: u64) -> Result<()> {
    #[cfg(unix)]
    let result = std::os::unix::fs::FileExt::read_exact_at(file, buf, offset);
    #[cfg(windows)]
    let result = {
        let mut done = 0;
        loop {
            match std::os::windows::fs::FileExt::seek_read(file, &mut buf[done..], offset + done as u64) {
                Ok(0) if done < buf.len() => break Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => break Err(e),
            }
            if done == buf.len() {
                break Ok(());
            }
        }
    };
    result.map_err(|e| {
        if e.kind() == io::ErrorKind::UnexpectedEof {
            Error::new(
                ErrorKind::Corrupt,
                format!("expected {} bytes at {offset}, found the end of the file", buf.len()),
            )
            .at(path)
        } else {
            Error::io(path, "read", e)
        }
    })
}

/// Writes all of `buf` at `offset`; `path` is for the error.
pub(crate) fn write_all_at(file: &File, path: &Path, buf: &[u8], offset: u64) -> Result<()> {
    #[cfg(unix)]
    let result = std::os::unix::fs::FileExt::write_all_at(file, buf, offset);
    #[cfg(windows)]
    let result = {
        let mut done = 0;
        loop {
            match std::os::windows::fs::FileExt::seek_write(file, &buf[done..], offset + done as u64) {
                Ok(0) if done < buf.len() => break Err(io::Error::from(io::ErrorKind::WriteZero)),
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => break Err(e),
            }
            if done == buf.len() {
                break Ok(());
            }
        }
    };
    result.map_err(|e| Error::io(path, "write", e))
}

/// Makes the names in the folder at `path` durable.
pub(crate) fn sync_folder(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        let folder = File::open(path).map_err(|e| Error::io(path, "open", e))?;
        folder.sync_all().map_err(|e| Error::io(path, "sync", e))?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// The folder that `path` stands in.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// An error for an output that is already there.
pub(crate) fn exists(path: &Path) -> Error {
    Error::new(ErrorKind::Exists, "already exists").at(path)
}
