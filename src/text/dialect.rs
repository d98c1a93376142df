//! How a text table is written: what separates fields and lines, what is quoted, what is left out.

use crate::error::{Error, ErrorKind, Result, quoted};

/// What separates the fields of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Delimiter {
    /// One byte. Two in a row have an empty field between them.
    Byte(u8),
    /// A run of spaces and tabs; those at the ends of a line separate nothing. This is what
    /// `np.loadtxt` splits at.
    Blanks,
}

/// Where a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LineEnd {
    /// At LF or CRLF. A CR elsewhere is an ordinary character of its field, except as the very
    /// last byte of the input, where it is half a CRLF.
    #[default]
    Lf,
    /// At CR, LF or CRLF, as Python's universal newlines.
    Any,
}

/// Whether the first record holds the names of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Header {
    /// By the rule of [`detect`](super::detect::detect).
    #[default]
    Auto,
    /// It does.
    Yes,
    /// It is data.
    No,
}

/// What an empty field becomes where a number is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Missing {
    /// An error.
    #[default]
    Error,
    /// Not-a-number; an error where the column has no such value.
    NaN,
    /// As if this text stood there.
    Value(String),
}

/// What becomes of a record with too few or too many fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ragged {
    /// An error.
    #[default]
    Error,
    /// Fields that are not there count as missing; too many are still an error.
    Pad,
    /// The record is left out.
    Skip,
}

/// How a text table is written. Made from one of the presets and changed by the `with` methods;
/// [`check`](Dialect::check) says whether the parts go together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Dialect {
    /// What separates fields.
    pub delimiter: Delimiter,
    /// The byte that encloses a field which may hold delimiters and line ends. It opens a field
    /// only as the field's first byte; elsewhere it is an ordinary character. Doubled inside a
    /// quoted field it stands for itself. Spaces and tabs after the closing quote are ignored.
    pub quote: Option<u8>,
    /// From this prefix on, unless inside a quoted field, the rest of the line is left out,
    /// together with the blanks before it.
    pub comment: Option<Vec<u8>>,
    /// Where lines end.
    pub line_end: LineEnd,
    /// Whether the first record is a header.
    pub header: Header,
    /// Lines left out at the top: lines as an editor counts them, blank ones and comments too.
    pub skip_lines: u64,
    /// Records to read at most, the header not counted.
    pub max_rows: Option<u64>,
    /// What an empty field becomes.
    pub missing: Missing,
    /// What becomes of a record of another width.
    pub ragged: Ragged,
}

impl Dialect {
    fn new(delimiter: Delimiter, quote: Option<u8>, comment: Option<&[u8]>) -> Self {
        Self {
            delimiter,
            quote,
            comment: comment.map(<[u8]>::to_vec),
            line_end: LineEnd::Lf,
            header: Header::Auto,
            skip_lines: 0,
            max_rows: None,
            missing: Missing::Error,
            ragged: Ragged::Error,
        }
    }

    /// Commas, quoted by `"`, no comments: RFC 4180. A `#` is data here, since text columns hold it.
    pub fn csv() -> Self {
        Self::new(Delimiter::Byte(b','), Some(b'"'), None)
    }

    /// Tabs, quoted by `"` as spreadsheets write it, no comments.
    pub fn tsv() -> Self {
        Self::new(Delimiter::Byte(b'\t'), Some(b'"'), None)
    }

    /// Runs of blanks, no quotes, comments from `#` on: the defaults of `np.loadtxt`.
    pub fn text() -> Self {
        Self::new(Delimiter::Blanks, None, Some(b"#"))
    }

    /// Lines and nothing else: for formats whose readers take each line apart themselves.
    pub(super) fn lines() -> Self {
        Self::new(Delimiter::Blanks, None, None)
    }

    /// With another delimiter.
    #[must_use]
    pub fn with_delimiter(mut self, delimiter: Delimiter) -> Self {
        self.delimiter = delimiter;
        self
    }

    /// With another quote, or none.
    #[must_use]
    pub fn with_quote(mut self, quote: Option<u8>) -> Self {
        self.quote = quote;
        self
    }

    /// With another comment prefix, or none.
    #[must_use]
    pub fn with_comment(mut self, comment: Option<&[u8]>) -> Self {
        self.comment = comment.map(<[u8]>::to_vec);
        self
    }

    /// With other line ends.
    #[must_use]
    pub fn with_line_end(mut self, line_end: LineEnd) -> Self {
        self.line_end = line_end;
        self
    }

    /// With or without a header.
    #[must_use]
    pub fn with_header(mut self, header: Header) -> Self {
        self.header = header;
        self
    }

