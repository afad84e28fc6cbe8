//! Single transitions of the barrier machine, what episodes cost, long random runs.

use super::barriers_world::{Event, Op, Sent, World};
use super::{BarrierEnv, BarrierMessage, Barriers, Object};
use crate::{Outcome, Waiter};
use gondwana_topology::NodeId;
use proptest::collection;
use proptest::prelude::*;

const BARRIER: Object = Object(0x40);
const ROOT: NodeId = NodeId(0);
const CHILD: NodeId = NodeId(1);
const OTHER: NodeId = NodeId(2);

#[derive(Debug, PartialEq, Eq)]
enum Did {
    Sent(NodeId, BarrierMessage),
    Left(NodeId, BarrierMessage),
    Flushes,
    Acquired,
    Resumed(u64, bool),
}

/// Records what the machine does; flushes end when the test says so.
#[derive(Default)]
struct Log(Vec<Did>);

impl Log {
    fn take(&mut self) -> Vec<Did> {
        std::mem::take(&mut self.0)
    }
}

impl BarrierEnv for Log {
    fn manager(&self, _barrier: Object) -> NodeId {
        ROOT
    }

    fn send(&mut self, to: NodeId, message: &BarrierMessage) {
        self.0.push(Did::Sent(to, *message));
    }

    fn leave(&mut self, to: NodeId, message: &BarrierMessage) {
        self.0.push(Did::Left(to, *message));
    }

    fn release(&mut self, _barrier: Object) -> Outcome {
        self.0.push(Did::Flushes);
        Outcome::Wait
    }

    fn acquire(&mut self, _barrier: Object) {
        self.0.push(Did::Acquired);
    }

    fn resume(&mut self, waiter: Waiter, serial: bool) {
        self.0.push(Did::Resumed(waiter.0, serial));
    }
}

fn arrive(count: u32, threads: u32) -> BarrierMessage {
    BarrierMessage::Arrive { barrier: BARRIER, count, threads }
}

fn release(count: u32, threads: u32, serial: bool, expected: u32) -> BarrierMessage {
    BarrierMessage::Release { barrier: BARRIER, count, threads, serial, expected }
}

fn permit(count: u32, threads: u32) -> BarrierMessage {
    BarrierMessage::Permit { barrier: BARRIER, count, threads }
}

const DECLINE: BarrierMessage = BarrierMessage::Decline { barrier: BARRIER };
const HURRY: BarrierMessage = BarrierMessage::Hurry { barrier: BARRIER };

#[test]
fn arrivals_are_reported_at_once_at_first_and_together_afterwards() {
    let (mut machine, mut env) = (Barriers::new(CHILD, 2), Log::default());
    for waiter in 1..=2 {
        machine.arrive(BARRIER, 3, Waiter(waiter), &mut env);
        assert_eq!(env.take(), [Did::Flushes]);
        machine.flushed(BARRIER, &mut env);
        assert_eq!(env.take(), [Did::Sent(ROOT, arrive(3, 1))]);
    }
    machine.message(ROOT, release(3, 2, true, 2), &mut env).unwrap();
    assert_eq!(env.take(), [Did::Acquired, Did::Resumed(1, false), Did::Resumed(2, true)]);
    machine.arrive(BARRIER, 3, Waiter(2), &mut env);
    assert_eq!(env.take(), []);
    machine.arrive(BARRIER, 3, Waiter(1), &mut env);
    assert_eq!(env.take(), [Did::Flushes]);
    machine.flushed(BARRIER, &mut env);
    assert_eq!(env.take(), [Did::Sent(ROOT, arrive(3, 2))]);
    machine.message(ROOT, release(3, 2, false, 2), &mut env).unwrap();
    assert_eq!(env.take(), [Did::Acquired, Did::Resumed(2, false), Did::Resumed(1, false)]);
    // Another count: a new barrier, of which nothing is known.
    machine.arrive(BARRIER, 2, Waiter(1), &mut env);
    assert_eq!(env.take(), [Did::Flushes]);
}

