//! A row's plan: which value goes through which conversion, and the text between.

use super::convert::Kernel;
use super::mixed::Kind;
use super::printf::{Conversion, Format, Piece, Spec, Style};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};

/// Which part of an element a step writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    Real,
    Imaginary,
}

/// Text, then one value.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) before: Vec<u8>,
    pub(super) column: usize,
    pub(super) part: Part,
    pub(super) kernel: Kernel,
}

/// The steps of a row and what follows the last.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    /// With the line end.
    pub(super) tail: Vec<u8>,
    /// Whether `+-` becomes `-` in each finished row, as np.savetxt does it.
    pub(super) join_signs: bool,
}

/// Collects steps; `pending` is the text since the last.
struct Builder {
    steps: Vec<Step>,
    pending: Vec<u8>,
    /// Column, part, and the dtype or `None` for text, of each value in a row.
    slots: Vec<(usize, Part, Option<DType>)>,
}

impl Plan {
    /// Plans rows of `kinds`.
    ///
    /// # Errors
    /// `InvalidArgument` if there are no columns, if the number of conversions doesn't fit, or if one doesn't
    /// fit its column's dtype.
    pub(super) fn new(kinds: &[Kind], style: &Style, delimiter: &[u8], newline: &[u8]) -> Result<Plan> {
        if kinds.is_empty() {
            return Err(invalid("expected at least one column, found 0".to_owned()));
        }
        let mut slots = Vec::with_capacity(kinds.len());
        for (column, kind) in kinds.iter().enumerate() {
            match kind {
                Kind::Number(dtype) if dtype.is_complex() => {
                    slots.push((column, Part::Real, Some(*dtype)));
                    slots.push((column, Part::Imaginary, Some(*dtype)));
                }
                Kind::Number(dtype) => slots.push((column, Part::Whole, Some(*dtype))),
                Kind::Text => slots.push((column, Part::Whole, None)),
            }
        }
        let complex = slots.len() > kinds.len();
        let mut builder = Builder { steps: Vec::with_capacity(slots.len()), pending: Vec::new(), slots };
        match style {
            Style::Shortest => builder.shortest(delimiter),
            Style::One(format) if format.conversions() == 1 => builder.every_column(format, delimiter)?,
            Style::One(format) => {
                builder.expect(format.conversions(), &format!("1 or {}", builder.slots.len()))?;
                builder.format(format)?;
            }
            Style::PerColumn(formats) => {
                if formats.len() != kinds.len() {
                    return Err(invalid(format!(
                        "expected {} formats, found {}",
                        kinds.len(),
                        formats.len()
                    )));
                }
                let conversions = formats.iter().map(Format::conversions).sum();
                builder.expect(conversions, &builder.slots.len().to_string())?;
                for (i, format) in formats.iter().enumerate() {
                    if i > 0 {
                        builder.pending.extend_from_slice(delimiter);
                    }
                    builder.format(format)?;
                }
            }
        }
        let mut tail = builder.pending;
        tail.extend_from_slice(newline);
        Ok(Plan { steps: builder.steps, tail, join_signs: complex && *style != Style::Shortest })
    }
}

impl Builder {
    fn expect(&self, conversions: usize, expected: &str) -> Result<()> {
        if conversions == self.slots.len() {
            return Ok(());
        }
        let error = invalid(format!("expected a format with {expected} conversions, found {conversions}"));
        let complex = self.slots.iter().any(|slot| slot.1 != Part::Whole);
        Err(if complex { error.hint("a complex column takes two") } else { error })
    }

    /// The next value of the row, by the kernel chosen for its dtype.
    fn push(&mut self, choose: impl FnOnce(Part, Option<DType>) -> Result<Kernel>) -> Result<()> {
        // Callers have counted: there is a slot for each conversion.
        let Some(&(column, part, dtype)) = self.slots.get(self.steps.len()) else { return Ok(()) };
        let kernel = choose(part, dtype)?;
        self.steps.push(Step { before: std::mem::take(&mut self.pending), column, part, kernel });
        Ok(())
    }

    fn shortest(&mut self, delimiter: &[u8]) {
        for i in 0..self.slots.len() {
            let (column, part, dtype) = self.slots[i];
            if column > 0 && part != Part::Imaginary {
                self.pending.extend_from_slice(delimiter);
            }
            let (before, kernel, after): (&[u8], _, &[u8]) = match (part, dtype) {
                (Part::Real, _) => (b"(", Kernel::Real, b""),
                (Part::Imaginary, _) => (b"", Kernel::Imaginary, b"j)"),
                (Part::Whole, Some(_)) => (b"", Kernel::Shortest, b""),
                (Part::Whole, None) => (b"", Kernel::Text, b""),
            };
            self.pending.extend_from_slice(before);
            let before = std::mem::take(&mut self.pending);
            self.steps.push(Step { before, column, part, kernel });
            self.pending.extend_from_slice(after);
        }
    }

    fn format(&mut self, format: &Format) -> Result<()> {
        for piece in &format.pieces {
            match piece {
                Piece::Text(text) => self.pending.extend_from_slice(text),
                Piece::Number(spec) => self.push(|_, dtype| Kernel::choose(spec, component(dtype)))?,
            }
        }
        Ok(())
    }

    /// A format with one conversion for all columns: text columns go as they are, unless it is `%s`.
    fn every_column(&mut self, format: &Format, delimiter: &[u8]) -> Result<()> {
        let numeric = |p: &Piece| {
            !matches!(p, Piece::Number(Spec { conversion: Conversion::Text, .. }) | Piece::Text(_))
        };
        let numeric = format.pieces.iter().any(numeric);
        for i in 0..self.slots.len() {
            let (column, part, dtype) = self.slots[i];
            if column > 0 && part != Part::Imaginary {
                self.pending.extend_from_slice(delimiter);
            }
            match part {
                Part::Whole if dtype.is_none() && numeric => self.push(|_, _| Ok(Kernel::Text))?,
                Part::Whole => self.format(format)?,
                Part::Real => {
                    self.pending.extend_from_slice(b" (");
                    self.format(format)?;
                    self.pending.push(b'+');
                }
                Part::Imaginary => {
                    self.format(format)?;
                    self.pending.extend_from_slice(b"j)");
                }
            }
        }
        Ok(())
    }
}

/// What the parts of a complex number are; other dtypes are their own part.
pub(super) fn component(dtype: Option<DType>) -> Option<DType> {
    match dtype {
        Some(DType::Complex64) => Some(DType::Float32),
        Some(DType::Complex128) => Some(DType::Float64),
        other => other,
    }
}

fn invalid(what: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, what)
}
