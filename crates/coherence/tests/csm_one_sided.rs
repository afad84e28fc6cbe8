//! Two `csm` machines that can reach each other's memory: what a one-sided read does, and when a message is sent all the same.

use gondwana_coherence::{Access, CsmMessage, Grant, Outcome, Page, Protocol, State, SyncPoint, Waiter};
use gondwana_testbed::pair::{HOME, Pair, READER, SIZE, messages};
use gondwana_topology::{Id, NodeId, NodeSet};

#[test]
fn a_visit_copies_beside_writers_or_stops_them() {
    let mut pair = Pair::new(true);
    pair.touch(3);
    assert_eq!(pair.fault(READER, 0, Access::Read, 7), (Outcome::Done, vec![]));
    for (page, value) in (0..3).zip(10..) {
        assert_eq!(pair.memories[READER].read(page * SIZE), value);
        assert_eq!(pair.access(READER, page), Access::Read);
    }
    // There is room to write two of them down.
    assert_eq!([0, 1, 2].map(|page| pair.access(HOME, page)), [Access::Write, Access::Write, Access::Read]);
    assert_eq!(pair.access(READER, 3), Access::None, "nobody has touched it");
    assert_eq!(pair.machines[READER].counters().one_sided_reads, 3);
}

#[test]
fn the_home_tells_its_visitors_what_was_written_beside_them() {
    let mut pair = Pair::new(true);
    pair.touch(1);
    assert_eq!(pair.fault(READER, 0, Access::Read, 0).0, Outcome::Done);
    pair.memories[HOME].write(0, 99);
    let (outcome, effects) =
        pair.call(HOME, |machine, env| machine.release(SyncPoint::default(), Waiter(2), env));
    assert_eq!((outcome, messages(effects)), (Outcome::Done, vec![]));
    assert_eq!((pair.state(HOME, 0), pair.access(HOME, 0)), (State::HomeExclusive, Access::Write));
    // The notice waits for the next acquire.
    assert!(pair.memories[READER].has_posted_notice(Page(0)));
    assert_eq!(pair.state(READER, 0), State::Shared);
    pair.call(READER, |machine, env| machine.acquire(SyncPoint::default(), env));
    assert_eq!(pair.state(READER, 0), State::Invalid);
    assert!(!pair.memories[READER].has_posted_notice(Page(0)));
}

/// There is room for two notices.
#[test]
fn a_notice_that_cannot_be_posted_is_sent() {
    let mut pair = Pair::new(true);
    pair.touch(3);
    assert_eq!(pair.fault(READER, 0, Access::Read, 2).0, Outcome::Done);
    for page in 0..3 {
        assert_eq!(pair.fault(HOME, page, Access::Write, 0).0, Outcome::Done);
        pair.memories[HOME].write(page as usize * SIZE, 99);
    }
    let (outcome, effects) =
        pair.call(HOME, |machine, env| machine.release(SyncPoint::default(), Waiter(2), env));
    assert_eq!(outcome, Outcome::Wait);
    let sent = messages(effects);
    assert!(matches!(&sent[..], [CsmMessage::Notices { pages, .. }] if pages == &[Page(2)]), "{sent:?}");
    assert!([0, 1].map(|page| pair.memories[READER].has_posted_notice(Page(page))) == [true; 2]);
}

#[test]
fn a_page_that_nobody_writes_beside_its_visitors_is_shared() {
    let mut pair = Pair::new(true);
    pair.touch(1);
    assert_eq!(pair.fault(READER, 0, Access::Read, 0).0, Outcome::Done);
    let (outcome, effects) =
        pair.call(HOME, |machine, env| machine.release(SyncPoint::default(), Waiter(2), env));
    assert_eq!((outcome, messages(effects)), (Outcome::Done, vec![]));
    assert_eq!((pair.state(HOME, 0), pair.access(HOME, 0)), (State::HomeShared, Access::Read));
    assert_eq!(pair.machines[HOME].page(Page(0)).sharers, NodeSet::only(NodeId(1)));
    // The next write is noted.
    assert_eq!(pair.fault(HOME, 0, Access::Write, 0), (Outcome::Done, vec![]));
    assert_eq!(pair.state(HOME, 0), State::HomeDirty);
}

/// The past of a page speaks for the node that writes it alone.
#[test]
fn a_visitor_that_writes_its_copy_becomes_home() {
    for written in [false, true] {
        let mut pair = Pair::new(true);
        pair.touch(1);
        assert_eq!(pair.fault(READER, 0, Access::Read, 0).0, Outcome::Done);
        assert_eq!(pair.fault(READER, 0, Access::Write, 0).0, Outcome::Done);
        pair.memories[READER].write(1, 30);
        if written {
            pair.memories[HOME].write(0, 20);
        }
        pair.synchronise(READER);
        let states = [HOME, READER].map(|node| pair.state(node, 0));
        match written {
            false => assert_eq!(states, [State::Invalid, State::HomeExclusive]),
            true => assert_eq!((states[HOME], pair.access(HOME, 0)), (State::HomeDirty, Access::Write)),
        }
    }
}

