//! `arrshard add`: more arrays into a sealed dataset.

use crate::dialect::TextArgs;
use crate::exit::Outcome;
use crate::options::Work;
use crate::pack::{Reading, convert};
use arrshard::{Mode, PackOptions, WriteOptions};
use std::path::PathBuf;

/// Add arrays with as many rows to a dataset
#[derive(clap::Args)]
#[command(after_help = "\
Readers of the dataset go on undisturbed; who opens it afterwards finds the arrays too.

Examples:
  arrshard add emb.arrshard labels.npy --name labels
  arrshard add emb.arrshard more.csv --layout columns")]
pub(crate) struct Args {
    /// Folder of a dataset
    dataset: PathBuf,
    /// Files, joined by rows in this order; - is standard input
    #[arg(required = true)]
    input: Vec<PathBuf>,
    #[command(flatten)]
    reading: Reading,
    /// Don't wait for the disk; a power cut may then lose the result
    #[arg(long)]
    no_sync: bool,
    #[command(flatten)]
    text: TextArgs,
}

pub(crate) fn run(args: &Args, work: &Work) -> Outcome {
    let write = WriteOptions::new().sync(!args.no_sync);
    let options = PackOptions { mode: Mode::Add, ..args.reading.options(&args.text, write) };
    convert(&args.input, &args.dataset, &options, work)
}
