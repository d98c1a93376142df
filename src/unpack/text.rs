//! Arrays as lines of text: a matrix by its rows, or columns side by side.

use super::choice::{Item, names, rows};
use super::ordered;
use super::reader::Reader;
use super::wide::{LongRow, Piece, is_wide};
use super::{Target, UnpackOptions};
use crate::buffer::Buffer;
use crate::dataset::Dataset;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::manifest::ArrayEntry;
use crate::progress::Progress;
use crate::text::format::{Column, Kind, MixedFormatter, RowFormatter, Style, quote};
use serde_json::Value;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// All blocks of text together.
const TEXT_BYTES: usize = 24 << 20;
/// The least and most that one block should be. It may be more where files are opened for each.
const BLOCK_BYTES: (usize, usize) = (64 << 10, 1 << 20);
/// The most values of one block, however short they are.
const BLOCK_VALUES: u64 = 128 << 10;
/// The values of the first blocks, before it is known how long they are.
const FIRST_VALUES: u64 = 1024;

/// A table of text that can be written in pieces.
pub(super) struct Text<'a> {
    reader: &'a Reader<'a>,
    pub(super) items: Vec<Item<'a>>,
    table: Table<'a>,
    pub(super) style: Style,
    pub(super) delimiter: Vec<u8>,
    header: bool,
    progress: &'a Progress,
    dataset: &'a Dataset,
}

enum Table<'a> {
    /// Values in row-major order, `columns` to a line. The formatter takes whole rows, or single values
    /// where rows are `wide`.
    Matrix { array: &'a ArrayEntry, columns: u64, formatter: RowFormatter, wide: bool },
    /// One array a column.
    Columns(MixedFormatter),
}

const NEWLINE: &[u8] = b"\n";

impl<'a> Text<'a> {
    pub(super) fn new(
        dataset: &'a Dataset,
        reader: &'a Reader<'a>,
        items: Vec<Item<'a>>,
        target: Target,
        options: &UnpackOptions,
        progress: &'a Progress,
    ) -> Result<(Self, Range<u64>)> {
        let style = Style::parse(options.fmt.as_slice())?;
        let delimiter = delimiter(target, options)?;
        let at = |e: Error| e.at(dataset.path());
        let (table, rows) = match &items[..] {
            [Item::Plain(array)] => {
                let table = matrix(array, &style, &delimiter).map_err(at)?;
                let single =
                    array.layout.shape().is_empty() && options.rows.is_none() && options.parts.is_none();
                (table, if single { 0..1 } else { rows(dataset, &items, options.rows.as_ref())? })
            }
            _ => {
                let equal = items.iter().all(|item| item.is_column() && item.rows() == items[0].rows());
                if !equal {
                    return Err(at(Error::new(
                        ErrorKind::InvalidArgument,
                        format!("expected columns of equal length for text, found {}", names(&items)),
                    )
                    .hint("--array NAME chooses one array, npz holds all")));
                }
                let kinds: Vec<Kind> = items.iter().map(kind).collect();
                let formatter = MixedFormatter::new(&kinds, &style, &delimiter, NEWLINE).map_err(at)?;
                (Table::Columns(formatter), rows(dataset, &items, options.rows.as_ref())?)
            }
        };
        let header = options.header;
        Ok((Self { reader, items, table, style, delimiter, header, progress, dataset }, rows))
    }

