//! Text files and streams into a dataset: what is detected, which engine reads, and a second start
//! with wider types where a late value asks for it.

use super::append::{self, Sinks};
use super::count::last_record_end;
use super::detect::{self, Classified, Detected, Given, detect};
use super::dialect::{Delimiter, Dialect, Header, Missing, Ragged};
use super::direct::{Indexed, fill_matrix};
use super::index::Index;
use super::number::{Class, Notation, NumberOptions, classify};
use super::record::{Fields, Records};
use super::rows::{Origin, RowRules};
use super::schema::{ColumnSurvey, Kind, Layout, Like, Plan, is_complex};
use super::stream;
use super::svmlight::SparseOptions;
use crate::decompress::Compression;
use crate::dtype::{DType, with_element};
use crate::error::{Error, ErrorKind, Result, escape, escape_path, quoted};
use crate::input::{Source, SourceFile, SourceStream};
use crate::manifest::Attributes;
use crate::output::{Output, Together, fingerprint};
use crate::plan::READ_AS;
use crate::progress::Progress;
use crate::shared::Shared;
use crate::writer::{Builder, WriteOptions, Writer};
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// What is looked at before anything is read.
const PEEK_BYTES: usize = 1 << 20;
/// A header or a comment at the top may be longer; more than this is not looked through.
const PEEK_MOST: usize = 64 << 20;

/// What to make of text inputs.
#[derive(Debug, Clone, Default)]
pub struct TextOptions {
    /// What is known of how they are written; the rest is detected.
    pub given: Given,
    /// The dtype of every value; by what is in the columns if not given.
    pub dtype: Option<DType>,
    /// One matrix or one array a column.
    pub layout: Layout,
    /// A finite number beyond the limits of a float type is an infinity, not an error.
    pub allow_overflow: bool,
    /// Name of a matrix.
    pub name: String,
    /// Which columns are wanted, in this order: by name, by number from 0, or by a run of numbers `A:B`. All if empty.
    pub columns: Vec<String>,
    /// Words that count as an empty field where a number is wanted, such as `NA`. In a column of text they stay.
    pub na: Vec<String>,
    /// How characters are written: `utf-16`, `latin-1`, `windows-1252` …; UTF-8, or UTF-16 by its mark, if not given.
    pub encoding: Option<String>,
    /// How numbers are written.
    pub notation: Notation,
    /// Of word2vec: values of a vector; by what the lines have if not given.
    pub dim: Option<u64>,
    /// Of svmlight.
    pub sparse: SparseOptions,
}

/// An input with what has been found out about it.
pub(super) struct Table {
    pub(super) source: Source,
    pub(super) path: PathBuf,
    /// Where its records start.
    pub(super) origin: Origin,
}

/// All inputs of a conversion, and what they have in common.
struct Tables<'a> {
    tables: Vec<Table>,
    rules: RowRules,
    names: Option<Vec<String>>,
    options: &'a TextOptions,
    progress: &'a Progress,
    together: Together,
    /// What tells the inputs from others.
    inputs: Vec<String>,
    /// Counted once, if the engine for files is used.
    indexed: Option<Vec<Indexed>>,
}

