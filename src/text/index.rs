//! Pass one over a text of known length: where its chunks are, and which records are in each.

use super::count::{Place, State, count, next_cut};
use super::dialect::Dialect;
use crate::error::Result;
use crate::input::SourceFile;
use crate::progress::Progress;
use rayon::prelude::*;
use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;

/// What the tasks of the first pass read, all together and the least for one.
const SPANS_BYTES: u64 = 16 << 20;
const SPAN_BYTES: (u64, u64) = (128 << 10, 1 << 20);
/// How finely records can be found again: half of it is scanned in vain for each region.
const CHUNK_BYTES: usize = 128 << 10;
/// How far to look for a line end at a time.
const LOOK_BYTES: u64 = 4 << 10;

thread_local! {
    /// What is read of a text, kept so that no task allocates.
    pub(super) static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A text whose parts can be had in any order by any thread.
pub(crate) trait Text: Sync {
    /// Bytes of the text.
    fn len(&self) -> u64;

    /// The bytes of `range`, in place or copied to `scratch`.
    fn window<'a>(&'a self, range: Range<u64>, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]>;

    /// Its name in messages.
    fn path(&self) -> &Path;
}

impl Text for SourceFile {
    fn len(&self) -> u64 {
        SourceFile::len(self)
    }

    /// Copied rather than mapped: a mapped file that somebody truncates kills the process, and the
    /// copy goes no further than the cache that the parser reads it from.
    fn window<'a>(&'a self, range: Range<u64>, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let len = (range.end - range.start) as usize;
        if scratch.len() < len {
            scratch.resize(len, 0);
        }
        self.read_at(&mut scratch[..len], range.start)?;
        Ok(&scratch[..len])
    }

    fn path(&self) -> &Path {
        SourceFile::path(self)
    }
}

/// A run of whole records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Where it is in the text.
    pub(crate) bytes: Range<u64>,
    /// Records and lines before it; it starts between two records.
    pub(crate) place: Place,
}

/// The chunks of a text, in order, without gaps.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) records: u64,
}

impl Index {
    /// Counts the records from byte `start` on, which is where a record may start and has `lines` lines
    /// before it.
    pub(crate) fn new(
        text: &dyn Text,
        dialect: &Dialect,
        start: u64,
        lines: u64,
        progress: &Progress,
    ) -> Result<Self> {
        let span = SPANS_BYTES / rayon::current_num_threads() as u64;
        let span = span.clamp(SPAN_BYTES.0, SPAN_BYTES.1);
        Self::with_sizes(text, dialect, start, lines, (span, CHUNK_BYTES), progress)
    }

    fn with_sizes(
        text: &dyn Text,
        dialect: &Dialect,
        start: u64,
        lines: u64,
        (span_bytes, chunk_bytes): (u64, usize),
        progress: &Progress,
    ) -> Result<Self> {
        let mut starts = vec![start];
        let spans = (text.len().saturating_sub(start)).div_ceil(span_bytes);
        let found: Vec<Option<u64>> = (1..spans)
            .into_par_iter()
            .map(|span| {
                let from = start + span * span_bytes;
                first_cut(text, dialect, from..text.len().min(from + span_bytes))
            })
            .collect::<Result<_>>()?;
        starts.extend(found.into_iter().flatten());
        starts.push(text.len());
        let spans: Vec<Range<u64>> = starts.windows(2).map(|pair| pair[0]..pair[1]).collect();
        let counted: Vec<Vec<_>> = spans
            .par_iter()
            .map(|span| {
                SCRATCH.with_borrow_mut(|scratch| {
                    let bytes = text.window(span.clone(), scratch)?;
                    let mut chunks = Vec::with_capacity(bytes.len() / chunk_bytes + 1);
                    let mut at = 0;
                    while at < bytes.len() {
                        let end =
                            next_cut(bytes, dialect, at.saturating_add(chunk_bytes)).unwrap_or(bytes.len());
                        let count = count(&bytes[at..end], dialect);
                        chunks.push((span.start + at as u64..span.start + end as u64, count));
                        at = end;
                    }
                    progress.advance(bytes.len() as u64 / 4)?;
                    Ok(chunks)
                })
            })
            .collect::<Result<_>>()?;
        let mut place = Place { lines, ..Place::default() };
        let mut chunks: Vec<Chunk> = Vec::with_capacity(counted.iter().map(Vec::len).sum());
        for (bytes, count) in counted.into_iter().flatten() {
            match chunks.last_mut() {
                // A chunk that starts inside a quoted field is the rest of the one before.
                Some(last) if place.state == State::Inside => last.bytes.end = bytes.end,
                _ => chunks.push(Chunk { bytes, place }),
            }
            place.advance(&count);
        }
        Ok(Self { chunks, records: place.records })
    }

