//! Counting the records of a chunk, so that chunks can be read in parallel.
//!
//! A text is cut anywhere after a line end ([`next_cut`]). Such a place is either between records
//! or inside a quoted field, and a chunk alone cannot tell which. So a chunk with quotes in it is
//! counted under both hypotheses, and whoever has the counts of all chunks before it knows which
//! one holds ([`Place::advance`]). A record belongs to the chunk that it starts in.
//!
//! Most lines start with a byte that is neither blank nor a comment: those are counted 32 bytes at
//! a step, from the line ends alone. Only lines that start otherwise are looked at one by one, and
//! only tiles with quotes in them byte by byte.

use super::dialect::{Dialect, LineEnd};
use super::marks::{Marks, bits_of, gather};
use super::record::{BLANK, COMMENT, DELIMITER, LINE, Line, QUOTE, Rules};
use memchr::{memchr, memchr2, memrchr, memrchr2};

/// Whether a place in a text, right after a line end, is inside a quoted field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum State {
    /// It is where a record may start.
    #[default]
    Outside,
    /// It is inside a quoted field.
    Inside,
}

/// What a chunk adds, if it starts in a given state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Records that start in the chunk.
    pub records: u64,
    /// The state in which the next chunk starts. At the end of the input `Inside` means a quoted
    /// field that is never closed; its record is counted, so that reading it gives the error.
    pub end: State,
}

/// What a chunk holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Lines that end in the chunk.
    pub lines: u64,
    /// If the chunk starts where a record may start.
    pub outside: Tally,
    /// If the chunk starts inside a quoted field.
    pub inside: Tally,
}

/// A place between two chunks: what all chunks before it hold together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Records that start before.
    pub records: u64,
    /// Lines that end before; the line that starts here has this number plus one.
    pub lines: u64,
    /// The state here.
    pub state: State,
}

impl Place {
    /// Moves over a chunk that starts here.
    pub fn advance(&mut self, count: &Count) {
        let tally = match self.state {
            State::Outside => count.outside,
            State::Inside => count.inside,
        };
        self.records += tally.records;
        self.lines += count.lines;
        self.state = tally.end;
    }
}

/// Where `text` may be cut: after the first line end at or after `from`; `None` if there is none
/// before the end of the text.
pub fn next_cut(text: &[u8], dialect: &Dialect, from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let end = match dialect.line_end {
        LineEnd::Lf => memchr(b'\n', rest)? + 1,
        LineEnd::Any => {
            let found = memchr2(b'\n', b'\r', rest)?;
            found + if rest[found..].starts_with(b"\r\n") { 2 } else { 1 }
        }
    };
    (from + end < text.len()).then_some(from + end)
}

/// Counts the records of `chunk`, which starts right after a line end or where the input starts,
/// and ends right after a line end or where the input ends.
pub fn count(chunk: &[u8], dialect: &Dialect) -> Count {
    let rules = Rules::new(dialect);
    let mut scout = Walker::outside(&rules, chunk, 0);
    while scout.at < chunk.len() && !scout.quotes {
        scout.tile();
    }
    if !scout.quotes {
        let inside = Tally { records: 0, end: State::Inside };
        return Count { lines: scout.lines, outside: scout.tally(), inside };
    }
    let mut outside = Walker::outside(&rules, chunk, 0);
    let mut inside = Walker::inside(&rules, chunk);
    // Mostly both hypotheses come to the same place between two records before long, and from
    // there on they are one.
    let mut tries = 0;
    while inside.at < chunk.len() && outside.at != inside.at && tries < 1000 {
        if outside.at < inside.at {
            if inside.at - outside.at > 2 * TILE { outside.tile() } else { outside.line() }
        } else {
            inside.line();
        }
        tries += 1;
    }
    let met = inside.at < chunk.len() && outside.at == inside.at && outside.start == inside.start;
    let before = outside.records;
    outside.walk();
    if met {
        inside.records += outside.records - before;
        inside.open = outside.open;
    } else {
        inside.walk();
    }
    Count { lines: outside.lines, outside: outside.tally(), inside: inside.tally() }
}

/// Finds record `index`, counted from 0 among those that start in `chunk`, which starts in
/// `state`. Returns the start of its line and how many lines of the chunk end before that.
pub fn skip(chunk: &[u8], dialect: &Dialect, state: State, index: u64) -> Option<(usize, u64)> {
    let rules = Rules::new(dialect);
    let mut walker = match state {
        State::Outside => Walker::outside(&rules, chunk, 0),
        State::Inside => Walker::inside(&rules, chunk),
    };
    walker.lines = rules.line_ends(&chunk[..walker.at]);
    if walker.records > index {
        return Some((walker.at, walker.lines));
    }
    while walker.at < chunk.len() {
        let before = walker.clone();
        walker.tile();
        if walker.records > index {
            walker = before;
            while walker.records <= index {
                walker.line();
            }
            return Some((walker.at, walker.lines));
        }
    }
    None
}

