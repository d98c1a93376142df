//! Reading a sealed dataset: by copy from the files, or as views of a map.

use crate::checksum::Sidecar;
use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::folder::{Folder, read_exact_at};
use crate::layout::{ArrayLayout, HEADER_BYTES};
use crate::manifest::{
    ArrayEntry, Attributes, MANIFEST_MAX_BYTES, MANIFEST_NAME, MANIFEST_PREFIX_BYTES, Manifest,
};
use crate::npy::header::shard_header;
use crate::staging::Staging;
use ndarray::{Array, ArrayD, Dimension, IxDyn};
use rayon::prelude::*;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// An open dataset. Opening reads the manifest and nothing else; clones are cheap.
#[derive(Debug, Clone)]
pub struct Dataset {
    folder: Arc<Folder>,
    manifest: Arc<Manifest>,
}

impl Dataset {
    /// Opens the dataset in the folder `path`.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is none, `Incomplete` if it is still being written, `Unsupported` if a
    /// newer arrshard has written it, `Corrupt` if its manifest breaks a rule of the format, `Io`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let folder = Folder::open(path).map_err(|e| absent(path, e))?;
        let allowed = MANIFEST_PREFIX_BYTES as u64..=MANIFEST_MAX_BYTES;
        let bytes = folder.read(MANIFEST_NAME, allowed).map_err(|e| match e.kind() {
            ErrorKind::NotFound => {
                let what = format!("expected a dataset, found no {MANIFEST_NAME} in it");
                absent(path, Error::new(ErrorKind::NotFound, what).at(path))
            }
            _ => e,
        })?;
        let manifest = Manifest::from_bytes(&bytes).map_err(|e| e.at(path.join(MANIFEST_NAME)))?;
        Ok(Self { folder: Arc::new(folder), manifest: Arc::new(manifest) })
    }

    /// The dataset that `folder` holds if `manifest` is right.
    pub(crate) fn assume(folder: Folder, manifest: Manifest) -> Self {
        Self { folder: Arc::new(folder), manifest: Arc::new(manifest) }
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// What it consists of.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Free JSON of the dataset.
    pub fn attributes(&self) -> &Attributes {
        &self.manifest.attributes
    }

    /// The arrays in the order of their creation; a string array shows as its two halves.
    pub fn arrays(&self) -> &[ArrayEntry] {
        &self.manifest.arrays
    }

    /// The entry of the array called `name`.
    pub fn array(&self, name: &str) -> Result<&ArrayEntry> {
        self.manifest.array(name).ok_or_else(|| {
            let known: Vec<_> = self.arrays().iter().map(|array| quoted(array.name.as_bytes())).collect();
            Error::new(
                ErrorKind::NotFound,
                format!("expected an array of the dataset, found {}", quoted(name.as_bytes())),
            )
            .hint(format!("it has {}", crate::error::escape(known.join(", ").as_bytes(), 400)))
            .at(self.path())
        })
    }

    /// The entry of the array called `name`, which must hold elements of type `T`.
    pub(crate) fn typed<T: Element>(&self, name: &str) -> Result<&ArrayEntry> {
        let array = self.array(name)?;
        if array.layout.dtype() == T::DTYPE {
            return Ok(array);
        }
        Err(Error::new(
            ErrorKind::TypeMismatch,
            format!(
                "array {}: expected {}, found {}",
                quoted(name.as_bytes()),
                T::DTYPE,
                array.layout.dtype()
            ),
        )
        .at(self.path()))
    }

    /// Opens the files of an array one after the other.
    pub(crate) fn open_array<'a>(&'a self, array: &'a ArrayEntry) -> Result<ArrayFiles<'a>> {
        Ok(ArrayFiles { folder: self.folder.open_folder(&array.folder()?)?, array })
    }

    /// Copies rows `rows` of the array `name` out of its files: shape (`rows`, …).
    ///
    /// Safe where others may truncate or replace files: what can't be read is an error.
    pub fn read_rows<T: Element>(&self, name: &str, rows: Range<u64>) -> Result<ArrayD<T>> {
        let array = self.typed::<T>(name)?;
        let layout = &array.layout;
        if rows.start > rows.end || rows.end > layout.rows() {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("expected rows within 0..{}, found {}..{}", layout.rows(), rows.start, rows.end),
            )
            .at(self.path()));
        }
        let start = rows.start * layout.by_row().row_bytes;
        owned(layout, rows.end - rows.start, |out| {
            self.read_into(array, rows, out)?;
            self.check_bools(array, out, |at| start + at)
        })
        .map_err(|e| e.at(self.path()))
    }

    /// Copies the whole array `name` out of its files.
    pub fn read<T: Element, D: Dimension>(&self, name: &str) -> Result<Array<T, D>> {
        let rows = self.array(name)?.layout.rows();
        let found = self.read_rows::<T>(name, 0..rows)?;
        let shape = found.shape().to_vec();
        found.into_dimensionality::<D>().map_err(|_| dimensions::<D>(name, &shape).at(self.path()))
    }

    /// Copies the rows with these numbers, in this order, in parallel: shape (`rows.len()`, …).
    pub fn take<T: Element>(&self, name: &str, rows: &[u64]) -> Result<ArrayD<T>> {
        let array = self.typed::<T>(name)?;
        let layout = &array.layout;
        check_rows(layout, name, rows).map_err(|e| e.at(self.path()))?;
        let row_bytes = layout.by_row().row_bytes as usize;
        let files = self.open_array(array)?;
        let opened: Vec<OnceLock<File>> = (0..layout.shard_count()).map(|_| OnceLock::new()).collect();
        let read = |out: &mut [u8], row: u64| {
            let shard = row / layout.by_row().rows_per_shard;
            let slot = &opened[shard as usize];
            let file = match slot.get() {
                Some(file) => file,
                None => {
                    let file = files.open(shard)?;
                    slot.get_or_init(|| file)
                }
            };
            let within = row % layout.by_row().rows_per_shard;
            read_exact_at(file, &files.path(shard, "npy"), out, HEADER_BYTES + within * row_bytes as u64)
        };
        owned(layout, rows.len() as u64, |out| {
            let pieces = out.par_chunks_mut(row_bytes.max(1)).zip(rows.par_iter());
            pieces.try_for_each(|(out, &row)| read(out, row))?;
            self.check_bools(array, out, |at| {
                rows[at as usize / row_bytes] * row_bytes as u64 + at % row_bytes as u64
            })
        })
        .map_err(|e| e.at(self.path()))
    }

    /// Copies values out of the files of the array `name`: those with the numbers `values`, counted
    /// in row-major order over the whole array. Reads no other row data.
    ///
    /// # Errors
    ///
    /// As [`Self::read_rows`].
    pub fn read_values<T: Element>(&self, name: &str, values: Range<u64>) -> Result<Vec<T>> {
        let array = self.typed::<T>(name)?;
        let size = T::DTYPE.size();
        let count = array.layout.nbytes() / size;
        if values.start > values.end || values.end > count {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("expected values within 0..{count}, found {}..{}", values.start, values.end),
            )
            .at(self.path()));
        }
        let len = usize::try_from(values.end - values.start)
            .map_err(|_| crate::layout::too_large(array.layout.shape()))?;
        let bytes = values.start * size..values.end * size;
        let start = bytes.start;
        crate::dtype::fill::<T>(len, |out| {
            self.read_bytes(array, bytes, out)?;
            self.check_bools(array, out, |at| start + at)
        })
        .map_err(|e| e.at(self.path()))
    }

    /// Refuses bool bytes other than 0 and 1. Byte `i` of `bytes` is byte `position(i)` of the array.
    pub(crate) fn check_bools(
        &self,
        array: &ArrayEntry,
        bytes: &[u8],
        position: impl Fn(u64) -> u64,
    ) -> Result<()> {
        if array.layout.dtype() != DType::Bool {
            return Ok(());
        }
        let Some(at) = bytes.par_iter().position_first(|&byte| byte > 1) else {
            return Ok(());
        };
        let position = position(at as u64);
        let by_row = array.layout.by_row();
        let shard_bytes = by_row.rows_per_shard * by_row.row_bytes;
        let file = shard_file(array, position / shard_bytes, "npy");
        Err(Error::new(ErrorKind::Corrupt, format!("expected a bool of 0 or 1, found {}", bytes[at]))
            .offset(HEADER_BYTES + position % shard_bytes)
            .at(self.path().join(array.folder()?).join(file)))
    }

    /// Copies the bytes of rows `rows` into `out`, in parallel by pieces of one shard.
    pub(crate) fn read_into(&self, array: &ArrayEntry, rows: Range<u64>, out: &mut [u8]) -> Result<()> {
        let row_bytes = array.layout.by_row().row_bytes;
        self.read_bytes(array, rows.start * row_bytes..rows.end * row_bytes, out)
    }

    /// Copies the bytes `bytes` of all row data into `out`.
    fn read_bytes(&self, array: &ArrayEntry, bytes: Range<u64>, out: &mut [u8]) -> Result<()> {
        let row_bytes = array.layout.by_row().row_bytes;
        let files = self.open_array(array)?;
        let mut rest = out;
        for shard in array.layout.shards() {
            let first = shard.rows.start * row_bytes;
            let overlap = first.max(bytes.start)..(first + shard.data_bytes).min(bytes.end);
            // A shard without data has nothing to read, but may be damaged.
            if overlap.is_empty() && shard.data_bytes > 0 {
                continue;
            }
            let piece;
            (piece, rest) = rest.split_at_mut((overlap.end - overlap.start) as usize);
            let start = HEADER_BYTES + (overlap.start - first);
            let file = files.open(shard.index)?;
            let path = files.path(shard.index, "npy");
            piece.par_chunks_mut(READ_BYTES).enumerate().try_for_each(|(i, chunk)| {
                read_exact_at(&file, &path, chunk, start + (i * READ_BYTES) as u64)
            })?;
        }
        Ok(())
    }
}

