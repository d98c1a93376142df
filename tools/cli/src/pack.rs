//! `arrshard pack`: text, npy and npz files into a dataset.

use crate::catalog;
use crate::dialect::TextArgs;
use crate::exit::{Answer, Outcome, note};
use crate::options::{Place, Work, or_force, size};
use arrshard::error::{escape, escape_path};
use arrshard::manifest::folder_name;
use arrshard::{Dataset, Error, ErrorKind, Format, Input, Mode, PackOptions, Result, WriteOptions};
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
  arrshard pack weights.npz -o weights.arrshard --shard-size 256MiB
  arrshard pack big.tsv -o big.arrshard --part $SLURM_ARRAY_TASK_ID/16
  arrshard pack big.tsv -o big.arrshard --resume
  arrshard pack tuesday.csv -o log.arrshard --append")]
pub(crate) struct Args {
    /// Files, joined by rows in this order; - is standard input
    #[arg(required = true)]
    input: Vec<PathBuf>,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    reading: Reading,
    /// Add the rows to OUT, which is there; readers of it go on undisturbed
    #[arg(long, conflicts_with_all = ["force", "part", "shard_size", "name"])]
    append: bool,
    /// Only share I of N, counted from 1; whoever ends last completes OUT
    #[arg(long, value_name = "I/N", value_parser = part)]
    part: Option<(u64, u64)>,
    #[command(flatten)]
    text: TextArgs,
}

/// How inputs are read, whatever becomes of them.
#[derive(clap::Args)]
pub(crate) struct Reading {
    /// auto, tsv, csv, text, word2vec, svmlight, npy or npz
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, hide_possible_values = true)]
    from: From,
    /// Bytes of data in a shard, about: 64KiB, 1GB, 4096 …
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size)]
    shard_size: u64,
    /// Name of the array that a matrix or an npy file becomes
    #[arg(long, value_name = "NAME", default_value = "data", value_parser = array_name)]
    name: String,
    /// Take raw two-byte items of npy as bfloat16
    #[arg(long = "as", value_name = "bf16", value_enum, hide_possible_values = true)]
    raw: Option<Raw>,
    /// Go on with what a killed run with the same inputs and options has left
    #[arg(long)]
    resume: bool,
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
    Word2vec,
    Svmlight,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Raw {
    Bf16,
}

fn array_name(text: &str) -> std::result::Result<String, String> {
    folder_name(text).map(|_| text.to_owned()).map_err(|e| e.to_string())
}

/// People count shares from 1, the library from 0.
fn part(text: &str) -> std::result::Result<(u64, u64), String> {
    let numbers = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match numbers {
        Some((i, n)) if (1..=n).contains(&i) => Ok((i - 1, n)),
        _ => Err("expected I/N with I from 1 to N, such as 1/4".to_owned()),
    }
}

pub(crate) fn run(args: &Args, work: &Work) -> Outcome {
    let out = args.place.output(&args.input[0], "arrshard", "")?;
    if out == Path::new("-") {
        return Err(Error::new(ErrorKind::InvalidArgument, "expected a folder to write to, found \"-\"")
            .hint("a dataset can't go to standard output; ./- is a folder of that name")
            .into());
    }
    let write = WriteOptions::new().sync(!args.place.no_sync).replace(args.place.force);
    let mode = if args.append { Mode::Append } else { Mode::Create };
    let options = PackOptions { mode, part: args.part, ..args.reading.options(&args.text, write) };
    convert(&args.input, out, &options, work)
}

/// Packs files as `options` say and tells what came of it.
pub(crate) fn convert(paths: &[PathBuf], out: &Path, options: &PackOptions, work: &Work) -> Outcome {
    let inputs = inputs(paths)?;
    let start = Instant::now();
    let advice = |e: Error| match options.mode {
        Mode::Create => or_force(e),
        Mode::Append if e.kind() == ErrorKind::NotFound && e.path() == Some(out) => {
            e.hint("the same without --append creates it")
        }
        _ => e,
    };
    let packed = work.run(|progress| arrshard::pack(&inputs, out, options, progress).map_err(advice))?;
    if !work.quiet {
        packed.notes.iter().for_each(|line| note(line));
        match &packed.dataset {
            Some(dataset) => note(&summary(dataset, start.elapsed())?),
            None => note(&format!("{}: this share is written, others are missing", escape_path(out))),
        }
    }
    Ok(Answer::Yes)
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

impl Reading {
    pub(crate) fn options(&self, text: &TextArgs, write: WriteOptions) -> PackOptions {
        let format = match self.from {
            From::Auto => Format::Auto,
            From::Tsv => Format::Tsv,
            From::Csv => Format::Csv,
            From::Text => Format::Text,
            From::Npy => Format::Npy,
            From::Npz => Format::Npz,
            From::Word2vec => Format::Word2vec,
            From::Svmlight => Format::Svmlight,
        };
        PackOptions {
            format,
            text: text.options(),
            as_bf16: self.raw == Some(Raw::Bf16),
            name: self.name.clone(),
            write: write.shard_bytes(self.shard_size),
            resume: self.resume,
            ..PackOptions::default()
        }
    }
}

/// What is there now, in one line.
fn summary(dataset: &Dataset, took: Duration) -> Result<String> {
    let entries = catalog::entries(dataset)?;
    let what = match &entries[..] {
        [one] => {
            let name = escape(one.name.as_bytes(), 40);
            format!("{}, {name} {} {}", counted(one.rows()), one.dtype_name(), one.shape_text())
        }
        many => {
            let rows = many.first().map_or(0, |entry| entry.rows());
            let same = many.iter().all(|entry| entry.rows() == rows);
            let rows = if same { format!("{}, ", counted(rows)) } else { String::new() };
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

fn counted(rows: u64) -> String {
    format!("{rows} row{}", if rows == 1 { "" } else { "s" })
}
