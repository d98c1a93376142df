//! What dialect a text is in, told from its first bytes.
//!
//! Nothing that is guessed here makes a line vanish: what is left out at the top is a byte-order
//! mark, lines the caller said to skip, comment lines, and a header, and the summary names each.

use super::dialect::{Delimiter, Dialect, Header, LineEnd, Missing, Ragged};
use super::foreign::{mark_len, refuse_binary, refuse_foreign};
use super::header::{Row, column_names, has_numbers, is_header, is_marked_data, without_mark};
use super::record::{Fields, Records, Rules};
use super::{count::last_record_end, record::Line};
use crate::error::{Error, ErrorKind, Result, quoted};
use std::collections::HashMap;
use std::fmt;

/// Bytes and records looked at for the guess of types. If the first two records are longer, more
/// is looked at, but not without bound: a quote that is never closed must not read the whole file.
const SAMPLE: usize = 256 << 10;
const SAMPLE_ROWS: usize = 2000;
const MOST: usize = 64 << 20;
/// Bytes and records looked at for the guess of the delimiter.
const PREVIEW: usize = 64 << 10;
const PREVIEW_ROWS: usize = 100;

/// What a field holds, as the number kernels have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Nothing, or a word for a missing value.
    Empty,
    /// A whole number that an `int64` holds.
    Int,
    /// A whole number that only a `uint64` holds.
    UInt,
    /// A number that a `float64` holds rounded.
    Float,
    /// A complex number.
    Complex,
    /// Anything else.
    Text,
}

/// A field's class, and whether a `float64` holds its value without loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Classified {
    /// What it holds.
    pub class: Class,
    /// Whether a whole number comes back from a `float64`; true for all else.
    pub exact_in_f64: bool,
}

/// What the caller has said; the rest is guessed.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// The file name's last extension without the dot and compression: `csv` of `a.csv.gz`.
    pub extension: Option<String>,
    /// What separates fields.
    pub delimiter: Option<Delimiter>,
    /// The quote, or none.
    pub quote: Option<Option<u8>>,
    /// The comment prefix, or none.
    pub comment: Option<Option<Vec<u8>>>,
    /// Where lines end.
    pub line_end: Option<LineEnd>,
    /// Whether there is a header.
    pub header: Header,
    /// Lines to leave out at the top.
    pub skip_lines: u64,
    /// Records to read at most.
    pub max_rows: Option<u64>,
    /// What an empty field becomes.
    pub missing: Missing,
    /// What becomes of a record of another width.
    pub ragged: Ragged,
}

/// What the sampled fields of a column have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The narrowest class that holds all of them; `Float` if some whole numbers are negative and
    /// others too large for an `int64`.
    pub class: Class,
    /// Whether some are empty.
    pub has_empty: bool,
    /// Whether some are negative.
    pub has_negative: bool,
    /// Whether all whole numbers come back from a `float64`.
    pub exact_in_f64: bool,
}

/// What was found out about a text.
#[derive(Debug, Clone)]
pub struct Detected {
    /// The dialect, `header` settled to yes or no. What it says of skipped lines is done already:
    /// the data start at `data_start`.
    pub dialect: Dialect,
    /// Column names, if there is a header.
    pub names: Option<Vec<String>>,
    /// One for each column, from a sample: only a reading of the whole input settles types.
    pub columns: Vec<Column>,
    /// Where the first record of data may start, in bytes from the start of the text.
    pub data_start: usize,
    /// The line that starts there, counted from 1.
    pub data_line: u64,
    /// Whether the text starts with the byte-order mark of UTF-8.
    pub has_mark: bool,
    /// Comment lines left out at the top of a delimited file, by guess.
    pub top_comments: u64,
}

