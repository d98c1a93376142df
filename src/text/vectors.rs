//! word2vec and GloVe: on each line a token and, behind it, the numbers of its vector; or the same in
//! word2vec's binary form.
//!
//! A token is whatever stands before the last numbers of a line, so that it may hold blanks.

use super::append::{Rows, Sinks};
use super::dialect::{Dialect, Header};
use super::foreign::mark_len;
use super::import::TextOptions;
use super::number::{Notation, Number, NumberOptions, whole_number};
use super::rows::{Origin, RowRules};
use super::schema::Kind;
use super::stream::Piece;
use super::table::Table;
use crate::buffer::Buffer;
use crate::dtype::{DType, values_mut, with_element};
use crate::error::{Error, ErrorKind, Result, escape_path, quoted};
use crate::input::{Source, read_error};
use crate::output::{Output, Together};
use crate::progress::Progress;
use crate::writer::{Builder, WriteOptions, Writer};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::path::Path;

/// Names of the two arrays.
pub(crate) const VECTORS: &str = "vectors";
pub(crate) const TOKENS: &str = "tokens";

/// What is looked at to find out how long vectors are.
const SAMPLE_BYTES: usize = 1 << 20;
const SAMPLE_LINES: usize = 1000;
/// No token of a binary file is longer.
const TOKEN_MOST: u64 = 1 << 20;
/// Values of a binary file that are appended at once.
const BATCH_VALUES: usize = 1 << 18;

/// How one input is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    dim: u64,
    /// What the first line promises, and how long it is.
    header: Option<(u64, usize)>,
    /// Bytes of a byte-order mark before it.
    mark: usize,
    binary: bool,
}

/// Writes the vectors of `sources`, one after the other, as the arrays `vectors` and `tokens`.
pub(crate) fn pack(
    sources: Vec<Source>,
    out: &Path,
    options: &TextOptions,
    write: &WriteOptions,
    together: Together,
    progress: &Progress,
) -> Result<(Output, Vec<String>)> {
    together.alone("vectors with tokens")?;
    let dtype = options.dtype.unwrap_or(DType::Float32);
    let mut notes = Vec::new();
    let mut inputs = Vec::new();
    let mut dim = options.dim;
    for mut source in sources {
        let path = source.path().to_owned();
        let form = form_of(&mut source, dim, options).map_err(|e| e.at(&path))?;
        let header = form.header.map_or("no", |_| "yes");
        let kind = if form.binary { "binary" } else { "text" };
        notes.push(format!(
            "{}: word2vec {kind}, header {header}, vectors of {}; otherwise by --header, --dim",
            escape_path(&path),
            form.dim
        ));
        dim = Some(form.dim);
        inputs.push((source, form));
    }
    let Some(dim) = dim else {
        return Err(Error::new(ErrorKind::InvalidArgument, "expected at least one input, found none"));
    };
    progress.start(inputs.iter().map(|(source, _)| source.known_len()).sum());
    let writer = Builder::new(write.clone()).growing(VECTORS, dtype, &[dim]).strings(TOKENS).create(out)?;
    let mut odd = 0;
    append(inputs, &writer, dtype, options, progress, &mut odd)?;
    if odd > 0 {
        notes.push(format!("{odd} tokens hold blanks, because more than {dim} fields follow the first"));
    }
    Ok((Output::Alone(writer), notes))
}

fn append(
    inputs: Vec<(Source, Form)>,
    writer: &Writer,
    dtype: DType,
    options: &TextOptions,
    progress: &Progress,
    odd: &mut u64,
) -> Result<()> {
    let arrays = [(VECTORS.to_owned(), Kind::Number(dtype)), (TOKENS.to_owned(), Kind::Text)];
    let mut sinks = Sinks::new(writer, &arrays, options.given.max_rows)?;
    for (source, form) in inputs {
        if sinks.is_full() {
            break;
        }
        let path = source.path().to_owned();
        let skip = (form.mark + form.header.map_or(0, |(_, len)| len)) as u64;
        let mut rows = 0;
        let mut count = |sinks: &mut Sinks<'_>, new: Rows| {
            rows += new.len() as u64;
            sinks.take(new)
        };
        if form.binary {
            binary(source.into_reader(), &path, form, dtype, |new| {
                progress.advance(new.bytes() as u64)?;
                count(&mut sinks, new)
            })
            .map_err(|e| e.at(&path))?;
        } else {
            let rules = VectorRules::new(form.dim, options);
            let origin = Origin { offset: skip, lines: u64::from(form.header.is_some()) };
            let mut table = Table { source, path: path.clone(), origin };
            table
                .run(
                    None,
                    &rules.row.dialect,
                    |piece| {
                        let result = with_element!(dtype, T => rules.rows::<T>(piece));
                        progress.advance(piece.text.len() as u64)?;
                        result
                    },
                    |(new, blanks)| {
                        *odd += blanks;
                        count(&mut sinks, new)
                    },
                )
                .map_err(|e| e.at(&path))?;
        }
        if let Some((promised, _)) = form.header.filter(|(promised, _)| *promised != rows && !sinks.is_full())
        {
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!("expected {promised} vectors, as the first line says, found {rows}"),
            )
            .hint("the file was cut off, or two were joined; --header no takes the first line as a vector")
            .at(&path));
        }
    }
    sinks.finish()
}