/// The end of the last record that surely ends in `window`, which starts where a record may start
/// and may be continued: everything before it can be read without knowing what follows. 0 if no
/// record is whole.
pub fn last_record_end(window: &[u8], dialect: &Dialect) -> usize {
    // the LF of a CRLF may still come, or make ordinary characters of more than one CR
    let mut window = window;
    while let Some(shorter) = window.strip_suffix(b"\r") {
        window = shorter;
        if dialect.line_end == LineEnd::Any {
            break;
        }
    }
    if dialect.quote.is_none_or(|quote| memchr(quote, window).is_none()) {
        let last = match dialect.line_end {
            LineEnd::Lf => memrchr(b'\n', window),
            LineEnd::Any => memrchr2(b'\n', b'\r', window),
        };
        return last.map_or(0, |at| at + 1);
    }
    let rules = Rules::new(dialect);
    let mut walker = Walker::outside(&rules, window, 0);
    walker.walk();
    walker.start
}

/// Bytes looked at together; divided by `STEP` at most 255, so that a byte can count them.
const TILE: usize = if cfg!(test) { 128 } else { 4096 };
const BLOCK: usize = 64;
const STEP: usize = 32;

/// Goes over a text and counts the records that start in it.
#[derive(Clone)]
struct Walker<'t, 'r> {
    rules: &'r Rules<'r>,
    marks: Marks,
    text: &'t [u8],
    /// The first byte of a comment.
    comment: u8,
    blanks: [u8; 2],
    /// Lines that start here or before have been counted.
    at: usize,
    /// A place at or before `at` where a record may start, with no quote between the two.
    start: usize,
    records: u64,
    lines: u64,
    /// The text ends inside a quoted field.
    open: bool,
    /// There are quotes in what has been passed.
    quotes: bool,
}

impl<'t, 'r> Walker<'t, 'r> {
    fn outside(rules: &'r Rules<'r>, text: &'t [u8], at: usize) -> Self {
        // where there is none, some byte that is looked at closely anyway
        let comment = rules.comment.first().copied().unwrap_or(b'\n');
        let mut blanks = b" \t".iter().copied().filter(|&byte| rules.is(byte, BLANK));
        let blank = blanks.next().unwrap_or(b'\n');
        let blanks = [blank, blanks.next().unwrap_or(blank)];
        let marks = rules.marks(LINE | COMMENT | QUOTE);
        let mut walker = Self {
            rules,
            marks,
            text,
            comment,
            blanks,
            at,
            start: at,
            records: 0,
            lines: 0,
            open: false,
            quotes: false,
        };
        walker.records += u64::from(walker.is_record(at));
        walker
    }

    fn inside(rules: &'r Rules<'r>, text: &'t [u8]) -> Self {
        let end = match rules.closing(text, 0) {
            Some(close) => {
                rules.end_of_record(text, close, close + 1, &mut rules.marks(LINE | COMMENT | QUOTE))
            }
            None => End::Quoted,
        };
        let at = if let End::Line(next) = end { next } else { text.len() };
        let mut walker = Self::outside(rules, text, at);
        walker.open = matches!(end, End::Quoted);
        walker
    }

    fn tally(&self) -> Tally {
        Tally { records: self.records, end: if self.open { State::Inside } else { State::Outside } }
    }

    #[inline]
    fn is_record(&self, at: usize) -> bool {
        at < self.text.len() && matches!(self.line_at(at), Line::Record(_))
    }

    /// What stands in the line that starts at `at`; mostly the first byte says it.
    #[inline(always)]
    fn line_at(&self, at: usize) -> Line {
        match self.text.get(at) {
            Some(&byte) if byte > b' ' && byte != self.comment => Line::Record(at),
            _ => self.rules.line_at(self.text, at),
        }
    }

    fn walk(&mut self) {
        while self.at < self.text.len() {
            self.tile();
        }
    }

