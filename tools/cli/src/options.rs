//! What several subcommands are told in the same words.

use crate::bar::Bar;
use crate::exit::Outcome;
use crate::interrupt;
use arrshard::error::escape_path;
use arrshard::{Error, ErrorKind, Progress};
use clap::{Args, Parser};
use std::path::{Path, PathBuf};

/// Reads the command line.
pub(crate) fn parse<T: Parser>() -> Outcome<T> {
    Ok(T::try_parse()?)
}

/// How work is done.
#[derive(Args)]
pub(crate) struct Work {
    /// Threads to work with [default: all cores]
    #[arg(short, long, value_name = "N", global = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// No progress bar, no notes: only results and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

impl Work {
    /// Does long work: with the threads asked for, a bar, and Ctrl-C.
    pub(crate) fn run<T: Send>(
        &self,
        work: impl FnOnce(&Progress) -> arrshard::Result<T> + Send,
    ) -> Outcome<T> {
        let progress = interrupt::progress()?;
        let _bar = Bar::start(progress, self.quiet);
        Ok(self.on_threads(|| work(progress))?)
    }

    fn on_threads<T: Send>(&self, work: impl FnOnce() -> arrshard::Result<T> + Send) -> arrshard::Result<T> {
        let Some(jobs) = self.jobs else { return work() };
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(jobs.into())
            .build()
            .map_err(|e| Error::new(ErrorKind::Io, format!("expected {jobs} threads, found {e}")))?;
        pool.install(work)
    }
}

/// Work that reads a little is done sooner than threads are started.
pub(crate) fn alone() {
    // If it can't be, the usual threads come when they are needed.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
}

/// Where a result goes, and how safely.
#[derive(Args)]
pub(crate) struct Place {
    /// Where to write to; appears whole or not at all
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Replace OUT if it is there, in one step at the end
    #[arg(long)]
    pub(crate) force: bool,
    /// Don't wait for the disk; a power cut may then lose the result
    #[arg(long)]
    pub(crate) no_sync: bool,
}

impl Place {
    /// The output, or an error that proposes one: `input` with another ending, and `more`.
    pub(crate) fn output(&self, input: &Path, ending: &str, more: &str) -> arrshard::Result<&Path> {
        self.output.as_deref().ok_or_else(|| {
            let stem = input.file_stem().filter(|stem| *stem != "-").unwrap_or("data".as_ref());
            let stem = escape_path(stem.as_ref());
            Error::new(ErrorKind::InvalidArgument, "expected -o OUT, found none")
                .hint(format!("for example -o {stem}.{ending}{more}"))
        })
    }
}

/// What is in the way can be replaced, where there is an option for it.
pub(crate) fn or_force(error: Error) -> Error {
    if error.kind() == ErrorKind::Exists { error.hint("pass --force to replace it") } else { error }
}

/// A number of bytes: plain, or with a unit of 1000 (kB, MB …) or 1024 (KiB, MiB …).
pub(crate) fn size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 10] = [
        ("", 1),
        ("b", 1),
        ("kb", 1000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("tb", 1_000_000_000_000),
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("tib", 1 << 40),
    ];
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let unit = text[digits..].trim_start().to_ascii_lowercase();
    let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let number = text[..digits].parse::<u64>().ok();
    number
        .zip(factor)
        .and_then(|(number, factor)| number.checked_mul(factor))
        .filter(|&bytes| bytes > 0)
        .ok_or_else(|| "expected a size such as 64KiB, 512MiB, 1GB or 4096".to_owned())
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_units_of_both_kinds() {
        for (text, bytes) in [
            ("4096", 4096),
            ("1B", 1),
            ("64KiB", 65536),
            ("64 kib", 65536),
            ("1GB", 1_000_000_000),
            ("1GiB", 1 << 30),
            ("2TiB", 2 << 40),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "0", "GiB", "1K", "1.5GiB", "-1", "99999999999999999999", "99999999TiB", "1é"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
