//! Single transitions of a `csm` machine: what it sends, how protections change, who is resumed.

use gondwana_coherence::{
    Access, CsmMessage, CsmOptions, DiffEntry, Grant, History, MESSAGE_TAG, Outcome, Page, Protocol, State,
    SyncPoint, Update, Violation, Waiter,
};
use gondwana_testbed::memory::encoded;
use gondwana_testbed::rig::{A, B, ME, Rig, SIZE, WAITER, decoded, diffs, fetch, notices, only, pages};
use gondwana_topology::{NodeId, NodeSet};

#[test]
fn first_touch_at_the_manager_is_local_and_takes_the_pages_ahead() {
    let mut rig = Rig::new();
    let (outcome, effects) = rig.fault(1, Access::Read, 9);
    assert_eq!((outcome, effects.sent.len()), (Outcome::Done, 0));
    for page in 1..4 {
        assert_eq!((rig.state(page), rig.access(page)), (State::HomeExclusive, Access::Write));
    }
    assert_eq!((rig.state(0), rig.state(4)), (State::Untouched, State::Invalid));
    assert_eq!(rig.fault(1, Access::Write, 0).0, Outcome::Done);
    assert_eq!(rig.machine.counters().first_touches, 3);
}

/// What the home has sent before it serves a copy is in that copy.
#[test]
fn an_update_of_a_copy_on_its_way_is_no_reason_to_ask_again() {
    let mut rig = Rig::new();
    rig.fetch(5, 1, Access::Read);
    rig.take(A, notices(A, 5), &[]);
    rig.acquire();
    assert_eq!(only(rig.fault(5, Access::Read, 0).1).1, fetch(5, 1, false, ME));
    let update = Update { page: Page(5), length: 1 };
    let message = CsmMessage::Notices { flush: 2, origin: A, pages: vec![], updates: vec![update] };
    rig.take(A, message, &[0]);
    rig.acquire();
    assert_eq!(rig.take(A, pages(5, 1, Grant::Copy), &[7; SIZE]).resumed, [WAITER]);
    rig.acquire();
    assert_eq!((rig.state(5), rig.access(5)), (State::Shared, Access::Read));
}

#[test]
fn adopted_pages_are_exclusive() {
    let mut rig = Rig::new();
    rig.machine.adopt(Page(0), 2);
    assert_eq!(
        (rig.state(0), rig.state(1), rig.state(2)),
        (State::HomeExclusive, State::HomeExclusive, State::Untouched)
    );
}

#[test]
fn first_touch_elsewhere_takes_the_home_along() {
    let mut rig = Rig::new();
    let (to, message, bulk) = only(rig.take(A, fetch(2, 9 - 4, false, A), &[]));
    assert_eq!((to, bulk.len()), (A, 0));
    let expected = CsmMessage::Pages { first: Page(2), asked: 5, served: 2, grant: Grant::Untouched };
    assert_eq!(message, expected);
    assert_eq!((rig.state(2), rig.machine.page(Page(3)).probable_home), (State::Invalid, A));
    // A later request for it is passed on.
    assert_eq!(only(rig.take(B, fetch(2, 1, true, B), &[])), (A, fetch(2, 1, true, B), vec![]));
}

#[test]
fn first_touch_of_a_page_managed_elsewhere() {
    let mut rig = Rig::new();
    let (outcome, effects) = rig.fault(5, Access::Read, 1);
    assert_eq!((outcome, only(effects)), (Outcome::Wait, (A, fetch(5, 2, false, ME), vec![])));
    let answer = CsmMessage::Pages { first: Page(5), asked: 2, served: 1, grant: Grant::Untouched };
    assert_eq!(rig.take(A, answer, &[]).resumed, [WAITER]);
    assert_eq!((rig.state(5), rig.access(5)), (State::HomeExclusive, Access::Write));
    assert_eq!((rig.state(6), rig.access(6)), (State::Invalid, Access::None));
}

#[test]
fn a_read_ends_exclusive_use() {
    let mut rig = Rig::new();
    let _ = rig.fault(0, Access::Write, 1);
    rig.memory.write(5, 9);
    let (to, message, bulk) = only(rig.take(A, fetch(0, 2, false, A), &[]));
    assert_eq!((to, message, bulk), (A, pages(0, 2, Grant::Copy), vec![0, 0, 0, 0, 0, 9, 0, 0]));
    assert_eq!((rig.state(1), rig.access(1)), (State::HomeShared, Access::Read));
    assert_eq!(rig.machine.page(Page(0)).sharers, NodeSet::only(A));
    assert_eq!(rig.fault(0, Access::Read, 0).0, Outcome::Done);
}

