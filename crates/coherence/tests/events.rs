//! What the protocols tell a monitor, event by event: which node, about which pages, with which peer.

use gondwana_coherence::Event::{
    Answered, Arrived, Asked, DiffReceived, DiffSent, Given, Invalidated, InvalidationSent, Left,
    NoticeReceived, NoticeSent, Overtaken, Served, Shared, Upgraded,
};
use gondwana_coherence::{
    Access, Csm, CsmOptions, Erc, ErcOptions, Layout, Outcome, PROTOCOLS, Page, ProtocolInfo, Sc, ScOptions,
    StartOptions, SyncPoint, Waiter,
};
use gondwana_testbed::scripted::{SIZE, Scripted, Seen};
use std::time::Duration;

/// Bytes of one, two and three pages.
const ONE: u64 = SIZE as u64;
const TWO: u64 = 2 * ONE;
const THREE: u64 = 3 * ONE;
/// Bytes of a diff of one changed byte.
const DIFF: u32 = 3;
/// Pages of a cluster.
const PAGES: u32 = 8;

fn start(info: &'static ProtocolInfo, nodes: u16) -> Scripted {
    Scripted::new(nodes, PAGES, |layout| {
        (info.start)(layout, &StartOptions { one_sided: false, common_after: None })
    })
}

/// Nodes that send messages, and whose homes stay.
fn csm(nodes: u16) -> Scripted {
    csm_with(nodes, CsmOptions { migrate: false, one_sided: false, ..CsmOptions::default() })
}

fn csm_with(nodes: u16, options: CsmOptions) -> Scripted {
    Scripted::new(nodes, PAGES, |layout| Box::new(Csm::new(layout, options)))
}

fn moving() -> CsmOptions {
    CsmOptions { one_sided: false, ..CsmOptions::default() }
}

fn sc(nodes: u16) -> Scripted {
    Scripted::new(nodes, PAGES, |layout: Layout| {
        Box::new(Sc::new(layout, ScOptions { hold: Some(Duration::ZERO), ..ScOptions::default() }))
    })
}

fn erc(nodes: u16) -> Scripted {
    Scripted::new(nodes, PAGES, |layout: Layout| Box::new(Erc::new(layout, ErcOptions { hold: true })))
}

/// What is told while `act` acts.
fn seen(cluster: &mut Scripted, act: impl FnOnce(&mut Scripted)) -> Vec<Seen> {
    cluster.take_seen();
    act(cluster);
    cluster.take_seen()
}

#[test]
fn a_cold_read_miss_ends_exclusive_use_and_brings_the_pages() {
    for info in PROTOCOLS {
        let mut cluster = start(info, 2);
        // What the manager touches first costs no message and is nobody else's business.
        assert_eq!(seen(&mut cluster, |cluster| cluster.write(0, 0, 3)), []);
        let expected = [
            (1, Asked, 0, 2, 0),
            (0, Shared, 0, 2, 1),
            (0, Served { write: false }, 0, 2, 1),
            (1, Arrived { bytes: TWO }, 0, 2, 0),
        ];
        assert_eq!(seen(&mut cluster, |cluster| cluster.read(1, 0, 2)), expected, "{}", info.name);
        // Nothing happens where all is there.
        assert_eq!(seen(&mut cluster, |cluster| cluster.read(1, 0, 2)), [], "{}", info.name);
    }
}

#[test]
fn untouched_pages_arrive_without_contents() {
    for info in PROTOCOLS {
        for write in [false, true] {
            let mut cluster = start(info, 2);
            let access = if write { Access::Write } else { Access::Read };
            let expected =
                [(1, Asked, 2, 3, 0), (0, Served { write }, 2, 3, 1), (1, Arrived { bytes: 0 }, 2, 3, 0)];
            let seen = seen(&mut cluster, |cluster| cluster.touch(1, 2, 3, access));
            assert_eq!(seen, expected, "{}", info.name);
        }
    }
}

#[test]
fn a_write_miss_takes_a_page_that_only_its_home_has_had() {
    for info in PROTOCOLS {
        let mut cluster = start(info, 2);
        cluster.write(0, 0, 1);
        let expected = [
            (1, Asked, 0, 1, 0),
            (0, Left { exclusive: true, written: true }, 0, 1, 1),
            (0, Served { write: true }, 0, 1, 1),
            (1, Arrived { bytes: ONE }, 0, 1, 0),
        ];
        assert_eq!(seen(&mut cluster, |cluster| cluster.write(1, 0, 1)), expected, "{}", info.name);
    }
}