/// Writes the records of `sources`, one after the other; also says in a line each what was detected.
pub(crate) fn pack(
    sources: Vec<Source>,
    out: &Path,
    options: &TextOptions,
    like: Option<&Like>,
    write: &WriteOptions,
    together: Together,
    progress: &Progress,
) -> Result<(Output, Vec<String>)> {
    let mut notes = Vec::new();
    check_missing(&options.given.missing)?;
    check_notation(&options.notation)?;
    let (mut tables, mut surveys) = Tables::open(sources, options, like, progress, &mut notes)?;
    tables.together = together;
    if let Some(like) = like {
        tables.become_like(like)?;
        notes.push(tables.describe(&like.plan));
        let is_given = options.dtype.is_some();
        let output = match tables.attempt(&like.plan, !is_given, out, write) {
            // Large numbers may be whole and rounded, or no whole numbers at all.
            Err(e) if e.kind() == ErrorKind::TypeMismatch && !is_given => {
                tables.check_exact(&like.plan)?;
                tables.attempt(&like.plan, false, out, write)?
            }
            result => result?,
        };
        return Ok((output, notes));
    }
    let names = tables.names.clone().unwrap_or_default();
    // Who shares the work can't start again with wider types, so every value is looked at before.
    if together.part.is_some() && options.dtype.is_none() {
        surveys = tables.survey()?;
    }
    let plan = match options.dtype {
        Some(dtype) => Plan::given(dtype, tables.rules.columns, options.layout),
        None => Plan::new(&surveys, &tables.rules.dialect.missing, options.layout, &names)?,
    };
    notes.push(tables.describe(&plan));
    notes.extend(tables.why_text(&plan, &surveys));
    if together.resume && (matches!(plan, Plan::Columns(_)) || !tables.are_files()) {
        notes.push("begun anew: only matrices from files can be gone on with".to_owned());
    }
    // The types of all values are known if they were looked at before.
    let by_sample = options.dtype.is_none() && together.part.is_none();
    let error = match tables.attempt(&plan, by_sample, out, write) {
        Ok(output) => return Ok((output, notes)),
        Err(error) => error,
    };
    // A whole number that a float may have rounded is no fault yet, a value of another type may be.
    let is_unsure = error.kind() == ErrorKind::TypeMismatch;
    // What is there to go on with may have been begun with wider types.
    let is_other_plan = together.resume && error.kind() == ErrorKind::InvalidArgument;
    if !by_sample || !is_unsure && !is_other_plan && error.kind() != ErrorKind::Parse {
        return Err(error);
    }
    // The types came from the first records. What all of them ask for may be wider.
    let surveys = tables.survey()?;
    let wider = match Plan::new(&surveys, &tables.rules.dialect.missing, options.layout, &names) {
        Ok(wider) => wider,
        // The first error has a line and a field.
        Err(_) if !is_unsure => return Err(error),
        Err(other) => return Err(other),
    };
    if wider != plan {
        notes.push(format!("{}; a later value needed wider types", tables.describe(&wider)));
        notes.extend(tables.why_text(&wider, &surveys));
    } else if !is_unsure {
        return Err(error);
    }
    if together.resume && !is_other_plan && wider != plan {
        Shared::discard(out)?;
    }
    tables.attempt(&wider, false, out, write).map(|output| (output, notes))
}

