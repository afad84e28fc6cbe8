//! Lock tokens in every order of events (stateright, exhaustive).

use super::locks::Limits;
use super::locks_world::{Event, Op, World};
use Op::{Lock, Timed, Try, Unlock};
use stateright::{Checker, Model, Property};

struct Programs {
    threads: Vec<usize>,
    programs: Vec<Vec<Op>>,
    limits: Limits,
    mutexes: u64,
    /// Nodes ask for tokens whenever they can, also such as no thread wants.
    early: bool,
}

impl Model for Programs {
    type State = World;
    type Action = Event;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(&self.threads, self.limits, false)]
    }

    fn actions(&self, state: &World, actions: &mut Vec<Event>) {
        if state.broken().is_none() {
            state.events(&self.programs, actions);
            if self.early {
                state.early(self.mutexes, actions);
            }
        }
    }

    fn next_state(&self, state: &World, event: Event) -> Option<World> {
        let mut next = state.clone();
        next.happen(event, &self.programs);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("mutual exclusion", |_, world: &World| world.excludes()),
            Property::always("one token each", |model: &Self, world: &World| {
                world.one_token_each(model.mutexes)
            }),
            Property::always("the protocol is kept", |_, world: &World| world.broken().is_none()),
            Property::always("a try does not wait for a holder", |model: &Self, world: &World| {
                world.tries_are_decided(&model.programs)
            }),
            Property::always("nodes take turns", |model: &Self, world: &World| {
                !model.limits.slices || world.takes_turns()
            }),
            Property::always("nobody waits for ever", |model: &Self, world: &World| {
                let mut events = Vec::new();
                world.events(&model.programs, &mut events);
                !events.is_empty() || world.is_finished(&model.programs)
            }),
        ]
    }
}

/// `nodes[node][thread]` is a program; every mutex up to `mutexes` is used.
fn check(nodes: &[&[&[Op]]], mutexes: u64, local_handovers: u32) {
    check_limited(nodes, mutexes, Limits { local_handovers, ..NEVER });
}

/// The same, where tokens stay for so many uses.
fn check_keeping(nodes: &[&[&[Op]]], mutexes: u64, local_handovers: u32, kept_uses: u32) {
    check_limited(nodes, mutexes, Limits { local_handovers, kept_uses, ..NEVER });
}

/// The same, where all tokens that come back stay until the node lets go of them.
fn check_slices(nodes: &[&[&[Op]]], mutexes: u64) {
    check_limited(nodes, mutexes, Limits { slices: true, ..NEVER });
}

/// The same, where a mutex is common from the start, or when its token leaves a node for the first or the second time.
fn check_common(nodes: &[&[&[Op]]], mutexes: u64) {
    for common_after in 0..=2 {
        check_limited(nodes, mutexes, Limits { common_after, ..NEVER });
        check_limited(nodes, mutexes, Limits { common_after, kept_uses: 1, ..NEVER });
    }
}

/// No token stays, and no mutex becomes common.
const NEVER: Limits = Limits { local_handovers: 1, kept_uses: 0, slices: false, common_after: u32::MAX };

fn check_limited(nodes: &[&[&[Op]]], mutexes: u64, limits: Limits) {
    check_model(nodes, mutexes, limits, false);
}

fn check_model(nodes: &[&[&[Op]]], mutexes: u64, limits: Limits, early: bool) {
    let model = Programs {
        early,
        threads: nodes.iter().map(|threads| threads.len()).collect(),
        programs: nodes.iter().flat_map(|threads| threads.iter().map(|program| program.to_vec())).collect(),
        limits,
        mutexes,
    };
    let checker = model.checker().spawn_dfs().join();
    println!("{} states", checker.unique_state_count());
    checker.assert_properties();
}

#[test]
fn two_nodes_of_two_threads_share_two_mutexes() {
    let one = [Lock(1), Unlock(1), Lock(2), Unlock(2)];
    let two = [Lock(2), Unlock(2), Lock(1), Unlock(1)];
    check(&[&[&one, &two], &[&one, &two]], 2, 1);
}

