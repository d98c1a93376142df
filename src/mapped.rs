//! Views of a mapped dataset.

use crate::dataset::{Dataset, check_rows, dimensions, owned, to_usize};
use crate::dtype::Element;
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::layout::ShardLayout;
use crate::manifest::ArrayEntry;
use crate::map::{Access, ArrayMap};
use crate::strings::Strings;
use ndarray::{ArrayD, ArrayView, ArrayViewD, Dimension, IxDyn};
use rayon::prelude::*;
use std::sync::{Arc, OnceLock};

impl Dataset {
    /// Maps the dataset for reading: nothing is read now, and views of its arrays cost nothing.
    ///
    /// # Safety
    ///
    /// While the result or any view of it lives, nobody may truncate or rewrite the dataset's
    /// files. arrshard itself never does: sealed shards are immutable.
    #[allow(unsafe_code)] // Declares the one promise that is asked of users; what it is needed for is in `map`.
    pub unsafe fn map(&self) -> MappedDataset {
        MappedDataset::new(self.clone())
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
        let bytes = self.bytes_of(array)?;
        let view = view::<T>(bytes, array.layout.shape())
            .map_err(|e| self.dataset.check_bools(array, bytes, |at| at).err().unwrap_or(at(e)))?;
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
                let bytes = shard_bytes(&shard);
                let start = shard.rows.start * array.layout.by_row().row_bytes;
                view::<T>(bytes, &array.layout.shard_shape(shard.len())).map_err(|e| {
                    let located = self.dataset.check_bools(array, bytes, |at| start + at).err();
                    located.unwrap_or(e.at(self.dataset.path()))
                })
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
            self.dataset.check_bools(array, out, |at| {
                rows[at as usize / row_bytes] * row_bytes as u64 + at % row_bytes as u64
            })
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
        .map_err(|e| match self.dataset.array(&offsets).and_then(ArrayEntry::folder) {
            Ok(folder) => e.at(self.dataset.path().join(folder)),
            Err(_) => e,
        })
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

/// Row data as a view.
fn view<'a, T: Element>(bytes: &'a [u8], shape: &[u64]) -> Result<ArrayViewD<'a, T>> {
    let values: &[T] = match bytes {
        // Nothing is mapped for nothing, so there is no address that could be aligned.
        [] => &[],
        _ => bytemuck::checked::try_cast_slice(bytes).map_err(|e| {
            Error::new(ErrorKind::Corrupt, format!("expected whole aligned {}, found {e}", T::DTYPE))
        })?,
    };
    ArrayView::from_shape(IxDyn(&to_usize(shape)?), values).map_err(|e| {
        Error::new(
            ErrorKind::Corrupt,
            format!("expected shape {shape:?}, found {} values: {e}", values.len()),
        )
    })
}
