//! Resting objects in every order of events (stateright, exhaustive).

use super::keepers_world::{Event, Op, World};
use Op::{
    Broadcast, EndRead, EndWrite, Enqueue, Post, Read, Signal, Sleep, TimedSleep, TimedWait, TimedWrite,
    TryWait, Wait, Write,
};
use stateright::{Checker, Model, Property};

struct Programs {
    threads: Vec<usize>,
    programs: Vec<Vec<Op>>,
    /// Threads may wait for ever, as where more wait than are woken.
    may_wait: bool,
}

impl Model for Programs {
    type State = World;
    type Action = Event;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(&self.threads)]
    }

    fn actions(&self, state: &World, actions: &mut Vec<Event>) {
        if state.broken().is_none() {
            state.events(&self.programs, actions);
        }
    }

    fn next_state(&self, state: &World, event: Event) -> Option<World> {
        let mut next = state.clone();
        next.happen(event, &self.programs);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("nothing is wrong", |_, world: &World| world.broken().is_none()),
            Property::always("nobody waits for ever", |model: &Self, world: &World| {
                let mut events = Vec::new();
                world.events(&model.programs, &mut events);
                model.may_wait || !events.is_empty() || world.is_finished(&model.programs)
            }),
        ]
    }
}

/// `nodes[node][thread]` is a program.
fn check(nodes: &[&[&[Op]]], may_wait: bool) {
    let model = Programs {
        threads: nodes.iter().map(|threads| threads.len()).collect(),
        programs: nodes.iter().flat_map(|threads| threads.iter().map(|program| program.to_vec())).collect(),
        may_wait,
    };
    let checker = model.checker().spawn_dfs().join();
    println!("{} states", checker.unique_state_count());
    checker.assert_properties();
}

#[test]
fn semaphores_of_two_nodes() {
    let posts = [Post, Post, Post];
    let waits = [Wait, Wait, Wait];
    check(&[&[&posts], &[&waits]], false);
    check(&[&[&waits], &[&posts]], false);
    check(&[&[&[Post, Wait, Post, Wait]], &[&[Post, Wait, Post, Wait]]], false);
    check(&[&[&[Post, Wait], &[Wait, Post]], &[&[Post, Wait], &[Post]]], false);
}

#[test]
fn semaphores_of_three_nodes() {
    check(&[&[&[Wait, Post]], &[&[Post, Wait]], &[&[Post, Post, Wait]]], false);
    check(&[&[], &[&[Post, Post, Wait]], &[&[Wait, Post, Wait]]], false);
}

#[test]
fn waits_for_semaphores_that_end_early() {
    check(&[&[&[TimedWait, TimedWait]], &[&[Post, TimedWait]], &[&[Post]]], false);
    check(&[&[&[TryWait, TimedWait], &[Post]], &[&[TimedWait, Post, TryWait]]], false);
}

#[test]
fn locks_of_two_nodes() {
    let reads = [Read, EndRead, Read, EndRead];
    let writes = [Write, EndWrite, Write, EndWrite];
    check(&[&[&reads, &writes], &[&reads]], false);
    check(&[&[&reads], &[&writes, &reads]], false);
    check(&[&[&writes], &[&writes]], false);
    // One reads at once while the one that has asked has not acquired yet.
    check(&[&[&[Write, EndWrite]], &[&[Read, EndRead], &[Read, EndRead]]], false);
}

#[test]
fn locks_of_three_nodes() {
    let reads = [Read, EndRead, Read, EndRead];
    let mixed = [Read, EndRead, Write, EndWrite];
    check(&[&[&reads], &[&reads], &[&[Write, EndWrite]]], false);
    check(&[&[&[Write, EndWrite]], &[&mixed], &[&[Read, EndRead]]], false);
}

#[test]
fn writers_that_give_up() {
    let timed = [TimedWrite, EndWrite];
    check(&[&[&[Read, EndRead]], &[&timed, &[Read, EndRead]]], false);
    check(&[&[&timed], &[&[Read, EndRead]], &[&timed]], false);
}

#[test]
fn signals_reach_those_that_wait() {
    // Without a mutex, a signal may come before the wait; what must not be is that an answer is lost or comes twice.
    let waits = [Enqueue, Sleep];
    check(&[&[&waits], &[&[Signal, Signal, Signal]]], true);
    check(&[&[&[Signal, Signal]], &[&waits, &[Signal]]], true);
    // Whoever wakes another one has waited before: the last signal finds a thread that has.
    check(&[&[&[Enqueue, TimedSleep]], &[&[Signal, Broadcast]], &[&[Enqueue, TimedSleep]]], false);
}

#[test]
fn a_signal_behind_a_wait_is_not_lost() {
    // The semaphore tells the signaller that the waiter is queued: without a mutex, and by another channel.
    let waits = [Enqueue, Post, Sleep];
    let signals = [Signal, Wait, Signal];
    check(&[&[&waits], &[&signals]], false);
    check(&[&[&signals], &[&waits]], false);
    check(&[&[], &[&waits], &[&signals]], false);
    check(&[&[&[Signal]], &[&waits], &[&[Wait, Signal]]], false);
    check(&[&[&[Signal]], &[&waits], &[&[Wait, Broadcast]]], false);
}
