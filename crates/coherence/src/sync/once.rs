use super::SyncError;
use super::request::{Caller, Reply};
use std::collections::VecDeque;

/// Answer to the caller that must run the routine.
pub const ONCE_RUN: i64 = 0;

/// A `pthread_once` control: one caller runs the routine, the others wait until it has been run.
#[derive(Debug, Default)]
pub(super) struct Once {
    running: bool,
    /// How often a routine was run to its end at this address; the last run counts.
    generation: u32,
    waiting: VecDeque<Caller>,
}

impl Once {
    pub(super) fn enter(&mut self, caller: Caller, stale: u32, out: &mut Vec<Reply>) {
        if self.running {
            self.waiting.push_back(caller);
        } else if self.generation == stale {
            self.running = true;
            out.push(caller.done(ONCE_RUN));
        } else {
            out.push(caller.done(i64::from(self.generation)));
        }
    }

    pub(super) fn done(&mut self, out: &mut Vec<Reply>) -> Result<i64, SyncError> {
        self.end()?;
        self.generation += 1;
        let generation = i64::from(self.generation);
        out.extend(self.waiting.drain(..).map(|caller| caller.done(generation)));
        Ok(0)
    }

    pub(super) fn failed(&mut self, out: &mut Vec<Reply>) -> Result<i64, SyncError> {
        self.end()?;
        if let Some(next) = self.waiting.pop_front() {
            self.running = true;
            out.push(next.done(ONCE_RUN));
        }
        Ok(0)
    }

    fn end(&mut self) -> Result<(), SyncError> {
        if std::mem::take(&mut self.running) { Ok(()) } else { Err(SyncError::Invalid) }
    }
}
