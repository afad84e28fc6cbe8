//! Which target thread runs next: on each processor one at a time, on the machine the processor with the least time.

use crate::dispatch::{Dispatch, Target};
use crate::system_parts::SchedulerPart;
use crate::{NANOSECOND, Time};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

/// The number of a target thread, in the order of creation; `main` is 0.
pub type ThreadId = usize;

/// What is on a processor.
#[derive(Debug, Default)]
struct Processor {
    running: Option<ThreadId>,
    /// Threads of this processor alone, with the times since when they wait.
    waiting: VecDeque<(Time, ThreadId)>,
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
    /// By processor: the last thread that ran. Apart, as each change of fibers looks at a processor.
    last: Vec<Option<ThreadId>>,
    slice: Time,
    switch: Time,
    /// Queues of threads that may move; none if all stay on their processors.
    dispatch: Option<Box<Dispatch>>,
    /// Threads that stay on their processors nevertheless.
    bound: BTreeSet<ThreadId>,
    /// The machine's file says something about its scheduler: statistics do, too.
    told: bool,
    done: Scheduling,
}

/// What the scheduler has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduling {
    /// How often a processor has changed to another thread.
    pub switches: u64,
    /// How often a thread has gone on on another processor of its node, and on another node.
    pub moved: u64,
    /// The second of these.
    pub moved_nodes: u64,
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
    /// Thread 0 runs on a processor; by processor, `node_of` has the node.
    #[must_use]
    pub fn new(part: &SchedulerPart, node_of: Vec<usize>, first: usize) -> Self {
        let mut all: Vec<Processor> = node_of.iter().map(|_| Processor::default()).collect();
        let slice = part.slice * NANOSECOND;
        let mut last = vec![None; all.len()];
        (all[first].running, last[first]) = (Some(0), Some(0));
        all[first].slice_end = slice;
        Self {
            processors: all,
            ready: BinaryHeap::new(),
            deadlines: BTreeSet::new(),
            left: None,
            current: first,
            last,
            slice,
            switch: part.switch * NANOSECOND,
            dispatch: Dispatch::new(part, node_of, first).map(Box::new),
            bound: BTreeSet::new(),
            told: *part != SchedulerPart::default(),
            done: Scheduling::default(),
        }
    }

    /// What it has done up to now; nothing if the machine's file says nothing about its scheduler.
    #[must_use]
    pub fn done(&self) -> Scheduling {
        if self.told { self.done } else { Scheduling::default() }
    }

    /// A thread stays on the processor where it starts.
    pub fn bind(&mut self, thread: ThreadId) {
        self.bound.insert(thread);
    }

    /// The processor where a new thread starts that would usually do so on `usual`.
    pub fn start(&mut self, thread: ThreadId, usual: usize) -> usize {
        if self.bound.contains(&thread) {
            return usual;
        }
        let idle = self.idle();
        self.dispatch.as_mut().map_or(usual, |dispatch| dispatch.start(usual, &idle))
    }

    /// By processor: since when it has nothing to do.
    fn idle(&self) -> Vec<Option<Time>> {
        if self.dispatch.is_none() {
            return vec![];
        }
        let idle = |of: &Processor| of.running.is_none().then_some(of.time);
        self.processors.iter().map(idle).collect()
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
        if let Some(dispatch) = &self.dispatch {
            let runs = self.processors.iter().any(|processor| processor.running == Some(thread));
            if runs || dispatch.has(thread) {
                return true;
            }
        }
        let processor = &self.processors[processor];
        processor.running == Some(thread) || processor.waiting.iter().any(|(_, waiting)| *waiting == thread)
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
        let dispatch = self.dispatch.as_ref();
        (!processor.waiting.is_empty() || dispatch.is_some_and(|all| all.first(self.current).is_some()))
            && now >= processor.slice_end
    }

    /// The current thread goes on later; with `give_way`, after those that wait for its processor.
    #[inline]
    pub fn leave(&mut self, now: Time, give_way: bool) {
        let processor = &mut self.processors[self.current];
        processor.time = now;
        let from = if give_way || now >= processor.slice_end { self.rotate(now) } else { now };
        self.left = Some(Reverse(Turn::new(from, self.current)));
    }

    /// The current thread waits behind others for its processor, if there are some. Returns the processor's time.
    #[cold]
    #[inline(never)]
    fn rotate(&mut self, now: Time) -> Time {
        if let Some((from, next)) = self.take(self.current, now) {
            if let Some(thread) = self.processors[self.current].running.take() {
                self.put_behind(thread, now);
            }
            self.run(next, self.current, from);
        }
        self.processors[self.current].time
    }

    /// Takes the thread that has waited longest for a processor, and since when it can run there.
    fn take(&mut self, number: usize, now: Time) -> Option<(Time, ThreadId)> {
        let waiting = &mut self.processors[number].waiting;
        let own = waiting.front().map(|(since, _)| *since);
        match &mut self.dispatch {
            Some(dispatch)
                if dispatch.first(number).is_some_and(|since| own.is_none_or(|own| since < own)) =>
            {
                dispatch.pop(number).map(|(since, thread)| (since.max(now), thread))
            }
            _ => waiting.pop_front().map(|(_, thread)| (now, thread)),
        }
    }

    /// A thread of the current processor waits behind all others.
    fn put_behind(&mut self, thread: ThreadId, now: Time) {
        match &mut self.dispatch {
            Some(dispatch) if !self.bound.contains(&thread) => dispatch.push_from(self.current, thread, now),
            _ => self.processors[self.current].waiting.push_back((now, thread)),
        }
    }

    /// A thread gets a processor, which has had none since `at` at the latest.
    fn run(&mut self, thread: ThreadId, number: usize, at: Time) {
        let processor = &mut self.processors[number];
        processor.running = Some(thread);
        processor.time = processor.time.max(at);
        if self.last[number].replace(thread).is_some_and(|last| last != thread) {
            processor.time += self.switch;
            self.done.switches += 1;
        }
        processor.slice_end = processor.time + self.slice;
    }

    /// The current thread waits, until a time at most if one is given, or has ended.
    pub fn stop(&mut self, now: Time, deadline: Option<Time>) {
        let processor = &mut self.processors[self.current];
        processor.time = now;
        let stopped = processor.running.take();
        if let (Some(thread), Some(deadline)) = (stopped, deadline) {
            self.deadlines.insert((deadline.max(now), thread));
        }
        let next = self.take(self.current, now).or_else(|| {
            let idle = self.idle();
            let stolen = self.dispatch.as_mut().and_then(|dispatch| dispatch.steal(self.current, &idle));
            stolen.map(|(since, thread)| (since.max(now), thread))
        });
        if let Some((from, thread)) = next {
            self.run(thread, self.current, from);
            self.ready.push(Reverse(Turn::new(self.processors[self.current].time, self.current)));
        }
    }

    /// A thread that waited, or is new, can run from a time on; on a processor, or where the policy has it that ran
    /// there last.
    pub fn wake(&mut self, thread: ThreadId, number: usize, at: Time, deadline: Option<Time>) {
        if let Some(deadline) = deadline {
            self.deadlines.remove(&(deadline, thread));
        }
        let idle = self.idle();
        let target = self.dispatch.as_ref().filter(|_| !self.bound.contains(&thread));
        match target.map(|dispatch| dispatch.target(number, &idle)) {
            Some(target) => self.send(thread, target, at),
            None if self.processors[number].running.is_some() => {
                self.processors[number].waiting.push_back((at, thread));
            }
            None => self.send(thread, Target::Idle(number), at),
        }
    }

    fn send(&mut self, thread: ThreadId, target: Target, at: Time) {
        match (target, &mut self.dispatch) {
            (Target::Queue(queue), Some(dispatch)) => dispatch.push(queue, thread, at),
            (Target::Idle(number), _) => {
                self.run(thread, number, at);
                self.ready.push(Reverse(Turn::new(self.processors[number].time, number)));
            }
            (Target::Queue(_), None) => unreachable!("queues are those of a dispatch"),
        }
    }

    /// True if threads may change processors.
    #[inline]
    #[must_use]
    pub fn moves_threads(&self) -> bool {
        self.dispatch.is_some()
    }

    /// A thread goes on on a processor, that ran on another one last.
    pub fn count_move(&mut self, from: usize, to: usize) {
        let Some(dispatch) = self.dispatch.as_ref().filter(|_| from != to) else { return };
        let leaves = dispatch.node_of(from) != dispatch.node_of(to);
        *if leaves { &mut self.done.moved_nodes } else { &mut self.done.moved } += 1;
    }

    /// Moves a thread if the loads of the nodes are to be compared, and differ too much.
    #[cold]
    #[inline(never)]
    fn balance(&mut self) {
        let first = self.ready.peek().into_iter().chain(&self.left).map(|Reverse(turn)| turn.time()).min();
        let (Some(dispatch), Some(now)) = (&self.dispatch, first) else { return };
        if dispatch.is_due(now) {
            let idle = self.idle();
            if let Some((thread, target)) =
                self.dispatch.as_mut().and_then(|dispatch| dispatch.balance(now, &idle))
            {
                self.send(thread, target, now);
            }
        }
    }

    /// Chooses who runs now. The current thread has left or stopped.
    pub fn choose(&mut self) -> Next {
        if self.dispatch.is_some() {
            self.balance();
        }
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
    use crate::system_parts::SchedulerPolicy;

    /// 10 ms.
    const SLICE: Time = 10_000_000_000;

    fn schedule(processors: usize) -> Schedule {
        Schedule::new(&SchedulerPart::default(), vec![0; processors], 0)
    }

    /// Two nodes of two processors; changing takes 5 ns.
    fn with(policy: SchedulerPolicy) -> Schedule {
        let part = SchedulerPart { policy, switch: 5, imbalance: 1, period: 1, ..SchedulerPart::default() };
        Schedule::new(&part, vec![0, 0, 1, 1], 0)
    }

    #[test]
    fn the_processor_with_the_least_time_runs() {
        let mut schedule = schedule(3);
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
        let mut schedule = schedule(1);
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
        let mut schedule = schedule(2);
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

    #[test]
    fn a_thread_that_waits_gets_another_processor() {
        let mut schedule = with(SchedulerPolicy::Affinity);
        schedule.wake(1, 0, 100, None);
        schedule.leave(200, false);
        assert_eq!(schedule.choose(), Next::Run(1, 1, 100), "its own one is in use");
        schedule.stop(150, None);
        assert_eq!(schedule.choose(), Next::Run(0, 0, 200));
        schedule.wake(1, 1, 250, None);
        schedule.wake(2, 1, 260, None);
        schedule.wake(3, 1, 270, None);
        schedule.wake(4, 1, 280, None);
        assert!(schedule.can_run(4, 1) && schedule.can_run(3, 1) && !schedule.can_run(5, 1));
        schedule.stop(300, None);
        // Thread 4 waits for all; processor 0 changes to it.
        let chosen: Vec<Next> = (0..4)
            .map(|_| {
                let next = schedule.choose();
                if let Next::Run(_, _, time) = next {
                    schedule.stop(time, None);
                }
                next
            })
            .collect();
        let expected = [(1, 1, 250), (2, 2, 260), (3, 3, 270), (4, 0, 300 + 5000)];
        assert_eq!(chosen, expected.map(|(thread, processor, time)| Next::Run(thread, processor, time)));
        assert_eq!((schedule.choose(), schedule.done().switches), (Next::Nobody, 1));
    }

    #[test]
    fn threads_of_a_node_take_turns_on_its_processors() {
        let mut schedule = with(SchedulerPolicy::Static);
        schedule.wake(1, 1, 0, None);
        schedule.wake(2, 0, 0, None);
        assert!(!schedule.shares(SLICE - 1) && schedule.shares(SLICE));
        schedule.leave(SLICE, false);
        assert_eq!(schedule.choose(), Next::Run(1, 1, 0));
        schedule.leave(SLICE + 10, false);
        assert_eq!(schedule.choose(), Next::Run(2, 0, SLICE + 5000));
        schedule.count_move(0, 1);
        schedule.count_move(1, 2);
        schedule.count_move(2, 2);
        assert_eq!(schedule.done(), Scheduling { switches: 2, moved: 1, moved_nodes: 1 });
    }

    #[test]
    fn a_bound_thread_stays() {
        let mut schedule = with(SchedulerPolicy::Float);
        schedule.bind(1);
        assert_eq!(schedule.start(1, 0), 0);
        schedule.wake(1, 0, 10, None);
        schedule.wake(2, 0, 20, None);
        schedule.leave(30, true);
        assert_eq!(schedule.choose(), Next::Run(2, 1, 20));
        schedule.stop(40, None);
        assert_eq!(schedule.choose(), Next::Run(1, 0, 30 + 5000));
    }

    #[test]
    fn a_thread_moves_when_loads_are_compared() {
        let mut schedule = with(SchedulerPolicy::Dynamic);
        for thread in [1, 2] {
            schedule.wake(thread, 1, 0, None);
        }
        schedule.leave(500, false);
        assert_eq!(schedule.choose(), Next::Run(1, 1, 0));
        schedule.leave(2000, false);
        assert_eq!(schedule.choose(), Next::Run(0, 0, 500), "not yet");
        schedule.leave(1500, false);
        assert_eq!(schedule.choose(), Next::Run(0, 0, 1500), "thread 2 is on processor 2 now");
        schedule.leave(1600, false);
        assert_eq!(schedule.choose(), Next::Run(2, 2, 1500));
    }
}
