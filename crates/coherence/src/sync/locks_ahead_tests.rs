//! Tokens that are asked for before a thread wants them.

use super::locks_tests::{Did, Log, MANAGER, OTHER, machine, token};
use super::{LockMessage, Locks, Object, Thread, Turn};
use crate::{Outcome, Waiter};
use gondwana_topology::NodeId;

/// A mutex in each element of an array.
fn mutex(number: u64) -> Object {
    Object(0x4000 + 0x130 * number)
}

/// A thread locks a mutex whose token is elsewhere: the mutexes whose tokens are asked for.
fn asked_for(locks: &mut Locks, object: Object, env: &mut Log) -> Vec<Object> {
    assert_eq!(locks.lock(object, Thread(1), Waiter(1), env), Outcome::Wait);
    let asks = |did| match did {
        Did::Sent(MANAGER, LockMessage::Request { object, .. }) => object,
        other => panic!("{other:?}"),
    };
    env.take().into_iter().map(asks).collect()
}

/// A thread locks and unlocks mutexes in order. How often it waits, and how many tokens are asked for.
fn walk(locks: &mut Locks, mutexes: impl Iterator<Item = u64>, env: &mut Log) -> (usize, usize) {
    let (mut waits, mut asked) = (0, 0);
    for object in mutexes.map(mutex) {
        if !locks.table().entry(object).lock_at_hand(Thread(1)) {
            let wanted = asked_for(locks, object, env);
            (waits, asked) = (waits + 1, asked + wanted.len());
            for object in wanted {
                locks.message(MANAGER, token(object), env).unwrap();
            }
            env.take();
        }
        assert!(locks.table().entry(object).unlock_at_hand(Thread(1)));
    }
    (waits, asked)
}

/// Another node takes the tokens.
fn lose(locks: &mut Locks, mutexes: impl Iterator<Item = u64>, env: &mut Log) {
    for object in mutexes.map(mutex) {
        let next = Turn { slice: 1, node: NodeId(2) };
        locks.message(MANAGER, LockMessage::Pass { object, next, attempt: None }, env).unwrap();
        locks.flushed(object, env);
    }
    env.take();
}

#[test]
fn tokens_of_mutexes_at_equal_distances_are_asked_for_early() {
    let (mut locks, _, mut env) = machine(OTHER);
    let (waits, asked) = walk(&mut locks, 0..1000, &mut env);
    assert!(waits < 50, "{waits}");
    assert!((1000..=1040).contains(&asked), "{asked}: some behind the last one");
    assert_eq!(locks.counters().early, (asked - waits) as u64);
}

#[test]
fn what_may_be_no_mutex_is_asked_for_only_on_a_long_walk() {
    let (mut locks, _, mut env) = machine(OTHER);
    assert_eq!(walk(&mut locks, 0..4, &mut env), (4, 4));
    lose(&mut locks, 0..4, &mut env);
    assert_eq!(walk(&mut locks, 0..4, &mut env), (3, 4), "the last one was known to be one");
}

#[test]
fn mutexes_in_any_order_are_asked_for_when_they_are_wanted() {
    let (mut locks, _, mut env) = machine(OTHER);
    let any_order = || (0..100).map(|number| number * number * number % 101);
    assert_eq!(walk(&mut locks, any_order(), &mut env), (100, 100));
    assert_eq!(locks.counters().early, 0);
}

/// Threads of other nodes are right ahead on the same walk.
#[test]
fn fewer_are_asked_for_where_they_leave_unused() {
    let (mut locks, _, mut env) = machine(OTHER);
    walk(&mut locks, 0..100, &mut env);
    let early = |locks: &mut Locks, first: u64, env: &mut Log| {
        let wanted = asked_for(locks, mutex(first), env);
        for object in &wanted {
            locks.message(MANAGER, token(*object), env).unwrap();
        }
        assert!(locks.table().entry(mutex(first)).unlock_at_hand(Thread(1)));
        lose(locks, first + 1..first + wanted.len() as u64, env);
        wanted.len()
    };
    let asked: Vec<_> = (0..10).map(|step| early(&mut locks, 200 + step, &mut env)).collect();
    assert!(asked[6..].iter().all(|&asked| asked <= 3), "{asked:?}");
}