/// Finds out how `text` is written. `text` is the whole input, if `complete`, or a good piece of
/// its start (1 MiB); `classify` says what a trimmed field holds.
///
/// Returns `None` if `text` is too short to tell and not complete.
///
/// # Errors
/// `Unsupported` if it is no text table; `InvalidArgument` if what the caller has said does not go
/// together; `Parse` if there is no record in it, or its first record is of another kind than the
/// rest.
pub fn detect(
    text: &[u8],
    complete: bool,
    given: &Given,
    classify: &dyn Fn(&[u8]) -> Classified,
) -> Result<Option<Detected>> {
    refuse_foreign(text)?;
    refuse_binary(&text[..text.len().min(SAMPLE)])?;
    let has_mark = mark_len(text) > 0;
    let line_end = given.line_end.unwrap_or_else(|| line_end_of(text));
    let base = dialect_of(Delimiter::Byte(b','), given, line_end);
    let mut top = Records::new(&text[usize::from(has_mark) * 3..], &base);
    let skipped = top.skip_lines(given.skip_lines);
    if skipped < given.skip_lines && !complete {
        return Ok(None);
    }
    let from = usize::from(has_mark) * 3 + top.position();
    let source = Source { text, complete, given, line_end, classify };
    let start = Start { at: from, line: skipped + 1 };

    let body = if given.comment.is_none() { start.after_marks(text, line_end) } else { start };
    let Some((dialect, body)) = source.choose(body, start) else {
        return if complete { Err(nothing(text, start, &base)) } else { Ok(None) };
    };
    dialect.check()?;
    let rows = source.rows(body, &dialect, SAMPLE, SAMPLE_ROWS);
    if rows.len() < 2 && !complete {
        return Ok(None);
    }
    let mut found = Detected {
        dialect: dialect.clone(),
        names: None,
        columns: Vec::new(),
        data_start: body.at,
        data_line: body.line,
        has_mark,
        top_comments: 0,
    };
    let marked = if body == start { Vec::new() } else { source.marked(start, body, &dialect) };
    found.top_comments = marked.len() as u64;
    let Some(first) = rows.first() else {
        return Err(nothing(text, body, &dialect));
    };
    source.first_is_like_the_rest(&rows)?;
    let delimited = dialect.delimiter != Delimiter::Blanks;
    let named_above = marked
        .last()
        .filter(|row| delimited && row.fields.len() == first.fields.len() && first.fields.len() > 1);
    let header = match given.header {
        Header::Auto => is_header(&rows, delimited, classify)?,
        Header::Yes => named_above.is_none() || !has_numbers(first, classify),
        Header::No => false,
    };
    let mut data = &rows[..];
    if header {
        found.names = Some(column_names(&first.fields));
        (found.data_start, found.data_line) = (first.next, source.line_after(first, body));
        data = &rows[1..];
    } else if let Some(above) = named_above.filter(|_| given.header != Header::No) {
        found.names = Some(column_names(&without_mark(above.fields.clone())));
    }
    found.dialect.header = if found.names.is_some() { Header::Yes } else { Header::No };
    let width = match &found.names {
        Some(names) => names.len(),
        None => width_of(&rows, given.ragged),
    };
    found.columns = columns(data, width, classify);
    Ok(Some(found))
}

/// A place where a record may start.
#[derive(Clone, Copy, PartialEq)]
struct Start {
    at: usize,
    line: u64,
}

impl Start {
    /// The place after leading lines that are blank or start with `#`, up to the end of the last
    /// of the latter; this place if there are none or nothing comes after them.
    fn after_marks(self, text: &[u8], line_end: LineEnd) -> Start {
        let dialect = Dialect::text().with_line_end(line_end);
        let rules = Rules::new(&dialect);
        let (mut here, mut after) = (self, self);
        while here.at < text.len() {
            let marked = match rules.line_at(text, here.at) {
                Line::Record(_) => return after,
                Line::Empty(_) => false,
                Line::Comment(_) => true,
            };
            here = Start { at: rules.rest_of_line(text, here.at).1, line: here.line + 1 };
            if marked {
                after = here;
            }
        }
        self
    }
}

struct Source<'a> {
    text: &'a [u8],
    complete: bool,
    given: &'a Given,
    line_end: LineEnd,
    classify: &'a dyn Fn(&[u8]) -> Classified,
}

