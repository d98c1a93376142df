//! The rules of text tables, one character after another: slow, whole, and written for reading.
//! The fast scanner must agree with it on every text.

use super::dialect::{Delimiter, Dialect, LineEnd};
use crate::error::{Error, ErrorKind, Result};
use std::borrow::Cow;

/// All records of `text` with their fields, quotes undone; `skip_lines` and `max_rows` are heeded,
/// a header is a record like the others, and a byte-order mark is not looked for.
///
/// # Errors
/// `Parse` as of [`Records::next`](super::record::Records::next), with line, field and offset.
pub fn read<'t>(text: &'t [u8], dialect: &Dialect) -> Result<Vec<Vec<Cow<'t, [u8]>>>> {
    let mut machine = Machine { text, dialect, at: 0, line: 1 };
    for _ in 0..dialect.skip_lines {
        machine.skip_line();
    }
    let mut records = Vec::new();
    while machine.at < text.len() && dialect.max_rows.is_none_or(|most| (records.len() as u64) < most) {
        let record = machine.record()?;
        // a line without a record in it gives no fields
        if !record.is_empty() {
            records.push(record);
        }
        machine.skip_line();
    }
    Ok(records)
}

/// What stands at a place outside quotes.
#[derive(Clone, Copy, PartialEq)]
enum Sign {
    End,
    Line,
    Comment,
    Delimiter,
    Blank,
    Other,
}

struct Machine<'t, 'd> {
    text: &'t [u8],
    dialect: &'d Dialect,
    at: usize,
    line: u64,
}

impl<'t> Machine<'t, '_> {
    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    fn sign(&self) -> Sign {
        let Some(byte) = self.byte(0) else { return Sign::End };
        if self.line_end() > 0 {
            return Sign::Line;
        }
        if self.dialect.comment.as_ref().is_some_and(|mark| self.text[self.at..].starts_with(mark)) {
            return Sign::Comment;
        }
        match self.dialect.delimiter {
            Delimiter::Byte(delimiter) if byte == delimiter => Sign::Delimiter,
            _ if byte == b' ' || byte == b'\t' => Sign::Blank,
            _ => Sign::Other,
        }
    }

    /// The length of the line end here; 0 if there is none.
    fn line_end(&self) -> usize {
        match (self.byte(0), self.byte(1)) {
            (Some(b'\n'), _) => 1,
            (Some(b'\r'), Some(b'\n')) => 2,
            (Some(b'\r'), None) => 1,
            (Some(b'\r'), _) if self.dialect.line_end == LineEnd::Any => 1,
            _ => 0,
        }
    }

    fn skip_line(&mut self) {
        while self.at < self.text.len() {
            let end = self.line_end();
            if end > 0 {
                self.at += end;
                self.line += 1;
                return;
            }
            self.at += 1;
        }
    }

    fn skip_blanks(&mut self) {
        while self.sign() == Sign::Blank {
            self.at += 1;
        }
    }

    fn record(&mut self) -> Result<Vec<Cow<'t, [u8]>>> {
        let mut fields = Vec::new();
        let start = self.at;
        self.skip_blanks();
        if matches!(self.sign(), Sign::End | Sign::Line | Sign::Comment) {
            return Ok(fields);
        }
        self.at = start;
        let blanks = self.dialect.delimiter == Delimiter::Blanks;
        loop {
            if blanks {
                self.skip_blanks();
                if matches!(self.sign(), Sign::End | Sign::Line | Sign::Comment) {
                    return Ok(fields);
                }
            }
            let number = fields.len() as u64 + 1;
            if self.byte(0).is_some() && self.byte(0) == self.dialect.quote {
                fields.push(Cow::Owned(self.quoted_field(number)?));
                if blanks && self.sign() == Sign::Blank {
                    continue;
                }
                self.skip_blanks();
                if self.sign() == Sign::Other {
                    let what = "expected a delimiter after the closing quote";
                    return Err(self.error(what, self.line, number, self.at));
                }
            } else {
                fields.push(Cow::Borrowed(self.bare_field(blanks)));
            }
            match self.sign() {
                Sign::Delimiter => self.at += 1,
                Sign::Blank => {}
                _ => return Ok(fields),
            }
        }
    }

    fn bare_field(&mut self, blanks: bool) -> &'t [u8] {
        let start = self.at;
        while self.sign() == Sign::Other || (self.sign() == Sign::Blank && !blanks) {
            self.at += 1;
        }
        let mut field = &self.text[start..self.at];
        while let (Sign::Comment, Some((b' ' | b'\t', shorter))) = (self.sign(), field.split_last()) {
            field = shorter;
        }
        field
    }

    fn quoted_field(&mut self, number: u64) -> Result<Vec<u8>> {
        let (line, open) = (self.line, self.at);
        let mut field = Vec::new();
        self.at += 1;
        loop {
            let Some(byte) = self.byte(0) else {
                return Err(self.error(
                    "expected a closing quote, found the end of the input",
                    line,
                    number,
                    open,
                ));
            };
            if Some(byte) == self.dialect.quote {
                if self.byte(1) != self.dialect.quote {
                    self.at += 1;
                    return Ok(field);
                }
                self.at += 1;
            } else if byte == b'\n' || (byte == b'\r' && self.line_end() == 1) {
                self.line += 1;
            }
            field.push(byte);
            self.at += 1;
        }
    }

    fn error(&self, what: &str, line: u64, field: u64, at: usize) -> Error {
        Error::new(ErrorKind::Parse, what).line(line).field(field).offset(at as u64)
    }
}
