//! Text files and streams into a dataset: what is detected, which engine reads, and a second start
//! with wider types where a late value asks for it.

use super::agree::{
    check_missing, check_notation, extension, like_the_first, no_header, otherwise, same_table, select,
};
use super::append::{self, Sinks};
use super::detect::Given;
use super::dialect::{Delimiter, Header, Ragged};
use super::direct::{Indexed, fill_matrix};
use super::index::Index;
use super::number::{Class, Notation, NumberOptions};
use super::record::{Fields, Records};
use super::rows::{Origin, RowRules};
use super::schema::{ColumnSurvey, Kind, Layout, Like, Plan};
use super::stream;
use super::svmlight::SparseOptions;
use super::table::{Replay, Table, look};
use crate::dtype::{DType, with_element};
use crate::error::{Error, ErrorKind, Result, escape, escape_path, quoted};
use crate::input::{Source, SourceFile};
use crate::manifest::Attributes;
use crate::output::{Output, Together, fingerprint};
use crate::plan::READ_AS;
use crate::progress::Progress;
use crate::shared::Shared;
use crate::writer::{Builder, WriteOptions, Writer};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

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
        Some(dtype) => Plan::given(dtype, tables.rules.columns(), options.layout),
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
                        select,
                        named: found.names.is_some(),
                        number: NumberOptions { allow_overflow: options.allow_overflow },
                        notation: options.notation,
                        na: options.na.clone(),
                    };
                    surveys = vec![ColumnSurvey::default(); rules.columns()];
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
        if self.rules.columns() != like.columns {
            return Err(place(format!(
                "expected {} columns as {theirs} has, found {}",
                like.columns,
                self.rules.columns()
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
            Plan::Matrix(dtype) => format!("one {dtype} matrix of {} columns", self.rules.columns()),
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
        (0..self.rules.columns())
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
        self.progress.start(self.tables.iter().map(|table| table.source.known_len()).sum());
        match plan {
            Plan::Matrix(dtype) if self.are_files() => self.fill(*dtype, check_whole, out, write),
            Plan::Matrix(dtype) => {
                self.together.alone("an input whose records can't be counted first")?;
                let name = &self.options.name;
                let builder =
                    Builder::new(write.clone()).growing(name, *dtype, &[self.rules.columns() as u64]);
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
        let shape = [records, self.rules.columns() as u64];
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
        // A second start with wider types must find the bytes of streams again.
        let mut replay = Replay::new(&writer.scratch(), self.options.dtype.is_none(), |e| {
            matches!(e.kind(), ErrorKind::TypeMismatch | ErrorKind::Parse)
        });
        let mut sinks = Sinks::new(&writer, arrays, self.options.given.max_rows)?;
        let (rules, progress) = (&self.rules, self.progress);
        for index in 0..self.tables.len() {
            if sinks.is_full() {
                break;
            }
            replay.run(
                &mut self.tables,
                index,
                &rules.dialect,
                |piece| {
                    let rows = work(rules, piece);
                    progress.advance(piece.text.len() as u64)?;
                    Ok(rows)
                },
                |rows| sinks.take(rows),
            )?;
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
        let mut all = vec![ColumnSurvey::default(); self.rules.columns()];
        let rules = &self.rules;
        let mut left = self.options.given.max_rows.unwrap_or(u64::MAX);
        for table in &mut self.tables {
            let most = left;
            let work = |piece: &stream::Piece| {
                let mut surveys = vec![ColumnSurvey::default(); rules.columns()];
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
