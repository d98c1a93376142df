//! The folder in which a dataset is built, beside the place where it is going to stand.
//!
//! `.<name>.building` is a sibling of the output, so that the output appears by one rename, whole or
//! not at all, and so that a dataset that is to be replaced stays until the new one is complete.

use crate::error::{Error, ErrorKind, Result, escape_path, quoted};
use crate::folder::{exists, parent};
use crate::manifest::{MANIFEST_NAME, Manifest};
use crate::storage::Storage;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// In a dataset that is being replaced: it is no longer one that its folder's new place could mean.
pub(crate) const REPLACED_NAME: &str = ".replaced";

/// A building folder claimed by one writer alone; removed with all that is in it unless it is published or kept.
#[derive(Debug)]
pub(crate) struct Staging {
    path: PathBuf,
    target: PathBuf,
    replace: bool,
    remove_on_drop: bool,
    storage: Storage,
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
    pub(crate) fn create(target: &Path, replace: bool, storage: Storage) -> Result<Self> {
        check_target(target, replace)?;
        let path = Self::path_for(target)?;
        let lock = claim(&path, &storage)?;
        clear(&path, &storage)?;
        Ok(Self { path, target: target.to_owned(), replace, remove_on_drop: true, storage, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the folder to its target, in one step that no reader sees half of.
    pub(crate) fn publish(mut self) -> Result<PathBuf> {
        publish(&self.path, &self.target, self.replace, &self.storage)?;
        self.remove_on_drop = false;
        Ok(self.target.clone())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if self.remove_on_drop {
            // Nobody is left to tell of a failure; the next writer of this name tries again.
            let _ = self.storage.remove_all(&self.path);
        }
    }
}

/// Removes all that is in the folder.
pub(crate) fn clear(path: &Path, storage: &Storage) -> Result<()> {
    let at = |e: io::Error| Error::io(path, "clear", e);
    // First what says that the rest can be trusted.
    storage.remove(&path.join(crate::plan::PLAN_NAME))?;
    storage.remove(&path.join(MANIFEST_NAME))?;
    for entry in fs::read_dir(path).map_err(at)? {
        storage.remove_all(&entry.map_err(at)?.path())?;
    }
    Ok(())
}

/// Moves the complete dataset at `building` to `target`, in one step that no reader sees half of, and
/// removes what stood there.
pub(crate) fn publish(building: &Path, target: &Path, replace: bool, storage: &Storage) -> Result<()> {
    check_target(target, replace)?;
    if replace && target.symlink_metadata().is_ok() {
        // Once exchanged, the old dataset stands at the building path. Were the process killed then,
        // it must not be taken for a new one whose rename is still to come.
        if target.is_dir() {
            let mark = target.join(REPLACED_NAME);
            storage.remove(&mark)?;
            storage.create(&mark)?;
            storage.sync_folder(target)?;
        }
        swap(building, target, storage)?;
        storage.sync_folder(parent(target))?;
        let _ = storage.remove_all(building);
    } else {
        storage.rename_new(building, target)?;
        storage.sync_folder(parent(target))?;
    }
    Ok(())
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
    // A killed writer may have marked it as replaced before it was.
    let mut known = vec![OsString::from(REPLACED_NAME), crate::repair::ASIDE_NAME.into()];
    if let Some(manifest) = manifest {
        known.push(MANIFEST_NAME.into());
        known.extend(manifest.arrays.iter().filter_map(|array| array.folder().ok()).map(OsString::from));
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).find(|name| !known.contains(name))
}

/// Creates and locks the folder at `path`.
pub(crate) fn claim(path: &Path, storage: &Storage) -> Result<Option<File>> {
    loop {
        storage.create_folder(path)?;
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

/// Whether the open file or folder is still the one at `path`.
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

/// Exchanges what stands at the two paths.
fn swap(new: &Path, old: &Path, storage: &Storage) -> Result<()> {
    if storage.exchange(new, old)? {
        return Ok(());
    }
    // Without an exchange there is an instant in which neither stands at the target.
    let mut aside = new.as_os_str().to_owned();
    aside.push(".old");
    let aside = PathBuf::from(aside);
    storage.rename(old, &aside)?;
    if let Err(error) = storage.rename(new, old) {
        let back = storage.rename(&aside, old);
        return Err(if back.is_err() {
            error.hint(format!("the old dataset is now {}", escape_path(&aside)))
        } else {
            error
        });
    }
    storage.rename(&aside, new)
}