impl Source<'_> {
    /// Whole records from `start` on, at most `most`, in about `bytes` bytes but at least two if
    /// there are so many. Those before a fault only.
    fn rows(&self, start: Start, dialect: &Dialect, bytes: usize, most: usize) -> Vec<Row> {
        let rest = &self.text[start.at..];
        let mut limit = bytes;
        loop {
            let all = limit >= rest.len();
            let window = if all && self.complete {
                rest
            } else {
                let window = &rest[..limit.min(rest.len())];
                &window[..last_record_end(window, dialect)]
            };
            let rows = rows_of(window, start, dialect, most);
            if all || rows.len() > 1 || limit >= MOST {
                return rows;
            }
            limit = limit.saturating_mul(4);
        }
    }

    /// The dialect and where its records start: `body`, or `top` where lines that look like
    /// comments are data.
    fn choose(&self, body: Start, top: Start) -> Option<(Dialect, Start)> {
        let (dialect, rows) = self.best(body)?;
        if body == top {
            return Some((dialect, top));
        }
        if dialect.delimiter == Delimiter::Blanks {
            // comments are part of this dialect wherever they stand
            return Some((dialect, top));
        }
        let width = rows.first()?.fields.len();
        let numbers = rows.iter().any(|row| has_numbers(row, self.classify));
        let data = |row: &Row| {
            is_marked_data(row, width, self.classify) || !(numbers || width > 1 && row.fields.len() != width)
        };
        let data = self.marked(top, body, &dialect).iter().any(data);
        Some((dialect, if data { top } else { body }))
    }

    /// The lines between two places that hold anything, as records.
    fn marked(&self, top: Start, body: Start, dialect: &Dialect) -> Vec<Row> {
        let dialect = Dialect { quote: None, ..dialect.clone() };
        rows_of(&self.text[top.at..body.at], top, &dialect, usize::MAX)
    }

    /// The dialect that splits the first records best, and these.
    fn best(&self, start: Start) -> Option<(Dialect, Vec<Row>)> {
        let preview = |dialect: &Dialect| self.rows(start, dialect, PREVIEW, PREVIEW_ROWS);
        let extension = self.given.extension.as_deref().unwrap_or_default().to_ascii_lowercase();
        let (default, named) = match extension.as_str() {
            "csv" => (Delimiter::Byte(b','), true),
            "tsv" | "tab" => (Delimiter::Byte(b'\t'), true),
            _ => (Delimiter::Blanks, false),
        };
        let mut candidates: Vec<Delimiter> = b"\t,;|".iter().map(|&byte| Delimiter::Byte(byte)).collect();
        candidates.push(Delimiter::Blanks);
        candidates.sort_by_key(|&delimiter| !(named && delimiter == default));
        if let Some(delimiter) = self.given.delimiter {
            candidates = vec![delimiter];
        }
        let mut best: Option<(f64, Dialect, Vec<Row>)> = None;
        for delimiter in candidates {
            // Blanks bring comments in, and could take a record that starts with their mark for one.
            let fits =
                |dialect: &Dialect, rows: &[Row]| dialect.delimiter == default && even(rows) == Some(1.0);
            let is_settled = named && best.as_ref().is_some_and(|(_, dialect, rows)| fits(dialect, rows));
            if delimiter == Delimiter::Blanks && is_settled {
                continue;
            }
            let (dialect, rows) =
                self.quoted_or_not(dialect_of(delimiter, self.given, self.line_end), &preview);
            let score = self.score(&rows, &dialect, named);
            let better = best.as_ref().is_none_or(|&(most, ..)| score > most);
            if !rows.is_empty() && better {
                best = Some((score, dialect, rows));
            }
        }
        let (score, dialect, rows) = best?;
        if score > 0.0 || self.given.delimiter.is_some() {
            return Some((dialect, rows));
        }
        let dialect = dialect_of(default, self.given, self.line_end);
        let rows = preview(&dialect);
        (!rows.is_empty()).then_some((dialect, rows))
    }

    /// Tabs and blanks separate with and without quotes. In tab-separated files the quote stays
    /// unless the records only line up without; in blank-separated ones it comes in only if they
    /// only line up with it.
    fn quoted_or_not(&self, dialect: Dialect, preview: &dyn Fn(&Dialect) -> Vec<Row>) -> (Dialect, Vec<Row>) {
        let rows = preview(&dialect);
        let has_quote = |row: &Row| row.fields.iter().any(|field| field.contains(&b'"'));
        let other = match dialect.delimiter {
            Delimiter::Byte(b'\t') if dialect.quote.is_some() => None,
            Delimiter::Blanks if rows.iter().any(has_quote) => Some(b'"'),
            _ => return (dialect, rows),
        };
        if self.given.quote.is_some() {
            return (dialect, rows);
        }
        let without = dialect.clone().with_quote(other);
        let other_rows = preview(&without);
        let lines = |rows: &[Row]| rows.last().map_or(0, |row| row.line);
        // a quote that swallows lines of the right width is no quote
        let swallows = other.is_none() && (rows.len() as u64) < lines(&rows).min(other_rows.len() as u64);
        if even(&other_rows) == Some(1.0) && (even(&rows) != Some(1.0) || swallows) {
            (without, other_rows)
        } else {
            (dialect, rows)
        }
    }

    /// How well `rows` look like a table of more than one column: 0 if not at all.
    fn score(&self, rows: &[Row], dialect: &Dialect, named: bool) -> f64 {
        let Some(even) = even(rows) else { return 0.0 };
        let blanks = dialect.delimiter == Delimiter::Blanks;
        let splits = rows.iter().all(|row| row.fields.len() > 1);
        let even = match even {
            1.0 => 1.0,
            share if share >= 0.6 && rows.len() > 3 => 0.7,
            _ if splits && !blanks => 0.4,
            _ => return 0.0,
        };
        let below = if rows.len() > 1 { &rows[1..] } else { rows };
        let (mut fields, mut numbers) = (0_u32, 0_u32);
        for field in below.iter().flat_map(|row| &row.fields).map(|field| field.trim_ascii()) {
            let decimal_comma = matches!(dialect.delimiter, Delimiter::Byte(b';' | b'\t' | b'|'));
            match (self.classify)(field).class {
                Class::Empty => continue,
                Class::Text if !(decimal_comma && self.has_decimal_comma(field)) => {}
                _ => numbers += 1,
            }
            fields += 1;
        }
        if blanks && named && numbers == 0 {
            return 0.0;
        }
        even + f64::from(numbers) / f64::from(fields.max(1))
    }

    fn has_decimal_comma(&self, field: &[u8]) -> bool {
        let Some(comma) = field.iter().position(|&byte| byte == b',') else { return false };
        let digit = |at: Option<usize>| at.and_then(|at| field.get(at)).is_some_and(u8::is_ascii_digit);
        let mut point = field.to_vec();
        point[comma] = b'.';
        digit(comma.checked_sub(1))
            && digit(Some(comma + 1))
            && !matches!((self.classify)(&point).class, Class::Text | Class::Empty)
    }

    /// A first line that alone is of another width than the lines below: a count, or a title.
    fn first_is_like_the_rest(&self, rows: &[Row]) -> Result<()> {
        let Some((first, rest)) = rows.split_first() else { return Ok(()) };
        let width = rest.first().map_or(0, |row| row.fields.len());
        let odd = rest.len() > 2
            && width != first.fields.len()
            && rest.iter().all(|row| row.fields.len() == width)
            && (has_numbers(first, self.classify) || width > first.fields.len() + 1);
        if !odd || self.given.header != Header::Auto || self.given.ragged != Ragged::Error {
            return Ok(());
        }
        let what = format!("expected {width} fields as in the lines below, found {}", first.fields.len());
        Err(Error::new(ErrorKind::Parse, what)
            .line(first.line)
            .hint("--skip-rows leaves the line out, --ragged pads or skips such rows"))
    }

    fn line_after(&self, row: &Row, body: Start) -> u64 {
        let dialect = Dialect::csv().with_line_end(self.line_end);
        body.line + Rules::new(&dialect).line_ends(&self.text[body.at..row.next])
    }
}

