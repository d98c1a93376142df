//! A dataset, or an array of it, into files that other programs read.

mod choice;
mod npy;
mod npz;
mod ordered;
mod place;
mod reader;
mod text;
mod wide;

use crate::dataset::Dataset;
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::manifest::ArrayEntry;
use crate::progress::Progress;
use choice::{Item, choose, only, rows};
use npy::Npy;
use npz::Npz;
use place::{Partial, Place, Stream, check_file, publish};
use rayon::prelude::*;
use reader::Reader;
use std::ops::Range;
use std::path::{Path, PathBuf};
use text::Text;

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
    /// Whether the first line of text has the names of the columns; none is written on its own.
    pub header: bool,
    /// In how many files, `OUT.0` … `OUT.N-1`, of as equal numbers of rows as can be, each with a header
    /// if there is one. Not for npz.
    pub parts: Option<u64>,
    /// Whether files that are there are replaced.
    pub replace: bool,
    /// Whether files are synced before they get their names.
    pub sync: bool,
}

/// Writes `dataset`, or what `options` choose of it, to `output`: whole or not at all.
///
/// Reads by copy, so others who change the files of the dataset cause an error at most. Runs on the
/// rayon pool it is called from, in less than 64 MiB whatever the size of the dataset. The same
/// dataset gives the same bytes, whatever the number of threads.
///
/// - `npy` holds one array, byte for byte as `np.save` writes it; bfloat16 is `<V2`.
/// - `npz` holds all arrays by name, a string array as `NAME.offsets` (uint64, one more than there
///   are strings) and `NAME.bytes` (uint8).
/// - `tsv` and `csv` hold one array of up to two dimensions, its rows as lines, or all arrays side
///   by side, in the order of the dataset, if each is a column and they are equally long. A bool is
///   `true` or `false` and a complex number `(1.5-2j)`, which [`crate::pack`] reads back as such.
///   Strings are quoted where a reader needs it (RFC 4180), in tsv too. With a header, columns have
///   the names of their arrays, and those of a matrix the names in its attribute `columns`, else
///   `f0`, `f1` ….
///
/// A file is written beside its place, as `.<name>.partial`, and renamed at the end. A FIFO or a
/// character device is written to as it is, and so is standard output.
///
/// # Errors
///
/// `Exists` if the output is there and not to be replaced, or is a folder; `Locked` if somebody
/// else is writing it; `InvalidArgument` if arrays do not go together in one output, or for rows
/// outside of them; `Unsupported` for `npz` into a stream; `Corrupt` for files that are not as they
/// were sealed; `Io` of the system, a closed pipe too. After an error nothing is left at `output`,
/// or beside it.
pub fn unpack(
    dataset: &Dataset,
    output: &Output,
    options: &UnpackOptions,
    progress: &Progress,
) -> Result<()> {
    let place = Place::of(output);
    let target = target(place, options)?;
    let paths = paths(place, options)?;
    paths.iter().try_for_each(|path| {
        check_outside(dataset, path)?;
        check_file(path, options.replace)
    })?;
    let reader = Reader::new(dataset);
    let content = Content::new(dataset, &reader, target, options, progress)?;
    let stream = match place {
        Place::File(_) => return files(&content, &paths, options),
        Place::Device(path) => Stream::device(path),
        Place::Stdout => Stream::stdout(),
    };
    content.stream(&mut stream?)
}

/// Sealed files are never written again, not even when asked.
fn check_outside(dataset: &Dataset, path: &Path) -> Result<()> {
    let whole = |path: &Path| path.canonicalize().ok();
    match whole(crate::folder::parent(path)).zip(whole(dataset.path())) {
        Some((parent, dataset)) if parent.starts_with(&dataset) => Err(Error::new(
            ErrorKind::InvalidArgument,
            "expected an output outside of the dataset, found one inside of it",
        )
        .at(path)),
        _ => Ok(()),
    }
}

