//! `arrshard verify`: every checksum of a dataset.

use crate::exit::{Answer, Failure, Outcome, Results};
use crate::options::Work;
use arrshard::error::{escape, escape_path};
use arrshard::{Damage, Dataset, Report};
use indicatif::HumanBytes;
use serde::Serialize;
use std::path::PathBuf;

/// Read all data and compare it with every checksum
#[derive(clap::Args)]
#[command(after_help = "\
Prints the damaged rows, if any, and exits with 1.

Examples:
  arrshard verify emb.arrshard
  arrshard verify emb.arrshard --json | jq '.damage[].rows'")]
pub(crate) struct Args {
    /// Folder of a dataset
    dataset: PathBuf,
    /// As JSON, for programs
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, work: &Work) -> Outcome {
    let dataset = Dataset::open(&args.dataset)?;
    let report = work.run(|progress| dataset.verify(progress))?;
    let answer = if report.is_whole() { Answer::Yes } else { Answer::No };
    match print(&dataset, &report, args.json) {
        // The status is the answer, whether or not anybody reads the rest.
        Ok(()) | Err(Failure::ClosedPipe) => Ok(answer),
        Err(failure) => Err(failure),
    }
}

fn print(dataset: &Dataset, report: &Report, as_json: bool) -> Outcome<()> {
    let mut out = Results::new();
    if as_json {
        out.json(&ReportJson {
            path: dataset.path().to_string_lossy().into_owned(),
            whole: report.is_whole(),
            shards: report.shards,
            bytes: report.bytes,
            damage: report.damage.iter().map(DamageJson::from).collect(),
        })?;
    } else if report.is_whole() {
        let (shards, bytes) = (report.shards, HumanBytes(report.bytes));
        let plural = if shards == 1 { "" } else { "s" };
        out.line(&format!("{}: whole; {shards} shard{plural}, {bytes}", escape_path(dataset.path())))?;
    } else {
        for damage in &report.damage {
            out.line(&line(damage))?;
        }
    }
    out.finish()
}

/// One damaged part, for people.
pub(crate) fn line(damage: &Damage) -> String {
    let Damage { array, rows, reason, .. } = damage;
    let array = escape(array.as_bytes(), usize::MAX);
    format!("{array}: rows {}..{} are damaged: {reason}", rows.start, rows.end)
}

#[derive(Serialize)]
struct ReportJson<'a> {
    path: String,
    whole: bool,
    shards: u64,
    bytes: u64,
    damage: Vec<DamageJson<'a>>,
}

#[derive(Serialize)]
pub(crate) struct DamageJson<'a> {
    array: &'a str,
    shard: u64,
    /// First, and one behind the last.
    rows: [u64; 2],
    reason: &'a str,
}

impl<'a> From<&'a Damage> for DamageJson<'a> {
    fn from(damage: &'a Damage) -> Self {
        Self {
            array: &damage.array,
            shard: damage.shard,
            rows: [damage.rows.start, damage.rows.end],
            reason: &damage.reason,
        }
    }
}
