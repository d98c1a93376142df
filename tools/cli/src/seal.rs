//! `arrshard seal`: what many programs have written becomes a dataset.

use crate::exit::{Answer, Outcome, note};
use crate::options::Work;
use arrshard::error::escape_path;
use arrshard::{Dataset, ErrorKind, Shared, WriteOptions};
use std::path::PathBuf;

/// Complete a dataset of which all rows are written
#[derive(clap::Args)]
#[command(after_help = "\
Exits with 1 and names the rows if some are missing. A dataset that is sealed stays as it is.

Examples:
  arrshard seal emb.arrshard")]
pub(crate) struct Args {
    /// Folder of the dataset that is to be
    dataset: PathBuf,
    /// Replace DATASET if it is there
    #[arg(long)]
    force: bool,
    /// Don't wait for the disk; a power cut may then lose the result
    #[arg(long)]
    no_sync: bool,
}

pub(crate) fn run(args: &Args, work: &Work) -> Outcome {
    let options = WriteOptions::new().sync(!args.no_sync).replace(args.force);
    let sealed = work.run(|_| match Shared::join(&args.dataset, options) {
        Ok(shared) => shared.seal(),
        // Another was faster.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Exists) => {
            Dataset::open(&args.dataset).map_err(|_| e)
        }
        Err(e) => Err(e),
    });
    match sealed {
        Ok(dataset) => {
            if !work.quiet {
                note(&format!("{}: sealed", escape_path(dataset.path())));
            }
            Ok(Answer::Yes)
        }
        Err(crate::exit::Failure::Work(e)) if e.kind() == ErrorKind::Incomplete => {
            note(&format!("arrshard: {e}"));
            Ok(Answer::No)
        }
        Err(failure) => Err(failure),
    }
}
