//! One record after another, split into fields, with no allocation once the list of fields has
//! grown to the width of the table.
//!
//! A record is a line that holds more than blanks and a comment. Only a quoted field makes it span
//! several lines. A window of text handed in here starts where a record may start and ends after
//! a line end or where the input ends, so that a CR as its last byte is the end of a line.

use super::dialect::{Delimiter, Dialect, LineEnd};
use super::marks::Marks;
use crate::error::{Error, ErrorKind, Result, quoted};
use memchr::memchr;

pub(super) const DELIMITER: u8 = 1;
pub(super) const LINE: u8 = 2;
pub(super) const COMMENT: u8 = 4;
pub(super) const BLANK: u8 = 8;
pub(super) const QUOTE: u8 = 16;

/// A dialect laid out for scanning: what each byte may mean.
#[derive(Clone)]
pub(super) struct Rules<'d> {
    pub(super) class: [u8; 256],
    pub(super) blanks: bool,
    pub(super) any: bool,
    pub(super) quote: Option<u8>,
    pub(super) comment: &'d [u8],
}

/// What stands at the start of a line.
pub(super) enum Line {
    /// A record; its first byte that is no blank.
    Record(usize),
    /// Nothing but blanks; where the next line starts.
    Empty(usize),
    /// A comment; where it starts.
    Comment(usize),
}

impl<'d> Rules<'d> {
    pub(super) fn new(dialect: &'d Dialect) -> Self {
        let mut class = [0; 256];
        for byte in *b" \t" {
            if dialect.is_blank(byte) {
                class[usize::from(byte)] |= BLANK;
            }
        }
        match dialect.delimiter {
            Delimiter::Byte(byte) => class[usize::from(byte)] |= DELIMITER,
            Delimiter::Blanks => {
                class[usize::from(b' ')] |= DELIMITER;
                class[usize::from(b'\t')] |= DELIMITER;
            }
        }
        class[usize::from(b'\n')] = LINE;
        class[usize::from(b'\r')] = LINE;
        let comment = dialect.comment.as_deref().unwrap_or_default();
        if let Some(&first) = comment.first() {
            class[usize::from(first)] |= COMMENT;
        }
        if let Some(quote) = dialect.quote {
            class[usize::from(quote)] |= QUOTE;
        }
        Self {
            class,
            blanks: dialect.delimiter == Delimiter::Blanks,
            any: dialect.line_end == LineEnd::Any,
            quote: dialect.quote,
            comment,
        }
    }

    /// A finder of the bytes of these classes.
    pub(super) fn marks(&self, classes: u8) -> Marks {
        Marks::new((0..=u8::MAX).filter(|&byte| self.is(byte, classes)))
    }

    #[inline(always)]
    pub(super) fn is(&self, byte: u8, class: u8) -> bool {
        self.class[usize::from(byte)] & class != 0
    }

    /// The bytes of the line end at `at`, or 0 where a CR is an ordinary character.
    #[inline]
    pub(super) fn line_end(&self, text: &[u8], at: usize) -> usize {
        match (text[at], text.get(at + 1)) {
            (b'\n', _) => 1,
            (b'\r', Some(b'\n')) => 2,
            (b'\r', None) => 1,
            (b'\r', Some(_)) if self.any => 1,
            _ => 0,
        }
    }

    /// Where the line that holds `at` ends, and where the next one starts.
    pub(super) fn rest_of_line(&self, text: &[u8], at: usize) -> (usize, usize) {
        let rest = &text[at..];
        if self.any {
            return match memchr::memchr2(b'\n', b'\r', rest) {
                Some(found) => (at + found, at + found + self.line_end(text, at + found)),
                None => (text.len(), text.len()),
            };
        }
        match memchr(b'\n', rest) {
            Some(found) if rest[..found].last() == Some(&b'\r') => (at + found - 1, at + found + 1),
            Some(found) => (at + found, at + found + 1),
            None if rest.last() == Some(&b'\r') => (text.len() - 1, text.len()),
            None => (text.len(), text.len()),
        }
    }

    #[inline]
    pub(super) fn comment_at(&self, text: &[u8], at: usize) -> bool {
        self.is(text[at], COMMENT) && text[at..].starts_with(self.comment)
    }

