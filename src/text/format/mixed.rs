//! Rows of columns that lie side by side, each an array of its own, numbers of any dtype and text.

use super::convert::{Kernel, cut_text, put_text};
use super::plan::{Part, Plan, Step, component};
use super::printf::{Spec, Style};
use super::quote::put_field;
use super::sink::Sink;
use super::value::Value;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use half::{bf16, f16};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Elements of a dtype.
    Number(DType),
    /// UTF-8 text.
    Text,
}

/// A run of rows of one column.
#[derive(Debug, Clone, Copy)]
pub enum Column<'a> {
    /// Elements by their little-endian bytes, at any alignment.
    Number(DType, &'a [u8]),
    /// Row `i` is `bytes[offsets[i]..offsets[i + 1]]`, so there is one offset more than rows. The first need
    /// not be 0: part of a larger array is its part of the offsets with all of the bytes.
    Text {
        /// Where each text starts, and the end of the last.
        offsets: &'a [u64],
        /// What the offsets point into.
        bytes: &'a [u8],
    },
}

/// Writes rows of a table of columns. Made once, then shared: [`MixedFormatter::rows`] takes `&self`.
#[derive(Debug, Clone)]
pub struct MixedFormatter {
    kinds: Vec<Kind>,
    delimiter: Vec<u8>,
    plan: Plan,
    na: Option<Vec<u8>>,
    quoting: bool,
}

impl MixedFormatter {
    /// A formatter of rows with one value of each of `kinds`. Text is written as [`super::quote`] does;
    /// a format with one conversion for all columns leaves text columns alone, unless that is `%s`.
    ///
    /// # Errors
    /// `InvalidArgument` if there are no columns, if the number of conversions doesn't fit, or if one doesn't
    /// fit its column.
    pub fn new(kinds: &[Kind], style: &Style, delimiter: &[u8], newline: &[u8]) -> Result<MixedFormatter> {
        Ok(MixedFormatter {
            kinds: kinds.to_vec(),
            delimiter: delimiter.to_vec(),
            plan: Plan::new(kinds, style, delimiter, newline)?,
            na: None,
            quoting: true,
        })
    }

    /// Writes `text` for each `nan` of a real column, without padding. An empty text in a table of one
    /// column is written as `""`, so that no line is empty.
    #[must_use]
    pub fn na(mut self, text: &[u8]) -> MixedFormatter {
        let alone = text.is_empty() && self.kinds.len() == 1;
        self.na = Some(if alone { b"\"\"".to_vec() } else { text.to_vec() });
        self
    }

    /// Whether text is quoted where a reader would need it (the default), or written as it is.
    #[must_use]
    pub fn quoting(mut self, on: bool) -> MixedFormatter {
        self.quoting = on;
        self
    }

    /// Appends all rows of `columns` to `out`.
    ///
    /// # Errors
    /// `TypeMismatch` if a column is not of its kind; `InvalidArgument` if columns differ in length, or a
    /// value is `nan` or infinite where an integer is wanted; `Corrupt` for a bool that is neither 0 nor 1
    /// and for offsets that run backwards or out of the bytes. The line is the row within `columns`,
    /// counted from 1, the field the column. `out` is then as before.
    pub fn rows(&self, columns: &[Column<'_>], out: &mut Vec<u8>) -> Result<()> {
        let rows = self.check(columns)?;
        let start = out.len();
        let mut sink = Sink::new(out);
        let done = self.append(columns, rows, &mut sink);
        sink.finish();
        if done.is_err() {
            out.truncate(start);
        }
        done
    }

    fn check(&self, columns: &[Column<'_>]) -> Result<usize> {
        if columns.len() != self.kinds.len() {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("expected {} columns, found {}", self.kinds.len(), columns.len()),
            ));
        }
        let mut rows = None;
        for (i, (column, kind)) in columns.iter().zip(&self.kinds).enumerate() {
            let fail = |kind, what: String| Err(Error::new(kind, what).field(i as u64 + 1));
            let (found, n) = match column {
                Column::Number(dtype, bytes) => {
                    let size = dtype.size() as usize;
                    if !bytes.len().is_multiple_of(size) {
                        let what = format!("expected whole {dtype} elements, found {} bytes", bytes.len());
                        return fail(ErrorKind::InvalidArgument, what);
                    }
                    (Kind::Number(*dtype), bytes.len() / size)
                }
                Column::Text { offsets, .. } => (Kind::Text, offsets.len().saturating_sub(1)),
            };
            if found != *kind {
                return fail(
                    ErrorKind::TypeMismatch,
                    format!("expected {}, found {}", name(*kind), name(found)),
                );
            }
            if *rows.get_or_insert(n) != n {
                let what = format!("expected {} rows, found {n}", rows.unwrap_or(0));
                return fail(ErrorKind::InvalidArgument, what);
            }
        }
        Ok(rows.unwrap_or(0))
    }