#[test]
fn who_arrives_during_a_flush_has_the_next_one() {
    let (mut machine, mut env) = (Barriers::new(CHILD, 2), Log::default());
    for waiter in 1..=3 {
        machine.arrive(BARRIER, 4, Waiter(waiter), &mut env);
    }
    assert_eq!(env.take(), [Did::Flushes]);
    machine.flushed(BARRIER, &mut env);
    assert_eq!(env.take(), [Did::Flushes, Did::Sent(ROOT, arrive(4, 1))]);
    machine.flushed(BARRIER, &mut env);
    assert_eq!(env.take(), [Did::Sent(ROOT, arrive(4, 2))]);
}

#[test]
fn whoever_may_keep_arrivals_back_is_hurried_when_others_have_more() {
    let (mut machine, mut env) = (Barriers::new(ROOT, 3), Log::default());
    machine.message(CHILD, arrive(4, 2), &mut env).unwrap();
    machine.message(OTHER, arrive(4, 2), &mut env).unwrap();
    let both = [Did::Sent(CHILD, release(4, 2, false, 2)), Did::Sent(OTHER, release(4, 2, true, 2))];
    assert_eq!(env.take(), both);
    machine.message(CHILD, arrive(4, 2), &mut env).unwrap();
    assert_eq!(env.take(), []);
    machine.message(CHILD, arrive(4, 1), &mut env).unwrap();
    assert_eq!(env.take(), [Did::Sent(OTHER, HURRY)]);
    machine.message(OTHER, arrive(4, 1), &mut env).unwrap();
    let both = [Did::Sent(CHILD, release(4, 3, false, 3)), Did::Sent(OTHER, release(4, 1, true, 1))];
    assert_eq!(env.take(), both);
    assert_eq!((machine.counters().episodes, machine.counters().hurries), (2, 1));
}

#[test]
fn a_hurried_node_sends_what_it_has() {
    let (mut machine, mut env) = (Barriers::new(CHILD, 2), Log::default());
    machine.arrive(BARRIER, 4, Waiter(1), &mut env);
    machine.flushed(BARRIER, &mut env);
    machine.message(ROOT, release(4, 1, false, 2), &mut env).unwrap();
    env.take();
    // The parent may expect more than came, from nodes beyond this one.
    machine.arrive(BARRIER, 4, Waiter(1), &mut env);
    machine.flushed(BARRIER, &mut env);
    assert_eq!(env.take(), [Did::Flushes]);
    machine.message(ROOT, HURRY, &mut env).unwrap();
    assert_eq!(env.take(), [Did::Sent(ROOT, arrive(4, 1))]);
}

/// A root of two nodes with a thread of its own and, by the first episode, one of the child's.
fn root_of_two() -> (Barriers, Log) {
    let (mut root, mut env) = (Barriers::new(ROOT, 2), Log::default());
    root.message(CHILD, arrive(2, 1), &mut env).unwrap();
    root.arrive(BARRIER, 2, Waiter(1), &mut env);
    root.flushed(BARRIER, &mut env);
    let ends =
        [Did::Flushes, Did::Sent(CHILD, release(2, 1, false, 1)), Did::Acquired, Did::Resumed(1, true)];
    assert_eq!(env.take(), ends);
    (root, env)
}

#[test]
fn the_last_node_needs_no_answer() {
    let (mut root, mut env) = root_of_two();
    root.arrive(BARRIER, 2, Waiter(1), &mut env);
    root.flushed(BARRIER, &mut env);
    assert_eq!(env.take(), [Did::Flushes, Did::Left(CHILD, permit(2, 1))]);
    root.message(CHILD, arrive(2, 1), &mut env).unwrap();
    assert_eq!(env.take(), [Did::Acquired, Did::Resumed(1, false)]);

    let mut child = Barriers::new(CHILD, 2);
    child.arrive(BARRIER, 2, Waiter(7), &mut env);
    child.flushed(BARRIER, &mut env);
    child.message(ROOT, release(2, 1, false, 1), &mut env).unwrap();
    env.take();
    child.message(ROOT, permit(2, 1), &mut env).unwrap();
    assert_eq!(env.take(), []);
    child.arrive(BARRIER, 2, Waiter(7), &mut env);
    child.flushed(BARRIER, &mut env);
    let goes_on = [Did::Flushes, Did::Sent(ROOT, arrive(2, 1)), Did::Acquired, Did::Resumed(7, true)];
    assert_eq!(env.take(), goes_on);
    child.arrive(BARRIER, 2, Waiter(7), &mut env);
    child.flushed(BARRIER, &mut env);
    assert_eq!(env.take(), [Did::Flushes, Did::Sent(ROOT, arrive(2, 1))]);
    child.message(ROOT, permit(2, 1), &mut env).unwrap();
    assert_eq!(env.take(), [Did::Acquired, Did::Resumed(7, true)]);
}