/// What to write: as told, or by the extension of the output.
fn target(place: Place<'_>, options: &UnpackOptions) -> Result<Target> {
    if let Some(to) = options.to {
        return Ok(to);
    }
    let invalid = |what: String| Error::new(ErrorKind::InvalidArgument, what);
    let (Place::File(path) | Place::Device(path)) = place else {
        return Err(invalid("expected a format for standard output, found none".into())
            .hint("--to npy, tsv or csv says it"));
    };
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    match extension.to_str() {
        Some("npy") => Ok(Target::Npy),
        Some("npz") => Ok(Target::Npz),
        Some("tsv" | "tab") => Ok(Target::Tsv),
        Some("csv") => Ok(Target::Csv),
        _ => Err(invalid(format!(
            "expected an output that ends in .npy, .npz, .tsv or .csv, found {}",
            quoted(extension.as_encoded_bytes())
        ))
        .hint("--to says what to write")
        .at(path)),
    }
}

const MAX_PARTS: u64 = 1_000_000;

/// The files to be written; none for a stream.
fn paths(place: Place<'_>, options: &UnpackOptions) -> Result<Vec<PathBuf>> {
    let invalid = |what: &str| Err(Error::new(ErrorKind::InvalidArgument, what));
    match (place, options.parts) {
        (_, Some(0)) => invalid("expected at least one part, found 0"),
        (_, Some(MAX_PARTS..)) => invalid("expected less than 1000000 parts, found more"),
        (Place::File(path), None) => Ok(vec![path.to_owned()]),
        (Place::File(path), Some(parts)) => {
            let part = |i: u64| {
                let mut name = path.as_os_str().to_owned();
                name.push(format!(".{i}"));
                PathBuf::from(name)
            };
            // Who reads OUT.* would take what an earlier run has left for a part of this one.
            let next = part(parts);
            if next.symlink_metadata().is_ok() {
                return Err(Error::new(
                    ErrorKind::Exists,
                    format!("expected no part after the {parts} to write, found one of another run"),
                )
                .hint("remove it, or choose another OUT")
                .at(next));
            }
            Ok((0..parts).map(part).collect())
        }
        (_, None) => Ok(Vec::new()),
        (_, Some(_)) => invalid("expected a file to write in parts, found a stream"),
    }
}

/// Writes all files and gives them their names, or leaves none of them.
fn files(content: &Content<'_>, paths: &[PathBuf], options: &UnpackOptions) -> Result<()> {
    let workers = rayon::current_num_threads();
    let [path] = paths else { return parts(content, paths, options) };
    let partial = Partial::create(path, options.replace)?;
    content.file(content.rows.clone(), workers, &partial)?;
    if options.sync {
        partial.sync()?;
    }
    publish(vec![partial], options.sync)
}

fn parts(content: &Content<'_>, paths: &[PathBuf], options: &UnpackOptions) -> Result<()> {
    let Some(rows) = content.rows.clone() else {
        return Err(Error::new(ErrorKind::InvalidArgument, "expected one file for npz, found parts"));
    };
    let (workers, count) = (rayon::current_num_threads(), paths.len());
    let len = u128::from(rows.end - rows.start);
    let edge = |i: usize| rows.start + (len * i as u128 / count as u128) as u64;
    // The lock of the first keeps other writers away from all of them.
    let first = Partial::create(&paths[0], options.replace)?;
    let write = |i: usize, partial: &mut Partial, workers| {
        content.file(Some(edge(i)..edge(i + 1)), workers, partial)?;
        if options.sync {
            partial.sync()?;
        }
        if i > 0 {
            partial.close();
        }
        Ok(())
    };
    let create = |i: usize| Partial::create(&paths[i], options.replace);
    let mut all = vec![first];
    if count < 4 * workers {
        write(0, &mut all[0], workers)?;
        for i in 1..count {
            let mut partial = create(i)?;
            write(i, &mut partial, workers)?;
            all.push(partial);
        }
    } else {
        // Files that are written at the same time don't wait for each other's locks.
        let (first, rest) = rayon::join(
            || write(0, &mut all[0], 1),
            || {
                let made = (1..count).into_par_iter().map(|i| {
                    let mut partial = create(i)?;
                    write(i, &mut partial, 1).map(|()| partial)
                });
                made.collect::<Result<Vec<_>>>()
            },
        );
        first?;
        all.extend(rest?);
    }
    publish(all, options.sync)
}

