//! printf formats, as Python's `%` operator reads them, which is what `np.savetxt` uses.

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, quoted};

/// Neither a width nor a precision may be larger: no double has more digits that say anything, and a
/// mistyped width must not ask for gigabytes.
const MAX_SIZE: usize = 4096;

/// A format text taken apart: `%[flags][width][.precision]conversion` any number of times, with text around.
///
/// Flags are `-` `+` space `#` `0`; conversions are `d i u` (a float is cut towards zero), `x X o`
/// (integers only), `e E f F g G`, and `s r a` (NumPy's `str` of the element). One letter `h`, `l` or `L`
/// before the conversion says nothing, `%%` is a percent sign. All rules are Python's, so `%#o` writes
/// `0o17`, and `nan` and `inf` are padded like numbers. Unlike NumPy 2, `%r` and `%a` write `0.1` and
/// not `np.float64(0.1)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    text: String,
    pub(super) pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(Vec<u8>),
    Number(Spec),
}

/// How the elements of a table become text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Style {
    /// The shortest digits that read back to the same value, laid out as Python's `repr(float)`: `0.1`,
    /// `1e-05`, `1.0`, `nan`. `float32` and the 16-bit types have the shortest digits of their own type. A
    /// bool is `true` or `false`, so that it is read back as one, and a complex number `(1.5-2j)`, which
    /// `np.loadtxt` reads too.
    Shortest,
    /// One format: with one conversion it serves every column (a complex one as ` (%.18e%+.18ej)`, as
    /// `np.savetxt` has it); otherwise it is the whole row, with one conversion a column (two a complex
    /// column), and no delimiter is added.
    One(Format),
    /// One format a column, joined by the delimiter. A complex column's has two conversions.
    PerColumn(Vec<Format>),
}

/// One conversion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) left: bool,
    pub(super) plus: bool,
    pub(super) space: bool,
    pub(super) alternate: bool,
    pub(super) zero: bool,
    pub(super) width: usize,
    pub(super) precision: Option<usize>,
    pub(super) conversion: Conversion,
    pub(super) upper: bool,
    pub(super) letter: char,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conversion {
    Decimal,
    Octal,
    Hex,
    Exponent,
    Fixed,
    General,
    Text,
}

impl Format {
    /// Takes a format text apart.
    ///
    /// # Errors
    /// `InvalidArgument` for anything that Python's `%` refuses, for `*` and `%(name)`, which a table can't
    /// fill, for `%c`, and for a width or precision above 4096.
    pub fn parse(text: &str) -> Result<Format> {
        let wrong = |expected: &str, found: &str| {
            let found = if found.is_empty() { "its end".to_owned() } else { quoted(found.as_bytes()) };
            Error::new(
                ErrorKind::InvalidArgument,
                format!("format {}: expected {expected}, found {found}", quoted(text.as_bytes())),
            )
        };
        let mut pieces = Vec::new();
        let mut literal = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('%') {
            literal.extend_from_slice(&rest.as_bytes()[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('%') {
                literal.push(b'%');
                rest = after;
                continue;
            }
            let (spec, after) = Spec::parse(rest, &wrong)?;
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Number(spec));
            rest = after;
        }
        literal.extend_from_slice(rest.as_bytes());
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal));
        }
        Ok(Format { text: text.to_owned(), pieces })
    }

    /// How many values the format takes.
    pub fn conversions(&self) -> usize {
        self.pieces.iter().filter(|p| matches!(p, Piece::Number(_))).count()
    }

    /// The text that the format was made from.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Style {
    /// One text is one format for all columns or the whole row, more are one a column, none is `Shortest`.
    ///
    /// # Errors
    /// As [`Format::parse`].
    pub fn parse<S: AsRef<str>>(texts: &[S]) -> Result<Style> {
        match texts {
            [] => Ok(Style::Shortest),
            [one] => Format::parse(one.as_ref()).map(Style::One),
            many => {
                many.iter().map(|t| Format::parse(t.as_ref())).collect::<Result<_>>().map(Style::PerColumn)
            }
        }
    }
}

