//! The header of a `.npy` file: written as NumPy writes it, read as NumPy reads it, trusting nothing.
//!
//! Reading is a parser of our own and not npyz's, whose grammar isn't NumPy's (seen with npyz 0.9.1). It takes a
//! list as shape, `1+1` as a dimension, unknown keys, sizes that overflow and field names that stand twice. It
//! refuses the `2L` of Python 2, `=i4`, `f8` and `|f8`, line ends inside and after the dict, (title, name) pairs,
//! subarrays of subarrays, and latin-1 names. Its time is exponential in nested brackets, and it allocates
//! what the length field claims. It stays as a second opinion in the tests.
//!
//! Stricter than `np.load`: a key may not stand twice (Python keeps the last); some spellings that no writer is
//! known to use are refused (see the modules `literal` and `descr`). Laxer: headers of up to 64 KiB are read,
//! where NumPy stops at 10,000 bytes unless told.

use super::descr::{Descr, array_bytes, read_dim};
use super::literal::{self, Literal};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, quoted};
use std::borrow::Cow;
use std::fmt::Write as _;

/// The first bytes of every `.npy` file.
pub const MAGIC: [u8; 6] = *b"\x93NUMPY";

/// Bytes of the header page of a shard, magic included.
pub const SHARD_HEADER: usize = 4096;

/// The most dimensions that NumPy gives an array.
pub const MAX_DIMS: usize = 64;

/// The longest header text read. NumPy itself stops at 10,000 bytes unless told otherwise.
pub const MAX_HEADER: u64 = 64 * 1024;

/// What a `.npy` file says about its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Major version of the header: 1, 2 or 3.
    pub version: u8,
    /// The type of the items.
    pub descr: Descr,
    /// Whether the first index runs fastest.
    pub fortran_order: bool,
    /// Items along each dimension, at most 64 of them; empty for a single item.
    pub shape: Vec<u64>,
    /// Where the data starts, in bytes from the start of the file. Not always aligned to anything.
    pub data_offset: u64,
    /// Bytes of data: the product of `shape` and the size of an item, less than 2^63. The product of
    /// any of the dimensions and the size of an item is less than that too, or one of them is 0.
    pub data_len: u64,
}

impl Header {
    /// Items along the first dimension; 1 for a single item.
    pub fn rows(&self) -> u64 {
        self.shape.first().copied().unwrap_or(1)
    }

    /// Bytes of one row in C order: the product of all dimensions but the first, and the size of an item.
    pub fn row_bytes(&self) -> u64 {
        // Fits: see `data_len`.
        self.shape.iter().skip(1).fold(self.descr.itemsize(), |bytes, dim| bytes.saturating_mul(*dim))
    }

    /// Whether the data is Fortran-ordered in a way that shows: with fewer than two dimensions longer
    /// than 1, and in an empty array, both orders are the same bytes.
    pub fn needs_transpose(&self) -> bool {
        self.fortran_order && self.data_len > 0 && self.shape.iter().filter(|dim| **dim > 1).count() > 1
    }
}

/// The header page of a shard: `.npy` version 1.0 padded with blanks to 4096 bytes, C order.
///
/// # Panics
/// If `shape` has more than 64 dimensions; no [`Header`] has.
pub fn shard_header(dtype: DType, shape: &[u64]) -> [u8; SHARD_HEADER] {
    let text = dict(dtype, shape);
    let mut page = [b' '; SHARD_HEADER];
    page[..6].copy_from_slice(&MAGIC);
    page[6..8].copy_from_slice(&[1, 0]);
    page[8..10].copy_from_slice(&((SHARD_HEADER - 10) as u16).to_le_bytes());
    page[10..10 + text.len()].copy_from_slice(text.as_bytes());
    page[SHARD_HEADER - 1] = b'\n';
    page
}

/// The header that `np.save` writes for a C-ordered array, byte by byte: a multiple of 64 bytes, with
/// room for the first dimension to grow to 21 digits.
///
/// # Panics
/// If `shape` has more than 64 dimensions; no [`Header`] has.
pub fn npy_header(dtype: DType, shape: &[u64]) -> Vec<u8> {
    /// NumPy's GROWTH_AXIS_MAX_DIGITS.
    const GROWTH: usize = 21;
    let mut text = dict(dtype, shape);
    if let Some(first) = shape.first() {
        let digits = first.to_string().len();
        text.extend(std::iter::repeat_n(' ', GROWTH - digits));
    }
    // NumPy pads by 64 where nothing was needed.
    let padding = 64 - (10 + text.len() + 1) % 64;
    text.extend(std::iter::repeat_n(' ', padding));
    text.push('\n');
    let mut out = Vec::with_capacity(10 + text.len());
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[1, 0]);
    // At most 64 dimensions of 22 characters, so far below 64 KiB.
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out
}

