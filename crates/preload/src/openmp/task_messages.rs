//! What nodes tell each other of tasks.

use super::affinity;
use super::cancel;
use super::crew::{self, Crew};
use super::event;
use gondwana_node::{Node, Waker};
use gondwana_page::to_usize;
use gondwana_tasks::{AwayId, Cancel, Effects, Gift, Report, Work};
use gondwana_topology::{Id, NodeId};

/// The first words: threads here want tasks; here are tasks; a task has ended; this task goes back; a group is cancelled; a region or
/// a loop is; an event is fulfilled; what variables hold;
/// the affinity format.
const ASK: u64 = 0;
const GIVE: u64 = 1;
const REPORT: u64 = 2;
const RETURN: u64 = 3;
const CANCEL_GROUP: u64 = 4;
pub(super) const CANCEL: u64 = 5;
pub(super) const FULFIL: u64 = 6;
pub(super) const FORMAT: u64 = 7;

/// The words for one task.
const TASK: usize = 5;

/// Does what a change of tasks asks for, by a thread that may wait.
pub(super) fn send(node: &'static Node, crew: &'static Crew, effects: Effects<Waker>) {
    cancel_groups(node, crew, &effects);
    for Report { to, task, all, cancelled } in effects.reports {
        node.tell(to, vec![REPORT, crew.team, task.0, all.into(), cancelled.into()]);
    }
    if effects.give {
        give(node, crew);
    }
}

/// The same for a thread that receives messages: the service thread does it.
pub(super) fn send_later(node: &'static Node, crew: &'static Crew, effects: &Effects<Waker>) {
    cancel_groups(node, crew, effects);
    for Report { to, task, all, cancelled } in &effects.reports {
        let (all, cancelled) = ((*all).into(), (*cancelled).into());
        node.later(vec![REPORT, crew.team, task.0, all, cancelled, to.index() as u64]);
    }
    for (to, task) in &effects.returns {
        node.tell_only(*to, vec![RETURN, crew.team, task.0]);
    }
    if effects.give {
        node.later(vec![GIVE, crew.team]);
    }
}

/// The marks of a task in a message.
const LAST: u64 = 1;
const OWNS: u64 = 2;

fn marks(work: &Work) -> u64 {
    let mark = |is_set: bool, mark| if is_set { mark } else { 0 };
    mark(work.last, LAST) | mark(work.owns, OWNS)
}

/// Tells of cancelled groups, before what is told of their tasks.
fn cancel_groups(node: &'static Node, crew: &Crew, effects: &Effects<Waker>) {
    for Cancel { to, task, gave } in &effects.cancels {
        node.tell_only(*to, vec![CANCEL_GROUP, crew.team, task.0, (*gave).into()]);
    }
}

/// By the service thread.
pub(crate) fn later(words: &[u64]) {
    let Some(node) = Node::current() else { return };
    match *words {
        [REPORT, _, _, _, _, to] => node.tell(NodeId::from_index(to_usize(to)), words[..5].to_vec()),
        [GIVE, team] => give(node, crew::named(node, team)),
        _ => {}
    }
}

fn give(node: &'static Node, crew: &'static Crew) {
    while let Some(Gift { to, epoch, tasks }) = crew.with(node, |machine| machine.give()) {
        let words = tasks
            .iter()
            .flat_map(|(task, work)| [task.0, work.function, work.data, marks(work), work.inherited]);
        node.tell(to, [GIVE, crew.team, epoch].into_iter().chain(words).collect());
    }
}

/// Asks other nodes for tasks, by a thread that has waited in vain at the barrier that ends an epoch.
pub(super) fn ask(node: &'static Node, crew: &'static Crew, epoch: u64) {
    let (others, count) = crew.with(node, move |machine| machine.ask(epoch, node.id()));
    for other in others {
        node.tell_only(other, vec![ASK, crew.team, epoch, count as u64]);
    }
}

/// Another node tells this one something.
pub(crate) fn told(from: NodeId, words: &[u64]) {
    let Some(node) = Node::current() else { return };
    match *words {
        [ASK, team, epoch, count] => crew::named(node, team).on_message(node, |machine| {
            machine.asked(from, epoch, to_usize(count));
            None
        }),
        [RETURN, team, task] => crew::named(node, team).on_message(node, |machine| {
            machine.returned(AwayId(task));
            None
        }),
        [GIVE, team, epoch, ref tasks @ ..] => crew::named(node, team).on_message(node, |machine| {
            let work = |words: &[u64]| Work {
                function: words[0],
                data: words[1],
                last: words[2] & LAST != 0,
                owns: words[2] & OWNS != 0,
                inherited: words[3],
            };
            let tasks = tasks.chunks_exact(TASK).map(|words| (AwayId(words[0]), work(&words[1..])));
            machine.receive(from, epoch, tasks);
            None
        }),
        [REPORT, team, task, all, cancelled] => crew::named(node, team).on_message(node, |machine| {
            machine.reported(AwayId(task), all != 0, cancelled != 0).filter(|data| *data != 0)
        }),
        [CANCEL_GROUP, team, task, gave] => crew::named(node, team).on_message(node, |machine| {
            machine.cancelled(from, AwayId(task), gave != 0);
            None
        }),
        [CANCEL, team, what, epoch] => cancel::heard(node, team, what, epoch),
        [FORMAT, ref format @ ..] => affinity::heard(format),
        [FULFIL, event] => event::fulfilled_elsewhere(node, event),
        _ => {}
    }
}