    /// What stands in the line that starts at `at`.
    #[inline]
    pub(super) fn line_at(&self, text: &[u8], at: usize) -> Line {
        let mut first = at;
        while first < text.len() && self.is(text[first], BLANK) {
            first += 1;
        }
        let Some(&byte) = text.get(first) else {
            return Line::Empty(text.len());
        };
        if self.is(byte, LINE) {
            let end = self.line_end(text, first);
            if end > 0 {
                return Line::Empty(first + end);
            }
        } else if self.comment_at(text, first) {
            return Line::Comment(first);
        }
        Line::Record(first)
    }

    /// How many lines end in `text`.
    pub(super) fn line_ends(&self, text: &[u8]) -> u64 {
        let count = memchr::memchr_iter(b'\n', text).count() as u64;
        if !self.any {
            return count;
        }
        let lone = |&at: &usize| text.get(at + 1) != Some(&b'\n');
        count + memchr::memchr_iter(b'\r', text).filter(lone).count() as u64
    }
}

/// Where a record stands. All offsets are in the window it was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Its first byte, blanks included.
    pub start: usize,
    /// The byte after its last one, line end not included; comments are.
    pub end: usize,
    /// Where the next line starts.
    pub next: usize,
    /// The line it starts in, counted from 1.
    pub line: u64,
    /// How many lines it spans.
    pub lines: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
    quoted: bool,
    doubled: bool,
}

/// The fields of a record, as places in the window it was read from.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    spans: Vec<Span>,
}

impl Fields {
    /// An empty list, to be filled by [`Records::next`].
    pub fn new() -> Self {
        Self::default()
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is none: never so after a record has been read.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The bytes of field `index` in the window, without the quotes around them. Doubled quotes
    /// are still doubled.
    pub fn range(&self, index: usize) -> Option<std::ops::Range<usize>> {
        self.spans.get(index).map(|span| span.start..span.end)
    }

    /// Whether field `index` was quoted.
    pub fn is_quoted(&self, index: usize) -> bool {
        self.spans.get(index).is_some_and(|span| span.quoted)
    }

    /// The value of field `index` in `text`, the window the record was read from; empty for a
    /// field that is not there. `scratch` is used only where doubled quotes are undone.
    pub fn value<'a>(&self, text: &'a [u8], index: usize, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let Some(span) = self.spans.get(index) else { return &[] };
        let raw = text.get(span.start..span.end).unwrap_or_default();
        if !span.doubled {
            return raw;
        }
        // what closes the field, or for one that is never closed nothing
        let Some(&quote) = text.get(span.end) else { return raw };
        scratch.clear();
        let mut rest = raw;
        while let Some(found) = memchr(quote, rest) {
            scratch.extend_from_slice(&rest[..=found]);
            rest = rest.get(found + 2..).unwrap_or_default();
        }
        scratch.extend_from_slice(rest);
        scratch
    }
}

/// A record of another width than the table's, as an error without the record's place in a file.
/// `named` says that the header set the width.
pub fn width_error(line: u64, expected: usize, found: usize, named: bool) -> Error {
    let plural = if expected == 1 { "" } else { "s" };
    let why = if named { " as the header has names" } else { "" };
    Error::new(ErrorKind::Parse, format!("expected {expected} field{plural}{why}, found {found}"))
        .line(line)
        .hint(if found > expected {
            "--ragged skip leaves such rows out"
        } else {
            "--ragged pads or skips such rows"
        })
}

/// The records of a window of text.
pub struct Records<'t, 'd> {
    rules: Rules<'d>,
    marks: Marks,
    text: &'t [u8],
    at: usize,
    line: u64,
    offset: u64,
}

impl<'t, 'd> Records<'t, 'd> {
    /// The records of `text`, which starts where a record may start.
    pub fn new(text: &'t [u8], dialect: &'d Dialect) -> Self {
        let rules = Rules::new(dialect);
        let marks = rules.marks(DELIMITER | LINE | COMMENT);
        Self { rules, marks, text, at: 0, line: 1, offset: 0 }
    }

    /// Says where the window starts in the file, for errors: its first line, counted from 1, and
    /// its first byte, counted from 0.
    #[must_use]
    pub fn from_place(mut self, line: u64, offset: u64) -> Self {
        self.line = line;
        self.offset = offset;
        self
    }

