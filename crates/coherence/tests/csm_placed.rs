//! Single transitions of a `csm` machine where a policy decides the homes of pages.

use gondwana_coherence::{Access, CsmMessage, Grant, HomeRole, Outcome, Page, Protocol, State, Violation};
use gondwana_testbed::effects::Effects;
use gondwana_testbed::rig::{A, B, ME, Rig, SIZE, WAITER, decoded, diffs, fetch, notices, only, pages};
use gondwana_topology::NodeId;

fn place(rig: &mut Rig, first: u32, count: u32, home: Option<NodeId>, used: bool) -> Effects {
    rig.call(|machine, env| machine.place(Page(first), count, home, used, env)).1
}

fn placed(first: u32, count: u32) -> CsmMessage {
    CsmMessage::Placed { first: Page(first), count }
}

fn sent(effects: Effects) -> Vec<(NodeId, CsmMessage)> {
    effects.sent.into_iter().map(|(to, message, _)| (to, decoded(&message))).collect()
}

#[test]
fn nothing_is_sent_for_pages_that_nobody_has_touched() {
    let mut rig = Rig::new();
    assert!(place(&mut rig, 1, 2, Some(A), false).sent.is_empty());
    assert_eq!(rig.machine.home_role(Page(2)), HomeRole::Placed(A));
    assert_eq!(rig.machine.home_role(Page(3)), HomeRole::Untouched);
}

#[test]
fn a_touch_at_the_manager_gives_the_page_away_and_asks_for_it() {
    let mut rig = Rig::new();
    place(&mut rig, 1, 1, Some(A), false);
    let (outcome, effects) = rig.fault(1, Access::Write, 0);
    assert_eq!(
        (outcome, sent(effects)),
        (Outcome::Wait, vec![(A, placed(1, 1)), (A, fetch(1, 1, true, ME))])
    );
    assert_eq!(rig.machine.home_role(Page(1)), HomeRole::Elsewhere);
}

#[test]
fn the_node_that_is_to_be_home_gets_the_page_for_an_answer() {
    let mut rig = Rig::new();
    place(&mut rig, 1, 1, Some(A), false);
    assert_eq!(sent(rig.take(A, fetch(1, 1, false, A), &[])), [(A, pages(1, 1, Grant::Placed))]);
    assert_eq!(sent(rig.take(B, fetch(1, 1, false, B), &[])), [(A, fetch(1, 1, false, B))]);
}

#[test]
fn whoever_touches_first_finds_the_page_where_it_is_to_be() {
    let mut rig = Rig::new();
    place(&mut rig, 1, 1, Some(A), false);
    let expected = [(A, placed(1, 1)), (A, fetch(1, 1, false, B))];
    assert_eq!(sent(rig.take(B, fetch(1, 1, false, B), &[])), expected);
    // The new home may have asked before it knew.
    assert_eq!(sent(rig.take(A, fetch(1, 1, false, A), &[])), [(A, pages(1, 1, Grant::Raced))]);
}

#[test]
fn a_page_that_is_placed_here_is_home_at_once() {
    let mut rig = Rig::new();
    rig.take(A, placed(5, 1), &[]);
    assert_eq!((rig.state(5), rig.access(5)), (State::HomeExclusive, Access::Write));
    assert_eq!(rig.machine.placed().home, 1);
    // It stays, however often another node writes it.
    for _ in 0..3 {
        let (to, message, _) = only(rig.take(B, fetch(5, 1, true, B), &[]));
        assert_eq!((to, message), (B, pages(5, 1, Grant::Copy)));
        rig.take(B, diffs(B, 5, true), &[0, 0, 1]);
    }
    assert!(rig.state(5).is_home());
}

#[test]
fn an_answer_that_crossed_the_placement_changes_nothing() {
    let mut rig = Rig::new();
    let (outcome, _) = rig.fault(5, Access::Write, 0);
    assert_eq!(outcome, Outcome::Wait);
    assert_eq!(rig.take(A, placed(5, 1), &[7; SIZE]).resumed, [WAITER]);
    rig.memory.write(5 * SIZE, 9);
    // Until the answer has come the home does not move on.
    assert!(place(&mut rig, 5, 1, Some(B), false).sent.is_empty());
    let answer = CsmMessage::Pages { first: Page(5), asked: 1, served: 1, grant: Grant::Raced };
    assert!(rig.take(A, answer, &[]).resumed.is_empty());
    assert_eq!((rig.state(5), rig.access(5)), (State::HomeExclusive, Access::Write));
    assert_eq!((rig.memory.read(5 * SIZE), rig.memory.read(5 * SIZE + 1)), (9, 7));
}

