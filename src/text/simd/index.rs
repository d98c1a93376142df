//! Where the fields and lines of a chunk of text are.

use std::arch::x86_64::*;

/// Which bytes end a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Marks {
    /// This byte, and LF.
    Byte(u8),
    /// This byte, and CR LF.
    ByteCrLf(u8),
    /// The first blank of a run. CR before LF is one.
    Blanks,
}

/// Fields in one index. The arrays are longer by what one block can add and one store can spill.
const FIELDS: usize = 1024;
const SIZE: usize = FIELDS + 64 + 32;

type Positions = [u16; SIZE];

/// Positions of a chunk's fields. `starts` has one more where another field has begun.
pub(super) struct Index {
    pub(super) starts: Positions,
    pub(super) ends: Positions,
    /// Fields whose end is known.
    pub(super) fields: usize,
    begun: usize,
    /// Positions of ends of line, for `Marks::Blanks`; for the others, which find them at the ends of
    /// fields, only their number counts.
    lines: Positions,
    line_count: usize,
    /// The whole chunk was read.
    pub(super) complete: bool,
    marks: Marks,
}

/// What `settle` finds.
pub(super) struct Lines {
    /// Ends of line where they should be.
    pub(super) rows: usize,
    /// The row after them has the wrong number of fields.
    pub(super) broken: bool,
}

impl Index {
    pub(super) fn new(marks: Marks) -> Self {
        let none = [0; SIZE];
        Index {
            starts: none,
            ends: none,
            fields: 0,
            begun: 0,
            lines: none,
            line_count: 0,
            complete: false,
            marks,
        }
    }

    /// Finds the fields of a chunk that begins with one (or, for `Blanks`, with blanks).
    #[inline]
    #[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn fill(&mut self, chunk: &[u8]) {
        match self.marks {
            Marks::Byte(byte) => self.fill_bytes::<false>(chunk, byte),
            Marks::ByteCrLf(byte) => self.fill_bytes::<true>(chunk, byte),
            Marks::Blanks => self.fill_blanks(chunk),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
    fn fill_bytes<const CRLF: bool>(&mut self, chunk: &[u8], delim: u8) {
        let (mut fields, mut begun, mut line_count) = (0, 1, 0);
        let mut complete = true;
        self.starts[0] = 0;
        // The byte before the block was a carriage return.
        let mut after_return = 0;
        let mut blocks = Blocks::new(chunk);
        while let Some(Block { bytes, valid, at }) = blocks.next() {
            if fields > FIELDS {
                complete = false;
                break;
            }
            let delims = equal(bytes, delim) & valid;
            let line_feeds = equal(bytes, b'\n') & valid;
            if !CRLF {
                let ends = delims | line_feeds;
                // The next field begins behind.
                put(&mut self.ends, fields, ends, at);
                put(&mut self.starts, fields + 1, ends, at + 1);
                fields += ends.count_ones() as usize;
                line_count += line_feeds.count_ones() as usize;
                continue;
            }
            let mut returns = equal(bytes, b'\r') & valid;
            let mut starts = delims | line_feeds;
            let mut ends = delims | returns;
            let odd = (returns << 1 | after_return) ^ line_feeds;
            after_return = returns >> 63;
            if odd & valid != 0 {
                // A CR or LF alone: the index ends before it.
                let place = (odd & valid).trailing_zeros();
                let kept = ((1u64 << place) >> 1).saturating_sub(1);
                (starts, ends, returns) = (starts & kept, ends & kept, returns & kept);
                if place == 0 && after_return_was_end(fields, line_count) {
                    fields -= 1;
                    line_count -= 1;
                }
                complete = false;
            }
            put(&mut self.ends, fields, ends, at);
            put(&mut self.starts, begun, starts, at + 1);
            fields += ends.count_ones() as usize;
            begun += starts.count_ones() as usize;
            line_count += returns.count_ones() as usize;
            if !complete {
                break;
            }
        }
        self.fields = fields;
        self.begun = if CRLF { begun } else { fields + 1 };
        self.line_count = line_count;
        self.complete = complete;
    }

    #[inline]
    #[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
    fn fill_blanks(&mut self, chunk: &[u8]) {
        let (mut fields, mut begun, mut line_count) = (0, 0, 0);
        let mut complete = true;
        let (mut after_return, mut after_blank) = (0, 1);
        let mut blocks = Blocks::new(chunk);
        while let Some(Block { bytes, valid, at }) = blocks.next() {
            if fields > FIELDS || line_count > FIELDS {
                complete = false;
                break;
            }
            let mut lines = equal(bytes, b'\n') & valid;
            let returns = equal(bytes, b'\r') & valid;
            let blanks = equal(bytes, b' ') | equal(bytes, b'\t') | lines | returns;
            let before = blanks << 1 | after_blank;
            after_blank = blanks >> 63;
            let mut ends = blanks & !before & valid;
            let mut starts = !blanks & before & valid;
            let odd = (returns << 1 | after_return) & !lines & valid;
            after_return = returns >> 63;
            if odd != 0 {
                // A CR alone: the index ends before it.
                let kept = ((1u64 << odd.trailing_zeros()) >> 1).saturating_sub(1);
                (starts, ends, lines) = (starts & kept, ends & kept, lines & kept);
                complete = false;
            }
            put(&mut self.ends, fields, ends, at);
            put(&mut self.starts, begun, starts, at);
            put(&mut self.lines, line_count, lines, at);
            fields += ends.count_ones() as usize;
            begun += starts.count_ones() as usize;
            line_count += lines.count_ones() as usize;
            if !complete {
                break;
            }
        }
        (self.fields, self.begun, self.line_count) = (fields, begun, line_count);
        self.complete = complete;
    }

    /// Compares the ends of line with where the fields say they should be: one after each `columns`
    /// fields, the first after the field `next`. Where they aren't, `fields` is cut to the rows before.
    pub(super) fn settle(&self, chunk: &[u8], columns: usize, next: usize, fields: &mut usize) -> Lines {
        let mut rows = 0;
        let mut row_end = next;
        while row_end < *fields && self.is_line_end(chunk, row_end, rows) {
            rows += 1;
            row_end += columns;
        }
        let broken = row_end < *fields || self.lines_within(chunk, *fields) != rows;
        if !broken {
            return Lines { rows, broken };
        }
        // The same field by field.
        rows = 0;
        row_end = next;
        for field in 0..*fields {
            let ends_line = self.is_line_end(chunk, field, rows);
            if ends_line != (field == row_end) {
                *fields = (row_end + 1).saturating_sub(columns);
                break;
            }
            if ends_line {
                rows += 1;
                row_end += columns;
            }
        }
        // If nothing was wrong with any field, there is an end of line where no field ended.
        *fields = (*fields).min((row_end + 1).saturating_sub(columns));
        Lines { rows, broken }
    }

    /// Whether the end of line number `line` comes after the field.
    #[inline]
    fn is_line_end(&self, chunk: &[u8], field: usize, line: usize) -> bool {
        let end = self.ends[field];
        match self.marks {
            Marks::Byte(_) => chunk[usize::from(end)] == b'\n',
            Marks::ByteCrLf(_) => chunk[usize::from(end)] == b'\r',
            Marks::Blanks => {
                line < self.line_count && self.lines[line] >= end && self.is_before(line, field + 1)
            }
        }
    }

    /// Whether an end of line comes before the field, if that is in the index at all.
    fn is_before(&self, line: usize, field: usize) -> bool {
        field >= self.begun || self.lines[line] < self.starts[field]
    }

    /// Ends of line among or right after so many fields.
    fn lines_within(&self, chunk: &[u8], fields: usize) -> usize {
        match self.marks {
            Marks::Blanks => (0..self.line_count).take_while(|&line| self.is_before(line, fields)).count(),
            _ => {
                let later = (fields..self.fields).filter(|&field| self.is_line_end(chunk, field, 0));
                self.line_count - later.count()
            }
        }
    }

    /// The position after the end of line number `line`, which ends the row of the field `row_end`.
    pub(super) fn after_line(&self, line: usize, row_end: usize) -> usize {
        match self.marks {
            Marks::Byte(_) => usize::from(self.ends[row_end]) + 1,
            Marks::ByteCrLf(_) => usize::from(self.ends[row_end]) + 2,
            Marks::Blanks => usize::from(self.lines[line]) + 1,
        }
    }
}

/// A carriage return that ended the block before was taken for the end of a field.
fn after_return_was_end(fields: usize, line_count: usize) -> bool {
    fields > 0 && line_count > 0
}

/// Text in blocks of 64 bytes.
struct Blocks<'a> {
    whole: &'a [[u8; 64]],
    rest: &'a [u8],
    at: usize,
}