    /// Where the next line to look at starts in the window.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The number of that line, counted from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The line that byte `at` of the window stands in, given a record at or before it.
    pub fn line_of(&self, record: &Record, at: usize) -> u64 {
        record.line + self.rules.line_ends(self.text.get(record.start..at).unwrap_or_default())
    }

    /// Leaves out `lines` lines, whatever they hold; fewer at the end of the window.
    /// Returns how many it has left out.
    pub fn skip_lines(&mut self, lines: u64) -> u64 {
        let mut done = 0;
        while done < lines && self.at < self.text.len() {
            self.at = self.rules.rest_of_line(self.text, self.at).1;
            done += 1;
        }
        self.line += done;
        done
    }

    /// Reads the next record and its fields; `None` at the end of the window.
    ///
    /// # Errors
    /// `Parse`, with line, field and offset: a quoted field that is never closed, or one with more
    /// than blanks between its closing quote and the delimiter. The next call goes on after the
    /// record; its fields as far as they could be told are in `fields`.
    pub fn next(&mut self, fields: &mut Fields) -> Option<Result<Record>> {
        fields.spans.clear();
        let mut start = self.at;
        let first = loop {
            if start >= self.text.len() {
                self.at = self.text.len();
                return None;
            }
            match self.rules.line_at(self.text, start) {
                Line::Record(first) => break first,
                Line::Empty(next) => start = next,
                Line::Comment(at) => start = self.rules.rest_of_line(self.text, at).1,
            }
            self.line += 1;
        };
        let first = if self.rules.blanks { first } else { start };
        let Ended { end, next, lines, trouble } =
            self.rules.split(self.text, first, &mut self.marks, &mut fields.spans);
        let record = Record { start, end, next, line: self.line, lines: lines + 1 };
        self.at = next;
        self.line += record.lines;
        Some(match trouble {
            None => Ok(record),
            Some(trouble) => Err(self.error(&record, &trouble)),
        })
    }

    fn error(&self, record: &Record, trouble: &Trouble) -> Error {
        let what = match trouble.kind {
            Kind::Unclosed => "expected a closing quote, found the end of the input".to_owned(),
            Kind::Junk => {
                let rest = &self.text[trouble.at..record.end.max(trouble.at)];
                format!("expected a delimiter after the closing quote, found {}", quoted(rest))
            }
        };
        Error::new(ErrorKind::Parse, what)
            .line(self.line_of(record, trouble.at))
            .field(trouble.field as u64 + 1)
            .offset(self.offset + trouble.at as u64)
            .hint("--quote none takes quotes as ordinary characters")
    }
}

enum Kind {
    Unclosed,
    Junk,
}

struct Trouble {
    kind: Kind,
    field: usize,
    at: usize,
}

/// How a record ended.
struct Ended {
    end: usize,
    next: usize,
    /// Line ends inside its quoted fields.
    lines: u64,
    trouble: Option<Trouble>,
}

