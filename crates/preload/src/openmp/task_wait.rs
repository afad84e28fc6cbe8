//! Waiting for tasks: `taskwait`, `taskgroup`, and the barrier of a team that may have tasks. Meanwhile the thread runs some.

use super::context::{self, Context};
use super::crew::Crew;
use super::depend;
use super::sync::{self, Name};
use super::task;
use super::task_messages;
use super::times;
use gondwana_node::{BarrierWait, Node, Waker};
use gondwana_tasks::{AtBarrier, Crew as Machine, Dependence, Next};
use libc::c_void;
use std::sync::Arc;

/// Runs what `next` says until it is over.
fn run_until(
    node: &'static Node,
    crew: &'static Crew,
    next: impl Fn(&mut Machine<Waker>, Waker) -> Next + Clone + 'static,
) {
    let waker = Waker::current(node);
    loop {
        waker.arm(node);
        let next = next.clone();
        match crew.with(node, move |machine| next(machine, waker)) {
            Next::Over => return,
            Next::Run(run) => task::run(node, crew, run),
            Next::Wait => node.await_waking(),
        }
    }
}

/// Waits for the children of the current task that conflict with these dependences.
pub(super) fn await_siblings(dependences: Vec<Dependence>) {
    let scope = context::get().scope;
    if dependences.is_empty() || !scope.has_task() {
        return;
    }
    if let Some((node, crew)) = task::crew() {
        let dependences: Arc<[Dependence]> = dependences.into();
        run_until(node, crew, move |machine, waker| machine.await_siblings(scope, &dependences, waker));
    }
}

/// Waits at the barrier of the calling thread's team.
pub(super) fn barrier(barrier: *const Name) {
    let Context { shape, epoch, .. } = context::get();
    let Some((node, crew)) = task::crew() else { return };
    let waker = Waker::current(node);
    let arrive = || sync::arrive(node, barrier, shape.threads);
    let mut arrival = None;
    if crew.has_none() {
        arrival = arrive();
        if arrival.is_none() {
            return;
        }
    }
    loop {
        waker.arm(node);
        let arrived = arrival.is_some();
        match crew.with(node, move |machine| machine.at_barrier(epoch, arrived, waker)) {
            AtBarrier::Run(run) => times::aside(|| task::run(node, crew, run)),
            AtBarrier::Arrive => {
                arrival = arrive();
                if arrival.is_none() {
                    return;
                }
            }
            AtBarrier::Wait => {
                let Some(arrival) = &mut arrival else {
                    task_messages::ask(node, crew, epoch);
                    node.await_waking();
                    continue;
                };
                let mut end = node.await_barrier(arrival, true);
                if end == BarrierWait::Neither {
                    task_messages::ask(node, crew, epoch);
                    end = node.await_barrier(arrival, false);
                }
                if end == BarrierWait::Passed {
                    return;
                }
            }
        }
    }
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_taskwait() {
    let scope = context::get().scope;
    if let Some((node, crew)) = task::crew().filter(|_| scope.has_task()) {
        run_until(node, crew, move |machine, waker| machine.await_children(scope, waker));
    }
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_taskwait_depend(depend: *mut *mut c_void) {
    // SAFETY: forwards what gcc passed.
    await_siblings(unsafe { depend::parse(depend) });
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_taskyield() {}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_taskgroup_start() {
    if let Some((node, crew)) = task::crew() {
        let scope = context::get().scope;
        let scope = crew.with(node, move |machine| machine.begin_group(scope));
        context::update(|context| context.scope = scope);
    }
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_taskgroup_end() {
    let scope = context::get().scope;
    if let Some((node, crew)) = task::crew().filter(|_| scope.has_group()) {
        run_until(node, crew, move |machine, waker| machine.await_group(scope, waker));
        let scope = crew.with(node, move |machine| machine.end_group(scope));
        context::update(|context| context.scope = scope);
    }
}
