//! The kernels of a matrix in text for processors with AVX-512 (of 2019 and later: VBMI2).
//!
//! Two stages, as in G. Langdale and D. Lemire, "Parsing gigabytes of JSON per second", VLDB
//! Journal 28 (2019), doi:10.1007/s00778-019-00578-5: the first finds where fields begin and end, 64
//! bytes at a time, the second parses eight fields at a time without a branch on what they look like.
//! What a kernel does not take is left to the complete parser, field by field.
//!
//! This is the one place outside the mapping where `unsafe` stands; what it does beyond calling these
//! functions on processors that have the instructions is loads and stores through checked slices.
#![allow(unsafe_code)]

mod index;
mod kernel;

use super::matrix::{Delim, FastNumber, Parsed, Stop, field, stop};
use index::{Index, Marks};
use kernel::{LANES, Lanes, Shapes};

/// The chunk of text that the first stage takes at once; its positions are 16-bit.
const CHUNK: usize = 16 << 10;
/// The first chunk of a call, small because a line that is not plain may come soon.
const FIRST: usize = 1 << 10;

/// Parses rows as `parse_rows` does, or not at all on another processor or an odd delimiter.
pub(super) fn rows<T: FastNumber + Lanes>(
    text: &[u8],
    delim: Delim,
    columns: usize,
    out: &mut [T],
) -> Option<Parsed> {
    let marks = match delim {
        // The kernels look at the byte before a field too, which must not be part of a number.
        Delim::Byte(byte) if byte.is_ascii_alphanumeric() || b"+-.".contains(&byte) => return None,
        Delim::Byte(byte) => match memchr::memchr(b'\n', text) {
            None => {
                return Some(Parsed {
                    rows: 0,
                    consumed: 0,
                    stop: if out.is_empty() { Stop::Full } else { Stop::End },
                });
            }
            Some(end) if end > 0 && text[end - 1] == b'\r' => Marks::ByteCrLf(byte),
            Some(_) => Marks::Byte(byte),
        },
        Delim::Blanks => Marks::Blanks,
    };
    if !(is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt"))
    {
        return None;
    }
    // SAFETY: the processor has each feature that the function is compiled for.
    Some(unsafe { plain_rows(text, marks, columns, out) })
}

#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn plain_rows<T: FastNumber + Lanes>(text: &[u8], marks: Marks, columns: usize, out: &mut [T]) -> Parsed {
    let mut index = Index::new(marks);
    let mut shapes = Shapes::default();
    let mut size = FIRST;
    // Where the next chunk begins, always at the start of a field; and the fields before it.
    let (mut at, mut done) = (0, 0);
    let (mut rows, mut consumed) = (0, 0);
    while done < out.len() {
        let chunk = &text[at..text.len().min(at + size)];
        index.fill(chunk);
        let last = index.complete && at + chunk.len() == text.len();
        let room = out.len() - done;
        let mut fields = index.fields.min(room);
        if !last && fields < room {
            // The last one may go on in the next chunk, and whole groups of lanes are the faster.
            fields = if fields > LANES { (fields - 1) / LANES * LANES } else { fields.saturating_sub(1) };
            if fields == 0 {
                if size == CHUNK {
                    break;
                }
                size = CHUNK;
                continue;
            }
        }
        let row_end = columns - 1 - done % columns;
        let lines = index.settle(chunk, columns, row_end, &mut fields);
        let parsed = fields_of(text, at, &index, &mut out[done..done + fields], &mut shapes);
        let whole = ((done + parsed) / columns - rows).min(lines.rows);
        if whole > 0 {
            rows += whole;
            consumed = at + index.after_line(whole - 1, row_end + (whole - 1) * columns);
        }
        done += fields;
        if parsed < fields || lines.broken || last {
            break;
        }
        at += usize::from(index.starts[fields]);
        size = (size * 4).min(CHUNK);
    }
    let stop = if rows * columns == out.len() { Stop::Full } else { stop(&text[consumed..]) };
    Parsed { rows, consumed, stop }
}

/// Parses the first `out.len()` fields of the index, and gives how many it could.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512dq,avx512cd,bmi1,bmi2,lzcnt,popcnt")]
fn fields_of<T: FastNumber + Lanes>(
    text: &[u8],
    at: usize,
    index: &Index,
    out: &mut [T],
    shapes: &mut Shapes,
) -> usize {
    let (groups, rest) = out.as_chunks_mut::<LANES>();
    for (i, group) in groups.iter_mut().enumerate() {
        let (Some(starts), Some(ends)) = (
            index.starts[i * LANES..].first_chunk::<LANES>(),
            index.ends[i * LANES..].first_chunk::<LANES>(),
        ) else {
            return i * LANES;
        };
        let refused = kernel::group(text, at, starts, ends, group, shapes);
        if refused != 0 {
            for lane in (0..LANES).filter(|lane| refused >> lane & 1 != 0) {
                match field(&text[at + usize::from(starts[lane])..at + usize::from(ends[lane])]) {
                    Some(value) => group[lane] = value,
                    None => return i * LANES + lane,
                }
            }
        }
    }
    let first = groups.len() * LANES;
    for (i, place) in rest.iter_mut().enumerate() {
        let (start, end) = (usize::from(index.starts[first + i]), usize::from(index.ends[first + i]));
        match field(&text[at + start..at + end]) {
            Some(value) => *place = value,
            None => return first + i,
        }
    }
    groups.len() * LANES + rest.len()
}