    /// Moves on by a tile, or by lines to beyond it where it holds quotes.
    fn tile(&mut self) {
        let length = TILE.min((self.text.len() - self.at).saturating_sub(1)) / BLOCK * BLOCK;
        if length == 0 {
            let rest = &self.text[self.at..];
            self.quotes |= self.rules.quote.is_some_and(|quote| memchr(quote, rest).is_some());
            return self.line();
        }
        let end = self.at + length;
        let ends = &self.text[self.at..end];
        let starts = &self.text[self.at + 1..=end];
        let seen = look(ends, starts, self.rules.any, self.rules.quote, self.comment);
        if seen.quotes {
            self.quotes = true;
            let from = self.at;
            while self.at < end {
                self.step();
            }
            self.lines += self.rules.line_ends(&self.text[from..self.at]);
            return;
        }
        self.lines += seen.lines;
        self.records += if seen.odd == 0 { seen.lines } else { self.records_in(ends, starts, self.at + 1) };
        self.at = end;
    }

    /// How many lines that start in `starts`, which stands at `at` in the text after `ends`, are
    /// records, whatever they start with.
    fn records_in(&self, ends: &[u8], starts: &[u8], at: usize) -> u64 {
        let any = self.rules.any;
        let mut records = 0;
        let mut in_blanks = false;
        let blocks = ends.as_chunks::<BLOCK>().0.iter().zip(starts.as_chunks::<BLOCK>().0);
        for (i, (end, start)) in blocks.enumerate() {
            let mut lines = [0_u8; BLOCK];
            for i in 0..BLOCK {
                let cr = any & (end[i] == b'\r') & (start[i] != b'\n');
                lines[i] = u8::from((end[i] == b'\n') | cr);
            }
            let lines = gather(&lines) | u64::from(in_blanks);
            let [space, tab] = self.blanks;
            let blank = bits_of(start, |byte| (byte == space) | (byte == tab));
            // a carry runs from the start of a line through its blanks to the first other byte
            let (sum, carry) = lines.overflowing_add(blank);
            in_blanks = carry;
            let mut first = sum & !blank;
            while first != 0 {
                let place = first.trailing_zeros() as usize;
                let byte = start[place];
                let close = matches!(byte, b'\n' | b'\r') || byte == self.comment;
                records += u64::from(!close || self.is_record(at + i * BLOCK + place));
                first &= first - 1;
            }
        }
        records + u64::from(in_blanks && self.is_record(at + starts.len()))
    }

    /// Moves on to the next place where a record may start, or to the end.
    fn line(&mut self) {
        let from = self.at;
        self.step();
        self.lines += self.rules.line_ends(&self.text[from..self.at]);
    }

    /// `line` without the count of lines.
    fn step(&mut self) {
        if self.at >= self.text.len() {
            return;
        }
        let end = if self.rules.quote.is_none() {
            End::of_line(self.rules.rest_of_line(self.text, self.at))
        } else {
            let start = self.start_of_line();
            self.start = start;
            match self.line_at(start) {
                Line::Empty(_) => End::of_line(self.rules.rest_of_line(self.text, start)),
                Line::Comment(at) => End::of_line(self.rules.rest_of_line(self.text, at)),
                Line::Record(_) => self.rules.end_of_record(self.text, start, start, &mut self.marks),
            }
        };
        let next = if let End::Line(next) = end { next } else { self.text.len() };
        self.at = next;
        self.open = matches!(end, End::Quoted);
        if let End::Line(_) = end {
            self.start = next;
            self.records += u64::from(self.is_record(next));
        }
    }

    #[inline]
    fn start_of_line(&self) -> usize {
        if self.start == self.at {
            return self.at;
        }
        let passed = &self.text[self.start..self.at];
        let last = if self.rules.any {
            let half = passed.last() == Some(&b'\r') && self.text.get(self.at) == Some(&b'\n');
            memrchr2(b'\n', b'\r', &passed[..passed.len() - usize::from(half)])
        } else {
            memrchr(b'\n', passed)
        };
        last.map_or(self.start, |at| self.start + at + 1)
    }
}

#[derive(Default)]
struct Seen {
    /// Lines that start at the bytes looked at.
    lines: u64,
    /// Those that start with a blank, a control character or a comment.
    odd: u64,
    quotes: bool,
}

/// Looks at lines that start at the bytes of `starts`; `ends` are the bytes before them. Both have
/// the same length, a multiple of `STEP` and at most 255 of them.
fn look(ends: &[u8], starts: &[u8], any: bool, quote: Option<u8>, comment: u8) -> Seen {
    match (any, quote) {
        (false, None) => look_at::<false, false>(ends, starts, 0, comment),
        (false, Some(quote)) => look_at::<false, true>(ends, starts, quote, comment),
        (true, None) => look_at::<true, false>(ends, starts, 0, comment),
        (true, Some(quote)) => look_at::<true, true>(ends, starts, quote, comment),
    }
}

