//! Run queues for threads that may move between processors, and the policies by which they do.

use crate::Time;
use crate::schedule::ThreadId;
use crate::system_parts::{SchedulerPart, SchedulerPolicy};
use std::collections::VecDeque;

/// The processors that a thread may run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed(u128);

impl Allowed {
    /// All of them.
    pub const ALL: Self = Self(u128::MAX);

    /// Those with these numbers, less than 128.
    #[must_use]
    pub fn new(processors: impl IntoIterator<Item = usize>) -> Self {
        Self(processors.into_iter().fold(0, |set, processor| set | 1 << processor))
    }

    /// True if this one is among them.
    #[inline]
    #[must_use]
    pub fn has(self, processor: usize) -> bool {
        self.0 >> processor & 1 == 1
    }
}

/// A thread that waits for a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub since: Time,
    pub thread: ThreadId,
    pub allowed: Allowed,
}

/// Where a thread that can run goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// To a processor that has nothing to do.
    Idle(usize),
    /// To the queue of a node; of the machine, with the policies that know no nodes.
    Queue(usize),
}

/// The queues.
#[derive(Debug)]
pub(crate) struct Dispatch {
    policy: SchedulerPolicy,
    /// By how many threads a node may have more than another one.
    imbalance: u64,
    period: Time,
    /// When the loads are compared next.
    next: Time,
    /// By processor.
    node_of: Vec<usize>,
    queues: Vec<VecDeque<Waiting>>,
    /// By node: threads that have started there.
    started: Vec<u64>,
    /// From one measurement of the loads by which threads start to the next.
    measure: Time,
    /// When they are measured next, and by node what has been measured.
    measured: (Time, Vec<u64>),
}

impl Dispatch {
    /// None if all threads stay on their processors. The first one starts on `first`.
    pub(crate) fn new(part: &SchedulerPart, node_of: Vec<usize>, first: usize) -> Option<Self> {
        let nodes = node_of.iter().max().map_or(1, |last| last + 1);
        let all = matches!(part.policy, SchedulerPolicy::Float | SchedulerPolicy::Affinity);
        let mut started = vec![0; nodes];
        started[node_of[first]] = 1;
        (part.policy != SchedulerPolicy::Bound).then(|| Self {
            policy: part.policy,
            imbalance: part.imbalance,
            period: part.period * crate::NANOSECOND,
            next: part.period * crate::NANOSECOND,
            node_of,
            queues: vec![VecDeque::new(); if all { 1 } else { nodes }],
            measure: part.measure * crate::NANOSECOND,
            measured: (0, vec![0; nodes]),
            started,
        })
    }

    /// The queue of a processor.
    fn queue_of(&self, processor: usize) -> usize {
        if self.queues.len() == 1 { 0 } else { self.node_of[processor] }
    }

    /// The node of a processor.
    pub(crate) fn node_of(&self, processor: usize) -> usize {
        self.node_of[processor]
    }

    /// Threads that run or wait, by node; `idle` has the times since when processors have nothing to do.
    fn loads(&self, idle: &[Option<Time>]) -> Vec<u64> {
        let mut loads = vec![0; self.started.len()];
        for (node, idle) in self.node_of.iter().zip(idle) {
            loads[*node] += u64::from(idle.is_none());
        }
        if self.queues.len() == loads.len() {
            loads.iter_mut().zip(&self.queues).for_each(|(load, queue)| *load += queue.len() as u64);
        }
        loads
    }

    /// Of the processors of a node, or of all, that has had nothing to do for the longest.
    fn longest_idle(&self, idle: &[Option<Time>], node: Option<usize>, allowed: Allowed) -> Option<usize> {
        let here = (0..idle.len()).filter(|at| node.is_none_or(|node| self.node_of[*at] == node));
        here.filter(|at| allowed.has(*at)).filter_map(|at| Some((idle[at]?, at))).min().map(|(_, at)| at)
    }

    /// Nodes with processors that a thread may run on.
    fn nodes(&self, allowed: Allowed) -> impl Iterator<Item = usize> {
        let has = move |node| (0..self.node_of.len()).any(|at| self.node_of[at] == node && allowed.has(at));
        (0..self.started.len()).filter(move |node| has(*node))
    }