#[test]
fn a_permit_is_declined_when_others_have_come_instead() {
    let (mut root, mut env) = root_of_two();
    for waiter in 1..=2 {
        root.arrive(BARRIER, 2, Waiter(waiter), &mut env);
        root.flushed(BARRIER, &mut env);
    }
    let hurries = [Did::Flushes, Did::Left(CHILD, permit(2, 1)), Did::Flushes, Did::Sent(CHILD, HURRY)];
    assert_eq!(env.take(), hurries);
    root.message(CHILD, DECLINE, &mut env).unwrap();
    assert_eq!(env.take(), [Did::Acquired, Did::Resumed(1, false), Did::Resumed(2, true)]);

    let mut child = Barriers::new(CHILD, 2);
    child.arrive(BARRIER, 2, Waiter(7), &mut env);
    child.flushed(BARRIER, &mut env);
    child.message(ROOT, release(2, 1, false, 1), &mut env).unwrap();
    child.message(ROOT, permit(2, 1), &mut env).unwrap();
    env.take();
    child.message(ROOT, HURRY, &mut env).unwrap();
    assert_eq!(env.take(), [Did::Sent(ROOT, DECLINE)]);
    // A barrier of another count at the same address.
    child.message(ROOT, permit(2, 1), &mut env).unwrap();
    child.arrive(BARRIER, 3, Waiter(7), &mut env);
    assert_eq!(env.take(), [Did::Sent(ROOT, DECLINE), Did::Flushes]);
}

#[test]
fn impossible_messages_are_refused() {
    let (mut root, mut env) = (Barriers::new(ROOT, 3), Log::default());
    for message in [arrive(0, 1), arrive(2, 0), release(2, 1, false, 1), permit(2, 1), DECLINE, HURRY] {
        let refused = root.message(CHILD, message, &mut env).unwrap_err();
        assert_eq!((refused.from, refused.message), (CHILD, message));
    }
    assert!(root.message(NodeId(3), arrive(2, 1), &mut env).is_err(), "there is no such node");
    root.message(CHILD, arrive(u32::MAX, u32::MAX - 1), &mut env).unwrap();
    assert!(root.message(OTHER, arrive(u32::MAX, 2), &mut env).is_err(), "more threads than can be");
    let mut child = Barriers::new(CHILD, 3);
    child.arrive(BARRIER, 3, Waiter(1), &mut env);
    assert!(child.message(ROOT, release(3, 1, false, 1), &mut env).is_err(), "nothing was sent");
    child.flushed(BARRIER, &mut env);
    for (from, message) in [
        (OTHER, arrive(3, 1)),
        (OTHER, HURRY),
        (OTHER, release(3, 1, false, 1)),
        (ROOT, release(3, 0, false, 1)),
        (ROOT, release(3, 2, false, 2)),
        (ROOT, permit(3, 1)),
    ] {
        assert!(child.message(from, message, &mut env).is_err(), "{message:?} from {from}");
    }
    assert_eq!(env.take(), [Did::Flushes, Did::Sent(ROOT, arrive(3, 1))]);
}

/// A fixed sequence of choices that repeats itself late (an LCG).
struct Choices(u64);

impl Choices {
    fn next(&mut self, among: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % among
    }
}

/// Runs until nothing can happen any more; each choice is as good as another.
fn run(world: &mut World, programs: &[Vec<Op>], choices: &mut Choices) {
    loop {
        let mut events: Vec<Event> = Vec::new();
        world.events(programs, &mut events);
        if events.is_empty() {
            return;
        }
        world.happen(events[choices.next(events.len())], programs);
        assert_eq!(world.broken(), None);
    }
}

