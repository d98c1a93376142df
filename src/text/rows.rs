//! Rows of numbers out of a window of text: plain ones by the fast loop, every other one by the
//! complete path, which also explains what is wrong.

use super::count::count;
use super::dialect::{Delimiter, Dialect, LineEnd, Missing, Ragged};
use super::matrix::{Delim, FastNumber, parse_rows};
use super::number::{Class, Notation, Number, NumberError, NumberOptions, classify};
use super::record::{Fields, Record, Records, width_error};
use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result, quoted};

/// After so many lines that are not plain, the fast loop is not asked again for as many.
const PATIENCE: u32 = 16;

/// How the records of a table become values.
#[derive(Debug, Clone)]
pub(crate) struct RowRules {
    pub(crate) dialect: Dialect,
    /// Fields of a record.
    pub(crate) width: usize,
    /// Which of them are wanted, in this order.
    pub(crate) select: Vec<usize>,
    /// Whether the header said how many.
    pub(crate) named: bool,
    pub(crate) number: NumberOptions,
    pub(crate) notation: Notation,
    /// Words that count as an empty field where a number is wanted.
    pub(crate) na: Vec<String>,
}

/// Where a window of text stands in its file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Origin {
    /// Bytes before it.
    pub(crate) offset: u64,
    /// Lines before it.
    pub(crate) lines: u64,
}

impl RowRules {
    /// Columns of the table to be made.
    pub(crate) fn columns(&self) -> usize {
        self.select.len()
    }

    /// Reads rows from `text[*at..]`, where a record may start, into `out` until that is full or the
    /// text ends; moves `at` behind them and counts them in `rows`, also those before an error.
    pub(crate) fn rows<T: FastNumber>(
        &self,
        text: &[u8],
        origin: Origin,
        at: &mut usize,
        out: &mut [T],
        rows: &mut usize,
    ) -> Result<()> {
        let delim = match self.dialect.delimiter {
            Delimiter::Byte(byte) => Delim::Byte(byte),
            Delimiter::Blanks => Delim::Blanks,
        };
        let columns = self.columns().max(1);
        let total = out.len() / columns;
        let is_number = |word: &String| !matches!(classify(word.as_bytes()), Class::Text | Class::Empty);
        let is_fast = self.notation.is_plain()
            && !self.na.iter().any(is_number)
            && self.select.iter().copied().eq(0..self.width);
        let mut misses = 0;
        let (mut fields, mut scratch) = (Fields::new(), Vec::new());
        while *rows < total && *at < text.len() {
            let mut found = 0;
            if is_fast {
                let parsed = parse_rows(&text[*at..], delim, columns, &mut out[*rows * columns..]);
                *rows += parsed.rows;
                *at += parsed.consumed;
                found = parsed.rows;
            }
            misses = if found > 0 { 0 } else { misses + 1 };
            let mut slow = if misses > PATIENCE { PATIENCE } else { 1 };
            let start = *at;
            let mut records = Records::new(&text[start..], &self.dialect);
            while slow > 0 && *rows < total {
                slow -= 1;
                let found = match records.next(&mut fields) {
                    None => {
                        *at = text.len();
                        break;
                    }
                    Some(Ok(record)) => {
                        let out = &mut out[*rows * columns..(*rows + 1) * columns];
                        self.record(&text[start..], &record, &fields, out, &mut scratch)
                    }
                    Some(Err(error)) => Err(error),
                };
                // The line is counted only now that somebody wants to know it.
                *rows += usize::from(found.map_err(|e| self.place(e, text, start, origin))?);
                *at = start + records.position();
            }
        }
        Ok(())
    }

    /// Says where in the file an error in `text[start..]` is.
    pub(crate) fn place(&self, error: Error, text: &[u8], start: usize, origin: Origin) -> Error {
        let before = origin.lines + count(&text[..start], &self.dialect).lines;
        let line = error.line_number().unwrap_or(1) + before;
        let offset = error.byte_offset().map(|offset| offset + origin.offset + start as u64);
        match offset {
            Some(offset) => error.line(line).offset(offset),
            None => error.line(line),
        }
    }

    /// Checks the number of fields; `false` leaves the record out.
    pub(crate) fn has_width(&self, record: &Record, fields: &Fields) -> Result<bool> {
        let found = fields.len();
        let fits = found == self.width || found < self.width && self.dialect.ragged == Ragged::Pad;
        match self.dialect.ragged {
            _ if fits => Ok(true),
            Ragged::Skip => Ok(false),
            Ragged::Error | Ragged::Pad => Err(width_error(record.line, self.width, found, self.named)),
        }
    }

    fn is_na(&self, field: &[u8]) -> bool {
        !self.na.is_empty() && self.na.iter().any(|word| word.as_bytes() == field.trim_ascii())
    }

    /// What the text of a field is.
    pub(crate) fn classify(&self, field: &[u8]) -> Class {
        if self.is_na(field) {
            return Class::Empty;
        }
        if self.notation.is_plain() {
            return classify(field);
        }
        self.notation.plain(field).map_or(Class::Text, |plain| classify(&plain))
    }