    /// The position of the chunk that record `record` starts in.
    pub(crate) fn chunk_of(&self, record: u64) -> usize {
        self.chunks.partition_point(|chunk| chunk.place.records <= record).saturating_sub(1)
    }
}

/// The first place in `range` after which a line may start, by small looks.
fn first_cut(text: &dyn Text, dialect: &Dialect, range: Range<u64>) -> Result<Option<u64>> {
    let mut scratch = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let end = range.end.min(at + LOOK_BYTES);
        // One byte more, to tell CR from CRLF.
        let seen = text.window(at..text.len().min(end + 1), &mut scratch)?;
        match next_cut(seen, dialect, 0) {
            Some(cut) => return Ok(Some(at + cut as u64)),
            None => at = end,
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Records;
    use crate::text::record::Fields;
    use proptest::prelude::*;

    struct Memory(Vec<u8>);

    impl Text for Memory {
        fn len(&self) -> u64 {
            self.0.len() as u64
        }

        fn window<'a>(&'a self, range: Range<u64>, _: &'a mut Vec<u8>) -> Result<&'a [u8]> {
            Ok(&self.0[range.start as usize..range.end as usize])
        }

        fn path(&self) -> &Path {
            Path::new("memory")
        }
    }

    fn symbols() -> impl Strategy<Value = Vec<u8>> {
        let symbol = prop_oneof![
            Just("1"),
            Just(","),
            Just("\n"),
            Just("\""),
            Just("\r\n"),
            Just(" "),
            Just("#"),
            Just("a\n1")
        ];
        prop::collection::vec(symbol, 0..60).prop_map(|parts| parts.concat().into_bytes())
    }

    proptest! {
        /// However small the spans and chunks, each chunk starts at a record and holds as many
        /// as the count says.
        #[test]
        fn chunks_are_whole_records(bytes in symbols(), span in 1u64..20, chunk in 1usize..8) {
            let dialect = Dialect::csv().with_comment(Some(b"#"));
            let index =
                Index::with_sizes(&Memory(bytes.clone()), &dialect, 0, 0, (span, chunk), &Progress::new()).unwrap();
            let mut all = Vec::new();
            let mut records = Records::new(&bytes, &dialect);
            let mut fields = Fields::new();
            while let Some(record) = records.next(&mut fields) {
                all.push(record.map(|r| (r.start as u64, r.line)).ok());
            }
            prop_assert_eq!(index.records, all.len() as u64);
            let mut end = 0;
            for (i, chunk) in index.chunks.iter().enumerate() {
                prop_assert_eq!(chunk.bytes.start, end);
                end = chunk.bytes.end;
                let next = index.chunks.get(i + 1).map_or(index.records, |next| next.place.records);
                let within = &bytes[chunk.bytes.start as usize..chunk.bytes.end as usize];
                let mut records = Records::new(within, &dialect).from_place(chunk.place.lines + 1, chunk.bytes.start);
                for record in chunk.place.records..next {
                    prop_assert_eq!(index.chunk_of(record), i);
                    let found = records.next(&mut fields).unwrap().ok();
                    let found = found.map(|r| (r.start as u64 + chunk.bytes.start, r.line));
                    prop_assert_eq!(found, all[record as usize]);
                }
                prop_assert!(records.next(&mut fields).is_none());
            }
            prop_assert_eq!(end, bytes.len() as u64);
        }
    }
}
