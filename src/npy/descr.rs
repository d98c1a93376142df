//! The `descr` of a header: one dtype, or the fields of a structured one.

use super::header::MAX_DIMS;
use super::literal::Literal;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, quoted};
use std::collections::HashSet;

/// The element type of a `.npy` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Descr {
    /// Every item is one number.
    Plain {
        /// What the bytes mean.
        dtype: DType,
        /// Whether the bytes of each number stand most significant first; false if it is one byte long.
        big_endian: bool,
    },
    /// Every item is a record: a structured dtype.
    Record {
        /// The fields in the order of the file, without padding. May be empty.
        fields: Vec<Field>,
        /// Bytes from one record to the next, padding included.
        itemsize: u64,
    },
}

/// A field of a structured dtype.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name, unique in its record; NumPy lets it be empty.
    pub name: String,
    /// NumPy's second name of the field.
    pub title: Option<String>,
    /// The type of its elements.
    pub dtype: DType,
    /// As in [`Descr::Plain`].
    pub big_endian: bool,
    /// Bytes from the start of the record.
    pub offset: u64,
    /// The shape of one field, in C order whatever the order of the array; empty for a single element.
    pub subshape: Vec<u64>,
}

impl Field {
    /// Bytes of the field in one record: the product of [`subshape`](Self::subshape) and the size of an element.
    pub fn nbytes(&self) -> u64 {
        // `read_field` has seen that the product of the dimensions that aren't 0 fits.
        self.subshape.iter().fold(self.dtype.size(), |bytes, dim| bytes.saturating_mul(*dim))
    }
}

impl Descr {
    /// Bytes from one item to the next.
    pub fn itemsize(&self) -> u64 {
        match self {
            Descr::Plain { dtype, .. } => dtype.size(),
            Descr::Record { itemsize, .. } => *itemsize,
        }
    }

    pub(super) fn read(value: &Literal<'_>, as_bf16: bool) -> Result<Descr> {
        match value {
            Literal::Str(text) => match read_type(text, as_bf16)? {
                Type::Number { dtype, big_endian } => Ok(Descr::Plain { dtype, big_endian }),
                Type::Void(_) => Err(void_error(text)),
            },
            Literal::List(fields) => read_record(fields, as_bf16),
            other => Err(corrupt(format!("expected a dtype as descr, found {}", other.describe()))),
        }
    }
}

/// What a type string such as `<f4` says.
enum Type {
    Number { dtype: DType, big_endian: bool },
    Void(u64),
}

fn corrupt(what: String) -> Error {
    Error::new(ErrorKind::Corrupt, what)
}

fn not_numeric(text: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("expected a numeric dtype, found {}", quoted(text.as_bytes())))
}

fn void_error(text: &str) -> Error {
    let error = not_numeric(text);
    match text.trim_start_matches(['<', '>', '=', '|']) {
        "V2" => error.hint("if these are bfloat16, say so with --as bf16"),
        "V1" => error.hint("raw bytes, or an 8-bit float; view them as uint8 before saving"),
        _ => error.hint("raw bytes have no numeric meaning; view them as a numeric dtype before saving"),
    }
}