    /// Hands rows `rows` to `write` in order; `path` is for errors that a value causes.
    pub(super) fn write(
        &self,
        rows: Range<u64>,
        workers: usize,
        path: &Path,
        mut write: impl FnMut(&[u8]) -> Result<()> + Send,
    ) -> Result<()> {
        if self.header {
            self.write_header(&mut write)?;
        }
        let place = Place { first: rows.start, header: self.header, path, dataset: self.dataset };
        let sizes = Sizes::new(workers, self.reader.keeps_open(self.items.len()));
        match &self.table {
            Table::Matrix { array, columns, formatter, wide } => {
                let values = rows.start * columns..rows.end * columns;
                let mut at = values.start;
                let next = || {
                    let start = at;
                    let whole = if *wide { 1 } else { *columns };
                    at = values.end.min(start + (sizes.values() / whole).max(1) * whole);
                    Ok((start < at).then_some(start..at))
                };
                let work = |job: Range<u64>, memory: &mut Buffer, out: &mut Vec<u8>| {
                    let size = array.layout.dtype().size();
                    let count = job.end - job.start;
                    memory.resize((count * size) as usize);
                    self.reader.read(array, job.start * size, memory.bytes_mut())?;
                    let done = if *wide {
                        self.cells(formatter, *columns, job.start, memory.bytes(), out)
                    } else {
                        formatter.rows_le(memory.bytes(), out)
                    };
                    done.map_err(|e| place.line(e, job.start / columns))?;
                    sizes.seen(count, out.len());
                    self.progress.advance(count * size)
                };
                ordered::run(workers, next, work, write)
            }
            Table::Columns(formatter) => {
                let mut planner = Planner { text: self, sizes: &sizes, rows, long: None };
                let next = || planner.next();
                let work = |job: Job, memory: &mut Memory, out: &mut Vec<u8>| match job {
                    Job::Rows(run) => {
                        let read = self.columns(&run, memory)?;
                        let columns: Vec<_> = self.items.iter().zip(&memory.columns).map(column).collect();
                        formatter.rows(&columns, out).map_err(|e| place.line(e, run.start))?;
                        sizes.seen((run.end - run.start) * self.items.len() as u64, out.len());
                        self.progress.advance(read)
                    }
                    Job::Piece(row, piece) => {
                        let read = self.piece(row, piece, memory, out).map_err(|e| place.line(e, row))?;
                        self.progress.advance(read)
                    }
                };
                ordered::run(workers, next, work, write)
            }
        }
    }

    /// Values of rows too long to be taken whole, from value `first` of the array on.
    fn cells(
        &self,
        formatter: &RowFormatter,
        columns: u64,
        first: u64,
        mut bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let Table::Matrix { array, .. } = &self.table else { return Ok(()) };
        let size = array.layout.dtype().size();
        let mut at = first;
        while !bytes.is_empty() {
            let to_end = columns - at % columns;
            let take = to_end.min(bytes.len() as u64 / size);
            let values;
            (values, bytes) = bytes.split_at((take * size) as usize);
            formatter.rows_le(values, out).map_err(|e| {
                let value = at + e.line_number().unwrap_or(1) - 1;
                e.line(value / columns - first / columns + 1).field(value % columns + 1)
            })?;
            if take == to_end {
                // Every value has the delimiter behind it.
                out.truncate(out.len().saturating_sub(self.delimiter.len()));
                out.extend_from_slice(NEWLINE);
            }
            at += take;
        }
        Ok(())
    }

    /// Reads a run of rows of all columns; gives how many bytes that was.
    fn columns(&self, rows: &Range<u64>, memory: &mut Memory) -> Result<u64> {
        let count = (rows.end - rows.start) as usize;
        let mut read = 0;
        memory.columns.resize_with(self.items.len(), ColumnMemory::default);
        for (item, column) in self.items.iter().zip(&mut memory.columns) {
            match item {
                Item::Plain(array) => {
                    let size = array.layout.dtype().size();
                    column.bytes.resize(count * size as usize, 0);
                    self.reader.read(array, rows.start * size, &mut column.bytes)?;
                }
                Item::Strings { offsets, bytes, .. } => {
                    let ColumnMemory { offsets: found, bytes: text, .. } = column;
                    self.reader.offsets(offsets, rows.start, count + 1, &mut memory.raw, found)?;
                    let range = self.string_bytes(item, bytes, found)?;
                    found.iter_mut().for_each(|offset| *offset = offset.saturating_sub(range.start));
                    text.resize((range.end - range.start) as usize, 0);
                    self.reader.read(bytes, range.start, text)?;
                    read += 8 * count as u64;
                }
            }
            read += column.bytes.len() as u64;
        }
        Ok(read)
    }

    /// Where the bytes of a run of strings are, if the offsets can be true.
    pub(super) fn string_bytes(
        &self,
        item: &Item<'_>,
        bytes: &ArrayEntry,
        offsets: &[u64],
    ) -> Result<Range<u64>> {
        let (first, last) = match offsets {
            [first, .., last] => (*first, *last),
            _ => (0, 0),
        };
        let all = bytes.layout.rows();
        if offsets.is_sorted() && last <= all {
            return Ok(first..last);
        }
        let name = quoted(item.name().as_bytes());
        Err(self.reader.corrupt(format!(
            "strings {name}: expected offsets that grow within 0..{all}, found {first}..{last}"
        )))
    }

