//! The arrays of a dataset as people count them: the two halves of a string array are one.

use arrshard::{Attributes, DType, Dataset, Result};

/// An array of numbers or of strings.
#[derive(Debug, Clone)]
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a str,
    /// None for strings.
    pub(crate) dtype: Option<DType>,
    pub(crate) shape: Vec<u64>,
    /// Bytes of row data, those of offsets included.
    pub(crate) nbytes: u64,
    /// Shard files.
    pub(crate) shards: u64,
    pub(crate) rows_per_shard: u64,
    pub(crate) attributes: &'a Attributes,
}

impl Entry<'_> {
    pub(crate) fn dtype_name(&self) -> &'static str {
        self.dtype.map_or("string", DType::name)
    }

    /// The shape as NumPy writes it.
    pub(crate) fn shape_text(&self) -> String {
        match &self.shape[..] {
            [one] => format!("({one},)"),
            shape => {
                let dims: Vec<_> = shape.iter().map(u64::to_string).collect();
                format!("({})", dims.join(", "))
            }
        }
    }

    /// Number of rows; a single value is one.
    pub(crate) fn rows(&self) -> u64 {
        self.shape.first().copied().unwrap_or(1)
    }
}

/// All arrays in the order of their creation.
pub(crate) fn entries(dataset: &Dataset) -> Result<Vec<Entry<'_>>> {
    let strings = &dataset.manifest().strings;
    let half = |name: &str, ending: &str| {
        let whole = name.strip_suffix(ending)?;
        strings.iter().find(|string| *string == whole)
    };
    let mut entries = Vec::new();
    for array in dataset.arrays() {
        if let Some(name) = half(&array.name, ".offsets") {
            entries.push(string(dataset, name)?);
        } else if half(&array.name, ".bytes").is_none() {
            entries.push(plain(dataset, &array.name)?);
        }
    }
    Ok(entries)
}

/// The array called `name`; the halves of strings can be asked for too.
pub(crate) fn entry<'a>(dataset: &'a Dataset, name: &str) -> Result<Entry<'a>> {
    match dataset.manifest().strings.iter().find(|string| *string == name) {
        Some(name) => string(dataset, name),
        None => plain(dataset, name),
    }
}

fn plain<'a>(dataset: &'a Dataset, name: &str) -> Result<Entry<'a>> {
    let array = dataset.array(name)?;
    let layout = &array.layout;
    Ok(Entry {
        name: &array.name,
        dtype: Some(layout.dtype()),
        shape: layout.shape().to_vec(),
        nbytes: layout.nbytes(),
        shards: layout.shard_count(),
        rows_per_shard: layout.by_row().rows_per_shard,
        attributes: &array.attributes,
    })
}

fn string<'a>(dataset: &'a Dataset, name: &'a str) -> Result<Entry<'a>> {
    let offsets = plain(dataset, &format!("{name}.offsets"))?;
    let bytes = plain(dataset, &format!("{name}.bytes"))?;
    Ok(Entry {
        name,
        dtype: None,
        shape: vec![offsets.rows().saturating_sub(1)],
        nbytes: offsets.nbytes.saturating_add(bytes.nbytes),
        shards: offsets.shards.saturating_add(bytes.shards),
        ..offsets
    })
}