/// Reads NumPy's type strings: `<f4`, `=i4`, `u1`, and its sized names and letters (`float32`, `d`).
/// A missing mark, `=` and `|` mean little-endian, as on every machine that NumPy runs on today;
/// where one byte is one element a mark means nothing. NumPy also reads `<f4,<f4`, `2f4` and names of C types
/// whose size depends on the machine (`long`); these are refused.
fn read_type(text: &str, as_bf16: bool) -> Result<Type> {
    let (big_endian, name) = match text.as_bytes() {
        [b'>', ..] => (true, &text[1..]),
        [b'<' | b'=' | b'|', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    let number = |dtype: DType| Ok(Type::Number { dtype, big_endian: big_endian && dtype.swap_unit() > 1 });
    if let Some(dtype) = letter(name).or_else(|| DType::from_name(text)) {
        return number(dtype);
    }
    let kind_len = name.chars().next().map_or(0, char::len_utf8);
    let (kind, size) = name.split_at(kind_len);
    let digits = size.bytes().take_while(u8::is_ascii_digit).count();
    let (size, unit) = size.split_at(digits);
    let size: Option<u64> = size.parse().ok();
    if unit.is_empty() && matches!(kind, "b" | "i" | "u" | "f" | "c") {
        let short = format!("{kind}{}", size.unwrap_or(0));
        let found = DType::all().find(|d| *d != DType::BFloat16 && d.descr()[1..] == short);
        return found.map_or_else(
            || match short.as_str() {
                "f16" | "f12" | "c32" | "c24" => Err(not_numeric(text).hint(
                    "long double differs between machines; convert to float64 or complex128 before saving",
                )),
                "f1" => Err(not_numeric(text)
                    .hint("8-bit floats are not supported; view them as uint8 before saving")),
                _ => Err(not_numeric(text)),
            },
            number,
        );
    }
    match kind {
        "V" if unit.is_empty() && !big_endian && as_bf16 && size == Some(2) => number(DType::BFloat16),
        "V" if unit.is_empty() => match size {
            Some(size) => Ok(Type::Void(size)),
            None => Err(void_error(text)),
        },
        "O" => Err(Error::new(
            ErrorKind::Unsupported,
            format!(
                "expected a numeric dtype, found {}: object arrays hold pickled Python objects",
                quoted(text.as_bytes())
            ),
        )
        .hint("convert to a numeric dtype before saving")),
        "M" | "m" => Err(not_numeric(text).hint("view dates and time spans as int64 before saving")),
        "S" | "a" | "U" => Err(not_numeric(text).hint("arrays of text of fixed width are not supported")),
        _ => Err(not_numeric(text)),
    }
}

/// NumPy's letters for types whose size is the same on every machine.
fn letter(name: &str) -> Option<DType> {
    Some(match name {
        "?" => DType::Bool,
        "b" => DType::Int8,
        "B" => DType::UInt8,
        "h" => DType::Int16,
        "H" => DType::UInt16,
        "i" => DType::Int32,
        "I" => DType::UInt32,
        "q" => DType::Int64,
        "Q" => DType::UInt64,
        "e" => DType::Float16,
        "f" => DType::Float32,
        "d" => DType::Float64,
        "F" => DType::Complex64,
        "D" => DType::Complex128,
        _ => return None,
    })
}

fn read_record(items: &[Literal<'_>], as_bf16: bool) -> Result<Descr> {
    let mut fields = Vec::new();
    let mut names = HashSet::new();
    let mut offset = 0u64;
    for item in items {
        let (field, nbytes) = read_field(item, offset, as_bf16)?;
        if let Some(field) = field {
            for name in [Some(&field.name), field.title.as_ref()].into_iter().flatten() {
                if !names.insert(name.clone()) {
                    let name = quoted(name.as_bytes());
                    return Err(corrupt(format!("expected distinct field names, found {name} twice")));
                }
            }
            fields.push(field);
        }
        offset = offset.checked_add(nbytes).filter(|n| *n <= i64::MAX as u64).ok_or_else(too_large)?;
    }
    Ok(Descr::Record { fields, itemsize: offset })
}

fn too_large() -> Error {
    corrupt("expected a record of less than 2^63 bytes, found a longer one".into())
}

/// The field at `offset`, or `None` for padding, and the bytes to the next one.
fn read_field(item: &Literal<'_>, offset: u64, as_bf16: bool) -> Result<(Option<Field>, u64)> {
    let (Literal::Tuple(parts) | Literal::List(parts)) = item else {
        return Err(corrupt(format!("expected a field as (name, dtype), found {}", item.describe())));
    };
    let (name, mut dtype, shape) = match parts.as_slice() {
        [name, dtype] => (name, dtype, None),
        [name, dtype, shape] => (name, dtype, Some(shape)),
        _ => return Err(corrupt(format!("expected a field as (name, dtype), found {}", item.describe()))),
    };
    let (title, name) = match name {
        Literal::Str(name) => (None, name),
        Literal::Tuple(pair) => match pair.as_slice() {
            [Literal::Str(title), Literal::Str(name)] => (Some(title.clone()), name),
            _ => return Err(corrupt("expected a field name as (title, name)".into())),
        },
        other => return Err(corrupt(format!("expected a field name, found {}", other.describe()))),
    };
    let in_field =
        |error: Error| Error::new(error.kind(), format!("field {}: {error}", quoted(name.as_bytes())));
    let mut subshape = Vec::new();
    if let Some(shape) = shape {
        read_subshape(shape, &mut subshape).map_err(in_field)?;
    }
    // NumPy writes a subarray of a subarray as a pair, (dtype, shape).
    while let Literal::Tuple(pair) = dtype {
        let [inner, shape] = pair.as_slice() else {
            return Err(in_field(corrupt(format!("expected a dtype, found {}", dtype.describe()))));
        };
        read_subshape(shape, &mut subshape).map_err(in_field)?;
        dtype = inner;
    }
    let text = match dtype {
        Literal::Str(text) => text,
        Literal::List(_) => {
            let error =
                Error::new(ErrorKind::Unsupported, "expected a numeric dtype, found a record in a record");
            return Err(in_field(error.hint("flatten nested records before saving")));
        }
        other => return Err(in_field(corrupt(format!("expected a dtype, found {}", other.describe())))),
    };
    let read = read_type(text, as_bf16 && !name.is_empty()).map_err(in_field)?;
    let itemsize = match read {
        Type::Number { dtype, .. } => dtype.size(),
        Type::Void(size) => size,
    };
    let nbytes = array_bytes(&subshape, itemsize).map_err(|dim| {
        in_field(corrupt(format!("expected a field of less than 2^63 bytes, found dimension {dim}")))
    })?;
    match read {
        Type::Number { dtype, big_endian } => {
            let name = name.clone();
            Ok((Some(Field { name, title, dtype, big_endian, offset, subshape }), nbytes))
        }
        Type::Void(_) if name.is_empty() && title.is_none() => Ok((None, nbytes)),
        Type::Void(_) => Err(in_field(void_error(text))),
    }
}

/// Appends the dimensions of a subarray, which NumPy lets be one integer.
fn read_subshape(shape: &Literal<'_>, out: &mut Vec<u64>) -> Result<()> {
    let dims = match shape {
        Literal::Int(_) => std::slice::from_ref(shape),
        Literal::Tuple(dims) | Literal::List(dims) => dims,
        other => return Err(corrupt(format!("expected a shape, found {}", other.describe()))),
    };
    if out.len() + dims.len() > MAX_DIMS {
        let dims = out.len() + dims.len();
        return Err(corrupt(format!("expected at most {MAX_DIMS} dimensions, found {dims}")));
    }
    for dim in dims {
        out.push(read_dim(dim)?);
    }
    Ok(())
}

/// One dimension: an integer from 0 to 2^63 - 1.
pub(super) fn read_dim(dim: &Literal<'_>) -> Result<u64> {
    let value = match dim {
        Literal::Int(digits) => digits.parse::<u64>().ok().filter(|n| *n <= i64::MAX as u64),
        _ => None,
    };
    value.ok_or_else(|| corrupt(format!("expected dimensions from 0 to 2^63-1, found {}", dim.describe())))
}

/// Bytes of an array; an error is the dimension at which they pass 2^63 - 1. Zeros are left out until the
/// end, so that every product of some of the dimensions fits too.
pub(super) fn array_bytes(shape: &[u64], itemsize: u64) -> std::result::Result<u64, u64> {
    let mut bytes = itemsize.max(1);
    for &dim in shape {
        bytes = bytes.checked_mul(dim.max(1)).filter(|n| *n <= i64::MAX as u64).ok_or(dim)?;
    }
    Ok(if itemsize == 0 || shape.contains(&0) { 0 } else { bytes })
}
