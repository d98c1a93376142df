//! Ctrl-C asks the work to stop; it then unwinds through errors and leaves nothing behind.

use arrshard::{Error, ErrorKind, Progress, Result};
use std::sync::LazyLock;

static PROGRESS: LazyLock<Progress> = LazyLock::new(Progress::new);

/// The counter of the one piece of work that this process does, which Ctrl-C stops from now on.
pub(crate) fn progress() -> Result<&'static Progress> {
    let progress = &*PROGRESS;
    let on_signal = || {
        if progress.is_stopped() {
            // Asked twice: whoever asks can't wait. What is left beside OUT goes with the next run.
            std::process::exit(130);
        }
        progress.stop();
    };
    match ctrlc::try_set_handler(on_signal) {
        // A shell ignores the signal on behalf of its background jobs: it then stays ignored.
        Ok(()) | Err(ctrlc::Error::MultipleHandlers) => {}
        Err(e) => {
            let found = e.to_string().to_lowercase();
            return Err(Error::new(ErrorKind::Io, format!("expected to handle interrupts, found {found}")));
        }
    }
    Ok(progress)
}