impl Rules<'_> {
    /// Splits the record whose first field starts at `at`.
    fn split(&self, text: &[u8], at: usize, marks: &mut Marks, spans: &mut Vec<Span>) -> Ended {
        let mut at = at;
        let mut lines = 0;
        let mut trouble = None;
        loop {
            if self.blanks {
                // the first field is known to be there, so a record never comes out empty
                while at < text.len() && self.is(text[at], DELIMITER) {
                    at += 1;
                }
                if at == text.len() {
                    return Ended { end: at, next: at, lines, trouble };
                }
                let end = if self.is(text[at], LINE) { self.line_end(text, at) } else { 0 };
                if end > 0 {
                    return Ended { end: at, next: at + end, lines, trouble };
                }
                if self.comment_at(text, at) {
                    let (end, next) = self.rest_of_line(text, at);
                    return Ended { end, next, lines, trouble };
                }
            }
            let mut span = Span { start: at, end: at, quoted: false, doubled: false };
            let first = text.get(at).copied();
            if first != self.quote || first.is_none() {
                // nearly every field: up to a delimiter and nothing else
                let end = marks.find(text, at);
                if end < text.len() && self.is(text[end], DELIMITER) {
                    spans.push(Span { end, ..span });
                    at = end + 1;
                    continue;
                }
            } else if let Some(quote) = first {
                span = Span { start: at + 1, end: at + 1, quoted: true, doubled: false };
                at += 1;
                loop {
                    let Some(found) = memchr(quote, &text[at..]) else {
                        span.end = text.len();
                        let field = spans.len();
                        trouble.get_or_insert(Trouble { kind: Kind::Unclosed, field, at: span.start - 1 });
                        spans.push(span);
                        lines += self.line_ends(&text[span.start..]);
                        return Ended { end: text.len(), next: text.len(), lines, trouble };
                    };
                    at += found;
                    if text.get(at + 1) != Some(&quote) {
                        break;
                    }
                    span.doubled = true;
                    at += 2;
                }
                span.end = at;
                lines += self.line_ends(&text[span.start..at]);
                at += 1;
                while at < text.len() && self.is(text[at], BLANK) {
                    at += 1;
                }
                if self.blanks && at > span.end + 1 {
                    // the blanks just passed were the delimiter
                    spans.push(span);
                    continue;
                }
            }
            let rest = at;
            let stop = self.end_of_field(text, marks, &mut at);
            if span.quoted {
                if at > rest {
                    trouble.get_or_insert(Trouble { kind: Kind::Junk, field: spans.len(), at: rest });
                }
            } else {
                span.end = at;
                while matches!(stop, Stop::Comment)
                    && span.end > span.start
                    && self.is(text[span.end - 1], BLANK)
                {
                    span.end -= 1;
                }
            }
            spans.push(span);
            match stop {
                Stop::Delimiter => at += 1,
                Stop::Line(end) => return Ended { end: at, next: at + end, lines, trouble },
                Stop::Comment => {
                    let (end, next) = self.rest_of_line(text, at);
                    return Ended { end, next, lines, trouble };
                }
                Stop::Text => return Ended { end: at, next: at, lines, trouble },
            }
        }
    }

    /// Moves `at` to the end of the unquoted text that it stands in.
    #[inline]
    fn end_of_field(&self, text: &[u8], marks: &mut Marks, at: &mut usize) -> Stop {
        loop {
            *at = marks.find(text, *at);
            let Some(&byte) = text.get(*at) else { return Stop::Text };
            if self.is(byte, DELIMITER) {
                return Stop::Delimiter;
            }
            if self.is(byte, LINE) {
                let end = self.line_end(text, *at);
                if end > 0 {
                    return Stop::Line(end);
                }
            } else if text[*at..].starts_with(self.comment) {
                return Stop::Comment;
            }
            *at += 1;
        }
    }
}

enum Stop {
    Delimiter,
    Line(usize),
    Comment,
    Text,
}

#[cfg(test)]
mod tests {
    use super::super::plain;
    use super::*;
    use proptest::prelude::*;

    type Table = Vec<Vec<Vec<u8>>>;

    fn fast(text: &[u8], dialect: &Dialect) -> Result<Table> {
        let mut records = Records::new(text, dialect);
        records.skip_lines(dialect.skip_lines);
        let (mut fields, mut table, mut scratch) = (Fields::new(), Vec::new(), Vec::new());
        while let Some(record) = records.next(&mut fields) {
            let record = record?;
            assert!(record.start <= record.end && record.end <= record.next && record.next <= text.len());
            table.push((0..fields.len()).map(|i| fields.value(text, i, &mut scratch).to_vec()).collect());
        }
        Ok(table)
    }

    fn slow(text: &[u8], dialect: &Dialect) -> Result<Table> {
        let table = plain::read(text, dialect)?;
        Ok(table.into_iter().map(|r| r.into_iter().map(|f| f.into_owned()).collect()).collect())
    }

    fn dialects() -> Vec<Dialect> {
        let space = Dialect::csv().with_delimiter(Delimiter::Byte(b' ')).with_comment(Some(b"#"));
        let mut all = vec![
            Dialect::csv(),
            Dialect::tsv().with_comment(Some(b"##")),
            Dialect::text(),
            Dialect::csv().with_comment(Some(b"#")),
            Dialect::text().with_quote(Some(b'"')),
            Dialect::tsv().with_quote(None).with_skip_lines(1),
            space.with_skip_lines(2),
        ];
        for i in 0..all.len() {
            all.push(all[i].clone().with_line_end(LineEnd::Any));
        }
        all
    }

