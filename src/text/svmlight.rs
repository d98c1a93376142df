//! svmlight and libsvm: on each line a label and the values that are not zero, each with its index; kept
//! as the arrays of a matrix in compressed sparse rows.

use super::dialect::{Dialect, Header};
use super::foreign::mark_len;
use super::import::TextOptions;
use super::number::{Number, NumberOptions, whole_number};
use super::rows::Origin;
use super::stream::Piece;
use super::table::{Replay, Table};
use crate::append::Appender;
use crate::dtype::{DType, with_element};
use crate::error::{Error, ErrorKind, Result, escape_path, quoted};
use crate::input::Source;
use crate::output::{Output, Together};
use crate::progress::Progress;
use crate::writer::{Builder, WriteOptions, Writer};
use std::ops::ControlFlow;
use std::path::Path;

/// In the attributes of a dataset whose arrays are a sparse matrix: its shape.
pub(crate) const SPARSE: &str = "csr";

/// What the indices of a line count from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum IndexBase {
    /// 0 if any index is 0, else 1.
    #[default]
    Auto,
    /// 0.
    Zero,
    /// 1.
    One,
}

/// What to make of svmlight inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SparseOptions {
    /// What indices count from.
    pub base: IndexBase,
    /// Columns of the matrix; by the highest index if not given.
    pub features: Option<u64>,
    /// Whether each line has a list of whole numbers as labels.
    pub multilabel: bool,
}

/// What is settled before an attempt to read everything, and what may turn out to be wrong.
#[derive(Debug, Clone, Copy)]
struct Rules {
    dtype: DType,
    number: NumberOptions,
    zero_based: bool,
    /// Whether an index of 0 proves that wrong.
    is_guess: bool,
    qid: bool,
    multilabel: bool,
    features: Option<u64>,
}

/// The rows of a piece.
#[derive(Default)]
struct Rows {
    values: Vec<u8>,
    indices: Vec<i64>,
    /// Where each row ends in those, and in its labels.
    ends: Vec<u64>,
    labels: Vec<f64>,
    classes: Vec<i64>,
    class_ends: Vec<u64>,
    qids: Vec<i64>,
    fault: Option<Error>,
}

/// Writes the rows of `sources`, one after the other.
pub(crate) fn pack(
    sources: Vec<Source>,
    out: &Path,
    options: &TextOptions,
    write: &WriteOptions,
    together: Together,
    progress: &Progress,
) -> Result<(Output, Vec<String>)> {
    together.alone("a sparse matrix")?;
    let sparse = options.sparse;
    let mut tables = Vec::new();
    // Of the first line of a file in the form of the extreme classification repository.
    let mut promised = Vec::new();
    let mut qid = None;
    for mut source in sources {
        let path = source.path().to_owned();
        let start = source.peek(1 << 16)?;
        let mark = mark_len(&start);
        let start = &start[mark..];
        let first = &start[..memchr::memchr(b'\n', start).map_or(start.len(), |end| end + 1)];
        let mut origin = Origin { offset: mark as u64, lines: 0 };
        let mut skipped = 0;
        if options.given.header == Header::Yes {
            promised.push(Some(promise(first).ok_or_else(|| {
                let what = format!(
                    "expected the numbers of rows, features and labels, found {}",
                    quoted(&first[..first.len().min(80)])
                );
                Error::new(ErrorKind::Parse, what).line(1).at(&path)
            })?));
            skipped = first.len();
            origin = Origin { offset: (mark + skipped) as u64, lines: 1 };
        } else {
            promised.push(None);
        }
        let rest = start.get(skipped..).unwrap_or_default();
        let first = rest.split(|&byte| byte == b'\n').map(bare).find(|line| !line.is_empty());
        qid = qid.or(first.map(|line| fields(line).nth(1).is_some_and(|field| field.starts_with(b"qid:"))));
        tables.push(Table { source, path, origin });
    }
    if tables.is_empty() {
        return Err(Error::new(ErrorKind::InvalidArgument, "expected at least one input, found none"));
    }
    let features = promised.iter().flatten().map(|(_, features)| *features).max();
    let is_guess = sparse.base == IndexBase::Auto && features.is_none();
    let mut rules = Rules {
        dtype: options.dtype.unwrap_or(DType::Float64),
        number: NumberOptions { allow_overflow: options.allow_overflow },
        zero_based: sparse.base == IndexBase::Zero || sparse.base == IndexBase::Auto && features.is_some(),
        is_guess,
        qid: qid.unwrap_or(false),
        multilabel: sparse.multilabel,
        features: sparse.features.or(features),
    };
    let mut attempt =
        |rules: &Rules| Attempt { tables: &mut tables, rules, options, progress }.run(out, write, &promised);
    let result = match attempt(&rules) {
        // An index of 0 says what all of them count from.
        Err(e) if e.kind() == ErrorKind::TypeMismatch && rules.is_guess => {
            (rules.zero_based, rules.is_guess) = (true, false);
            attempt(&rules)
        }
        result => result,
    };
    let (output, rows, features) = result?;
    let base = if rules.zero_based { 0 } else { 1 };
    let more = if is_guess { "; otherwise by --zero-based, --features" } else { "" };
    let names: Vec<_> = tables.iter().map(|table| escape_path(&table.path)).collect();
    let note = format!(
        "{}: svmlight, indices from {base}, {rows} rows of {features} features{more}",
        names.join(", ")
    );
    Ok((output, vec![note]))
}