fn look_at<const ANY: bool, const QUOTES: bool>(ends: &[u8], starts: &[u8], quote: u8, comment: u8) -> Seen {
    let mut lines = [0_u8; STEP];
    let mut odd = [0_u8; STEP];
    let mut quotes = [0_u8; STEP];
    for (end, start) in ends.chunks_exact(STEP).zip(starts.chunks_exact(STEP)) {
        for i in 0..STEP {
            let mut line = end[i] == b'\n';
            if ANY {
                line |= (end[i] == b'\r') & (start[i] != b'\n');
            }
            lines[i] += u8::from(line);
            odd[i] += u8::from(line & ((start[i] <= b' ') | (start[i] == comment)));
            if QUOTES {
                quotes[i] |= u8::from(end[i] == quote);
            }
        }
    }
    let sum = |counts: &[u8; STEP]| counts.iter().map(|&n| u64::from(n)).sum();
    Seen { lines: sum(&lines), odd: sum(&odd), quotes: quotes.iter().any(|&n| n != 0) }
}

/// How a record ends.
enum End {
    /// With a line; where the next one starts.
    Line(usize),
    /// With the text, outside quotes.
    Text,
    /// With the text, inside a quoted field.
    Quoted,
}

impl End {
    fn of_line((end, next): (usize, usize)) -> Self {
        if next > end { Self::Line(next) } else { Self::Text }
    }
}

