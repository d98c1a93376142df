//! A dataset, or an array of it, into files that other programs read.

use crate::dataset::Dataset;
use crate::error::{Error, ErrorKind, Result};
use crate::progress::Progress;
use std::ops::Range;
use std::path::PathBuf;

/// Where [`unpack`] writes to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// A file; with parts, the start of their names.
    Path(PathBuf),
    /// Standard output.
    Stdout,
}

/// What [`unpack`] writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// One array as NumPy's array file.
    Npy,
    /// Arrays as NumPy's archive, not compressed.
    Npz,
    /// Rows of text, fields separated by tabs.
    Tsv,
    /// Rows of text, fields separated by commas and quoted where needed.
    Csv,
}

/// What of a dataset to write, and how.
#[derive(Debug, Clone, Default)]
pub struct UnpackOptions {
    /// What to write; by the extension of the output if not given.
    pub to: Option<Target>,
    /// The array to write; all that go together if not given.
    pub array: Option<String>,
    /// The rows to write; all if not given.
    pub rows: Option<Range<u64>>,
    /// printf formats as `np.savetxt` takes them; the shortest digits that read back if not given.
    pub fmt: Option<String>,
    /// What separates fields of text, if not what `to` says.
    pub delimiter: Option<String>,
    /// Whether the first line of text has the names of the columns.
    pub header: bool,
    /// In how many files, `OUT.0` … `OUT.N-1`, text is written.
    pub parts: Option<u64>,
    /// Whether files that are there are replaced.
    pub replace: bool,
    /// Whether files are synced before they get their names.
    pub sync: bool,
}

/// Writes `dataset`, or what `options` choose of it, to `output`: whole or not at all.
pub fn unpack(
    dataset: &Dataset,
    output: &Output,
    options: &UnpackOptions,
    progress: &Progress,
) -> Result<()> {
    let _ = (dataset, output, options, progress);
    Err(Error::new(ErrorKind::Unsupported, "expected unpack, found none yet"))
}