/// Fields of a line, the blanks at its end left out.
fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| is_blank(byte)).filter(|field| !field.is_empty())
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// The line without its end and the blanks before that.
fn bare(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let end = line.iter().rposition(|&byte| !is_blank(byte)).map_or(0, |last| last + 1);
    &line[..end]
}

/// The two whole numbers that a first line may consist of.
fn promise(line: &[u8]) -> Option<(u64, u64)> {
    let numbers: Option<Vec<u64>> = fields(bare(line)).map(whole_number).collect();
    match numbers?[..] {
        [count, dim] => Some((count, dim)),
        _ => None,
    }
}

fn form_of(source: &mut Source, dim: Option<u64>, options: &TextOptions) -> Result<Form> {
    let start = source.peek(SAMPLE_BYTES)?;
    let complete = start.len() < SAMPLE_BYTES;
    let mark = mark_len(&start);
    let start = &start[mark..];
    let first_end = memchr::memchr(b'\n', start).unwrap_or(start.len());
    let first = &start[..first_end];
    let after = &start[(first_end + 1).min(start.len())..];
    let promised = promise(first).filter(|_| options.given.header != Header::No);
    if options.given.header == Header::Yes && promised.is_none() {
        return Err(Error::new(
            ErrorKind::Parse,
            format!("expected the numbers of vectors and of values in each, found {}", quoted(first)),
        )
        .line(1));
    }
    if let Some((count, found)) = promised.filter(|(_, found)| is_binary(after, *found)) {
        let header = Some((count, first_end + 1));
        return Ok(Form { dim: same_dim(dim, found)?, header, mark, binary: true });
    }
    let mut lines: Vec<&[u8]> = after.split(|&byte| byte == b'\n').take(SAMPLE_LINES).collect();
    // The last may go on behind the sample, or be nothing behind the last end of a line.
    if lines.len() < SAMPLE_LINES && (!complete || lines.last().is_some_and(|line| line.is_empty())) {
        lines.pop();
    }
    let length = |line: &[u8]| (fields(bare(line)).count() as u64).saturating_sub(1);
    let usual = |lines: &[&[u8]]| {
        let mut counts = HashMap::<u64, usize>::new();
        lines.iter().for_each(|line| *counts.entry(length(line)).or_default() += 1);
        // Tokens with blanks make lines longer, so of two that are as frequent the shorter is meant.
        counts.into_iter().filter(|(len, _)| *len > 0).max_by_key(|(len, n)| (*n, std::cmp::Reverse(*len)))
    };
    let below = usual(&lines).map(|(len, _)| len);
    // A token may be a number too; then the lines below decide.
    let header = promised.filter(|(_, found)| {
        options.given.header == Header::Yes || below.is_none_or(|below| below == *found)
    });
    if let Some((count, found)) = header {
        let len = (first_end + 1).min(start.len());
        return Ok(Form { dim: same_dim(dim, found)?, header: Some((count, len)), mark, binary: false });
    }
    lines.insert(0, first);
    let dim = match dim {
        Some(dim) => dim,
        None => usual(&lines).map(|(len, _)| len).ok_or_else(|| {
            Error::new(ErrorKind::Parse, "expected lines of a token and numbers, found none")
        })?,
    };
    Ok(Form { dim, header: None, mark, binary: false })
}

fn same_dim(asked: Option<u64>, found: u64) -> Result<u64> {
    match asked {
        Some(asked) if asked != found => Err(Error::new(
            ErrorKind::Parse,
            format!("expected vectors of {asked}, found a first line that says {found}"),
        )
        .line(1)),
        _ if found == 0 => {
            Err(Error::new(ErrorKind::Parse, "expected vectors with values, found a first line that says 0")
                .line(1))
        }
        _ => Ok(found),
    }
}