#[test]
fn csm_a_write_miss_brings_a_copy_where_the_home_stays() {
    let mut cluster = csm(2);
    cluster.write(0, 0, 1);
    let expected = [
        (1, Asked, 0, 1, 0),
        (0, Shared, 0, 1, 1),
        (0, Served { write: true }, 0, 1, 1),
        (1, Arrived { bytes: ONE }, 0, 1, 0),
    ];
    assert_eq!(seen(&mut cluster, |cluster| cluster.write(1, 0, 1)), expected);
}

#[test]
fn csm_an_upgrade_names_the_home_and_sends_nothing() {
    let mut cluster = csm(2);
    cluster.write(0, 0, 2);
    cluster.read(1, 0, 2);
    // Whether the second page will be written as well is not known yet.
    assert_eq!(seen(&mut cluster, |cluster| cluster.touch(1, 0, 2, Access::Write)), [(1, Upgraded, 0, 1, 0)]);
    // The home does not need a twin, and tells of all its pages that others have.
    assert_eq!(seen(&mut cluster, |cluster| cluster.touch(0, 0, 2, Access::Write)), [(0, Upgraded, 0, 2, 0)]);
}

#[test]
fn csm_a_release_sends_diffs_and_notices_and_the_next_acquire_gives_copies_up() {
    let mut cluster = csm(3);
    cluster.write(0, 0, 3);
    cluster.read(2, 0, 3);
    cluster.write(1, 0, 3);
    // A second byte of the last page makes its diff longer.
    cluster.memories[1].write(2 * SIZE, 77);
    let expected = [
        (1, DiffSent { bytes: DIFF }, 0, 2, 0),
        (1, DiffSent { bytes: 2 * DIFF }, 2, 1, 0),
        (0, DiffReceived { bytes: DIFF }, 0, 1, 1),
        (0, DiffReceived { bytes: DIFF }, 1, 1, 1),
        (0, DiffReceived { bytes: 2 * DIFF }, 2, 1, 1),
        (0, NoticeSent, 0, 3, 2),
        (2, NoticeReceived, 0, 3, 1),
    ];
    assert_eq!(seen(&mut cluster, |cluster| cluster.release(1)), expected);
    assert_eq!(seen(&mut cluster, |cluster| cluster.acquire(2)), [(2, Invalidated, 0, 3, 0)]);
    // Who wrote has the only good copy, which its own diff did not make stale.
    assert_eq!(seen(&mut cluster, |cluster| cluster.acquire(1)), []);
}

#[test]
fn csm_a_home_tells_its_readers_at_the_release() {
    let mut cluster = csm(2);
    cluster.write(0, 0, 2);
    cluster.read(1, 0, 2);
    cluster.write(0, 1, 1);
    let expected = [(0, NoticeSent, 1, 1, 1), (1, NoticeReceived, 1, 1, 0)];
    assert_eq!(seen(&mut cluster, |cluster| cluster.release(0)), expected);
    assert_eq!(seen(&mut cluster, |cluster| cluster.acquire(1)), [(1, Invalidated, 1, 1, 0)]);
}

#[test]
fn csm_a_home_that_moves_with_a_diff_leaves_pages_that_others_had() {
    let mut cluster = csm_with(3, moving());
    cluster.write(0, 0, 2);
    cluster.read(2, 0, 2);
    cluster.read(1, 0, 2);
    cluster.write(1, 0, 2);
    let expected = [
        (1, DiffSent { bytes: DIFF }, 0, 2, 0),
        (0, DiffReceived { bytes: DIFF }, 0, 1, 1),
        (0, DiffReceived { bytes: DIFF }, 1, 1, 1),
        (0, Left { exclusive: false, written: true }, 0, 2, 1),
        (0, NoticeSent, 0, 2, 2),
        (2, NoticeReceived, 0, 2, 1),
    ];
    assert_eq!(seen(&mut cluster, |cluster| cluster.release(1)), expected);
}

#[test]
fn csm_copies_of_several_homes_are_given_up_each_with_its_own() {
    let mut cluster = csm(3);
    cluster.place(0, 1, 1, 1);
    cluster.write(1, 1, 1);
    cluster.write(0, 0, 1);
    cluster.read(2, 0, 1);
    cluster.read(2, 1, 1);
    cluster.write(0, 0, 1);
    cluster.write(1, 1, 1);
    cluster.release(0);
    cluster.release(1);
    let expected = [(2, Invalidated, 0, 1, 0), (2, Invalidated, 1, 1, 1)];
    assert_eq!(seen(&mut cluster, |cluster| cluster.acquire(2)), expected);
}

