//! Reading a sealed dataset: by copy from the files, or as views of a map.

use crate::checksum::Sidecar;
use crate::dtype::Element;
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::folder::{Folder, read_exact_at};
use crate::layout::{ArrayLayout, HEADER_BYTES, ShardLayout};
use crate::manifest::{ArrayEntry, Attributes, MANIFEST_MAX_BYTES, MANIFEST_NAME, Manifest};
use crate::map::{Access, ArrayMap};
use crate::npy::header::shard_header;
use ndarray::{Array, ArrayD, ArrayView, ArrayViewD, Dimension, IxDyn};
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
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let folder = Folder::open(path)?;
        let bytes = folder.read(MANIFEST_NAME, MANIFEST_MAX_BYTES).map_err(|e| match e.kind() {
            ErrorKind::NotFound => Error::new(ErrorKind::Incomplete, "expected a dataset, found no manifest")
                .hint(format!("{MANIFEST_NAME} is written last, when all data is there"))
                .at(path),
            _ => e,
        })?;
        let manifest = Manifest::from_bytes(&bytes).map_err(|e| e.at(path.join(MANIFEST_NAME)))?;
        Ok(Self { folder: Arc::new(folder), manifest: Arc::new(manifest) })
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
        owned(layout, rows.end - rows.start, |out| self.read_into(array, rows, out))
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
            pieces.try_for_each(|(out, &row)| read(out, row))
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
        crate::dtype::fill::<T>(len, |out| self.read_bytes(array, bytes, out)).map_err(|e| e.at(self.path()))
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
            if overlap.is_empty() {
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
        let bytes = self.folder.read(&name, Sidecar::file_bytes(layout.by_row(), rows))?;
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

/// A dataset mapped for reading: owned, `Send + Sync + 'static`, it lends views of its arrays.
///
/// An array is mapped when it is first asked for; clones share the map.
#[derive(Debug, Clone)]
pub struct MappedDataset {
    dataset: Dataset,
    maps: Arc<[OnceLock<ArrayMap>]>,
}

impl MappedDataset {
    pub(crate) fn new(dataset: Dataset) -> Self {
        let maps = dataset.arrays().iter().map(|_| OnceLock::new()).collect();
        Self { dataset, maps }
    }

    /// The dataset that is mapped.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// The array `name` as one view over all its shards, without a copy.
    ///
    /// The number of dimensions `D` is fixed (`Ix2`) or dynamic (`IxDyn`).
    ///
    /// # Errors
    ///
    /// `NotFound`, `TypeMismatch` for another `T`, `InvalidArgument` for another number of
    /// dimensions, `Corrupt` for a shard whose file is not as it was sealed, and `Unsupported`
    /// where the system's pages are larger than the format's ([`Self::shards`] works there).
    pub fn view<T: Element, D: Dimension>(&self, name: &str) -> Result<ArrayView<'_, T, D>> {
        let array = self.dataset.typed::<T>(name)?;
        let at = |e: Error| e.at(self.dataset.path());
        let view = view::<T>(self.bytes_of(array)?, array.layout.shape()).map_err(at)?;
        let shape = view.shape().to_vec();
        view.into_dimensionality::<D>().map_err(|_| at(dimensions::<D>(name, &shape)))
    }

    /// The array `name` as one view a shard, in order.
    pub fn shards<T: Element>(&self, name: &str) -> Result<Vec<ArrayViewD<'_, T>>> {
        let array = self.dataset.typed::<T>(name)?;
        let map = self.map_of(array)?;
        let shard_bytes = |shard: &ShardLayout| match map {
            #[cfg(unix)]
            ArrayMap::Contiguous(all) => {
                let start = (shard.rows.start * array.layout.by_row().row_bytes) as usize;
                &all.bytes()[start..start + shard.data_bytes as usize]
            }
            ArrayMap::Separate(maps) => &maps[shard.index as usize],
        };
        array
            .layout
            .shards()
            .map(|shard| {
                view::<T>(shard_bytes(&shard), &array.layout.shard_shape(shard.len()))
                    .map_err(|e| e.at(self.dataset.path()))
            })
            .collect()
    }

    /// Copies the rows with these numbers, in this order, in parallel: shape (`rows.len()`, …).
    pub fn take<T: Element>(&self, name: &str, rows: &[u64]) -> Result<ArrayD<T>> {
        let array = self.dataset.typed::<T>(name)?;
        let layout = &array.layout;
        check_rows(layout, name, rows).map_err(|e| e.at(self.dataset.path()))?;
        let bytes = self.bytes_of(array)?;
        let row_bytes = layout.by_row().row_bytes as usize;
        owned(layout, rows.len() as u64, |out| {
            let pieces = out.par_chunks_mut(row_bytes.max(1)).with_min_len(64).zip(rows.par_iter());
            pieces.for_each(|(out, &row)| {
                let start = row as usize * row_bytes;
                out.copy_from_slice(&bytes[start..start + row_bytes]);
            });
            Ok(())
        })
        .map_err(|e| e.at(self.dataset.path()))
    }

    /// The string array `name`.
    pub fn strings(&self, name: &str) -> Result<Strings<'_>> {
        if !self.dataset.manifest().strings.iter().any(|s| s == name) {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("expected a string array of the dataset, found {}", quoted(name.as_bytes())),
            )
            .at(self.dataset.path()));
        }
        let (offsets, bytes) = (format!("{name}.offsets"), format!("{name}.bytes"));
        let slice =
            |e| Error::new(ErrorKind::Corrupt, format!("expected string halves in one piece, found {e:?}"));
        Strings::new(
            self.view::<u64, ndarray::Ix1>(&offsets)?.to_slice().ok_or_else(|| slice("strides"))?,
            self.view::<u8, ndarray::Ix1>(&bytes)?.to_slice().ok_or_else(|| slice("strides"))?,
        )
        .map_err(|e| e.at(self.dataset.path().join(offsets)))
    }

    /// Tells the system how the array `name` is about to be read.
    pub fn advise(&self, name: &str, access: Access) -> Result<()> {
        match self.map_of(self.dataset.array(name)?)? {
            #[cfg(unix)]
            ArrayMap::Contiguous(all) => all.advise(access),
            ArrayMap::Separate(_) => {}
        }
        Ok(())
    }

    /// The row data of an array in one piece.
    pub(crate) fn bytes_of(&self, array: &ArrayEntry) -> Result<&[u8]> {
        match self.map_of(array)? {
            #[cfg(unix)]
            ArrayMap::Contiguous(all) => Ok(all.bytes()),
            ArrayMap::Separate(maps) => match &maps[..] {
                [] => Ok(&[]),
                [one] => Ok(one),
                _ => Err(Error::new(
                    ErrorKind::Unsupported,
                    format!(
                        "expected pages of at most 4096 bytes to map {} shards as one, found larger ones",
                        maps.len()
                    ),
                )
                .hint("shards() gives each by itself, read() copies")
                .at(self.dataset.path())),
            },
        }
    }

    fn map_of(&self, array: &ArrayEntry) -> Result<&ArrayMap> {
        let position = self.dataset.arrays().iter().position(|a| std::ptr::eq(a, array)).unwrap_or(0);
        let slot = &self.maps[position];
        if let Some(map) = slot.get() {
            return Ok(map);
        }
        let files = self.dataset.open_array(array)?;
        let map = ArrayMap::new(
            array.layout.nbytes(),
            array.layout.shards().map(|shard| Ok((files.open(shard.index)?, shard.data_bytes))),
        )
        .map_err(|e| e.at(files.path(0, "npy")))?;
        Ok(slot.get_or_init(|| map))
    }
}