#[test]
fn two_nodes_nest_two_mutexes() {
    let nested = [Lock(1), Lock(2), Unlock(2), Unlock(1)];
    let single = [Lock(2), Unlock(2)];
    check(&[&[&nested, &single], &[&nested, &single]], 2, 1);
}

#[test]
fn three_nodes_of_two_threads_share_a_mutex() {
    let once = [Lock(1), Unlock(1)];
    check(&[&[&once, &once], &[&once, &once], &[&once, &once]], 1, 1);
}

#[test]
fn three_nodes_come_back_for_more() {
    let thrice = [Lock(1), Unlock(1), Lock(1), Unlock(1), Lock(1), Unlock(1)];
    check(&[&[&thrice], &[&thrice], &[&thrice]], 1, 8);
}

#[test]
fn three_nodes_try() {
    let tries = [Try(1), Unlock(1), Try(1), Unlock(1)];
    let locks = [Lock(1), Unlock(1)];
    check(&[&[&locks], &[&tries], &[&tries]], 1, 1);
    check(&[&[&tries, &locks], &[&locks], &[&tries]], 1, 1);
}

#[test]
fn trylocks_of_a_node_meet_while_the_token_is_on_its_way() {
    let tries = [Try(1), Unlock(1)];
    let locks = [Lock(1), Unlock(1)];
    check(&[&[&tries, &tries], &[&tries, &tries]], 1, 1);
    check(&[&[&locks], &[&locks, &tries], &[&tries, &tries]], 1, 1);
    check(&[&[&locks, &locks], &[&tries, &tries], &[&tries]], 1, 1);
}

#[test]
fn trylocks_meet_others_that_come_back() {
    let twice = [Try(1), Unlock(1), Try(1), Unlock(1)];
    let locks = [Lock(1), Unlock(1), Lock(1), Unlock(1)];
    check(&[&[&locks], &[&twice], &[&locks]], 1, 1);
    check(&[&[&locks], &[&locks], &[&locks], &[&[Try(1), Unlock(1)]]], 1, 1);
}

#[test]
fn trylocks_meet_others_that_time_out() {
    let timed = [Timed(1), Unlock(1)];
    let tries = [Try(1), Unlock(1)];
    check(&[&[&timed, &tries], &[&timed, &tries]], 1, 1);
    check(&[&[&timed], &[&timed, &tries], &[&tries]], 1, 1);
}

#[test]
fn three_nodes_time_out() {
    let timed = [Timed(1), Unlock(1)];
    let locks = [Lock(1), Unlock(1)];
    check(&[&[&timed, &locks], &[&timed], &[&timed]], 1, 1);
}

#[test]
#[ignore = "minutes"]
fn three_nodes_time_out_again_and_again() {
    let timed = [Timed(1), Unlock(1), Timed(1), Unlock(1)];
    let locks = [Lock(1), Unlock(1)];
    check(&[&[&timed, &locks], &[&timed], &[&timed]], 1, 1);
}

#[test]
fn two_nodes_try_nested_and_time_out() {
    // Opposite orders: only the tries and the time limits keep these from waiting for each other.
    let tries = [Lock(2), Try(1), Unlock(1), Unlock(2)];
    let timed = [Lock(1), Timed(2), Unlock(2), Unlock(1)];
    check(&[&[&tries, &timed], &[&tries, &timed]], 2, 1);
}

#[test]
fn hot_mutexes_stay_for_some_uses() {
    let thrice = [Lock(1), Unlock(1), Lock(1), Unlock(1), Lock(1), Unlock(1)];
    let once = [Lock(1), Unlock(1)];
    check_keeping(&[&[&thrice], &[&thrice]], 1, 1, 2);
    check_keeping(&[&[&thrice], &[&thrice], &[&once]], 1, 1, 1);
    check_keeping(&[&[&thrice, &once], &[&thrice]], 1, 1, 2);
}