    /// The processor on which a new thread starts at this time, that the machine's other policy would have on `usual`.
    pub(crate) fn start(
        &mut self,
        usual: usize,
        idle: &[Option<Time>],
        allowed: Allowed,
        now: Time,
    ) -> usize {
        let balances = matches!(self.policy, SchedulerPolicy::Static | SchedulerPolicy::Dynamic);
        let loads = self.measured_loads(idle, now);
        let least = self.nodes(allowed).min_by_key(|node| (loads[*node], self.started[*node]));
        let stays = !balances && allowed.has(usual);
        let node = least.filter(|_| !stays).unwrap_or(self.node_of[usual]);
        self.started[node] += 1;
        if node == self.node_of[usual] && allowed.has(usual) {
            return usual;
        }
        let first = || (0..self.node_of.len()).find(|at| self.node_of[*at] == node && allowed.has(*at));
        self.longest_idle(idle, Some(node), allowed).or_else(first).unwrap_or(usual)
    }

    /// The loads as the system knows them at this time.
    fn measured_loads(&mut self, idle: &[Option<Time>], now: Time) -> Vec<u64> {
        if self.measure == 0 {
            return self.loads(idle);
        }
        if now >= self.measured.0 {
            self.measured = (now + self.measure, self.loads(idle));
        }
        self.measured.1.clone()
    }

    /// Where a thread goes that ran on a processor last.
    pub(crate) fn target(&self, last: usize, idle: &[Option<Time>], allowed: Allowed) -> Target {
        let mine = self.node_of[last];
        if self.policy != SchedulerPolicy::Float && idle[last].is_some() && allowed.has(last) {
            return Target::Idle(last);
        }
        match self.policy {
            SchedulerPolicy::Float | SchedulerPolicy::Affinity => {
                self.longest_idle(idle, None, allowed).map_or(Target::Queue(0), Target::Idle)
            }
            _ if !self.nodes(allowed).any(|node| node == mine) => self.least_loaded(None, idle, allowed),
            _ => match self.longest_idle(idle, Some(mine), allowed) {
                Some(other) => Target::Idle(other),
                None if self.policy == SchedulerPolicy::Hierarchical => {
                    self.least_loaded(Some(mine), idle, allowed)
                }
                None => Target::Queue(mine),
            },
        }
    }

    /// Another node if the imbalance with this one is too great, or if there is none.
    fn least_loaded(&self, mine: Option<usize>, idle: &[Option<Time>], allowed: Allowed) -> Target {
        let loads = self.loads(idle);
        let least = self.nodes(allowed).min_by_key(|node| loads[*node]).or(mine).unwrap_or(0);
        match mine {
            Some(mine) if loads[mine] <= loads[least] + self.imbalance => Target::Queue(mine),
            _ => self.longest_idle(idle, Some(least), allowed).map_or(Target::Queue(least), Target::Idle),
        }
    }

    /// A thread waits in a queue.
    pub(crate) fn push(&mut self, queue: usize, waiting: Waiting) {
        self.queues[queue].push_back(waiting);
    }

    /// A thread that had its share of a processor waits behind the others.
    pub(crate) fn push_from(&mut self, processor: usize, waiting: Waiting) {
        self.push(self.queue_of(processor), waiting);
    }

    /// Since when the first thread for a processor waits.
    pub(crate) fn first(&self, processor: usize) -> Option<Time> {
        let mut queue = self.queues[self.queue_of(processor)].iter();
        queue.find(|waiting| waiting.allowed.has(processor)).map(|waiting| waiting.since)
    }

    /// Takes the first thread for a processor.
    pub(crate) fn pop(&mut self, processor: usize) -> Option<Waiting> {
        let queue = self.queue_of(processor);
        self.pop_from(queue, |allowed| allowed.has(processor))
    }

    /// Takes the first thread of a queue that may run where it is wanted.
    fn pop_from(&mut self, queue: usize, wanted: impl Fn(Allowed) -> bool) -> Option<Waiting> {
        let at = self.queues[queue].iter().position(|waiting| wanted(waiting.allowed))?;
        self.queues[queue].remove(at)
    }

    /// Takes a thread of another node for a processor that would have nothing to do, if the imbalance is too great.
    pub(crate) fn steal(&mut self, processor: usize, idle: &[Option<Time>]) -> Option<Waiting> {
        if self.policy != SchedulerPolicy::Hierarchical {
            return None;
        }
        let loads = self.loads(idle);
        let most = (0..loads.len()).max_by_key(|node| (loads[*node], usize::MAX - node))?;
        let over = loads[most] > loads[self.node_of[processor]] + self.imbalance;
        if over { self.pop_from(most, |allowed| allowed.has(processor)) } else { None }
    }

