//! `arrshard status`: how far a dataset is that is being written.

use crate::exit::{Answer, Failure, Outcome, Results};
use crate::table::{Align, Table};
use arrshard::error::{escape, escape_path};
use arrshard::{ArrayStatus, Dataset, ErrorKind, Status};
use serde::Serialize;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Print which rows are done, missing, and being written
#[derive(clap::Args)]
#[command(after_help = "\
Exits with 0 if all rows are written, with 1 if not.

Examples:
  arrshard status emb.arrshard
  until arrshard status emb.arrshard -q; do sleep 10; done; arrshard seal emb.arrshard
  arrshard status emb.arrshard --json | jq '.arrays[].missing'")]
pub(crate) struct Args {
    /// Folder of the dataset that is to be
    dataset: PathBuf,
    /// As JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Ranges of rows that are shown to people.
const RANGES: usize = 8;

pub(crate) fn run(args: &Args, quiet: bool) -> Outcome {
    let found = match Status::of(&args.dataset) {
        Ok(status) => Some(status),
        // What is sealed is done.
        Err(e) if e.kind() == ErrorKind::NotFound => match Dataset::open(&args.dataset) {
            Ok(_) => None,
            Err(_) => return Err(e.into()),
        },
        Err(e) => return Err(e.into()),
    };
    let answer = if found.as_ref().is_none_or(Status::is_done) { Answer::Yes } else { Answer::No };
    match print(&args.dataset, found.as_ref(), args.json, quiet) {
        // The status is the answer, whether or not anybody reads the rest.
        Ok(()) | Err(Failure::ClosedPipe) => Ok(answer),
        Err(failure) => Err(failure),
    }
}

fn print(path: &Path, status: Option<&Status>, as_json: bool, quiet: bool) -> Outcome<()> {
    let mut out = Results::new();
    let arrays = status.map_or(&[][..], |status| &status.arrays);
    if as_json {
        out.json(&StatusJson {
            path: path.to_string_lossy().into_owned(),
            sealed: status.is_none(),
            done: status.is_none_or(Status::is_done),
            arrays: arrays.iter().map(ArrayJson::from).collect(),
        })?;
    } else if quiet {
        return Ok(());
    } else if status.is_none() {
        out.line(&format!("{}: sealed", escape_path(path)))?;
    } else {
        let mut lines = vec![["array", "rows", "done", "being written", "missing"].map(str::to_owned)];
        lines.extend(arrays.iter().map(|array| {
            let name = escape(array.name.as_bytes(), usize::MAX);
            let rows = array.layout.rows().to_string();
            [name, rows, count(&array.done).to_string(), shown(&array.writing), shown(&array.missing)]
        }));
        let mut table = Table::new([Align::Left, Align::Right, Align::Right, Align::Left, Align::Left]);
        lines.iter().for_each(|line| table.fit(line));
        lines.iter().try_for_each(|line| out.line(&table.line(line)))?;
    }
    out.finish()
}

fn count(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|rows| rows.end - rows.start).sum()
}

/// How many rows, and the first of their ranges.
fn shown(ranges: &[Range<u64>]) -> String {
    if ranges.is_empty() {
        return "0".to_owned();
    }
    let list: Vec<_> =
        ranges.iter().take(RANGES).map(|rows| format!("{}..{}", rows.start, rows.end)).collect();
    let more = if ranges.len() > RANGES { ", …" } else { "" };
    format!("{} ({}{more})", count(ranges), list.join(", "))
}

#[derive(Serialize)]
struct StatusJson<'a> {
    path: String,
    sealed: bool,
    done: bool,
    arrays: Vec<ArrayJson<'a>>,
}

#[derive(Serialize)]
struct ArrayJson<'a> {
    name: &'a str,
    dtype: &'static str,
    shape: &'a [u64],
    rows: u64,
    /// First, and one behind the last.
    done: Vec<[u64; 2]>,
    writing: Vec<[u64; 2]>,
    missing: Vec<[u64; 2]>,
}

impl<'a> From<&'a ArrayStatus> for ArrayJson<'a> {
    fn from(array: &'a ArrayStatus) -> Self {
        let pairs = |ranges: &[Range<u64>]| ranges.iter().map(|rows| [rows.start, rows.end]).collect();
        Self {
            name: &array.name,
            dtype: array.layout.dtype().name(),
            shape: array.layout.shape(),
            rows: array.layout.rows(),
            done: pairs(&array.done),
            writing: pairs(&array.writing),
            missing: pairs(&array.missing),
        }
    }
}