/// CR ends lines only if more lines of the first bytes end so than by LF: one among the fields of a table
/// means the same wherever it stands.
fn line_end_of(text: &[u8]) -> LineEnd {
    let sample = &text[..text.len().min(1 << 20)];
    let alone = memchr::memchr_iter(b'\r', sample).filter(|&at| sample.get(at + 1) != Some(&b'\n')).count();
    if alone > 0 && alone > memchr::memchr_iter(b'\n', sample).count() { LineEnd::Any } else { LineEnd::Lf }
}

fn dialect_of(delimiter: Delimiter, given: &Given, line_end: LineEnd) -> Dialect {
    let preset = match delimiter {
        Delimiter::Blanks => Dialect::text(),
        other => Dialect::csv().with_delimiter(other),
    };
    Dialect {
        quote: given.quote.unwrap_or(preset.quote),
        comment: given.comment.clone().unwrap_or(preset.comment),
        delimiter,
        line_end,
        header: given.header,
        skip_lines: given.skip_lines,
        max_rows: given.max_rows,
        missing: given.missing.clone(),
        ragged: given.ragged,
    }
}

fn rows_of(window: &[u8], start: Start, dialect: &Dialect, most: usize) -> Vec<Row> {
    let mut records = Records::new(window, dialect).from_place(start.line, start.at as u64);
    let (mut fields, mut rows, mut scratch) = (Fields::new(), Vec::new(), Vec::new());
    while rows.len() < most {
        let Some(Ok(record)) = records.next(&mut fields) else { break };
        let value = |field| fields.value(window, field, &mut scratch).to_vec();
        rows.push(Row {
            line: record.line,
            next: start.at + record.next,
            fields: (0..fields.len()).map(value).collect(),
        });
    }
    rows
}