    /// Takes a thread out of the queues if it waits in one.
    pub(crate) fn withdraw(&mut self, thread: ThreadId) -> Option<Waiting> {
        let mut queues = self.queues.iter_mut();
        queues.find_map(|queue| queue.remove(queue.iter().position(|waiting| waiting.thread == thread)?))
    }

    /// True if a thread waits in some queue.
    pub(crate) fn has(&self, thread: ThreadId) -> bool {
        self.queues.iter().flatten().any(|waiting| waiting.thread == thread)
    }

    /// True if the loads are to be compared at this time.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.policy == SchedulerPolicy::Dynamic && now >= self.next
    }

    /// Compares the loads: a thread of the node with most of them that waits, and where it goes, if the imbalance is too
    /// great.
    pub(crate) fn balance(&mut self, now: Time, idle: &[Option<Time>]) -> Option<(Waiting, Target)> {
        self.next = now + self.period;
        let loads = self.loads(idle);
        let least = (0..loads.len()).min_by_key(|node| loads[*node])?;
        let most = (0..loads.len()).max_by_key(|node| (loads[*node], usize::MAX - node))?;
        if loads[most] <= loads[least] + self.imbalance {
            return None;
        }
        let there = Allowed::new((0..self.node_of.len()).filter(|at| self.node_of[*at] == least));
        let moved = self.pop_from(most, |allowed| allowed.0 & there.0 != 0)?;
        let idle = self.longest_idle(idle, Some(least), moved.allowed);
        Some((moved, idle.map_or(Target::Queue(least), Target::Idle)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes of two processors.
    fn dispatch(policy: SchedulerPolicy) -> Dispatch {
        let part = SchedulerPart { policy, imbalance: 1, period: 1, ..SchedulerPart::default() };
        Dispatch::new(&part, vec![0, 0, 1, 1], 0).unwrap()
    }

    fn waiting(thread: ThreadId, since: Time) -> Waiting {
        Waiting { since, thread, allowed: Allowed::ALL }
    }

    /// Processors that run threads; the others have been idle since 0.
    fn busy(processors: [bool; 4]) -> [Option<Time>; 4] {
        processors.map(|busy| (!busy).then_some(0))
    }

    fn targets(policy: SchedulerPolicy, last: usize) -> [Target; 4] {
        let dispatch = dispatch(policy);
        [[false; 4], [true, false, false, false], [true, true, true, false], [true; 4]]
            .map(|processors| dispatch.target(last, &busy(processors), Allowed::ALL))
    }

    #[test]
    fn threads_go_where_the_policy_says() {
        use Target::{Idle, Queue};
        assert_eq!(targets(SchedulerPolicy::Float, 3), [Idle(0), Idle(1), Idle(3), Queue(0)]);
        assert_eq!(targets(SchedulerPolicy::Affinity, 0), [Idle(0), Idle(1), Idle(3), Queue(0)]);
        assert_eq!(targets(SchedulerPolicy::Hierarchical, 0), [Idle(0), Idle(1), Queue(0), Queue(0)]);
        assert_eq!(targets(SchedulerPolicy::Static, 2), [Idle(2), Idle(2), Idle(3), Queue(1)]);
        assert!(Dispatch::new(&SchedulerPart::default(), vec![0], 0).is_none(), "bound");
    }

    #[test]
    fn a_hierarchy_leaves_its_node_when_the_imbalance_is_too_great() {
        let mut dispatch = dispatch(SchedulerPolicy::Hierarchical);
        let three = busy([true, true, true, false]);
        assert_eq!(dispatch.target(0, &three, Allowed::ALL), Target::Queue(0), "2 and 1");
        dispatch.push(0, waiting(7, 10));
        assert_eq!(dispatch.target(0, &three, Allowed::ALL), Target::Idle(3), "3 and 1");
        assert_eq!(dispatch.target(0, &busy([true; 4]), Allowed::ALL), Target::Queue(0), "3 and 2");
        dispatch.push(0, waiting(8, 20));
        assert_eq!(dispatch.target(0, &busy([true; 4]), Allowed::ALL), Target::Queue(1), "4 and 2");
        assert_eq!(dispatch.steal(3, &busy([true, true, true, false])), Some(waiting(7, 10)));
        assert_eq!(dispatch.steal(3, &busy([true, true, true, false])), Some(waiting(8, 20)), "3 and 1");
        dispatch.push(0, waiting(8, 20));
        assert_eq!(dispatch.steal(3, &busy([true, false, true, false])), None, "2 and 1");
        assert!(dispatch.has(8) && !dispatch.has(7));
        assert_eq!(
            (dispatch.first(1), dispatch.first(2), dispatch.pop(1)),
            (Some(20), None, Some(waiting(8, 20)))
        );
    }

    #[test]
    fn loads_are_balanced_at_the_start_and_from_time_to_time() {
        let mut fixed = dispatch(SchedulerPolicy::Static);
        assert_eq!(
            [0, 1, 2].map(|_| fixed.start(0, &busy([false; 4]), Allowed::ALL, 0)),
            [2, 0, 2],
            "by turns"
        );
        assert_eq!(fixed.start(0, &busy([true, true, true, false]), Allowed::ALL, 0), 3);
        assert!(!fixed.is_due(u64::MAX));
        let mut dynamic = dispatch(SchedulerPolicy::Dynamic);
        assert!(!dynamic.is_due(999) && dynamic.is_due(1000));
        dynamic.push(0, waiting(5, 0));
        assert_eq!(dynamic.balance(1000, &busy([true, true, true, true])), None, "3 and 2");
        assert!(!dynamic.is_due(1999) && dynamic.is_due(2000));
        dynamic.push(0, waiting(6, 0));
        assert_eq!(dynamic.balance(2000, &busy([true; 4])), Some((waiting(5, 0), Target::Queue(1))));
        assert_eq!(
            dynamic.balance(3000, &busy([true, true, false, true])),
            Some((waiting(6, 0), Target::Idle(2)))
        );
    }

    #[test]
    fn the_processor_that_has_been_idle_for_the_longest_comes_first() {
        let dispatch = dispatch(SchedulerPolicy::Float);
        assert_eq!(dispatch.target(0, &[Some(30), None, Some(20), Some(20)], Allowed::ALL), Target::Idle(2));
        let idle = [Some(30), None, Some(20), Some(20)];
        assert_eq!(dispatch.longest_idle(&idle, Some(0), Allowed::ALL), Some(0));
    }

    #[test]
    fn threads_go_only_where_they_may() {
        let mut dispatch = dispatch(SchedulerPolicy::Dynamic);
        let second = Allowed::new([2, 3]);
        assert_eq!(dispatch.start(0, &busy([false; 4]), second, 0), 2);
        assert_eq!(dispatch.start(0, &busy([false; 4]), Allowed::new([1]), 0), 1);
        assert_eq!(dispatch.target(0, &busy([false, false, true, false]), second), Target::Idle(3));
        assert_eq!(dispatch.target(0, &busy([false, false, true, true]), second), Target::Queue(1));
        assert_eq!(
            dispatch.target(2, &busy([false, false, true, false]), Allowed::new([2])),
            Target::Queue(1)
        );
        dispatch.push(1, Waiting { since: 5, thread: 8, allowed: Allowed::new([2]) });
        dispatch.push(1, Waiting { since: 6, thread: 9, allowed: second });
        assert_eq!((dispatch.first(2), dispatch.first(3)), (Some(5), Some(6)));
        assert_eq!(
            dispatch.balance(1000, &busy([false, false, true, true])),
            None,
            "both stay on the second node"
        );
        assert_eq!(dispatch.pop(3).map(|waiting| waiting.thread), Some(9));
        assert_eq!((dispatch.pop(3), dispatch.withdraw(8).map(|waiting| waiting.since)), (None, Some(5)));
    }

    #[test]
    fn loads_are_as_old_as_their_measurement() {
        let part = SchedulerPart { policy: SchedulerPolicy::Static, measure: 1, ..SchedulerPart::default() };
        let mut dispatch = Dispatch::new(&part, vec![0, 0, 1, 1], 0).unwrap();
        let full = busy([false, true, true, true]);
        let mut start = |now| dispatch.start(0, &full, Allowed::ALL, now);
        assert_eq!([start(0), start(10), start(999)], [0; 3], "the second node has more");
        let mut start = |now| dispatch.start(0, &busy([true; 4]), Allowed::ALL, now);
        assert_eq!(start(999), 0, "as measured");
        assert_eq!(start(1000), 2, "alike, and fewer threads have started there");
    }
}
