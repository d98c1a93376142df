//! From files that are written to a dataset that is there: in an order in which a crash at any
//! point leaves work to go on with, or the whole dataset, and nothing between.

use crate::building::Building;
use crate::checksum::{Sidecar, crc32};
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::layout::ArrayLayout;
use crate::manifest::{ArrayEntry, Attributes, MANIFEST_NAME, Manifest, Naming, ShardEntry};
use crate::npy::header::shard_header;
use crate::storage::Storage;
use rayon::prelude::*;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// An array of which every row is written.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) layout: ArrayLayout,
    /// The checksums of each shard's blocks.
    pub(crate) shards: Vec<Vec<u32>>,
}

/// The checksums of an array all of whose rows are written; else an error with those that are not.
pub(crate) fn finished(building: &Building, array: usize) -> Result<Finished> {
    let layout = building.arrays()[array].layout.clone();
    let shards: Vec<_> = layout.shards().collect();
    let crcs: Option<Vec<Vec<u32>>> = shards
        .into_par_iter()
        .map(|shard| {
            if shard.data_bytes == 0 {
                // Nobody opens a region of it, so its file may not be there.
                building.open_table(array, &shard)?;
            }
            Ok(building.slots(array, &shard)?.into_iter().collect::<Option<Vec<u32>>>())
        })
        .collect::<Result<_>>()?;
    match crcs {
        Some(shards) => Ok(Finished { layout, shards }),
        None => Err(incomplete(building, array)?),
    }
}

/// Names the rows of an array that are missing, and those that somebody is writing.
fn incomplete(building: &Building, array: usize) -> Result<Error> {
    let survey = building.survey(array)?;
    let list = |rows: &[Range<u64>]| {
        let shown: Vec<_> = rows.iter().take(8).map(|r| format!("{}..{}", r.start, r.end)).collect();
        format!("{}{}", shown.join(", "), if rows.len() > 8 { ", …" } else { "" })
    };
    let missing = (!survey.missing.is_empty()).then(|| format!("rows {} missing", list(&survey.missing)));
    let writing =
        (!survey.writing.is_empty()).then(|| format!("rows {} being written", list(&survey.writing)));
    let found: Vec<_> = missing.into_iter().chain(writing).collect();
    Ok(Error::new(
        ErrorKind::Incomplete,
        format!(
            "array {}: expected all rows to be written, found {}",
            quoted(building.arrays()[array].name.as_bytes()),
            found.join(" and ")
        ),
    ))
}

/// Gives every shard of an array its header, its sidecar and its name. What a sealer that was
/// killed has done already is done again to the same effect.
pub(crate) fn seal_array(
    storage: &Storage,
    folder: &Path,
    name: &str,
    attributes: Attributes,
    finished: Finished,
    naming: Naming,
) -> Result<ArrayEntry> {
    let Finished { layout, shards } = finished;
    let jobs: Vec<_> = layout.shards().zip(shards).collect();
    let shards = jobs
        .into_par_iter()
        .map(|(shard, blocks)| {
            let files = ShardFiles::new(folder, &naming.stem(shard.index));
            let header = shard_header(layout.dtype(), &layout.shard_shape(shard.len()));
            let sidecar = Sidecar { row_bytes: layout.by_row().row_bytes, rows: shard.len(), blocks };
            let bytes = sidecar.to_bytes();
            files.seal(storage, &header, &bytes)?;
            Ok(ShardEntry {
                crc32: sidecar.shard_crc(layout.by_row()),
                sidecar_crc32: crc32(&bytes),
                generation: naming.generation,
            })
        })
        .collect::<Result<Vec<_>>>()?;
    storage.sync_folder(folder)?;
    Ok(ArrayEntry { name: name.to_owned(), layout, attributes, shards })
}

/// The names that a shard's files have before and after.
struct ShardFiles {
    partial: PathBuf,
    blocks: PathBuf,
    npy: PathBuf,
    crc: PathBuf,
}

impl ShardFiles {
    fn new(folder: &Path, stem: &str) -> Self {
        let file = |ending: &str| folder.join(format!("{stem}.{ending}"));
        Self { partial: file("npy.partial"), blocks: file("blocks"), npy: file("npy"), crc: file("crc") }
    }

    /// Data first, then the header that makes it an array, then the name that makes it a shard.
    fn seal(&self, storage: &Storage, header: &[u8], sidecar: &[u8]) -> Result<()> {
        let open = |path: &Path| File::options().read(true).write(true).open(path);
        let (path, file) = match open(&self.partial) {
            Ok(file) => (&self.partial, file),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                (&self.npy, open(&self.npy).map_err(|e| Error::io(&self.partial, "open", e))?)
            }
            Err(e) => return Err(Error::io(&self.partial, "open", e)),
        };
        let sync = || storage.sync(&file, path).map_err(|e| self.give_up(storage, e));
        sync()?;
        storage.write(&file, path, header, 0)?;
        sync()?;
        if path == &self.partial {
            storage.rename(path, &self.npy)?;
        }
        storage.write_new(&self.crc, sidecar)
    }

    /// After a sync that failed nobody may trust the file, nor sync it once more: the rows are to be
    /// written into a new one. The table goes first, because it is what says otherwise.
    fn give_up(&self, storage: &Storage, error: Error) -> Error {
        for path in [&self.blocks, &self.partial, &self.npy] {
            let _ = storage.remove(path);
        }
        error.hint("the rows of this shard are lost and must be written again; look after the disk first")
    }
}

/// Writes the manifest and removes what only writers need, so that the folder is the dataset.
pub(crate) fn complete(storage: &Storage, folder: &Path, manifest: &Manifest) -> Result<()> {
    storage.write_new(&folder.join(MANIFEST_NAME), &manifest.to_bytes()?)?;
    storage.sync_folder(folder)?;
    clean(storage, folder, manifest)
}

/// Leaves in the folder what the manifest names and nothing else; the plan goes last.
pub(crate) fn clean(storage: &Storage, folder: &Path, manifest: &Manifest) -> Result<()> {
    let mut keep = HashSet::from([OsString::from(MANIFEST_NAME), crate::plan::PLAN_NAME.into()]);
    for array in &manifest.arrays {
        let name = array.folder()?;
        let path = folder.join(&name);
        let files: HashSet<OsString> = array
            .shards
            .iter()
            .zip(0..)
            .flat_map(|(shard, index)| {
                ["npy", "crc"].map(|ending| format!("{}.{ending}", shard.stem(index)).into())
            })
            .collect();
        remove_others(storage, &path, &files)?;
        storage.sync_folder(&path)?;
        keep.insert(name.into());
    }
    remove_others(storage, folder, &keep)?;
    storage.remove(&folder.join(crate::plan::PLAN_NAME))?;
    storage.sync_folder(folder)
}

fn remove_others(storage: &Storage, folder: &Path, keep: &HashSet<OsString>) -> Result<()> {
    let at = |e: io::Error| Error::io(folder, "list", e);
    for entry in fs::read_dir(folder).map_err(at)? {
        let entry = entry.map_err(at)?;
        if !keep.contains(&entry.file_name()) {
            storage.remove_all(&entry.path())?;
        }
    }
    Ok(())
}