/// A view of strings kept as offsets and bytes, as Arrow's LargeUtf8.
#[derive(Debug, Clone, Copy)]
pub struct Strings<'a> {
    offsets: &'a [u64],
    bytes: &'a [u8],
}

impl<'a> Strings<'a> {
    /// String `i` is `bytes[offsets[i]..offsets[i + 1]]`.
    pub(crate) fn new(offsets: &'a [u64], bytes: &'a [u8]) -> Result<Self> {
        match (offsets.first(), offsets.last()) {
            (Some(0), Some(&end)) if end == bytes.len() as u64 => Ok(Self { offsets, bytes }),
            (first, last) => Err(Error::new(
                ErrorKind::Corrupt,
                format!("expected offsets from 0 to {}, found {first:?} to {last:?}", bytes.len()),
            )),
        }
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// String `i`, counted from 0.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` behind the last; `Corrupt` if its offsets run backwards or past the end, or
    /// its bytes are not UTF-8.
    pub fn get(&self, i: usize) -> Result<&'a str> {
        let (Some(&start), Some(&end)) = (self.offsets.get(i), self.offsets.get(i.saturating_add(1))) else {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("expected a string below {}, found {i}", self.len()),
            ));
        };
        let bytes = usize::try_from(start)
            .ok()
            .zip(usize::try_from(end).ok())
            .and_then(|(start, end)| self.bytes.get(start..end))
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::Corrupt,
                    format!(
                        "string {i}: expected offsets that grow up to {}, found {start}..{end}",
                        self.bytes.len()
                    ),
                )
            })?;
        std::str::from_utf8(bytes).map_err(|_| {
            Error::new(ErrorKind::Corrupt, format!("string {i}: expected UTF-8, found {}", quoted(bytes)))
        })
    }

    /// All strings in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<&'a str>> + '_ {
        (0..self.len()).map(|i| self.get(i))
    }
}

