//! The records of a reader in order: cut into pieces, worked on in parallel, taken in order.
//!
//! Memory is bounded whatever the length: one batch of pieces is read ahead, one is worked on, and the
//! results of one are being taken.

use super::count::{count, last_record_end};
use super::dialect::Dialect;
use super::rows::Origin;
use crate::error::{Error, Result};
use crate::input::read_full;
use rayon::prelude::*;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// All pieces of a batch together.
const BATCH_BYTES: usize = 8 << 20;
/// The least and most that one piece is.
const PIECE_BYTES: (usize, usize) = (64 << 10, 1 << 20);

/// Whole records.
pub(crate) struct Piece {
    pub(crate) text: Vec<u8>,
    pub(crate) origin: Origin,
}

type Batch = Result<Vec<Piece>>;

/// Reads `reader` to its end, or until `take` has enough. `work` runs on pieces in parallel,
/// `take` gets its results in order; the first error in that order is returned.
pub(crate) fn run<O: Send>(
    reader: &mut (dyn Read + Send),
    path: &Path,
    dialect: &Dialect,
    origin: Origin,
    work: impl Fn(&Piece) -> Result<O> + Sync,
    mut take: impl FnMut(O) -> Result<ControlFlow<()>> + Send,
) -> Result<()> {
    let pieces = 2 * rayon::current_num_threads();
    let piece_bytes = (BATCH_BYTES / pieces).clamp(PIECE_BYTES.0, PIECE_BYTES.1);
    std::thread::scope(|scope| {
        let (send, receive) = sync_channel::<Batch>(1);
        scope.spawn(move || {
            let mut cutter = Cutter { reader, path, dialect, origin, rest: Vec::new(), ended: false };
            cutter.batches(pieces, piece_bytes, &send);
        });
        // The receiver must be gone before the scope waits for the reader.
        let receive = receive;
        consume(&receive, &work, &mut take)
    })
}

fn consume<O: Send>(
    batches: &Receiver<Batch>,
    work: &(impl Fn(&Piece) -> Result<O> + Sync),
    take: &mut (impl FnMut(O) -> Result<ControlFlow<()>> + Send),
) -> Result<()> {
    let mut done: Vec<Result<O>> = Vec::new();
    loop {
        let batch = batches.recv().ok();
        let (taken, next) = rayon::join(
            || take_all(std::mem::take(&mut done), take),
            || batch.map(|batch| batch.map(|batch| batch.par_iter().map(work).collect::<Vec<_>>())),
        );
        if taken?.is_break() {
            return Ok(());
        }
        match next {
            None => return Ok(()),
            Some(results) => done = results?,
        }
    }
}

fn take_all<O>(
    results: Vec<Result<O>>,
    take: &mut impl FnMut(O) -> Result<ControlFlow<()>>,
) -> Result<ControlFlow<()>> {
    for result in results {
        if take(result?)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Cuts what a reader gives into pieces of whole records.
struct Cutter<'a> {
    reader: &'a mut (dyn Read + Send),
    path: &'a Path,
    dialect: &'a Dialect,
    origin: Origin,
    /// The start of a record that goes on.
    rest: Vec<u8>,
    ended: bool,
}

impl Cutter<'_> {
    fn batches(&mut self, pieces: usize, piece_bytes: usize, send: &SyncSender<Batch>) {
        while !self.ended {
            let mut batch = Vec::with_capacity(pieces);
            while batch.len() < pieces && !self.ended {
                match self.piece(piece_bytes) {
                    Ok(piece) if piece.text.is_empty() => {}
                    Ok(piece) => batch.push(piece),
                    Err(error) => {
                        // What came before it is still in order.
                        let _ = send.send(Ok(batch));
                        let _ = send.send(Err(error));
                        return;
                    }
                }
            }
            if send.send(Ok(batch)).is_err() {
                // Nobody wants more.
                return;
            }
        }
    }

    fn piece(&mut self, piece_bytes: usize) -> Result<Piece> {
        let mut text = std::mem::take(&mut self.rest);
        let mut want = piece_bytes;
        loop {
            let have = text.len();
            text.resize(have.max(want), 0);
            let found = match read_full(self.reader, &mut text[have..], self.path) {
                Ok(found) => found,
                Err(error) => return Err(self.read_error(error)),
            };
            self.ended = have + found < text.len();
            text.truncate(have + found);
            let end = if self.ended { text.len() } else { last_record_end(&text, self.dialect) };
            if end > 0 || self.ended {
                self.rest = text.split_off(end);
                break;
            }
            // One record longer than the piece: look for its end in twice as much.
            want = text.len() * 2;
        }
        let origin = self.origin;
        self.origin.offset += text.len() as u64;
        self.origin.lines += count(&text, self.dialect).lines;
        Ok(Piece { text, origin })
    }

    fn read_error(&self, error: Error) -> Error {
        error.at(self.path)
    }
}
