//! How far a long call is, and a way to stop it.

use crate::error::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counts bytes done out of bytes in all. The caller keeps one, hands it to a long call, and reads
/// it from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    total: AtomicU64,
    done: AtomicU64,
    stopped: AtomicBool,
}

impl Progress {
    /// A counter at zero.
    pub const fn new() -> Self {
        Self { total: AtomicU64::new(0), done: AtomicU64::new(0), stopped: AtomicBool::new(false) }
    }

    /// Bytes of work in all; 0 while unknown.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Bytes of work done.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Asks the call to end with an error as soon as it can.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether [`Self::stop`] has been called.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub(crate) fn start(&self, total: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Counts `bytes` more; an error if the call has been stopped.
    pub(crate) fn advance(&self, bytes: u64) -> Result<()> {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        if self.is_stopped() {
            return Err(Error::new(ErrorKind::Stopped, "expected to finish, found a request to stop"));
        }
        Ok(())
    }
}