/// The dict as Python's repr writes it, keys sorted.
fn dict(dtype: DType, shape: &[u64]) -> String {
    assert!(shape.len() <= MAX_DIMS, "{} dimensions", shape.len());
    let descr = dtype.descr();
    format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {}, }}", shape_text(shape))
}

/// A shape as Python's repr writes a tuple.
fn shape_text(shape: &[u64]) -> String {
    let mut out = String::from("(");
    for (i, dim) in shape.iter().enumerate() {
        let _ = write!(out, "{}{dim}", if i > 0 { ", " } else { "" });
    }
    out.push_str(if shape.len() == 1 { ",)" } else { ")" });
    out
}

/// Bytes from the start of the file to the data: what [`read_header`] needs to see. `prefix` is the
/// first 12 bytes of the file, or all if it is shorter; `file_len` the length of the file if known.
///
/// # Errors
/// Corrupt if this is not a `.npy` file, if the file ends in its header or the header is longer than
/// 64 KiB; unsupported if the version isn't 1.0, 2.0 or 3.0.
pub fn header_len(prefix: &[u8], file_len: Option<u64>) -> Result<u64> {
    let known = prefix.len().min(MAGIC.len());
    if prefix.is_empty() || prefix[..known] != MAGIC[..known] {
        let found = quoted(&prefix[..known]);
        return Err(corrupt(format!(
            "expected a .npy file, which starts with \"\\x93NUMPY\", found {found}"
        )));
    }
    let cut_short = || {
        let found = file_len.unwrap_or(prefix.len() as u64);
        corrupt(format!("expected the header of a .npy file, found only {found} bytes"))
            .hint("the file is truncated")
    };
    let &[major, minor] = prefix.get(6..8).and_then(|v| v.first_chunk()).ok_or_else(cut_short)?;
    let (start, len) = match (major, minor) {
        (1, 0) => {
            let bytes = prefix.get(8..10).and_then(|v| v.first_chunk()).ok_or_else(cut_short)?;
            (10, u64::from(u16::from_le_bytes(*bytes)))
        }
        (2 | 3, 0) => {
            let bytes = prefix.get(8..12).and_then(|v| v.first_chunk()).ok_or_else(cut_short)?;
            (12, u64::from(u32::from_le_bytes(*bytes)))
        }
        _ => {
            let what = format!("expected .npy version 1.0, 2.0 or 3.0, found {major}.{minor}");
            return Err(Error::new(ErrorKind::Unsupported, what));
        }
    };
    if let Some(file_len) = file_len.filter(|file_len| start + len > *file_len) {
        let what =
            format!("expected a header within the {file_len} bytes of the file, found header length {len}");
        return Err(corrupt(what).hint("the file is truncated or damaged"));
    }
    if len > MAX_HEADER {
        return Err(corrupt(format!(
            "expected a header of at most {MAX_HEADER} bytes, found header length {len}"
        )));
    }
    Ok(start + len)
}