/// The share of rows of the most frequent width; `None` if that is one column.
fn even(rows: &[Row]) -> Option<f64> {
    let (width, times) = usual_width(rows)?;
    (width > 1).then(|| times as f64 / rows.len() as f64)
}

/// The most frequent width, of two the larger, and how frequent it is.
fn usual_width(rows: &[Row]) -> Option<(usize, usize)> {
    let mut widths: HashMap<usize, usize> = HashMap::new();
    for row in rows {
        *widths.entry(row.fields.len()).or_default() += 1;
    }
    widths.into_iter().max_by_key(|&(width, times)| (times, width))
}

fn width_of(rows: &[Row], ragged: Ragged) -> usize {
    let widths = rows.iter().map(|row| row.fields.len());
    match ragged {
        Ragged::Error => widths.take(1).next(),
        Ragged::Pad => widths.max(),
        Ragged::Skip => usual_width(rows).map(|(width, _)| width),
    }
    .unwrap_or(0)
}

fn columns(rows: &[Row], width: usize, classify: &dyn Fn(&[u8]) -> Classified) -> Vec<Column> {
    let none = Column { class: Class::Empty, has_empty: false, has_negative: false, exact_in_f64: true };
    let mut columns = vec![none; width];
    for row in rows {
        for (field, column) in row.fields.iter().zip(&mut columns) {
            let trimmed = field.trim_ascii();
            column.add(classify(trimmed), trimmed.first() == Some(&b'-'));
        }
    }
    columns
}

impl Column {
    fn add(&mut self, field: Classified, negative: bool) {
        match field.class {
            Class::Empty => {
                self.has_empty = true;
                return;
            }
            Class::Text => {}
            _ => self.has_negative |= negative,
        }
        self.exact_in_f64 &= field.exact_in_f64;
        self.class = self.class.max(field.class);
        if self.class == Class::UInt && self.has_negative {
            self.class = Class::Float;
        }
    }
}

/// What a person is told about an input without a record.
/// Why there is no row: the first record has a fault, or there is none.
fn nothing(text: &[u8], start: Start, dialect: &Dialect) -> Error {
    let window = text.get(start.at..).unwrap_or_default();
    let mut records = Records::new(window, dialect).from_place(start.line, start.at as u64);
    if let Some(Err(fault)) = records.next(&mut Fields::new()) {
        return fault;
    }
    let what =
        if text.is_empty() { "an empty input" } else { "only blank lines and comments: the table is empty" };
    Error::new(ErrorKind::Parse, format!("expected at least one row, found {what}"))
}

