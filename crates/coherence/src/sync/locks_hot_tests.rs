//! The tokens of hot mutexes.

use super::locks::HOT;
use super::locks_tests::{Did, Log, MANAGER, MUTEX, OTHER, TOKEN, machine, request};
use super::{Fast, KEPT_USES, Kind, LockTable, Locks, Thread};
use crate::{Outcome, Waiter};
use std::sync::Arc;
use std::time::Duration;

/// A machine whose mutex was wanted back at once again and again, so that it is hot. It is here, and free.
fn hot_machine() -> (Locks, Arc<LockTable>, Log) {
    let (mut locks, table, mut env) = machine(MANAGER);
    for _ in 0..HOT {
        locks.message(OTHER, request(None), &mut env).unwrap();
        assert!(!locks.take_newly_kept());
        locks.flushed(MUTEX, &mut env);
        assert_eq!(locks.lock(MUTEX, Thread(1), Waiter(1), &mut env), Outcome::Wait);
        locks.message(OTHER, TOKEN, &mut env).unwrap();
        assert_eq!(table.entry(MUTEX).fast_unlock(Thread(1), || Kind::Normal), Ok(Fast::Done));
    }
    env.take();
    (locks, table, env)
}

#[test]
fn the_token_of_a_hot_mutex_stays_for_some_uses() {
    let (mut locks, table, mut env) = hot_machine();
    locks.message(OTHER, request(None), &mut env).unwrap();
    assert!(locks.take_newly_kept() && !locks.take_newly_kept(), "said once");
    for _ in 0..KEPT_USES {
        assert_eq!(env.take(), []);
        assert_eq!(table.entry(MUTEX).fast_lock(Thread(1), || Kind::Normal), Ok(Fast::Slow));
        assert_eq!(locks.lock(MUTEX, Thread(1), Waiter(1), &mut env), Outcome::Done);
        assert_eq!(table.entry(MUTEX).fast_unlock(Thread(1), || Kind::Normal), Ok(Fast::Slow));
        locks.unlock(MUTEX, &mut env).unwrap();
    }
    assert_eq!(env.take(), [Did::Passed(OTHER)]);
    assert_eq!(locks.counters().kept, u64::from(KEPT_USES));
    locks.let_go(&mut env);
    assert_eq!(env.take(), [], "it is on its way");
}

/// The token, which stays, is used once and leaves; then the machine's thread waits so long for it.
fn waits(locks: &mut Locks, env: &mut Log, wait: Duration) {
    locks.message(OTHER, request(None), env).unwrap();
    assert_eq!(locks.lock(MUTEX, Thread(1), Waiter(1), env), Outcome::Done);
    locks.let_go(env);
    locks.unlock(MUTEX, env).unwrap();
    locks.flushed(MUTEX, env);
    assert_eq!(locks.lock(MUTEX, Thread(1), Waiter(1), env), Outcome::Wait);
    env.now += wait;
    locks.message(OTHER, TOKEN, env).unwrap();
    env.take();
    locks.take_newly_kept();
}

#[test]
fn tokens_that_take_long_stay_longer() {
    let micros = Duration::from_micros;
    // Four nodes: a quarter of the wait, at least 20 us, at most 2 ms.
    for (wait, hold) in [(micros(8), micros(20)), (micros(800), micros(200)), (micros(80_000), micros(2_000))]
    {
        let (mut locks, table, mut env) = hot_machine();
        waits(&mut locks, &mut env, wait);
        locks.message(OTHER, request(None), &mut env).unwrap();
        assert!(!locks.take_newly_kept());
        assert_eq!(locks.let_go_due(&mut env), None, "its time does not run while it is held first");
        assert_eq!(table.entry(MUTEX).fast_unlock(Thread(1), || Kind::Normal), Ok(Fast::Slow));
        locks.unlock(MUTEX, &mut env).unwrap();
        assert!(locks.take_newly_kept());
        let due = env.now + hold;
        assert_eq!(locks.let_go_due(&mut env), Some(due));
        env.now = due - micros(1);
        assert_eq!(locks.lock(MUTEX, Thread(1), Waiter(1), &mut env), Outcome::Done);
        locks.unlock(MUTEX, &mut env).unwrap();
        assert_eq!(locks.let_go_due(&mut env), Some(due), "uses do not begin it anew");
        assert_eq!(env.take(), []);
        env.now = due;
        assert_eq!(locks.let_go_due(&mut env), None);
        assert_eq!(env.take(), [Did::Passed(OTHER)], "after {wait:?}");
    }
}

#[test]
fn a_mutex_is_hot_if_it_is_wanted_back_sooner_than_it_comes() {
    let (mut locks, _, mut env) = machine(MANAGER);
    let long = Duration::from_millis(10);
    let mut stays = |wait: Duration, away: Duration| {
        for _ in 0..=HOT {
            locks.message(OTHER, request(None), &mut env).unwrap();
            locks.let_go(&mut env);
            let _held = locks.unlock(MUTEX, &mut env);
            locks.flushed(MUTEX, &mut env);
            env.now += away;
            assert_eq!(locks.lock(MUTEX, Thread(1), Waiter(1), &mut env), Outcome::Wait);
            env.now += wait;
            locks.message(OTHER, TOKEN, &mut env).unwrap();
            locks.unlock(MUTEX, &mut env).unwrap();
        }
        env.take();
        locks.message(OTHER, request(None), &mut env).unwrap();
        let stays = env.take().is_empty();
        locks.let_go(&mut env);
        locks.flushed(MUTEX, &mut env);
        assert_eq!(locks.lock(MUTEX, Thread(1), Waiter(1), &mut env), Outcome::Wait);
        locks.message(OTHER, TOKEN, &mut env).unwrap();
        locks.unlock(MUTEX, &mut env).unwrap();
        stays
    };
    assert!(!stays(long / 2, long), "it is away longer than waited for");
    assert!(stays(long, long / 2));
}

#[test]
fn the_token_of_a_hot_mutex_leaves_when_it_is_let_go_of() {
    let (mut locks, _, mut env) = hot_machine();
    locks.message(OTHER, request(None), &mut env).unwrap();
    assert_eq!(env.take(), []);
    locks.let_go(&mut env);
    assert_eq!(env.take(), [Did::Passed(OTHER)]);
    let (mut locks, _, mut env) = hot_machine();
    locks.message(OTHER, request(None), &mut env).unwrap();
    assert_eq!(locks.lock(MUTEX, Thread(1), Waiter(1), &mut env), Outcome::Done);
    locks.let_go(&mut env);
    assert_eq!(env.take(), [], "it is held");
    locks.unlock(MUTEX, &mut env).unwrap();
    assert_eq!(env.take(), [Did::Passed(OTHER)]);
}

#[test]
fn the_token_of_a_hot_mutex_leaves_at_once_for_a_trylock() {
    let (mut locks, _, mut env) = hot_machine();
    locks.message(OTHER, request(Some(1)), &mut env).unwrap();
    assert_eq!(env.take(), [Did::Passed(OTHER)]);
}