/// Reads a header. `prefix` holds at least the first [`header_len`] bytes of the file and may hold more;
/// with `file_len` the length of the data is checked too. More data than the header asks for is let be, as
/// in NumPy. `as_bf16` reads `<V2`, which is how NumPy saves the bfloat16 of ml_dtypes, as bfloat16.
///
/// # Errors
/// Corrupt if the header is not well-formed or the file ends before its data does; unsupported for another
/// version or an element type that isn't a number of ours (objects, text, dates, raw bytes, nested records).
pub fn read_header(prefix: &[u8], file_len: Option<u64>, as_bf16: bool) -> Result<Header> {
    let data_offset = header_len(prefix, file_len)?;
    let version = prefix[6];
    let start = if version == 1 { 10 } else { 12 };
    let Some(text) = prefix.get(start..data_offset as usize) else {
        let found = prefix.len();
        let what = format!("expected a header of {data_offset} bytes, found {found}");
        return Err(corrupt(what).hint("the file is truncated"));
    };
    let text = decode(text, start, version)?;
    let value = literal::parse(&text, version < 3).map_err(|fault| {
        let rest = &text[fault.at..];
        let found = match rest.is_empty() {
            true => "its end".into(),
            false => quoted(rest.trim_ascii_end().chars().take(12).collect::<String>().as_bytes()),
        };
        // In latin-1 each character was one byte.
        let at = if version < 3 { text[..fault.at].chars().count() } else { fault.at };
        corrupt(format!("expected {} in the header, found {found}", fault.expected))
            .offset((start + at) as u64)
    })?;
    let (descr, fortran_order, shape) = entries(&value)?;

    let descr = Descr::read(descr, as_bf16)?;
    let Literal::Bool(fortran_order) = *fortran_order else {
        return Err(corrupt(format!(
            "expected fortran_order True or False, found {}",
            fortran_order.describe()
        )));
    };
    let Literal::Tuple(dims) = shape else {
        return Err(corrupt(format!("expected a tuple as shape, found {}", shape.describe())));
    };
    if dims.len() > MAX_DIMS {
        return Err(corrupt(format!("expected at most {MAX_DIMS} dimensions, found {}", dims.len())));
    }
    let shape = dims.iter().map(read_dim).collect::<Result<Vec<u64>>>()?;
    let data_len = array_bytes(&shape, descr.itemsize()).map_err(|dim| {
        let mut shape = shape_text(&shape);
        if shape.len() > 100 {
            shape.truncate(100);
            shape.push_str("...");
        }
        let what =
            format!("expected an array of less than 2^63 bytes, found dimension {dim} in shape {shape}");
        corrupt(what).hint("its size overflows")
    })?;
    if let Some(found) = file_len.map(|len| len - data_offset).filter(|found| *found < data_len) {
        let what = format!("expected {data_len} bytes of data after the header, found {found}");
        return Err(corrupt(what).hint("the file is truncated"));
    }
    Ok(Header { version, descr, fortran_order, shape, data_offset, data_len })
}

fn corrupt(what: String) -> Error {
    Error::new(ErrorKind::Corrupt, what)
}

/// Versions 1 and 2 are latin-1, 3 is UTF-8.
fn decode(text: &[u8], start: usize, version: u8) -> Result<Cow<'_, str>> {
    match std::str::from_utf8(text) {
        Ok(utf8) if version == 3 || utf8.is_ascii() => Ok(Cow::Borrowed(utf8)),
        _ if version < 3 => Ok(Cow::Owned(text.iter().map(|&b| char::from(b)).collect())),
        Ok(utf8) => Ok(Cow::Borrowed(utf8)),
        Err(error) => {
            let at = error.valid_up_to();
            let found = quoted(&text[at..text.len().min(at + 4)]);
            Err(corrupt(format!("expected UTF-8 in the header, found {found}")).offset((start + at) as u64))
        }
    }
}

/// The values of exactly the three keys, which may stand in any order.
fn entries<'a, 'b>(value: &'a Literal<'b>) -> Result<(&'a Literal<'b>, &'a Literal<'b>, &'a Literal<'b>)> {
    const KEYS: [&str; 3] = ["descr", "fortran_order", "shape"];
    let Literal::Dict(items) = value else {
        return Err(corrupt(format!("expected a dict as header, found {}", value.describe())));
    };
    let mut found = [None; 3];
    for (key, value) in items {
        let slot = match key {
            Literal::Str(name) => KEYS.iter().position(|known| known == name),
            _ => None,
        };
        let Some(slot) = slot else {
            let what = format!(
                "expected only the keys descr, fortran_order and shape in the header, found {}",
                key.describe()
            );
            return Err(corrupt(what));
        };
        if found[slot].replace(value).is_some() {
            return Err(corrupt(format!(
                "expected each key of the header once, found \"{}\" twice",
                KEYS[slot]
            )));
        }
    }
    match found {
        [Some(descr), Some(order), Some(shape)] => Ok((descr, order, shape)),
        _ => {
            let missing = found.iter().position(Option::is_none).map_or("", |i| KEYS[i]);
            Err(corrupt(format!(
                "expected the keys descr, fortran_order and shape in the header, found no \"{missing}\""
            )))
        }
    }
}