impl fmt::Display for Detected {
    /// One line for a person: `csv, delimiter ',', header yes (3 names), 3 columns`; with `#` also the types
    /// that the first rows show: `: int64 float64 text`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.dialect.delimiter {
            Delimiter::Byte(b',') => "csv",
            Delimiter::Byte(b'\t') => "tsv",
            Delimiter::Byte(_) => "delimited",
            Delimiter::Blanks => "text",
        };
        write!(f, "{kind}, delimiter {}", self.dialect.delimiter_name())?;
        if self.has_mark {
            f.write_str(", byte-order mark")?;
        }
        if self.dialect.line_end == LineEnd::Any {
            f.write_str(", CR ends lines")?;
        }
        if let Some(comment) = &self.dialect.comment {
            write!(f, ", comment {}", quoted(comment))?;
        }
        if self.dialect.skip_lines > 0 {
            write!(f, ", {} skipped", plural(self.dialect.skip_lines, "line"))?;
        }
        if self.top_comments > 0 {
            write!(f, ", {} at the top", plural(self.top_comments, "comment line"))?;
        }
        match &self.names {
            Some(names) => write!(f, ", header yes ({})", plural(names.len() as u64, "name"))?,
            None => f.write_str(", header no")?,
        }
        write!(f, ", {}", plural(self.columns.len() as u64, "column"))?;
        if !f.alternate() {
            return Ok(());
        }
        f.write_str(":")?;
        let mut columns = &self.columns[..];
        for _ in 0..8 {
            let Some(first) = columns.first() else { return Ok(()) };
            let run = columns.iter().take_while(|column| column.class == first.class).count();
            write!(f, " {}", first.class)?;
            if run > 3 {
                write!(f, " x {run}")?;
                columns = &columns[run..];
            } else {
                columns = &columns[1..];
            }
        }
        if columns.is_empty() { Ok(()) } else { f.write_str(" ...") }
    }
}

