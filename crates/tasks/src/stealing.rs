//! Tasks that run on other nodes than the one where they were made.

use crate::crew::Crew;
use crate::record::{AwayId, Event, Ledger, LedgerId, Record};
use crate::{TaskId, Work};
use gondwana_topology::{Id, NodeId};

/// For how many tasks a node has asked that it has not got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Wanted {
    epoch: u64,
    count: usize,
}

impl Wanted {
    /// How many they are in an epoch.
    fn in_epoch(self, epoch: u64) -> usize {
        if self.epoch == epoch { self.count } else { 0 }
    }
}

/// Tasks for another node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gift {
    /// The node.
    pub to: NodeId,
    /// The epoch in which they run.
    pub epoch: u64,
    /// What they do.
    pub tasks: Vec<(AwayId, Work)>,
}

/// What the node is told from which a task came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Report {
    /// The node.
    pub to: NodeId,
    /// The task.
    pub task: AwayId,
    /// It has ended with all its descendants; otherwise its body has.
    pub all: bool,
    /// Its body has not been run, because its group is cancelled.
    pub cancelled: bool,
}

impl<W: Copy + PartialEq> Crew<W> {
    /// A thread has waited in vain at the barrier that ends an epoch. Returns the nodes that it asks for tasks, and how many each of
    /// them is to know of.
    pub fn ask(&mut self, epoch: u64, me: NodeId) -> (Vec<NodeId>, usize) {
        let count = self.idle.len();
        let now = Wanted { epoch, count };
        let mut nodes = vec![];
        if self.epoch == epoch && self.waiting() == 0 {
            for (node, asked) in self.asked.iter_mut().enumerate() {
                if node != me.index() && asked.in_epoch(epoch) < count {
                    *asked = now;
                    nodes.push(NodeId::from_index(node));
                }
            }
        }
        (nodes, count)
    }

    /// Another node asks for tasks: so many threads there wait at the barrier that ends an epoch.
    pub fn asked(&mut self, from: NodeId, epoch: u64, count: usize) {
        let known = &mut self.hungry[from.index()];
        if epoch >= known.epoch {
            *known = Wanted { epoch, count };
        }
        self.effects.give |= self.has_hungry() && !self.ready.is_empty();
    }

    pub(crate) fn has_hungry(&self) -> bool {
        self.hungry.iter().any(|wanted| wanted.in_epoch(self.epoch) > 0)
    }

    /// Gives tasks to a node that has asked for them in this epoch: the oldest ones, which mostly make most others.
    pub fn give(&mut self) -> Option<Gift> {
        let epoch = self.epoch;
        let to = self.hungry.iter().position(|wanted| wanted.in_epoch(epoch) > 0)?;
        let count = self.ready.len().div_ceil(self.hungry.len()).min(self.hungry[to].count);
        if count == 0 {
            return None;
        }
        let (cancelled, given): (Vec<TaskId>, Vec<TaskId>) =
            self.ready.drain(..count).collect::<Vec<_>>().into_iter().partition(|task| self.is_doomed(*task));
        // Nobody is to send them: threads of this node discard them.
        self.ready.extend(cancelled);
        if given.is_empty() {
            return None;
        }
        self.hungry[to].count -= given.len();
        let to = NodeId::from_index(to);
        let tasks = given.into_iter().map(|task| {
            let work = self.begin(task).work;
            self.given = self.given.wrapping_add(1);
            let away = AwayId::new(task, self.given);
            self.tasks[task.0].away = Some((to, away));
            (away, work)
        });
        Some(Gift { to, epoch, tasks: tasks.collect() })
    }

    /// Tasks have come from another node. Each is for a thread at the barrier that has nothing to do: the thread begins it as soon as
    /// it is awake. If there are fewer such threads by now, the others go back.
    pub fn receive(&mut self, from: NodeId, epoch: u64, tasks: impl IntoIterator<Item = (AwayId, Work)>) {
        self.enter(epoch);
        for (away, work) in tasks {
            let asked = &mut self.asked[from.index()];
            asked.count = asked.count.saturating_sub(1);
            let Some((waiter, _)) = self.idle.pop() else {
                self.effects.returns.push((from, away));
                continue;
            };
            self.effects.wake.push(waiter);
            let origin = (from, away);
            let cancelled = self.doomed.extract_if(.., |doomed| *doomed == origin).next().is_some();
            let ledger = Ledger { unfinished: 1, origin: Some(origin), cancelled };
            let ledger = LedgerId(self.ledgers.insert(ledger));
            let record = Record { root: true, ..Record::new(None, None, ledger, work) };
            self.stolen.push_back(TaskId(self.tasks.insert(record)));
        }
    }

    /// A task that was given away comes back: it has not begun.
    pub fn returned(&mut self, away: AwayId) {
        if let Some(task) = self.task_of(away) {
            self.tasks[task.0].away = None;
            self.ready.push_front(task);
            self.announce(task);
        }
    }

    /// A task that was given away has ended, or its body. Returns the address of its arguments, which nobody needs any more. The
    /// report that all has ended may overtake the other one.
    pub fn reported(&mut self, away: AwayId, all: bool, cancelled: bool) -> Option<u64> {
        let task = self.task_of(away)?;
        let Record { finished, event, work, .. } = self.tasks[task.0];
        if cancelled {
            self.tasks[task.0].event = Event::None;
        }
        if !self.awaits_event(task, all) {
            self.complete(task, all);
        }
        let is_first = !finished && !matches!(event, Event::Awaited { .. });
        is_first.then_some(work.data)
    }

    /// The task that was given away by this name, if it is not finished.
    pub(crate) fn task_of(&self, away: AwayId) -> Option<TaskId> {
        let task = TaskId(away.task());
        let is_it =
            self.tasks.contains(task.0) && self.tasks[task.0].away.is_some_and(|(_, name)| name == away);
        is_it.then_some(task)
    }
}
