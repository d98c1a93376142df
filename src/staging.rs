//! The folder in which a dataset is built, beside the place where it is going to stand.
//!
//! `.<name>.building` is a sibling of the output, so that the output appears by one rename, whole or
//! not at all, and so that a dataset that is to be replaced stays until the new one is complete.

use crate::error::{Error, ErrorKind, Result, escape_path, quoted};
use crate::folder::{exists, parent, sync_folder};
use crate::manifest::{MANIFEST_NAME, Manifest};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// A claimed building folder; removed with all that is in it unless it is published or kept.
#[derive(Debug)]
pub(crate) struct Staging {
    path: PathBuf,
    target: PathBuf,
    replace: bool,
    remove_on_drop: bool,
    /// Holds the lock of the folder. It goes with the process, and with a rename.
    _lock: Option<File>,
}

impl Staging {
    /// The building folder of the dataset that is going to stand at `target`.
    pub(crate) fn path_for(target: &Path) -> Result<PathBuf> {
        let name = target.file_name().ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidArgument,
                "expected a path with a name for the new dataset, found none",
            )
            .at(target)
        })?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(".building");
        Ok(parent(target).join(hidden))
    }

    /// Claims the building folder for `target`, empty. What a killed writer has left is removed; a
    /// living one is an error.
    pub(crate) fn create(target: &Path, replace: bool) -> Result<Self> {
        check_target(target, replace)?;
        let path = Self::path_for(target)?;
        let lock = claim(&path)?;
        let staging = Self { path, target: target.to_owned(), replace, remove_on_drop: true, _lock: lock };
        staging.clear()?;
        Ok(staging)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn clear(&self) -> Result<()> {
        let at = |e: io::Error| Error::io(&self.path, "clear", e);
        for entry in fs::read_dir(&self.path).map_err(at)? {
            let entry = entry.map_err(at)?;
            let is_dir = entry.file_type().map_err(at)?.is_dir();
            let path = entry.path();
            let result = if is_dir { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            result.map_err(|e| Error::io(&path, "remove", e))?;
        }
        Ok(())
    }

    /// Moves the folder to its target, in one step that no reader sees half of.
    pub(crate) fn publish(mut self, sync: bool) -> Result<PathBuf> {
        check_target(&self.target, self.replace)?;
        let swapped = if self.replace && self.target.symlink_metadata().is_ok() {
            swap(&self.path, &self.target)?;
            true
        } else {
            rename_new(&self.path, &self.target)?;
            false
        };
        // What now stands at the building path, if anything, is the old dataset.
        self.remove_on_drop = swapped;
        if sync {
            sync_folder(parent(&self.target))?;
        }
        Ok(self.target.clone())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if self.remove_on_drop {
            let is_file = self.path.symlink_metadata().is_ok_and(|meta| !meta.is_dir());
            // Nobody is left to tell of a failure; the next writer of this name tries again.
            let _ = if is_file { fs::remove_file(&self.path) } else { fs::remove_dir_all(&self.path) };
        }
    }
}

/// Refuses an output that is there, or that `replace` must not destroy.
pub(crate) fn check_target(target: &Path, replace: bool) -> Result<()> {
    let meta = match target.symlink_metadata() {
        Ok(meta) => meta,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::io(target, "look at", e)),
    };
    if !replace {
        return Err(exists(target));
    }
    let refused = |found: String| {
        Err(Error::new(ErrorKind::Exists, format!("expected a dataset to replace, found {found}"))
            .hint("remove it yourself if nothing in it is needed")
            .at(target))
    };
    if !meta.is_dir() {
        return refused((if meta.is_symlink() { "a symlink" } else { "a file" }).into());
    }
    match foreign_entry(target) {
        Some(entry) => refused(format!("a folder with {} in it", quoted(entry.as_encoded_bytes()))),
        None => Ok(()),
    }
}

/// What stands in a folder and does not belong to the dataset in it, if there is something.
fn foreign_entry(folder: &Path) -> Option<OsString> {
    let manifest =
        fs::read(folder.join(MANIFEST_NAME)).ok().and_then(|bytes| Manifest::from_bytes(&bytes).ok());
    let mut known: Vec<OsString> = Vec::new();
    if let Some(manifest) = manifest {
        known.push(MANIFEST_NAME.into());
        known.extend(manifest.arrays.iter().filter_map(|array| array.folder().ok()).map(OsString::from));
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).find(|name| !known.contains(name))
}

/// Creates and locks the folder at `path`.
fn claim(path: &Path) -> Result<Option<File>> {
    loop {
        match fs::create_dir(path) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(Error::io(path, "create", e)),
        }
        if !cfg!(unix) {
            return Ok(None);
        }
        let folder = match File::open(path) {
            Ok(folder) => folder,
            // Its owner has published or removed it between the two calls.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(Error::io(path, "open", e)),
        };
        match folder.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                return Err(Error::new(ErrorKind::Locked, "expected no other writer, found one at work")
                    .hint("wait for it, or write to another place")
                    .at(path));
            }
            // A network file system may have no locks on folders; it then has no protection
            // against two writers of one name either.
            Err(fs::TryLockError::Error(_)) => return Ok(None),
        }
        if is_same(&folder, path) {
            return Ok(Some(folder));
        }
    }
}

/// Whether the open folder is still the one at `path`.
pub(crate) fn is_same(folder: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        match (folder.metadata(), path.symlink_metadata()) {
            (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
            _ => false,
        }
    }
    #[cfg(not(unix))]
    {
        let _ = (folder, path);
        true
    }
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

/// Exchanges what stands at the two paths.
fn swap(new: &Path, old: &Path) -> Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {}
            Err(e) => return Err(Error::io(old, "rename to", e.into())),
        }
    }
    // Without an exchange there is an instant in which neither stands at the target.
    let mut aside = new.as_os_str().to_owned();
    aside.push(".old");
    let aside = PathBuf::from(aside);
    fs::rename(old, &aside).map_err(|e| Error::io(old, "rename", e))?;
    if let Err(e) = fs::rename(new, old) {
        let back = fs::rename(&aside, old);
        let error = Error::io(old, "rename to", e);
        return Err(if back.is_err() {
            error.hint(format!("the old dataset is now {}", escape_path(&aside)))
        } else {
            error
        });
    }
    fs::rename(&aside, new).map_err(|e| Error::io(new, "rename to", e))
}