/// What is not there may be on its way: `error`, or that.
fn absent(path: &Path, error: Error) -> Error {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let is_staging = |name: &[u8]| {
        name.strip_prefix(b".")
            .and_then(|name| name.strip_suffix(b".building"))
            .is_some_and(|name| !name.is_empty())
    };
    let being_built = whole.file_name().is_some_and(|name| is_staging(name.as_encoded_bytes()))
        || Staging::path_for(&whole)
            .is_ok_and(|staging| staging.is_dir() && !crate::generation::is_begun(&staging));
    if error.kind() != ErrorKind::NotFound || !being_built {
        return error;
    }
    Error::new(ErrorKind::Incomplete, "expected a sealed dataset, found one being written")
        .hint("it appears when its writer has sealed it")
        .at(path)
}

/// What one read call of a parallel copy takes.
const READ_BYTES: usize = 4 << 20;

fn shard_file(array: &ArrayEntry, index: u64, ending: &str) -> String {
    let stem = array.shards.get(index as usize).map(|shard| shard.stem(index)).unwrap_or_default();
    format!("{stem}.{ending}")
}

/// The open folder of an array.
pub(crate) struct ArrayFiles<'a> {
    folder: Folder,
    array: &'a ArrayEntry,
}

impl ArrayFiles<'_> {
    /// The path of a shard's file with this ending.
    pub(crate) fn path(&self, index: u64, ending: &str) -> PathBuf {
        self.folder.path().join(shard_file(self.array, index, ending))
    }

    /// Opens shard `index` and checks all of its structure: a regular file of the exact length
    /// whose header page is, to the byte, the one that the layout demands.
    pub(crate) fn open(&self, index: u64) -> Result<File> {
        let layout = &self.array.layout;
        let shard = layout.shard(index).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidArgument,
                format!("expected one of {} shards, found {index}", layout.shard_count()),
            )
        })?;
        let file = self.folder.open_exact(&shard_file(self.array, index, "npy"), shard.file_bytes())?;
        let path = self.path(index, "npy");
        let mut found = [0; HEADER_BYTES as usize];
        read_exact_at(&file, &path, &mut found, 0)?;
        let expected = shard_header(layout.dtype(), &layout.shard_shape(shard.len()));
        if let Some(at) = found.iter().zip(&expected).position(|(a, b)| a != b) {
            let end = |page: &[u8]| page.iter().rposition(|&b| b != b' ' && b != b'\n').map_or(0, |i| i + 1);
            let text = |page: &[u8]| quoted(page[..end(page)].get(10..).unwrap_or(page));
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!("expected the npy header {}, found {}", text(&expected), text(&found)),
            )
            .offset(at as u64)
            .at(path));
        }
        Ok(file)
    }

    /// Reads the sidecar of shard `index`, whose own checksum stands in the manifest.
    pub(crate) fn sidecar(&self, index: u64) -> Result<Sidecar> {
        let layout = &self.array.layout;
        let name = shard_file(self.array, index, "crc");
        let rows = layout.shard(index).map_or(0, |shard| shard.len());
        let len = Sidecar::file_bytes(layout.by_row(), rows);
        let bytes = self.folder.read(&name, len..=len)?;
        let at = |e: Error| e.at(self.folder.path().join(&name));
        let sidecar = Sidecar::from_bytes(&bytes, layout.by_row(), rows).map_err(at)?;
        let expected = self.array.shards[index as usize].sidecar_crc32;
        let found = crate::checksum::crc32(&bytes);
        if expected == found {
            return Ok(sidecar);
        }
        Err(at(Error::new(
            ErrorKind::Corrupt,
            format!("expected checksum {expected:08x}, found {found:08x}"),
        )))
    }
}