#[test]
fn who_asks_to_write_becomes_home_of_a_page_that_only_it_has_visited() {
    let mut pair = Pair::new(true);
    pair.touch(2);
    assert_eq!(pair.fault(READER, 0, Access::Read, 1).0, Outcome::Done);
    let sent = pair.asks_home(2, true);
    assert!(matches!(&sent[..], [CsmMessage::Pages { served: 2, grant: Grant::Home(_), .. }]), "{sent:?}");
}

/// Its answer may have been under way when the page was like the copy that the node had.
#[test]
fn who_has_asked_for_a_page_is_told_whatever_it_has() {
    let mut pair = Pair::new(true);
    pair.touch(1);
    assert_eq!(pair.fault(READER, 0, Access::Read, 0).0, Outcome::Done);
    pair.asks_home(1, false);
    assert_eq!(pair.state(HOME, 0), State::HomeDirty);
    let (outcome, _) = pair.call(HOME, |machine, env| machine.release(SyncPoint::default(), Waiter(2), env));
    assert_eq!(outcome, Outcome::Done);
    assert!(pair.memories[READER].has_posted_notice(Page(0)));
}

/// A page that others have used has a past, which the home looks at before it moves.
#[test]
fn who_will_write_asks_because_the_home_may_move() {
    let mut pair = Pair::new(true);
    pair.touch(1);
    assert_eq!(pair.fault(READER, 0, Access::Read, 0).0, Outcome::Done);
    pair.memories[HOME].write(0, 99);
    pair.synchronise(HOME);
    let (outcome, sent) = pair.fault(READER, 0, Access::Write, 0);
    assert_eq!(outcome, Outcome::Wait);
    assert!(matches!(sent[..], [CsmMessage::Fetch { write: true, .. }]), "{sent:?}");
    assert_eq!(pair.access(HOME, 0), Access::Write, "nothing was taken");
}

#[test]
fn who_is_the_first_to_write_becomes_home() {
    let mut pair = Pair::new(true);
    pair.touch(2);
    assert_eq!(pair.fault(READER, 0, Access::Write, 7), (Outcome::Done, vec![]));
    for (page, value) in (0..2).zip(10..) {
        assert_eq!(pair.memories[READER].read(page * SIZE), value);
        assert_eq!((pair.access(READER, page), pair.access(HOME, page)), (Access::Write, Access::Read));
    }
    for page in 0..2 {
        assert_eq!(pair.state(READER, page), State::HomeDirty);
    }
    assert_eq!(pair.state(READER, 2), State::Invalid, "nobody has touched it");
    assert_eq!(pair.machines[READER].counters().home_moves, 2);
    // The former home has copies, and is told like anybody who has.
    pair.synchronise(READER);
    for page in 0..2 {
        assert_eq!(
            (pair.state(READER, page), pair.state(HOME, page)),
            (State::HomeExclusive, State::Invalid)
        );
        assert_eq!(pair.machines[HOME].page(Page(page)).probable_home, NodeId::from_index(READER));
    }
}

#[test]
fn a_former_home_writes_a_copy() {
    let mut pair = Pair::new(true);
    pair.touch(1);
    assert_eq!(pair.fault(READER, 0, Access::Write, 0).0, Outcome::Done);
    assert_eq!(pair.fault(HOME, 0, Access::Write, 0), (Outcome::Done, vec![]));
    assert_eq!((pair.state(HOME, 0), pair.state(READER, 0)), (State::Dirty, State::HomeDirty));
    pair.memories[HOME].write(0, 20);
    pair.memories[READER].write(1, 30);
    pair.synchronise(HOME);
    assert_eq!([0, 1].map(|at| pair.memories[READER].read(at)), [20, 30]);
    assert_eq!(pair.machines[HOME].counters().exclusive_left, 1);
}

/// What the home has used alone is read-only at once, and a page that it writes again is exclusive again.
#[test]
fn pages_are_exposed_together() {
    let mut pair = Pair::new(true);
    pair.touch(4);
    pair.call(HOME, |machine, env| machine.downgrade_exclusive(env));
    assert_eq!([0, 1, 2, 3].map(|page| pair.access(HOME, page)), [Access::Read; 4]);
    assert_eq!(pair.fault(READER, 1, Access::Write, 0), (Outcome::Done, vec![]));
    assert_eq!(pair.state(READER, 1), State::HomeDirty);
    // The page that has another home ends the run of those that nobody else has used.
    assert_eq!(pair.fault(HOME, 0, Access::Write, 3), (Outcome::Done, vec![]));
    assert_eq!([0, 1, 2].map(|page| pair.access(HOME, page)), [Access::Write, Access::Read, Access::Read]);
    assert_eq!((pair.state(HOME, 0), pair.state(HOME, 1)), (State::HomeExclusive, State::Shared));
    assert_eq!(pair.fault(HOME, 2, Access::Write, 1), (Outcome::Done, vec![]));
    assert_eq!(pair.state(HOME, 3), State::HomeExclusive);
}

