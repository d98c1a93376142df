//! Large arrays as plain `.npy` shards under one manifest.
//!
//! A dataset is a folder: each array is a run of `.npy` files of equal length, and
//! `arrshard.json` says which. [`Builder`] creates one, [`Dataset`] reads it by copy, and
//! [`Dataset::map`] lends every array as one contiguous view over all its shards.
//!
//! ```
//! use arrshard::{Builder, DType, Dataset, WriteOptions};
//! use ndarray::{Array2, Ix2};
//!
//! # fn main() -> arrshard::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("x.arrshard");
//! let x = Array2::from_shape_fn((1000, 3), |(i, j)| (i * 3 + j) as f64);
//! let writer = Builder::new(WriteOptions::new()).array("x", DType::Float64, &[1000, 3]).create(&path)?;
//! writer.write("x", &x.view())?;
//! let dataset = writer.seal()?;
//!
//! // SAFETY: nobody truncates or rewrites the sealed files while they are mapped.
//! let mapped = unsafe { dataset.map() };
//! assert_eq!(mapped.view::<f64, Ix2>("x")?, x);
//! # Ok(())
//! # }
//! ```

mod append;
mod buffer;
mod building;
pub mod checksum;
mod dataset;
mod decompress;
pub mod dtype;
mod encoding;
pub mod error;
mod folder;
mod garbage;
mod generation;
mod input;
mod json;
pub mod layout;
mod lock;
pub mod manifest;
mod map;
mod mapped;
pub mod npy;
mod output;
mod pack;
mod plan;
mod progress;
mod region;
mod repair;
mod seal;
mod shared;
mod staging;
#[doc(hidden)]
pub mod storage;
mod strings;
mod table;
pub mod text;
mod unpack;
mod verify;
mod writer;

pub use append::Appender;
pub use dataset::Dataset;
pub use dtype::{DType, Element};
pub use error::{Error, ErrorKind, Result};
pub use garbage::{Garbage, gc};
pub use generation::{add, append};
pub use input::Input;
pub use manifest::Attributes;
pub use map::Access;
pub use mapped::MappedDataset;
pub use pack::{Format, Mode, PackOptions, Packed, pack};
pub use progress::Progress;
pub use region::{Region, Transfer};
pub use repair::{Repaired, repair};
pub use shared::{ArrayStatus, Shared, Status};
pub use strings::Strings;
pub use unpack::{Output, Target, UnpackOptions, unpack};
pub use verify::{Damage, Report};
pub use writer::{Builder, WriteOptions, Writer};