impl Rules<'_> {
    /// Where the record from `start` on ends, looked for from `at` on, which stands outside
    /// quotes. Agrees with the splitting of records on every text, faults included.
    fn end_of_record(&self, text: &[u8], start: usize, at: usize, marks: &mut Marks) -> End {
        let mut at = at;
        loop {
            at = marks.find(text, at);
            let Some(&byte) = text.get(at) else { return End::Text };
            if self.is(byte, LINE) {
                let end = self.line_end(text, at);
                if end > 0 {
                    return End::Line(at + end);
                }
            } else if self.is(byte, QUOTE) {
                if at == start || self.is(text[at - 1], DELIMITER) {
                    at = self.closed_by(text, at + 1, byte, marks);
                    if at == text.len() {
                        return End::Quoted;
                    }
                }
            } else if self.comment_at(text, at) {
                return End::of_line(self.rest_of_line(text, at));
            }
            at += 1;
        }
    }

    /// `closing` for short fields, or the end of the text.
    #[inline]
    fn closed_by(&self, text: &[u8], at: usize, quote: u8, marks: &mut Marks) -> usize {
        let mut at = at;
        loop {
            at = marks.find(text, at);
            if at == text.len() {
                return at;
            }
            if text[at] == quote {
                if text.get(at + 1) != Some(&quote) {
                    return at;
                }
                at += 1;
            }
            at += 1;
        }
    }

    /// The quote that closes a quoted field, looked for from `at` on, inside it.
    fn closing(&self, text: &[u8], at: usize) -> Option<usize> {
        let quote = self.quote?;
        let mut at = at;
        loop {
            at += memchr(quote, text.get(at..)?)?;
            if text.get(at + 1) != Some(&quote) {
                return Some(at);
            }
            at += 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::dialect::Delimiter;
    use super::super::record::{Fields, Records};
    use super::*;
    use proptest::prelude::*;

    fn dialects() -> Vec<Dialect> {
        let mut all = vec![
            Dialect::csv(),
            Dialect::tsv().with_comment(Some(b"##")),
            Dialect::text(),
            Dialect::csv().with_comment(Some(b"#")),
            Dialect::csv().with_comment(Some(b"a")),
            Dialect::text().with_quote(Some(b'"')),
            Dialect::csv().with_delimiter(Delimiter::Byte(b' ')).with_comment(Some(b"#")),
        ];
        for i in 0..all.len() {
            all.push(all[i].clone().with_line_end(LineEnd::Any));
        }
        all
    }

    /// Start, end and line of every record, as the scanner that splits has it.
    fn spans(text: &[u8], dialect: &Dialect) -> Vec<(usize, usize, u64)> {
        let mut records = Records::new(text, dialect);
        let (mut fields, mut spans) = (Fields::new(), Vec::new());
        while let Some(record) = records.next(&mut fields) {
            // a record at fault ends where the next one is looked for
            let (start, line) = match record {
                Ok(record) => (record.start, record.line),
                Err(_) => (fields.range(0).map_or(0, |r| r.start), 0),
            };
            spans.push((start, records.position(), line));
        }
        spans
    }

    /// All chunks that `cuts` makes of `text`, counted apart, must add up to the whole; every
    /// record must be found again from the chunk it starts in.
    fn agree(text: &[u8], dialect: &Dialect, step: usize) {
        let spans = spans(text, dialect);
        let (mut place, mut from) = (Place::default(), 0);
        while from < text.len() || from == 0 {
            let to = next_cut(text, dialect, from + step).unwrap_or(text.len());
            let chunk = &text[from..to];
            let count = count(chunk, dialect);
            let first = place.records as usize;
            let before = place;
            place.advance(&count);
            let lines = Rules::new(dialect).line_ends(&text[..to]);
            assert_eq!(place.lines, lines, "lines of {chunk:?} of {text:?} {dialect:?}");
            for (index, &(_, end, line)) in spans.iter().enumerate().take(place.records as usize).skip(first)
            {
                let found = skip(chunk, dialect, before.state, (index - first) as u64);
                let (at, lines) = found.unwrap_or_else(|| panic!("{index} {chunk:?} {text:?} {dialect:?}"));
                let mut rest = Records::new(&text[from + at..], dialect);
                rest.next(&mut Fields::new());
                assert_eq!(from + at + rest.position(), end, "{index} {chunk:?} {text:?} {dialect:?}");
                assert!(line == 0 || line == before.lines + lines + 1, "{index} {text:?} {dialect:?}");
            }
            let beyond = place.records - before.records;
            assert_eq!(skip(chunk, dialect, before.state, beyond), None);
            if to == text.len() {
                break;
            }
            let inside = spans.iter().any(|&(start, end, _)| start < to && to < end && start < end);
            assert_eq!(place.state == State::Inside, inside, "{to} {text:?} {dialect:?}");
            from = to;
        }
        assert_eq!(place.records as usize, spans.len(), "{text:?} {dialect:?}");
    }

    /// Counting from inside a quoted field is counting a text with a quote before it.
    fn hypotheses(text: &[u8], dialect: &Dialect) {
        let Some(quote) = dialect.quote else { return };
        let counted = count(text, dialect);
        let quoted = [&[quote], text].concat();
        let wanted = count(&quoted, dialect).outside;
        assert_eq!(counted.inside.records + 1, wanted.records, "{text:?} {dialect:?}");
        assert_eq!(counted.inside.end, wanted.end, "{text:?} {dialect:?}");
        assert_eq!(counted.outside.records as usize, spans(text, dialect).len(), "{text:?} {dialect:?}");
    }

    #[test]
    fn agrees_with_the_scanner_on_every_short_text() {
        let symbols = b"1,\"\n\r# ";
        for length in 0..=3_u32 {
            for number in 0..symbols.len().pow(length) {
                let digit = |place| symbols[number / symbols.len().pow(place) % symbols.len()];
                let text: Vec<u8> = (0..length).map(digit).collect();
                for dialect in dialects() {
                    agree(&text, &dialect, 0);
                    hypotheses(&text, &dialect);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn agrees_with_the_scanner(
            text in proptest::collection::vec(proptest::sample::select(&b"1a,,\"\"\n\n\r# \t"[..]), 0..300),
            step in 0..200_usize,
        ) {
            for dialect in dialects() {
                agree(&text, &dialect, step);
                hypotheses(&text, &dialect);
            }
        }

        #[test]
        fn agrees_where_quotes_are_few(
            lines in proptest::collection::vec(proptest::sample::select(&[
                "1,2\n", "3,4\r\n", "\n", "# x \"y\n", "\"a\nb\",5\n", " 7,8\n", "12345678901234567890123,4\n", "a\"b\n", "\"\"\"\"\n",
                "1\r", "\"",
            ][..]), 0..60),
            step in 0..300_usize,
        ) {
            let text = lines.concat();
            for dialect in dialects() {
                agree(text.as_bytes(), &dialect, step);
                hypotheses(text.as_bytes(), &dialect);
            }
        }

        #[test]
        fn what_is_cut_off_a_stream_is_whole(
            text in proptest::collection::vec(proptest::sample::select(&b"1a,,\"\"\n\n\r# \t"[..]), 0..60),
        ) {
            for dialect in dialects() {
                let spans = spans(&text, &dialect);
                for window in 0..=text.len() {
                    let end = last_record_end(&text[..window], &dialect);
                    prop_assert!(end <= window);
                    prop_assert!(spans.iter().all(|&(start, next, _)| !(start < end && end < next)),
                        "{end} {window} {text:?} {dialect:?}");
                    // and it is not put off for ever
                    let whole = spans.iter().filter(|s| s.1 < window && s.1 < text.len()).map(|s| s.1).max();
                    prop_assert!(end >= whole.unwrap_or(0), "{end} {whole:?} {window} {text:?} {dialect:?}");
                }
            }
        }
    }
}