pub(crate) fn to_usize(shape: &[u64]) -> Result<Vec<usize>> {
    shape.iter().map(|&dim| usize::try_from(dim).map_err(|_| crate::layout::too_large(shape))).collect()
}

/// An owned array of `rows` rows whose bytes are put in by `with`.
pub(crate) fn owned<T: Element>(
    layout: &ArrayLayout,
    rows: u64,
    with: impl FnOnce(&mut [u8]) -> Result<()>,
) -> Result<ArrayD<T>> {
    let mut shape = layout.shard_shape(rows);
    if shape.is_empty() && rows != 1 {
        shape.push(rows);
    }
    crate::layout::array_bytes(T::DTYPE, &shape)?;
    let shape = to_usize(&shape)?;
    let values = crate::dtype::fill::<T>(shape.iter().product(), with)?;
    ArrayD::from_shape_vec(IxDyn(&shape), values)
        .map_err(|e| Error::new(ErrorKind::Corrupt, format!("expected shape {shape:?}, found {e}")))
}

pub(crate) fn check_rows(layout: &ArrayLayout, name: &str, rows: &[u64]) -> Result<()> {
    match rows.iter().find(|&&row| row >= layout.rows()) {
        Some(row) => Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("array {}: expected rows below {}, found {row}", quoted(name.as_bytes()), layout.rows()),
        )),
        None => Ok(()),
    }
}

pub(crate) fn dimensions<D: Dimension>(name: &str, shape: &[usize]) -> Error {
    let expected = D::NDIM.map_or_else(|| "any".to_owned(), |n| n.to_string());
    Error::new(
        ErrorKind::InvalidArgument,
        format!("array {}: expected {expected} dimensions, found shape {shape:?}", quoted(name.as_bytes())),
    )
}
