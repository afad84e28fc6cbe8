//! Single transitions of the lock machine, long random runs, fairness.

use super::locks::Limits;
use super::locks_world::{Event, Op, World};
use super::{
    Fast, Kind, LOCAL_HANDOVERS, LockEnv, LockGrant, LockMessage, LockTable, Locks, Object, SyncError,
    Thread, TryOutcome, Turn,
};
use crate::{Outcome, Waiter};
use gondwana_topology::NodeId;
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

pub(super) const MUTEX: Object = Object(0x40);
pub(super) const MANAGER: NodeId = NodeId(0);
pub(super) const OTHER: NodeId = NodeId(1);
const THIRD: NodeId = NodeId(2);

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Did {
    Sent(NodeId, LockMessage),
    Passed(NodeId),
    Arrived,
    Resumed(u64, LockGrant),
}

/// Records what the machine does; flushes end when the test says so.
#[derive(Default)]
pub(super) struct Log {
    did: Vec<Did>,
    pub now: Duration,
}

impl Log {
    pub(super) fn take(&mut self) -> Vec<Did> {
        std::mem::take(&mut self.did)
    }
}

impl LockEnv for Log {
    fn send(&mut self, to: NodeId, message: &LockMessage) {
        self.did.push(Did::Sent(to, *message));
    }

    fn pass(&mut self, _object: Object, to: Option<NodeId>) -> Outcome {
        self.did.push(Did::Passed(to.expect("the mutex stays a token")));
        Outcome::Wait
    }

