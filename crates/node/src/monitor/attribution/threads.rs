//! The threads of the program that have started on this node.

use crate::numbers::nanoseconds;
use gondwana_locks::lock;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

/// The most threads that are kept.
const MOST: usize = 1 << 16;

#[derive(Debug)]
struct Started {
    number: u32,
    stack: Range<usize>,
    routine: usize,
    at: Instant,
}

/// All threads in the order of their start. They are kept whether or not the run is monitored, because they may still
/// run when monitoring begins.
#[derive(Debug, Default)]
pub struct Threads(Mutex<Vec<Started>>);

impl Threads {
    fn list(&self) -> MutexGuard<'_, Vec<Started>> {
        lock(&self.0)
    }

    /// Notes that a thread has just started with the function at `routine`.
    pub fn started(&self, number: u32, stack: &Range<usize>, routine: usize) {
        let started = Started { number, stack: stack.clone(), routine, at: Instant::now() };
        let mut list = self.list();
        if list.len() < MOST {
            list.push(started);
        }
    }

    /// The threads after the first `known`, for a recording that `began` then.
    pub fn after(&self, known: usize, began: Instant) -> Vec<gondwana_recording::ThreadRecord> {
        let record = |started: &Started| gondwana_recording::ThreadRecord {
            number: started.number,
            stack_start: started.stack.start as u64,
            stack_end: started.stack.end as u64,
            routine: started.routine as u64,
            time: nanoseconds(started.at.saturating_duration_since(began)),
        };
        self.list().iter().skip(known).map(record).collect()
    }
}
