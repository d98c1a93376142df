//! Writing `.npz`, as `np.savez` does: members stored without compression, so that they can be mapped or
//! read in parallel.

use super::descr::array_bytes;
use super::header::{MAX_DIMS, npy_header};
use super::npz::{in_member, io_error, zip_error};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, quoted};
use std::cell::Cell;
use std::collections::HashSet;
use std::io::{self, Seek, SeekFrom, Write};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, System, ZipWriter};

/// Writes an archive that `np.load` reads. The same calls give the same bytes: all members carry the date
/// 1980-01-01. An archive that wasn't finished, or in which a member failed, has no directory and is
/// no archive for any reader.
pub struct NpzWriter<W: Write + Seek> {
    /// Gone after an error.
    zip: Option<ZipWriter<Gate<W>>>,
    names: HashSet<String>,
}

impl<W: Write + Seek> NpzWriter<W> {
    /// An archive at the start of `out`, which must be empty.
    pub fn new(out: W) -> Self {
        let gate = Gate { out, position: 0, shut: Cell::new(false) };
        Self { zip: Some(ZipWriter::new(gate)), names: HashSet::new() }
    }

    /// Writes the array `name` of `shape` in C order; `data` hands over its bytes, little-endian, in as many
    /// pieces as it likes.
    ///
    /// # Errors
    /// Exists if there is such an array; invalid argument if `shape` has more than 64 dimensions or 2^63 bytes,
    /// or if `data` gave more or fewer bytes than `shape` asks for; I/O; what `data` returned. After an error
    /// the archive can't be finished any more.
    pub fn member(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[u64],
        data: impl FnOnce(&mut MemberWriter<'_, W>) -> Result<()>,
    ) -> Result<()> {
        let Some(zip) = &mut self.zip else { return Err(failed()) };
        let written = if self.names.insert(name.to_owned()) {
            write_member(zip, name, dtype, shape, data)
        } else {
            let what = format!("expected a new array name, found {} again", quoted(name.as_bytes()));
            Err(Error::new(ErrorKind::Exists, what))
        };
        if written.is_err() {
            self.abandon();
        }
        written
    }

    /// Writes the directory and gives back what was written to. It isn't flushed or synced.
    ///
    /// # Errors
    /// I/O; incomplete if a member failed.
    pub fn finish(mut self) -> Result<W> {
        let zip = self.zip.take().ok_or_else(failed)?;
        Ok(zip.finish().map_err(|error| write_error(&error))?.out)
    }

    /// `ZipWriter` finishes the archive when it is dropped, and prints an error: neither may happen here.
    fn abandon(&mut self) {
        if let Some(gate) = self.zip.as_ref().and_then(ZipWriter::get_ref) {
            gate.shut.set(true);
        }
        self.zip = None;
    }
}

impl<W: Write + Seek> Drop for NpzWriter<W> {
    fn drop(&mut self) {
        self.abandon();
    }
}

fn failed() -> Error {
    Error::new(
        ErrorKind::Incomplete,
        "expected an archive without errors, found one in which a member failed",
    )
}

fn write_member<W: Write + Seek>(
    zip: &mut ZipWriter<Gate<W>>,
    name: &str,
    dtype: DType,
    shape: &[u64],
    data: impl FnOnce(&mut MemberWriter<'_, W>) -> Result<()>,
) -> Result<()> {
    let invalid = |what| in_member(name, Error::new(ErrorKind::InvalidArgument, what));
    if shape.len() > MAX_DIMS {
        return Err(invalid(format!("expected at most {MAX_DIMS} dimensions, found {}", shape.len())));
    }
    let len = array_bytes(shape, dtype.size()).map_err(|dim| {
        invalid(format!("expected an array of less than 2^63 bytes, found dimension {dim}"))
    })?;
    let header = npy_header(dtype, shape);
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(DateTime::default())
        .system(System::Unix)
        .unix_permissions(0o644)
        .large_file(len.saturating_add(header.len() as u64) >= u64::from(u32::MAX));
    zip.start_file(format!("{name}.npy"), options).map_err(|error| in_member(name, write_error(&error)))?;
    let mut writer = MemberWriter { zip, name, left: header.len() as u64 };
    writer.write(&header)?;
    writer.left = len;
    data(&mut writer)?;
    match writer.left {
        0 => Ok(()),
        left => Err(invalid(format!("expected {len} bytes of data, found {}", len - left))),
    }
}

/// Takes the data of one member.
pub struct MemberWriter<'a, W: Write + Seek> {
    zip: &'a mut ZipWriter<Gate<W>>,
    name: &'a str,
    left: u64,
}

impl<W: Write + Seek> MemberWriter<'_, W> {
    /// Appends bytes.
    ///
    /// # Errors
    /// Invalid argument if they are more than the array's shape asks for; I/O.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or_else(|| {
            let what = format!("expected {} more bytes of data, found {}", self.left, bytes.len());
            in_member(self.name, Error::new(ErrorKind::InvalidArgument, what))
        })?;
        self.zip.write_all(bytes).map_err(|error| in_member(self.name, io_error("write", &error)))
    }
}

fn write_error(error: &ZipError) -> Error {
    match error {
        ZipError::Io(error) => io_error("write", error),
        other => zip_error(other),
    }
}

/// Lets everything through until it is shut or an operation fails; from then on nothing, and without an
/// error, so that the destructor of `ZipWriter` has nothing to complain of.
struct Gate<W> {
    out: W,
    position: u64,
    shut: Cell<bool>,
}

impl<W> Gate<W> {
    fn keep<T>(&self, done: io::Result<T>) -> io::Result<T> {
        let passing = |error: &io::Error| error.kind() == io::ErrorKind::Interrupted;
        if done.as_ref().is_err_and(|error| !passing(error)) {
            self.shut.set(true);
        }
        done
    }
}

impl<W: Write> Write for Gate<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.shut.get() {
            return Ok(bytes.len());
        }
        let done = self.out.write(bytes);
        self.keep(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.shut.get() {
            return Ok(());
        }
        let done = self.out.flush();
        self.keep(done)
    }
}

impl<W: Seek> Seek for Gate<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        if self.shut.get() {
            return Ok(match to {
                SeekFrom::Start(position) => position,
                SeekFrom::Current(_) | SeekFrom::End(_) => self.position,
            });
        }
        let done = self.out.seek(to);
        let done = self.keep(done);
        self.position = *done.as_ref().unwrap_or(&self.position);
        done
    }
}