struct Attempt<'a> {
    tables: &'a mut [Table],
    rules: &'a Rules,
    options: &'a TextOptions,
    progress: &'a Progress,
}

impl Attempt<'_> {
    fn run(
        &mut self,
        out: &Path,
        write: &WriteOptions,
        promised: &[Option<(u64, u64)>],
    ) -> Result<(Output, u64, u64)> {
        let Rules { dtype, qid, multilabel, .. } = *self.rules;
        let builder = Builder::new(write.clone())
            .growing("data", dtype, &[])
            .growing("indices", DType::Int64, &[])
            .growing("indptr", DType::Int64, &[]);
        let builder = if multilabel {
            builder.growing("labels", DType::Int64, &[]).growing("labels_indptr", DType::Int64, &[])
        } else {
            builder.growing("labels", DType::Float64, &[])
        };
        let builder = if qid { builder.growing("qid", DType::Int64, &[]) } else { builder };
        let mut writer = builder.create(out)?;
        self.progress.start(self.tables.iter().map(|table| table.source.known_len()).sum());
        let mut sinks = Sinks::new(&writer, self.rules, self.options.given.max_rows)?;
        let (rules, progress) = (self.rules, self.progress);
        let dialect = Dialect::lines();
        let mut replay =
            Replay::new(&writer.scratch(), rules.is_guess, |e| e.kind() == ErrorKind::TypeMismatch);
        for (index, promised) in promised.iter().enumerate() {
            if sinks.left == 0 {
                break;
            }
            let before = sinks.rows;
            replay.run(
                self.tables,
                index,
                &dialect,
                |piece| {
                    let rows = with_element!(rules.dtype, T => read::<T>(rules, piece));
                    progress.advance(piece.text.len() as u64)?;
                    Ok(rows)
                },
                |rows| sinks.take(rows),
            )?;
            if let Some((expected, _)) =
                promised.filter(|(rows, _)| *rows != sinks.rows - before && sinks.left > 0)
            {
                return Err(Error::new(
                    ErrorKind::Corrupt,
                    format!(
                        "expected {expected} rows, as the first line says, found {}",
                        sinks.rows - before
                    ),
                )
                .at(&self.tables[index].path));
            }
        }
        let (rows, features) = (sinks.rows, self.rules.features.unwrap_or(sinks.features));
        sinks.finish()?;
        let mut attributes = crate::Attributes::new();
        attributes.insert(SPARSE.to_owned(), serde_json::json!({ "shape": [rows, features] }));
        writer.set_attributes(attributes);
        Ok((Output::Alone(writer), rows, features))
    }
}

/// The arrays that rows are appended to.
struct Sinks<'w> {
    writer: &'w Writer,
    data: Appender,
    indices: Appender,
    indptr: Appender,
    labels: Appender,
    labels_indptr: Option<Appender>,
    qid: Option<Appender>,
    rows: u64,
    values: u64,
    classes: u64,
    features: u64,
    left: u64,
}