/// Whether what follows the first token is no text of numbers.
fn is_binary(after: &[u8], dim: u64) -> bool {
    let line = &after[..memchr::memchr(b'\n', after).unwrap_or(after.len())];
    let dim_fields = usize::try_from(dim).unwrap_or(usize::MAX);
    let numbers = fields(bare(line)).collect::<Vec<_>>();
    let is_line = numbers.len().checked_sub(dim_fields).is_some_and(|tokens| {
        let is_number = |field: &&[u8]| f64::parse(field, NumberOptions::default()).is_ok();
        tokens > 0 && numbers[tokens..].iter().all(is_number)
    });
    // A token may hold blanks and any letters.
    if is_line && std::str::from_utf8(line).is_ok() {
        return false;
    }
    let Some(blank) = memchr::memchr(b' ', after) else { return false };
    let len = usize::try_from(dim.saturating_mul(4)).unwrap_or(usize::MAX).min(256);
    let values = &after[blank + 1..];
    let values = &values[..values.len().min(len)];
    !values.iter().all(|&byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
}

/// How lines become vectors.
struct VectorRules {
    /// How the numbers of a line are read.
    row: RowRules,
}

impl VectorRules {
    fn new(dim: u64, options: &TextOptions) -> Self {
        let dim = usize::try_from(dim).unwrap_or(usize::MAX);
        let dialect = Dialect::lines();
        let number = NumberOptions { allow_overflow: options.allow_overflow };
        let notation = Notation::default();
        let select = (0..dim).collect();
        Self { row: RowRules { dialect, width: dim, select, named: false, number, notation, na: Vec::new() } }
    }

    /// Where the token of a bare line ends and where its numbers start.
    fn split(&self, line: &[u8]) -> Option<(usize, usize)> {
        let mut end = line.len();
        for left in (0..self.row.width).rev() {
            let start = line[..end].iter().rposition(|&byte| is_blank(byte))? + 1;
            if left == 0 {
                return (start > 1).then_some((start - 1, start));
            }
            end = line[..start].iter().rposition(|&byte| !is_blank(byte))? + 1;
        }
        None
    }

    /// The vectors of a piece, and how many of their tokens hold blanks.
    fn rows<T: super::matrix::FastNumber>(&self, piece: &Piece) -> Result<(Rows, u64)> {
        let text = &piece.text[..];
        let (mut ends, mut tokens, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        // Where the numbers of each line are in the piece.
        let mut places = Vec::new();
        let (mut odd, mut at, mut fault) = (0, 0, None);
        while at < text.len() {
            let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |len| at + len);
            match self.line(&text[at..end]) {
                Ok((token, start)) => {
                    odd += u64::from(token.iter().any(|&byte| is_blank(byte)));
                    tokens.extend_from_slice(token);
                    ends.push(tokens.len() as u64);
                    let line = at + start..at + bare(&text[at..end]).len();
                    numbers.extend_from_slice(&text[line.clone()]);
                    numbers.push(b'\n');
                    places.push(line);
                }
                Err(error) => {
                    let line = piece.origin.lines + places.len() as u64 + 1;
                    fault = Some(error.line(line).offset(piece.origin.offset + at as u64));
                    break;
                }
            }
            at = end + 1;
        }
        let mut bytes = Buffer::default();
        bytes.resize(places.len() * self.row.width * size_of::<T>());
        let mut rows = 0;
        let values: &mut [T] = values_mut(bytes.bytes_mut())?;
        let parsed = self.row.rows(&numbers, Origin::default(), &mut 0, values, &mut rows);
        if let Err(error) = parsed {
            fault = Some(self.explain::<T>(text, piece.origin, &places, rows).unwrap_or(error));
        }
        let row_bytes = self.row.width * size_of::<T>();
        bytes.truncate(rows * row_bytes);
        ends.truncate(rows);
        tokens.truncate(ends.last().map_or(0, |&end| end as usize));
        Ok((Rows::vectors(bytes, row_bytes, ends, tokens, fault), odd))
    }

    /// Token and start of the numbers of a line.
    fn line<'t>(&self, line: &'t [u8]) -> Result<(&'t [u8], usize)> {
        let line = bare(line);
        let Some((end, start)) = self.split(line) else {
            let found = fields(line).count();
            return Err(Error::new(
                ErrorKind::Parse,
                format!(
                    "expected a token and {} numbers, found {found} fields: {}",
                    self.row.width,
                    quoted(&line[..line.len().min(80)])
                ),
            ));
        };
        if let Err(e) = std::str::from_utf8(&line[..end]) {
            return Err(Error::new(
                ErrorKind::Parse,
                format!("expected a token in UTF-8, found {}", quoted(&line[..end])),
            )
            .hint(format!("byte {} of it is none; --encoding reads text in another", e.valid_up_to() + 1))
            .field(1));
        }
        Ok((&line[..end], start))
    }

    /// What is wrong with the numbers of line `row` of the piece.
    fn explain<T: super::matrix::FastNumber>(
        &self,
        text: &[u8],
        origin: Origin,
        places: &[std::ops::Range<usize>],
        row: usize,
    ) -> Option<Error> {
        let place = places.get(row)?.clone();
        let origin = Origin { offset: origin.offset + place.start as u64, lines: origin.lines + row as u64 };
        let mut bytes = Buffer::default();
        bytes.resize(self.row.width * size_of::<T>());
        let values: &mut [T] = values_mut(bytes.bytes_mut()).ok()?;
        let error = self.row.rows(&text[place], origin, &mut 0, values, &mut 0).err()?;
        // The token is the first field of the line.
        let field = error.field_number().map(|field| field + 1);
        Some(match field {
            Some(field) => error.field(field),
            None => error,
        })
    }
}

