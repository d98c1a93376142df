//! Records of a stream, or of a table with text in it, at the end of growing arrays.

use super::count::count;
use super::record::{Fields, Records};
use super::rows::{RowRules, check_whole_numbers};
use super::schema::Kind;
use super::stream::Piece;
use crate::append::Appender;
use crate::buffer::Buffer;
use crate::dtype::{DType, values_mut, with_element};
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::writer::Writer;
use std::ops::ControlFlow;

/// The values of a piece of text.
pub(crate) struct Rows {
    rows: usize,
    parts: Vec<Part>,
    /// What stopped the reading, after those rows.
    fault: Option<Error>,
}

impl Rows {
    /// A matrix and a string for each of its rows.
    pub(crate) fn vectors(
        bytes: Buffer,
        row_bytes: usize,
        ends: Vec<u64>,
        tokens: Vec<u8>,
        fault: Option<Error>,
    ) -> Self {
        let rows = ends.len();
        let parts = vec![Part::Numbers { bytes, row_bytes }, Part::Text { ends, bytes: tokens }];
        Self { rows, parts, fault }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Bytes of all values.
    pub(crate) fn bytes(&self) -> usize {
        let bytes = |part: &Part| match part {
            Part::Numbers { bytes, .. } => bytes.bytes().len(),
            Part::Text { bytes, .. } => bytes.len(),
        };
        self.parts.iter().map(bytes).sum()
    }
}

/// The values of one array.
enum Part {
    /// Row-major bytes.
    Numbers { bytes: Buffer, row_bytes: usize },
    /// Where each string ends, and their bytes.
    Text { ends: Vec<u64>, bytes: Vec<u8> },
}

/// The matrix that a piece holds, for records that are all numbers of `dtype`.
pub(crate) fn matrix(rules: &RowRules, piece: &Piece, dtype: DType, check_whole: bool) -> Rows {
    let most = count(&piece.text, &rules.dialect).outside.records as usize;
    let row_bytes = rules.columns() * dtype.size() as usize;
    let mut bytes = Buffer::default();
    bytes.resize(most * row_bytes);
    let (mut rows, mut at) = (0, 0);
    let fault = with_element!(dtype, T => {
        matrix_rows::<T>(rules, piece, &mut at, bytes.bytes_mut(), &mut rows, check_whole)
    })
    .err();
    bytes.truncate(rows * row_bytes);
    Rows { rows, parts: vec![Part::Numbers { bytes, row_bytes }], fault }
}

fn matrix_rows<T: super::matrix::FastNumber>(
    rules: &RowRules,
    piece: &Piece,
    at: &mut usize,
    out: &mut [u8],
    rows: &mut usize,
    check_whole: bool,
) -> Result<()> {
    let values: &mut [T] = values_mut(out)?;
    let result = rules.rows(&piece.text, piece.origin, at, values, rows);
    if check_whole {
        check_whole_numbers(&values[..*rows * rules.columns()])?;
    }
    result
}

/// The columns that a piece holds.
pub(crate) fn columns(rules: &RowRules, piece: &Piece, kinds: &[Kind], check_whole: bool) -> Rows {
    let mut parts: Vec<Builder> = kinds.iter().map(|kind| Builder::new(*kind)).collect();
    let mut rows = 0;
    let fault = fill_columns(rules, piece, &mut parts, &mut rows, check_whole).err();
    let parts = parts.into_iter().map(|part| part.finish(rows)).collect();
    Rows { rows, parts, fault }
}

enum Builder {
    Numbers(DType, Vec<u8>),
    Text(Vec<u64>, Vec<u8>),
}

impl Builder {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Number(dtype) => Self::Numbers(dtype, Vec::new()),
            Kind::Text => Self::Text(Vec::new(), Vec::new()),
        }
    }

    /// Keeps whole rows: a fault may have come in the middle of one.
    fn finish(self, rows: usize) -> Part {
        match self {
            Self::Numbers(dtype, values) => {
                let row_bytes = dtype.size() as usize;
                let mut bytes = Buffer::default();
                bytes.resize(rows * row_bytes);
                bytes.bytes_mut().copy_from_slice(&values[..rows * row_bytes]);
                Part::Numbers { bytes, row_bytes }
            }
            Self::Text(mut ends, mut bytes) => {
                ends.truncate(rows);
                bytes.truncate(ends.last().map_or(0, |&end| end as usize));
                Part::Text { ends, bytes }
            }
        }
    }
}

