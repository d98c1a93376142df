//! Pass two over files: every block of rows of a matrix is parsed straight into its region.

use super::count::{State, skip};
use super::index::{Index, SCRATCH, Text};
use super::matrix::FastNumber;
use super::rows::{Origin, RowRules, check_whole_numbers};
use crate::dtype::values_mut;
use crate::error::{Error, ErrorKind, Result};
use crate::layout::BLOCK_BYTES;
use crate::output::Output;
use crate::progress::Progress;
use std::ops::Range;

/// A text and where its records are.
pub(crate) struct Indexed {
    pub(crate) text: Box<dyn Text>,
    pub(crate) index: Index,
}

/// Fills the array `name` with the records of all texts, in their order. `check_whole` as in
/// [`check_whole_numbers`].
pub(crate) fn fill_matrix<T: FastNumber>(
    texts: &[Indexed],
    rules: &RowRules,
    output: &Output,
    name: &str,
    check_whole: bool,
    progress: &Progress,
) -> Result<()> {
    let mut firsts = vec![0u64];
    for text in texts {
        firsts.push(firsts.last().copied().unwrap_or(0) + text.index.records);
    }
    output.fill(name, BLOCK_BYTES, |rows, bytes| {
        let out: &mut [T] = values_mut(bytes)?;
        let mut rest = &mut *out;
        for (text, range) in texts.iter().zip(firsts.windows(2)) {
            let (start, end) = (rows.start.max(range[0]), rows.end.min(range[1]));
            if start >= end {
                continue;
            }
            let piece;
            (piece, rest) = rest.split_at_mut((end - start) as usize * rules.columns());
            fill_rows(text, rules, start - range[0]..end - range[0], piece, progress)
                .map_err(|e| e.at(text.text.path()))?;
        }
        if check_whole { check_whole_numbers(out) } else { Ok(()) }
    })
}

/// Fills `out` with the values of records `rows` of a text.
fn fill_rows<T: FastNumber>(
    text: &Indexed,
    rules: &RowRules,
    rows: Range<u64>,
    out: &mut [T],
    progress: &Progress,
) -> Result<()> {
    SCRATCH.with_borrow_mut(|scratch| {
        let mut filled = 0;
        let first = text.index.chunk_of(rows.start);
        for chunk in &text.index.chunks[first..] {
            let bytes = text.text.window(chunk.bytes.clone(), scratch)?;
            let mut at = 0;
            if chunk.place.records < rows.start {
                let index = rows.start - chunk.place.records;
                at = skip(bytes, &rules.dialect, State::Outside, index).map_or(bytes.len(), |(at, _)| at);
            }
            let origin = Origin { offset: chunk.bytes.start, lines: chunk.place.lines };
            let start = at;
            let mut found = 0;
            rules.rows(bytes, origin, &mut at, &mut out[filled * rules.columns()..], &mut found)?;
            filled += found;
            progress.advance((at - start) as u64 * 3 / 4)?;
            if filled as u64 == rows.end - rows.start {
                return Ok(());
            }
        }
        Err(Error::new(
            ErrorKind::Corrupt,
            format!("expected {} records as counted, found {filled}", rows.end - rows.start),
        )
        .hint("the input was changed while it was read"))
    })
}