    fn agree(text: &[u8]) {
        for dialect in dialects() {
            match (fast(text, &dialect), slow(text, &dialect)) {
                (Ok(fast), Ok(slow)) => assert_eq!(fast, slow, "{text:?} {dialect:?}"),
                (Err(fast), Err(slow)) => {
                    let place = |e: &Error| (e.line_number(), e.field_number(), e.byte_offset());
                    assert_eq!(place(&fast), place(&slow), "{fast} {slow} {text:?} {dialect:?}");
                }
                (fast, slow) => panic!("{fast:?} {slow:?} {text:?} {dialect:?}"),
            }
        }
    }

    #[test]
    fn agrees_with_the_twin_on_every_short_text() {
        let symbols = b"1,\"\n\r# \t";
        for length in 0..=4_u32 {
            for number in 0..symbols.len().pow(length) {
                let digit = |place| symbols[number / symbols.len().pow(place) % symbols.len()];
                agree(&(0..length).map(digit).collect::<Vec<u8>>());
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        #[test]
        fn agrees_with_the_twin(text in proptest::collection::vec(proptest::sample::select(&b"1a,,\"\"\n\n\r# \t"[..]), 0..200)) {
            agree(&text);
        }
    }

    fn table(text: &str, dialect: &Dialect) -> Vec<Vec<String>> {
        let text = fast(text.as_bytes(), dialect).unwrap();
        text.into_iter().map(|r| r.into_iter().map(|f| String::from_utf8(f).unwrap()).collect()).collect()
    }

    #[test]
    fn quotes_hold_delimiters_line_ends_and_quotes() {
        let text = "k,x\n\"a,b\",1\n\"say \"\"hi\"\"\" , 2\n\"l1\r\nl2\",3\r\n\" lead\",x\"y\n";
        let rows = [["k", "x"], ["a,b", "1"], ["say \"hi\"", " 2"], ["l1\r\nl2", "3"], [" lead", "x\"y"]];
        assert_eq!(table(text, &Dialect::csv()), rows);
    }

    #[test]
    fn comments_are_cut_and_blank_lines_are_none() {
        let text = "# t x\n1 2 # note\n \t\n# mid\n 3\t 4#end\n\n5 6";
        assert_eq!(table(text, &Dialect::text()), [["1", "2"], ["3", "4"], ["5", "6"]]);
        let csv = Dialect::csv().with_comment(Some(b"//"));
        assert_eq!(table("// x\n1 / 2, a b // c\n\"//\",\"\"//\n", &csv), [["1 / 2", " a b"], ["//", ""]]);
        assert_eq!(table("1\t2\t3\n5\t\t\n", &Dialect::tsv()), [["1", "2", "3"], ["5", "", ""]]);
    }

    #[test]
    fn a_lone_cr_ends_a_line_only_where_asked() {
        let text = "1,ab\r cd,5\n3,4\r";
        assert_eq!(table(text, &Dialect::csv()), [vec!["1", "ab\r cd", "5"], vec!["3", "4"]]);
        let any = Dialect::csv().with_line_end(LineEnd::Any);
        assert_eq!(table(text, &any), [["1", "ab"], [" cd", "5"], ["3", "4"]]);
    }

    #[test]
    fn errors_say_where() {
        let dialect = Dialect::csv();
        let text = b"n,x\n\"a\nb\",1\n\n2,\"c\nd\"e,3\n4,\"open\n";
        let mut records = Records::new(text, &dialect).from_place(10, 100);
        let mut fields = Fields::new();
        assert_eq!(records.next(&mut fields).unwrap().unwrap().line, 10);
        let record = records.next(&mut fields).unwrap().unwrap();
        assert_eq!((record.line, record.lines), (11, 2));
        assert_eq!(records.line_of(&record, fields.range(1).unwrap().start), 12);
        let error = records.next(&mut fields).unwrap().unwrap_err();
        assert_eq!(
            (error.line_number(), error.field_number(), error.byte_offset()),
            (Some(15), Some(2), Some(120))
        );
        assert!(
            error.to_string().contains("expected a delimiter after the closing quote, found \"e,3\""),
            "{error}"
        );
        let error = records.next(&mut fields).unwrap().unwrap_err();
        assert_eq!(
            (error.line_number(), error.field_number(), error.byte_offset()),
            (Some(16), Some(2), Some(126))
        );
        assert!(records.next(&mut fields).is_none());
        assert_eq!(
            width_error(3, 3, 2, false).to_string(),
            "line 3: expected 3 fields, found 2; --ragged pads or skips such rows"
        );
    }
}