#[test]
fn who_writes_what_only_it_has_read_becomes_home() {
    let mut pair = Pair::new(true);
    pair.touch(3);
    pair.call(HOME, |machine, env| machine.downgrade_exclusive(env));
    assert_eq!(pair.fault(READER, 0, Access::Read, 2), (Outcome::Done, vec![]));
    // The home has found the name at the last page, so that this is a sharer's copy.
    pair.asks_home_about(2);
    assert_eq!(pair.fault(READER, 0, Access::Write, 2), (Outcome::Done, vec![]));
    let states = [0, 1, 2].map(|page| pair.state(READER, page));
    assert_eq!(states, [State::HomeDirty, State::HomeDirty, State::Shared]);
    let counters = pair.machines[READER].counters();
    assert_eq!((counters.home_moves, counters.twins, counters.page_transfers), (2, 0, 3));
    pair.synchronise(READER);
    assert_eq!(
        [0, 1, 2].map(|page| pair.state(HOME, page)),
        [State::Invalid, State::Invalid, State::HomeShared]
    );
}

/// Of pages ahead that will be written, the home takes back those that nobody has come for.
#[test]
fn what_is_exposed_may_be_written_before_it_is() {
    let mut pair = Pair::new(true);
    pair.touch(6);
    pair.call(HOME, |machine, env| machine.downgrade_exclusive(env));
    assert_eq!(pair.fault(READER, 3, Access::Read, 0).0, Outcome::Done);
    assert_eq!(pair.fault(READER, 4, Access::Write, 0).0, Outcome::Done);
    let ((), effects) = pair.call(HOME, |machine, env| machine.write_early(Page(2), 20, env));
    assert_eq!(messages(effects), []);
    let allowed = [1, 2, 3, 4, 5, 6].map(|page| pair.access(HOME, page));
    let (none, read, write) = (Access::None, Access::Read, Access::Write);
    assert_eq!(allowed, [read, write, read, read, write, none]);
}

/// One fault does for what its threads will write; each page is told of as if it had been written.
#[test]
fn a_home_writes_together_what_was_copied_together() {
    let mut pair = Pair::new(true);
    pair.touch(6);
    assert_eq!(pair.fault(READER, 0, Access::Read, 4).0, Outcome::Done);
    assert_eq!(pair.fault(HOME, 2, Access::Write, 20), (Outcome::Done, vec![]));
    assert_eq!([2, 3, 4, 5].map(|page| pair.access(HOME, page)), [Access::Write; 4]);
    let states = [2, 3, 4, 5, 6].map(|page| pair.state(HOME, page));
    let dirty = State::HomeDirty;
    assert_eq!(states, [dirty, dirty, dirty, State::HomeExclusive, State::Untouched]);
    pair.memories[HOME].write(4 * SIZE, 40);
    pair.synchronise(HOME);
    assert_eq!([2, 3, 4].map(|page| pair.state(READER, page)), [State::Invalid; 3]);
    assert_eq!(pair.fault(READER, 4, Access::Read, 0).0, Outcome::Done);
    assert_eq!(pair.memories[READER].read(4 * SIZE), 40);
}

#[test]
fn a_page_with_a_reader_has_no_home_to_be_taken() {
    let mut pair = Pair::new(true);
    pair.touch(2);
    assert_eq!(pair.fault(READER, 0, Access::Read, 0).0, Outcome::Done);
    assert_eq!(pair.fault(READER, 0, Access::Write, 0), (Outcome::Done, vec![]));
    assert_eq!((pair.state(HOME, 0), pair.state(READER, 0)), (State::HomeExclusive, State::Dirty));
    assert_eq!(pair.fault(HOME, 0, Access::Write, 0).0, Outcome::Done);
    assert_eq!(pair.state(HOME, 0), State::HomeDirty, "the reader was found");
}

#[test]
fn pages_that_are_not_open_are_asked_for() {
    let mut pair = Pair::new(true);
    let (outcome, sent) = pair.fault(READER, 0, Access::Read, 0);
    assert_eq!(outcome, Outcome::Wait, "nobody has touched the page");
    assert!(matches!(sent[..], [CsmMessage::Fetch { write: false, .. }]), "{sent:?}");
    let mut apart = Pair::new(false);
    apart.touch(1);
    assert_eq!(apart.fault(READER, 0, Access::Read, 0).0, Outcome::Wait, "one_sided_reads are not wanted");
}

#[test]
fn pages_are_brought_early_by_visits_too() {
    let mut pair = Pair::new(true);
    pair.touch(4);
    let ((), effects) = pair.call(READER, |machine, env| machine.prefetch(Page(1), 2, Access::Read, env));
    assert_eq!(messages(effects), []);
    let states = [0, 1, 2, 3].map(|page| pair.state(READER, page));
    assert_eq!(states, [State::Invalid, State::Shared, State::Shared, State::Invalid]);
}