impl<'w> Sinks<'w> {
    fn new(writer: &'w Writer, rules: &Rules, max_rows: Option<u64>) -> Result<Self> {
        let optional = |name: &str, wanted: bool| wanted.then(|| writer.appender(name)).transpose();
        let mut sinks = Self {
            writer,
            data: writer.appender("data")?,
            indices: writer.appender("indices")?,
            indptr: writer.appender("indptr")?,
            labels: writer.appender("labels")?,
            labels_indptr: optional("labels_indptr", rules.multilabel)?,
            qid: optional("qid", rules.qid)?,
            rows: 0,
            values: 0,
            classes: 0,
            features: 0,
            left: max_rows.unwrap_or(u64::MAX),
        };
        sinks.indptr.append(&0i64.to_le_bytes())?;
        if let Some(indptr) = &mut sinks.labels_indptr {
            indptr.append(&0i64.to_le_bytes())?;
        }
        Ok(sinks)
    }

    fn take(&mut self, rows: Rows) -> Result<ControlFlow<()>> {
        let wanted = (rows.ends.len() as u64).min(self.left) as usize;
        let end = |ends: &[u64]| wanted.checked_sub(1).and_then(|last| ends.get(last)).map_or(0, |&end| end);
        let (count, classes) = (end(&rows.ends), end(&rows.class_ends));
        let size = rows.values.len() / rows.indices.len().max(1);
        self.data.append(&rows.values[..count as usize * size])?;
        let indices = &rows.indices[..count as usize];
        self.features = indices.iter().fold(self.features, |most, &index| most.max(index as u64 + 1));
        self.indices.append(bytemuck::cast_slice(indices))?;
        let shifted = |ends: &[u64], by: u64| -> Vec<i64> {
            ends[..wanted].iter().map(|end| (end + by) as i64).collect()
        };
        self.indptr.append(bytemuck::cast_slice(&shifted(&rows.ends, self.values)))?;
        if let Some(indptr) = &mut self.labels_indptr {
            self.labels.append(bytemuck::cast_slice(&rows.classes[..classes as usize]))?;
            indptr.append(bytemuck::cast_slice(&shifted(&rows.class_ends, self.classes)))?;
        } else {
            self.labels.append(bytemuck::cast_slice(&rows.labels[..wanted]))?;
        }
        if let Some(qid) = &mut self.qid {
            qid.append(bytemuck::cast_slice(&rows.qids[..wanted]))?;
        }
        self.values += count;
        self.classes += classes;
        self.rows += wanted as u64;
        self.left -= wanted as u64;
        match rows.fault {
            _ if self.left == 0 => Ok(ControlFlow::Break(())),
            Some(fault) => Err(fault),
            None => Ok(ControlFlow::Continue(())),
        }
    }

    fn finish(self) -> Result<()> {
        let more = [self.labels_indptr, self.qid].into_iter().flatten();
        for appender in [self.data, self.indices, self.indptr, self.labels].into_iter().chain(more) {
            self.writer.finish(appender)?;
        }
        Ok(())
    }
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

/// A line without its comment and the blanks around it.
fn bare(line: &[u8]) -> &[u8] {
    let end = memchr::memchr(b'#', line).unwrap_or(line.len());
    line[..end].trim_ascii()
}

fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(is_blank).filter(|field| !field.is_empty())
}

/// Rows and features of a first line of three whole numbers.
fn promise(line: &[u8]) -> Option<(u64, u64)> {
    let numbers: Option<Vec<u64>> = fields(bare(line)).map(whole_number).collect();
    match numbers?[..] {
        [rows, features, _] => Some((rows, features)),
        _ => None,
    }
}

/// The rows of a piece, up to the first fault.
fn read<T: Number>(rules: &Rules, piece: &Piece) -> Rows {
    let mut rows = Rows::default();
    let (mut at, mut line) = (0, piece.origin.lines);
    while at < piece.text.len() {
        let end = memchr::memchr(b'\n', &piece.text[at..]).map_or(piece.text.len(), |len| at + len);
        line += 1;
        let text = &piece.text[at..end];
        let content = bare(text);
        if !content.is_empty()
            && let Err(fault) = rows.add::<T>(rules, content)
        {
            let field = fault.field_number().unwrap_or(1) as usize;
            // Blanks at the start are no field.
            let start = fields(content)
                .nth(field - 1)
                .map_or(0, |field| field.as_ptr().addr().saturating_sub(text.as_ptr().addr()));
            rows.fault = Some(fault.line(line).offset(piece.origin.offset + (at + start) as u64));
            break;
        }
        at = end + 1;
    }
    rows
}