/// What is written, whatever the place.
struct Content<'a> {
    kind: Kind<'a>,
    /// None if the whole of every array is written.
    rows: Option<Range<u64>>,
}

enum Kind<'a> {
    Npy(Npy<'a>),
    Npz(Npz<'a>),
    Text(Box<Text<'a>>),
}

impl<'a> Content<'a> {
    fn new(
        dataset: &'a Dataset,
        reader: &'a Reader<'a>,
        target: Target,
        options: &UnpackOptions,
        progress: &'a Progress,
    ) -> Result<Self> {
        let items = choose(dataset, options.array.as_deref())?;
        let asked = options.rows.as_ref();
        let (kind, rows) = match target {
            Target::Npy => {
                let Item::Plain(array) = only(dataset, &items, "npy")? else {
                    let found = quoted(items[0].name().as_bytes());
                    let what = format!("expected an array of numbers for npy, found the strings {found}");
                    return Err(Error::new(ErrorKind::Unsupported, what)
                        .hint("npz holds them as two arrays, tsv and csv as text")
                        .at(dataset.path()));
                };
                let whole = array.layout.shape().is_empty() && asked.is_none() && options.parts.is_none();
                let rows = if whole { 0..1 } else { rows(dataset, &items, asked)? };
                (Kind::Npy(Npy { reader, array, progress }), Some(rows))
            }
            Target::Npz => {
                let rows = asked.map(|asked| rows(dataset, &items, Some(asked))).transpose()?;
                (Kind::Npz(Npz { reader, items, progress }), rows)
            }
            Target::Tsv | Target::Csv => {
                let (text, rows) = Text::new(dataset, reader, items, target, options, progress)?;
                (Kind::Text(Box::new(text)), Some(rows))
            }
        };
        let content = Self { kind, rows };
        progress.start(content.source_bytes());
        Ok(content)
    }

    /// Bytes that are read.
    fn source_bytes(&self) -> u64 {
        let rows = |array: &ArrayEntry| match &self.rows {
            Some(rows) => array.layout.by_row().row_bytes.saturating_mul(rows.end - rows.start),
            None => array.layout.nbytes(),
        };
        let items = match &self.kind {
            Kind::Npy(npy) => return rows(npy.array),
            Kind::Npz(npz) => &npz.items,
            Kind::Text(text) => &text.items,
        };
        let size = |item: &Item<'_>| match item {
            Item::Plain(array) => rows(array),
            // How long some of the strings are is not known before they are read.
            Item::Strings { offsets, bytes, .. } => {
                let all = offsets.layout.rows().max(1);
                let some = self.rows.as_ref().map_or(all, |rows| rows.end - rows.start);
                let share = u128::from(bytes.layout.nbytes()) * u128::from(some) / u128::from(all);
                rows(offsets).saturating_add(share as u64)
            }
        };
        items.iter().map(size).fold(0, u64::saturating_add)
    }

    fn file(&self, rows: Option<Range<u64>>, workers: usize, out: &Partial) -> Result<()> {
        match &self.kind {
            Kind::Npy(npy) => npy.file(rows.unwrap_or_default(), workers, out),
            Kind::Npz(npz) => npz.file(rows, workers, out),
            Kind::Text(text) => {
                text.write(rows.unwrap_or_default(), workers, out.target(), |bytes| out.write(bytes))
            }
        }
    }

    fn stream(&self, out: &mut Stream) -> Result<()> {
        let rows = self.rows.clone().unwrap_or_default();
        let workers = rayon::current_num_threads();
        match &self.kind {
            Kind::Npy(npy) => npy.stream(rows, workers, out),
            Kind::Npz(_) => {
                Err(Error::new(ErrorKind::Unsupported, "expected a file for npz, found a stream")
                    .hint("an archive is not written from start to end; npy, tsv and csv are")
                    .at(out.name()))
            }
            Kind::Text(text) => {
                let name = out.name().to_owned();
                text.write(rows, workers, &name, |bytes| out.write(bytes))
            }
        }
    }
}
