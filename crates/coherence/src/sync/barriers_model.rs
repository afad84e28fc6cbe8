//! Barriers in every order of events (stateright, exhaustive).

use super::barriers_world::{Event, Op, World};
use stateright::{Checker, Model, Property};

struct Programs {
    threads: Vec<usize>,
    programs: Vec<Vec<Op>>,
    fan_in: u16,
    instant: bool,
    /// Whether all programs must come to their ends.
    ends: bool,
}

impl Model for Programs {
    type State = World;
    type Action = Event;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(&self.threads, self.fan_in, self.instant)]
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
            Property::always("episodes are complete and seen", |_, world: &World| world.broken().is_none()),
            Property::always("nobody waits for ever", |model: &Self, world: &World| {
                let over =
                    || world.all_episodes_are_over() && (!model.ends || world.is_finished(&model.programs));
                !world.may_rest(&model.programs) || over()
            }),
        ]
    }
}

/// `nodes[node][thread]` is a program.
fn check(nodes: &[&[&[Op]]], fan_in: u16, instant: bool, ends: bool) {
    let model = Programs {
        threads: nodes.iter().map(|threads| threads.len()).collect(),
        programs: nodes.iter().flat_map(|threads| threads.iter().map(|program| program.to_vec())).collect(),
        fan_in,
        instant,
        ends,
    };
    let checker = model.checker().spawn_dfs().join();
    println!("{} states", checker.unique_state_count());
    checker.assert_properties();
}

/// Waits at barrier 1, which node 1 manages (node 0, if it is alone).
fn wait(count: u32) -> Op {
    Op::Wait { barrier: 1, count }
}

fn after(returns: u32) -> Op {
    Op::After { barrier: 1, returns }
}

#[test]
fn two_nodes_of_two_threads_meet_again_and_again() {
    let thrice = [wait(4); 3];
    check(&[&[&thrice, &thrice], &[&thrice, &thrice]], 2, false, true);
}

#[test]
fn three_nodes_meet_in_a_star_and_in_a_chain() {
    let twice = [wait(4); 2];
    for fan_in in [1, 2] {
        check(&[&[&twice], &[&twice, &twice], &[&twice]], fan_in, true, true);
        check(&[&[&twice, &twice], &[&twice], &[&twice]], fan_in, true, true);
    }
}

#[test]
fn four_nodes_have_inner_nodes() {
    let thrice = [wait(3); 3];
    // Rank 3 reports through rank 1, which has no thread of its own.
    check(&[&[&thrice], &[&thrice], &[], &[&thrice]], 2, true, true);
    check(&[&[&thrice], &[], &[&thrice, &thrice], &[]], 2, true, true);
}

#[test]
fn the_distribution_changes_between_episodes() {
    // Four threads in each episode: 2 and 2, then 3 and 1, then 1 and 3.
    let always = [wait(4), wait(4), wait(4)];
    let first_two = [wait(4), wait(4)];
    let last = [after(8), wait(4)];
    let first = [wait(4)];
    let later = [after(4), wait(4), wait(4)];
    check(
        &[&[&always, &first_two, &[after(4), wait(4)]], &[&first, &always, &last, &[after(8), wait(4)]]],
        2,
        true,
        true,
    );
    check(&[&[&first, &first_two], &[&always, &later], &[&last]], 1, true, false);
}

#[test]
fn two_nodes_take_each_others_places() {
    // Of three threads in each episode, the third is of one node or the other.
    let always = [wait(3); 4];
    let twice = [wait(3); 2];
    let [third, fourth] = [[after(6), wait(3)], [after(9), wait(3)]];
    let first_two_and_fourth = [wait(3), wait(3), after(9), wait(3)];
    check(&[&[&always, &twice, &fourth], &[&always, &third]], 2, true, true);
    check(&[&[&always, &third], &[&always, &first_two_and_fourth]], 2, true, true);
    check(&[&[&twice, &third], &[&twice, &third]], 2, false, false);
    // Nobody knows who will come next.
    check(&[&[&[wait(2); 3], &[wait(2); 2]], &[&[wait(2); 3]]], 2, false, false);
    check(&[&[&[wait(2); 3]], &[&[wait(2); 3], &[wait(2); 2]]], 2, false, false);
}

#[test]
fn a_barrier_is_initialised_again_with_another_count() {
    let four_then_two = [wait(4), wait(2)];
    let four = [wait(4)];
    // The next barrier may begin while the last threads of the one before are still on their way out.
    check(&[&[&four_then_two, &four], &[&four_then_two, &four]], 2, false, true);
    check(&[&[&four_then_two, &four_then_two], &[&four, &four]], 2, false, true);
    check(&[&[&four, &four], &[&four_then_two], &[&four_then_two]], 1, true, true);
    // Three are on their way out of the node where the next two, which were not among them, arrive.
    let two = [after(1), wait(2)];
    check(&[&[&four, &four, &four, &two, &two], &[&four]], 2, false, true);
    let two_then_four = [wait(2), wait(4)];
    let later = [after(1), wait(4)];
    check(&[&[&two_then_four, &later], &[&two_then_four, &later]], 2, false, true);
    let back_and_forth = [wait(3), wait(2), wait(3)];
    let late = [wait(3), after(4), wait(3)];
    check(&[&[&back_and_forth, &late], &[&back_and_forth]], 2, true, true);
    check(&[&[&back_and_forth], &[&late], &[&back_and_forth]], 1, true, true);
    // What was agreed on is void when the count changes.
    let thrice_then_three = [wait(2), wait(2), wait(2), wait(3)];
    let third = [after(6), wait(3)];
    check(&[&[&thrice_then_three], &[&thrice_then_three, &third]], 2, true, true);
    check(&[&[&thrice_then_three, &third], &[&thrice_then_three]], 2, true, true);
}

#[test]
fn more_threads_than_the_count_take_turns() {
    let [once, twice, thrice] = [&[wait(2)][..], &[wait(2); 2], &[wait(2); 3]];
    check(&[&[twice, twice], &[twice, twice]], 2, false, false);
    check(&[&[thrice, thrice], &[thrice]], 2, false, false);
    check(&[&[twice, twice], &[twice], &[twice]], 1, true, false);
    check(&[&[thrice, once], &[twice], &[thrice]], 2, true, false);
    let three = [wait(3); 2];
    check(&[&[&three, &three, &three], &[&three, &three]], 2, true, false);
}

#[test]
fn two_barriers_at_once_do_not_mix() {
    let both = [wait(2), Op::Wait { barrier: 2, count: 4 }, wait(2)];
    let other = [Op::Wait { barrier: 2, count: 4 }];
    check(&[&[&both, &other], &[&both, &other]], 2, true, true);
}
