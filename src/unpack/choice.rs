//! What of a dataset is to be written.

use crate::dataset::Dataset;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, escape, quoted};
use crate::manifest::ArrayEntry;
use std::ops::Range;

/// An array as people count them: the two halves of a string array are one.
#[derive(Clone, Copy)]
pub(super) enum Item<'a> {
    Plain(&'a ArrayEntry),
    Strings { name: &'a str, offsets: &'a ArrayEntry, bytes: &'a ArrayEntry },
}

impl<'a> Item<'a> {
    pub(super) fn name(&self) -> &'a str {
        match self {
            Item::Plain(array) => &array.name,
            Item::Strings { name, .. } => name,
        }
    }

    /// Number of rows; a value without dimensions has none.
    pub(super) fn rows(&self) -> Option<u64> {
        match self {
            Item::Plain(array) => array.layout.shape().first().copied(),
            Item::Strings { offsets, .. } => Some(offsets.layout.rows().saturating_sub(1)),
        }
    }

    /// Whether it can be one column beside others.
    pub(super) fn is_column(&self) -> bool {
        match self {
            Item::Plain(array) => array.layout.shape().len() == 1,
            Item::Strings { .. } => true,
        }
    }
}

/// The chosen arrays in the order of the dataset.
pub(super) fn choose<'a>(dataset: &'a Dataset, array: Option<&str>) -> Result<Vec<Item<'a>>> {
    let strings = &dataset.manifest().strings;
    if let Some(name) = array {
        return Ok(vec![match strings.iter().find(|string| *string == name) {
            Some(string) => halves(dataset, string)?,
            None => Item::Plain(dataset.array(name)?),
        }]);
    }
    let half = |array: &ArrayEntry, ending| {
        let name = array.name.strip_suffix(ending)?;
        strings.iter().find(|string| *string == name)
    };
    let mut items = Vec::new();
    for array in dataset.arrays() {
        if let Some(string) = half(array, ".offsets") {
            items.push(halves(dataset, string)?);
        } else if half(array, ".bytes").is_none() {
            items.push(Item::Plain(array));
        }
    }
    if items.is_empty() {
        return Err(
            Error::new(ErrorKind::NotFound, "expected an array, found an empty dataset").at(dataset.path())
        );
    }
    Ok(items)
}

fn halves<'a>(dataset: &'a Dataset, name: &'a str) -> Result<Item<'a>> {
    let half = |ending: &str, dtype: DType| {
        let array = dataset.array(&format!("{name}{ending}"))?;
        let layout = &array.layout;
        if (layout.dtype(), layout.shape().len()) == (dtype, 1) {
            return Ok(array);
        }
        Err(Error::new(
            ErrorKind::Corrupt,
            format!(
                "array {}: expected one dimension of {dtype}, found {} of {}",
                quoted(array.name.as_bytes()),
                layout.shape().len(),
                layout.dtype()
            ),
        )
        .at(dataset.path()))
    };
    let (offsets, bytes) = (half(".offsets", DType::UInt64)?, half(".bytes", DType::UInt8)?);
    if offsets.layout.rows() == 0 {
        let what = format!("array {}: expected at least 1 offset, found 0", quoted(offsets.name.as_bytes()));
        return Err(Error::new(ErrorKind::Corrupt, what).at(dataset.path()));
    }
    Ok(Item::Strings { name, offsets, bytes })
}

/// The one item that `what` can hold.
pub(super) fn only<'a>(dataset: &Dataset, items: &[Item<'a>], what: &str) -> Result<Item<'a>> {
    match items {
        [one] => Ok(*one),
        many => Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("expected one array for {what}, found {}: {}", many.len(), names(many)),
        )
        .hint("--array NAME chooses one")
        .at(dataset.path())),
    }
}

pub(super) fn names(items: &[Item<'_>]) -> String {
    let shown: Vec<_> = items.iter().take(20).map(|item| quoted(item.name().as_bytes())).collect();
    let more = if items.len() > 20 { ", ..." } else { "" };
    escape(shown.join(", ").as_bytes(), 400) + more
}

/// The rows asked for, which all items must have.
pub(super) fn rows(dataset: &Dataset, items: &[Item<'_>], asked: Option<&Range<u64>>) -> Result<Range<u64>> {
    let at = |what: String| Error::new(ErrorKind::InvalidArgument, what).at(dataset.path());
    let mut common = None;
    for item in items {
        let Some(rows) = item.rows() else {
            return Err(at(format!(
                "array {}: expected rows, found a single value",
                quoted(item.name().as_bytes())
            )));
        };
        if *common.get_or_insert(rows) != rows {
            return Err(at(format!(
                "array {}: expected {} rows as in {}, found {rows}",
                quoted(item.name().as_bytes()),
                common.unwrap_or(0),
                quoted(items[0].name().as_bytes()),
            ))
            .hint("--array NAME chooses one"));
        }
    }
    let all = common.unwrap_or(0);
    match asked {
        None => Ok(0..all),
        Some(range) if range.start <= range.end && range.end <= all => Ok(range.clone()),
        Some(range) => Err(at(format!("expected rows within 0:{all}, found {}:{}", range.start, range.end))),
    }
}
