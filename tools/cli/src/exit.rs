//! How the command ends: the one place that knows exit codes.

use arrshard::ErrorKind;
use arrshard::error::escape;
use std::error::Error as _;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::process::ExitCode;

/// What a subcommand has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is done, or it is so.
    Yes,
    /// It is not so.
    No,
}

/// Why a subcommand could not give an answer.
pub(crate) enum Failure {
    /// The arguments make no sense; also `--help` and `--version`, which clap counts among these.
    Usage(clap::Error),
    /// The library, or the system below it, said no.
    Work(arrshard::Error),
    /// Whoever read the results has seen enough.
    ClosedPipe,
}

pub(crate) type Outcome<T = Answer> = Result<T, Failure>;

/// Says on standard error what went wrong, and gives the status to end with.
pub(crate) fn code(outcome: Outcome) -> ExitCode {
    let status = match outcome {
        Ok(Answer::Yes) | Err(Failure::ClosedPipe) => 0,
        Ok(Answer::No) => 1,
        Err(Failure::Usage(error)) => usage(&error),
        Err(Failure::Work(error)) if error.kind() == ErrorKind::Stopped => 130,
        Err(Failure::Work(error)) => {
            note(&format!("arrshard: {error}"));
            2
        }
    };
    ExitCode::from(status)
}

/// A line on standard error. Nobody is left to tell if that is closed too.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Help is a result; a complaint repeats arguments, which may be names of hostile files.
fn usage(error: &clap::Error) -> u8 {
    let text = error.render().to_string();
    if !error.use_stderr() {
        return match io::stdout().write_all(text.as_bytes()) {
            Ok(()) => 0,
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => 0,
            Err(e) => {
                note(&format!("arrshard: {}", arrshard::Error::io("standard output", "write", e)));
                2
            }
        };
    }
    text.trim_end().lines().for_each(|line| note(&escape(line.as_bytes(), usize::MAX)));
    2
}

impl From<arrshard::Error> for Failure {
    fn from(error: arrshard::Error) -> Self {
        let broken = error
            .source()
            .and_then(|source| source.downcast_ref::<io::Error>())
            .is_some_and(|source| source.kind() == io::ErrorKind::BrokenPipe);
        if broken { Self::ClosedPipe } else { Self::Work(error) }
    }
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        Self::Usage(error)
    }
}

/// Standard output as the place of results.
pub(crate) struct Results(BufWriter<StdoutLock<'static>>);

impl Results {
    pub(crate) fn new() -> Self {
        Self(BufWriter::with_capacity(1 << 16, io::stdout().lock()))
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, line: &str) -> Outcome<()> {
        writeln!(self.0, "{line}").map_err(unwritten)
    }

    /// Writes JSON, as people and programs can read it.
    pub(crate) fn json(&mut self, value: &impl serde::Serialize) -> Outcome<()> {
        serde_json::to_writer_pretty(&mut self.0, value).map_err(|e| unwritten(e.into()))?;
        self.line("")
    }

    /// Hands the last bytes to the system, whose complaint would otherwise be lost.
    pub(crate) fn finish(mut self) -> Outcome<()> {
        self.0.flush().map_err(unwritten)
    }
}

fn unwritten(error: io::Error) -> Failure {
    arrshard::Error::io("standard output", "write", error).into()
}
