//! `arrshard pack`: text, npy and npz files into a dataset.

use crate::catalog;
use crate::dialect::TextArgs;
use crate::exit::{Answer, Outcome, note};
use crate::options::{Place, Work, size};
use arrshard::error::{escape, escape_path};
use arrshard::manifest::folder_name;
use arrshard::{Dataset, Error, ErrorKind, Format, Input, PackOptions, Result, WriteOptions};
use clap::ValueEnum;
use indicatif::HumanBytes;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Convert text, npy or npz files into a dataset
#[derive(clap::Args)]
#[command(after_help = "\
A table of numbers becomes one matrix; a mixed one becomes one array a column.

Examples:
  arrshard pack emb.tsv -o emb.arrshard
  arrshard pack a.csv b.csv --dtype f4 --missing nan -o ab.arrshard
  zcat emb.txt.gz | arrshard pack - --from text -o emb.arrshard
  arrshard pack weights.npz -o weights.arrshard --shard-size 256MiB")]
pub(crate) struct Args {
    /// Files, joined by rows in this order; - is standard input
    #[arg(required = true)]
    input: Vec<PathBuf>,
    #[command(flatten)]
    place: Place,
    /// What the inputs are; text: runs of blanks between fields; auto: by content and name
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    from: From,
    /// Bytes of data a shard holds at most
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size)]
    shard_size: u64,
    /// Name of the array that a matrix or an npy file becomes
    #[arg(long, value_name = "NAME", default_value = "data", value_parser = array_name)]
    name: String,
    /// What raw two-byte items of npy are
    #[arg(long = "as", value_name = "TYPE", value_enum)]
    raw: Option<Raw>,
    #[command(flatten)]
    text: TextArgs,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum From {
    #[default]
    Auto,
    Tsv,
    Csv,
    Text,
    Npy,
    Npz,
    #[value(hide = true)]
    Word2vec,
    #[value(hide = true)]
    Svmlight,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Raw {
    Bf16,
}

fn array_name(text: &str) -> std::result::Result<String, String> {
    folder_name(text).map(|_| text.to_owned()).map_err(|e| e.to_string())
}

pub(crate) fn run(args: &Args, work: &Work) -> Outcome {
    let out = args.place.output(|| proposal(&args.input))?;
    let inputs = inputs(&args.input)?;
    let options = options(args)?;
    let start = Instant::now();
    let packed = work.run(|progress| arrshard::pack(&inputs, out, &options, progress))?;
    if !work.quiet {
        packed.notes.iter().for_each(|line| note(line));
        note(&summary(&packed.dataset, start.elapsed())?);
    }
    Ok(Answer::Yes)
}

/// The first input's name with our ending, in the folder where we are.
fn proposal(inputs: &[PathBuf]) -> String {
    let first = inputs.first().filter(|path| *path != Path::new("-"));
    let stem = first.and_then(|path| path.file_stem()).unwrap_or("data".as_ref());
    escape_path(&Path::new(stem).with_added_extension("arrshard"))
}

fn inputs(paths: &[PathBuf]) -> Result<Vec<Input>> {
    let inputs: Vec<_> = paths.iter().map(Input::from_arg).collect();
    match inputs.iter().filter(|input| **input == Input::Stdin).count() {
        0 | 1 => Ok(inputs),
        count => Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("expected standard input once, found it {count} times"),
        )),
    }
}

fn options(args: &Args) -> Result<PackOptions> {
    let later = |name: &str| {
        Err(Error::new(ErrorKind::Unsupported, format!("expected --from of this version, found {name}"))
            .hint("it has tsv, csv, text, npy and npz"))
    };
    let mut options = PackOptions::default();
    options.format = match args.from {
        From::Auto => Format::Auto,
        From::Tsv => Format::Tsv,
        From::Csv => Format::Csv,
        From::Text => Format::Text,
        From::Npy => Format::Npy,
        From::Npz => Format::Npz,
        From::Word2vec => return later("word2vec"),
        From::Svmlight => return later("svmlight"),
    };
    options.text = args.text.options();
    options.as_bf16 = args.raw == Some(Raw::Bf16);
    options.name.clone_from(&args.name);
    options.write =
        WriteOptions::new().shard_bytes(args.shard_size).sync(!args.place.no_sync).replace(args.place.force);
    Ok(options)
}

/// What is there now, in one line.
fn summary(dataset: &Dataset, took: Duration) -> Result<String> {
    let entries = catalog::entries(dataset)?;
    let what = match &entries[..] {
        [one] => {
            let name = escape(one.name.as_bytes(), 40);
            format!("{} rows, {name} {} {}", one.rows(), one.dtype_name(), one.shape_text())
        }
        many => {
            let rows = many.first().map_or(0, |entry| entry.rows());
            let same = many.iter().all(|entry| entry.rows() == rows);
            let rows = if same { format!("{rows} rows, ") } else { String::new() };
            format!("{rows}{} arrays", many.len())
        }
    };
    let bytes = entries.iter().map(|entry| entry.nbytes).fold(0, u64::saturating_add);
    let seconds = took.as_secs_f64();
    // Too short a time has no rate worth telling.
    let rate = if seconds < 0.001 {
        String::new()
    } else {
        format!(", {}/s", HumanBytes((bytes as f64 / seconds) as u64))
    };
    Ok(format!("{}: {what}, {} in {seconds:.2} s{rate}", escape_path(dataset.path()), HumanBytes(bytes)))
}