struct Block {
    bytes: __m512i,
    /// Which bytes are of the text.
    valid: u64,
    /// The position of the first.
    at: usize,
}

impl<'a> Blocks<'a> {
    fn new(text: &'a [u8]) -> Self {
        let (whole, rest) = text.as_chunks();
        Blocks { whole, rest, at: 0 }
    }

    #[inline]
    #[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
    fn next(&mut self) -> Option<Block> {
        let at = self.at;
        self.at += 64;
        if let Some((block, whole)) = self.whole.split_first() {
            self.whole = whole;
            return Some(Block { bytes: load(block), valid: u64::MAX, at });
        }
        if self.rest.is_empty() {
            return None;
        }
        let mut block = [0; 64];
        block[..self.rest.len()].copy_from_slice(self.rest);
        let valid = (1 << self.rest.len()) - 1;
        self.rest = &[];
        Some(Block { bytes: load(&block), valid, at })
    }
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn equal(bytes: __m512i, byte: u8) -> u64 {
    _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte as i8))
}

/// Puts the positions of the set bits into the list at a place, counted on from `base`.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn put(list: &mut Positions, place: usize, bits: u64, base: usize) {
    const NUMBERS: [u8; 64] = {
        let mut numbers = [0; 64];
        let mut i = 0;
        while i < 64 {
            numbers[i] = i as u8;
            i += 1;
        }
        numbers
    };
    let numbers = _mm512_maskz_compress_epi8(bits, load(&NUMBERS));
    // Sixteen in 64 bytes of text are more than most numbers allow.
    let first = _mm256_cvtepu8_epi16(_mm512_castsi512_si128(numbers));
    let first = _mm256_add_epi16(first, _mm256_set1_epi16(base as i16));
    if let Some(place) = list.get_mut(place..).and_then(|rest| rest.first_chunk_mut::<16>()) {
        // SAFETY: the 32 bytes behind the reference may be written, and no alignment is asked for.
        unsafe { _mm256_storeu_si256(place.as_mut_ptr().cast(), first) }
    }
    if bits.count_ones() > 16 {
        let low = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(numbers));
        let high = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(numbers));
        let base = _mm512_set1_epi16(base as i16);
        store(list, place, _mm512_add_epi16(low, base));
        store(list, place + 32, _mm512_add_epi16(high, base));
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the 64 bytes behind the reference may be read, and no alignment is asked for.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(list: &mut Positions, at: usize, positions: __m512i) {
    if let Some(place) = list.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<32>()) {
        // SAFETY: the 64 bytes behind the reference may be written, and no alignment is asked for.
        unsafe { _mm512_storeu_si512(place.as_mut_ptr().cast(), positions) }
    }
}
