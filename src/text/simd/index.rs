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

/// Positions of a chunk's fields and ends of line. `starts` has one more where the text of another
/// field has begun.
pub(super) struct Index {
    pub(super) starts: [u16; SIZE],
    pub(super) ends: [u16; SIZE],
    pub(super) lines: [u16; SIZE],
    /// Fields whose end is known.
    pub(super) fields: usize,
    begun: usize,
    line_count: usize,
    /// The whole chunk was read.
    pub(super) complete: bool,
}

/// What `settle` finds.
pub(super) struct Lines {
    /// Ends of line where they should be.
    pub(super) rows: usize,
    /// The row after them has the wrong number of fields.
    pub(super) broken: bool,
}

impl Index {
    pub(super) fn new() -> Self {
        Index {
            starts: [0; SIZE],
            ends: [0; SIZE],
            lines: [0; SIZE],
            fields: 0,
            begun: 0,
            line_count: 0,
            complete: false,
        }
    }

    /// Finds the fields of a chunk that begins with one (or, for `Blanks`, with blanks).
    #[inline]
    #[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn fill(&mut self, chunk: &[u8], marks: Marks) {
        match marks {
            Marks::Byte(byte) => self.fill_as::<0>(chunk, byte),
            Marks::ByteCrLf(byte) => self.fill_as::<1>(chunk, byte),
            Marks::Blanks => self.fill_as::<2>(chunk, b' '),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
    fn fill_as<const MARKS: u8>(&mut self, chunk: &[u8], delim: u8) {
        let mut fields = 0;
        // A field begins where the chunk does, but among blanks where the first other byte is.
        let mut begun = if MARKS == 2 { 0 } else { 1 };
        let mut line_count = 0;
        self.starts[0] = 0;
        self.complete = true;
        let delims = _mm512_set1_epi8(delim as i8);
        let tabs = _mm512_set1_epi8(b'\t' as i8);
        let line_feeds = _mm512_set1_epi8(b'\n' as i8);
        let returns = _mm512_set1_epi8(b'\r' as i8);
        // What the byte before the block was: a carriage return; a blank.
        let mut after_return = 0;
        let mut after_blank = 1;
        let mut tail = [0; 64];
        let (blocks, rest) = chunk.as_chunks::<64>();
        let mut position = 0;
        for number in 0..blocks.len() + 1 {
            let mut valid = u64::MAX;
            let block = match blocks.get(number) {
                Some(block) => block,
                None => {
                    tail[..rest.len()].copy_from_slice(rest);
                    valid = (1 << rest.len()) - 1;
                    &tail
                }
            };
            if fields > FIELDS {
                self.complete = false;
                break;
            }
            let bytes = load(block);
            let mut lines = _mm512_cmpeq_epi8_mask(bytes, line_feeds);
            let marked = _mm512_cmpeq_epi8_mask(bytes, delims);
            let returned = if MARKS == 0 { 0 } else { _mm512_cmpeq_epi8_mask(bytes, returns) };
            let (mut ends, mut starts);
            match MARKS {
                0 => {
                    ends = (marked | lines) & valid;
                    starts = ends;
                }
                1 => {
                    ends = (marked | returned) & valid;
                    starts = (marked | lines) & valid;
                }
                _ => {
                    let blank = marked | lines | returned | _mm512_cmpeq_epi8_mask(bytes, tabs);
                    let before = blank << 1 | after_blank;
                    ends = blank & !before & valid;
                    starts = !blank & before & valid;
                    after_blank = blank >> 63;
                }
            }
            lines &= valid;
            if MARKS != 0 {
                let after = returned << 1 | after_return;
                let odd = (if MARKS == 1 { after ^ lines } else { after & !lines }) & valid;
                after_return = returned >> 63;
                if odd != 0 {
                    // A CR or LF alone: the index ends before it, or before the field it ended.
                    let place = odd.trailing_zeros();
                    let before = (1u64 << place) >> 1;
                    let kept = before.saturating_sub(1);
                    ends &= kept;
                    starts &= kept;
                    lines &= kept;
                    if place == 0 {
                        fields = fields.saturating_sub(1);
                    }
                    self.complete = false;
                }
            }
            let base = _mm512_set1_epi16(position as i16);
            if MARKS == 0 {
                let (count, next) = (ends.count_ones() as usize, base);
                let places = compress(ends);
                let low = _mm512_add_epi16(low_half(places), next);
                let one = _mm512_set1_epi16(1);
                store(&mut self.ends, fields, low);
                store(&mut self.starts, fields + 1, _mm512_add_epi16(low, one));
                if count > 32 {
                    let high = _mm512_add_epi16(high_half(places), next);
                    store(&mut self.ends, fields + 32, high);
                    store(&mut self.starts, fields + 33, _mm512_add_epi16(high, one));
                }
                fields += count;
                begun += count;
            } else {
                put(&mut self.ends, &mut fields, ends, base);
                let shift = _mm512_set1_epi16(if MARKS == 1 { 1 } else { 0 });
                put(&mut self.starts, &mut begun, starts, _mm512_add_epi16(base, shift));
            }
            put(&mut self.lines, &mut line_count, lines, base);
            if !self.complete {
                break;
            }
            position += 64;
        }
        (self.fields, self.begun, self.line_count) = (fields, begun, line_count);
    }

    /// Compares the ends of line with where the fields say they should be: one after each `columns`
    /// fields, the first after the field `next`. Where they aren't, `fields` is cut to the rows before.
    #[inline]
    pub(super) fn settle(&self, columns: usize, next: usize, fields: &mut usize, marks: Marks) -> Lines {
        let lines = &self.lines[..self.line_count.min(SIZE)];
        let mut rows = 0;
        let mut row_end = next;
        while row_end < *fields {
            let end = self.ends[row_end];
            let good = lines.get(rows).is_some_and(|&line| match marks {
                Marks::Byte(_) => line == end,
                Marks::ByteCrLf(_) => line == end + 1,
                Marks::Blanks => {
                    line >= end && (row_end + 1 >= self.begun || line < self.starts[row_end + 1])
                }
            });
            if !good {
                *fields = (row_end + 1).saturating_sub(columns);
                return Lines { rows, broken: true };
            }
            rows += 1;
            row_end += columns;
        }
        // One more among the fields of the row that is not ended.
        let broken =
            lines.get(rows).is_some_and(|&line| *fields >= self.begun || line < self.starts[*fields]);
        Lines { rows, broken }
    }
}

/// Puts the positions of the set bits behind the first `count` of `list`.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn put(list: &mut [u16; SIZE], count: &mut usize, bits: u64, base: __m512i) {
    let places = compress(bits);
    store(list, *count, _mm512_add_epi16(low_half(places), base));
    let more = bits.count_ones() as usize;
    if more > 32 {
        store(list, *count + 32, _mm512_add_epi16(high_half(places), base));
    }
    *count += more;
}

/// The numbers of the set bits, as bytes.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn compress(bits: u64) -> __m512i {
    const NUMBERS: [u8; 64] = {
        let mut numbers = [0; 64];
        let mut i = 0;
        while i < 64 {
            numbers[i] = i as u8;
            i += 1;
        }
        numbers
    };
    _mm512_maskz_compress_epi8(bits, load(&NUMBERS))
}

#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn low_half(bytes: __m512i) -> __m512i {
    _mm512_cvtepu8_epi16(_mm512_castsi512_si256(bytes))
}

#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn high_half(bytes: __m512i) -> __m512i {
    _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(bytes))
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the 64 bytes behind the reference may be read, and no alignment is asked for.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(list: &mut [u16; SIZE], at: usize, positions: __m512i) {
    if let Some(place) = list.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<32>()) {
        // SAFETY: the 64 bytes behind the reference may be written, and no alignment is asked for.
        unsafe { _mm512_storeu_si512(place.as_mut_ptr().cast(), positions) }
    }
}