    fn arrived(&mut self, _object: Object, _from: NodeId) {
        self.did.push(Did::Arrived);
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn is_active(&self) -> bool {
        true
    }

    fn resume(&mut self, waiter: Waiter, grant: LockGrant) {
        self.did.push(Did::Resumed(waiter.0, grant));
    }
}

pub(super) fn machine(me: NodeId) -> (Locks, Arc<LockTable>, Log) {
    let table = Arc::new(LockTable::new());
    (Locks::new(me, 4, Arc::clone(&table), Arc::new(|_| MANAGER)), table, Log::default())
}

pub(super) fn request(attempt: Option<u64>) -> LockMessage {
    LockMessage::Request { object: MUTEX, attempt, slice: 1 }
}

fn pass(to: NodeId, attempt: Option<u64>) -> LockMessage {
    LockMessage::Pass { object: MUTEX, next: Turn { slice: 1, node: to }, attempt }
}

pub(super) const TOKEN: LockMessage = token(MUTEX);

pub(super) const fn token(object: Object) -> LockMessage {
    LockMessage::Token { object, kept: false, common: false }
}

const BUSY: LockMessage = LockMessage::Busy { object: MUTEX, attempt: 1 };

fn ask(to: NodeId, attempt: u64) -> LockMessage {
    LockMessage::Ask { object: MUTEX, to, attempt }
}

fn ask_before(to: NodeId, attempt: u64) -> LockMessage {
    LockMessage::AskBefore { object: MUTEX, to, attempt }
}

#[test]
fn the_manager_starts_with_the_token() {
    let (mut locks, table, mut env) = machine(MANAGER);
    assert_eq!(table.entry(MUTEX).fast_lock(Thread(1), || Kind::Normal), Ok(Fast::Slow));
    assert_eq!(locks.lock(MUTEX, Thread(1), Waiter(1), &mut env), Outcome::Done);
    assert_eq!(table.entry(MUTEX).fast_unlock(Thread(1), || Kind::Normal), Ok(Fast::Done));
    assert_eq!(table.entry(MUTEX).fast_lock(Thread(2), || Kind::Normal), Ok(Fast::Done));
    assert_eq!(env.take(), []);
}

#[test]
fn a_token_is_asked_for_once_and_then_rests_here() {
    let (mut locks, table, mut env) = machine(OTHER);
    for index in 1..=2 {
        assert_eq!(locks.lock(MUTEX, Thread(index), Waiter(index), &mut env), Outcome::Wait);
    }
    assert_eq!(env.take(), [Did::Sent(MANAGER, request(None))]);
    locks.message(MANAGER, TOKEN, &mut env).unwrap();
    assert_eq!(env.take(), [Did::Arrived, Did::Resumed(1, LockGrant::Acquired)]);
    let entry = table.entry(MUTEX);
    assert!(entry.is_held_by(Thread(1)));
    assert_eq!(entry.fast_unlock(Thread(1), || Kind::Normal), Ok(Fast::Slow));
    locks.unlock(MUTEX, &mut env).unwrap();
    assert_eq!(env.take(), [Did::Resumed(2, LockGrant::Acquired)]);
    assert_eq!(entry.fast_unlock(Thread(2), || Kind::Normal), Ok(Fast::Done));
    assert_eq!(entry.fast_lock(Thread(1), || Kind::Normal), Ok(Fast::Done));
    assert_eq!(locks.counters().requests, 1);
    assert_eq!(locks.counters().handovers, 1);
}

#[test]
fn a_token_leaves_only_after_the_flush() {
    let (mut locks, table, mut env) = machine(MANAGER);
    assert_eq!(locks.lock(MUTEX, Thread(1), Waiter(1), &mut env), Outcome::Done);
    locks.message(OTHER, request(None), &mut env).unwrap();
    assert_eq!(env.take(), []);
    assert_eq!(table.entry(MUTEX).fast_unlock(Thread(1), || Kind::Normal), Ok(Fast::Slow));
    locks.unlock(MUTEX, &mut env).unwrap();
    assert_eq!(env.take(), [Did::Passed(OTHER)]);
    // A thread that comes meanwhile waits until the token can be asked for again.
    assert_eq!(table.entry(MUTEX).fast_lock(Thread(1), || Kind::Normal), Ok(Fast::Slow));
    assert_eq!(locks.lock(MUTEX, Thread(1), Waiter(1), &mut env), Outcome::Wait);
    assert_eq!(env.take(), []);
    locks.flushed(MUTEX, &mut env);
    assert_eq!(env.take(), [Did::Sent(OTHER, TOKEN), Did::Sent(OTHER, pass(MANAGER, None))]);
}

#[test]
fn the_manager_forwards_to_whoever_asked_last() {
    let (mut locks, _, mut env) = machine(MANAGER);
    locks.message(OTHER, request(None), &mut env).unwrap();
    locks.flushed(MUTEX, &mut env);
    env.take();
    locks.message(THIRD, request(Some(1)), &mut env).unwrap();
    assert_eq!(env.take(), [Did::Sent(OTHER, pass(THIRD, Some(1)))]);
}

#[test]
fn another_node_waits_for_a_bounded_number_of_handovers() {
    let (mut locks, table, mut env) = machine(MANAGER);
    let entry = table.entry(MUTEX);
    assert_eq!(locks.lock(MUTEX, Thread(1), Waiter(1), &mut env), Outcome::Done);
    locks.message(OTHER, request(None), &mut env).unwrap();
    // Thread 1 holds it, the odd and the even one hand it to each other.
    for turn in 0..=u64::from(LOCAL_HANDOVERS) {
        let (holder, next) = (1 + turn % 2, 2 - turn % 2);
        assert_eq!(locks.lock(MUTEX, Thread(next), Waiter(next), &mut env), Outcome::Wait);
        assert_eq!(entry.fast_unlock(Thread(holder), || Kind::Normal), Ok(Fast::Slow));
        locks.unlock(MUTEX, &mut env).unwrap();
        let last = turn == u64::from(LOCAL_HANDOVERS);
        let expected = if last { Did::Passed(OTHER) } else { Did::Resumed(next, LockGrant::Acquired) };
        assert_eq!(env.take(), [expected], "turn {turn}");
    }
    locks.flushed(MUTEX, &mut env);
    assert_eq!(env.take(), [Did::Sent(OTHER, TOKEN), Did::Sent(OTHER, pass(MANAGER, None))]);
}

#[test]
fn a_failed_try_leaves_the_token_coming() {
    let (mut locks, table, mut env) = machine(OTHER);
    assert_eq!(locks.try_lock(MUTEX, Thread(1), Waiter(1), &mut env), TryOutcome::Wait);
    assert_eq!(env.take(), [Did::Sent(MANAGER, request(Some(1)))]);
    // The token is asked for already, which says nothing about whether somebody holds it.
    assert_eq!(locks.try_lock(MUTEX, Thread(2), Waiter(2), &mut env), TryOutcome::Wait);
    assert_eq!(env.take(), [Did::Sent(MANAGER, ask_before(OTHER, 2))]);
    // Nor does an answer to the first question decide the second attempt.
    locks.message(MANAGER, BUSY, &mut env).unwrap();
    assert_eq!(env.take(), [Did::Resumed(1, LockGrant::Busy)]);
    locks.message(MANAGER, TOKEN, &mut env).unwrap();
    assert_eq!(env.take(), [Did::Arrived, Did::Resumed(2, LockGrant::Acquired)]);
    // An answer may be slower than the token.
    locks.message(MANAGER, BUSY, &mut env).unwrap();
    assert_eq!(env.take(), []);
    assert_eq!(table.entry(MUTEX).fast_try_lock(Thread(1), || Kind::Normal), Err(SyncError::Busy));
}

#[test]
fn a_holder_tells_a_try_at_once() {
    let (mut locks, _, mut env) = machine(MANAGER);
    assert_eq!(locks.lock(MUTEX, Thread(1), Waiter(1), &mut env), Outcome::Done);
    locks.message(OTHER, request(Some(1)), &mut env).unwrap();
    assert_eq!(env.take(), [Did::Sent(OTHER, BUSY)]);
}

#[test]
fn whoever_awaits_the_token_has_the_node_before_asked_and_speaks_up_later() {
    let (mut locks, _, mut env) = machine(OTHER);
    assert_eq!(locks.lock(MUTEX, Thread(1), Waiter(1), &mut env), Outcome::Wait);
    assert_eq!(locks.try_lock(MUTEX, Thread(2), Waiter(2), &mut env), TryOutcome::Wait);
    env.take();
    locks.message(MANAGER, pass(THIRD, Some(1)), &mut env).unwrap();
    assert_eq!(env.take(), [Did::Sent(MANAGER, ask_before(THIRD, 1))]);
    locks.message(MANAGER, ask(THIRD, 2), &mut env).unwrap();
    assert_eq!(env.take(), [Did::Sent(MANAGER, ask_before(THIRD, 2))]);
    locks.message(MANAGER, TOKEN, &mut env).unwrap();
    let told = Did::Sent(THIRD, LockMessage::Busy { object: MUTEX, attempt: 2 });
    let resumed = [Did::Resumed(1, LockGrant::Acquired), Did::Resumed(2, LockGrant::Busy)];
    assert_eq!(env.take(), [Did::Arrived].into_iter().chain(resumed).chain([told]).collect::<Vec<_>>());
}

#[test]
fn a_node_that_passed_the_token_on_has_nothing_to_say() {
    let (mut locks, _, mut env) = machine(MANAGER);
    locks.message(OTHER, request(None), &mut env).unwrap();
    assert_eq!(env.take(), [Did::Passed(OTHER)]);
    // The token is leaving towards the one that asks.
    locks.message(OTHER, ask_before(OTHER, 1), &mut env).unwrap();
    assert_eq!(env.take(), []);
    locks.flushed(MUTEX, &mut env);
    locks.message(THIRD, request(Some(1)), &mut env).unwrap();
    assert_eq!(env.take(), [Did::Sent(OTHER, TOKEN), Did::Sent(OTHER, pass(THIRD, Some(1)))]);
    locks.message(OTHER, ask_before(THIRD, 1), &mut env).unwrap();
    assert_eq!(env.take(), []);
}

#[test]
fn a_try_that_meets_a_leaving_token_has_it_asked_for() {
    let (mut locks, _, mut env) = machine(MANAGER);
    locks.message(OTHER, request(None), &mut env).unwrap();
    assert_eq!(locks.try_lock(MUTEX, Thread(1), Waiter(1), &mut env), TryOutcome::Wait);
    assert_eq!(env.take(), [Did::Passed(OTHER)]);
    locks.flushed(MUTEX, &mut env);
    assert_eq!(env.take(), [Did::Sent(OTHER, TOKEN), Did::Sent(OTHER, pass(MANAGER, Some(1)))]);
}

#[test]
fn a_token_that_nobody_wants_any_more_is_passed_on_unused() {
    let (mut locks, _, mut env) = machine(OTHER);
    assert_eq!(locks.lock(MUTEX, Thread(1), Waiter(1), &mut env), Outcome::Wait);
    assert!(locks.cancel(MUTEX, Waiter(1)));
    assert!(!locks.cancel(MUTEX, Waiter(1)));
    locks.message(MANAGER, pass(THIRD, None), &mut env).unwrap();
    env.take();
    locks.message(MANAGER, TOKEN, &mut env).unwrap();
    assert_eq!(env.take(), [Did::Sent(THIRD, TOKEN)]);
    // And it is gone: the next lock asks again.
    assert_eq!(locks.lock(MUTEX, Thread(1), Waiter(1), &mut env), Outcome::Wait);
    assert_eq!(env.take(), [Did::Sent(MANAGER, request(None))]);
}

#[test]
fn initialising_frees_a_mutex_left_locked() {
    let (mut locks, table, mut env) = machine(MANAGER);
    locks.reset(MUTEX, &mut env);
    assert!(table.get(MUTEX).is_none(), "initialising costs no entry");
    assert_eq!(locks.lock(MUTEX, Thread(1), Waiter(1), &mut env), Outcome::Done);
    locks.reset(MUTEX, &mut env);
    assert_eq!(table.entry(MUTEX).fast_lock(Thread(2), || Kind::Normal), Ok(Fast::Done));
    assert_eq!(env.take(), []);
}

#[test]
fn unlocking_a_mutex_that_is_elsewhere_is_an_error() {
    let (mut locks, table, mut env) = machine(OTHER);
    assert_eq!(table.entry(MUTEX).fast_unlock(Thread(1), || Kind::Normal), Ok(Fast::Slow));
    assert_eq!(locks.unlock(MUTEX, &mut env), Err(SyncError::NotOwner));
}

#[test]
fn impossible_messages_are_refused() {
    let (mut other, _, mut env) = machine(OTHER);
    let asks = [ask(OTHER, 1), ask_before(THIRD, 1)];
    for message in [TOKEN, BUSY, request(None), pass(THIRD, None), pass(OTHER, None)].into_iter().chain(asks)
    {
        let refused = other.message(MANAGER, message, &mut env).unwrap_err();
        assert_eq!((refused.from, refused.message), (MANAGER, message));
    }
    assert_eq!(other.lock(MUTEX, Thread(1), Waiter(1), &mut env), Outcome::Wait);
    assert!(other.message(THIRD, pass(THIRD, None), &mut env).is_err(), "only the manager forwards");
    assert!(other.message(THIRD, ask(MANAGER, 1), &mut env).is_err(), "only the manager asks");
    other.message(MANAGER, pass(THIRD, None), &mut env).unwrap();
    assert!(other.message(MANAGER, pass(THIRD, None), &mut env).is_err(), "a second successor");
    let (mut manager, _, mut env) = machine(MANAGER);
    manager.message(OTHER, request(None), &mut env).unwrap();
    assert!(manager.message(OTHER, request(None), &mut env).is_err(), "asked twice");
}

/// Messages and flushes are immediate, threads greedy (mostly they queue again before the holder goes on):
/// nobody who waits is overtaken more often than one tour of the token allows.
#[test]
fn waiters_are_overtaken_a_bounded_number_of_times() {
    const NODES: usize = 3;
    const THREADS: usize = 3;
    const HANDOVERS: u32 = 3;
    let programs = vec![[Op::Lock(1), Op::Unlock(1)].repeat(2000); NODES * THREADS];
    let limits = Limits { local_handovers: HANDOVERS, kept_uses: 0, slices: false, common_after: u32::MAX };
    let mut world = World::new(&[THREADS; NODES], limits, true);
    let mut overtaken = [0u32; NODES * THREADS];
    let mut worst = 0;
    let mut choice = 1u64;
    for _ in 0..20_000 {
        // A fixed sequence of turns that repeats itself late (an LCG).
        choice = choice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let greedy = world.runners.iter().position(|runner| !runner.waits && runner.holds.is_empty());
        let turn = match (greedy, choice >> 61) {
            (Some(greedy), 1..) => greedy,
            _ => (choice >> 33) as usize % programs.len(),
        };
        if world.runners[turn].waits || world.runners[turn].pc == programs[turn].len() {
            continue;
        }
        let before = world.runners.clone();
        world.happen(Event::Step(turn), &programs);
        loop {
            let mut events = Vec::new();
            world.background(&mut events);
            let Some(event) = events.pop() else { break };
            world.happen(event, &programs);
        }
        assert_eq!(world.broken(), None);
        for (index, (was, is)) in before.iter().zip(&world.runners).enumerate() {
            if was.holds.is_empty() && !is.holds.is_empty() {
                overtaken[index] = 0;
                for (waiting, count) in world.runners.iter().zip(&mut overtaken) {
                    *count += u32::from(waiting.waits);
                    worst = worst.max(*count);
                }
            }
        }
    }
    assert!(worst > 0, "the threads must get in each other's way");
    assert!(worst as usize <= NODES * (HANDOVERS as usize + 1) + THREADS, "overtaken {worst} times");
}

fn section() -> impl Strategy<Value = Vec<Op>> {
    let one = |enter: fn(u64) -> Op| move |number| vec![enter(number), Op::Unlock(number)];
    prop_oneof![
        4 => (1..=3u64).prop_map(one(Op::Lock)),
        1 => (1..=3u64).prop_map(one(Op::Timed)),
        1 => (1..=3u64).prop_map(one(Op::Try)),
        1 => Just(vec![Op::Lock(1), Op::Lock(3), Op::Unlock(1), Op::Unlock(3)]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Four nodes of three threads, in random order of everything.
    #[test]
    fn random_runs_end_with_every_token_at_rest(
        sections in proptest::collection::vec(proptest::collection::vec(section(), 0..12), 12),
        instant: bool,
        kept_uses in 0..4u32,
        slices: bool,
        common_after in prop_oneof![0..4u32, Just(u32::MAX)],
        mut seed: u64,
    ) {
        let programs: Vec<Vec<Op>> = sections.into_iter().map(|sections| sections.concat()).collect();
        let mut world = World::new(&[3; 4], Limits { local_handovers: 2, kept_uses, slices, common_after }, instant);
        loop {
            let mut events = Vec::new();
            world.events(&programs, &mut events);
            // A thread gives up rarely, or nobody would ever wait long.
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if events.len() > 1 && (seed >> 60) != 0 {
                let patient: Vec<_> =
                    events.iter().filter(|event| !matches!(event, Event::GiveUp(_))).copied().collect();
                if !patient.is_empty() {
                    events = patient;
                }
            }
            if events.is_empty() {
                break;
            }
            world.happen(events[(seed >> 33) as usize % events.len()], &programs);
            prop_assert_eq!(world.broken(), None);
            prop_assert!(world.excludes());
        }
        prop_assert!(world.is_finished(&programs));
        prop_assert!(world.one_token_each(3));
    }
}