#[test]
fn who_touches_untouched_pages_in_a_row_gets_many_at_once() {
    let mut rig = Rig::with(CsmOptions { window: 1, ..CsmOptions::default() });
    assert_eq!(only(rig.fault(4, Access::Write, 0).1).1, fetch(4, 1, true, ME));
    rig.take(A, pages(4, 1, Grant::Untouched), &[]);
    assert_eq!(only(rig.fault(5, Access::Write, 0).1).1, fetch(5, 3, true, ME));
    assert_eq!(rig.take(A, pages(5, 3, Grant::Untouched), &[]).resumed, [WAITER]);
    assert_eq!([5, 6, 7].map(|page| rig.access(page)), [Access::Write, Access::None, Access::None]);
    // The others are this node's to touch, or to give.
    let (outcome, effects) = rig.fault(6, Access::Read, 0);
    assert_eq!((outcome, effects.sent.len(), rig.state(6)), (Outcome::Done, 0, State::HomeExclusive));
    assert_eq!(only(rig.take(B, fetch(7, 1, true, B), &[])).1, pages(7, 1, Grant::Untouched));
}

#[test]
fn pages_with_contents_do_not_come_in_that_number() {
    let mut rig = Rig::with(CsmOptions { window: 2, ..CsmOptions::default() });
    let _ = rig.fault(0, Access::Write, 3);
    for write in [false, true] {
        let (_, message, bulk) = only(rig.take(A, fetch(0, 4, write, A), &[]));
        assert!(matches!(message, CsmMessage::Pages { asked: 4, served: 2, .. }), "{message:?}");
        assert_eq!(bulk.len(), 2 * SIZE);
    }
}

#[test]
fn a_write_takes_the_home_along_the_first_time() {
    let mut rig = Rig::new();
    let _ = rig.fault(0, Access::Write, 0);
    let (_, message, bulk) = only(rig.take(A, fetch(0, 1, true, A), &[]));
    assert_eq!(message, pages(0, 1, Grant::Home(vec![History::default().moved()])));
    assert_eq!((bulk.len(), rig.state(0), rig.access(0)), (SIZE, State::Invalid, Access::None));
}

#[test]
fn a_write_gets_a_copy_where_the_home_must_stay() {
    let options = CsmOptions { migrate: false, ..CsmOptions::default() };
    for shared in [false, true] {
        let mut rig = if shared { Rig::new() } else { Rig::with(options) };
        let _ = rig.fault(0, Access::Write, 0);
        if shared {
            rig.take(B, fetch(0, 1, false, B), &[]);
        }
        assert_eq!(only(rig.take(A, fetch(0, 1, true, A), &[])).1, pages(0, 1, Grant::Copy));
        assert_eq!(rig.state(0), State::HomeShared);
    }
}

#[test]
fn a_home_tells_its_sharers_at_the_release_and_waits_for_them() {
    let mut rig = Rig::new();
    let _ = rig.fault(0, Access::Write, 0);
    rig.take(A, fetch(0, 1, false, A), &[]);
    assert_eq!(rig.fault(0, Access::Write, 0).0, Outcome::Done);
    assert_eq!((rig.state(0), rig.access(0)), (State::HomeDirty, Access::Write));
    let (outcome, effects) = rig.release();
    assert_eq!((outcome, only(effects)), (Outcome::Wait, (A, notices(ME, 0), vec![])));
    assert_eq!((rig.state(0), rig.access(0)), (State::HomeExclusive, Access::Write));
    // The notice may still be on its way: whoever writes now makes it be sent again.
    let (_, effects) =
        rig.call(|machine, env| machine.message(B, &encoded(&diffs(B, 0, false)), &[0, 0, 1], env));
    assert_eq!(decoded(&effects.sent[0].1), notices(B, 0));
    assert_eq!(rig.take(A, CsmMessage::NoticeAck { flush: 1, keeps: false }, &[]).resumed, [WAITER]);
    assert_eq!(rig.release().0, Outcome::Done);
}

#[test]
fn a_clean_release_and_acquire_cost_nothing() {
    let mut rig = Rig::new();
    rig.fetch(4, 2, Access::Read);
    let (outcome, effects) = rig.release();
    assert_eq!((outcome, effects.sent.len()), (Outcome::Done, 0));
    rig.acquire();
    assert_eq!(rig.state(4), State::Shared);
}

