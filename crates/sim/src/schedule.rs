//! Which target thread runs next: on each processor one at a time, on the machine the processor with the least time.

use crate::dispatch::{Allowed, Dispatch, Target, Waiting};
use crate::idle::{Idle, IdleTimes};
use crate::system_parts::SchedulerPart;
use crate::{MAX_PROCESSORS, NANOSECOND, Time};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

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
struct Turn(u64);

impl Turn {
    /// Bits for the number of a processor.
    const BITS: u32 = MAX_PROCESSORS.trailing_zeros();
    /// The last time that has room, which stands for all later ones.
    const LAST: Time = Time::MAX >> Self::BITS;

    fn new(time: Time, processor: usize) -> Self {
        Self(time.min(Self::LAST) << Self::BITS | processor as u64)
    }

    fn time(self) -> Time {
        self.0 >> Self::BITS
    }

    fn processor(self) -> usize {
        (self.0 & ((1 << Self::BITS) - 1)) as usize
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
    /// Processors of threads that may not run on all.
    allowed: BTreeMap<ThreadId, Allowed>,
    idle: Idle,
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
    /// No thread runs before the time is over: 40 hours.
    Over,
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
            idle: Idle::new(node_of.clone()),
            dispatch: Dispatch::new(part, node_of, first).map(Box::new),
            bound: BTreeSet::new(),
            allowed: BTreeMap::new(),
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

    /// A thread may run only on these processors from when it next gets one, except that one that is bound stays where it is.
    pub fn allow(&mut self, thread: ThreadId, allowed: Allowed) {
        self.allowed.insert(thread, allowed);
    }

    /// The processors that a thread may run on.
    #[must_use]
    pub fn allowed(&self, thread: ThreadId) -> Allowed {
        self.allowed.get(&thread).copied().unwrap_or(Allowed::ALL)
    }

    /// True if a thread must leave the processor that it ran on last.
    #[must_use]
    pub fn must_leave(&self, thread: ThreadId, processor: usize) -> bool {
        !self.bound.contains(&thread) && !self.allowed(thread).has(processor)
    }

    /// The processor where a new thread starts at this time that would usually do so on `usual`, or a thread goes on that
    /// stays on its processor but may not any more.
    pub fn start(&mut self, thread: ThreadId, usual: usize, now: Time) -> usize {
        if self.bound.contains(&thread) {
            return usual;
        }
        let (idle, allowed) = (self.idle(), self.allowed(thread));
        match &mut self.dispatch {
            Some(dispatch) => dispatch.start(usual, &idle, allowed, now),
            None if allowed.has(usual) => usual,
            None => {
                let threads = |processor: &usize| {
                    let processor = &self.processors[*processor];
                    processor.waiting.len() + usize::from(processor.running.is_some())
                };
                let all = (0..self.processors.len()).filter(|processor| allowed.has(*processor));
                all.min_by_key(threads).unwrap_or(usual)
            }
        }
    }

    /// A thread that waits for a processor that it may not have any more waits for another one; `number` had it last.
    pub fn withdraw(&mut self, thread: ThreadId, number: usize) -> bool {
        if self.dispatch.as_mut().is_some_and(|dispatch| dispatch.withdraw(thread).is_some()) {
            return true;
        }
        let waiting = &mut self.processors[number].waiting;
        let before = waiting.len();
        waiting.retain(|(_, other)| *other != thread);
        waiting.len() < before
    }

    /// By node: for how long its processors had no thread up to this time.
    #[must_use]
    pub fn idle_times(&self, end: Time) -> Vec<IdleTimes> {
        let without = self.processors.iter().enumerate().filter(|(_, processor)| processor.running.is_none());
        self.idle.at_end(without.map(|(number, processor)| (number, processor.time)), end)
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
                dispatch.pop(number).map(|next| (next.since.max(now), next.thread))
            }
            _ => waiting.pop_front().map(|(_, thread)| (now, thread)),
        }
    }

    /// A thread of the current processor waits behind all others.
    fn put_behind(&mut self, thread: ThreadId, now: Time) {
        match &mut self.dispatch {
            Some(dispatch) if !self.bound.contains(&thread) => {
                let allowed = self.allowed.get(&thread).copied().unwrap_or(Allowed::ALL);
                dispatch.push_from(self.current, Waiting { since: now, thread, allowed });
            }
            _ => self.processors[self.current].waiting.push_back((now, thread)),
        }
    }

    /// A thread gets a processor, which has had none since `at` at the latest.
    fn run(&mut self, thread: ThreadId, number: usize, at: Time) {
        let processor = &mut self.processors[number];
        self.idle.end(number, processor.time, at);
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
            self.idle.sleeps(thread, self.current, now);
        }
        self.idle.begin(self.current, now);
        let next = self.take(self.current, now).or_else(|| {
            let idle = self.idle();
            let stolen = self.dispatch.as_mut().and_then(|dispatch| dispatch.steal(self.current, &idle));
            stolen.map(|next| (next.since.max(now), next.thread))
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
        self.idle.wakes(thread, at);
        let idle = self.idle();
        let target = self.dispatch.as_ref().filter(|_| !self.bound.contains(&thread));
        match target.map(|dispatch| dispatch.target(number, &idle, self.allowed(thread))) {
            Some(target) => self.send(thread, target, at),
            None if self.processors[number].running.is_some() => {
                self.processors[number].waiting.push_back((at, thread));
            }
            None => self.send(thread, Target::Idle(number), at),
        }
    }

    fn send(&mut self, thread: ThreadId, target: Target, at: Time) {
        match (target, &mut self.dispatch) {
            (Target::Queue(queue), Some(dispatch)) => {
                let allowed = self.allowed.get(&thread).copied().unwrap_or(Allowed::ALL);
                dispatch.push(queue, Waiting { since: at, thread, allowed });
            }
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
            let moved = self.dispatch.as_mut().and_then(|dispatch| dispatch.balance(now, &idle));
            if let Some((moved, target)) = moved {
                self.send(moved.thread, target, now);
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
        if time == Turn::LAST {
            return Next::Over;
        }
        self.current = number;
        let thread = self.processors[number].running.expect("a ready processor has a thread");
        Next::Run(thread, number, time)
    }
}

#[cfg(test)]
mod tests;
