//! Tasks that run on other nodes than the one where they were made.

use crate::crew::Crew;
use crate::record::{AwayId, Ledger, LedgerId, Record};
use crate::{TaskId, Work};
use gondwana_topology::{Id, NodeId};

/// The most tasks that are given at a time.
const MOST: usize = 32;

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
}

impl<W: Copy + PartialEq> Crew<W> {
    /// A thread has waited in vain at the barrier that ends an epoch. Returns the nodes that it asks for tasks.
    pub fn ask(&mut self, epoch: u64, me: NodeId) -> Vec<NodeId> {
        if self.epoch != epoch || !self.ready.is_empty() {
            return vec![];
        }
        let asked = &mut self.asked;
        let all = (0..asked.len()).map(NodeId::from_index);
        all.filter(|node| {
            *node != me && std::mem::replace(&mut asked[node.index()], epoch) != epoch
        })
        .collect()
    }

    /// Another node asks for tasks: a thread there waits at the barrier that ends an epoch.
    pub fn asked(&mut self, from: NodeId, epoch: u64) {
        let known = &mut self.hungry[from.index()];
        *known = epoch.max(*known);
        self.effects.give |= self.has_hungry() && self.ready.iter().any(|task| !self.tasks[task.0].root);
    }

    pub(crate) fn has_hungry(&self) -> bool {
        self.hungry.contains(&self.epoch)
    }

    /// Gives tasks to a node that has asked for them in this epoch, in which it is at the barrier as long as they are not
    /// finished: the oldest ones, which mostly make most others. Those of other nodes stay.
    pub fn give(&mut self) -> Option<Gift> {
        let to = self.hungry.iter().position(|epoch| *epoch == self.epoch)?;
        let own = self.ready.iter().filter(|task| !self.tasks[task.0].root).count();
        let count = own.div_ceil(self.hungry.len()).min(MOST);
        if count == 0 {
            return None;
        }
        self.hungry[to] = 0;
        let mut tasks = vec![];
        let mut place = 0;
        while tasks.len() < count {
            let task = self.ready[place];
            if self.tasks[task.0].root {
                place += 1;
                continue;
            }
            self.ready.remove(place);
            let run = self.begin(task);
            self.given = self.given.wrapping_add(1);
            let away = AwayId::new(task, self.given);
            self.tasks[task.0].away = Some(away);
            tasks.push((away, run.work));
        }
        Some(Gift { to: NodeId::from_index(to), epoch: self.epoch, tasks })
    }

    /// Tasks have come from another node.
    pub fn receive(&mut self, from: NodeId, epoch: u64, tasks: impl IntoIterator<Item = (AwayId, Work)>) {
        self.enter(epoch);
        self.asked[from.index()] = 0;
        for (task, work) in tasks {
            let ledger = LedgerId(self.ledgers.insert(Ledger { unfinished: 1, origin: Some((from, task)) }));
            let record = Record { root: true, ..Record::new(None, None, ledger, work) };
            let task = TaskId(self.tasks.insert(record));
            self.ready.push_back(task);
            if let Some((waiter, _)) = self.idle.pop() {
                self.effects.wake.push(waiter);
            }
        }
    }

    /// A task that was given away has ended, or its body. Returns the address of its arguments, which nobody needs any more. The
    /// report that all has ended may overtake the other one.
    pub fn reported(&mut self, away: AwayId, all: bool) -> Option<u64> {
        let task = TaskId(away.task());
        if !self.tasks.contains(task.0) || self.tasks[task.0].away != Some(away) {
            return None;
        }
        let Record { group, ledger, finished, work, .. } = self.tasks[task.0];
        if !finished {
            self.end_body(task);
        }
        if all {
            if self.end_subtree(group, ledger)
                && let Some((to, task)) = self.ledgers[ledger.0].origin
            {
                self.effects.reports.push(Report { to, task, all });
                self.ledgers.remove(ledger.0);
            }
            self.tasks.remove(task.0);
        }
        (!finished).then_some(work.data)
    }
}
