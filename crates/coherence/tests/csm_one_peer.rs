//! Releases that only one peer can learn of.

use gondwana_coherence::{Access, CsmMessage, Outcome, Protocol, State, SyncPoint, Waiter};
use gondwana_testbed::effects::Effects;
use gondwana_testbed::pair::{HOME, Pair, READER};
use gondwana_testbed::rig::{A, B, ME, Rig, SIZE, WAITER, fetch, notices, only};
use gondwana_topology::{Id, NodeId};

/// A release that `peer` alone can learn of.
fn release_to(rig: &mut Rig, peer: NodeId) -> (Outcome, Effects) {
    let at = SyncPoint { object: None, peer: Some(peer), ..SyncPoint::default() };
    rig.call(|machine, env| machine.release(at, WAITER, env))
}

/// A page of this home that node A has a copy of, and that this node has written since.
fn written_after_a_copy() -> Rig {
    let mut rig = Rig::new();
    let _ = rig.fault(0, Access::Write, 0);
    rig.take(A, fetch(0, 1, false, A), &[]);
    assert_eq!(rig.fault(0, Access::Write, 0).0, Outcome::Done);
    rig
}

#[test]
fn the_only_sharer_need_not_acknowledge_before_its_token_leaves() {
    let mut rig = written_after_a_copy();
    let (outcome, effects) = release_to(&mut rig, A);
    assert_eq!((outcome, only(effects)), (Outcome::Done, (A, notices(ME, 0), vec![])));
    // The flush is under way all the same: other releases wait for it.
    assert_eq!(rig.release().0, Outcome::Wait);
    assert_eq!(rig.take(A, CsmMessage::NoticeAck { flush: 1, keeps: false }, &[]).resumed, [WAITER]);
}

#[test]
fn another_sharer_must_have_acknowledged() {
    let mut rig = written_after_a_copy();
    assert_eq!(release_to(&mut rig, B).0, Outcome::Wait);
    assert_eq!(rig.take(A, CsmMessage::NoticeAck { flush: 1, keeps: false }, &[]).resumed, [WAITER]);
    assert_eq!(release_to(&mut rig, B).0, Outcome::Done);
}

/// The home may send notices to nodes that this one does not know of.
#[test]
fn a_diff_is_waited_for_among_three_nodes() {
    let mut rig = Rig::new();
    rig.fetch(4, 1, Access::Write);
    rig.memory.write(4 * SIZE, 1);
    assert_eq!(release_to(&mut rig, A).0, Outcome::Wait);
}

#[test]
fn a_diff_is_ahead_of_the_token_between_two_nodes() {
    let mut pair = Pair::new(true);
    pair.touch(1);
    pair.synchronise(HOME);
    assert_eq!(pair.read(READER, 0), 10);
    pair.write(READER, 1, 5);
    let home = NodeId::from_index(HOME);
    assert_eq!(pair.state(READER, 0), State::Dirty);
    let at = SyncPoint { object: None, peer: Some(home), ..SyncPoint::default() };
    let (outcome, effects) = pair.call(READER, |machine, env| machine.release(at, Waiter(3), env));
    assert_eq!((outcome, effects.sent.len(), effects.sent[0].0), (Outcome::Done, 1, home));
}
