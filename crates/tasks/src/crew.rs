//! The tasks of one team on one node.

use crate::cancel::Cancel;
use crate::record::{Awaited, Event, Group, GroupId, Ledger, LedgerId, OWN, Record};
use crate::slab::Slab;
use crate::stealing::Wanted;
use crate::{AwayId, Dependence, Report, Scope, TaskId, Work, conflict};
use gondwana_topology::NodeId;
use std::collections::VecDeque;
use std::mem::take;

/// The tasks of one team that were made on one node or came to it. `W` wakes a thread of the node.
///
/// Its members are called one at a time. After each, the caller takes what is [to be done](Crew::take_effects).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Crew<W> {
    /// The latest part of the team's life, from one barrier to the next, that this node knows of.
    pub(crate) epoch: u64,
    pub(crate) tasks: Slab<Record<W>>,
    pub(crate) groups: Slab<Group<W>>,
    pub(crate) ledgers: Slab<Ledger>,
    /// Tasks of this node that may run, the oldest first.
    pub(crate) ready: VecDeque<TaskId>,
    /// Tasks that other nodes have given, each for a thread that was idle.
    pub(crate) stolen: VecDeque<TaskId>,
    /// Threads at the barrier that have nothing to do, and whether they have arrived.
    pub(crate) idle: Vec<(W, bool)>,
    /// For each node, for how many tasks it has asked that it has not got, and in which epoch.
    pub(crate) hungry: Vec<Wanted>,
    /// For each node, the same of what this one has asked it.
    pub(crate) asked: Vec<Wanted>,
    /// How many tasks were given away.
    pub(crate) given: u32,
    /// Tasks that are to come from other nodes, and whose groups are cancelled already.
    pub(crate) doomed: Vec<(NodeId, AwayId)>,
    pub(crate) effects: Effects<W>,
}

/// What is to be done now.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Effects<W> {
    /// These threads are woken.
    pub wake: Vec<W>,
    /// Other nodes are told, after a release.
    pub reports: Vec<Report>,
    /// Tasks that are given back to the nodes that gave them.
    pub returns: Vec<(NodeId, AwayId)>,
    /// Other nodes are told of cancelled groups.
    pub cancels: Vec<Cancel>,
    /// [`Crew::give`] has something to give.
    pub give: bool,
}

/// A task that the calling thread is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// To be [finished](Crew::finish) afterwards.
    pub task: TaskId,
    /// What it does.
    pub work: Work,
    /// Where the thread is meanwhile.
    pub scope: Scope,
    /// Its group is cancelled: it is [discarded](Crew::discard) instead.
    pub cancelled: bool,
}

/// What a thread does that waits for tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Next {
    /// They are finished.
    Over,
    /// It runs a task and asks again.
    Run(Run),
    /// It waits until it is woken and asks again.
    Wait,
}

impl<W> Effects<W> {
    const fn none() -> Self {
        Self { wake: vec![], reports: vec![], returns: vec![], cancels: vec![], give: false }
    }

    /// True if nothing is to be done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.wake.is_empty() && self.needs_no_message()
    }

    /// True if no other node is to be told anything.
    #[must_use]
    pub fn needs_no_message(&self) -> bool {
        self.reports.is_empty() && self.returns.is_empty() && self.cancels.is_empty() && !self.give
    }
}

impl<W: Copy + PartialEq> Crew<W> {
    /// Of a team on one of so many nodes.
    #[must_use]
    pub fn new(nodes: usize) -> Self {
        let mut ledgers = Slab::new();
        ledgers.insert(Ledger { unfinished: 0, origin: None, cancelled: false });
        Self {
            epoch: 0,
            tasks: Slab::new(),
            groups: Slab::new(),
            ledgers,
            ready: VecDeque::new(),
            stolen: VecDeque::new(),
            idle: vec![],
            hungry: vec![Wanted::default(); nodes],
            asked: vec![Wanted::default(); nodes],
            given: 0,
            doomed: vec![],
            effects: Effects::none(),
        }
    }

    /// What the last calls ask for.
    pub fn take_effects(&mut self) -> Effects<W> {
        std::mem::replace(&mut self.effects, Effects::none())
    }

