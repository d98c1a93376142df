//! Large arrays as plain `.npy` shards under one manifest.

pub mod dtype;
pub mod error;
pub mod text;

pub use dtype::{DType, Element};
pub use error::{Error, ErrorKind, Result};
