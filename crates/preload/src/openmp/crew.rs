//! This node's tasks of each team.
//!
//! They are in memory of this library, under a lock of the node. Who has it touches no memory that other nodes share and waits
//! for nothing: threads that receive messages take it too.

use super::cancel::Cancelled;
use super::task_messages;
use super::team::Team;
use crate::private_stack::uninterrupted;
use gondwana_locks::lock;
use gondwana_node::{Node, Waker};
use gondwana_tasks::{Crew as Machine, Effects, Scope};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

/// The most queued tasks for each thread of the team; beyond that the creating thread runs them at once.
const MOST_WAITING: usize = 64;

/// The tasks of one team on this node. It stays when the team ends: another one may get its address.
pub(super) struct Crew {
    /// The team's address.
    pub team: u64,
    /// What was cancelled, as far as this node knows.
    pub cancelled: Cancelled,
    state: Mutex<State>,
    /// Of the machine, as far as is known without the lock.
    unfinished: AtomicUsize,
    waiting: AtomicUsize,
}

struct State {
    machine: Machine<Waker>,
    /// Arguments of tasks that other nodes have run.
    garbage: Vec<u64>,
}

static CREWS: LazyLock<Mutex<HashMap<u64, &'static Crew>>> = LazyLock::new(Mutex::default);

thread_local! {
    /// The crew that the thread has used last.
    static LAST: Cell<Option<&'static Crew>> = const { Cell::new(None) };
}

/// The crew of the calling thread's team.
pub(super) fn of(node: &'static Node, team: *mut Team) -> &'static Crew {
    let team = team as u64;
    match LAST.get() {
        Some(crew) if crew.team == team => crew,
        _ => {
            let crew = named(node, team);
            LAST.set(Some(crew));
            crew
        }
    }
}

/// The crew of the team at an address.
pub(super) fn named(node: &'static Node, team: u64) -> &'static Crew {
    uninterrupted(move || {
        *lock(&CREWS).entry(team).or_insert_with(|| {
            let state = State { machine: Machine::new(node.nodes()), garbage: vec![] };
            let (unfinished, waiting) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let (state, cancelled) = (Mutex::new(state), Cancelled::default());
            Box::leak(Box::new(Crew { team, cancelled, state, unfinished, waiting }))
        })
    })
}

impl Crew {
    /// True if no more tasks are to wait.
    pub(super) fn is_full(&self, threads: u32) -> bool {
        self.waiting.load(Ordering::Relaxed) >= MOST_WAITING * threads as usize
    }

    /// True if the group of the tasks that are made in a scope is cancelled.
    pub(super) fn is_cancelled(&'static self, scope: Scope) -> bool {
        uninterrupted(move || lock(&self.state).machine.is_cancelled(scope))
    }

    /// True if a thread at the barrier has nothing to do for tasks. What they have done is seen then.
    pub(super) fn has_none(&self) -> bool {
        self.unfinished.load(Ordering::Acquire) == 0 && self.waiting.load(Ordering::Acquire) == 0
    }

    /// Does something to the tasks, by a thread of the program, and then what it asks for.
    pub(super) fn with<R: 'static>(
        &'static self,
        node: &'static Node,
        act: impl FnOnce(&mut Machine<Waker>) -> R + 'static,
    ) -> R {
        let (result, effects, garbage) = uninterrupted(move || {
            let mut state = lock(&self.state);
            let garbage = std::mem::take(&mut state.garbage);
            let (result, effects) = self.act(node, &mut state.machine, act);
            (result, effects, garbage)
        });
        for arguments in garbage {
            super::sync::discard(arguments as *mut u8);
        }
        if let Some(effects) = effects {
            task_messages::send(node, self, effects);
        }
        result
    }

    /// The same by a thread that receives messages.
    pub(super) fn on_message(
        &'static self,
        node: &'static Node,
        act: impl FnOnce(&mut Machine<Waker>) -> Option<u64>,
    ) {
        let mut state = lock(&self.state);
        let (garbage, effects) = self.act(node, &mut state.machine, act);
        state.garbage.extend(garbage);
        drop(state);
        if let Some(effects) = effects {
            task_messages::send_later(node, self, &effects);
        }
    }

    fn act<R>(
        &self,
        node: &'static Node,
        machine: &mut Machine<Waker>,
        act: impl FnOnce(&mut Machine<Waker>) -> R,
    ) -> (R, Option<Effects<Waker>>) {
        let result = act(machine);
        self.unfinished.store(machine.unfinished(), Ordering::Release);
        self.waiting.store(machine.waiting(), Ordering::Release);
        let effects = machine.take_effects();
        for waker in &effects.wake {
            waker.wake(node);
        }
        (result, (!effects.needs_no_message()).then_some(effects))
    }
}