#[test]
fn pages_with_contents_are_given_if_nobody_uses_them() {
    let mut rig = Rig::new();
    let _ = rig.fault(1, Access::Write, 1);
    rig.memory.write(SIZE, 3);
    let effects = place(&mut rig, 1, 2, Some(B), false);
    assert_eq!(only(effects), (B, placed(1, 2), vec![3, 0, 0, 0, 0, 0, 0, 0]));
    assert_eq!((rig.state(1), rig.access(2)), (State::Invalid, Access::None));
}

#[test]
fn pages_that_others_had_stay_because_their_diffs_may_be_on_their_way() {
    let mut rig = Rig::new();
    let _ = rig.fault(1, Access::Write, 1);
    rig.take(A, fetch(1, 1, false, A), &[]);
    // A is told of a write and no longer a sharer, but may have written its own copy before it heard.
    let _ = rig.fault(1, Access::Write, 0);
    assert_eq!(only(rig.release().1), (A, notices(ME, 1), vec![]));
    rig.take(A, CsmMessage::NoticeAck { flush: 1, keeps: false }, &[]);
    assert!(rig.machine.is_quiet());
    assert_eq!(sent(place(&mut rig, 1, 2, Some(A), false)), [(A, placed(2, 1))]);
    assert!(rig.state(1).is_home());
    rig.take(A, diffs(A, 1, false), &[0, 0, 5]);
    assert_eq!(rig.memory.read(SIZE), 5);
}

#[test]
fn pages_in_use_go_to_their_node_when_it_writes_them() {
    let mut rig = Rig::new();
    let _ = rig.fault(1, Access::Write, 0);
    assert!(place(&mut rig, 1, 1, Some(B), true).sent.is_empty());
    assert!(rig.state(1).is_home());
    // The first writer would be home, but for the policy.
    assert_eq!(only(rig.take(A, fetch(1, 1, true, A), &[])).1, pages(1, 1, Grant::Copy));
    rig.take(A, diffs(A, 1, true), &[0, 0, 1]);
    assert!(rig.state(1).is_home());
    rig.take(B, fetch(1, 1, true, B), &[]);
    let effects = rig.take(B, diffs(B, 1, true), &[1, 0, 1]);
    let grants = sent(effects).into_iter().find_map(|(to, message)| match message {
        CsmMessage::DiffAck { grants, .. } if to == B => Some(grants.len()),
        _ => None,
    });
    assert_eq!((grants, rig.machine.home_role(Page(1))), (Some(1), HomeRole::Elsewhere));
}

#[test]
fn whoever_is_not_home_passes_the_placement_on() {
    let mut rig = Rig::new();
    let message = CsmMessage::Place { first: Page(4), count: 2, home: Some(B), used: true };
    assert_eq!(sent(place(&mut rig, 4, 2, Some(B), true)), [(A, message)]);
}

#[test]
fn what_is_placed_may_float_again() {
    let mut rig = Rig::new();
    place(&mut rig, 1, 1, Some(A), false);
    place(&mut rig, 1, 1, None, false);
    assert_eq!(rig.fault(1, Access::Write, 0).0, Outcome::Done);
    assert_eq!(rig.machine.home_role(Page(1)), HomeRole::Home);
}

#[test]
fn what_peers_get_wrong_about_homes_is_refused() {
    let to_nobody = CsmMessage::Place { first: Page(0), count: 1, home: Some(NodeId(3)), used: true };
    let back = CsmMessage::Place { first: Page(4), count: 1, home: Some(ME), used: true };
    let unexpected = |message, page| Violation::Unexpected { message, page: Page(page) };
    for (message, bulk, violation) in [
        (to_nobody, vec![], Violation::Node { message: "Place", node: 3 }),
        (placed(0, 1), vec![], unexpected("Placed", 0)),
        (placed(7, 2), vec![], Violation::OutsideSpan { first: Page(7), count: 2 }),
        (placed(4, 2), vec![0; 3], Violation::Contents { message: "Placed" }),
    ] {
        assert_eq!(Rig::new().try_take(A, message, &bulk).0, Err(violation));
    }
    // A machine that knows of no better place sends it on, even back.
    assert_eq!(sent(Rig::new().take(B, back.clone(), &[])), [(A, back)]);
}
