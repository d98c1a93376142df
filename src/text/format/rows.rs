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