#[test]
fn trylocks_meet_hot_mutexes() {
    let tries = [Try(1), Unlock(1), Try(1), Unlock(1)];
    let twice = [Lock(1), Unlock(1), Lock(1), Unlock(1)];
    let timed = [Timed(1), Unlock(1), Timed(1), Unlock(1)];
    check_keeping(&[&[&twice], &[&twice], &[&tries]], 1, 1, 2);
    check_keeping(&[&[&tries], &[&tries, &twice]], 1, 1, 1);
    check_keeping(&[&[&timed], &[&timed], &[&tries]], 1, 1, 1);
}

#[test]
fn two_nodes_take_turns_with_two_mutexes() {
    let one = [Lock(1), Unlock(1), Lock(2), Unlock(2), Lock(1), Unlock(1), Lock(2), Unlock(2)];
    let two = [Lock(2), Unlock(2), Lock(1), Unlock(1), Lock(2), Unlock(2), Lock(1), Unlock(1)];
    check_slices(&[&[&one], &[&two]], 2);
    check_slices(&[&[&one, &two[..4]], &[&one]], 2);
}

#[test]
fn three_nodes_take_turns() {
    let thrice = [Lock(1), Unlock(1), Lock(1), Unlock(1), Lock(1), Unlock(1)];
    let both = [Lock(1), Unlock(1), Lock(2), Unlock(2)];
    check_slices(&[&[&thrice], &[&thrice], &[&thrice]], 1);
    check_slices(&[&[&both], &[&both], &[&both]], 2);
}

#[test]
fn those_that_try_or_time_out_meet_slices() {
    let tries = [Try(1), Unlock(1), Try(1), Unlock(1)];
    let twice = [Lock(1), Unlock(1), Lock(1), Unlock(1)];
    let timed = [Timed(1), Unlock(1), Timed(1), Unlock(1)];
    check_slices(&[&[&twice], &[&twice], &[&tries]], 1);
    check_slices(&[&[&timed], &[&timed[..2]], &[&tries[..2]]], 1);
}

#[test]
fn mutexes_become_common() {
    let twice = [Lock(1), Unlock(1), Lock(1), Unlock(1)];
    let once = [Lock(1), Unlock(1)];
    check_common(&[&[&twice, &once], &[&twice, &once]], 1);
    check_common(&[&[&twice], &[&twice], &[&twice]], 1);
    check_common(&[&[&once, &once], &[&once, &once], &[&once]], 1);
    let nested = [Lock(1), Lock(2), Unlock(2), Unlock(1)];
    check_common(&[&[&nested, &twice], &[&nested]], 2);
}

#[test]
fn those_that_try_or_time_out_meet_common_mutexes() {
    let tries = [Try(1), Unlock(1), Try(1), Unlock(1)];
    let twice = [Lock(1), Unlock(1), Lock(1), Unlock(1)];
    let timed = [Timed(1), Unlock(1), Timed(1), Unlock(1)];
    check_common(&[&[&twice], &[&twice], &[&tries]], 1);
    check_common(&[&[&tries], &[&tries, &twice[..2]]], 1);
    check_common(&[&[&timed], &[&timed[..2]], &[&tries[..2]]], 1);
}

#[test]
fn tokens_are_asked_for_early() {
    let [lock, timed, tries] = [Lock(1), Timed(1), Try(1)].map(|first| [first, Unlock(1)]);
    let both = [Lock(1), Unlock(1), Lock(2), Unlock(2)];
    let keeping = Limits { kept_uses: 1, ..NEVER };
    for limits in [NEVER, keeping, Limits { slices: true, ..NEVER }, Limits { common_after: 2, ..NEVER }] {
        check_model(&[&[&lock, &timed], &[&lock, &tries]], 1, limits, true);
        check_model(&[&[&lock], &[&timed], &[&tries]], 1, limits, true);
        check_model(&[&[&both], &[&both]], 2, limits, true);
    }
}
