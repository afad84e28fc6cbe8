//! Pages that two `csm` machines go on writing: no faults while that lasts, and an end when it does not.

use gondwana_coherence::{Access, CsmOptions, Outcome, Page, Protocol, State, SyncPoint, Waiter};
use gondwana_testbed::pair::{HOME, Pair, READER};
use gondwana_topology::{Id, NodeId};

/// Releases in a row without a write that end it.
const KEEP: u8 = 4;

/// Both nodes write a byte of the first page, and meet at a barrier; returns how many faults that took.
fn round(pair: &mut Pair, value: u8) -> usize {
    let faults = pair.write(0, 0, value) + pair.write(1, 1, value + 100);
    meet(pair);
    assert_eq!((pair.read(0, 1), pair.read(1, 0)), (value + 100, value));
    faults
}

fn meet(pair: &mut Pair) {
    pair.release(0);
    pair.release(1);
    pair.acquire(0);
    pair.acquire(1);
}

/// A page that both nodes have written for some rounds; the home, and the other node.
fn kept() -> (Pair, usize, usize) {
    let mut pair = Pair::with(CsmOptions { keep: KEEP, ..CsmOptions::default() });
    pair.touch(1);
    (1..10).for_each(|value| _ = round(&mut pair, value));
    let home = [HOME, READER].into_iter().find(|&node| pair.state(node, 0).is_home()).unwrap();
    (pair, home, 1 - home)
}

#[test]
fn a_page_that_both_nodes_write_in_each_interval_takes_no_fault() {
    let (mut pair, home, other) = kept();
    for value in 10..30 {
        assert_eq!(round(&mut pair, value), 0);
    }
    assert_eq!((pair.state(home, 0), pair.state(other, 0)), (State::HomeDirty, State::Dirty));
    assert!(pair.memories.iter().all(|memory| memory.has_twin(Page(0))));
}

/// A node that acquires before its diff is acknowledged could not merge the page.
#[test]
fn a_release_at_a_barrier_waits_for_the_diff_of_a_kept_page() {
    for (acquires_next, expected) in [(false, Outcome::Done), (true, Outcome::Wait)] {
        let (mut pair, home, other) = kept();
        assert_eq!(pair.write(other, 1, 200), 0, "it is kept");
        let at = SyncPoint { object: None, peer: Some(NodeId::from_index(home)), acquires_next };
        let (outcome, effects) = pair.call(other, |machine, env| machine.release(at, Waiter(3), env));
        assert_eq!((outcome, effects.sent.len()), (expected, 1));
    }
}

#[test]
fn what_the_home_only_receives_is_no_write_of_its_own() {
    let (mut pair, home, other) = kept();
    // Whoever copied before the home's last release got a notice; nobody has copied since.
    pair.release(home);
    pair.write(other, 2, 7);
    pair.synchronise(other);
    assert_eq!(pair.read(home, 2), 7);
    let notices = pair.machines[home].counters().notices_sent;
    pair.release(home);
    assert_eq!(pair.machines[home].counters().notices_sent, notices);
}

#[test]
fn a_page_that_nobody_writes_any_more_is_an_ordinary_one() {
    let (mut pair, home, other) = kept();
    for _ in 0..KEEP {
        assert_eq!((pair.access(home, 0), pair.access(other, 0)), (Access::Write, Access::Write));
        meet(&mut pair);
    }
    assert_ne!(pair.access(other, 0), Access::Write);
    assert!(matches!(pair.state(home, 0), State::HomeShared | State::HomeExclusive));
    assert!(!pair.memories.iter().any(|memory| memory.has_twin(Page(0))));
}

#[test]
fn a_copy_of_a_byte_that_the_home_sets_back_is_given_up_or_updated() {
    let (mut pair, home, other) = kept();
    let old = pair.read(home, 2);
    pair.write(home, 3, 60);
    pair.release(home);
    pair.write(home, 2, old + 1);
    // Merges the unreleased byte along with the other one.
    pair.acquire(other);
    assert_eq!((pair.read(other, 3), pair.read(other, 2)), (60, old + 1));
    pair.write(home, 2, old);
    pair.synchronise(home);
    assert_eq!(pair.read(other, 2), old);
}

#[test]
fn unreleased_writes_survive_an_update() {
    let (mut pair, home, other) = kept();
    pair.write(other, 3, 77);
    pair.write(home, 2, 61);
    pair.synchronise(home);
    assert_eq!((pair.read(other, 2), pair.read(other, 3)), (61, 77));
    pair.synchronise(other);
    assert_eq!(pair.read(home, 3), 77);
}