    pub(super) fn reader(&self) -> &'a Reader<'a> {
        self.reader
    }

    fn write_header(&self, write: &mut impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut line = Vec::new();
        let columns = match &self.table {
            Table::Matrix { columns, .. } => *columns,
            Table::Columns(_) => self.items.len() as u64,
        };
        let named = match &self.items[..] {
            [Item::Plain(array)] => given_names(array, columns),
            _ => None,
        };
        for i in 0..columns {
            if i > 0 {
                line.extend_from_slice(&self.delimiter);
            }
            let is_matrix = |item: &Item<'_>| matches!(item, Item::Plain(a) if a.layout.shape().len() == 2);
            match (&named, self.items.get(i as usize).filter(|item| !is_matrix(item))) {
                (Some(names), _) => {
                    let name = names.get(i as usize).and_then(Value::as_str).unwrap_or_default();
                    quote(name.as_bytes(), &self.delimiter, &mut line);
                }
                (None, Some(item)) => quote(item.name().as_bytes(), &self.delimiter, &mut line),
                (None, None) => line.extend_from_slice(format!("f{i}").as_bytes()),
            }
            if line.len() >= BLOCK_BYTES.1 {
                write(&line)?;
                line.clear();
            }
        }
        line.extend_from_slice(NEWLINE);
        write(&line)
    }
}

/// What a worker reads into.
#[derive(Default)]
pub(super) struct Memory {
    columns: Vec<ColumnMemory>,
    pub(super) raw: Vec<u8>,
}

#[derive(Default)]
struct ColumnMemory {
    offsets: Vec<u64>,
    bytes: Vec<u8>,
}

fn column<'m>((item, memory): (&Item<'_>, &'m ColumnMemory)) -> Column<'m> {
    match item {
        Item::Plain(array) => Column::Number(array.layout.dtype(), &memory.bytes),
        Item::Strings { .. } => Column::Text { offsets: &memory.offsets, bytes: &memory.bytes },
    }
}

pub(super) fn kind(item: &Item<'_>) -> Kind {
    match item {
        Item::Plain(array) => Kind::Number(array.layout.dtype()),
        Item::Strings { .. } => Kind::Text,
    }
}

fn matrix<'a>(array: &'a ArrayEntry, style: &Style, delimiter: &[u8]) -> Result<Table<'a>> {
    let (layout, name) = (&array.layout, quoted(array.name.as_bytes()));
    let columns = match *layout.shape() {
        [] | [_] => 1,
        [_, columns] => columns,
        ref more => {
            let what = format!("array {name}: expected 1 or 2 dimensions for text, found {}", more.len());
            return Err(Error::new(ErrorKind::InvalidArgument, what).hint("npy and npz hold more"));
        }
    };
    let wide = is_wide(layout.dtype(), columns, style)?;
    let formatter = if wide {
        RowFormatter::new(layout.dtype(), 1, style, delimiter, delimiter)
    } else {
        RowFormatter::new(layout.dtype(), columns as usize, style, delimiter, NEWLINE)
    };
    let formatter = formatter.map_err(|e| Error::new(e.kind(), format!("array {name}: {e}")))?;
    Ok(Table::Matrix { array, columns, formatter, wide })
}

fn delimiter(target: Target, options: &UnpackOptions) -> Result<Vec<u8>> {
    let given = options.delimiter.as_deref();
    let delimiter = given.unwrap_or(if target == Target::Tsv { "\t" } else { "," });
    // Between numbers it would be a part of them.
    let in_numbers = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    if delimiter.chars().all(in_numbers) || delimiter.contains(['\n', '\r', '"']) {
        let what = format!(
            "expected a delimiter that is no part of numbers, without quotes and line ends, found {}",
            quoted(delimiter.as_bytes())
        );
        return Err(Error::new(ErrorKind::InvalidArgument, what));
    }
    Ok(delimiter.as_bytes().to_vec())
}

/// The names that the columns of a matrix had where it came from.
fn given_names(array: &ArrayEntry, columns: u64) -> Option<&Vec<Value>> {
    let names = array.attributes.get("columns")?.as_array()?;
    (names.len() as u64 == columns && names.iter().all(Value::is_string)).then_some(names)
}

/// What the line of an error is counted from.
struct Place<'a> {
    first: u64,
    header: bool,
    path: &'a Path,
    dataset: &'a Dataset,
}

