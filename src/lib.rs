//! Large arrays as plain `.npy` shards under one manifest.

pub mod checksum;
pub mod dtype;
pub mod error;
mod json;
pub mod layout;
pub mod manifest;

pub use dtype::{DType, Element};
pub use error::{Error, ErrorKind, Result};
