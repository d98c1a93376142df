//! Rows of one dtype as text: the hot loop of text output.

use super::convert::{self, Kernel};
use super::digits::Window;
use super::mixed::Kind;
use super::plan::{Plan, component};
use super::printf::Style;
use super::sink::Sink;
use super::value::Value;
use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result};
use bytemuck::CheckedBitPattern;
use half::{bf16, f16};

/// Writes rows of a matrix. Made once, then shared: [`RowFormatter::rows`] takes `&self`.
#[derive(Debug, Clone)]
pub struct RowFormatter {
    dtype: DType,
    columns: usize,
    plan: Plan,
    na: Option<Vec<u8>>,
    /// The delimiter, if every value goes through the same kernel with this one byte between.
    uniform: Option<u8>,
}

impl RowFormatter {
    /// A formatter of rows of `columns` elements. In [`Style::One`] and [`Style::PerColumn`] the bytes are
    /// those that `np.savetxt(fmt=, delimiter=, newline=)` writes.
    ///
    /// # Errors
    /// `InvalidArgument` if there are no columns, if the number of conversions doesn't fit, or if one doesn't
    /// fit the dtype.
    pub fn new(
        dtype: DType,
        columns: usize,
        style: &Style,
        delimiter: &[u8],
        newline: &[u8],
    ) -> Result<RowFormatter> {
        let plan = Plan::new(&vec![Kind::Number(dtype); columns], style, delimiter, newline)?;
        let (first, rest) = match plan.steps.split_first() {
            Some(split) => split,
            None => {
                return Err(Error::new(ErrorKind::InvalidArgument, "expected at least one column, found 0"));
            }
        };
        let same = rest.iter().all(|s| s.kernel == first.kernel && s.before == delimiter);
        let uniform = match (&first.kernel, delimiter) {
            (Kernel::General(_) | Kernel::Real, _) => None,
            (_, &[byte]) if same && first.before.is_empty() => Some(byte),
            (_, _) if rest.is_empty() && first.before.is_empty() => Some(b'\n'),
            _ => None,
        };
        let uniform = uniform.filter(|_| !plan.join_signs);
        Ok(RowFormatter { dtype, columns, plan, na: None, uniform })
    }

    /// Writes `text` for each `nan` of a real dtype, without padding. An empty text in a table of one
    /// column is written as `""`, so that no line is empty.
    #[must_use]
    pub fn na(mut self, text: &[u8]) -> RowFormatter {
        if self.dtype.is_float() {
            let alone = text.is_empty() && self.columns == 1;
            self.na = Some(if alone { b"\"\"".to_vec() } else { text.to_vec() });
        }
        self
    }

    /// How many elements a row has.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Appends whole rows to `out`.
    ///
    /// # Errors
    /// `TypeMismatch` if `T` is not the formatter's dtype; `InvalidArgument` if `values` is not whole rows,
    /// or has a `nan` or infinity where an integer is wanted: with the row of `values`, counted from 1, as
    /// the line. `out` is then as before.
    pub fn rows<T: Element>(&self, values: &[T], out: &mut Vec<u8>) -> Result<()> {
        if T::DTYPE != self.dtype {
            return Err(Error::new(
                ErrorKind::TypeMismatch,
                format!("expected {} elements, found {}", self.dtype, T::DTYPE),
            ));
        }
        self.dispatch(bytemuck::cast_slice(values), true, out)
    }

    /// Appends whole rows of elements that are given by their little-endian bytes, at any alignment.
    ///
    /// # Errors
    /// As [`RowFormatter::rows`]; `Corrupt` for a bool that is neither 0 nor 1.
    pub fn rows_le(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.dispatch(bytes, cfg!(target_endian = "little"), out)
    }

