//! Which target thread runs next: on each processor one at a time, on the machine the processor with the least time.

use crate::Time;
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

/// The number of a target thread, in the order of creation; `main` is 0.
pub type ThreadId = usize;

/// How long a thread may keep a processor that others wait for: 10 ms.
const SLICE: Time = 10_000_000_000;

/// What is on a processor.
#[derive(Debug, Default)]
struct Processor {
    running: Option<ThreadId>,
    waiting: VecDeque<ThreadId>,
    /// Its time while it does not run on the host.
    time: Time,
    slice_end: Time,
}

/// When a processor goes on, before its number: as one number, which the host compares without a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn(u128);

impl Turn {
    fn new(time: Time, processor: usize) -> Self {
        Self(u128::from(time) << 64 | processor as u128)
    }

    fn time(self) -> Time {
        (self.0 >> 64) as Time
    }

    fn processor(self) -> usize {
        self.0 as usize
    }
}

/// The threads that can run, and those that wait for a time.
#[derive(Debug)]
pub struct Schedule {
    processors: Vec<Processor>,
    /// Each processor with a running thread, but the one that the host runs.
    ready: BinaryHeap<Reverse<Turn>>,
    /// Threads that wait until a time at most.
    deadlines: BTreeSet<(Time, ThreadId)>,
    /// The current processor, if its thread goes on later. It is not in `ready` yet: it usually takes the place of the one
    /// that is chosen.
    left: Option<Reverse<Turn>>,
    current: usize,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This thread runs on this processor from this time on.
    Run(ThreadId, usize, Time),
    /// This thread has waited long enough; somebody has to wake it.
    TimedOut(ThreadId, Time),
    /// All threads wait for each other.
    Nobody,
}

impl Schedule {
    /// Thread 0 runs on a processor.
    #[must_use]
    pub fn new(processors: usize, first: usize) -> Self {
        let mut all: Vec<Processor> = (0..processors).map(|_| Processor::default()).collect();
        all[first].running = Some(0);
        all[first].slice_end = SLICE;
        Self {
            processors: all,
            ready: BinaryHeap::new(),
            deadlines: BTreeSet::new(),
            left: None,
            current: first,
        }
    }

    /// The processor that the host runs.
    #[inline]
    #[must_use]
    pub fn current(&self) -> usize {
        self.current
    }

    /// True if a thread of this processor runs or waits only for the processor.
    #[inline]
    #[must_use]
    pub fn can_run(&self, thread: ThreadId, processor: usize) -> bool {
        let processor = &self.processors[processor];
        processor.running == Some(thread) || processor.waiting.contains(&thread)
    }

    /// The least time of the other processors, or the next deadline.
    #[inline]
    #[must_use]
    pub fn next_time(&self) -> Time {
        let ready = self.ready.peek().map_or(Time::MAX, |Reverse(turn)| turn.time());
        let deadline = self.deadlines.first().map_or(Time::MAX, |(time, _)| *time);
        ready.min(deadline)
    }

    /// True if other threads wait for the current processor, and the present one has had its share.
    #[inline]
    #[must_use]
    pub fn shares(&self, now: Time) -> bool {
        let processor = &self.processors[self.current];
        !processor.waiting.is_empty() && now >= processor.slice_end
    }

    /// The current thread goes on later; with `give_way`, after those that wait for its processor.
    pub fn leave(&mut self, now: Time, give_way: bool) {
        let processor = &mut self.processors[self.current];
        processor.time = now;
        if (give_way || now >= processor.slice_end)
            && let Some(next) = processor.waiting.pop_front()
        {
            processor.waiting.extend(processor.running.replace(next));
            processor.slice_end = now + SLICE;
        }
        self.left = Some(Reverse(Turn::new(now, self.current)));
    }

    /// The current thread waits, until a time at most if one is given, or has ended.
    pub fn stop(&mut self, now: Time, deadline: Option<Time>) {
        let processor = &mut self.processors[self.current];
        processor.time = now;
        let stopped = processor.running.take();
        if let (Some(thread), Some(deadline)) = (stopped, deadline) {
            self.deadlines.insert((deadline.max(now), thread));
        }
        processor.running = processor.waiting.pop_front();
        processor.slice_end = now + SLICE;
        if processor.running.is_some() {
            self.ready.push(Reverse(Turn::new(now, self.current)));
        }
    }

