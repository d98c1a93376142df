//! The progress bar: bytes, rate and time left, for people who wait at a terminal.

use arrshard::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Shorter work shows no bar: a flash tells nobody anything.
const PATIENCE: Duration = Duration::from_millis(200);
const TICK: Duration = Duration::from_millis(100);

/// A bar that is drawn by a thread of its own until it is dropped.
pub(crate) struct Bar(Option<(Sender<()>, JoinHandle<()>)>);

impl Bar {
    /// Shows `progress`, unless it is `hidden` or standard error is no terminal.
    pub(crate) fn start(progress: &'static Progress, hidden: bool) -> Self {
        if hidden || !io::stderr().is_terminal() {
            return Self(None);
        }
        let (end, ended) = channel();
        Self(Some((end, thread::spawn(move || draw(progress, &ended)))))
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.0.take() {
            drop(end);
            let _ = thread.join();
        }
    }
}

fn draw(progress: &Progress, ended: &Receiver<()>) {
    let goes_on = |time| ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
    if !goes_on(PATIENCE) {
        return;
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let mut known = 0;
    bar.set_style(style("{spinner} {bytes}, {bytes_per_sec}"));
    loop {
        let total = progress.total();
        if total != known {
            known = total;
            bar.set_length(total);
            bar.set_style(style("{wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left"));
        }
        bar.set_position(progress.done());
        bar.tick();
        if !goes_on(TICK) {
            break;
        }
    }
    bar.finish_and_clear();
}

/// The templates above are right; were one not, the plain style would do.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
