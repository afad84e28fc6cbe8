//! Events of tasks with a `detach` clause. Such a task is finished when its body has ended and the program has fulfilled its event, in
//! any thread of any node.
//!
//! The program knows an event by a number, which says on which node the task was made: that node knows the task.

use super::crew::Crew;
use super::task_messages::FULFIL;
use crate::exit::flush_before_unlock;
use crate::private_stack::uninterrupted;
use gondwana_locks::lock;
use gondwana_node::{Node, Waker};
use gondwana_page::to_usize;
use gondwana_tasks::TaskId;
use gondwana_topology::{Id, NodeId};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The upper bits of an event say which node knows it.
const NODE: u32 = 48;

/// What is known of an event that was not fulfilled, or is not forgotten.
#[derive(Clone, Copy)]
enum State {
    /// No task has it yet.
    New,
    /// A queued task has it.
    Task(&'static Crew, TaskId),
    /// A thread waits for it, or there will be one.
    Awaited(Option<Waker>),
    Fulfilled,
}

/// The events of tasks that were made on this node.
static EVENTS: Mutex<Option<HashMap<u64, State>>> = Mutex::new(None);

/// Does something to the events. Threads that receive messages take the lock, too.
fn with<R: 'static>(act: impl FnOnce(&mut HashMap<u64, State>) -> R + 'static) -> R {
    uninterrupted(move || act(lock(&EVENTS).get_or_insert_default()))
}

/// A new event.
pub(super) fn create() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let node = Node::current().map_or(0, |node| node.id().index() as u64);
    let event = node << NODE | (LAST.fetch_add(1, Ordering::Relaxed) + 1);
    with(move |events| events.insert(event, State::New));
    event
}

/// A queued task has an event, which may be fulfilled already.
pub(super) fn attach(node: &'static Node, event: u64, crew: &'static Crew, task: TaskId) {
    let is_fulfilled = with(move |events| {
        if matches!(events.get(&event), Some(State::Fulfilled)) {
            events.remove(&event);
            return true;
        }
        events.insert(event, State::Task(crew, task));
        false
    });
    if is_fulfilled {
        crew.with(node, move |machine| machine.fulfil(task, event));
    }
}

/// Waits until an event is fulfilled whose task was not queued.
pub(super) fn wait(event: u64) {
    let waker = Node::current().map(|node| (node, Waker::current(node)));
    loop {
        if let Some((node, waker)) = waker {
            waker.arm(node);
        }
        let is_fulfilled = with(move |events| {
            if matches!(events.get(&event), Some(State::Fulfilled)) {
                events.remove(&event);
                return true;
            }
            events.insert(event, State::Awaited(waker.map(|(_, waker)| waker)));
            false
        });
        match waker {
            _ if is_fulfilled => return,
            Some((node, _)) => node.await_waking(),
            None => crate::report::fatal("OpenMP: a task waits for an event that no other thread can fulfil"),
        }
    }
}

/// An event of this node is fulfilled. Returns the queued task that has it.
fn fulfil_here(node: Option<&'static Node>, event: u64) -> Option<(&'static Crew, TaskId)> {
    let before = with(move |events| match events.get(&event).copied() {
        Some(State::Task(crew, task)) => {
            events.remove(&event);
            Some(State::Task(crew, task))
        }
        Some(before) => {
            events.insert(event, State::Fulfilled);
            Some(before)
        }
        None => None,
    });
    match before {
        Some(State::Task(crew, task)) => return Some((crew, task)),
        Some(State::Awaited(Some(waker))) => {
            if let Some(node) = node {
                waker.wake(node);
            }
        }
        Some(State::New | State::Awaited(None)) => {}
        Some(State::Fulfilled) | None => crate::report::fatal(
            "OpenMP: omp_fulfill_event was called with an event that is fulfilled already or that no task has",
        ),
    }
    None
}

/// Another node tells that an event is fulfilled.
pub(super) fn fulfilled_elsewhere(node: &'static Node, event: u64) {
    if let Some((crew, task)) = fulfil_here(Some(node), event) {
        crew.on_message(node, |machine| {
            machine.fulfil(task, event);
            None
        });
    }
}

/// # Safety
/// As OpenMP says.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn omp_fulfill_event(event: u64) {
    let home = to_usize(event >> NODE);
    match Node::current() {
        Some(node) if home != node.id().index() && home < node.nodes() => {
            flush_before_unlock(node);
            node.tell(NodeId::from_index(home), vec![FULFIL, event]);
        }
        node => {
            if let (Some((crew, task)), Some(node)) = (fulfil_here(node, event), node) {
                crew.with(node, move |machine| machine.fulfil(task, event));
            }
        }
    }
}

/// # Safety
/// As OpenMP says.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn omp_fulfill_event_(event: u64) {
    // SAFETY: the interface has the event by value, in Fortran too.
    unsafe { omp_fulfill_event(event) };
}
