//! `arrshard abandon`: gives up a dataset that is being written.

use crate::exit::{Answer, Outcome};
use arrshard::Shared;
use std::path::PathBuf;

/// Remove a dataset that is not sealed yet, with all that is written
#[derive(clap::Args)]
#[command(after_help = "\
Refused while others are at work on it. A sealed dataset is not touched.

Examples:
  arrshard abandon emb.arrshard")]
pub(crate) struct Args {
    /// Folder of the dataset that was to be
    dataset: PathBuf,
}

pub(crate) fn run(args: &Args) -> Outcome {
    Shared::discard(&args.dataset)?;
    Ok(Answer::Yes)
}