impl Rows {
    /// Adds a line, or nothing of it.
    fn add<T: Number>(&mut self, rules: &Rules, line: &[u8]) -> Result<()> {
        let before = (self.values.len(), self.indices.len(), self.classes.len());
        let result = self.add_fields::<T>(rules, line);
        if result.is_err() {
            self.values.truncate(before.0);
            self.indices.truncate(before.1);
            self.classes.truncate(before.2);
            let rows = self.ends.len();
            self.labels.truncate(rows);
            self.class_ends.truncate(rows);
            self.qids.truncate(rows);
        }
        result
    }

    fn add_fields<T: Number>(&mut self, rules: &Rules, line: &[u8]) -> Result<()> {
        let mut rest = (1u64..).zip(fields(line)).peekable();
        let fault = |field: u64, expected: &str, found: &[u8]| {
            Error::new(ErrorKind::Parse, format!("expected {expected}, found {}", quoted(found))).field(field)
        };
        if rules.multilabel {
            // A line without labels starts with its first value.
            if let Some((number, field)) = rest.next_if(|(_, field)| !field.contains(&b':')) {
                for class in field.split(|&byte| byte == b',') {
                    let class = i64::parse(class, rules.number)
                        .map_err(|_| fault(number, "whole numbers with commas between as labels", field))?;
                    self.classes.push(class);
                }
            }
            self.class_ends.push(self.classes.len() as u64);
        } else if let Some((number, field)) = rest.next() {
            let label =
                f64::parse(field, rules.number).map_err(|_| fault(number, "a number as label", field))?;
            self.labels.push(label);
        }
        let qid = rest.peek().and_then(|(_, field)| field.strip_prefix(b"qid:"));
        match (qid, rules.qid) {
            (Some(qid), true) => {
                let number = rest.next().map_or(2, |(number, _)| number);
                self.qids.push(
                    i64::parse(qid, rules.number).map_err(|_| fault(number, "a whole number as qid", qid))?,
                );
            }
            (None, false) => {}
            (Some(_), false) => return Err(fault(2, "no qid, as the first line has none", b"qid:")),
            (None, true) => {
                let found = rest.peek().map_or(&b""[..], |(_, field)| *field);
                return Err(fault(2, "a qid, as the first line has one", found));
            }
        }
        let mut last = None;
        for (number, field) in rest {
            let colon = memchr::memchr(b':', field)
                .ok_or_else(|| fault(number, "an index, a colon and a value", field))?;
            let (index, value) = (&field[..colon], &field[colon + 1..]);
            let found = whole_number(index)
                .filter(|&index| index <= i64::MAX as u64)
                .ok_or_else(|| fault(number, "an index", index))?;
            if found == 0 && !rules.zero_based {
                let error = fault(number, "an index from 1", index);
                // Whoever guessed begins again.
                return Err(if rules.is_guess {
                    Error::new(ErrorKind::TypeMismatch, error.to_string()).field(number)
                } else {
                    error.hint("--zero-based yes counts from 0")
                });
            }
            let found = found - u64::from(!rules.zero_based);
            if let Some(last) = last.filter(|&last| found <= last) {
                let least = last + u64::from(!rules.zero_based);
                return Err(fault(number, &format!("an index above {least}"), index));
            }
            if let Some(features) = rules.features.filter(|&features| found >= features) {
                return Err(fault(number, &format!("an index of {features} features"), index));
            }
            last = Some(found);
            let value = T::parse(value, rules.number).map_err(|e| {
                let error = fault(number, &format!("an index, a colon and a value of {}", T::DTYPE), field);
                match e.hint() {
                    Some(hint) => error.hint(hint),
                    None => error,
                }
            })?;
            self.values.extend_from_slice(bytemuck::bytes_of(&value));
            self.indices.push(found as i64);
        }
        self.ends.push(self.indices.len() as u64);
        Ok(())
    }
}
