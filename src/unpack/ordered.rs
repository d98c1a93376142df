//! Blocks of output made in parallel and written in order, with few of them in memory.

use crate::error::{Error, ErrorKind, Result};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How many blocks there can be at a time, made or being made, with this many workers.
pub(super) fn window(workers: usize) -> usize {
    if workers == 1 { 1 } else { 2 * workers }
}

/// Takes jobs from `next` until there are none, makes a block of bytes of each by `work` on as many
/// threads of the current pool as `workers` says, and hands the blocks to `write` in order. `S` is
/// memory that a worker uses again and again.
///
/// # Errors
/// Of all errors the one of the earliest block, so that it does not depend on the number of threads.
pub(super) fn run<J, S: Default>(
    workers: usize,
    mut next: impl FnMut() -> Result<Option<J>> + Send,
    work: impl Fn(J, &mut S, &mut Vec<u8>) -> Result<()> + Sync,
    mut write: impl FnMut(&[u8]) -> Result<()> + Send,
) -> Result<()> {
    if workers == 1 {
        let (mut memory, mut block) = (S::default(), Vec::new());
        while let Some(job) = next()? {
            block.clear();
            work(job, &mut memory, &mut block)?;
            write(&block)?;
        }
        return Ok(());
    }
    let line = Line {
        window: window(workers) as u64,
        jobs: Mutex::new((next, 0)),
        writer: Mutex::new(write),
        state: Mutex::default(),
        moved: Condvar::new(),
    };
    rayon::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|_| line.serve(&work));
        }
    });
    match line.state.into_inner().unwrap_or_else(PoisonError::into_inner).error {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}

/// What the workers share.
struct Line<N, W> {
    window: u64,
    /// Gives the next job, and its number. A worker that waits for room holds this lock, so that
    /// the others wait behind it; nobody who makes or writes a block needs it.
    jobs: Mutex<(N, u64)>,
    writer: Mutex<W>,
    state: Mutex<State>,
    /// A block has been written, or something has failed.
    moved: Condvar,
}

#[derive(Default)]
struct State {
    /// The block that is to be written next.
    head: u64,
    /// Blocks from `head` on; none where one is still being made.
    made: VecDeque<Option<Vec<u8>>>,
    /// Whether a worker is writing.
    writing: bool,
    /// The error of the earliest block.
    error: Option<(u64, Error)>,
    spare: Vec<Vec<u8>>,
}

impl State {
    fn fail(&mut self, block: u64, error: Error) {
        if self.error.as_ref().is_none_or(|(first, _)| block < *first) {
            self.error = Some((block, error));
        }
    }
}

impl<N, W> Line<N, W> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve<J, S: Default>(&self, work: &(impl Fn(J, &mut S, &mut Vec<u8>) -> Result<()> + Sync))
    where
        N: FnMut() -> Result<Option<J>>,
        W: FnMut(&[u8]) -> Result<()>,
    {
        let _alarm = Alarm(self);
        let mut memory = S::default();
        while let Some((number, job, mut block)) = self.take() {
            block.clear();
            match work(job, &mut memory, &mut block) {
                Ok(()) => self.put(number, block),
                Err(error) => {
                    self.state().fail(number, error);
                    self.moved.notify_all();
                }
            }
        }
    }

    /// The next job, when there is room for its block.
    fn take<J>(&self) -> Option<(u64, J, Vec<u8>)>
    where
        N: FnMut() -> Result<Option<J>>,
    {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let (next, number) = &mut *jobs;
        let mut state = self.state();
        while state.error.is_none() && *number >= state.head + self.window {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.error.is_some() {
            return None;
        }
        let spare = state.spare.pop().unwrap_or_default();
        drop(state);
        match next() {
            Ok(Some(job)) => {
                *number += 1;
                Some((*number - 1, job, spare))
            }
            Ok(None) => None,
            Err(error) => {
                self.state().fail(*number, error);
                None
            }
        }
    }

    /// Puts a block in its place. Who puts the one that is due writes it and all that follow it.
    fn put(&self, number: u64, block: Vec<u8>)
    where
        W: FnMut(&[u8]) -> Result<()>,
    {
        let mut state = self.state();
        let place = (number - state.head) as usize;
        if state.made.len() <= place {
            state.made.resize_with(place + 1, || None);
        }
        state.made[place] = Some(block);
        if state.writing {
            return;
        }
        state.writing = true;
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(block) = state.made.front_mut().and_then(Option::take) {
            drop(state);
            let written = writer(&block);
            state = self.state();
            if let Err(error) = written {
                let head = state.head;
                state.fail(head, error);
                self.moved.notify_all();
                // Stays `writing`, so that nobody writes behind the gap.
                return;
            }
            state.made.pop_front();
            state.head += 1;
            state.spare.push(block);
            self.moved.notify_all();
        }
        state.writing = false;
    }
}

/// Lets nobody wait for the block of a worker that panics.
struct Alarm<'a, N, W>(&'a Line<N, W>);

impl<N, W> Drop for Alarm<'_, N, W> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.state().fail(u64::MAX, Error::new(ErrorKind::Stopped, "expected a block, found a panic"));
            self.0.moved.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(workers: usize, fail_at: &[u64]) -> (Vec<u64>, Result<()>) {
        let mut written = Vec::new();
        let mut jobs = 0..1000u64;
        let done = run(
            workers,
            || Ok(jobs.next()),
            |job, memory: &mut u64, block| {
                *memory += 1;
                // Some are late.
                for _ in 0..(job * 7919) % 97 {
                    std::thread::yield_now();
                }
                if fail_at.contains(&job) {
                    return Err(Error::new(ErrorKind::Parse, job.to_string()));
                }
                block.extend_from_slice(&job.to_le_bytes());
                Ok(())
            },
            |block| {
                written.push(u64::from_le_bytes(block.try_into().unwrap()));
                Ok(())
            },
        );
        (written, done)
    }

    #[test]
    fn in_order_whatever_the_number_of_workers() {
        for workers in [1, 2, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(workers).build().unwrap();
            let (written, done) = pool.install(|| count(workers, &[]));
            done.unwrap();
            assert_eq!(written, (0..1000).collect::<Vec<_>>());
            let (written, done) = pool.install(|| count(workers, &[503, 504, 505]));
            assert_eq!(done.unwrap_err().to_string(), "503");
            assert_eq!(written, (0..written.len() as u64).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_writer_that_fails_ends_it() {
        for workers in [1, 3] {
            let mut calls = 0;
            let done = run(
                workers,
                || Ok(Some(())),
                |(), (): &mut (), block| {
                    block.push(0);
                    Ok(())
                },
                |_| {
                    calls += 1;
                    if calls < 5 { Ok(()) } else { Err(Error::new(ErrorKind::Io, "full")) }
                },
            );
            assert_eq!((done.unwrap_err().to_string().as_str(), calls), ("full", 5));
        }
    }
}