    fn dispatch(&self, bytes: &[u8], native: bool, out: &mut Vec<u8>) -> Result<()> {
        let size = self.dtype.size() as usize;
        if !bytes.len().is_multiple_of(size) || !(bytes.len() / size).is_multiple_of(self.columns) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "expected whole rows of {} {} elements, found {} bytes",
                    self.columns,
                    self.dtype,
                    bytes.len()
                ),
            ));
        }
        match component(Some(self.dtype)).unwrap_or(self.dtype) {
            DType::Bool => self.cast::<bool>(bytes, native, out),
            DType::Int8 => self.cast::<i8>(bytes, native, out),
            DType::Int16 => self.cast::<i16>(bytes, native, out),
            DType::Int32 => self.cast::<i32>(bytes, native, out),
            DType::Int64 => self.cast::<i64>(bytes, native, out),
            DType::UInt8 => self.cast::<u8>(bytes, native, out),
            DType::UInt16 => self.cast::<u16>(bytes, native, out),
            DType::UInt32 => self.cast::<u32>(bytes, native, out),
            DType::UInt64 => self.cast::<u64>(bytes, native, out),
            DType::Float16 => self.cast::<f16>(bytes, native, out),
            DType::BFloat16 => self.cast::<bf16>(bytes, native, out),
            DType::Float32 | DType::Complex64 => self.cast::<f32>(bytes, native, out),
            DType::Float64 | DType::Complex128 => self.cast::<f64>(bytes, native, out),
        }
    }

    fn cast<T: Value + CheckedBitPattern>(
        &self,
        bytes: &[u8],
        native: bool,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if native && let Ok(values) = bytemuck::checked::try_cast_slice::<u8, T>(bytes) {
            return self.append(values, out);
        }
        let copied: Option<Vec<T>> = bytes.chunks_exact(size_of::<T>()).map(T::from_le).collect();
        match copied {
            Some(values) => self.append(&values, out),
            None => Err(Error::new(ErrorKind::Corrupt, "expected bool bytes of 0 or 1, found others")),
        }
    }

    fn append<T: Value>(&self, values: &[T], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        let mut sink = Sink::new(out);
        let done = match (self.uniform, &self.na, self.plan.steps.first()) {
            (Some(delimiter), None, Some(step)) => {
                let (kernel, sink) = (&step.kernel, &mut sink);
                match *kernel {
                    Kernel::Shortest if T::are_long(values) => {
                        self.uniform(values, kernel, delimiter, sink, |v, w| v.shortest_long(w))
                    }
                    Kernel::Shortest => self.uniform(values, kernel, delimiter, sink, |v, w| v.shortest(w)),
                    Kernel::Integer => self.uniform(values, kernel, delimiter, sink, convert::put_integer),
                    Kernel::Exponent(p) => self.uniform(values, kernel, delimiter, sink, |v, w| {
                        convert::put_exponent(v.double(), p, w)
                    }),
                    Kernel::Fixed(p) => self.uniform(values, kernel, delimiter, sink, |v, w| {
                        convert::put_fixed(v.double(), p, w)
                    }),
                    _ => self.planned(values, sink),
                }
            }
            _ => self.planned(values, &mut sink),
        };
        sink.finish();
        if done.is_err() {
            out.truncate(start);
        }
        done
    }

    /// The loop for one kernel and a one-byte delimiter.
    #[inline(never)]
    fn uniform<T: Value>(
        &self,
        values: &[T],
        kernel: &Kernel,
        delimiter: u8,
        sink: &mut Sink<'_>,
        put: impl Fn(T, &mut Window) -> usize,
    ) -> Result<()> {
        for row in values.chunks_exact(self.columns) {
            for &v in row {
                let w = sink.window();
                let end = put(v, w);
                if end == 0 {
                    kernel.put_slow(v, sink, &mut Vec::new())?;
                    sink.put(&[delimiter]);
                } else {
                    w[end] = delimiter;
                    sink.advance(end + 1);
                }
            }
            sink.retreat(1);
            sink.put(&self.plan.tail);
        }
        Ok(())
    }

    /// The loop for any plan.
    fn planned<T: Value>(&self, values: &[T], sink: &mut Sink<'_>) -> Result<()> {
        let mut scratch = Vec::new();
        for (i, row) in values.chunks_exact(self.plan.steps.len()).enumerate() {
            let start = sink.position();
            for (step, &v) in self.plan.steps.iter().zip(row) {
                sink.put(&step.before);
                match &self.na {
                    Some(na) if v.double().is_nan() => sink.put(na),
                    _ => step
                        .kernel
                        .put(v, sink, &mut scratch)
                        .map_err(|e| e.line(i as u64 + 1).field(step.column as u64 + 1))?,
                }
            }
            sink.put(&self.plan.tail);
            if self.plan.join_signs {
                sink.join_signs(start);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::printf::Format;
    use super::*;
    use num_complex::Complex;

    fn text<T: Element>(style: &Style, columns: usize, na: Option<&str>, values: &[T]) -> String {
        let mut formatter = RowFormatter::new(T::DTYPE, columns, style, b",", b"\n").unwrap();
        if let Some(na) = na {
            formatter = formatter.na(na.as_bytes());
        }
        let mut out = b"before ".to_vec();
        formatter.rows(values, &mut out).unwrap();
        let mut again = b"before ".to_vec();
        let mut bytes = vec![0];
        bytes.extend_from_slice(bytemuck::cast_slice(values));
        formatter.rows_le(&bytes[1..], &mut again).unwrap();
        assert_eq!(again, out);
        String::from_utf8(out).unwrap().strip_prefix("before ").unwrap().to_owned()
    }

    #[test]
    fn every_dtype_at_its_shortest() {
        let s = &Style::Shortest;
        assert_eq!(text(s, 2, None, &[true, false]), "true,false\n");
        assert_eq!(text(s, 1, None, &[i8::MIN, 127]), "-128\n127\n");
        assert_eq!(text(s, 2, None, &[u64::MAX, 0, 1, 2]), "18446744073709551615,0\n1,2\n");
        assert_eq!(text(s, 2, None, &[0.1f32, 1e30]), "0.1,1e+30\n");
        assert_eq!(text(s, 2, None, &[f16::from_f32(0.1), f16::MAX]), "0.1,65500.0\n");
        assert_eq!(text(s, 1, None, &[bf16::from_f32(0.1)]), "0.1\n");
        assert_eq!(text(s, 3, None, &[f64::NAN, f64::INFINITY, -0.0]), "nan,inf,-0.0\n");
        let z = [Complex::new(1.5, -2.0), Complex::new(-0.0, f64::NAN)];
        assert_eq!(text(s, 2, None, &z), "(1.5-2j),(-0+nanj)\n");
        assert_eq!(text(s, 1, None, &[Complex::new(0.1f32, 1e20)]), "(0.1+1e+20j)\n");
    }

    #[test]
    fn the_rows_of_a_matrix_are_its_values_one_by_one() {
        // Enough to run over several steps of the output, with a slow value in each kernel.
        let values: Vec<f64> =
            (0..9000).map(|i| f64::from(i) * 1e16f64.powi(i % 3 - 1)).chain([25e20; 3]).collect();
        for fmt in ["%.18e", "%.1e", "%.5f", "%.0f", "%g", "%30.3f", "%s", "%d"] {
            let style = Style::One(Format::parse(fmt).unwrap());
            let rows = text(&style, 3, None, &values);
            let single = text(&style, 1, None, &values);
            assert_eq!(rows.replace('\n', ","), single.replace('\n', ","), "{fmt}");
            assert_eq!(rows.lines().count() * 3, values.len());
        }
    }

    #[test]
    fn na_stands_for_nan() {
        let v = [1.0, f64::NAN, f64::NAN, 2.0];
        let printf = Style::One(Format::parse("%8.1f").unwrap());
        assert_eq!(text(&Style::Shortest, 2, Some("NA"), &v), "1.0,NA\nNA,2.0\n");
        assert_eq!(text(&printf, 2, Some(""), &v), "     1.0,\n,     2.0\n");
        assert_eq!(text(&Style::Shortest, 1, Some(""), &v), "1.0\n\"\"\n\"\"\n2.0\n");
        assert_eq!(text(&Style::Shortest, 2, Some("NA"), &[1i32, 2]), "1,2\n");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let error = |dtype, columns, formats: &[&str]| {
            RowFormatter::new(dtype, columns, &Style::parse(formats).unwrap(), b",", b"\n")
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            error(DType::Float32, 3, &["%d %d"]),
            "expected a format with 1 or 3 conversions, found 2"
        );
        assert_eq!(error(DType::Float32, 3, &["%d", "%d"]), "expected 3 formats, found 2");
        assert_eq!(
            error(DType::Complex64, 2, &["%g", "%g"]),
            "expected a format with 4 conversions, found 2; a complex column takes two"
        );
        assert_eq!(error(DType::Float32, 0, &["%d"]), "expected at least one column, found 0");

        let integers = Style::One(Format::parse("%d").unwrap());
        let formatter = RowFormatter::new(DType::Float64, 2, &integers, b",", b"\n").unwrap();
        let mut out = b"x".to_vec();
        let found = formatter.rows(&[1.0, 2.0, 3.0, f64::NAN], &mut out).unwrap_err();
        assert_eq!(
            found.to_string(),
            "line 2: field 2: expected a finite number for an integer format, found nan; %.0f writes it"
        );
        assert_eq!(formatter.rows(&[1.0f32; 2], &mut out).unwrap_err().kind(), ErrorKind::TypeMismatch);
        assert_eq!(formatter.rows(&[1.0; 3], &mut out).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(formatter.rows_le(&[0; 15], &mut out).unwrap_err().kind(), ErrorKind::InvalidArgument);
        let bools = RowFormatter::new(DType::Bool, 1, &Style::Shortest, b",", b"\n").unwrap();
        assert_eq!(bools.rows_le(&[0, 1, 2], &mut out).unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(out, b"x");
    }
}
