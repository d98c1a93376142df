//! Values from a dataset, from JSON and from npy in one form that can be compared: floats by their
//! bits, every NaN the same.

use arrshard::{DType, Dataset, Element};
use half::{bf16, f16};
use ndarray::IxDyn;
use num_complex::Complex;
use serde_json::Value;
use std::path::Path;

/// A dataset that was made, strings counted as arrays.
pub(crate) struct Found {
    dataset: Dataset,
    /// Name, dtype and shape.
    pub arrays: Vec<(String, String, Vec<u64>)>,
    /// The names a matrix carries.
    pub columns: Vec<String>,
}

impl Found {
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let dataset = Dataset::open(path).map_err(|e| e.to_string())?;
        let strings = &dataset.manifest().strings;
        let mut arrays = Vec::new();
        let mut columns = Vec::new();
        for array in dataset.arrays() {
            let shape = array.layout.shape().to_vec();
            let half =
                |ending| array.name.strip_suffix(ending).filter(|name| strings.iter().any(|s| s == name));
            if let Some(name) = half(".offsets") {
                arrays.push((name.to_owned(), "string".to_owned(), vec![shape[0] - 1]));
            } else if half(".bytes").is_none() {
                arrays.push((array.name.clone(), array.layout.dtype().name().to_owned(), shape));
            }
            if let Some(names) = array.attributes.get("columns") {
                columns = strings_of(names);
            }
        }
        Ok(Self { dataset, arrays, columns })
    }

    pub(crate) fn values(&self, name: &str, dtype: &str) -> Result<Vec<String>, String> {
        macro_rules! read {
            ($($dtype:ident $t:ty),*) => {
                match DType::from_name(dtype) {
                    $(Some(DType::$dtype) => self.read::<$t>(name),)*
                    _ => self.strings(name),
                }
            };
        }
        read!(
            Bool bool, Int8 i8, Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16, UInt32 u32,
            UInt64 u64, Float16 f16, BFloat16 bf16, Float32 f32, Float64 f64,
            Complex64 Complex<f32>, Complex128 Complex<f64>
        )
        .map_err(|e| e.to_string())
    }

    fn read<T: Element + Key>(&self, name: &str) -> arrshard::Result<Vec<String>> {
        Ok(self.dataset.read::<T, IxDyn>(name)?.iter().map(Key::key).collect())
    }

    fn strings(&self, name: &str) -> arrshard::Result<Vec<String>> {
        let offsets =
            self.dataset.read::<u64, IxDyn>(&format!("{name}.offsets"))?.into_raw_vec_and_offset().0;
        let bytes = self.dataset.read::<u8, IxDyn>(&format!("{name}.bytes"))?.into_raw_vec_and_offset().0;
        let piece = |pair: &[u64]| bytes[pair[0] as usize..pair[1] as usize].to_vec();
        Ok(offsets.windows(2).map(|pair| String::from_utf8(piece(pair)).unwrap()).collect())
    }
}

pub(crate) fn strings_of(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// What `values` and `bits` of a case say.
pub(crate) fn from_json(array: &Value, dtype: &str) -> Result<Vec<String>, String> {
    let dtype = DType::from_name(dtype).ok_or("no such dtype")?;
    if let Some(bits) = array["bits"].as_array() {
        let key = |bits: &Value| {
            if bits == "nan" {
                return json_key(bits, dtype);
            }
            let bits = u64::from_str_radix(bits.as_str().unwrap(), 16).unwrap();
            match dtype {
                DType::Float16 => f16::from_bits(bits as u16).key(),
                DType::Float32 => f32::from_bits(bits as u32).key(),
                _ => f64::from_bits(bits).key(),
            }
        };
        return Ok(bits.iter().map(key).collect());
    }
    let values = array["values"].as_array().ok_or("no values")?;
    // Rows may be lists of their own.
    let is_row = |value: &Value| value.is_array() && !dtype.is_complex();
    let flat = values.iter().flat_map(|value| match is_row(value) {
        true => value.as_array().unwrap().clone(),
        false => vec![value.clone()],
    });
    Ok(flat.map(|value| json_key(&value, dtype)).collect())
}

fn json_key(value: &Value, dtype: DType) -> String {
    let float = |value: &Value| match value {
        Value::String(text) => text.parse::<f64>().unwrap(),
        number => number.as_f64().unwrap(),
    };
    match dtype {
        DType::Float16 => f16::from_f64(float(value)).key(),
        DType::BFloat16 => bf16::from_f64(float(value)).key(),
        DType::Float32 => (float(value) as f32).key(),
        DType::Float64 => float(value).key(),
        DType::Complex64 => Complex::new(float(&value[0]) as f32, float(&value[1]) as f32).key(),
        DType::Complex128 => Complex::new(float(&value[0]), float(&value[1])).key(),
        DType::Bool if value.is_number() => (value != &Value::from(0)).key(),
        _ => value.to_string(),
    }
}

/// The values of an npy file of version 1, in C order.
pub(crate) fn from_npy(bytes: &[u8]) -> Result<Vec<String>, String> {
    let data = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..data]).unwrap();
    if !bytes.starts_with(b"\x93NUMPY\x01\0") || !header.contains("'fortran_order': False") {
        return Err(format!("another kind of npy: {header}"));
    }
    macro_rules! read {
        ($($descr:literal $t:ty),*) => {
            match header.split('\'').nth(3) {
                $(Some($descr) => Ok(bytes[data..]
                    .chunks_exact(size_of::<$t>())
                    .map(|chunk| <$t>::from_le_bytes(chunk.try_into().unwrap()).key())
                    .collect()),)*
                other => Err(format!("an npy of {other:?}")),
            }
        };
    }
    read!("<f8" f64, "<f4" f32, "<i8" i64, "<i4" i32, "<i2" i16, "|i1" i8, "<u8" u64, "<u4" u32, "<u2" u16, "|u1" u8)
}

trait Key {
    fn key(&self) -> String;
}

macro_rules! whole {
    ($($t:ty)*) => { $(impl Key for $t { fn key(&self) -> String { self.to_string() } })* };
}
whole!(bool i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! float {
    ($($t:ty)*) => { $(
        impl Key for $t {
            fn key(&self) -> String {
                if self.is_nan() { "nan".to_owned() } else { format!("{self} ({:x})", self.to_bits()) }
            }
        }
    )* };
}
float!(f16 bf16 f32 f64);

impl<T: Key> Key for Complex<T> {
    fn key(&self) -> String {
        format!("{} {}", self.re.key(), self.im.key())
    }
}