#[test]
fn a_release_sends_one_message_to_each_home() {
    let mut rig = Rig::new();
    rig.fetch(4, 3, Access::Write);
    assert_eq!((rig.state(6), rig.access(6)), (State::Dirty, Access::Write));
    rig.memory.write(4 * SIZE, 1);
    rig.memory.write(6 * SIZE + 1, 2);
    let (outcome, effects) = rig.release();
    // Page 5 was made writable but kept its values: the home learns who writes it, and nothing else.
    let entry = |page, length| DiffEntry { page: Page(page), length, valid: true };
    let entries = vec![entry(4, 3), entry(5, 0), entry(6, 3)];
    let expected = CsmMessage::Diffs { flush: 1, origin: ME, completed: 0, entries };
    assert_eq!((outcome, only(effects)), (Outcome::Wait, (A, expected, vec![0, 0, 1, 1, 0, 2])));
    for page in 4..7 {
        assert_eq!((rig.state(page), rig.access(page)), (State::Shared, Access::Read));
    }
    let ack = CsmMessage::DiffAck { flush: 1, entries: 3, in_order: vec![], notices: 1, grants: vec![] };
    assert_eq!(rig.take(A, ack, &[]).resumed, []);
    assert_eq!(rig.take(B, CsmMessage::NoticeAck { flush: 1, keeps: false }, &[]).resumed, [WAITER]);
}

#[test]
fn a_large_release_is_split() {
    let mut rig = Rig::with(CsmOptions { bulk_limit: 4, ..CsmOptions::default() });
    rig.fetch(4, 3, Access::Write);
    for page in 4..7 {
        rig.memory.write(page * SIZE, 1);
    }
    assert_eq!(rig.release().1.sent.len(), 2);
}

#[test]
fn a_notice_counts_from_the_next_acquire_on() {
    let mut rig = Rig::new();
    rig.fetch(4, 1, Access::Read);
    assert!(rig.machine.is_acquired());
    assert_eq!(
        only(rig.take(A, notices(B, 4), &[])),
        (B, CsmMessage::NoticeAck { flush: 1, keeps: false }, vec![])
    );
    assert_eq!((rig.state(4), rig.access(4)), (State::Shared, Access::Read));
    assert!(!rig.machine.is_acquired());
    rig.acquire();
    assert!(rig.machine.is_acquired());
    assert_eq!((rig.state(4), rig.access(4)), (State::Invalid, Access::None));
}

#[test]
fn a_dirty_page_is_merged_with_what_others_wrote() {
    let mut rig = Rig::new();
    rig.fetch(4, 1, Access::Write);
    rig.memory.write(16, 1);
    rig.take(A, notices(B, 4), &[]);
    rig.acquire();
    assert_eq!((rig.state(4), rig.access(4)), (State::StaleDirty, Access::None));
    // It asks for a copy even to write: there are unflushed writes.
    assert_eq!(only(rig.fault(4, Access::Write, 0).1).1, fetch(4, 1, false, ME));
    rig.take(A, pages(4, 1, Grant::Copy), &[0, 5, 0, 0]);
    assert_eq!((rig.state(4), rig.access(4)), (State::Dirty, Access::Write));
    assert_eq!((rig.memory.read(16), rig.memory.read(17)), (1, 5));
    // Only the local write is in the diff.
    assert_eq!(only(rig.release().1).2, [0, 0, 1]);
}

#[test]
fn the_home_writes_diffs_and_moves_to_the_only_writer() {
    let mut rig = Rig::new();
    let _ = rig.fault(0, Access::Write, 0);
    for node in [A, B] {
        rig.take(node, fetch(0, 1, false, node), &[]);
    }
    let effects = rig.take(A, diffs(A, 0, true), &[2, 0, 7]);
    let [(_, _, _), (to, answer, _)] = &effects.sent[..] else { panic!("{effects:?}") };
    let CsmMessage::DiffAck { entries: 1, notices: 1, grants, .. } = decoded(answer) else {
        panic!("{effects:?}")
    };
    assert_eq!(effects.sent[0].0, B);
    assert_eq!(decoded(&effects.sent[0].1), notices(A, 0));
    assert_eq!((*to, grants.len(), grants[0].notified), (A, 1, NodeSet::only(B)));
    assert_eq!((rig.memory.read(2), rig.state(0), rig.access(0)), (7, State::Invalid, Access::None));
}

#[test]
fn a_silent_write_is_noted_and_told_to_nobody() {
    let silent = |origin, page| {
        let entries = vec![DiffEntry { page: Page(page), length: 0, valid: true }];
        CsmMessage::Diffs { flush: 1, origin, completed: 0, entries }
    };
    for others in [false, true] {
        let mut rig = Rig::new();
        let _ = rig.fault(0, Access::Write, 0);
        rig.take(A, fetch(0, 1, false, A), &[]);
        if others {
            rig.take(B, fetch(0, 1, false, B), &[]);
        }
        let (to, message, _) = only(rig.take(A, silent(A, 0), &[]));
        let CsmMessage::DiffAck { entries: 1, notices: 0, grants, .. } = message else {
            panic!("{message:?}")
        };
        // The home moves only if nobody else has a copy.
        assert_eq!((to, grants.is_empty(), rig.state(0).is_home()), (A, others, others));
    }
}