fn plural(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "empty",
            Self::Int => "int64",
            Self::UInt => "uint64",
            Self::Float => "float64",
            Self::Complex => "complex128",
            Self::Text => "text",
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A stand-in for the number kernels.
    pub(in super::super) fn classify(field: &[u8]) -> Classified {
        let text = std::str::from_utf8(field).unwrap_or("x");
        let class = if text.is_empty() {
            Class::Empty
        } else if text.parse::<i64>().is_ok() {
            Class::Int
        } else if text.parse::<u64>().is_ok() {
            Class::UInt
        } else if text.parse::<f64>().is_ok_and(|value| value.is_finite() || !text.contains(['e', 'E'])) {
            Class::Float
        } else if text.starts_with('(') && text.ends_with("j)") {
            Class::Complex
        } else {
            Class::Text
        };
        let exact = text.parse::<i128>().is_ok_and(|value| value.unsigned_abs() <= 1 << 53);
        Classified { class, exact_in_f64: exact || !matches!(class, Class::Int | Class::UInt) }
    }

    fn given(extension: &str) -> Given {
        Given { extension: Some(extension.to_owned()), ..Given::default() }
    }

    fn found(text: &str, given: &Given) -> Detected {
        detect(text.as_bytes(), true, given, &classify).unwrap().unwrap()
    }

    fn said(text: &str, extension: &str) -> String {
        format!("{:#}", found(text, &given(extension)))
    }

    fn refused(text: &str, given: &Given) -> Error {
        detect(text.as_bytes(), true, given, &classify).unwrap_err()
    }

    #[test]
    fn delimiters() {
        for (text, extension, wanted) in [
            (
                "a,b,c\n1,2.5,x\n3,4,y\n",
                "csv",
                "csv, delimiter ',', header yes (3 names), 3 columns: int64 float64 text",
            ),
            (
                "1.5 2\n3 4\n",
                "csv",
                "text, delimiter blanks, comment \"#\", header no, 2 columns: float64 int64",
            ),
            ("1\t2\t3\n5\t\t\n", "csv", "tsv, delimiter tab, header no, 3 columns: int64 int64 int64"),
            (
                "a;b\n1;1,20\n2;22,3\n3;1,5\n",
                "csv",
                "delimited, delimiter ';', header yes (2 names), 2 columns: int64 text",
            ),
            ("1,5;2,5\n3,5;4,5\n", "txt", "delimited, delimiter ';', header no, 2 columns: text text"),
            // A record that starts with the mark of comments is none where tabs fit all of them.
            ("1\t2\n#3\t3\n4\t2\n", "tsv", "tsv, delimiter tab, header no, 2 columns: text int64"),
            ("1|2\n3|4\n", "", "delimited, delimiter '|', header no, 2 columns: int64 int64"),
            (
                "1.5, 2.5 ,3\n 4,5 , 6 \n",
                "",
                "csv, delimiter ',', header no, 3 columns: float64 float64 int64",
            ),
            (
                "New York,5\nLos Angeles,6\nSan Jose,7\n",
                "",
                "csv, delimiter ',', header no, 2 columns: text int64",
            ),
            ("hello world\ngood bye\n", "csv", "csv, delimiter ',', header yes (1 name), 1 column: text"),
            (
                "2020-01-01 10:00:00,1\n2020-01-01 11:00:00,2\n",
                "csv",
                "csv, delimiter ',', header no, 2 columns: text int64",
            ),
            (
                "1 2\t3 4\n5 6\t7 8\n",
                "",
                "text, delimiter blanks, comment \"#\", header no, 4 columns: int64 x 4",
            ),
            (
                "a,b,c\n1,2,3\n4,5\n6,7,8\n",
                "",
                "csv, delimiter ',', header yes (3 names), 3 columns: int64 int64 int64",
            ),
            (
                "id,t\n1,\"a;b\"\n2,\"c;d\"\n",
                "",
                "csv, delimiter ',', header yes (2 names), 2 columns: int64 text",
            ),
            ("c0\n5\n1;2\n", "csv", "csv, delimiter ',', header yes (1 name), 1 column: text"),
            (
                "c0\n5\n1;2\n",
                "",
                "text, delimiter blanks, comment \"#\", header yes (1 name), 1 column: text",
            ),
            (
                "-5,18446744073709551615\n18446744073709551615,1\n",
                "csv",
                "csv, delimiter ',', header no, 2 columns: float64 uint64",
            ),
            ("x\ny z\n", "", "text, delimiter blanks, comment \"#\", header no, 1 column: text"),
        ] {
            assert_eq!(said(text, extension), wanted, "{text}");
        }
        let wide = (0..300).map(|i| i.to_string()).collect::<Vec<_>>().join(",") + "\n";
        assert_eq!(said(&wide, "csv"), "csv, delimiter ',', header no, 300 columns: int64 x 300");
    }

    #[test]
    fn quotes_by_what_lines_up() {
        let quote = |text: &str, extension| found(text, &given(extension)).dialect.quote;
        assert_eq!(quote("\"a\" \"b c\"\n\"1\" 2\n", "txt"), Some(b'"'));
        assert_eq!(quote("1 2\" 3\n4 5 6\n", "txt"), None);
        assert_eq!(quote("a\tb\n\"x\ty\"\t1\n", "tsv"), Some(b'"'));
        assert_eq!(quote("\"\t1\t2\na\t3\t4\n\"\"\t5\t6\n'\t7\t8\n", "tsv"), None);
        assert_eq!(quote("\"a\nb\"\t1\n\"c\nd\"\t2\n", "tsv"), Some(b'"'));
    }

    #[test]
    fn line_ends_and_marks() {
        let cr = found("a,b\r1,2\r3,4\r", &given("csv"));
        assert_eq!(
            (cr.dialect.line_end, cr.columns.len(), cr.data_start, cr.data_line),
            (LineEnd::Any, 2, 4, 2)
        );
        assert_eq!(found("1,2\r\n3,4\r", &given("csv")).dialect.line_end, LineEnd::Lf);
        let lone = "id,t,x\n1,ab\r cd,5\n2,ef,6\n";
        assert_eq!(found(lone, &given("csv")).dialect.line_end, LineEnd::Lf, "wherever it stands");
        assert_eq!(found("a,b\r1,2\r3,4\r\n", &given("csv")).dialect.line_end, LineEnd::Any);
        let lf = Given { line_end: Some(LineEnd::Lf), ..given("csv") };
        assert_eq!(
            format!("{:#}", found(lone, &lf)),
            "csv, delimiter ',', header yes (3 names), 3 columns: int64 text int64"
        );
        assert_eq!(found("id,t\n1,\"ab\r cd\"\n", &given("csv")).dialect.line_end, LineEnd::Lf);
        let mark = found("\u{feff}1.5,2\n3,4\n", &given("csv"));
        assert!(mark.has_mark && mark.data_start == 3 && mark.names.is_none());
        assert_eq!(found("\u{feff}# t x\n1 2\n", &Given::default()).data_start, 3);
    }

    #[test]
    fn the_top_of_a_file() {
        let names = |text: &str, given: &Given| found(text, given).names.unwrap_or_default();
        let header = |header| Given { header, ..Given::default() };
        assert_eq!(names("# produced by rig 7\nt v\n0 1\n2 3\n", &header(Header::Yes)), ["t", "v"]);
        assert_eq!(names("# produced by rig 7\nt v\n0 1\n2 3\n", &header(Header::Auto)), ["t", "v"]);
        assert!(names("# t x\n1 2 # note\n# mid\n3 4#end\n", &header(Header::Auto)).is_empty());
        let csv = found("# by x\n# t, x\n1,2\n3,4\n# end\n", &given("csv"));
        assert_eq!(csv.names.as_deref().unwrap(), ["t", "x"]);
        assert_eq!((csv.data_start, csv.data_line, csv.top_comments), (14, 3, 2));
        assert_eq!(names("#chrom\tstart\tend\n1\t5\t6\n", &given("tsv")), ["chrom", "start", "end"]);
        assert_eq!(names("#chrom\tstart\tend\nX\t5\t6\n", &header(Header::Yes)), ["chrom", "start", "end"]);
        for data in ["#\t0.5\t1\na\t2\t3\n", "# 1,2\n3,4\n"] {
            let found = found(data, &given("csv"));
            assert_eq!((found.data_start, found.top_comments), (0, 0), "{data}");
        }
        assert_eq!(names("#a\n#b\nc\n", &given("csv")), ["#a"]);
        let skip = Given { skip_lines: 2, ..Given::default() };
        assert_eq!(found("# 1 2\n2 3\n4 5\n", &skip).data_start, 10);
        assert_eq!(found("# 1 2\n2 3\n4 5\n", &skip).data_line, 3);
        let quoted = found("\n\"a\nb\",c\n1,2\n", &given("csv"));
        assert_eq!((quoted.data_start, quoted.data_line), (9, 4));
    }

    #[test]
    fn refuses() {
        let auto = given("csv");
        for text in ["", "\n \n"] {
            assert!(refused(text, &auto).to_string().contains("empty"), "{text}");
        }
        assert!(refused("# x\n", &Given::default()).to_string().contains("empty"));
        let count = "569,30,malignant,benign\n1,2,3,4,5\n1,2,3,4,5\n1,2,3,4,5\n";
        let error = refused(count, &auto);
        assert_eq!(error.line_number(), Some(1));
        assert!(error.to_string().contains("expected 5 fields as in the lines below, found 4; --skip-rows"));
        let skip = Given { skip_lines: 1, ..given("csv") };
        assert_eq!(found(count, &skip).columns.len(), 5);
        let iris = "150,4,setosa,b,c\n5.1,3,1,0,0\n4,3,1,0,0\n4,3,1,0,0\n";
        assert_eq!(refused(iris, &auto).field_number(), Some(3));
        // left to the reader of the records, which knows the line
        assert_eq!(found("id,price\n1,0.5,0\n2,0.75,0\n", &auto).columns.len(), 2);
        let clash = Given { delimiter: Some(Delimiter::Byte(b'\n')), ..Given::default() };
        assert_eq!(refused("1,2\n", &clash).kind(), ErrorKind::InvalidArgument);
        assert!(refused("<!DOCTYPE html>", &auto).to_string().contains("HTML"));
    }

    #[test]
    fn a_stream_may_be_too_short_to_tell() {
        let early = |text: &str| detect(text.as_bytes(), false, &given("csv"), &classify).unwrap();
        assert!(early("a,b\n1,").is_none() && early("").is_none() && early("a,b\n").is_none());
        assert_eq!(early("a,b\n1,2\n3,").unwrap().columns.len(), 2);
        let late = Given { skip_lines: 9, ..given("csv") };
        assert!(detect(b"a,b\n1,2\n", false, &late, &classify).unwrap().is_none());
        let long = "1,".repeat(200_000) + "1\n";
        assert_eq!(found(&long.repeat(3), &given("csv")).columns.len(), 200_001);
    }

    proptest::proptest! {
        #[test]
        fn never_fails_badly(text in proptest::collection::vec(proptest::sample::select(&b"1a,;\"\n\r# \t\0\xff"[..]), 0..80), complete: bool) {
            for extension in ["csv", "tsv", ""] {
                if let Ok(Some(found)) = detect(&text, complete, &given(extension), &classify) {
                    proptest::prop_assert!(found.data_start <= text.len());
                    let lines = Rules::new(&found.dialect).line_ends(&text[..found.data_start]);
                    proptest::prop_assert!(found.data_line == lines + 1 || found.data_start == text.len());
                    let _ = format!("{found:#}");
                }
            }
        }
    }
}