impl Spec {
    /// Parses what follows a `%` and gives what follows that.
    fn parse<'a>(text: &'a str, wrong: &impl Fn(&str, &str) -> Error) -> Result<(Spec, &'a str)> {
        let mut spec = Spec::plain(Conversion::Decimal, None);
        let mut rest = text;
        while let Some(flag) = rest.chars().next() {
            match flag {
                '-' => spec.left = true,
                '+' => spec.plus = true,
                ' ' => spec.space = true,
                '#' => spec.alternate = true,
                '0' => spec.zero = true,
                _ => break,
            }
            rest = &rest[1..];
        }
        (spec.width, rest) = number(rest, "a width", wrong)?;
        if let Some(after) = rest.strip_prefix('.') {
            let precision;
            (precision, rest) = number(after, "a precision", wrong)?;
            spec.precision = Some(precision);
        }
        rest = rest.strip_prefix(['h', 'l', 'L']).unwrap_or(rest);
        const KNOWN: &str = "one of d i u x X o e E f F g G s r a after %";
        let letter = rest.chars().next().ok_or_else(|| wrong(KNOWN, ""))?;
        spec.conversion = match letter {
            'd' | 'i' | 'u' => Conversion::Decimal,
            'o' => Conversion::Octal,
            'x' | 'X' => Conversion::Hex,
            'e' | 'E' => Conversion::Exponent,
            'f' | 'F' => Conversion::Fixed,
            'g' | 'G' => Conversion::General,
            's' | 'r' | 'a' => Conversion::Text,
            '*' => return Err(wrong("a number", "*").hint("write the width or precision itself")),
            '(' => return Err(wrong(KNOWN, "(").hint("columns have no names here")),
            other => return Err(wrong(KNOWN, &other.to_string())),
        };
        spec.upper = letter.is_ascii_uppercase();
        spec.letter = letter;
        Ok((spec, &rest[1..]))
    }

    /// A conversion without flags or width.
    pub(super) fn plain(conversion: Conversion, precision: Option<usize>) -> Spec {
        Spec {
            left: false,
            plus: false,
            space: false,
            alternate: false,
            zero: false,
            width: 0,
            precision,
            conversion,
            upper: false,
            letter: 'd',
        }
    }

    /// Whether there is nothing but a precision.
    pub(super) fn is_bare(&self) -> bool {
        let flagged = self.left || self.plus || self.space || self.alternate || self.zero || self.upper;
        !flagged && self.width == 0
    }

    /// Refuses what Python refuses to convert. `None` stands for text.
    pub(super) fn check(&self, dtype: Option<DType>) -> Result<()> {
        let wrong = |expected: &str, found: &str| {
            Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("format %{}: expected {expected}, found {found}", self.letter),
            ))
        };
        match (self.conversion, dtype) {
            (Conversion::Text, _) => Ok(()),
            (_, None) => {
                wrong("numbers", "text").map_err(|e| e.hint("%s takes text, and numbers at their shortest"))
            }
            (Conversion::Hex | Conversion::Octal, Some(dtype)) if !dtype.is_integer() => {
                wrong("integers", dtype.name()).map_err(|e| e.hint("%d cuts a number to an integer"))
            }
            _ => Ok(()),
        }
    }
}

/// A decimal number at the start of `text`, 0 if there is none, and what follows.
fn number<'a>(text: &'a str, what: &str, wrong: &impl Fn(&str, &str) -> Error) -> Result<(usize, &'a str)> {
    let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let mut value = 0usize;
    for digit in digits.bytes() {
        value = value * 10 + usize::from(digit - b'0');
        if value > MAX_SIZE {
            return Err(wrong(&format!("{what} of at most {MAX_SIZE}"), digits));
        }
    }
    Ok((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_taken_apart() {
        let format = Format::parse("x=%-+08.3le;100%%").unwrap();
        assert_eq!(format.conversions(), 1);
        let [Piece::Text(before), Piece::Number(spec), Piece::Text(after)] = &format.pieces[..] else {
            panic!("{format:?}")
        };
        assert_eq!((&before[..], &after[..]), (&b"x="[..], &b";100%"[..]));
        assert!(spec.left && spec.plus && spec.zero && !spec.space && !spec.alternate);
        assert_eq!((spec.width, spec.precision, spec.conversion), (8, Some(3), Conversion::Exponent));
        assert_eq!(Format::parse("%.g").unwrap().pieces.len(), 1);
        assert!(
            matches!(&Format::parse("%.f").unwrap().pieces[..], [Piece::Number(s)] if s.precision == Some(0))
        );
    }

    #[test]
    fn what_python_refuses_is_refused() {
        for (text, message) in [
            ("%", "format \"%\": expected one of d i u x X o e E f F g G s r a after %, found its end"),
            ("%5.", "format \"%5.\": expected one of d i u x X o e E f F g G s r a after %, found its end"),
            ("%y", "format \"%y\": expected one of d i u x X o e E f F g G s r a after %, found \"y\""),
            ("%*d", "format \"%*d\": expected a number, found \"*\"; write the width or precision itself"),
            (
                "%99999999999999999999999f",
                "format \"%99999999999999999999999f\": expected a width of at most 4096, found \"99999999999999999999999\"",
            ),
        ] {
            assert_eq!(Format::parse(text).unwrap_err().to_string(), message);
        }
        for text in ["%.5000e", "%lld", "%(a)d", "%5%", "%-é", "%c", "% ", "%.-3d"] {
            assert!(Format::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn conversions_fit_dtypes() {
        let spec = |t: &str| match Format::parse(t).unwrap().pieces.remove(0) {
            Piece::Number(spec) => spec,
            Piece::Text(_) => unreachable!(),
        };
        assert_eq!(
            spec("%x").check(Some(DType::Float64)).unwrap_err().to_string(),
            "format %x: expected integers, found float64; %d cuts a number to an integer"
        );
        assert!(spec("%o").check(Some(DType::Bool)).is_err());
        assert!(spec("%X").check(Some(DType::UInt8)).is_ok());
        assert!(spec("%d").check(None).is_err());
        assert!(spec("%s").check(None).is_ok());
    }
}