fn wait(count: u32) -> Op {
    Op::Wait { barrier: 1, count }
}

/// Messages of `episodes` episodes, after a first one.
fn steady(threads: &[usize], fan_in: u16, episodes: u32) -> Sent {
    let total = threads.iter().sum::<usize>();
    let wait = wait(u32::try_from(total).unwrap());
    let mut world = World::new(threads, fan_in, false);
    let mut choices = Choices(1);
    run(&mut world, &vec![vec![wait]; total], &mut choices);
    world.count_messages();
    let programs = vec![vec![wait; episodes as usize + 1]; total];
    run(&mut world, &programs, &mut choices);
    assert!(world.is_finished(&programs));
    world.count_messages()
}

#[test]
fn each_node_but_the_root_sends_one_message_in_an_episode() {
    let per_episode = |nodes: u32| Sent { arrivals: 10 * nodes, releases: 10 * nodes, hurries: 0 };
    assert_eq!(steady(&[1, 1], 8, 10), per_episode(1));
    assert_eq!(steady(&[4, 4], 8, 10), per_episode(1));
    assert_eq!(steady(&[3, 2, 4, 1], 2, 10), per_episode(3));
    assert_eq!(steady(&[1, 2, 1, 2, 1, 2, 1, 2], 2, 10), per_episode(7));
}

#[test]
fn a_new_distribution_is_learnt_in_one_episode() {
    // Twenty episodes of the first and second, then twenty of the second and third, on three nodes.
    let programs = [
        vec![wait(2); 20],
        vec![wait(2); 40],
        [vec![Op::After { barrier: 1, returns: 40 }], vec![wait(2); 20]].concat(),
    ];
    let mut world = World::new(&[1, 1, 1], 8, true);
    world.count_messages();
    run(&mut world, &programs, &mut Choices(1));
    assert!(world.is_finished(&programs));
    // The root, node 1, has a thread in every episode; the others have 20 messages each way in all.
    assert_eq!(world.count_messages(), Sent { arrivals: 40, releases: 40, hurries: 1 });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Episodes of changing size with changing threads; each begins as soon as one thread has left the one before.
    #[test]
    fn random_episodes_end(
        threads in prop_oneof![collection::vec(0..4usize, 2), collection::vec(0..4usize, 1..6)],
        episodes in collection::vec((any::<u64>(), 0..3u8), 1..12),
        fan_in in 1..4u16,
        instant: bool,
        seed: u64,
    ) {
        let total = threads.iter().sum::<usize>();
        let mut programs = vec![Vec::new(); total];
        let (mut returns, mut members, mut may_start) = (0, 0, 0);
        for (choice, change) in episodes {
            if change == 0 || members == 0 {
                members = choice & ((1 << total) - 1);
            }
            let count = members.count_ones();
            let member = |index: &usize| members >> index & 1 == 1;
            for index in (0..total).filter(member) {
                programs[index].extend([Op::After { barrier: 1, returns: may_start }, wait(count)]);
            }
            may_start = returns + u32::from(count > 0);
            returns += count;
        }
        let mut world = World::new(&threads, fan_in, instant);
        run(&mut world, &programs, &mut Choices(seed));
        prop_assert!(world.is_finished(&programs));
        prop_assert!(world.all_episodes_are_over());
    }

    /// More threads than the count, each with its own number of turns.
    #[test]
    fn random_turns_leave_no_complete_episode_waiting(
        threads in prop_oneof![collection::vec(1..4usize, 2), collection::vec(1..4usize, 1..6)],
        turns in collection::vec(0..20usize, 15),
        count in 1..6u32,
        fan_in in 1..4u16,
        instant: bool,
        seed: u64,
    ) {
        let total = threads.iter().sum::<usize>();
        let programs: Vec<Vec<Op>> = turns[..total].iter().map(|turns| vec![wait(count); *turns]).collect();
        let mut world = World::new(&threads, fan_in, instant);
        run(&mut world, &programs, &mut Choices(seed));
        prop_assert!(world.all_episodes_are_over());
    }
}
