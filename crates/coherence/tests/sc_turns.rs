//! Whose request an `sc` machine serves first.

use gondwana_coherence::{Access, Encoded, Outcome, Page, Sc, ScMessage, ScOptions, Violation};
use gondwana_testbed::memory::encoded;
use gondwana_testbed::scripted::Scripted;
use gondwana_topology::NodeId;
use std::time::Duration;

const NODES: u16 = 5;

/// Pages stay for the threads that waited for them.
fn cluster() -> Scripted {
    let options = ScOptions { hold: Some(Duration::from_micros(8)), ..ScOptions::default() };
    Scripted::new(NODES, 8, |layout| Box::new(Sc::new(layout, options)))
}

fn take(cluster: &mut Scripted, to: usize, from: u16, message: &ScMessage) -> Result<(), Violation> {
    cluster.call(to, |machine, env| machine.message(NodeId(from), &encoded(message), &[], env))
}

fn hurry(first: u32, requester: u16) -> ScMessage {
    ScMessage::Hurry { first: Page(first), requester: NodeId(requester), slice: 0 }
}

/// The messages under way, each with its receiver; none is any more.
fn sent(cluster: &mut Scripted) -> Vec<(usize, ScMessage)> {
    let letters = std::mem::take(&mut cluster.under_way).into_iter();
    letters.map(|letter| (letter.to, ScMessage::decode(&letter.message).unwrap())).collect()
}

/// Node 1 has waited for page 2, and pages 1 and 3 have come along; then node 2 wants all of them.
fn keeping() -> Scripted {
    let mut cluster = cluster();
    cluster.write(0, 0, 8);
    cluster.write(1, 1, 1);
    assert_eq!(cluster.fault(1, 2, Access::Write, 1), Outcome::Wait);
    while cluster.deliver() {}
    let forward = ScMessage::Forward {
        first: Page(1),
        count: 3,
        asked: 3,
        write: true,
        contents: true,
        acks: 0,
        requester: NodeId(2),
        slice: 1,
        kept: false,
    };
    take(&mut cluster, 1, 0, &forward).unwrap();
    assert_eq!(cluster.memories[1].access[1..4], [Access::Write; 3]);
    cluster
}

#[test]
fn a_page_leaves_at_once_if_it_is_not_kept_from_one_that_waits_behind_another() {
    let mut cluster = keeping();
    take(&mut cluster, 1, 0, &hurry(3, 3)).unwrap();
    let answers = sent(&mut cluster);
    assert!(
        matches!(answers[..], [(2, ScMessage::Pages { first: Page(3), asked: 1, served: 1, .. })]),
        "{answers:?}"
    );
    assert_eq!(cluster.memories[1].access[1..4], [Access::Write, Access::Write, Access::None]);
    // The page for which a thread has waited stays; so does the one before it, which is part of the same message.
    take(&mut cluster, 1, 0, &hurry(2, 3)).unwrap();
    assert_eq!(sent(&mut cluster), []);
    // Nobody is to get this one from here.
    take(&mut cluster, 1, 0, &hurry(7, 3)).unwrap();
    assert_eq!(sent(&mut cluster), []);
}

#[test]
fn nobody_waits_who_does_not_exist() {
    let mut cluster = keeping();
    let refused = Err(Violation::Node { message: "Hurry", node: NODES });
    assert_eq!(take(&mut cluster, 1, 0, &hurry(1, NODES)), refused);
    assert!(take(&mut cluster, 1, 0, &hurry(8, 3)).is_err(), "there is no such page");
    // The keeper may wait itself, to write what it has.
    take(&mut cluster, 1, 0, &hurry(3, 1)).unwrap();
    assert_eq!(cluster.memories[1].access[3], Access::None);
}

#[test]
fn requests_of_earlier_slices_are_served_first() {
    let mut cluster = cluster();
    cluster.write(1, 0, 1);
    let request = |node, slice| ScMessage::Request {
        first: Page(0),
        count: 1,
        write: true,
        requester: NodeId(node),
        slice,
    };
    take(&mut cluster, 0, 2, &request(2, 9)).unwrap();
    assert!(matches!(sent(&mut cluster)[..], [(1, ScMessage::Forward { requester: NodeId(2), .. })]));
    // The one that is being served goes on being served, but the owner hears of those who wait.
    for (node, slice) in [(3, 7), (4, 5)] {
        take(&mut cluster, 0, node, &request(node, slice)).unwrap();
        let hurry = ScMessage::Hurry { first: Page(0), requester: NodeId(node), slice };
        assert_eq!(sent(&mut cluster), [(1, hurry)]);
    }
    let mut order = vec![];
    for confirming in [2, 4, 3] {
        take(&mut cluster, 0, confirming, &ScMessage::Confirm { first: Page(0), count: 1 }).unwrap();
        order.extend(sent(&mut cluster).into_iter().map(|(to, message)| match message {
            ScMessage::Forward { requester, .. } => (to, requester.0),
            other => panic!("{other:?}"),
        }));
    }
    assert_eq!(order, [(2, 4), (4, 3)]);
}

/// Whoever lets go of pages learns when to do so again, also if the time is over while it looks.
#[test]
fn what_is_put_off_is_never_forgotten() {
    const HOLD: u64 = 8;
    for before in 0..2 * HOLD {
        let mut cluster = keeping();
        cluster.tick = Duration::from_micros(1);
        cluster.call(1, |machine, env| (1..4).for_each(|page| machine.repeats(Page(page), env)));
        cluster.now += Duration::from_micros(before);
        let again = cluster.call(1, |machine, env| machine.settle(env)).unwrap();
        let waits = cluster.call(1, |machine, _| machine.is_wanted());
        assert_eq!(again.is_some(), waits, "{before} us after the thread goes on");
    }
}
