//! `arrshard create`: the plan of a dataset that many programs fill together.

use crate::exit::{Answer, Outcome, note};
use crate::options::{Work, or_force, size};
use arrshard::error::escape_path;
use arrshard::manifest::folder_name;
use arrshard::{Builder, DType, WriteOptions};
use std::path::PathBuf;

/// Preallocate a dataset that several programs are going to fill
#[derive(clap::Args)]
#[command(after_help = "\
Each program joins it and writes rows that no other does; whoever ends last seals it. To say the
same again is to join: it changes nothing.

Examples:
  arrshard create emb.arrshard --array emb=f4:1000000x128 --array label=i8:1000000
  arrshard status emb.arrshard
  arrshard seal emb.arrshard")]
pub(crate) struct Args {
    /// Folder of the dataset that is to be
    dataset: PathBuf,
    /// An array, such as emb=f4:1000000x128
    #[arg(long, value_name = "NAME=DTYPE:SHAPE", required = true, value_parser = array)]
    array: Vec<Array>,
    /// Bytes of data in a shard, about: 64KiB, 1GB …
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size)]
    shard_size: u64,
    /// Replace DATASET if it is there, when the new one is sealed
    #[arg(long)]
    force: bool,
    /// Don't wait for the disk; a power cut may then lose the plan
    #[arg(long)]
    no_sync: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Array {
    name: String,
    dtype: DType,
    shape: Vec<u64>,
}

fn array(text: &str) -> Result<Array, String> {
    let form = || "expected NAME=DTYPE or NAME=DTYPE:SHAPE such as emb=f4:1000x128".to_owned();
    // A name may hold an equals sign, a dtype and a shape hold none.
    let (name, rest) = text.rsplit_once('=').ok_or_else(form)?;
    let (dtype, shape) = match rest.split_once(':') {
        Some((dtype, shape)) => (dtype, Some(shape)),
        None => (rest, None),
    };
    folder_name(name).map_err(|e| e.to_string())?;
    let dtype = DType::parse(dtype).map_err(|e| e.to_string())?;
    let axes = shape.map(|shape| shape.split(['x', ',']).map(|axis| axis.trim().parse::<u64>()));
    let shape = axes.into_iter().flatten().collect::<Result<_, _>>().map_err(|_| form())?;
    Ok(Array { name: name.to_owned(), dtype, shape })
}

pub(crate) fn run(args: &Args, work: &Work) -> Outcome {
    let options = WriteOptions::new().shard_bytes(args.shard_size).sync(!args.no_sync).replace(args.force);
    let add = |builder: Builder, array: &Array| builder.array(&array.name, array.dtype, &array.shape);
    let builder = args.array.iter().fold(Builder::new(options), add);
    let shared = work.run(|_| builder.create_shared(&args.dataset).map_err(or_force))?;
    if !work.quiet {
        note(&format!("{}: to be filled in {}", escape_path(&args.dataset), escape_path(shared.path())));
    }
    Ok(Answer::Yes)
}

#[cfg(test)]
mod tests {
    use super::array;
    use arrshard::DType;

    #[test]
    fn an_array_has_a_name_a_dtype_and_a_shape() {
        for (text, name, shape) in [
            ("x=f8:10x3", "x", &[10, 3][..]),
            ("x=f8:7", "x", &[7]),
            ("a=b=f8:1,2,3", "a=b", &[1, 2, 3]),
            ("x=f8", "x", &[]),
        ] {
            let found = array(text).unwrap();
            assert_eq!((found.name.as_str(), found.dtype, &found.shape[..]), (name, DType::Float64, shape));
        }
        for text in
            ["", "x", "x=", "=f8:1", "x=f8:", "x=f8:1x", "x=f8:-1", "x=q8:1", "x=f8:99999999999999999999"]
        {
            assert!(array(text).is_err(), "{text}");
        }
    }
}