    /// How many tasks of this node's threads, with their descendants, are not finished. A thread that has made tasks arrives at
    /// the barrier only when there are none.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.ledgers[OWN.0].unfinished as usize
    }

    /// How many tasks wait for a thread.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.ready.len() + self.stolen.len()
    }

    /// A thread of the team is in an epoch: those before are over.
    pub(crate) fn enter(&mut self, epoch: u64) {
        if self.epoch < epoch {
            debug_assert!(self.ready.is_empty() && self.ledgers[OWN.0].unfinished == 0);
            self.epoch = epoch;
            self.idle.clear();
            self.doomed.clear();
        }
    }

    /// The calling thread makes a task in its scope, in its epoch. Returns its scope, in which its task has a record.
    pub fn create(&mut self, epoch: u64, scope: Scope, work: Work, dependences: Vec<Dependence>) -> Scope {
        self.create_with_event(epoch, scope, work, dependences, None).0
    }

    /// [`Crew::create`] for a task that is not finished before an event with a name is [fulfilled](Crew::fulfil), if there is one.
    /// Returns the task, too.
    pub fn create_with_event(
        &mut self,
        epoch: u64,
        scope: Scope,
        work: Work,
        dependences: Vec<Dependence>,
        event: Option<u64>,
    ) -> (Scope, TaskId) {
        self.enter(epoch);
        let Scope { task, group, ledger } = scope;
        let parent = task.unwrap_or_else(|| self.record(None, group, ledger, Work::NONE));
        let task = self.record(Some(parent), group, ledger, work);
        self.tasks[task.0].event = event.map_or(Event::None, Event::Open);
        self.ledgers[ledger.0].unfinished += 1;
        if let Some(group) = group {
            self.groups[group.0].unfinished += 1;
        }
        self.tasks[parent.0].children += 1;
        if !dependences.is_empty() {
            for place in 0..self.tasks[parent.0].dependent.len() {
                let sibling = self.tasks[parent.0].dependent[place];
                if conflict(&dependences, &self.tasks[sibling.0].dependences) {
                    self.tasks[sibling.0].followers.push(task);
                    self.tasks[task.0].blockers += 1;
                }
            }
            self.tasks[parent.0].dependent.push(task);
            self.tasks[task.0].dependences = dependences;
        }
        if self.tasks[task.0].blockers == 0 {
            self.make_ready(task);
        }
        (Scope { task: Some(parent), ..scope }, task)
    }

    fn record(
        &mut self,
        parent: Option<TaskId>,
        group: Option<GroupId>,
        ledger: LedgerId,
        work: Work,
    ) -> TaskId {
        TaskId(self.tasks.insert(Record::new(parent, group, ledger, work)))
    }

    /// A thread may run a task from now on.
    pub(crate) fn make_ready(&mut self, task: TaskId) {
        self.ready.push_back(task);
        self.announce(task);
    }

    /// A task is in the queue: who may run it is woken.
    pub(crate) fn announce(&mut self, task: TaskId) {
        let Record { parent, group, .. } = self.tasks[task.0];
        let of_parent = parent.and_then(|parent| {
            let parent = &mut self.tasks[parent.0];
            parent.queued += 1;
            parent.waiter.take().map(|(waiter, _)| waiter)
        });
        let waiter = of_parent
            .or_else(|| group.and_then(|group| self.groups[group.0].waiter.take()))
            .or_else(|| self.idle.pop().map(|(waiter, _)| waiter));
        match waiter {
            Some(waiter) => self.effects.wake.push(waiter),
            None => self.effects.give |= self.has_hungry(),
        }
    }

    /// Takes the first or last ready task of some.
    fn take(&mut self, place: Option<usize>) -> Option<Run> {
        let task = self.ready.remove(place?)?;
        Some(self.begin(task))
    }

    /// A task was taken from the queue to be run.
    pub(crate) fn begin(&mut self, task: TaskId) -> Run {
        let Record { parent, group, ledger, work, .. } = self.tasks[task.0];
        if let Some(parent) = parent {
            self.tasks[parent.0].queued -= 1;
        }
        let scope = Scope { task: Some(task), group, ledger };
        Run { task, work, scope, cancelled: self.is_cancelled(scope) }
    }

    fn take_child(&mut self, parent: TaskId) -> Option<Run> {
        if self.tasks[parent.0].queued == 0 {
            return None;
        }
        let place = self.ready.iter().rposition(|task| self.tasks[task.0].parent == Some(parent));
        self.take(place)
    }

    /// A task that was taken has ended. Returns the address of its arguments if they are this node's: nobody needs them any more.
    pub fn finish(&mut self, task: TaskId) -> Option<u64> {
        let Record { ledger, root, work, .. } = self.tasks[task.0];
        let origin = self.ledgers[ledger.0].origin;
        if !self.awaits_event(task, true) {
            let all = self.complete(task, true);
            if let Some((to, task)) = origin
                && root
                && !all
            {
                self.effects.reports.push(Report { to, task, all, cancelled: false });
            }
        }
        (!root).then_some(work.data)
    }

    /// A task that was taken is finished without running its body: it was cancelled. Returns what [`Crew::finish`] does.
    pub fn discard(&mut self, task: TaskId) -> Option<u64> {
        let record = &mut self.tasks[task.0];
        (record.cancelled, record.event) = (true, Event::None);
        self.finish(task)
    }

    /// True if a task whose body has ended, or which has ended with `all` that it has made elsewhere, is not finished before its
    /// event is fulfilled.
    pub(crate) fn awaits_event(&mut self, task: TaskId, all: bool) -> bool {
        let event = &mut self.tasks[task.0].event;
        match *event {
            Event::None => return false,
            Event::Open(name) => *event = Event::Awaited { name, all },
            Event::Awaited { name, all: before } => *event = Event::Awaited { name, all: before || all },
        }
        true
    }

    /// The event of a task is fulfilled. Nothing happens if the task has no such event any more.
    pub fn fulfil(&mut self, task: TaskId, event: u64) {
        if !self.tasks.contains(task.0) {
            return;
        }
        match self.tasks[task.0].event {
            Event::Open(name) if name == event => self.tasks[task.0].event = Event::None,
            Event::Awaited { name, all } if name == event => {
                self.tasks[task.0].event = Event::None;
                self.complete(task, all);
            }
            _ => {}
        }
    }

    /// A task is finished, or, with `all`, it is so with all that it has made elsewhere. True if its ledger has no other.
    pub(crate) fn complete(&mut self, task: TaskId, all: bool) -> bool {
        let Record { group, ledger, finished, root, cancelled, .. } = self.tasks[task.0];
        if !finished {
            self.end_body(task);
        }
        if !all {
            return false;
        }
        let last = self.end_subtree(group, ledger);
        if let Some((to, task)) = self.ledgers[ledger.0].origin
            && last
        {
            self.effects.reports.push(Report { to, task, all: true, cancelled: root && cancelled });
            self.ledgers.remove(ledger.0);
        }
        self.forget(task);
        last
    }

    /// An implicit task or one that ran at once has ended; its children may not have.
    pub fn end(&mut self, scope: Scope) {
        if let Some(task) = scope.task {
            self.tasks[task.0].finished = true;
            self.forget(task);
        }
    }

    /// Removes the record of a task that has ended, if nobody needs it.
    pub(crate) fn forget(&mut self, task: TaskId) {
        let record = &self.tasks[task.0];
        if record.finished && record.children == 0 {
            self.tasks.remove(task.0);
        }
    }

    /// The body of a task has ended, here or elsewhere.
    pub(crate) fn end_body(&mut self, task: TaskId) {
        let record = &mut self.tasks[task.0];
        record.finished = true;
        let Some(parent) = record.parent else { return };
        let (followers, depends) = (take(&mut record.followers), !record.dependences.is_empty());
        let parent_record = &mut self.tasks[parent.0];
        parent_record.children -= 1;
        if depends {
            parent_record.dependent.retain(|other| *other != task);
        }
        if let Some((waiter, awaited)) = parent_record.waiter
            && (awaited == Awaited::Siblings || parent_record.children == 0)
        {
            parent_record.waiter = None;
            self.effects.wake.push(waiter);
        }
        for follower in followers {
            self.tasks[follower.0].blockers -= 1;
            if self.tasks[follower.0].blockers == 0 {
                self.make_ready(follower);
            }
        }
        self.tasks[task.0].parent = None;
        self.forget(parent);
    }

    /// A task that was counted has ended, and all that it has made elsewhere. True if its ledger has no other.
    pub(crate) fn end_subtree(&mut self, group: Option<GroupId>, ledger: LedgerId) -> bool {
        if let Some(group) = group {
            let group = &mut self.groups[group.0];
            group.unfinished -= 1;
            if group.unfinished == 0 {
                self.effects.wake.extend(group.waiter.take());
            }
        }
        self.ledgers[ledger.0].unfinished -= 1;
        let all = self.ledgers[ledger.0].unfinished == 0;
        if all && ledger == OWN {
            // Those that may arrive now.
            for (waiter, _) in self.idle.extract_if(.., |(_, arrived)| !*arrived) {
                self.effects.wake.push(waiter);
            }
        }
        all
    }

    /// A thread waits for the children of its task.
    pub fn await_children(&mut self, scope: Scope, waker: W) -> Next {
        let Some(task) = scope.task else { return Next::Over };
        if self.tasks[task.0].children == 0 {
            return Next::Over;
        }
        self.run_or_wait(task, waker, Awaited::Children)
    }

    /// A thread waits for the children of its task that conflict with dependences.
    pub fn await_siblings(&mut self, scope: Scope, dependences: &[Dependence], waker: W) -> Next {
        let Some(task) = scope.task else { return Next::Over };
        let conflicts = |child: &TaskId| conflict(dependences, &self.tasks[child.0].dependences);
        if !self.tasks[task.0].dependent.iter().any(conflicts) {
            return Next::Over;
        }
        self.run_or_wait(task, waker, Awaited::Siblings)
    }

    fn run_or_wait(&mut self, task: TaskId, waker: W, awaited: Awaited) -> Next {
        if let Some(run) = self.take_child(task) {
            return Next::Run(run);
        }
        self.tasks[task.0].waiter = Some((waker, awaited));
        Next::Wait
    }

    /// A thread enters a group. Returns its scope.
    pub fn begin_group(&mut self, scope: Scope) -> Scope {
        let group = Group { outer: scope.group, unfinished: 0, waiter: None, cancelled: false };
        Scope { group: Some(GroupId(self.groups.insert(group))), ..scope }
    }

    /// A thread waits for the tasks of its group. When they are finished it [leaves](Crew::end_group).
    pub fn await_group(&mut self, scope: Scope, waker: W) -> Next {
        let Some(group) = scope.group else { return Next::Over };
        if self.groups[group.0].unfinished == 0 {
            return Next::Over;
        }
        let place = self.ready.iter().rposition(|task| self.tasks[task.0].group == Some(group));
        if let Some(run) = self.take(place) {
            return Next::Run(run);
        }
        self.groups[group.0].waiter = Some(waker);
        Next::Wait
    }

    /// A thread leaves its group, whose tasks are finished. Returns its scope.
    pub fn end_group(&mut self, scope: Scope) -> Scope {
        let Some(group) = scope.group else { return scope };
        let outer = self.groups[group.0].outer;
        self.groups.remove(group.0);
        Scope { group: outer, ..scope }
    }

    /// True if nothing is left of tasks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.groups.is_empty() && self.waiting() == 0 && self.unfinished() == 0
    }
}

impl Work {
    const NONE: Self = Self { function: 0, data: 0, last: false, owns: false, inherited: 0 };
}

impl<W> Record<W> {
    pub(crate) fn new(parent: Option<TaskId>, group: Option<GroupId>, ledger: LedgerId, work: Work) -> Self {
        Self {
            parent,
            group,
            ledger,
            work,
            root: false,
            away: None,
            event: Event::None,
            cancelled: false,
            finished: false,
            children: 0,
            queued: 0,
            dependent: vec![],
            dependences: vec![],
            blockers: 0,
            followers: vec![],
            waiter: None,
        }
    }
}
