//! What several inputs of one table must have in common, and what options must not contradict.

use super::detect::{self, Detected, Given};
use super::dialect::{Header, Missing};
use super::number::Notation;
use super::rows::RowRules;
use super::schema::ColumnSurvey;
use super::table::detect_class;
use crate::decompress::Compression;
use crate::error::{Error, ErrorKind, Result, escape, escape_path, quoted};
use std::path::Path;

/// The second and later inputs are read as the first.
pub(super) fn like_the_first(given: &Given, rules: &RowRules) -> Given {
    let dialect = &rules.dialect;
    Given {
        delimiter: Some(dialect.delimiter),
        quote: Some(dialect.quote),
        comment: Some(dialect.comment.clone()),
        ..given.clone()
    }
}

/// Refuses names over columns of which the first input, which had none, has only numbers: they are
/// no values, and to leave them out would be a guess.
pub(super) fn no_header(
    names: &[String],
    select: &[usize],
    line: u64,
    surveys: &[ColumnSurvey],
    first: &Path,
) -> Result<()> {
    let numeric = select.iter().zip(surveys).find(|(_, survey)| survey.is_numeric());
    match numeric.map(|(&index, _)| index).filter(|&index| index < names.len()) {
        None => Ok(()),
        Some(column) => Err(Error::new(
            ErrorKind::Parse,
            format!(
                "expected a number, since {} has no header, found {}",
                escape_path(first),
                quoted(names[column].as_bytes())
            ),
        )
        .line(line)
        .field(column as u64 + 1)
        .hint("--header yes takes the first line of every input as names, --header no as data")),
    }
}

/// A later input has the columns of the first.
pub(super) fn same_table(
    rules: &RowRules,
    names: Option<&[String]>,
    found: &Detected,
    first: &Path,
) -> Result<()> {
    let columns = found.columns.len();
    if columns != rules.width {
        return Err(Error::new(
            ErrorKind::Parse,
            format!("expected {} columns as in {}, found {columns}", rules.width, escape_path(first)),
        ));
    }
    let differs = |names: &[String]| found.names.as_deref().is_some_and(|found| found != names);
    if let Some(names) = names.filter(|names| differs(names)) {
        let list = |names: &[String]| quoted(names.join(",").as_bytes());
        return Err(Error::new(
            ErrorKind::Parse,
            format!(
                "expected the header {} as in {}, found {}",
                list(names),
                escape_path(first),
                list(found.names.as_deref().unwrap_or_default())
            ),
        ));
    }
    Ok(())
}

/// The options by which what was guessed can be said.
pub(super) fn otherwise(given: &Given) -> String {
    let guessed = [
        ("--delimiter", given.delimiter.is_none()),
        ("--header", given.header == Header::Auto),
        ("--comment", given.comment.is_none()),
    ];
    let options: Vec<_> = guessed.iter().filter(|(_, guessed)| *guessed).map(|(name, _)| *name).collect();
    if options.is_empty() { String::new() } else { format!("; otherwise by {}", options.join(", ")) }
}

/// The fields that are wanted: by name, by number from 0, or a run of numbers `A:B`. All if none is asked for.
pub(super) fn select(wanted: &[String], width: usize, names: Option<&[String]>) -> Result<Vec<usize>> {
    let mut select = Vec::new();
    for text in wanted {
        let by_name = names.and_then(|names| names.iter().position(|name| name == text));
        let number =
            |text: &str, absent| if text.is_empty() { Some(absent) } else { text.parse::<usize>().ok() };
        let run = || match text.split_once(':') {
            Some((start, end)) => Some(number(start, 0)?..number(end, width)?),
            None => text.parse::<usize>().ok().map(|index| index..index.saturating_add(1)),
        };
        match by_name.map(|index| index..index + 1).or_else(run) {
            Some(run) if run.end <= width && run.start < run.end => select.extend(run),
            _ => {
                let known = match names {
                    Some(names) => format!(": {}", escape(names.join(", ").as_bytes(), 400)),
                    None => String::new(),
                };
                return Err(Error::new(
                    ErrorKind::InvalidArgument,
                    format!("expected one of {width} columns, found {}", quoted(text.as_bytes())),
                )
                .hint(format!("by name, or by number from 0 to {}{known}", width.saturating_sub(1))));
            }
        }
    }
    Ok(if wanted.is_empty() { (0..width).collect() } else { select })
}

/// A mark that has two meanings has none.
pub(super) fn check_notation(notation: &Notation) -> Result<()> {
    let Notation { decimal, thousands, .. } = *notation;
    let is_mark =
        |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_alphanumeric() && !b"+-\"#".contains(&byte);
    let fits = |byte: u8| is_mark(byte) || matches!(byte, b' ' | b'\'');
    let bad = if !is_mark(decimal) {
        Some(decimal)
    } else {
        thousands.filter(|&byte| !fits(byte) || byte == decimal)
    };
    match bad {
        None => Ok(()),
        Some(byte) => Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("expected two different marks for decimals and thousands, found {}", quoted(&[byte])),
        )),
    }
}

/// What stands for no value must be one.
pub(super) fn check_missing(missing: &Missing) -> Result<()> {
    match missing {
        Missing::Value(value)
            if matches!(detect_class(value.as_bytes()).class, detect::Class::Text | detect::Class::Empty) =>
        {
            Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "expected error, nan or a number for empty fields, found {}",
                    quoted(value.as_bytes())
                ),
            ))
        }
        _ => Ok(()),
    }
}

/// The last extension that is not one of a compression.
pub(super) fn extension(path: &Path) -> Option<String> {
    let of = |path: &Path| path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
    let last = of(path)?;
    if Compression::is_extension(&last) {
        path.file_stem().and_then(|stem| of(stem.as_ref()))
    } else {
        Some(last)
    }
}