    /// Without the first `lines` lines.
    #[must_use]
    pub fn with_skip_lines(mut self, lines: u64) -> Self {
        self.skip_lines = lines;
        self
    }

    /// With at most `rows` records.
    #[must_use]
    pub fn with_max_rows(mut self, rows: Option<u64>) -> Self {
        self.max_rows = rows;
        self
    }

    /// With another meaning of empty fields.
    #[must_use]
    pub fn with_missing(mut self, missing: Missing) -> Self {
        self.missing = missing;
        self
    }

    /// With another treatment of records of the wrong width.
    #[must_use]
    pub fn with_ragged(mut self, ragged: Ragged) -> Self {
        self.ragged = ragged;
        self
    }

    /// Whether `byte` is white space that separates nothing but itself in this dialect: a space or
    /// a tab, unless it is the delimiter.
    pub fn is_blank(&self, byte: u8) -> bool {
        matches!(byte, b' ' | b'\t') && self.delimiter != Delimiter::Byte(byte)
    }

    /// Checks that no byte has two meanings and none is part of numbers.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the first part that does not go with the others.
    pub fn check(&self) -> Result<()> {
        if let Delimiter::Byte(byte) = self.delimiter
            && (is_line_end(byte) || in_numbers(byte) || byte == 0 || byte >= 0x80 || byte == b'"')
        {
            return Err(refuse(
                "a delimiter",
                &[byte],
                "it is one ASCII byte that numbers, quotes and line ends have no use for",
            ));
        }
        if let Some(quote) = self.quote
            && (is_line_end(quote)
                || in_numbers(quote)
                || matches!(quote, 0 | b' ' | b'\t' | 0x80..)
                || self.delimiter == Delimiter::Byte(quote))
        {
            return Err(refuse("a quote", &[quote], "it is one ASCII byte other than the delimiter"));
        }
        if let Some(comment) = &self.comment {
            let wrong = match comment.as_slice() {
                [] => true,
                [one] => in_numbers(*one),
                [first, ..] => first.is_ascii_alphanumeric(),
            };
            let taken = comment.first().is_some_and(|&first| {
                matches!(first, b' ' | b'\t' | 0)
                    || self.quote == Some(first)
                    || self.delimiter == Delimiter::Byte(first)
            });
            if wrong || taken || comment.iter().any(|&byte| is_line_end(byte)) {
                return Err(refuse(
                    "a comment prefix",
                    comment,
                    "it starts with no blank, digit, letter, quote or delimiter",
                ));
            }
        }
        Ok(())
    }

    /// The delimiter as a person names it: `','`, `tab`, `blanks`.
    pub fn delimiter_name(&self) -> String {
        match self.delimiter {
            Delimiter::Blanks => "blanks".to_owned(),
            Delimiter::Byte(b'\t') => "tab".to_owned(),
            Delimiter::Byte(byte) => format!("'{}'", crate::error::escape(&[byte], 1)),
        }
    }
}

impl Default for Dialect {
    fn default() -> Self {
        Self::csv()
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// Letters belong to numbers too: `nan`, `1e5`, `2j`, `0x1p3`.
fn in_numbers(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

fn refuse(wanted: &str, found: &[u8], hint: &'static str) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("expected {wanted}, found {}", quoted(found))).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_go_together() {
        for dialect in [Dialect::csv(), Dialect::tsv(), Dialect::text(), Dialect::default()] {
            dialect.check().unwrap();
        }
    }

    #[test]
    fn a_byte_has_one_meaning() {
        for byte in *b"0e-+.\n\r\"\0\xff" {
            assert!(Dialect::csv().with_delimiter(Delimiter::Byte(byte)).check().is_err(), "{byte}");
        }
        for byte in *b",5\n \t" {
            assert!(Dialect::csv().with_quote(Some(byte)).check().is_err(), "{byte}");
        }
        for comment in [&b""[..], b"\"", b",", b"#\n", b"-", b"7x", b" #"] {
            assert!(Dialect::csv().with_comment(Some(comment)).check().is_err(), "{comment:?}");
        }
        for comment in [&b"#"[..], b"%", b"//", b"--", b"!", b";"] {
            Dialect::csv().with_comment(Some(comment)).check().unwrap();
        }
        assert!(Dialect::csv().with_quote(Some(b',')).check().is_err());
        let error = Dialect::csv().with_delimiter(Delimiter::Byte(b'\n')).check().unwrap_err();
        assert!(error.to_string().starts_with("expected a delimiter, found \"\\n\"; "), "{error}");
    }
}