fn fill_columns(
    rules: &RowRules,
    piece: &Piece,
    parts: &mut [Builder],
    rows: &mut usize,
    check_whole: bool,
) -> Result<()> {
    let text = &piece.text[..];
    let (mut fields, mut scratch) = (Fields::new(), Vec::new());
    let mut records = Records::new(text, &rules.dialect);
    let place = |e: Error| rules.place(e, text, 0, piece.origin);
    while let Some(record) = records.next(&mut fields) {
        let record = record.map_err(place)?;
        if !rules.has_width(&record, &fields).map_err(place)? {
            continue;
        }
        for (&index, part) in rules.select.iter().zip(parts.iter_mut()) {
            match part {
                Builder::Numbers(dtype, bytes) => with_element!(*dtype, T => {
                    let value = rules.number::<T>(text, &record, &fields, index, &mut scratch).map_err(place)?;
                    if check_whole {
                        check_whole_numbers(&[value])?;
                    }
                    bytes.extend_from_slice(bytemuck::bytes_of(&value));
                }),
                Builder::Text(ends, bytes) => {
                    let field = fields.value(text, index, &mut scratch);
                    if let Err(e) = std::str::from_utf8(field) {
                        let error =
                            Error::new(ErrorKind::Parse, format!("expected UTF-8, found {}", quoted(field)))
                                .hint("--encoding reads text in another encoding");
                        let error = rules.in_field(error, &record, &fields, index, text);
                        let at = error.byte_offset().unwrap_or(0) + e.valid_up_to() as u64;
                        return Err(place(error.offset(at)));
                    }
                    bytes.extend_from_slice(field);
                    ends.push(bytes.len() as u64);
                }
            }
        }
        *rows += 1;
    }
    Ok(())
}

/// The arrays that rows are appended to.
pub(crate) struct Sinks<'w> {
    writer: &'w Writer,
    sinks: Vec<Sink>,
    /// Rows that are still wanted.
    left: u64,
}

enum Sink {
    Numbers(Box<Appender>),
    Text(Box<TextSink>),
}

/// The two halves of a string array, and where its last string ends.
struct TextSink {
    offsets: Appender,
    bytes: Appender,
    end: u64,
}

impl<'w> Sinks<'w> {
    /// Takes the appenders of the arrays with these names; at most `max_rows` rows go in.
    pub(crate) fn new(writer: &'w Writer, arrays: &[(String, Kind)], max_rows: Option<u64>) -> Result<Self> {
        let sinks = arrays
            .iter()
            .map(|(name, kind)| match kind {
                Kind::Number(_) => Ok(Sink::Numbers(Box::new(writer.appender(name)?))),
                Kind::Text => {
                    let mut offsets = writer.appender(&format!("{name}.offsets"))?;
                    offsets.append(&0u64.to_le_bytes())?;
                    let bytes = writer.appender(&format!("{name}.bytes"))?;
                    Ok(Sink::Text(Box::new(TextSink { offsets, bytes, end: 0 })))
                }
            })
            .collect::<Result<_>>()?;
        Ok(Self { writer, sinks, left: max_rows.unwrap_or(u64::MAX) })
    }

    /// Appends the rows of a piece, as far as they are wanted.
    pub(crate) fn take(&mut self, rows: Rows) -> Result<ControlFlow<()>> {
        let wanted = (rows.rows as u64).min(self.left) as usize;
        for (sink, part) in self.sinks.iter_mut().zip(&rows.parts) {
            match (sink, part) {
                (Sink::Numbers(appender), Part::Numbers { bytes, row_bytes }) => {
                    appender.append(&bytes.bytes()[..wanted * row_bytes])?;
                }
                (Sink::Text(sink), Part::Text { ends, bytes: new }) => {
                    let TextSink { offsets, bytes, end } = &mut **sink;
                    let ends = &ends[..wanted];
                    let shifted: Vec<u8> = ends.iter().flat_map(|e| (e + *end).to_le_bytes()).collect();
                    offsets.append(&shifted)?;
                    let len = ends.last().copied().unwrap_or(0);
                    bytes.append(&new[..len as usize])?;
                    *end += len;
                }
                _ => {
                    return Err(Error::new(
                        ErrorKind::InvalidArgument,
                        "expected values of the array's kind, found others",
                    ));
                }
            }
        }
        self.left -= wanted as u64;
        match rows.fault {
            // What is wrong behind the last row that is wanted is nobody's business.
            _ if self.left == 0 => Ok(ControlFlow::Break(())),
            Some(fault) => Err(fault),
            None => Ok(ControlFlow::Continue(())),
        }
    }

    /// Whether all rows that are wanted are there.
    pub(crate) fn is_full(&self) -> bool {
        self.left == 0
    }

    /// Ends the arrays.
    pub(crate) fn finish(self) -> Result<()> {
        for sink in self.sinks {
            match sink {
                Sink::Numbers(appender) => self.writer.finish(*appender)?,
                Sink::Text(sink) => {
                    self.writer.finish(sink.offsets)?;
                    self.writer.finish(sink.bytes)?;
                }
            }
        }
        Ok(())
    }
}
