//! `arrshard gc`: the files of older generations go.

use crate::exit::{Answer, Outcome, Results};
use arrshard::error::escape_path;
use arrshard::{WriteOptions, gc};
use indicatif::HumanBytes;
use serde::Serialize;
use std::path::PathBuf;

/// Remove files that only older generations of a dataset need
#[derive(clap::Args)]
#[command(after_help = "\
Appending leaves the old files to those who read them. So do killed writers leave some.
Who has an older generation open and mapped goes on with it. Refused while somebody writes.

Examples:
  arrshard gc log.arrshard --dry-run
  arrshard gc log.arrshard")]
pub(crate) struct Args {
    /// Folder of a dataset
    dataset: PathBuf,
    /// Only say what would go
    #[arg(long)]
    dry_run: bool,
    /// As JSON, for programs
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct GarbageJson {
    bytes: u64,
    files: Vec<String>,
    removed: bool,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let garbage = gc(&args.dataset, args.dry_run, &WriteOptions::new())?;
    let mut out = Results::new();
    if args.json {
        out.json(&GarbageJson {
            bytes: garbage.bytes,
            files: garbage.files.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
            removed: !args.dry_run,
        })?;
    } else {
        for path in &garbage.files {
            out.line(&escape_path(path))?;
        }
        let plural = if garbage.files.len() == 1 { "" } else { "s" };
        let done = if args.dry_run { "to remove" } else { "removed" };
        out.line(&format!("{} file{plural} {done}, {}", garbage.files.len(), HumanBytes(garbage.bytes)))?;
    }
    out.finish()?;
    Ok(Answer::Yes)
}
