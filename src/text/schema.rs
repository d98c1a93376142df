//! What types the columns have, and whether they make one matrix.

use super::dialect::Missing;
use super::number::{Class, Number, NumberOptions, classify};
use crate::dataset::Dataset;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, quoted};
use num_complex::Complex;
use std::path::PathBuf;

/// How the columns of a table are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Layout {
    /// A matrix if all columns are numbers, else one array a column.
    #[default]
    Auto,
    /// One array of two dimensions.
    Matrix,
    /// One array a column.
    Columns,
}

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Number(DType),
    Text,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Kind::Number(dtype) => dtype.fmt(f),
            Kind::Text => f.write_str("string"),
        }
    }
}

/// What the fields of a column were, all together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ColumnSurvey {
    empty: bool,
    bools: bool,
    ints: bool,
    floats: bool,
    complex: bool,
    text: bool,
    beyond_i64: bool,
    beyond_u64: bool,
    inexact: bool,
}

impl ColumnSurvey {
    pub(crate) fn add(&mut self, field: &[u8]) {
        self.add_as(classify(field), field);
    }

    /// Adds a field of this class.
    pub(crate) fn add_as(&mut self, class: Class, field: &[u8]) {
        match class {
            Class::Empty => self.empty = true,
            Class::Bool => self.bools = true,
            Class::Int { i64, u64, f64 } => {
                self.ints = true;
                self.beyond_i64 |= !i64;
                self.beyond_u64 |= !u64;
                self.inexact |= !f64;
            }
            Class::Float => self.floats = true,
            Class::Text if is_complex(field) => self.complex = true,
            Class::Text => self.text = true,
        }
    }

    /// Why there is no numeric type for what looks like numbers, and what gives one.
    pub(crate) fn why_text(&self) -> Option<&'static str> {
        let numbers = self.ints || self.floats || self.complex;
        if self.text || !numbers {
            return None;
        }
        Some(match self {
            Self { bools: true, .. } => "it has true or false beside numbers",
            Self { floats: false, complex: false, .. } => {
                "it has whole numbers that no 64 bits hold; --dtype f8 rounds them"
            }
            _ => "it has whole numbers beyond 2^53 beside fractions; --dtype f8 rounds them",
        })
    }

    /// Whether there were numbers and no text.
    pub(crate) fn is_numeric(&self) -> bool {
        !self.text && (self.bools || self.ints || self.floats || self.complex)
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.empty |= other.empty;
        self.bools |= other.bools;
        self.ints |= other.ints;
        self.floats |= other.floats;
        self.complex |= other.complex;
        self.text |= other.text;
        self.beyond_i64 |= other.beyond_i64;
        self.beyond_u64 |= other.beyond_u64;
        self.inexact |= other.inexact;
    }

    /// The narrowest type that keeps every value: whole numbers become floats only if that
    /// changes none of them.
    pub(crate) fn kind(mut self, missing: &Missing) -> Kind {
        if self.empty && !self.text {
            match missing {
                Missing::Error => {}
                // An integer has no nan, so a column with gaps is one of floats if that loses nothing.
                Missing::NaN => self.floats |= !self.ints || !self.inexact,
                Missing::Value(value) => {
                    let mut with = self;
                    with.add(value.as_bytes());
                    // A value that would make strings of numbers is refused where a field is empty.
                    if with.plain_kind() != Kind::Text {
                        self = with;
                    }
                }
            }
        }
        self.plain_kind()
    }

    fn plain_kind(self) -> Kind {
        let numbers = self.ints || self.floats || self.complex;
        if self.text || self.bools && numbers {
            return Kind::Text;
        }
        Kind::Number(match self {
            Self { bools: true, .. } => DType::Bool,
            Self { complex: true, inexact: false, .. } => DType::Complex128,
            Self { floats: true, inexact: false, .. } => DType::Float64,
            Self { complex: true, .. } | Self { floats: true, .. } => return Kind::Text,
            Self { ints: true, beyond_i64: false, .. } => DType::Int64,
            Self { ints: true, beyond_u64: false, .. } => DType::UInt64,
            Self { ints: true, inexact: true, .. } => return Kind::Text,
            // Nothing but empty fields, or no rows at all: as NumPy's default.
            _ => DType::Float64,
        })
    }
}

