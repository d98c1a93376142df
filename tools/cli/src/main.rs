//! The `arrshard` command: text and npy files to mapped arrays and back.

mod abandon;
mod add;
mod bar;
mod catalog;
mod create;
mod dialect;
mod exit;
mod gc;
mod head;
mod info;
mod interrupt;
mod options;
mod pack;
mod repair;
mod seal;
mod show;
mod status;
mod table;
mod unpack;
mod verify;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Large arrays as plain .npy shards under one manifest: pack them, look at them, take them out
#[derive(Parser)]
#[command(name = "arrshard", version, after_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    work: options::Work,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Pack(Box<pack::Args>),
    Unpack(unpack::Args),
    Info(info::Args),
    Head(head::Args),
    Verify(verify::Args),
    Repair(repair::Args),
    Add(Box<add::Args>),
    Gc(gc::Args),
    Create(create::Args),
    Status(status::Args),
    Seal(seal::Args),
    Abandon(abandon::Args),
}

const EXAMPLES: &str = "\
Examples:
  arrshard pack emb.tsv -o emb.arrshard      a table of numbers becomes one matrix
  arrshard head emb.arrshard                 its first rows
  arrshard verify emb.arrshard               every checksum
  arrshard unpack emb.arrshard -o emb.npy    and back

Exit status: 0 done, 1 the answer is no, 2 it could not be done, 130 interrupted.";

fn main() -> ExitCode {
    exit::code(options::parse::<Cli>().and_then(|cli| match cli.command {
        Command::Pack(args) => pack::run(&args, &cli.work),
        Command::Unpack(args) => unpack::run(&args, &cli.work),
        Command::Info(args) => info::run(&args),
        Command::Head(args) => head::run(&args),
        Command::Verify(args) => verify::run(&args, &cli.work),
        Command::Repair(args) => repair::run(&args, &cli.work),
        Command::Add(args) => add::run(&args, &cli.work),
        Command::Gc(args) => gc::run(&args),
        Command::Create(args) => create::run(&args, &cli.work),
        Command::Status(args) => status::run(&args, cli.work.quiet),
        Command::Seal(args) => seal::run(&args, &cli.work),
        Command::Abandon(args) => abandon::run(&args),
    }))
}
