//! One error type whose text is always `place: expected X, found Y; hint`.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of every fallible call of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, for programs that need to tell cases apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file, dataset, or array is not there.
    NotFound,
    /// The output is already there.
    Exists,
    /// A file of a dataset, or an input file, is damaged or not what its own header says.
    Corrupt,
    /// A well-formed input that this version can't take.
    Unsupported,
    /// A value or a row of a text input is not what was asked for.
    Parse,
    /// The caller asked for something that can't be: a wrong shape, a range outside the array.
    InvalidArgument,
    /// The element type asked for is not the one stored.
    TypeMismatch,
    /// Somebody else is writing the same thing.
    Locked,
    /// A dataset that is still being written.
    Incomplete,
    /// The operating system refused.
    Io,
    /// The caller asked for the work to stop.
    Stopped,
}

/// An error with its place, what was expected and what was found.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    path: Option<PathBuf>,
    line: Option<u64>,
    field: Option<u64>,
    offset: Option<u64>,
    what: String,
    hint: Option<Cow<'static, str>>,
    source: Option<io::Error>,
}

impl Error {
    /// An error of `kind` saying `what`, in the form `expected X, found Y`.
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            path: None,
            line: None,
            field: None,
            offset: None,
            what: what.into(),
            hint: None,
            source: None,
        }))
    }

    /// An error of the operating system at `path` while doing `action` ("open", "write").
    pub fn io(path: impl AsRef<Path>, action: &str, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            io::ErrorKind::AlreadyExists => ErrorKind::Exists,
            _ => ErrorKind::Io,
        };
        let mut error = Self::new(kind, format!("could not {action}: {}", os_text(&source)));
        error.0.source = Some(source);
        error.at(path)
    }

    /// Says in which file, unless a deeper call has said so.
    #[must_use]
    pub fn at(mut self, path: impl AsRef<Path>) -> Self {
        self.0.path.get_or_insert_with(|| path.as_ref().to_owned());
        self
    }

    /// Says in which line, counted from 1.
    #[must_use]
    pub fn line(mut self, line: u64) -> Self {
        self.0.line = Some(line);
        self
    }

    /// Says in which field of the line, counted from 1.
    #[must_use]
    pub fn field(mut self, field: u64) -> Self {
        self.0.field = Some(field);
        self
    }

    /// Says at which byte of the file, counted from 0.
    #[must_use]
    pub fn offset(mut self, offset: u64) -> Self {
        self.0.offset = Some(offset);
        self
    }

    /// Says what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The file, where one is concerned.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The line of a text file, counted from 1.
    pub fn line_number(&self) -> Option<u64> {
        self.0.line
    }

    /// The field of the line, counted from 1.
    pub fn field_number(&self) -> Option<u64> {
        self.0.field
    }

    /// The byte of the file, counted from 0.
    pub fn byte_offset(&self) -> Option<u64> {
        self.0.offset
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let e = &*self.0;
        if let Some(path) = &e.path {
            write!(f, "{}", escape_path(path))?;
            if let Some(line) = e.line {
                write!(f, ":{line}")?;
            }
            f.write_str(": ")?;
        } else if let Some(line) = e.line {
            write!(f, "line {line}: ")?;
        }
        match (e.field, e.offset) {
            (Some(field), Some(offset)) => write!(f, "field {field} (byte {offset}): ")?,
            (Some(field), None) => write!(f, "field {field}: ")?,
            (None, Some(offset)) => write!(f, "byte {offset}: ")?,
            (None, None) => {}
        }
        f.write_str(&e.what)?;
        if let Some(hint) = &e.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?}, {self})", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|e| e as _)
    }
}

/// The system's own words in lower case, without Rust's `(os error N)` tail.
fn os_text(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => text.to_owned(),
    }
}

/// A path made safe for a terminal.
pub fn escape_path(path: &Path) -> String {
    escape(path.as_os_str().as_encoded_bytes(), usize::MAX)
}

/// Foreign bytes made safe for a terminal: control characters and invalid UTF-8 as `\xNN`,
/// cut after `max` bytes with `...`.
pub fn escape(bytes: &[u8], max: usize) -> String {
    let mut cut = bytes.len().min(max);
    while cut < bytes.len() && cut > 0 && bytes[cut] & 0xC0 == 0x80 && max - cut < 3 {
        cut -= 1;
    }
    let mut out = String::with_capacity(cut + 3);
    for chunk in bytes[..cut].utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                c if c.is_control() || is_invisible(c) => {
                    let mut utf8 = [0; 4];
                    for b in c.encode_utf8(&mut utf8).bytes() {
                        out.push_str(&format!("\\x{b:02x}"));
                    }
                }
                c => out.push(c),
            }
        }
        for b in chunk.invalid() {
            out.push_str(&format!("\\x{b:02x}"));
        }
    }
    if cut < bytes.len() {
        out.push_str("...");
    }
    out
}

/// Characters that reorder or hide the text around them on a terminal.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// A foreign value in an error: quoted, escaped and cut at 40 bytes.
pub fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", escape(bytes, 40))
}