pub(crate) fn is_complex(field: &[u8]) -> bool {
    let last = field.trim_ascii().last();
    matches!(last, Some(b'j' | b'J' | b')')) && Complex::<f64>::parse(field, NumberOptions::default()).is_ok()
}

/// How a table becomes arrays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Plan {
    /// One array of two dimensions.
    Matrix(DType),
    /// One array a column.
    Columns(Vec<Kind>),
}

impl Plan {
    /// The plan for columns of one dtype that the user gave.
    pub(crate) fn given(dtype: DType, columns: usize, layout: Layout) -> Self {
        match layout {
            Layout::Columns => Plan::Columns(vec![Kind::Number(dtype); columns]),
            Layout::Auto | Layout::Matrix => Plan::Matrix(dtype),
        }
    }

    /// The plan for columns by what is in them.
    pub(crate) fn new(
        surveys: &[ColumnSurvey],
        missing: &Missing,
        layout: Layout,
        names: &[String],
    ) -> Result<Self> {
        let kinds: Vec<Kind> = surveys.iter().map(|survey| survey.kind(missing)).collect();
        if layout == Layout::Columns {
            return Ok(Plan::Columns(kinds));
        }
        match common(surveys, &kinds) {
            Some(dtype) => Ok(Plan::Matrix(dtype)),
            None if layout == Layout::Matrix => {
                let odd = kinds.iter().position(|kind| !matches!(kind, Kind::Number(d) if *d != DType::Bool));
                let what = match odd {
                    Some(i) => format!(
                        "expected numbers in every column of a matrix, found {} in column {}{}",
                        kinds[i],
                        i + 1,
                        names.get(i).map(|n| format!(" ({})", quoted(n.as_bytes()))).unwrap_or_default()
                    ),
                    None => "expected columns that one dtype holds exactly, found integers beyond 2^53 beside floats".into(),
                };
                Err(Error::new(ErrorKind::Parse, what).hint("--layout columns keeps one array a column"))
            }
            None => Ok(Plan::Columns(kinds)),
        }
    }
}

/// The dtype that keeps the values of all columns exactly, if there is one.
fn common(surveys: &[ColumnSurvey], kinds: &[Kind]) -> Option<DType> {
    let mut dtypes = Vec::with_capacity(kinds.len());
    for kind in kinds {
        match kind {
            Kind::Number(dtype) => dtypes.push(*dtype),
            Kind::Text => return None,
        }
    }
    let first = *dtypes.first()?;
    if dtypes.iter().all(|&dtype| dtype == first) {
        return Some(first);
    }
    if dtypes.contains(&DType::Bool) || surveys.iter().any(|survey| survey.inexact) {
        return None;
    }
    Some(if dtypes.contains(&DType::Complex128) { DType::Complex128 } else { DType::Float64 })
}

/// A dataset whose arrays a table is to become.
#[derive(Debug)]
pub(crate) struct Like {
    pub(crate) plan: Plan,
    pub(crate) columns: usize,
    /// What its columns are called, if they are.
    pub(crate) names: Option<Vec<String>>,
    pub(crate) path: PathBuf,
}

