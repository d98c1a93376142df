//! `arrshard repair`: a manifest from the shards and sidecars that are left.

use crate::catalog;
use crate::exit::{Answer, Failure, Outcome, Results, note};
use crate::options::Work;
use crate::verify::DamageJson;
use arrshard::error::{escape, escape_path};
use arrshard::{Repaired, WriteOptions, repair};
use serde::Serialize;
use std::path::PathBuf;

/// Rebuild a lost or damaged manifest from shards and sidecars
#[derive(clap::Args)]
#[command(after_help = "\
If the manifest is whole, nothing is done: verify looks for other damage. Else reads all data,
prints the rows that are missing or damaged, and exits with 1 if there are any.
They stay reported by verify: no checksum is made anew.

Examples:
  arrshard repair emb.arrshard --dry-run
  arrshard repair emb.arrshard")]
pub(crate) struct Args {
    /// Folder of a dataset
    dataset: PathBuf,
    /// Only say what would come of it
    #[arg(long)]
    dry_run: bool,
    /// As JSON, for programs
    #[arg(long)]
    json: bool,
    /// Don't wait for the disk; a power cut may then lose the result
    #[arg(long)]
    no_sync: bool,
}

pub(crate) fn run(args: &Args, work: &Work) -> Outcome {
    let options = WriteOptions::new().sync(!args.no_sync);
    let repaired = work.run(|progress| repair(&args.dataset, args.dry_run, &options, progress))?;
    let answer = if repaired.report.is_whole() { Answer::Yes } else { Answer::No };
    match print(&repaired, args) {
        Ok(()) | Err(Failure::ClosedPipe) => {}
        Err(failure) => return Err(failure),
    }
    if !work.quiet {
        repaired.notes.iter().for_each(|line| note(line));
    }
    Ok(answer)
}

fn print(repaired: &Repaired, args: &Args) -> Outcome<()> {
    let mut out = Results::new();
    let path = escape_path(repaired.dataset.path());
    let entries = catalog::entries(&repaired.dataset)?;
    let damage = &repaired.report.damage;
    if args.json {
        out.json(&RepairJson {
            path: repaired.dataset.path().to_string_lossy().into_owned(),
            was_lost: repaired.was_lost,
            written: repaired.was_lost && !args.dry_run,
            whole: repaired.report.is_whole(),
            arrays: entries.iter().map(|entry| entry.name).collect(),
            damage: damage.iter().map(DamageJson::from).collect(),
            notes: &repaired.notes,
        })?;
        return out.finish();
    }
    if !repaired.was_lost {
        out.line(&format!("{path}: its manifest is whole; verify checks the rest"))?;
        return out.finish();
    }
    let done = if args.dry_run { "would be" } else { "is" };
    let plural = if entries.len() == 1 { "" } else { "s" };
    out.line(&format!("{path}: the manifest {done} rebuilt, of {} array{plural}", entries.len()))?;
    for entry in &entries {
        let name = escape(entry.name.as_bytes(), 40);
        out.line(&format!("{name}: {} {}", entry.dtype_name(), entry.shape_text()))?;
    }
    for damage in damage {
        out.line(&crate::verify::line(damage))?;
    }
    out.finish()
}

#[derive(Serialize)]
struct RepairJson<'a> {
    path: String,
    was_lost: bool,
    written: bool,
    whole: bool,
    arrays: Vec<&'a str>,
    damage: Vec<DamageJson<'a>>,
    notes: &'a [String],
}