#[test]
fn csm_pages_that_a_policy_places_leave_for_good_and_are_given() {
    let mut cluster = csm(2);
    cluster.write(0, 0, 2);
    let given = seen(&mut cluster, |cluster| {
        cluster.place(0, 0, 2, 1);
        cluster.finish();
    });
    let expected =
        [(0, Left { exclusive: true, written: false }, 0, 2, 1), (1, Given { bytes: TWO }, 0, 2, 0)];
    assert_eq!(given, expected);
}

#[test]
fn csm_placed_pages_that_nobody_has_touched_are_given_at_the_first_touch() {
    let mut cluster = csm(2);
    assert_eq!(seen(&mut cluster, |cluster| cluster.place(0, 0, 1, 1)), []);
    let expected = [
        (0, Asked, 0, 1, 1),
        (1, Given { bytes: 0 }, 0, 1, 0),
        (1, Shared, 0, 1, 0),
        (1, Served { write: false }, 0, 1, 0),
        (0, Arrived { bytes: ONE }, 0, 1, 1),
    ];
    assert_eq!(seen(&mut cluster, |cluster| cluster.read(0, 0, 1)), expected);
}

#[test]
fn csm_who_is_given_what_it_asks_for_gets_an_answer_without_it() {
    let mut cluster = csm(3);
    cluster.place(0, 0, 1, 1);
    let expected = [
        (2, Asked, 0, 1, 0),
        (1, Asked, 0, 1, 0),
        (1, Given { bytes: 0 }, 0, 1, 0),
        (1, Shared, 0, 1, 2),
        (1, Served { write: false }, 0, 1, 2),
        (1, Answered, 0, 1, 0),
        (2, Arrived { bytes: ONE }, 0, 1, 1),
    ];
    let both_ask = seen(&mut cluster, |cluster| {
        assert_eq!(cluster.fault(2, 0, Access::Read, 0), Outcome::Wait);
        assert_eq!(cluster.fault(1, 0, Access::Read, 0), Outcome::Wait);
        cluster.finish();
    });
    assert_eq!(both_ask, expected);
}

#[test]
fn csm_an_answer_that_crosses_a_diff_is_overtaken() {
    let mut cluster = csm(3);
    cluster.write(0, 0, 1);
    cluster.write(1, 0, 1);
    cluster.write(2, 0, 1);
    cluster.release(2);
    assert_eq!(seen(&mut cluster, |cluster| cluster.acquire(1)), [(1, Invalidated, 0, 1, 0)]);
    let expected = [
        // One thread reads what another one has written and releases: the answer may lack the diff.
        (1, Asked, 0, 1, 0),
        (1, DiffSent { bytes: DIFF }, 0, 1, 0),
        (0, Served { write: false }, 0, 1, 1),
        (0, DiffReceived { bytes: DIFF }, 0, 1, 1),
        (0, NoticeSent, 0, 1, 2),
        (1, Arrived { bytes: ONE }, 0, 1, 0),
        (1, Overtaken, 0, 1, 0),
        (2, NoticeReceived, 0, 1, 1),
        // Not before the diff is acknowledged.
        (1, Asked, 0, 1, 0),
        (0, Served { write: false }, 0, 1, 1),
        (1, Arrived { bytes: ONE }, 0, 1, 0),
    ];
    let crossing = seen(&mut cluster, |cluster| {
        assert_eq!(cluster.fault(1, 0, Access::Read, 0), Outcome::Wait);
        let released = cluster.call(1, |machine, env| machine.release(SyncPoint::default(), Waiter(9), env));
        assert_eq!(released, Outcome::Wait);
        cluster.finish();
    });
    assert_eq!(crossing, expected);
}

#[test]
fn csm_a_home_finds_out_later_who_has_read_its_memory() {
    let mut cluster = csm_with(3, CsmOptions { migrate: false, ..CsmOptions::default() });
    cluster.write(0, 0, 2);
    // Nobody is asked.
    let reads = |cluster: &mut Scripted| {
        cluster.read(1, 0, 1);
        cluster.read(2, 0, 1);
        cluster.read(1, 1, 1);
    };
    assert_eq!(seen(&mut cluster, reads), []);
    let found = seen(&mut cluster, |cluster| {
        cluster.call(0, |machine, env| {
            machine.withdraw_page(Page(0), env);
            machine.withdraw_page(Page(1), env);
            machine.expose_withdrawn(env);
        });
    });
    assert_eq!(found, [(0, Shared, 0, 2, 1), (0, Shared, 0, 1, 2)]);
}