    fn append(&self, columns: &[Column<'_>], rows: usize, sink: &mut Sink<'_>) -> Result<()> {
        let mut scratch = Vec::new();
        for row in 0..rows {
            let start = sink.position();
            for step in &self.plan.steps {
                sink.put(&step.before);
                self.put(step, &columns[step.column], row, sink, &mut scratch)
                    .map_err(|e| e.line(row as u64 + 1).field(step.column as u64 + 1))?;
            }
            sink.put(&self.plan.tail);
            if self.plan.join_signs {
                sink.join_signs(start);
            }
        }
        Ok(())
    }

    #[inline]
    fn put(
        &self,
        step: &Step,
        column: &Column<'_>,
        row: usize,
        sink: &mut Sink<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        let (dtype, bytes) = match *column {
            Column::Number(dtype, bytes) => (dtype, bytes),
            Column::Text { offsets, bytes } => return self.put_text(step, text(offsets, bytes, row)?, sink),
        };
        let size = dtype.size() as usize;
        let element = &bytes[row * size..(row + 1) * size];
        let element = match step.part {
            Part::Whole => element,
            Part::Real => &element[..size / 2],
            Part::Imaginary => &element[size / 2..],
        };
        let mut out = Out { formatter: self, step, sink, scratch };
        match component(Some(dtype)).unwrap_or(dtype) {
            DType::Bool => out.put::<bool>(element),
            DType::Int8 => out.put::<i8>(element),
            DType::Int16 => out.put::<i16>(element),
            DType::Int32 => out.put::<i32>(element),
            DType::Int64 => out.put::<i64>(element),
            DType::UInt8 => out.put::<u8>(element),
            DType::UInt16 => out.put::<u16>(element),
            DType::UInt32 => out.put::<u32>(element),
            DType::UInt64 => out.put::<u64>(element),
            DType::Float16 => out.put::<f16>(element),
            DType::BFloat16 => out.put::<bf16>(element),
            DType::Float32 | DType::Complex64 => out.put::<f32>(element),
            DType::Float64 | DType::Complex128 => out.put::<f64>(element),
        }
    }

    fn put_text(&self, step: &Step, text: &[u8], sink: &mut Sink<'_>) -> Result<()> {
        let plain;
        let spec = match &step.kernel {
            Kernel::General(spec) => spec,
            _ => {
                plain = Spec::plain(super::printf::Conversion::Text, None);
                &plain
            }
        };
        if !self.quoting {
            put_text(spec, text, sink);
        } else if spec.width == 0 {
            put_field(cut_text(spec, text), &self.delimiter, sink);
        } else {
            let mut field = Vec::new();
            super::quote(cut_text(spec, text), &self.delimiter, &mut field);
            put_text(&Spec { precision: None, ..spec.clone() }, &field, sink);
        }
        Ok(())
    }
}

struct Out<'a, 'b> {
    formatter: &'a MixedFormatter,
    step: &'a Step,
    sink: &'a mut Sink<'b>,
    scratch: &'a mut Vec<u8>,
}

impl Out<'_, '_> {
    #[inline(always)]
    fn put<T: Value>(&mut self, element: &[u8]) -> Result<()> {
        let Some(v) = T::from_le(element) else {
            return Err(Error::new(ErrorKind::Corrupt, "expected a bool of 0 or 1, found another byte"));
        };
        match &self.formatter.na {
            Some(na) if self.step.part == Part::Whole && v.double().is_nan() => {
                self.sink.put(na);
                Ok(())
            }
            _ => self.step.kernel.put(v, self.sink, self.scratch),
        }
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Number(dtype) => dtype.name(),
        Kind::Text => "text",
    }
}

fn text<'a>(offsets: &[u64], bytes: &'a [u8], row: usize) -> Result<&'a [u8]> {
    let (start, end) = (offsets[row], offsets[row + 1]);
    usize::try_from(start)
        .ok()
        .zip(usize::try_from(end).ok())
        .and_then(|(start, end)| bytes.get(start..end))
        .ok_or_else(|| {
            let what = format!("expected offsets within {} bytes, found {start} to {end}", bytes.len());
            Error::new(ErrorKind::Corrupt, what)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: Column<'_> = Column::Text { offsets: &[2, 5, 5, 10], bytes: b"??abcq,\"z " };

    fn numbers(dtype: DType, bytes: &[u8]) -> Column<'_> {
        Column::Number(dtype, bytes)
    }

    fn formatter(kinds: &[Kind], formats: &[&str]) -> MixedFormatter {
        MixedFormatter::new(kinds, &Style::parse(formats).unwrap(), b",", b"\n").unwrap()
    }

    fn text(formatter: &MixedFormatter, columns: &[Column<'_>]) -> String {
        let mut out = Vec::new();
        formatter.rows(columns, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_side_by_side() {
        let kinds = [
            Kind::Number(DType::Int16),
            Kind::Text,
            Kind::Number(DType::Float64),
            Kind::Number(DType::Complex64),
            Kind::Number(DType::Bool),
        ];
        let doubles: Vec<u8> = [0.1, f64::NAN, 1e300].iter().flat_map(|v: &f64| v.to_le_bytes()).collect();
        let complex: Vec<u8> =
            [1.5f32, -2.0, 0.0, 1.0, -1.0, 0.5].iter().flat_map(|v| v.to_le_bytes()).collect();
        let columns = [
            numbers(DType::Int16, &[1, 0, 0xFF, 0xFF, 0, 1]),
            NAMES,
            numbers(DType::Float64, &doubles),
            numbers(DType::Complex64, &complex),
            numbers(DType::Bool, &[1, 0, 1]),
        ];
        let shortest = formatter(&kinds, &[]);
        assert_eq!(
            text(&shortest, &columns),
            "1,abc,0.1,(1.5-2j),true\n-1,\"\",nan,(0+1j),false\n256,\"q,\"\"z \",1e+300,(-1+0.5j),true\n"
        );
        assert_eq!(
            text(&shortest.clone().na(b"").quoting(false), &columns[..]),
            "1,abc,0.1,(1.5-2j),true\n-1,,,(0+1j),false\n256,q,\"z ,1e+300,(-1+0.5j),true\n"
        );
        assert_eq!(
            text(&formatter(&kinds, &["%.1f"]), &columns).lines().next(),
            Some("1.0,abc,0.1, (1.5-2.0j),1.0")
        );
        assert_eq!(
            text(&formatter(&kinds, &["%03d", "%-6s|", "%.1e", "<%g+%gj>", "%s"]), &columns),
            "001,abc   |,1.0e-01,<1.5-2j>,True\n-01,\"\"    |,nan,<0+1j>,False\n\
             256,\"q,\"\"z \"|,1.0e+300,<-1+0.5j>,True\n"
        );
        assert_eq!(
            text(&formatter(&kinds[1..2], &["%4.2s"]).quoting(false), &columns[1..2]),
            "  ab\n    \n  q,\n"
        );
    }

    #[test]
    fn no_line_is_empty() {
        let bytes: Vec<u8> = [1.0, f32::NAN].iter().flat_map(|v: &f32| v.to_le_bytes()).collect();
        let alone = formatter(&[Kind::Number(DType::Float32)], &[]).na(b"");
        assert_eq!(text(&alone, &[numbers(DType::Float32, &bytes)]), "1.0\n\"\"\n");
        let names = formatter(&[Kind::Text], &[]);
        assert_eq!(text(&names, &[Column::Text { offsets: &[0, 0], bytes: b"" }]), "\"\"\n");
        assert_eq!(text(&names, &[Column::Text { offsets: &[], bytes: b"" }]), "");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let both = formatter(&[Kind::Text, Kind::Number(DType::UInt8)], &[]);
        let mut out = b"x".to_vec();
        let mut kind = |columns: &[Column<'_>]| both.rows(columns, &mut out).unwrap_err().kind();
        assert_eq!(kind(&[NAMES]), ErrorKind::InvalidArgument);
        assert_eq!(kind(&[NAMES, NAMES]), ErrorKind::TypeMismatch);
        assert_eq!(kind(&[NAMES, numbers(DType::Int8, &[0; 3])]), ErrorKind::TypeMismatch);
        assert_eq!(kind(&[NAMES, numbers(DType::UInt8, &[0; 4])]), ErrorKind::InvalidArgument);
        for offsets in [&[0, 4][..], &[2, 1], &[u64::MAX, u64::MAX], &[0, u64::MAX]] {
            assert_eq!(
                kind(&[Column::Text { offsets, bytes: b"abc" }, numbers(DType::UInt8, &[0])]),
                ErrorKind::Corrupt
            );
        }
        assert_eq!(out, b"x");
        let style = Style::parse(&["%d", "%d"]).unwrap();
        let error = MixedFormatter::new(&both.kinds, &style, b",", b"\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "format %d: expected numbers, found text; %s takes text, and numbers at their shortest"
        );
    }
}