impl<'a> Tables<'a> {
    fn open(
        sources: Vec<Source>,
        options: &'a TextOptions,
        like: Option<&Like>,
        progress: &'a Progress,
        notes: &mut Vec<String>,
    ) -> Result<(Self, Vec<ColumnSurvey>)> {
        let mut known: Option<(RowRules, Option<Vec<String>>, PathBuf)> = None;
        let mut surveys: Vec<ColumnSurvey> = Vec::new();
        // What is not taken has no say in the types.
        let mut left = options.given.max_rows.unwrap_or(u64::MAX);
        let mut tables = Vec::new();
        let mut inputs = Vec::new();
        for mut source in sources {
            inputs.push(fingerprint(&source)?);
            let path = source.path().to_owned();
            let given = match &known {
                Some((rules, ..)) => like_the_first(&options.given, rules),
                None => {
                    let extension = options.given.extension.clone().or_else(|| extension(&path));
                    Given { extension, ..options.given.clone() }
                }
            };
            let (mut found, mut sample) = look(&mut source, &given).map_err(|e| e.at(&path))?;
            if known.is_none()
                && found.names.is_none()
                && given.header == Header::Auto
                && let Some(Like { names: Some(names), .. }) = like
            {
                // A table of words shows no header, unless one knows the names.
                let given = Given { header: Header::Yes, ..given.clone() };
                let (with_names, rest) = look(&mut source, &given).map_err(|e| e.at(&path))?;
                if with_names.names.as_ref() == Some(names) {
                    (found, sample) = (with_names, rest);
                }
            }
            if let Some((rules, None, first)) = &known
                && found.names.is_some()
            {
                let names = found.names.unwrap_or_default();
                let (with_names, line) = (found.data_start, found.data_line.saturating_sub(1));
                let given = Given { header: Header::No, ..given };
                (found, sample) = look(&mut source, &given).map_err(|e| e.at(&path))?;
                // Names in a comment are left out with it.
                if found.data_start != with_names {
                    no_header(&names, &rules.select, line, &surveys, first).map_err(|e| e.at(&path))?;
                }
            }
            let rules = match &known {
                None => {
                    if found.dialect.delimiter == Delimiter::Byte(options.notation.decimal) {
                        let mark = quoted(&[options.notation.decimal]);
                        return Err(Error::new(
                            ErrorKind::InvalidArgument,
                            format!("expected a delimiter beside the decimal mark {mark}, found the same"),
                        )
                        .hint("--delimiter says what separates the fields")
                        .at(&path));
                    }
                    notes.push(format!("{}: {found}{}", escape_path(&path), otherwise(&options.given)));
                    let width = found.columns.len();
                    let select =
                        select(&options.columns, width, found.names.as_deref()).map_err(|e| e.at(&path))?;
                    let rules = RowRules {
                        dialect: found.dialect.clone(),
                        width,
                        columns: select.len(),
                        select,
                        named: found.names.is_some(),
                        number: NumberOptions { allow_overflow: options.allow_overflow },
                        notation: options.notation,
                        na: options.na.clone(),
                    };
                    surveys = vec![ColumnSurvey::default(); rules.columns];
                    known = Some((rules.clone(), found.names.clone(), path.clone()));
                    rules
                }
                Some((rules, names, first)) => {
                    same_table(rules, names.as_deref(), &found, first).map_err(|e| e.at(&path))?;
                    rules.clone()
                }
            };
            // A fault in the sample is met again, in order, when the records are read.
            let _ = survey_text(&rules, &sample, &mut left, &mut surveys);
            let origin = Origin { offset: found.data_start as u64, lines: found.data_line.saturating_sub(1) };
            tables.push(Table { source, path, origin });
        }
        let Some((rules, names, _)) = known else {
            return Err(Error::new(ErrorKind::InvalidArgument, "expected at least one input, found none"));
        };
        let names = names.map(|names| {
            rules
                .select
                .iter()
                .map(|&index| names.get(index).cloned().unwrap_or_default())
                .collect::<Vec<_>>()
        });
        inputs.push(format!("{READ_AS}{:08x}", crate::checksum::crc32(format!("{rules:?}").as_bytes())));
        let together = Together::default();
        let tables = Self { tables, rules, names, options, progress, together, inputs, indexed: None };
        Ok((tables, surveys))
    }

    /// Whether these are rows of `like`; its columns are theirs then.
    fn become_like(&mut self, like: &Like) -> Result<()> {
        let place = |what: String| {
            let path = self.tables.first().map(|table| table.path.clone()).unwrap_or_default();
            Error::new(ErrorKind::Parse, what).at(path)
        };
        let theirs = escape_path(&like.path);
        if self.rules.columns != like.columns {
            return Err(place(format!(
                "expected {} columns as {theirs} has, found {}",
                like.columns, self.rules.columns
            )));
        }
        let list = |names: &[String]| quoted(names.join(",").as_bytes());
        if let (Some(expected), Some(found)) = (&like.names, &self.names)
            && expected != found
        {
            return Err(place(format!(
                "expected the header {} as {theirs} has, found {}",
                list(expected),
                list(found)
            ))
            .hint("--header no takes the first line as data"));
        }
        if let (None, Some(found)) = (&like.names, &self.names)
            && self.options.given.header == Header::Auto
        {
            return Err(place(format!("expected no header, as {theirs} has none, found {}", list(found)))
                .hint("--header yes leaves it out, --header no takes it as data"));
        }
        if let (Plan::Matrix(dtype), Some(given)) = (&like.plan, self.options.dtype)
            && *dtype != given
        {
            return Err(place(format!("expected {dtype} as {theirs} has, found a request for {given}")));
        }
        if let (Plan::Columns(_), Some(given)) = (&like.plan, self.options.dtype) {
            return Err(place(format!(
                "expected the dtypes of the columns of {theirs}, found a request for {given}"
            )));
        }
        self.names.clone_from(&like.names);
        Ok(())
    }

