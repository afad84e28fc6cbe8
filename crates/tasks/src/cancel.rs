//! Cancelled groups of tasks: tasks of the group that have not begun are finished without being run.
//!
//! A group is on the node whose thread has begun it. A task of the group that was given to another node, and what it has made there, has
//! no group: they are known there by their ledger, which is cancelled in its place. So who cancels a group tells the node from which
//! its task came, and a node where a group or a ledger is cancelled tells the nodes to which it has given tasks of it.

use crate::crew::Crew;
use crate::record::{AwayId, GroupId, LedgerId, OWN, Scope, TaskId};
use gondwana_topology::NodeId;

/// What another node is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cancel {
    /// The node.
    pub to: NodeId,
    /// A task that one of the nodes has given to the other.
    pub task: AwayId,
    /// The node that is told has given it; else it was given the task.
    pub gave: bool,
}

impl<W: Copy + PartialEq> Crew<W> {
    /// True if the group of the tasks that are made in a scope is cancelled.
    #[must_use]
    pub fn is_cancelled(&self, scope: Scope) -> bool {
        self.is_group_cancelled(scope.group, scope.ledger)
    }

    /// True if a task is not to run.
    pub(crate) fn is_doomed(&self, task: TaskId) -> bool {
        let record = &self.tasks[task.0];
        self.is_group_cancelled(record.group, record.ledger)
    }

    fn is_group_cancelled(&self, group: Option<GroupId>, ledger: LedgerId) -> bool {
        match group {
            Some(group) => self.groups[group.0].cancelled,
            None => self.ledgers[ledger.0].cancelled,
        }
    }

    /// The calling thread cancels the group of its task, if it has one.
    pub fn cancel_group(&mut self, scope: Scope) {
        self.cancel(scope.group, scope.ledger, true);
    }

    /// Another node tells of a cancelled group.
    pub fn cancelled(&mut self, from: NodeId, away: AwayId, gave: bool) {
        if gave {
            if let Some(task) = self.task_of(away) {
                let (group, ledger) = (self.tasks[task.0].group, self.tasks[task.0].ledger);
                self.cancel(group, ledger, true);
            }
            return;
        }
        let origin = Some((from, away));
        let ledger =
            self.ledgers.iter().find(|(_, ledger)| ledger.origin == origin).map(|(number, _)| number);
        match ledger {
            Some(ledger) => self.cancel(None, LedgerId(ledger), false),
            // The task is still under way, or it is finished: then the note is forgotten with the epoch.
            None => self.doomed.push((from, away)),
        }
    }

    /// Cancels a group, or a ledger in its place; `asks`: the node from which its task came does not know of it.
    fn cancel(&mut self, group: Option<GroupId>, ledger: LedgerId, asks: bool) {
        let cancelled = match group {
            Some(group) => &mut self.groups[group.0].cancelled,
            None if ledger == OWN => return,
            None => &mut self.ledgers[ledger.0].cancelled,
        };
        if std::mem::replace(cancelled, true) {
            return;
        }
        if let (None, true, Some((to, task))) = (group, asks, self.ledgers[ledger.0].origin) {
            self.effects.cancels.push(Cancel { to, task, gave: true });
        }
        for (_, record) in self.tasks.iter() {
            if let Some((to, task)) = record.away
                && record.group == group
                && (group.is_some() || record.ledger == ledger)
            {
                self.effects.cancels.push(Cancel { to, task, gave: false });
            }
        }
    }
}
