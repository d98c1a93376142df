//! Files of a dataset that its manifest has no use for: what older generations named, and what killed
//! writers have left.

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::generation::Next;
use crate::manifest::{MANIFEST_NAME, Manifest, name_of_folder, shard_of_file};
use crate::storage::Storage;
use crate::writer::WriteOptions;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Files that [`gc`] has removed, or would.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Garbage {
    /// Their paths, in order.
    pub files: Vec<PathBuf>,
    /// Their lengths together, in bytes.
    pub bytes: u64,
}

/// Removes the files of the dataset in the folder `path` that only older generations name, and those that
/// killed writers have left there. With `dry_run` nothing is removed. Files whose names are not those of
/// shards stay.
///
/// Who has opened an older generation and mapped or opened its arrays goes on with them; who has not
/// yet will not find them any more.
///
/// # Errors
///
/// `Locked` if somebody is writing the next generation; else as [`Dataset::open`].
pub fn gc(path: impl AsRef<Path>, dry_run: bool, options: &WriteOptions) -> Result<Garbage> {
    if dry_run {
        let dataset = Dataset::open(path)?;
        return Garbage::of(dataset.path(), dataset.manifest(), false);
    }
    let next = Next::claim(path.as_ref(), options)?;
    let (dataset, storage) = (next.base().clone(), options.storage());
    let garbage = Garbage::of(dataset.path(), dataset.manifest(), false)?;
    // A power cut must not lose the manifest that makes them garbage.
    storage.sync_folder(dataset.path())?;
    garbage.remove(&storage, dataset.path())?;
    next.end_if_published()?;
    Ok(garbage)
}

impl Garbage {
    /// Files of shards of generations that `manifest` does not know yet; unless `only_begun`, also those that
    /// newer ones have taken the place of.
    pub(crate) fn of(root: &Path, manifest: &Manifest, only_begun: bool) -> Result<Self> {
        let mut all = Self::default();
        let at = |e| Error::io(root, "list", e);
        for entry in fs::read_dir(root).map_err(at)? {
            let entry = entry.map_err(at)?;
            let (name, path) = (entry.file_name(), entry.path());
            let Some(name) = name.to_str() else { continue };
            if name.strip_suffix(".partial") == Some(MANIFEST_NAME) {
                all.push(path)?;
                continue;
            }
            let Some(array) = name_of_folder(name) else { continue };
            if !entry.file_type().map_err(at)?.is_dir() {
                continue;
            }
            // An array that a repair could not tell is not garbage, nor are shards behind those that it could.
            let shards = manifest.array(&array).map(|array| &array.shards[..]).unwrap_or_default();
            for entry in fs::read_dir(&path).map_err(at)? {
                let entry = entry.map_err(at)?;
                let name = entry.file_name();
                let Some(name) = name.to_str() else { continue };
                let whole = name.strip_suffix(".partial").unwrap_or(name);
                let Some((index, generation, ending)) = shard_of_file(whole) else { continue };
                let is_shard = matches!(ending, "npy" | "crc" | "blocks");
                if !is_shard || !entry.file_type().map_err(at)?.is_file() {
                    continue;
                }
                let live = usize::try_from(index).ok().and_then(|index| shards.get(index));
                let is_begun = generation > manifest.generation;
                let is_old = live.is_some_and(|shard| shard.generation > generation);
                let is_scrap = !shards.is_empty() && (name != whole || ending == "blocks");
                if is_begun || !only_begun && (is_old || is_scrap) {
                    all.push(entry.path())?;
                }
            }
        }
        all.files.sort();
        Ok(all)
    }

    fn push(&mut self, path: PathBuf) -> Result<()> {
        let meta = path.symlink_metadata().map_err(|e| Error::io(&path, "look at", e))?;
        self.bytes += meta.len();
        self.files.push(path);
        Ok(())
    }

    pub(crate) fn remove(&self, storage: &Storage, root: &Path) -> Result<()> {
        for path in &self.files {
            storage.remove(path)?;
        }
        // The folder of an array that never came to be is empty now.
        let folders: HashSet<&Path> = self.files.iter().filter_map(|path| path.parent()).collect();
        for folder in folders.into_iter().filter(|folder| *folder != root) {
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }
}