#[test]
fn csm_a_home_finds_out_later_that_another_node_has_taken_a_page() {
    let mut cluster = csm_with(2, CsmOptions::default());
    cluster.write(0, 0, 1);
    assert_eq!(seen(&mut cluster, |cluster| cluster.write(1, 0, 1)), []);
    let found = seen(&mut cluster, |cluster| {
        cluster.call(0, |machine, env| machine.withdraw_page(Page(0), env));
    });
    assert_eq!(found, [(0, Left { exclusive: true, written: true }, 0, 1, 1)]);
    // The former home has kept a copy, of which it is told as any reader is.
    assert_eq!(seen(&mut cluster, |cluster| cluster.release(1)), [(1, NoticeSent, 0, 1, 0)]);
    let expected = [(0, NoticeReceived, 0, 1, 1), (0, Invalidated, 0, 1, 1)];
    assert_eq!(seen(&mut cluster, |cluster| cluster.acquire(0)), expected);
}

#[test]
fn csm_a_reader_that_takes_the_home_upgrades() {
    let mut cluster = csm_with(2, CsmOptions::default());
    cluster.write(0, 0, 1);
    cluster.call(0, |machine, env| machine.downgrade_exclusive(env));
    cluster.read(1, 0, 1);
    assert_eq!(seen(&mut cluster, |cluster| cluster.write(1, 0, 1)), [(1, Upgraded, 0, 1, 0)]);
}

#[test]
fn sc_a_read_of_a_page_that_is_written_elsewhere_goes_by_its_manager() {
    let mut cluster = sc(3);
    cluster.write(1, 0, 1);
    let expected = [
        (2, Asked, 0, 1, 0),
        (1, Shared, 0, 1, 2),
        (1, Served { write: false }, 0, 1, 2),
        (2, Arrived { bytes: ONE }, 0, 1, 1),
    ];
    assert_eq!(seen(&mut cluster, |cluster| cluster.read(2, 0, 1)), expected);
    // The manager knows whom to ask.
    let expected =
        [(0, Asked, 0, 1, 1), (1, Served { write: false }, 0, 1, 0), (0, Arrived { bytes: ONE }, 0, 1, 1)];
    assert_eq!(seen(&mut cluster, |cluster| cluster.read(0, 0, 1)), expected);
}

#[test]
fn sc_an_upgrade_invalidates_all_copies_and_brings_no_contents() {
    let mut cluster = sc(3);
    cluster.write(0, 0, 1);
    cluster.read(1, 0, 1);
    cluster.read(2, 0, 1);
    let expected = [
        (1, Asked, 0, 1, 0),
        (0, InvalidationSent, 0, 1, 2),
        // What the owner has is a copy like the others.
        (0, Invalidated, 0, 1, 1),
        (0, Served { write: true }, 0, 1, 1),
        // Whoever is invalidated learns who will write.
        (2, Invalidated, 0, 1, 1),
        (1, Answered, 0, 1, 0),
        (1, Upgraded, 0, 1, 0),
    ];
    assert_eq!(seen(&mut cluster, |cluster| cluster.write(1, 0, 1)), expected);
    // Releases and acquires are nothing to this protocol.
    let synchronises = |cluster: &mut Scripted| {
        cluster.release(1);
        cluster.acquire(2);
    };
    assert_eq!(seen(&mut cluster, synchronises), []);
}

#[test]
fn sc_an_owner_that_manages_the_page_upgrades_by_itself() {
    let mut cluster = sc(2);
    cluster.write(0, 0, 1);
    cluster.read(1, 0, 1);
    let expected = [(0, InvalidationSent, 0, 1, 1), (0, Upgraded, 0, 1, 0), (1, Invalidated, 0, 1, 0)];
    assert_eq!(seen(&mut cluster, |cluster| cluster.write(0, 0, 1)), expected);
}

#[test]
fn sc_a_run_of_pages_is_upgraded_and_given_up_with_one_message_each() {
    let mut cluster = sc(2);
    cluster.write(0, 0, 3);
    cluster.read(1, 0, 3);
    let upgrade = [(0, InvalidationSent, 0, 3, 1), (0, Upgraded, 0, 3, 0)];
    let given_up = [0, 1, 2].map(|page| (1, Invalidated, page, 1, 0));
    assert_eq!(seen(&mut cluster, |cluster| cluster.write(0, 0, 3)), [&upgrade[..], &given_up].concat());
    // The other node takes them all. The one behind them, which nobody has touched, is asked for again.
    let asked = [(1, Asked, 0, 4, 0)];
    let left = [0, 1, 2].map(|page| (0, Left { exclusive: true, written: true }, page, 1, 1));
    let came = [(0, Served { write: true }, 0, 3, 1), (1, Arrived { bytes: 3 * ONE }, 0, 3, 0)];
    let last =
        [(1, Asked, 3, 1, 0), (0, Served { write: true }, 3, 1, 1), (1, Arrived { bytes: 0 }, 3, 1, 0)];
    let expected = [&asked[..], &left, &came, &last].concat();
    assert_eq!(seen(&mut cluster, |cluster| cluster.write(1, 0, 4)), expected);
}

