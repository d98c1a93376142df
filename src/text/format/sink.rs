//! Output that hands out a window to write the next number into.

use super::digits::{WINDOW, Window};

/// How much is laid out at a time: it stays in the second-level cache until it is written.
const STEP: usize = 1 << 16;

/// Appends to a `Vec<u8>` whose end is kept filled with zeros to be written over, so that a number costs
/// one check of the room left. `finish` cuts that end off.
pub(super) struct Sink<'a> {
    out: &'a mut Vec<u8>,
    at: usize,
}

impl<'a> Sink<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        let at = out.len();
        Self { out, at }
    }

    /// The next bytes of the output; [`Sink::advance`] says how many of them count.
    #[inline(always)]
    pub(super) fn window(&mut self) -> &mut Window {
        if self.out.len() - self.at < WINDOW {
            self.grow(WINDOW);
        }
        match self.out[self.at..].first_chunk_mut() {
            Some(window) => window,
            None => unreachable!("grow made room"),
        }
    }

    #[cold]
    fn grow(&mut self, room: usize) {
        self.out.resize(self.at + room + STEP, 0);
    }

    #[inline(always)]
    pub(super) fn advance(&mut self, n: usize) {
        self.at += n;
    }

    /// Takes the last `n` bytes back.
    #[inline(always)]
    pub(super) fn retreat(&mut self, n: usize) {
        self.at -= n;
    }

    /// Appends `bytes`.
    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8]) {
        if self.out.len() - self.at < bytes.len() {
            self.grow(bytes.len());
        }
        if let [byte] = bytes {
            self.out[self.at] = *byte;
        } else {
            self.out[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        }
        self.at += bytes.len();
    }

    /// Appends `byte` `n` times.
    #[inline]
    pub(super) fn fill(&mut self, byte: u8, n: usize) {
        if n == 0 {
            return;
        }
        if self.out.len() - self.at < n {
            self.grow(n);
        }
        self.out[self.at..self.at + n].fill(byte);
        self.at += n;
    }

    /// Where the next byte will stand.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Takes the `+` out of every `+-` from `start` on, as np.savetxt does with rows of complex numbers.
    pub(super) fn join_signs(&mut self, start: usize) {
        let Some(first) = memchr::memmem::find(&self.out[start..self.at], b"+-") else { return };
        let first = start + first;
        let mut to = first;
        for from in first..self.at {
            if self.out[from] == b'+' && from + 1 < self.at && self.out[from + 1] == b'-' {
                continue;
            }
            self.out[to] = self.out[from];
            to += 1;
        }
        self.at = to;
    }

    pub(super) fn finish(self) {
        self.out.truncate(self.at);
    }
}