pub(crate) fn to_usize(shape: &[u64]) -> Result<Vec<usize>> {
    shape.iter().map(|&dim| usize::try_from(dim).map_err(|_| crate::layout::too_large(shape))).collect()
}

/// Row data as a view; bool bytes are checked here.
fn view<'a, T: Element>(bytes: &'a [u8], shape: &[u64]) -> Result<ArrayViewD<'a, T>> {
    let values: &[T] = match bytes {
        // Nothing is mapped for nothing, so there is no address that could be aligned.
        [] => &[],
        _ => bytemuck::checked::try_cast_slice(bytes).map_err(|e| cast_error::<T>(bytes, e))?,
    };
    ArrayView::from_shape(IxDyn(&to_usize(shape)?), values).map_err(|e| {
        Error::new(
            ErrorKind::Corrupt,
            format!("expected shape {shape:?}, found {} values: {e}", values.len()),
        )
    })
}

/// An owned array of `rows` rows whose bytes are put in by `with`; bool bytes are checked here.
fn owned<T: Element>(
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

fn cast_error<T: Element>(bytes: &[u8], error: bytemuck::checked::CheckedCastError) -> Error {
    match bytes.iter().position(|&b| b > 1).filter(|_| T::DTYPE == crate::DType::Bool) {
        Some(at) => Error::new(
            ErrorKind::Corrupt,
            format!("element {at}: expected a bool of 0 or 1, found {}", bytes[at]),
        ),
        None => Error::new(ErrorKind::Corrupt, format!("expected whole aligned {}, found {error}", T::DTYPE)),
    }
}

fn check_rows(layout: &ArrayLayout, name: &str, rows: &[u64]) -> Result<()> {
    match rows.iter().find(|&&row| row >= layout.rows()) {
        Some(row) => Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("array {}: expected rows below {}, found {row}", quoted(name.as_bytes()), layout.rows()),
        )),
        None => Ok(()),
    }
}

fn dimensions<D: Dimension>(name: &str, shape: &[usize]) -> Error {
    let expected = D::NDIM.map_or_else(|| "any".to_owned(), |n| n.to_string());
    Error::new(
        ErrorKind::InvalidArgument,
        format!("array {}: expected {expected} dimensions, found shape {shape:?}", quoted(name.as_bytes())),
    )
}