    /// The values of one record; `false` if it is to be left out.
    fn record<T: Number>(
        &self,
        text: &[u8],
        record: &Record,
        fields: &Fields,
        out: &mut [T],
        scratch: &mut Vec<u8>,
    ) -> Result<bool> {
        if !self.has_width(record, fields)? {
            return Ok(false);
        }
        for (&index, out) in self.select.iter().zip(out) {
            *out = self.number::<T>(text, record, fields, index, scratch)?;
        }
        Ok(true)
    }

    /// Field `index` of a record as a number.
    pub(crate) fn number<T: Number>(
        &self,
        text: &[u8],
        record: &Record,
        fields: &Fields,
        index: usize,
        scratch: &mut Vec<u8>,
    ) -> Result<T> {
        let field = fields.value(text, index, scratch);
        let parsed = if self.is_na(field) {
            Err(NumberError::Empty)
        } else if self.notation.is_plain() {
            T::parse(field, self.number)
        } else {
            let plain = self.notation.plain(field).ok_or(NumberError::NotANumber);
            plain.and_then(|plain| T::parse(&plain, self.number))
        };
        let fault = match parsed {
            Ok(value) => return Ok(value),
            Err(NumberError::Empty) => match &self.dialect.missing {
                Missing::Error => return Err(self.missing(T::DTYPE, record, fields, index)),
                Missing::NaN => match T::parse(b"nan", self.number) {
                    Ok(value) => return Ok(value),
                    Err(_) => {
                        let error = self.missing(T::DTYPE, record, fields, index);
                        return Err(
                            error.hint("the type has no nan; --missing VALUE puts another value there")
                        );
                    }
                },
                Missing::Value(text) => match T::parse(text.as_bytes(), self.number) {
                    Ok(value) => return Ok(value),
                    Err(_) => {
                        return Err(Error::new(
                            ErrorKind::InvalidArgument,
                            format!("expected {} as --missing, found {}", T::DTYPE, quoted(text.as_bytes())),
                        ));
                    }
                },
            },
            Err(fault) => fault,
        };
        let mut error =
            Error::new(ErrorKind::Parse, format!("{}, found {}", fault.expected(T::DTYPE), quoted(field)));
        if let Some(hint) = self.hint(fault, T::DTYPE, field) {
            error = error.hint(hint);
        }
        Err(self.in_field(error, record, fields, index, text))
    }

    fn hint(&self, fault: NumberError, dtype: DType, field: &[u8]) -> Option<&'static str> {
        match fault {
            NumberError::OutOfRange if dtype.is_float() || dtype.is_complex() => {
                Some("--allow-overflow makes it an infinity")
            }
            NumberError::NotANumber if looks_missing(field) => {
                Some("if it stands for a missing value, --na names it and --missing says what it becomes")
            }
            NumberError::NotANumber if field.contains(&b'\r') && self.dialect.line_end == LineEnd::Lf => {
                Some("--line-end any takes CR as the end of a line")
            }
            NumberError::NotANumber if self.notation.decimal == b'.' && is_decimal_comma(field) => {
                Some("--decimal , takes a comma as the decimal mark")
            }
            _ => fault.hint(),
        }
    }

    fn missing(&self, dtype: DType, record: &Record, fields: &Fields, index: usize) -> Error {
        let found = match fields.range(index) {
            None => "no field",
            Some(range) if !range.is_empty() && !self.na.is_empty() => "a missing value",
            Some(_) => "an empty field",
        };
        let error = Error::new(ErrorKind::Parse, format!("expected {dtype}, found {found}"))
            .hint("--missing nan or --missing VALUE says what missing values become");
        self.in_field(error, record, fields, index, &[])
    }

    /// Adds line, field and byte; a field of a record that spans lines has a line of its own.
    pub(crate) fn in_field(
        &self,
        error: Error,
        record: &Record,
        fields: &Fields,
        index: usize,
        text: &[u8],
    ) -> Error {
        let at = fields.range(index).map_or(record.end, |range| range.start);
        let inner = text.get(record.start..at).map_or(0, |before| count(before, &self.dialect).lines);
        error.line(record.line + inner).field(index as u64 + 1).offset(at as u64)
    }
}

/// Where floats were chosen by a part of the input, refuses a value from which on whole numbers may have
/// been rounded. The survey of the whole input then says whether one was.
pub(crate) fn check_whole_numbers<T: Element>(values: &[T]) -> Result<()> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let floats: &[f64] = match T::DTYPE {
        DType::Float64 | DType::Complex128 => {
            bytemuck::try_cast_slice(bytemuck::cast_slice::<T, u8>(values)).unwrap_or_default()
        }
        _ => &[],
    };
    match floats.iter().find(|value| value.is_finite() && value.abs() >= EXACT) {
        Some(value) => Err(Error::new(
            ErrorKind::TypeMismatch,
            format!("expected whole numbers below 2^53 beside floats, found about {value:e}"),
        )),
        None => Ok(()),
    }
}

/// Digits, a comma and digits.
fn is_decimal_comma(field: &[u8]) -> bool {
    let german = Notation { decimal: b',', ..Notation::default() };
    field.contains(&b',') && german.plain(field).is_some() && field.iter().any(u8::is_ascii_digit)
}

/// Words that people write for "no value".
fn looks_missing(field: &[u8]) -> bool {
    let field = field.trim_ascii();
    [&b"na"[..], b"n/a", b"null", b"none", b"-", b".", b"?"]
        .iter()
        .any(|word| field.eq_ignore_ascii_case(word))
}
