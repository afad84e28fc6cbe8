//! The threads of the program that have started on this node.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Most threads that are kept: a program that starts more has some that nobody can tell apart.
const MOST: usize = 1 << 16;

#[derive(Debug)]
struct Started {
    number: u32,
    stack: Range<usize>,
    routine: usize,
    at: Instant,
}

/// All threads in the order in which they have started. They are kept whether or not the run is monitored, as they may be
/// running still when it is.
#[derive(Debug, Default)]
pub struct Threads(Mutex<Vec<Started>>);

impl Threads {
    fn list(&self) -> MutexGuard<'_, Vec<Started>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread has started just now, with the function at `routine`.
    pub fn started(&self, number: u32, stack: &Range<usize>, routine: usize) {
        let started = Started { number, stack: stack.clone(), routine, at: Instant::now() };
        let mut list = self.list();
        if list.len() < MOST {
            list.push(started);
        }
    }

    /// The threads after the first `known`, for a recording that `began` at some time.
    pub fn after(&self, known: usize, began: Instant) -> Vec<gondwana_recording::ThreadRecord> {
        let record = |started: &Started| gondwana_recording::ThreadRecord {
            number: started.number,
            stack_start: started.stack.start as u64,
            stack_end: started.stack.end as u64,
            routine: started.routine as u64,
            time: started.at.saturating_duration_since(began).as_nanos() as u64,
        };
        self.list().iter().skip(known).map(record).collect()
    }
}
