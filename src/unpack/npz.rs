//! Arrays as `.npz`. A string array is two members, `NAME.offsets` and `NAME.bytes`, as in a dataset.

use super::choice::Item;
use super::npy::in_order;
use super::place::Partial;
use super::reader::Reader;
use crate::error::{Result, quoted};
use crate::manifest::ArrayEntry;
use crate::npy::NpzWriter;
use crate::progress::Progress;
use std::fs::File;
use std::ops::Range;

/// Arrays of a dataset.
pub(super) struct Npz<'a> {
    pub(super) reader: &'a Reader<'a>,
    pub(super) items: Vec<Item<'a>>,
    pub(super) progress: &'a Progress,
}

impl<'a> Npz<'a> {
    /// Writes the arrays whole, or rows `rows` of each.
    pub(super) fn file(&self, rows: Option<Range<u64>>, workers: usize, out: &Partial) -> Result<()> {
        let mut zip = NpzWriter::new(out.file()?);
        let put = |zip: &mut NpzWriter<&File>, array, rows: Range<u64>, subtract| {
            self.member(zip, array, rows, subtract, workers).map_err(|e| e.at(out.target()))
        };
        for item in &self.items {
            match *item {
                Item::Plain(array) => {
                    let rows = rows.clone().unwrap_or(0..array.layout.rows());
                    put(&mut zip, array, rows, 0)?;
                }
                Item::Strings { offsets, bytes, .. } => {
                    let rows = rows.clone().unwrap_or(0..offsets.layout.rows() - 1);
                    let (first, last) = self.ends(offsets, bytes, &rows)?;
                    put(&mut zip, offsets, rows.start..rows.end + 1, first)?;
                    put(&mut zip, bytes, first..last, 0)?;
                }
            }
        }
        zip.finish().map(|_| ()).map_err(|e| e.at(out.target()))
    }

    /// Where the bytes of these strings start and end.
    fn ends(&self, offsets: &'a ArrayEntry, bytes: &ArrayEntry, rows: &Range<u64>) -> Result<(u64, u64)> {
        let mut ends = [[0; 8]; 2];
        self.reader.read(offsets, rows.start * 8, &mut ends[0])?;
        self.reader.read(offsets, rows.end * 8, &mut ends[1])?;
        let [first, last] = ends.map(u64::from_le_bytes);
        if first <= last && last <= bytes.layout.rows() {
            return Ok((first, last));
        }
        let name = quoted(offsets.name.as_bytes());
        let all = bytes.layout.rows();
        Err(self
            .reader
            .corrupt(format!("array {name}: expected offsets within 0..{all}, found {first}..{last}")))
    }

    /// Writes rows of one array, which is one of offsets if there is something to subtract.
    fn member(
        &self,
        zip: &mut NpzWriter<&File>,
        array: &'a ArrayEntry,
        rows: Range<u64>,
        subtract: u64,
        workers: usize,
    ) -> Result<()> {
        let layout = &array.layout;
        let row_bytes = layout.by_row().row_bytes;
        let bytes = rows.start * row_bytes..rows.end * row_bytes;
        let shape = layout.shard_shape(rows.end - rows.start);
        let mut shifted = Vec::new();
        zip.member(&array.name, layout.dtype(), &shape, |member| {
            in_order(self.reader, array, bytes, workers, self.progress, |block| {
                if subtract == 0 {
                    return member.write(block);
                }
                shifted.clear();
                for offset in block.as_chunks().0 {
                    let offset = u64::from_le_bytes(*offset).checked_sub(subtract).ok_or_else(|| {
                        self.reader.corrupt(format!(
                            "array {}: expected offsets that grow, found one below {subtract}",
                            quoted(array.name.as_bytes())
                        ))
                    })?;
                    shifted.extend_from_slice(&offset.to_le_bytes());
                }
                member.write(&shifted)
            })
        })
    }
}