#[test]
fn a_granted_home_may_write_at_once() {
    let mut rig = Rig::new();
    rig.fetch(4, 1, Access::Write);
    rig.memory.write(16, 1);
    let _ = rig.release();
    let grant = gondwana_coherence::HomeGrant {
        page: Page(4),
        history: History::default().moved(),
        notified: NodeSet::EMPTY,
    };
    let ack = CsmMessage::DiffAck { flush: 1, entries: 1, in_order: vec![], notices: 0, grants: vec![grant] };
    assert_eq!(rig.take(A, ack, &[]).resumed, [WAITER]);
    assert_eq!((rig.state(4), rig.access(4)), (State::HomeExclusive, Access::Write));
}

#[test]
fn nothing_is_fetched_or_flushed_while_its_diff_is_under_way() {
    let mut rig = Rig::new();
    rig.fetch(4, 1, Access::Write);
    rig.memory.write(16, 1);
    assert_eq!(rig.release().0, Outcome::Wait);
    assert_eq!(rig.fault(4, Access::Write, 0).0, Outcome::Done);
    rig.memory.write(16, 2);
    let (outcome, effects) = rig.call(|machine, env| machine.release(SyncPoint::default(), Waiter(8), env));
    assert_eq!((outcome, effects.sent.len()), (Outcome::Wait, 0));
    rig.take(A, notices(B, 4), &[]);
    rig.acquire();
    let (outcome, effects) = rig.call(|machine, env| machine.fault(Page(4), Access::Read, 0, Waiter(9), env));
    assert_eq!((outcome, effects.sent.len(), rig.state(4)), (Outcome::Wait, 0, State::Deferred));
    let ack = |flush| CsmMessage::DiffAck { flush, entries: 1, in_order: vec![], notices: 0, grants: vec![] };
    let effects = rig.take(A, ack(1), &[]);
    assert_eq!(effects.resumed, [WAITER]);
    assert!(matches!(only(effects).1, CsmMessage::Diffs { flush: 2, .. }));
    let effects = rig.take(A, ack(2), &[]);
    assert_eq!(effects.resumed, [Waiter(8)]);
    assert!(matches!(only(effects).1, CsmMessage::Fetch { completed: 2, .. }));
}

#[test]
fn who_asks_for_a_page_that_it_has_been_given_meanwhile_is_told() {
    // Page 4 is managed by A.
    let (to, message, _) = only(Rig::new().take(B, fetch(4, 2, false, A), &[]));
    assert_eq!(
        (to, message),
        (A, CsmMessage::Pages { first: Page(4), asked: 2, served: 1, grant: Grant::Raced })
    );
}

#[test]
fn what_peers_get_wrong_is_refused() {
    let outside = Violation::OutsideSpan { first: Page(7), count: 2 };
    let unexpected = |message, page| Violation::Unexpected { message, page: Page(page) };
    let cases = [
        (fetch(7, 2, false, A), vec![], outside),
        (fetch(0, 1, false, ME), vec![], Violation::Node { message: "Fetch", node: 0 }),
        (fetch(0, 1, false, NodeId(3)), vec![], Violation::Node { message: "Fetch", node: 3 }),
        (pages(4, 1, Grant::Copy), vec![0; 4], unexpected("Pages", 4)),
        (pages(4, 2, Grant::Copy), vec![0; 3], Violation::Contents { message: "Pages" }),
        (pages(4, 1, Grant::Untouched), vec![0; 4], Violation::Contents { message: "Pages" }),
        (diffs(A, 0, true), vec![0, 0, 1], unexpected("Diffs", 0)),
        (diffs(A, 0, true), vec![0, 0], Violation::Contents { message: "Diffs" }),
        (CsmMessage::NoticeAck { flush: 1, keeps: false }, vec![], Violation::UnknownFlush { flush: 1 }),
    ];
    for (message, bulk, violation) in cases {
        assert_eq!(Rig::new().try_take(A, message, &bulk).0, Err(violation));
    }
    let (result, _) = Rig::new().call(|machine, env| machine.message(A, &[MESSAGE_TAG, 99], &[], env));
    assert_eq!(result, Err(Violation::Unintelligible));
}