    /// A thread that waited, or is new, can run on a processor from a time on.
    pub fn wake(&mut self, thread: ThreadId, number: usize, at: Time, deadline: Option<Time>) {
        if let Some(deadline) = deadline {
            self.deadlines.remove(&(deadline, thread));
        }
        let processor = &mut self.processors[number];
        if processor.running.is_some() {
            processor.waiting.push_back(thread);
            return;
        }
        processor.running = Some(thread);
        processor.time = processor.time.max(at);
        processor.slice_end = processor.time + SLICE;
        self.ready.push(Reverse(Turn::new(processor.time, number)));
    }

    /// Chooses who runs now. The current thread has left or stopped.
    pub fn choose(&mut self) -> Next {
        if let Some(&(deadline, thread)) = self.deadlines.first() {
            self.ready.extend(self.left.take());
            if self.ready.peek().is_none_or(|Reverse(turn)| deadline <= turn.time()) {
                self.deadlines.pop_first();
                return Next::TimedOut(thread, deadline);
            }
        }
        let first = match (self.left.take(), self.ready.peek_mut()) {
            // The top is the greatest, which is the one with the least time.
            (Some(left), Some(mut top)) if left < *top => Some(std::mem::replace(&mut *top, left)),
            (Some(left), _) => Some(left),
            (None, top) => top.map(PeekMut::pop),
        };
        let Some(Reverse(turn)) = first else { return Next::Nobody };
        let (time, number) = (turn.time(), turn.processor());
        self.current = number;
        let thread = self.processors[number].running.expect("a ready processor has a thread");
        Next::Run(thread, number, time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_with_the_least_time_runs() {
        let mut schedule = Schedule::new(3, 0);
        schedule.wake(1, 1, 50, None);
        schedule.wake(2, 2, 20, None);
        assert_eq!(schedule.next_time(), 20);
        schedule.leave(100, false);
        assert_eq!(schedule.choose(), Next::Run(2, 2, 20));
        schedule.leave(60, false);
        assert_eq!(schedule.choose(), Next::Run(1, 1, 50));
        schedule.stop(70, None);
        assert_eq!(schedule.choose(), Next::Run(2, 2, 60));
        schedule.stop(90, None);
        assert_eq!(schedule.choose(), Next::Run(0, 0, 100));
        schedule.stop(110, None);
        assert_eq!(schedule.choose(), Next::Nobody);
    }

    #[test]
    fn threads_take_turns_on_a_processor() {
        let mut schedule = Schedule::new(1, 0);
        schedule.wake(1, 0, 5, None);
        schedule.leave(10, false);
        assert_eq!(schedule.choose(), Next::Run(0, 0, 10), "its time is not up");
        assert!(!schedule.shares(10) && schedule.shares(SLICE));
        schedule.leave(SLICE, false);
        assert_eq!(schedule.choose(), Next::Run(1, 0, SLICE));
        schedule.leave(SLICE + 1, true);
        assert_eq!(schedule.choose(), Next::Run(0, 0, SLICE + 1));
        schedule.stop(SLICE + 2, None);
        assert_eq!(schedule.choose(), Next::Run(1, 0, SLICE + 2));
    }

    #[test]
    fn a_deadline_comes_when_nobody_is_before_it() {
        let mut schedule = Schedule::new(2, 0);
        schedule.wake(1, 1, 10, None);
        schedule.stop(0, Some(40));
        assert_eq!(schedule.choose(), Next::Run(1, 1, 10));
        schedule.leave(50, false);
        assert_eq!(schedule.choose(), Next::TimedOut(0, 40));
        schedule.wake(0, 0, 40, None);
        assert_eq!(schedule.choose(), Next::Run(0, 0, 40));
        schedule.stop(45, Some(90));
        schedule.wake(0, 0, 46, Some(90));
        assert_eq!(schedule.choose(), Next::Run(0, 0, 46), "the deadline is gone");
    }
}
