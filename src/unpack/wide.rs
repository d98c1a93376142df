//! Rows too long to be in memory whole: a matrix with very many columns goes value by value, a
//! string longer than a block piece by piece.

use super::choice::Item;
use super::text::{Memory, Text, kind};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::text::format::{Column, Kind, MixedFormatter, Style};
use std::ops::Range;

/// Rows of more values are not formatted as one.
const WIDE_COLUMNS: u64 = 4096;

/// Whether rows of so many columns are written value by value, which a format of a whole row can't be.
pub(super) fn is_wide(dtype: DType, columns: u64, style: &Style) -> Result<bool> {
    if columns <= WIDE_COLUMNS {
        return Ok(false);
    }
    let Style::One(format) = style else { return Ok(true) };
    let (found, expected) =
        (format.conversions() as u64, columns.saturating_mul(1 + u64::from(dtype.is_complex())));
    if found != 1 && found != expected {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("expected a format with 1 or {expected} conversions, found {found}"),
        ));
    }
    Ok(found == 1)
}

/// A piece of a row of columns.
pub(super) enum Piece {
    Bytes(Vec<u8>),
    /// All of the column with this number.
    Cell(usize),
    /// Bytes of a string column that stand between quotes.
    Quoted(usize, Range<u64>),
}

/// A row of columns on its way out.
pub(super) struct LongRow {
    pub(super) row: u64,
    piece_bytes: u64,
    /// Where the bytes of each string are.
    strings: Vec<Option<Range<u64>>>,
    column: usize,
    step: Step,
}

#[derive(Clone)]
enum Step {
    Value,
    /// The bytes of a long string that are left.
    Within(Range<u64>),
    End,
}

impl LongRow {
    pub(super) fn new(text: &Text<'_>, row: u64, piece_bytes: usize) -> Result<Self> {
        let mut strings = Vec::with_capacity(text.items.len());
        let (mut raw, mut offsets) = (Vec::new(), Vec::new());
        for item in &text.items {
            strings.push(match item {
                Item::Plain(_) => None,
                Item::Strings { offsets: array, bytes, .. } => {
                    text.reader().offsets(array, row, 2, &mut raw, &mut offsets)?;
                    Some(text.string_bytes(item, bytes, &offsets)?)
                }
            });
        }
        leaves_text_alone(text)?;
        Ok(Self { row, piece_bytes: piece_bytes as u64, strings, column: 0, step: Step::Value })
    }

    /// The next piece, none after the last.
    pub(super) fn next(&mut self, text: &Text<'_>) -> Option<Piece> {
        let string = self.strings.get(self.column)?;
        let (piece, step) = match self.step.clone() {
            Step::Value => match string {
                Some(bytes) if bytes.end - bytes.start > self.piece_bytes => {
                    (Piece::Bytes(b"\"".to_vec()), Step::Within(bytes.clone()))
                }
                _ => (Piece::Cell(self.column), Step::End),
            },
            Step::Within(bytes) if bytes.is_empty() => (Piece::Bytes(b"\"".to_vec()), Step::End),
            Step::Within(bytes) => {
                let end = bytes.end.min(bytes.start + self.piece_bytes);
                (Piece::Quoted(self.column, bytes.start..end), Step::Within(end..bytes.end))
            }
            Step::End => {
                self.column += 1;
                let last = self.column == self.strings.len();
                (Piece::Bytes(if last { b"\n".to_vec() } else { text.delimiter.clone() }), Step::Value)
            }
        };
        self.step = step;
        Some(piece)
    }
}

/// A string in pieces can't be padded or cut.
fn leaves_text_alone(text: &Text<'_>) -> Result<()> {
    let simple = match &text.style {
        Style::Shortest => true,
        Style::One(format) if format.conversions() == 1 => {
            // Longer than any width and precision.
            let probe = [b'x'; 5000];
            let column = Column::Text { offsets: &[0, probe.len() as u64], bytes: &probe };
            let mut out = Vec::new();
            cell(text, Kind::Text)?.rows(&[column], &mut out)?;
            out == probe
        }
        _ => false,
    };
    if simple {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Unsupported,
        "expected strings of at most 1 MiB for this format, found a longer one",
    )
    .hint("a format of numbers with one conversion leaves strings as they are"))
}

fn cell(text: &Text<'_>, kind: Kind) -> Result<MixedFormatter> {
    MixedFormatter::new(&[kind], &text.style, &text.delimiter, b"")
}

impl<'a> Text<'a> {
    /// Appends a piece of row `row`; gives how many bytes were read.
    pub(super) fn piece(
        &self,
        row: u64,
        piece: Piece,
        memory: &mut Memory,
        out: &mut Vec<u8>,
    ) -> Result<u64> {
        match piece {
            Piece::Bytes(bytes) => {
                out.extend_from_slice(&bytes);
                Ok(0)
            }
            Piece::Quoted(column, range) => {
                let Some(Item::Strings { bytes, .. }) = self.items.get(column) else { return Ok(0) };
                memory.raw.resize((range.end - range.start) as usize, 0);
                self.reader().read(bytes, range.start, &mut memory.raw)?;
                let mut parts = memory.raw.split(|&byte| byte == b'"');
                out.extend_from_slice(parts.next().unwrap_or_default());
                for part in parts {
                    out.extend_from_slice(b"\"\"");
                    out.extend_from_slice(part);
                }
                Ok(range.end - range.start)
            }
            Piece::Cell(column) => {
                let Some(item) = self.items.get(column) else { return Ok(0) };
                let read = self.read_cell(item, row, memory)?;
                let formatter = cell(self, kind(item))?;
                let done = match item {
                    Item::Plain(array) => {
                        formatter.rows(&[Column::Number(array.layout.dtype(), &memory.raw)], out)
                    }
                    Item::Strings { .. } => {
                        let offsets = [0, memory.raw.len() as u64];
                        formatter.rows(&[Column::Text { offsets: &offsets, bytes: &memory.raw }], out)
                    }
                };
                done.map_err(|e| e.field(column as u64 + 1))?;
                Ok(read)
            }
        }
    }

    fn read_cell(&self, item: &Item<'a>, row: u64, memory: &mut Memory) -> Result<u64> {
        match *item {
            Item::Plain(array) => {
                let size = array.layout.dtype().size();
                memory.raw.resize(size as usize, 0);
                self.reader().read(array, row * size, &mut memory.raw)?;
                Ok(size)
            }
            Item::Strings { offsets, bytes, .. } => {
                let mut found = Vec::new();
                self.reader().offsets(offsets, row, 2, &mut memory.raw, &mut found)?;
                let range = self.string_bytes(item, bytes, &found)?;
                memory.raw.resize((range.end - range.start) as usize, 0);
                self.reader().read(bytes, range.start, &mut memory.raw)?;
                Ok(8 + range.end - range.start)
            }
        }
    }
}
