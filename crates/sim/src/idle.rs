//! For how long processors have no thread, and for how long of that a thread of their node sleeps: as `sar` has `%idle` and `%wio`.

use crate::Time;
use crate::schedule::ThreadId;

/// Of a node: sums over its processors, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdleTimes {
    /// Without a thread to run.
    pub idle: Time,
    /// The part of it in which at least one thread that ran on the node last waited for a moment, as those do that
    /// wait for a disk.
    pub asleep: Time,
}

impl IdleTimes {
    /// A thread may wait until the end of time.
    fn add(&mut self, more: Self) {
        self.idle = self.idle.saturating_add(more.idle);
        self.asleep = self.asleep.saturating_add(more.asleep);
    }
}

/// Sleeping threads of a node, and for how long there has been one.
#[derive(Debug, Default)]
struct Sleepers {
    count: u64,
    since: Time,
    total: Time,
}

impl Sleepers {
    /// For how long there has been one up to a time. Processors are ahead of each other by a quantum, so `since` may be later.
    fn until(&self, now: Time) -> Time {
        self.total + if self.count > 0 { now.saturating_sub(self.since) } else { 0 }
    }
}

/// The account of a machine's processors.
#[derive(Debug)]
pub(crate) struct Idle {
    node_of: Vec<usize>,
    nodes: Vec<(IdleTimes, Sleepers)>,
    /// By processor: for how long its node had had a sleeper when it last lost its thread.
    lost: Vec<Time>,
    /// By thread that sleeps: its node.
    asleep: Vec<Option<usize>>,
}

impl Idle {
    pub(crate) fn new(node_of: Vec<usize>) -> Self {
        let nodes = node_of.iter().max().map_or(1, |last| last + 1);
        Self {
            nodes: (0..nodes).map(|_| (IdleTimes::default(), Sleepers::default())).collect(),
            lost: vec![0; node_of.len()],
            node_of,
            asleep: vec![],
        }
    }

    /// A processor has no thread any more.
    pub(crate) fn begin(&mut self, processor: usize, now: Time) {
        self.lost[processor] = self.nodes[self.node_of[processor]].1.until(now);
    }

    /// A processor that had no thread since `from` gets one at `at`.
    pub(crate) fn end(&mut self, processor: usize, from: Time, at: Time) {
        let more = self.times(processor, from, at);
        let (times, _) = &mut self.nodes[self.node_of[processor]];
        times.add(more);
    }

    fn times(&self, processor: usize, from: Time, at: Time) -> IdleTimes {
        let idle = at.saturating_sub(from);
        let slept = self.nodes[self.node_of[processor]].1.until(at);
        IdleTimes { idle, asleep: slept.saturating_sub(self.lost[processor]).min(idle) }
    }

    /// A thread of a processor waits for a moment.
    pub(crate) fn sleeps(&mut self, thread: ThreadId, processor: usize, now: Time) {
        let node = self.node_of[processor];
        if self.asleep.len() <= thread {
            self.asleep.resize(thread + 1, None);
        }
        self.asleep[thread] = Some(node);
        let sleepers = &mut self.nodes[node].1;
        if sleepers.count == 0 {
            sleepers.since = now;
        }
        sleepers.count += 1;
    }

    /// A thread waits no longer.
    pub(crate) fn wakes(&mut self, thread: ThreadId, now: Time) {
        let Some(node) = self.asleep.get_mut(thread).and_then(Option::take) else { return };
        let sleepers = &mut self.nodes[node].1;
        sleepers.total = sleepers.until(now);
        sleepers.count -= 1;
        sleepers.since = sleepers.since.max(now);
    }

    /// By node up to `end`; `without` has the processors that have no thread, with the times since when.
    pub(crate) fn at_end(&self, without: impl Iterator<Item = (usize, Time)>, end: Time) -> Vec<IdleTimes> {
        let mut all: Vec<IdleTimes> = self.nodes.iter().map(|(times, _)| *times).collect();
        for (processor, since) in without {
            let more = self.times(processor, since, end);
            let times = &mut all[self.node_of[processor]];
            times.add(more);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_split_by_whether_a_thread_of_the_node_sleeps() {
        let mut idle = Idle::new(vec![0, 0, 1]);
        idle.begin(0, 100);
        idle.sleeps(7, 1, 150);
        idle.begin(1, 150);
        idle.wakes(7, 190);
        idle.end(1, 150, 195);
        idle.sleeps(8, 1, 300);
        idle.end(0, 100, 310);
        idle.begin(2, 0);
        let of = |idle, asleep| IdleTimes { idle, asleep };
        assert_eq!(idle.at_end([].into_iter(), 400), [of(45 + 210, 40 + 40 + 10), of(0, 0)]);
        assert_eq!(idle.at_end([(2, 0)].into_iter(), 400)[1], of(400, 0), "nobody of this node slept");
        idle.begin(0, 350);
        assert_eq!(idle.at_end([(0, 350)].into_iter(), 400)[0], of(255 + 50, 90 + 50), "8 still sleeps");
    }
}