    fn describe(&self, plan: &Plan) -> String {
        match plan {
            Plan::Matrix(dtype) => format!("one {dtype} matrix of {} columns", self.rules.columns),
            Plan::Columns(kinds) => {
                let names = self.column_names();
                let shown = names
                    .iter()
                    .zip(kinds)
                    .take(12)
                    .map(|(name, kind)| format!("{} {kind}", escape(name.as_bytes(), 40)));
                let more = if kinds.len() > 12 { ", …" } else { "" };
                format!("one array a column: {}{more}", shown.collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// Why columns that look like numbers are strings, for the first few of them.
    fn why_text(&self, plan: &Plan, surveys: &[ColumnSurvey]) -> Vec<String> {
        let Plan::Columns(kinds) = plan else { return Vec::new() };
        let columns = self.column_names().into_iter().zip(kinds).zip(surveys);
        let strings = columns.filter(|((_, kind), _)| **kind == Kind::Text);
        let why = strings.filter_map(|((name, _), survey)| {
            Some(format!("column {}: strings, since {}", escape(name.as_bytes(), 40), survey.why_text()?))
        });
        why.take(3).collect()
    }

    /// A name for every column: NumPy's `f0`, `f1` … where the header has none.
    fn column_names(&self) -> Vec<String> {
        let named = self.names.as_deref().unwrap_or_default();
        (0..self.rules.columns)
            .map(|i| {
                let name = named.get(i).filter(|name| !name.is_empty()).cloned();
                name.unwrap_or_else(|| format!("f{}", self.rules.select[i]))
            })
            .collect()
    }

    /// Whether all records can be counted first and read at any place.
    fn are_files(&self) -> bool {
        self.options.given.max_rows.is_none()
            && self.rules.dialect.ragged != Ragged::Skip
            && self.tables.iter().all(|table| matches!(table.source, Source::File(_)))
    }

    fn attempt(
        &mut self,
        plan: &Plan,
        check_whole: bool,
        out: &Path,
        write: &WriteOptions,
    ) -> Result<Output> {
        let files = self.tables.iter().map(|table| match &table.source {
            Source::File(file) => file.len(),
            Source::Stream(_) => 0,
        });
        self.progress.start(files.sum());
        match plan {
            Plan::Matrix(dtype) if self.are_files() => self.fill(*dtype, check_whole, out, write),
            Plan::Matrix(dtype) => {
                self.together.alone("an input whose records can't be counted first")?;
                let name = &self.options.name;
                let builder = Builder::new(write.clone()).growing(name, *dtype, &[self.rules.columns as u64]);
                let writer =
                    builder.array_attributes(self.attributes()).create(out).map_err(|e| self.of_names(e))?;
                let arrays = [(name.clone(), Kind::Number(*dtype))];
                self.append(writer, &arrays, &|rules, piece| {
                    append::matrix(rules, piece, *dtype, check_whole)
                })
            }
            Plan::Columns(kinds) => {
                self.together.alone("a table with one array a column")?;
                let arrays: Vec<(String, Kind)> =
                    self.column_names().into_iter().zip(kinds.iter().copied()).collect();
                let builder =
                    arrays.iter().fold(Builder::new(write.clone()), |builder, (name, kind)| match kind {
                        Kind::Number(dtype) => builder.growing(name, *dtype, &[]),
                        Kind::Text => builder.strings(name),
                    });
                self.append(builder.create(out).map_err(|e| self.of_names(e))?, &arrays, &|rules, piece| {
                    append::columns(rules, piece, kinds, check_whole)
                })
            }
        }
    }

    /// What is wrong with a name is wrong in the header.
    fn of_names(&self, error: Error) -> Error {
        match self.tables.first().filter(|_| self.names.is_some()) {
            Some(table) if error.kind() == ErrorKind::InvalidArgument && error.path().is_none() => error
                .at(&table.path)
                .hint("--skip-rows and --header no leave the names out; the columns are f0, f1 … then"),
            _ => error,
        }
    }

    /// Column names are kept with a matrix.
    fn attributes(&self) -> Attributes {
        let mut attributes = Attributes::new();
        if let Some(names) = &self.names {
            attributes.insert("columns".to_owned(), names.clone().into());
        }
        attributes
    }

    /// The engine for files: count, preallocate, parse every block into its place.
    fn fill(&mut self, dtype: DType, check_whole: bool, out: &Path, write: &WriteOptions) -> Result<Output> {
        // The place is claimed before the long work starts.
        crate::staging::check_target(out, write.replaces())?;
        if self.indexed.is_none() {
            let mut indexed = Vec::new();
            for table in &self.tables {
                let Source::File(file) = &table.source else { continue };
                let text = Box::new(SourceFile::new(file.reader()?, &table.path)?);
                let (start, lines) = (table.origin.offset, table.origin.lines);
                let index = Index::new(&*text, &self.rules.dialect, start, lines, self.progress)
                    .map_err(|e| e.at(&table.path))?;
                indexed.push(Indexed { text, index });
            }
            self.indexed = Some(indexed);
        }
        let indexed = self.indexed.as_deref().unwrap_or_default();
        let records: u64 = indexed.iter().map(|text| text.index.records).sum();
        let name = &self.options.name;
        let shape = [records, self.rules.columns as u64];
        let builder = Builder::new(write.clone())
            .array(name, dtype, &shape)
            .array_attributes(self.attributes())
            .inputs(self.inputs.clone());
        let output = Output::create(builder, out, self.together)?;
        with_element!(dtype, T => {
            fill_matrix::<T>(indexed, &self.rules, &output, name, check_whole, self.progress)
        })?;
        Ok(output)
    }

    /// The engine for streams and strings: pieces in order, parsed in parallel, appended in order.
    fn append(
        &mut self,
        writer: Writer,
        arrays: &[(String, Kind)],
        work: &(dyn Fn(&RowRules, &stream::Piece) -> append::Rows + Sync),
    ) -> Result<Output> {
        let spools = self.options.dtype.is_none();
        let spool = writer.scratch().join("spool");
        let mut sinks = Sinks::new(&writer, arrays, self.options.given.max_rows)?;
        let (rules, progress) = (&self.rules, self.progress);
        for table in &mut self.tables {
            if sinks.is_full() {
                break;
            }
            let tee = match &table.source {
                // A second start with wider types must find the stream's bytes again.
                Source::Stream(_) if spools => Some(spool_file(&spool)?),
                _ => None,
            };
            let result = table.run(
                tee.as_ref().map(|tee| (tee, &*spool)),
                &rules.dialect,
                |piece| {
                    let rows = work(rules, piece);
                    progress.advance(piece.text.len() as u64)?;
                    Ok(rows)
                },
                |rows| sinks.take(rows),
            );
            if let (Some(tee), true) = (tee, result.is_err()) {
                table.keep(tee, &spool)?;
            }
            result.map_err(|e| e.at(&table.path))?;
        }
        sinks.finish()?;
        Ok(Output::Alone(writer))
    }

    /// An error for the first whole number that the float array it goes to can't hold.
    fn check_exact(&mut self, plan: &Plan) -> Result<()> {
        let rules = &self.rules;
        let is_float = |column: usize| match plan {
            Plan::Matrix(dtype) => !dtype.is_integer(),
            Plan::Columns(kinds) => matches!(kinds[column], Kind::Number(dtype) if !dtype.is_integer()),
        };
        let check = |piece: &stream::Piece| -> Result<()> {
            let text = &piece.text[..];
            let (mut fields, mut scratch) = (Fields::new(), Vec::new());
            let mut records = Records::new(text, &rules.dialect);
            while let Some(record) = records.next(&mut fields) {
                let record = record?;
                let wanted = rules.select.iter().enumerate().filter(|(column, _)| is_float(*column));
                for (_, &column) in wanted {
                    let field = fields.value(text, column, &mut scratch);
                    if !matches!(rules.classify(field), Class::Int { f64: false, .. }) {
                        continue;
                    }
                    let what = format!(
                        "expected a whole number that float64 holds exactly, found {}",
                        quoted(field)
                    );
                    let error = Error::new(ErrorKind::Parse, what);
                    let error = match plan {
                        Plan::Matrix(dtype) => error.hint(format!("--dtype {dtype} rounds it")),
                        Plan::Columns(_) => error,
                    };
                    return Err(rules.in_field(error, &record, &fields, column, text));
                }
            }
            Ok(())
        };
        for table in &mut self.tables {
            let work = |piece: &stream::Piece| {
                check(piece).map_err(|e| rules.place(e, &piece.text, 0, piece.origin))
            };
            table
                .run(None, &rules.dialect, work, |()| Ok(ControlFlow::Continue(())))
                .map_err(|e| e.at(&table.path))?;
        }
        Ok(())
    }

    /// Looks at every field of every record.
    fn survey(&mut self) -> Result<Vec<ColumnSurvey>> {
        let mut all = vec![ColumnSurvey::default(); self.rules.columns];
        let rules = &self.rules;
        let mut left = self.options.given.max_rows.unwrap_or(u64::MAX);
        for table in &mut self.tables {
            let most = left;
            let work = |piece: &stream::Piece| {
                let mut surveys = vec![ColumnSurvey::default(); rules.columns];
                let mut rest = most;
                survey_text(rules, &piece.text, &mut rest, &mut surveys)
                    .map_err(|e| rules.place(e, &piece.text, 0, piece.origin))?;
                Ok((surveys, most - rest))
            };
            let take = |(surveys, rows): (Vec<ColumnSurvey>, u64)| {
                all.iter_mut().zip(&surveys).for_each(|(all, new)| all.merge(new));
                left = left.saturating_sub(rows);
                Ok(if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            };
            table.run(None, &rules.dialect, work, take).map_err(|e| e.at(&table.path))?;
        }
        Ok(all)
    }
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
    pub(super) fn keep(&mut self, file: File, path: &Path) -> Result<()> {
        if let Source::Stream(stream) = &mut self.source {
            io::copy(&mut Tee { stream, file: &file, path }, &mut io::sink())
                .map_err(|e| crate::input::read_error(e, &self.path))?;
            self.source = Source::File(SourceFile::new(file, &self.path)?);
        }
        Ok(())
    }
}

/// A file without a name, gone with its descriptor.
pub(super) fn spool_file(path: &Path) -> Result<File> {
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
fn look(source: &mut Source, given: &Given) -> Result<(Detected, Vec<u8>)> {
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
fn detect_class(field: &[u8]) -> Classified {
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

/// The second and later inputs are read as the first.
fn like_the_first(given: &Given, rules: &RowRules) -> Given {
    let dialect = &rules.dialect;
    Given {
        delimiter: Some(dialect.delimiter),
        quote: Some(dialect.quote),
        comment: Some(dialect.comment.clone()),
        ..given.clone()
    }
}

/// Refuses names over columns of which the first input, which had none, has only numbers: they are
/// no values, and to leave them out would be a guess.
fn no_header(
    names: &[String],
    select: &[usize],
    line: u64,
    surveys: &[ColumnSurvey],
    first: &Path,
) -> Result<()> {
    let numeric = select.iter().zip(surveys).find(|(_, survey)| survey.is_numeric());
    match numeric.map(|(&index, _)| index).filter(|&index| index < names.len()) {
        None => Ok(()),
        Some(column) => Err(Error::new(
            ErrorKind::Parse,
            format!(
                "expected a number, since {} has no header, found {}",
                escape_path(first),
                quoted(names[column].as_bytes())
            ),
        )
        .line(line)
        .field(column as u64 + 1)
        .hint("--header yes takes the first line of every input as names, --header no as data")),
    }
}

/// A later input has the columns of the first.
fn same_table(rules: &RowRules, names: Option<&[String]>, found: &Detected, first: &Path) -> Result<()> {
    let columns = found.columns.len();
    if columns != rules.width {
        return Err(Error::new(
            ErrorKind::Parse,
            format!("expected {} columns as in {}, found {columns}", rules.width, escape_path(first)),
        ));
    }
    let differs = |names: &[String]| found.names.as_deref().is_some_and(|found| found != names);
    if let Some(names) = names.filter(|names| differs(names)) {
        let list = |names: &[String]| quoted(names.join(",").as_bytes());
        return Err(Error::new(
            ErrorKind::Parse,
            format!(
                "expected the header {} as in {}, found {}",
                list(names),
                escape_path(first),
                list(found.names.as_deref().unwrap_or_default())
            ),
        ));
    }
    Ok(())
}

/// The options by which what was guessed can be said.
fn otherwise(given: &Given) -> String {
    let guessed = [
        ("--delimiter", given.delimiter.is_none()),
        ("--header", given.header == Header::Auto),
        ("--comment", given.comment.is_none()),
    ];
    let options: Vec<_> = guessed.iter().filter(|(_, guessed)| *guessed).map(|(name, _)| *name).collect();
    if options.is_empty() { String::new() } else { format!("; otherwise by {}", options.join(", ")) }
}

/// The fields that are wanted: by name, by number from 0, or a run of numbers `A:B`. All if none is asked for.
fn select(wanted: &[String], width: usize, names: Option<&[String]>) -> Result<Vec<usize>> {
    let mut select = Vec::new();
    for text in wanted {
        let by_name = names.and_then(|names| names.iter().position(|name| name == text));
        let number =
            |text: &str, absent| if text.is_empty() { Some(absent) } else { text.parse::<usize>().ok() };
        let run = || match text.split_once(':') {
            Some((start, end)) => Some(number(start, 0)?..number(end, width)?),
            None => text.parse::<usize>().ok().map(|index| index..index.saturating_add(1)),
        };
        match by_name.map(|index| index..index + 1).or_else(run) {
            Some(run) if run.end <= width && run.start < run.end => select.extend(run),
            _ => {
                let known = match names {
                    Some(names) => format!(": {}", escape(names.join(", ").as_bytes(), 400)),
                    None => String::new(),
                };
                return Err(Error::new(
                    ErrorKind::InvalidArgument,
                    format!("expected one of {width} columns, found {}", quoted(text.as_bytes())),
                )
                .hint(format!("by name, or by number from 0 to {}{known}", width.saturating_sub(1))));
            }
        }
    }
    Ok(if wanted.is_empty() { (0..width).collect() } else { select })
}

/// A mark that has two meanings has none.
fn check_notation(notation: &Notation) -> Result<()> {
    let Notation { decimal, thousands, .. } = *notation;
    let is_mark =
        |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_alphanumeric() && !b"+-\"#".contains(&byte);
    let fits = |byte: u8| is_mark(byte) || matches!(byte, b' ' | b'\'');
    let bad = if !is_mark(decimal) {
        Some(decimal)
    } else {
        thousands.filter(|&byte| !fits(byte) || byte == decimal)
    };
    match bad {
        None => Ok(()),
        Some(byte) => Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("expected two different marks for decimals and thousands, found {}", quoted(&[byte])),
        )),
    }
}

/// What stands for no value must be one.
fn check_missing(missing: &Missing) -> Result<()> {
    match missing {
        Missing::Value(value)
            if matches!(detect_class(value.as_bytes()).class, detect::Class::Text | detect::Class::Empty) =>
        {
            Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "expected error, nan or a number for empty fields, found {}",
                    quoted(value.as_bytes())
                ),
            ))
        }
        _ => Ok(()),
    }
}

/// Adds every field of at most `left` records of `text`, which is whole records; stops at the first fault.
fn survey_text(rules: &RowRules, text: &[u8], left: &mut u64, surveys: &mut [ColumnSurvey]) -> Result<()> {
    let (mut fields, mut scratch) = (Fields::new(), Vec::new());
    let mut records = Records::new(text, &rules.dialect);
    while *left > 0
        && let Some(record) = records.next(&mut fields)
    {
        let record = record?;
        if rules.has_width(&record, &fields)? {
            *left -= 1;
            for (&index, survey) in rules.select.iter().zip(surveys.iter_mut()) {
                let field = fields.value(text, index, &mut scratch);
                survey.add_as(rules.classify(field), field);
            }
        }
    }
    Ok(())
}

/// The last extension that is not one of a compression.
fn extension(path: &Path) -> Option<String> {
    let of = |path: &Path| path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
    let last = of(path)?;
    if Compression::is_extension(&last) {
        path.file_stem().and_then(|stem| of(stem.as_ref()))
    } else {
        Some(last)
    }
}
