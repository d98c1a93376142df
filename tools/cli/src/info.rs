//! `arrshard info`: what a dataset consists of. Reads the manifest alone.

use crate::catalog::{self, Entry};
use crate::exit::{Answer, Outcome, Results};
use crate::table::{Align, Table};
use arrshard::error::{escape, escape_path};
use arrshard::{Attributes, Dataset};
use indicatif::HumanBytes;
use serde::Serialize;
use std::path::PathBuf;

/// Print arrays, shapes, sizes and shards
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  arrshard info emb.arrshard
  arrshard info emb.arrshard --json | jq '.arrays[].shape'")]
pub(crate) struct Args {
    dataset: PathBuf,
    /// As JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Bytes of an attribute that are shown to people.
const ATTRIBUTE_BYTES: usize = 200;

pub(crate) fn run(args: &Args) -> Outcome {
    let dataset = Dataset::open(&args.dataset)?;
    let entries = catalog::entries(&dataset)?;
    let id = dataset.manifest().id()?;
    let mut out = Results::new();
    if args.json {
        out.json(&DatasetJson {
            path: dataset.path().to_string_lossy().into_owned(),
            id,
            generation: dataset.manifest().generation,
            attributes: dataset.attributes(),
            arrays: entries.iter().map(ArrayJson::from).collect(),
        })?;
    } else {
        people(&dataset, &entries, &id, &mut out)?;
    }
    out.finish()?;
    Ok(Answer::Yes)
}

fn people(dataset: &Dataset, entries: &[Entry<'_>], id: &str, out: &mut Results) -> Outcome<()> {
    let bytes: u64 = entries.iter().map(|entry| entry.nbytes).fold(0, u64::saturating_add);
    let facts = [
        ["dataset", &escape_path(dataset.path())],
        ["id", id],
        ["generation", &dataset.manifest().generation.to_string()],
        ["size", &format!("{} ({bytes} bytes)", HumanBytes(bytes))],
    ];
    print(&facts, [Align::Left; 2], out)?;
    let mut lines = vec![["array", "dtype", "shape", "size", "shards", "rows a shard"].map(str::to_owned)];
    lines.extend(entries.iter().map(|entry| {
        [
            escape(entry.name.as_bytes(), usize::MAX),
            entry.dtype_name().to_owned(),
            entry.shape_text(),
            HumanBytes(entry.nbytes).to_string(),
            entry.shards.to_string(),
            entry.rows_per_shard.to_string(),
        ]
    }));
    out.line("")?;
    use Align::{Left, Right};
    print(&lines, [Left, Left, Left, Right, Right, Right], out)?;
    attributes("of the dataset", dataset.attributes(), out)?;
    for entry in entries {
        attributes(&format!("of {}", escape(entry.name.as_bytes(), usize::MAX)), entry.attributes, out)?;
    }
    Ok(())
}

fn print<S: AsRef<str>, const N: usize>(
    lines: &[[S; N]],
    aligns: [Align; N],
    out: &mut Results,
) -> Outcome<()> {
    let mut table = Table::new(aligns);
    lines.iter().for_each(|line| table.fit(line));
    lines.iter().try_for_each(|line| out.line(&table.line(line)))
}

fn attributes(of: &str, attributes: &Attributes, out: &mut Results) -> Outcome<()> {
    if attributes.is_empty() {
        return Ok(());
    }
    out.line(&format!("\nattributes {of}"))?;
    let lines: Vec<_> = attributes
        .iter()
        .map(|(key, value)| {
            let value = value.to_string();
            [escape(key.as_bytes(), ATTRIBUTE_BYTES), escape(value.as_bytes(), ATTRIBUTE_BYTES)]
        })
        .collect();
    print(&lines, [Align::Left; 2], out)
}

#[derive(Serialize)]
struct DatasetJson<'a> {
    path: String,
    id: String,
    generation: u64,
    attributes: &'a Attributes,
    arrays: Vec<ArrayJson<'a>>,
}

#[derive(Serialize)]
struct ArrayJson<'a> {
    name: &'a str,
    dtype: &'static str,
    shape: &'a [u64],
    nbytes: u64,
    shards: u64,
    rows_per_shard: u64,
    attributes: &'a Attributes,
}

impl<'a> From<&'a Entry<'a>> for ArrayJson<'a> {
    fn from(entry: &'a Entry<'a>) -> Self {
        Self {
            name: entry.name,
            dtype: entry.dtype_name(),
            shape: &entry.shape,
            nbytes: entry.nbytes,
            shards: entry.shards,
            rows_per_shard: entry.rows_per_shard,
            attributes: entry.attributes,
        }
    }
}