/// Reads a token, a blank and raw little-endian float32 values, as often as the first line says.
fn binary(
    reader: Box<dyn Read + Send>,
    path: &Path,
    form: Form,
    dtype: DType,
    mut take: impl FnMut(Rows) -> Result<ControlFlow<()>>,
) -> Result<()> {
    if !matches!(dtype, DType::Float32 | DType::Float64) {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("expected float32 or float64 for binary vectors, found a request for {dtype}"),
        ));
    }
    let Some((count, header)) = form.header else { return Ok(()) };
    let dim = usize::try_from(form.dim).unwrap_or(usize::MAX);
    let mut reader = BufReader::with_capacity(1 << 20, reader);
    std::io::copy(&mut reader.by_ref().take((form.mark + header) as u64), &mut std::io::sink())
        .map_err(|e| read_error(e, path))?;
    let short = |row: u64| {
        Error::new(
            ErrorKind::Corrupt,
            format!("expected {count} vectors of {dim} float32 values, found the end within vector {row}"),
        )
        .hint("the file was cut off")
    };
    let row_bytes = dim.saturating_mul(4);
    let batch = (BATCH_VALUES / dim.max(1)).max(1) as u64;
    let mut row = 0;
    while row < count {
        let rows = batch.min(count - row);
        let (mut values, mut ends, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
        for index in row..row + rows {
            let mut token = Vec::new();
            reader.by_ref().take(TOKEN_MOST).read_until(b' ', &mut token).map_err(|e| read_error(e, path))?;
            if token.pop() != Some(b' ') {
                return Err(short(index));
            }
            let token = token.strip_prefix(b"\n").unwrap_or(&token);
            std::str::from_utf8(token).map_err(|_| {
                let what = format!("vector {index}: expected a token in UTF-8, found {}", quoted(token));
                Error::new(ErrorKind::Parse, what)
            })?;
            tokens.extend_from_slice(token);
            ends.push(tokens.len() as u64);
            let read = reader.by_ref().take(row_bytes as u64).read_to_end(&mut values);
            if read.map_err(|e| read_error(e, path))? != row_bytes {
                return Err(short(index));
            }
        }
        let mut bytes = Buffer::default();
        bytes.resize(values.len() / 4 * dtype.size() as usize);
        let floats = values.chunks_exact(4).map(|v| f32::from_le_bytes([v[0], v[1], v[2], v[3]]));
        if dtype == DType::Float32 {
            values_mut::<f32>(bytes.bytes_mut())?.iter_mut().zip(floats).for_each(|(out, v)| *out = v);
        } else {
            values_mut::<f64>(bytes.bytes_mut())?.iter_mut().zip(floats).for_each(|(out, v)| *out = v.into());
        }
        row += rows;
        let row_bytes = dim * dtype.size() as usize;
        if take(Rows::vectors(bytes, row_bytes, ends, tokens, None))?.is_break() {
            return Ok(());
        }
    }
    let mut rest = [0; 2];
    let more = crate::input::read_full(&mut reader, &mut rest, path)?;
    if rest[..more].iter().any(|&byte| byte != b'\n') {
        return Err(Error::new(
            ErrorKind::Corrupt,
            format!("expected {count} vectors, as the first line says, found more"),
        ));
    }
    Ok(())
}
