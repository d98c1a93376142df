//! One text input: what its first bytes show, and its records in order, twice if need be.

use super::count::last_record_end;
use super::detect::{self, Classified, Detected, Given, detect};
use super::dialect::Dialect;
use super::number::{Class, classify};
use super::rows::Origin;
use super::schema::is_complex;
use super::stream;
use crate::error::{Error, ErrorKind, Result};
use crate::input::{Source, SourceFile, SourceStream};
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// What is looked at before anything is read.
const PEEK_BYTES: usize = 1 << 20;
/// A header or a comment at the top may be longer; more than this is not looked through.
const PEEK_MOST: usize = 64 << 20;

/// An input with what has been found out about it.
pub(super) struct Table {
    pub(super) source: Source,
    pub(super) path: PathBuf,
    /// Where its records start.
    pub(super) origin: Origin,
}

impl Table {
    /// Runs the engine for streams from the first record on; `tee` keeps what a stream gives.
    pub(super) fn run<O: Send>(
        &mut self,
        tee: Option<(&File, &Path)>,
        dialect: &Dialect,
        work: impl Fn(&stream::Piece) -> Result<O> + Sync,
        take: impl FnMut(O) -> Result<ControlFlow<()>> + Send,
    ) -> Result<()> {
        let Self { source, path, origin } = self;
        let mut reader: Box<dyn Read + Send + '_> = match (source, tee) {
            (Source::File(file), _) => Box::new(SourceFile::new(file.reader()?, path)?.into_reader()),
            (Source::Stream(stream), Some((file, path))) => Box::new(Tee { stream, file, path }),
            (Source::Stream(stream), None) => Box::new(stream),
        };
        let skipped = io::copy(&mut reader.by_ref().take(origin.offset), &mut io::sink())
            .map_err(|e| crate::input::read_error(e, path))?;
        let origin = Origin { offset: skipped, ..*origin };
        stream::run(&mut *reader, path, dialect, origin, work, take)
    }

    /// Makes a stream the file that holds what it has given so far and the rest of it.
    fn keep(&mut self, file: File, path: &Path) -> Result<()> {
        if let Source::Stream(stream) = &mut self.source {
            io::copy(&mut Tee { stream, file: &file, path }, &mut io::sink())
                .map_err(|e| crate::input::read_error(e, &self.path))?;
            self.source = Source::File(SourceFile::new(file, &self.path)?);
        }
        Ok(())
    }
}

/// Inputs that are read one after the other, and may have to be read once more from the start.
pub(super) struct Replay {
    spool: PathBuf,
    /// Whether a second start is possible at all.
    is_possible: bool,
    /// Whether this error asks for one.
    restarts: fn(&Error) -> bool,
    /// What the streams have given so far, for each input that was begun.
    tees: Vec<Option<File>>,
}

impl Replay {
    /// Keeps what streams give in the folder `scratch`, if it may be wanted.
    pub(super) fn new(scratch: &Path, is_possible: bool, restarts: fn(&Error) -> bool) -> Self {
        Self { spool: scratch.join("spool"), is_possible, restarts, tees: Vec::new() }
    }

    /// Runs the engine for streams on input `index`, the next. After an error that asks for a second start
    /// every stream is a file, those that were not begun too.
    pub(super) fn run<O: Send>(
        &mut self,
        tables: &mut [Table],
        index: usize,
        dialect: &Dialect,
        work: impl Fn(&stream::Piece) -> Result<O> + Sync,
        take: impl FnMut(O) -> Result<ControlFlow<()>> + Send,
    ) -> Result<()> {
        let table = &mut tables[index];
        let tee = match &table.source {
            Source::Stream(_) if self.is_possible => Some(spool_file(&self.spool)?),
            _ => None,
        };
        let kept = tee.as_ref().map(|tee| (tee, &*self.spool));
        let result = table.run(kept, dialect, work, take).map_err(|e| e.at(&table.path));
        self.tees.push(tee);
        result.or_else(|error| {
            if self.is_possible && (self.restarts)(&error) {
                self.keep_all(tables)?;
            }
            Err(error)
        })
    }

    fn keep_all(&mut self, tables: &mut [Table]) -> Result<()> {
        let mut tees = self.tees.drain(..);
        for table in tables {
            let tee = tees.next().flatten();
            if let Source::Stream(_) = table.source {
                let tee = match tee {
                    Some(tee) => tee,
                    None => spool_file(&self.spool)?,
                };
                table.keep(tee, &self.spool)?;
            }
        }
        Ok(())
    }
}

/// A file without a name, gone with its descriptor.
fn spool_file(path: &Path) -> Result<File> {
    let file = File::options()
        .create_new(true)
        .read(true)
        .write(true)
        .open(path)
        .map_err(|e| Error::io(path, "create", e))?;
    std::fs::remove_file(path).map_err(|e| Error::io(path, "remove", e))?;
    Ok(file)
}

/// Hands a stream on and keeps what it gives.
struct Tee<'a> {
    stream: &'a mut SourceStream,
    file: &'a File,
    /// Where the file was.
    path: &'a Path,
}

impl Read for Tee<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let found = self.stream.read(out)?;
        // What goes wrong here is no fault of the stream.
        let written = self.file.write_all(&out[..found]);
        written.map_err(|e| io::Error::other(Error::io(self.path, "write", e)))?;
        Ok(found)
    }
}

/// Finds out how a source is written; gives its first records too.
pub(super) fn look(source: &mut Source, given: &Given) -> Result<(Detected, Vec<u8>)> {
    let mut want = PEEK_BYTES;
    loop {
        let start = source.peek(want)?;
        let complete = start.len() < want;
        if let Some(found) = detect(&start, complete, given, &detect_class)? {
            let rest = start.get(found.data_start..).unwrap_or_default();
            let end = if complete { rest.len() } else { last_record_end(rest, &found.dialect) };
            let sample = rest[..end].to_vec();
            return Ok((found, sample));
        }
        if want >= PEEK_MOST {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("expected the first record to end within {} MiB, found no end", PEEK_MOST >> 20),
            ));
        }
        want *= 4;
    }
}

/// Detection asks for less than [`classify`] tells.
pub(super) fn detect_class(field: &[u8]) -> Classified {
    let classified = |class, exact_in_f64| Classified { class, exact_in_f64 };
    match classify(field) {
        Class::Empty => classified(detect::Class::Empty, true),
        Class::Int { i64: true, f64, .. } => classified(detect::Class::Int, f64),
        Class::Int { u64: true, f64, .. } => classified(detect::Class::UInt, f64),
        Class::Int { f64, .. } => classified(detect::Class::Float, f64),
        Class::Float => classified(detect::Class::Float, true),
        Class::Text if is_complex(field) => classified(detect::Class::Complex, true),
        // A word of its own type is a value, and no name of a column.
        Class::Bool => classified(detect::Class::Int, true),
        Class::Text => classified(detect::Class::Text, true),
    }
}
