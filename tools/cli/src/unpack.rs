//! `arrshard unpack`: a dataset into files that other programs read.

use crate::catalog;
use crate::dialect::delimiter;
use crate::exit::{Answer, Outcome};
use crate::options::{Place, Work, or_force};
use arrshard::error::quoted;
use arrshard::text::Delimiter;
use arrshard::{Dataset, Error, ErrorKind, Output, Result, Target, UnpackOptions};
use clap::ValueEnum;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Convert a dataset into an npy, npz, tsv or csv file
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  arrshard unpack emb.arrshard -o emb.npy
  arrshard unpack emb.arrshard -o - --to tsv --rows :100 --fmt %.6g
  arrshard unpack table.arrshard -o table.csv --header")]
pub(crate) struct Args {
    /// Folder of a dataset
    dataset: PathBuf,
    #[command(flatten)]
    place: Place,
    /// npy, npz, tsv or csv [default: by the extension of OUT]
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true)]
    to: Option<To>,
    /// Only this array
    #[arg(long, value_name = "NAME")]
    array: Option<String>,
    /// Only rows from A on, counted from 0, and below B; either may be left out
    #[arg(long, value_name = "A:B", value_parser = rows)]
    rows: Option<Rows>,
    /// printf format, as for np.savetxt [default: the fewest digits that read back]
    #[arg(long, value_name = "FMT", allow_hyphen_values = true)]
    fmt: Option<String>,
    /// Characters between fields, or tab, comma, semicolon, pipe or space
    #[arg(long, value_name = "C", allow_hyphen_values = true)]
    delimiter: Option<String>,
    /// Names of the columns in the first line of text
    #[arg(long)]
    header: bool,
    /// Write text in parallel to OUT.0, OUT.1 … OUT.N-1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    parts: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum To {
    Npy,
    Npz,
    Tsv,
    Csv,
}

/// A range with open ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rows(Option<u64>, Option<u64>);

fn rows(text: &str) -> std::result::Result<Rows, String> {
    let end = |text: &str| match text {
        "" => Ok(None),
        _ => text.parse().map(Some),
    };
    text.split_once(':')
        .and_then(|(a, b)| Some(Rows(end(a).ok()?, end(b).ok()?)))
        .ok_or_else(|| "expected a range such as 10:20, :100 or 5:".to_owned())
}

pub(crate) fn run(args: &Args, work: &Work) -> Outcome {
    let out = args.place.output(&args.dataset, "npy", ", or - for standard output")?;
    let output = if out == Path::new("-") { Output::Stdout } else { Output::Path(out.to_owned()) };
    let dataset = Dataset::open(&args.dataset)?;
    let options = options(args, &dataset)?;
    work.run(|progress| arrshard::unpack(&dataset, &output, &options, progress).map_err(or_force))?;
    Ok(Answer::Yes)
}

fn options(args: &Args, dataset: &Dataset) -> Result<UnpackOptions> {
    Ok(UnpackOptions {
        to: args.to.map(|to| match to {
            To::Npy => Target::Npy,
            To::Npz => Target::Npz,
            To::Tsv => Target::Tsv,
            To::Csv => Target::Csv,
        }),
        array: args.array.clone(),
        rows: args.rows.map(|rows| range(rows, args.array.as_deref(), dataset)).transpose()?,
        fmt: args.fmt.clone(),
        delimiter: args.delimiter.as_deref().map(|text| match delimiter(text) {
            Ok(Delimiter::Byte(byte)) => char::from(byte).to_string(),
            _ => text.to_owned(),
        }),
        header: args.header,
        parts: args.parts,
        replace: args.place.force,
        sync: !args.place.no_sync,
    })
}

/// An open end is the end of the array, or of the first of those that go together.
fn range(Rows(start, end): Rows, array: Option<&str>, dataset: &Dataset) -> Result<Range<u64>> {
    let all = match array {
        Some(name) => catalog::entry(dataset, name)?.rows(),
        None => catalog::entries(dataset)?.first().map_or(0, |entry| entry.rows()),
    };
    let (start, end) = (start.unwrap_or(0), end.unwrap_or(all));
    if start <= end && end <= all {
        return Ok(start..end);
    }
    let found = quoted(format!("{start}:{end}").as_bytes());
    Err(Error::new(ErrorKind::InvalidArgument, format!("expected --rows within 0:{all}, found {found}"))
        .at(dataset.path()))
}
