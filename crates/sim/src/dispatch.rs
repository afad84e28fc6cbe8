//! Run queues for threads that may move between processors, and the policies by which they do.

use crate::Time;
use crate::schedule::ThreadId;
use crate::system_parts::{SchedulerPart, SchedulerPolicy};
use std::collections::VecDeque;

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
    /// Threads with the times since when they wait.
    queues: Vec<VecDeque<(Time, ThreadId)>>,
    /// By node: threads that have started there.
    started: Vec<u64>,
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

    /// The processor of a node, or of all, that has had nothing to do for the longest.
    fn longest_idle(&self, idle: &[Option<Time>], node: Option<usize>) -> Option<usize> {
        let here = (0..idle.len()).filter(|at| node.is_none_or(|node| self.node_of[*at] == node));
        here.filter_map(|at| Some((idle[at]?, at))).min().map(|(_, at)| at)
    }

    /// The processor on which a new thread starts, that the machine's other policy would have on `usual`.
    pub(crate) fn start(&mut self, usual: usize, idle: &[Option<Time>]) -> usize {
        let balances = matches!(self.policy, SchedulerPolicy::Static | SchedulerPolicy::Dynamic);
        let loads = self.loads(idle);
        let least = (0..loads.len()).min_by_key(|node| (loads[*node], self.started[*node]));
        let node = least.filter(|_| balances).unwrap_or(self.node_of[usual]);
        self.started[node] += 1;
        if node == self.node_of[usual] {
            return usual;
        }
        let first = || self.node_of.iter().position(|of| *of == node);
        self.longest_idle(idle, Some(node)).or_else(first).unwrap_or(usual)
    }

    /// Where a thread goes that ran on a processor last.
    pub(crate) fn target(&self, last: usize, idle: &[Option<Time>]) -> Target {
        let mine = self.node_of[last];
        if self.policy != SchedulerPolicy::Float && idle[last].is_some() {
            return Target::Idle(last);
        }
        match self.policy {
            SchedulerPolicy::Float | SchedulerPolicy::Affinity => {
                self.longest_idle(idle, None).map_or(Target::Queue(0), Target::Idle)
            }
            _ => match self.longest_idle(idle, Some(mine)) {
                Some(other) => Target::Idle(other),
                None if self.policy == SchedulerPolicy::Hierarchical => self.least_loaded(mine, idle),
                None => Target::Queue(mine),
            },
        }
    }

    /// Another node if the imbalance is too great, else this one.
    fn least_loaded(&self, mine: usize, idle: &[Option<Time>]) -> Target {
        let loads = self.loads(idle);
        let least = (0..loads.len()).min_by_key(|node| loads[*node]).unwrap_or(mine);
        if loads[mine] <= loads[least] + self.imbalance {
            return Target::Queue(mine);
        }
        self.longest_idle(idle, Some(least)).map_or(Target::Queue(least), Target::Idle)
    }

    /// A thread waits in a queue.
    pub(crate) fn push(&mut self, queue: usize, thread: ThreadId, since: Time) {
        self.queues[queue].push_back((since, thread));
    }

    /// A thread that had its share of a processor waits behind the others.
    pub(crate) fn push_from(&mut self, processor: usize, thread: ThreadId, since: Time) {
        self.push(self.queue_of(processor), thread, since);
    }

    /// Since when the first thread for a processor waits.
    pub(crate) fn first(&self, processor: usize) -> Option<Time> {
        self.queues[self.queue_of(processor)].front().map(|(since, _)| *since)
    }

    /// Takes the first thread for a processor.
    pub(crate) fn pop(&mut self, processor: usize) -> Option<(Time, ThreadId)> {
        let queue = self.queue_of(processor);
        self.queues[queue].pop_front()
    }

    /// Takes a thread of another node for a processor that would have nothing to do, if the imbalance is too great.
    pub(crate) fn steal(&mut self, processor: usize, idle: &[Option<Time>]) -> Option<(Time, ThreadId)> {
        if self.policy != SchedulerPolicy::Hierarchical {
            return None;
        }
        let loads = self.loads(idle);
        let most = (0..loads.len()).max_by_key(|node| (loads[*node], usize::MAX - node))?;
        let over = loads[most] > loads[self.node_of[processor]] + self.imbalance;
        if over { self.queues[most].pop_front() } else { None }
    }

    /// True if a thread waits in some queue.
    pub(crate) fn has(&self, thread: ThreadId) -> bool {
        self.queues.iter().flatten().any(|(_, waiting)| *waiting == thread)
    }

    /// True if the loads are to be compared at this time.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.policy == SchedulerPolicy::Dynamic && now >= self.next
    }

    /// Compares the loads: a thread of the node with most of them that waits, and where it goes, if the imbalance is too
    /// great.
    pub(crate) fn balance(&mut self, now: Time, idle: &[Option<Time>]) -> Option<(ThreadId, Target)> {
        self.next = now + self.period;
        let loads = self.loads(idle);
        let least = (0..loads.len()).min_by_key(|node| loads[*node])?;
        let most = (0..loads.len()).max_by_key(|node| (loads[*node], usize::MAX - node))?;
        if loads[most] <= loads[least] + self.imbalance {
            return None;
        }
        let (_, thread) = self.queues[most].pop_front()?;
        Some((thread, self.longest_idle(idle, Some(least)).map_or(Target::Queue(least), Target::Idle)))
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

    /// Processors that run threads; the others have been idle since 0.
    fn busy(processors: [bool; 4]) -> [Option<Time>; 4] {
        processors.map(|busy| (!busy).then_some(0))
    }

    fn targets(policy: SchedulerPolicy, last: usize) -> [Target; 4] {
        let dispatch = dispatch(policy);
        [[false; 4], [true, false, false, false], [true, true, true, false], [true; 4]]
            .map(|processors| dispatch.target(last, &busy(processors)))
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
        assert_eq!(dispatch.target(0, &three), Target::Queue(0), "2 and 1");
        dispatch.push(0, 7, 10);
        assert_eq!(dispatch.target(0, &three), Target::Idle(3), "3 and 1");
        assert_eq!(dispatch.target(0, &busy([true; 4])), Target::Queue(0), "3 and 2");
        dispatch.push(0, 8, 20);
        assert_eq!(dispatch.target(0, &busy([true; 4])), Target::Queue(1), "4 and 2");
        assert_eq!(dispatch.steal(3, &busy([true, true, true, false])), Some((10, 7)));
        assert_eq!(dispatch.steal(3, &busy([true, true, true, false])), Some((20, 8)), "3 and 1");
        dispatch.push(0, 8, 20);
        assert_eq!(dispatch.steal(3, &busy([true, false, true, false])), None, "2 and 1");
        assert!(dispatch.has(8) && !dispatch.has(7));
        assert_eq!((dispatch.first(1), dispatch.first(2), dispatch.pop(1)), (Some(20), None, Some((20, 8))));
    }

    #[test]
    fn loads_are_balanced_at_the_start_and_from_time_to_time() {
        let mut fixed = dispatch(SchedulerPolicy::Static);
        assert_eq!([0, 1, 2].map(|_| fixed.start(0, &busy([false; 4]))), [2, 0, 2], "by turns");
        assert_eq!(fixed.start(0, &busy([true, true, true, false])), 3);
        assert!(!fixed.is_due(u64::MAX));
        let mut dynamic = dispatch(SchedulerPolicy::Dynamic);
        assert!(!dynamic.is_due(999) && dynamic.is_due(1000));
        dynamic.push(0, 5, 0);
        assert_eq!(dynamic.balance(1000, &busy([true, true, true, true])), None, "3 and 2");
        assert!(!dynamic.is_due(1999) && dynamic.is_due(2000));
        dynamic.push(0, 6, 0);
        assert_eq!(dynamic.balance(2000, &busy([true; 4])), Some((5, Target::Queue(1))));
        assert_eq!(dynamic.balance(3000, &busy([true, true, false, true])), Some((6, Target::Idle(2))));
    }

    #[test]
    fn the_processor_that_has_been_idle_for_the_longest_comes_first() {
        let dispatch = dispatch(SchedulerPolicy::Float);
        assert_eq!(dispatch.target(0, &[Some(30), None, Some(20), Some(20)]), Target::Idle(2));
        assert_eq!(dispatch.longest_idle(&[Some(30), None, Some(20), Some(20)], Some(0)), Some(0));
    }
}