#[test]
fn sc_a_manager_that_is_to_write_gives_up_its_own_copy_without_being_told() {
    let mut cluster = sc(3);
    cluster.write(1, 0, 1);
    cluster.read(0, 0, 1);
    let expected = [
        (2, Asked, 0, 1, 0),
        (0, Invalidated, 0, 1, 2),
        (1, Invalidated, 0, 1, 2),
        (1, Served { write: true }, 0, 1, 2),
        (2, Arrived { bytes: ONE }, 0, 1, 1),
    ];
    assert_eq!(seen(&mut cluster, |cluster| cluster.write(2, 0, 1)), expected);
}

#[test]
fn sc_a_request_of_the_next_manager_comes_back_to_it() {
    let mut cluster = sc(3);
    cluster.place(0, 0, 1, 1);
    let expected = [(1, Asked, 0, 1, 0), (1, Answered, 0, 1, 0)];
    let asks = seen(&mut cluster, |cluster| {
        assert_eq!(cluster.fault(1, 0, Access::Write, 0), Outcome::Wait);
        cluster.finish();
    });
    assert_eq!(asks, expected);
    assert_eq!(cluster.resumed, [Waiter(1)]);
    // It faults again and finds that nobody has touched the page.
    assert_eq!(seen(&mut cluster, |cluster| cluster.write(1, 0, 1)), []);
}

#[test]
fn erc_an_owner_writes_on_and_invalidates_copies_at_its_release() {
    let mut cluster = erc(3);
    cluster.write(0, 0, 3);
    cluster.read(1, 0, 3);
    cluster.read(2, 1, 1);
    // Whether the others will be written as well is not known yet.
    assert_eq!(seen(&mut cluster, |cluster| cluster.write(0, 0, 2)), [(0, Upgraded, 0, 1, 0)]);
    let expected = [
        (0, InvalidationSent, 0, 2, 1),
        (0, InvalidationSent, 1, 1, 2),
        (1, Invalidated, 0, 2, 0),
        (2, Invalidated, 1, 1, 0),
    ];
    assert_eq!(seen(&mut cluster, |cluster| cluster.release(0)), expected);
    assert_eq!(seen(&mut cluster, |cluster| cluster.acquire(1)), []);
}

#[test]
fn erc_an_upgrade_of_the_only_reader_brings_no_contents() {
    let mut cluster = erc(2);
    cluster.write(0, 0, 1);
    cluster.read(1, 0, 1);
    let expected = [
        (1, Asked, 0, 1, 0),
        (0, Left { exclusive: false, written: true }, 0, 1, 1),
        (0, Served { write: true }, 0, 1, 1),
        (1, Answered, 0, 1, 0),
        (1, Upgraded, 0, 1, 0),
    ];
    assert_eq!(seen(&mut cluster, |cluster| cluster.write(1, 0, 1)), expected);
}

#[test]
fn erc_a_page_leaves_when_all_copies_are_given_up() {
    let mut cluster = erc(3);
    cluster.write(0, 0, 1);
    cluster.read(1, 0, 1);
    cluster.read(2, 0, 1);
    let expected = [
        (1, Asked, 0, 1, 0),
        (0, InvalidationSent, 0, 1, 1),
        (0, InvalidationSent, 0, 1, 2),
        (1, Invalidated, 0, 1, 0),
        (2, Invalidated, 0, 1, 0),
        (0, Left { exclusive: false, written: true }, 0, 1, 1),
        (0, Served { write: true }, 0, 1, 1),
        (1, Arrived { bytes: ONE }, 0, 1, 0),
    ];
    assert_eq!(seen(&mut cluster, |cluster| cluster.write(1, 0, 1)), expected);
}

#[test]
fn erc_a_manager_asks_the_owner() {
    let mut cluster = erc(2);
    cluster.write(1, 0, 3);
    let expected = [
        (0, Asked, 0, 3, 1),
        (1, Shared, 0, 3, 0),
        (1, Served { write: false }, 0, 3, 0),
        (0, Arrived { bytes: THREE }, 0, 3, 1),
    ];
    assert_eq!(seen(&mut cluster, |cluster| cluster.read(0, 0, 3)), expected);
}