impl Place<'_> {
    /// Puts an error with a line in a run of rows, counted from 1, to its place: a value that the format
    /// can't write where it would have been written, a damaged one where it is.
    fn line(&self, error: Error, first: u64) -> Error {
        let Some(line) = error.line_number() else { return error.at(self.dataset.path()) };
        if error.kind() == ErrorKind::Corrupt {
            return error.line(first + line).at(self.dataset.path());
        }
        error.line(first - self.first + line + u64::from(self.header)).at(self.path)
    }
}

/// How many values make a block: as many as have been as long as one so far.
pub(super) struct Sizes {
    pub(super) block_bytes: usize,
    /// Values of a block, however short they are.
    most: u64,
    /// Bytes of 1024 values, the most yet.
    longest: AtomicU64,
}

impl Sizes {
    fn new(workers: usize, bounded: bool) -> Self {
        let share = (TEXT_BYTES / (ordered::window(workers) + 1)).max(BLOCK_BYTES.0);
        let block_bytes = if bounded { share.min(BLOCK_BYTES.1) } else { share };
        let most = if bounded { BLOCK_VALUES } else { u64::MAX };
        Self { block_bytes, most, longest: AtomicU64::new(0) }
    }

    fn values(&self) -> u64 {
        match self.longest.load(Ordering::Relaxed) {
            0 => FIRST_VALUES,
            longest => (1024 * self.block_bytes as u64 / longest).clamp(1, self.most),
        }
    }

    fn seen(&self, values: u64, bytes: usize) {
        self.longest.fetch_max((1024 * bytes as u64).checked_div(values).unwrap_or(0), Ordering::Relaxed);
    }
}

enum Job {
    Rows(Range<u64>),
    /// Of one row.
    Piece(u64, Piece),
}

/// Cuts a table of columns into runs of rows that fit into memory.
struct Planner<'a, 't> {
    text: &'t Text<'a>,
    sizes: &'t Sizes,
    /// Those that are left.
    rows: Range<u64>,
    /// A row that is written in pieces.
    long: Option<LongRow>,
}

impl Planner<'_, '_> {
    fn next(&mut self) -> Result<Option<Job>> {
        if let Some(long) = &mut self.long {
            match long.next(self.text) {
                Some(piece) => return Ok(Some(Job::Piece(long.row, piece))),
                None => self.long = None,
            }
        }
        if self.rows.is_empty() {
            return Ok(None);
        }
        let row = self.rows.start;
        let count = self.fitting()?;
        self.rows.start += count.max(1);
        if count > 0 {
            return Ok(Some(Job::Rows(row..row + count)));
        }
        let mut long = LongRow::new(self.text, row, self.sizes.block_bytes)?;
        let piece = long.next(self.text);
        self.long = Some(long);
        Ok(piece.map(|piece| Job::Piece(row, piece)))
    }

    /// How many rows the next block takes: none if the strings of one are too much for it.
    fn fitting(&self) -> Result<u64> {
        let items = &self.text.items;
        let size = |item: &Item<'_>| match item {
            Item::Plain(array) => array.layout.dtype().size(),
            Item::Strings { .. } => DType::UInt64.size(),
        };
        let (columns, row_bytes) = (items.len() as u64, items.iter().map(size).sum::<u64>());
        let block_bytes = self.sizes.block_bytes as u64;
        let most = (self.sizes.values() / columns).min(block_bytes / row_bytes).max(1);
        let most = most.min(self.rows.end - self.rows.start);
        // Bytes of the strings of the first row, of the first two …
        let mut totals: Option<Vec<u64>> = None;
        let (mut raw, mut offsets) = (Vec::new(), Vec::new());
        for item in items {
            let Item::Strings { offsets: array, bytes, .. } = item else { continue };
            self.text.reader.offsets(array, self.rows.start, most as usize + 1, &mut raw, &mut offsets)?;
            let start = self.text.string_bytes(item, bytes, &offsets)?.start;
            let totals = totals.get_or_insert_with(|| vec![0; most as usize]);
            for (total, end) in totals.iter_mut().zip(&offsets[1..]) {
                *total = total.saturating_add(end - start);
            }
        }
        let Some(totals) = totals else { return Ok(most) };
        let fitting = totals.partition_point(|&total| total <= block_bytes) as u64;
        let one_more = fitting == 0 && totals[0] <= 2 * block_bytes;
        Ok(if one_more { 1 } else { fitting })
    }
}
