//! Where output goes: a file that gets its name when it is whole, or a stream.

use super::Output;
use crate::error::{Error, ErrorKind, Result, escape_path};
use crate::folder::{exists, parent, sync_folder};
use crate::staging::is_same;
use crate::storage::rename_new;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What an output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place<'a> {
    /// A regular file that is to be.
    File(&'a Path),
    /// A FIFO or a character device that is there.
    Device(&'a Path),
    Stdout,
}

impl<'a> Place<'a> {
    pub(super) fn of(output: &'a Output) -> Self {
        let path = match output {
            Output::Stdout => return Place::Stdout,
            Output::Path(path) => path,
        };
        #[cfg(unix)]
        {
            use std::os::unix::fs::FileTypeExt;
            // Behind it may be a file that the shell has opened, which is not to be replaced.
            if path == Path::new("/dev/stdout") || path == Path::new("/dev/fd/1") {
                return Place::Stdout;
            }
            let kind = fs::metadata(path).map(|meta| meta.file_type());
            if kind.is_ok_and(|kind| kind.is_fifo() || kind.is_char_device()) {
                return Place::Device(path);
            }
        }
        Place::File(path)
    }
}

/// What can only be written from start to end.
#[derive(Debug)]
pub(super) struct Stream {
    file: File,
    name: PathBuf,
}

impl Stream {
    /// Opens standard output, past the line buffer of the standard library.
    pub(super) fn stdout() -> Result<Self> {
        let name = PathBuf::from("standard output");
        #[cfg(unix)]
        let handle = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned();
        #[cfg(windows)]
        let handle = std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned();
        let file = handle.map_err(|e| Error::io(&name, "open", e))?.into();
        Ok(Self { file, name })
    }

    /// Opens a FIFO, which may wait for its reader, or a device.
    pub(super) fn device(path: &Path) -> Result<Self> {
        let file = File::options().write(true).open(path).map_err(|e| Error::io(path, "open", e))?;
        Ok(Self { file, name: path.to_owned() })
    }

    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| Error::io(&self.name, "write", e))
    }
}

/// A file under a name of its own beside its target; removed unless it is published.
#[derive(Debug)]
pub(super) struct Partial {
    path: PathBuf,
    target: PathBuf,
    replace: bool,
    /// Locked for as long as it is open.
    file: Option<File>,
    published: bool,
}

impl Partial {
    /// Creates `.<name>.partial`. What a killed writer has left there is removed; a living one is an
    /// error.
    pub(super) fn create(target: &Path, replace: bool) -> Result<Self> {
        check_file(target, replace)?;
        let name = target.file_name().ok_or_else(|| {
            Error::new(ErrorKind::InvalidArgument, "expected a path with a name for the new file, found none")
                .at(target)
        })?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(".partial");
        let path = parent(target).join(hidden);
        let file = claim(&path, target)?;
        Ok(Self { path, target: target.to_owned(), replace, file: Some(file), published: false })
    }

    /// The path that it is going to have.
    pub(super) fn target(&self) -> &Path {
        &self.target
    }

    pub(super) fn file(&self) -> Result<&File> {
        self.file.as_ref().ok_or_else(|| Error::new(ErrorKind::Io, "expected an open file").at(&self.target))
    }

    pub(super) fn write(&self, bytes: &[u8]) -> Result<()> {
        self.file()?.write_all(bytes).map_err(|e| Error::io(&self.target, "write", e))
    }

    pub(super) fn sync(&self) -> Result<()> {
        self.file()?.sync_all().map_err(|e| Error::io(&self.target, "sync", e))
    }

    /// Closes it, and gives up its lock; for those who make more files than a process may have open.
    pub(super) fn close(&mut self) {
        self.file = None;
    }

    fn publish(&mut self) -> Result<()> {
        if self.replace {
            check_file(&self.target, true)?;
            fs::rename(&self.path, &self.target).map_err(|e| Error::io(&self.target, "rename to", e))?;
        } else {
            rename_new(&self.path, &self.target)?;
        }
        self.published = true;
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.published {
            // Nobody is left to tell of a failure; the next writer of this name tries again.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Gives finished files their names: all of them, or none that was not there before.
pub(super) fn publish(mut partials: Vec<Partial>, sync: bool) -> Result<()> {
    for i in 0..partials.len() {
        if let Err(error) = partials[i].publish() {
            for earlier in partials[..i].iter().filter(|earlier| !earlier.replace) {
                let _ = fs::remove_file(&earlier.target);
            }
            return Err(error);
        }
    }
    match partials.first() {
        Some(first) if sync => sync_folder(parent(&first.target)),
        _ => Ok(()),
    }
}

/// Refuses an output that is there, or that `replace` must not destroy.
pub(super) fn check_file(target: &Path, replace: bool) -> Result<()> {
    let kind = match target.symlink_metadata() {
        Ok(meta) => meta.file_type(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::io(target, "look at", e)),
    };
    if !replace {
        return Err(exists(target));
    }
    if kind.is_file() || kind.is_symlink() {
        return Ok(());
    }
    let found = if kind.is_dir() { "a folder" } else { "a device" };
    Err(Error::new(ErrorKind::Exists, format!("expected a file to replace, found {found}")).at(target))
}

/// Creates and locks the file at `path`.
fn claim(path: &Path, target: &Path) -> Result<File> {
    let locked = || {
        Error::new(ErrorKind::Locked, "expected no other writer, found one at work")
            .hint(format!("wait for it, or remove {} if there is none", escape_path(path)))
            .at(target)
    };
    loop {
        match File::options().read(true).write(true).create_new(true).open(path) {
            Ok(file) => match file.try_lock() {
                // Where there are no locks there is no protection against two writers either.
                Ok(()) | Err(TryLockError::Error(_)) if is_same(&file, path) => return Ok(file),
                // Another writer took it for one that was left behind.
                _ => continue,
            },
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(Error::io(target, "create", e)),
        }
        if !path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            if path.symlink_metadata().is_ok() {
                return Err(exists(path));
            }
            continue;
        }
        let left = match File::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(Error::io(path, "open", e)),
        };
        if left.try_lock().is_err() {
            return Err(locked());
        }
        if is_same(&left, path) {
            fs::remove_file(path).map_err(|e| Error::io(path, "remove", e))?;
        }
    }
}