impl Like {
    pub(crate) fn of(dataset: &Dataset) -> Result<Self> {
        let path = dataset.path().to_owned();
        let arrays = dataset.arrays();
        if let [array] = arrays
            && let [_, columns] = *array.layout.shape()
        {
            let names = array.attributes.get("columns").and_then(|names| names.as_array());
            let names = names.map(|names| names.iter().filter_map(|name| name.as_str()).map(str::to_owned));
            return Ok(Self {
                plan: Plan::Matrix(array.layout.dtype()),
                columns: usize::try_from(columns).unwrap_or(usize::MAX),
                names: names.map(Iterator::collect),
                path,
            });
        }
        let strings = &dataset.manifest().strings;
        let (mut names, mut kinds) = (Vec::new(), Vec::new());
        for array in arrays {
            let half = |ending: &str| {
                array.name.strip_suffix(ending).filter(|name| strings.iter().any(|string| string == name))
            };
            if let Some(name) = half(".offsets") {
                names.push(name.to_owned());
                kinds.push(Kind::Text);
            } else if half(".bytes").is_some() {
                continue;
            } else if let [_] = array.layout.shape() {
                names.push(array.name.clone());
                kinds.push(Kind::Number(array.layout.dtype()));
            } else {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!(
                        "expected one matrix or one array a column to append text to, found array {} of shape {:?}",
                        quoted(array.name.as_bytes()),
                        array.layout.shape()
                    ),
                )
                .at(path));
            }
        }
        Ok(Self { columns: kinds.len(), plan: Plan::Columns(kinds), names: Some(names), path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(fields: &[&str]) -> ColumnSurvey {
        let mut survey = ColumnSurvey::default();
        fields.iter().for_each(|field| survey.add(field.as_bytes()));
        survey
    }

    #[test]
    fn a_column_widens_only_as_far_as_nothing_is_lost() {
        let kind = |fields: &[&str]| survey(fields).kind(&Missing::Error);
        assert_eq!(kind(&["1", "-2"]), Kind::Number(DType::Int64));
        assert_eq!(kind(&["1", "18446744073709551615"]), Kind::Number(DType::UInt64));
        assert_eq!(kind(&["1", "0.5"]), Kind::Number(DType::Float64));
        assert_eq!(kind(&["9007199254740993", "0.5"]), Kind::Text);
        assert_eq!(kind(&["1", "x"]), Kind::Text);
        assert_eq!(kind(&["true", "False"]), Kind::Number(DType::Bool));
        assert_eq!(kind(&["true", "1"]), Kind::Text);
        assert_eq!(kind(&["1", "(1+2j)"]), Kind::Number(DType::Complex128));
        assert_eq!(kind(&["1", ""]), Kind::Number(DType::Int64));
        assert_eq!(survey(&["1", ""]).kind(&Missing::NaN), Kind::Number(DType::Float64));
        assert_eq!(survey(&["9007199254740993", ""]).kind(&Missing::NaN), Kind::Number(DType::Int64));
        assert_eq!(survey(&["1", ""]).kind(&Missing::Value("0.5".into())), Kind::Number(DType::Float64));
        assert_eq!(kind(&[]), Kind::Number(DType::Float64));
    }

    #[test]
    fn a_value_for_gaps_makes_no_strings_of_numbers() {
        let value = |text: &str| Missing::Value(text.into());
        let huge = value("99999999999999999999");
        assert_eq!(survey(&["1", ""]).kind(&huge), Kind::Number(DType::Int64));
        assert_eq!(survey(&["true", ""]).kind(&value("1")), Kind::Number(DType::Bool));
        assert_eq!(survey(&["1", ""]).kind(&value("-0.5")), Kind::Number(DType::Float64));
    }

    #[test]
    fn a_matrix_needs_one_dtype_for_all() {
        let plan = |columns: &[&[&str]]| {
            let surveys: Vec<_> = columns.iter().map(|fields| survey(fields)).collect();
            Plan::new(&surveys, &Missing::Error, Layout::Auto, &[]).unwrap()
        };
        assert_eq!(plan(&[&["1"], &["2"]]), Plan::Matrix(DType::Int64));
        assert_eq!(plan(&[&["1"], &["2.5"]]), Plan::Matrix(DType::Float64));
        assert!(matches!(plan(&[&["9007199254740993"], &["2.5"]]), Plan::Columns(_)));
        assert!(matches!(plan(&[&["1"], &["a"]]), Plan::Columns(_)));
    }
}
