//! Tests of remote-access words: expose, claim and withdraw.

use super::access_word::*;
use super::primitive::rest;
use super::readers::ReaderFormat;
use super::wait::REPORTED;
use super::words::SharedWords;
use gondwana_page::{RemoteAccess, Writers};
use gondwana_topology::{MAX_NODES, NodeId, NodeSet};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

const LOCKED_WRITABLE: Claim = Claim::Locked { writable: true };
const STOP: Means = Means { log: false, stop: true };
const LOG: Means = Means { log: true, stop: true };

/// One word of this process.
#[derive(Default)]
struct LocalWords(AtomicU64);

impl SharedWords for LocalWords {
    fn load(&self, _: usize) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    fn store(&self, _: usize, value: u64) {
        self.0.store(value, Ordering::Release);
    }

    fn compare_exchange(&self, _: usize, current: u64, new: u64) -> Result<u64, u64> {
        self.0.compare_exchange_weak(current, new, Ordering::AcqRel, Ordering::Acquire)
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}

/// A word of a run of `nodes` nodes.
fn word(words: &LocalWords, nodes: usize) -> RemoteAccessWord<'_, LocalWords> {
    RemoteAccessWord { words, word: 0, format: ReaderFormat::of(nodes) }
}

/// With a reader bitmap and with limited pointers.
fn in_both_formats(test: impl Fn(&RemoteAccessWord<'_, LocalWords>)) {
    for nodes in [58, 59] {
        test(&word(&LocalWords::default(), nodes));
    }
}

fn nodes(numbers: &[u16]) -> NodeSet {
    numbers.iter().copied().map(NodeId).collect()
}

/// The home withdraws the page; no node holds it for long.
fn withdraw(word: &RemoteAccessWord<'_, LocalWords>) -> Withdrawal {
    word.withdraw(&mut rest, &mut |node| panic!("node {node} holds the page"))
}

#[test]
fn no_node_claims_a_withdrawn_page() {
    in_both_formats(|word| {
        assert_eq!(word.claim(1, RemoteAccess::Read, STOP), Claim::Refused);
        assert_eq!(withdraw(word), Withdrawal::default());
    });
}

#[test]
fn readers_are_found_once() {
    in_both_formats(|word| {
        word.expose(Writers::Noted, None);
        assert_eq!([1, 0, 57, 1].map(|node| word.claim(node, RemoteAccess::Read, STOP)), [Claim::Granted; 4]);
        assert_eq!(withdraw(word), Withdrawal { readers: nodes(&[0, 1, 57]), ..Withdrawal::default() });
        word.expose(Writers::Noted, None);
        assert_eq!(withdraw(word), Withdrawal::default());
    });
}

#[test]
fn large_runs_have_room_for_some_readers() {
    let (words, all) = (LocalWords::default(), [255, 64, 0, 128, 200, 58]);
    let word = word(&words, MAX_NODES);
    word.expose(Writers::Noted, Some(RemoteAccess::Home));
    for (count, node) in (1..).zip(all) {
        assert_eq!(word.claim(node, RemoteAccess::Read, STOP), Claim::Granted);
        assert_eq!(word.readers(), nodes(&all[..count]));
    }
    for other in [1, 59, 254] {
        assert_eq!(word.claim(other, RemoteAccess::Read, STOP), Claim::Refused, "it sends a message");
    }
    for node in all {
        assert_eq!(word.claim(node, RemoteAccess::Read, STOP), Claim::Granted, "a reader stays one");
        assert_eq!(word.claim(node, RemoteAccess::Upgrade, STOP), Claim::Refused, "others have copies");
    }
    assert_eq!(withdraw(&word), Withdrawal { readers: nodes(&all), ..Withdrawal::default() });
    word.expose(Writers::Noted, None);
    assert_eq!(word.claim(254, RemoteAccess::Read, STOP), Claim::Granted, "withdrawing makes room");
    assert_eq!(withdraw(&word).readers, nodes(&[254]));
}

#[test]
fn any_node_of_a_large_run_becomes_home() {
    let words = LocalWords::default();
    let word = word(&words, MAX_NODES);
    for node in (0_u16..).take(MAX_NODES) {
        word.expose(Writers::ToBeStopped, Some(RemoteAccess::Home));
        assert_eq!(word.claim(node, RemoteAccess::Home, STOP), LOCKED_WRITABLE);
        word.take(RemoteAccess::Home);
        assert_eq!(withdraw(&word), Withdrawal { home: Some(node), taken: true, ..Withdrawal::default() });
        word.expose(Writers::Noted, Some(RemoteAccess::Home));
        assert_eq!(word.claim(node, RemoteAccess::Read, STOP), Claim::Granted);
        assert_eq!(word.claim(node, RemoteAccess::Upgrade, STOP), Claim::Granted);
        assert_eq!(withdraw(&word).home, Some(node));
    }
}

#[test]
fn without_means_to_stop_writers_pages_are_copied_beside_them_or_not_at_all() {
    in_both_formats(|word| {
        let without = |log| Means { log, stop: false };
        word.expose(Writers::ToBeStopped, Some(RemoteAccess::Home));
        for access in [RemoteAccess::Read, RemoteAccess::Home] {
            assert_eq!(word.claim(2, access, without(true)), Claim::Refused);
        }
        assert_eq!(withdraw(word), Withdrawal::default());
        word.expose(Writers::Compared, None);
        assert_eq!(word.claim(2, RemoteAccess::Read, without(false)), Claim::Refused);
        assert_eq!(word.claim(2, RemoteAccess::Read, without(true)), Claim::BesideWriters);
        assert_eq!(withdraw(word).readers, nodes(&[2]));
    });
}

#[test]
fn the_first_reader_takes_write_access() {
    in_both_formats(|word| {
        word.expose(Writers::ToBeStopped, None);
        assert_eq!(word.claim(2, RemoteAccess::Read, STOP), LOCKED_WRITABLE);
        assert_eq!(word.claim(3, RemoteAccess::Read, STOP), Claim::Refused);
        assert_eq!(word.readers(), nodes(&[]), "it may not be granted");
        word.take(RemoteAccess::Read);
        assert_eq!(word.claim(3, RemoteAccess::Read, STOP), Claim::Granted);
        assert_eq!(word.readers(), nodes(&[2, 3]));
        assert_eq!(
            withdraw(word),
            Withdrawal { readers: nodes(&[2, 3]), taken: true, ..Withdrawal::default() }
        );
    });
}

#[test]
fn readers_that_log_leave_write_access_where_it_is() {
    in_both_formats(|word| {
        word.expose(Writers::Compared, Some(RemoteAccess::Home));
        assert_eq!(word.claim(2, RemoteAccess::Read, LOG), Claim::BesideWriters);
        assert_eq!(word.claim(3, RemoteAccess::Read, LOG), Claim::BesideWriters);
        assert_eq!(
            word.claim(4, RemoteAccess::Write, LOG),
            Claim::Refused,
            "the home may go to a node that writes"
        );
        // A node that copies beside the writers would not learn of their write access being taken.
        for access in [RemoteAccess::Read, RemoteAccess::Home] {
            assert_eq!(word.claim(4, access, STOP), Claim::Refused);
        }
        assert_eq!(word.readers(), nodes(&[2, 3]));
        assert_eq!(
            withdraw(word),
            Withdrawal { readers: nodes(&[2, 3]), beside_writers: true, ..Withdrawal::default() }
        );
        word.expose(Writers::Noted, None);
        assert_eq!(word.claim(2, RemoteAccess::Read, LOG), Claim::Granted);
        assert_eq!(withdraw(word), Withdrawal { readers: nodes(&[2]), ..Withdrawal::default() });
        word.expose(Writers::ToBeStopped, None);
        assert_eq!(word.claim(2, RemoteAccess::Read, LOG), LOCKED_WRITABLE);
        word.leave();
        assert_eq!(withdraw(word), Withdrawal::default());
    });
}

#[test]
fn a_node_that_cannot_take_it_leaves_nothing_behind() {
    in_both_formats(|word| {
        word.expose(Writers::ToBeStopped, None);
        assert_eq!(word.claim(2, RemoteAccess::Read, STOP), LOCKED_WRITABLE);
        word.leave();
        assert_eq!(withdraw(word), Withdrawal::default());
    });
}

#[test]
fn writers_claim_what_is_exposed_to_them() {
    in_both_formats(|word| {
        word.expose(Writers::ToBeStopped, Some(RemoteAccess::Write));
        assert_eq!(word.claim(2, RemoteAccess::Write, STOP), LOCKED_WRITABLE);
        word.leave();
        assert_eq!(word.claim(2, RemoteAccess::Write, STOP), LOCKED_WRITABLE);
        word.take(RemoteAccess::Read);
        assert_eq!(word.claim(3, RemoteAccess::Write, STOP), Claim::Granted);
        assert_eq!(
            withdraw(word),
            Withdrawal { readers: nodes(&[2, 3]), taken: true, ..Withdrawal::default() }
        );
        for writers in [Writers::Noted, Writers::ToBeStopped, Writers::Compared] {
            word.expose(writers, None);
            assert_eq!(word.claim(2, RemoteAccess::Write, STOP), Claim::Refused);
            assert_eq!(withdraw(word), Withdrawal::default());
        }
    });
}

#[test]
fn one_node_becomes_home() {
    in_both_formats(|word| {
        word.expose(Writers::ToBeStopped, Some(RemoteAccess::Home));
        assert_eq!(word.claim(2, RemoteAccess::Write, STOP), Claim::Refused);
        assert_eq!(word.claim(2, RemoteAccess::Home, STOP), LOCKED_WRITABLE);
        word.leave();
        assert_eq!(word.claim(2, RemoteAccess::Home, STOP), LOCKED_WRITABLE);
        word.take(RemoteAccess::Home);
        for access in [RemoteAccess::Read, RemoteAccess::Write, RemoteAccess::Home] {
            assert_eq!(word.claim(3, access, STOP), Claim::Refused);
        }
        assert_eq!(word.readers(), nodes(&[2]));
        assert_eq!(withdraw(word), Withdrawal { home: Some(2), taken: true, ..Withdrawal::default() });
        assert_eq!(withdraw(word), Withdrawal::default());
    });
}

#[test]
fn a_page_that_nobody_writes_gets_a_home_without_more() {
    in_both_formats(|word| {
        word.expose(Writers::Noted, Some(RemoteAccess::Home));
        assert_eq!(word.claim(2, RemoteAccess::Home, STOP), Claim::Locked { writable: false });
        word.leave();
        assert_eq!(word.claim(3, RemoteAccess::Home, STOP), Claim::Locked { writable: false });
        word.take(RemoteAccess::Home);
        assert_eq!(withdraw(word), Withdrawal { home: Some(3), taken: true, ..Withdrawal::default() });
    });
}

#[test]
fn the_only_reader_becomes_home_if_nothing_was_written_since() {
    in_both_formats(|word| {
        for writers in [Writers::Noted, Writers::ToBeStopped, Writers::Compared] {
            word.expose(writers, Some(RemoteAccess::Home));
            assert_eq!(
                word.claim(2, RemoteAccess::Upgrade, STOP),
                Claim::Refused,
                "it has not read the page"
            );
            match word.claim(2, RemoteAccess::Read, Means { log: writers == Writers::Compared, stop: true }) {
                Claim::Locked { .. } => word.take(RemoteAccess::Read),
                found => assert_ne!(found, Claim::Refused),
            }
            let (found, home) = match writers {
                // The home may have written it after the node has copied it.
                Writers::Compared => (Claim::Refused, None),
                Writers::ToBeStopped | Writers::Noted => (Claim::Granted, Some(2)),
            };
            assert_eq!(word.claim(3, RemoteAccess::Upgrade, STOP), Claim::Refused);
            assert_eq!(word.claim(2, RemoteAccess::Upgrade, STOP), found);
            assert_eq!(withdraw(word).home, home);
        }
        word.expose(Writers::Noted, Some(RemoteAccess::Home));
        for node in [2, 3] {
            assert_eq!(word.claim(node, RemoteAccess::Read, STOP), Claim::Granted);
        }
        assert_eq!(word.claim(2, RemoteAccess::Upgrade, STOP), Claim::Refused, "another one has a copy");
        assert_eq!(withdraw(word), Withdrawal { readers: nodes(&[2, 3]), ..Withdrawal::default() });
    });
}

#[test]
fn a_page_that_was_read_keeps_its_home() {
    in_both_formats(|word| {
        word.expose(Writers::ToBeStopped, Some(RemoteAccess::Home));
        assert_eq!(word.claim(2, RemoteAccess::Read, STOP), LOCKED_WRITABLE);
        word.take(RemoteAccess::Read);
        assert_eq!(word.claim(3, RemoteAccess::Home, STOP), Claim::Refused);
        assert_eq!(withdraw(word), Withdrawal { readers: nodes(&[2]), taken: true, ..Withdrawal::default() });
    });
}

/// Two readers, and a home that withdraws the page repeatedly: the home then knows each reader, and no node reads
/// meanwhile.
#[test]
fn readers_and_home_do_not_miss_each_other() {
    const ROUNDS: u32 = 20_000;
    let (words, page) = (LocalWords::default(), AtomicU32::new(0));
    let word = &word(&words, 2);
    word.expose(Writers::ToBeStopped, None);
    let (granted, known) = ([AtomicU32::new(0), AtomicU32::new(0)], [AtomicU32::new(0), AtomicU32::new(0)]);
    std::thread::scope(|scope| {
        for node in 0..2_u16 {
            let (page, granted, known) = (&page, &granted[usize::from(node)], &known[usize::from(node)]);
            scope.spawn(move || {
                while page.load(Ordering::Acquire) < 2 * ROUNDS {
                    // Claimed before reading: the home must find the claim afterwards.
                    let met = known.load(Ordering::Acquire);
                    let found = word.claim(node, RemoteAccess::Read, Means { log: met % 3 == 0, stop: true });
                    match found {
                        Claim::Refused => continue,
                        Claim::Locked { .. } => word.take(RemoteAccess::Read),
                        Claim::Granted | Claim::BesideWriters => (),
                    }
                    granted.fetch_add(1, Ordering::AcqRel);
                    while known.load(Ordering::Acquire) == met && page.load(Ordering::Acquire) < 2 * ROUNDS {
                        std::thread::yield_now();
                    }
                }
            });
        }
        for round in 0..ROUNDS {
            let found = withdraw(word);
            page.store(2 * round + 1, Ordering::Release);
            for (node, known) in (0..).zip(&known) {
                if found.readers.contains(NodeId(node)) {
                    known.fetch_add(1, Ordering::AcqRel);
                }
            }
            page.store(2 * round + 2, Ordering::Release);
            word.expose(if round % 2 == 0 { Writers::Compared } else { Writers::Noted }, None);
        }
    });
    let last = withdraw(word);
    for node in 0..2_u16 {
        let index = usize::from(node);
        let found = known[index].load(Ordering::Acquire) + u32::from(last.readers.contains(NodeId(node)));
        assert_eq!(found, granted[index].load(Ordering::Acquire), "node {node}");
    }
}

/// A page that node 70 holds.
fn held(words: &LocalWords) -> RemoteAccessWord<'_, LocalWords> {
    let word = word(words, 100);
    word.expose(Writers::ToBeStopped, None);
    assert_eq!(word.claim(70, RemoteAccess::Read, STOP), LOCKED_WRITABLE);
    word
}

/// Node 70 has taken write access.
fn taken() -> Withdrawal {
    Withdrawal { readers: nodes(&[70]), taken: true, ..Withdrawal::default() }
}

#[test]
fn a_home_lets_others_run_for_longer_and_longer() {
    let words = LocalWords::default();
    let word = held(&words);
    let mut rests = vec![];
    let found = word.withdraw(
        &mut |time| {
            rests.push(time);
            if rests.len() == 40 {
                word.take(RemoteAccess::Read);
            }
            time
        },
        &mut |node| panic!("node {node} is reported"),
    );
    assert_eq!((found, rests.len()), (taken(), 40));
    assert!(rests.is_sorted(), "{rests:?}");
    assert_eq!((rests[0], rests[39]), (Duration::ZERO, Duration::from_millis(1)), "{rests:?}");
}

#[test]
fn a_home_that_waits_for_long_reports_the_node_once_and_waits_on() {
    let words = LocalWords::default();
    let word = held(&words);
    let (mut waited, mut reported) = (Duration::ZERO, vec![]);
    let now = std::cell::Cell::new(waited);
    let found = word.withdraw(
        &mut |time| {
            waited += time;
            now.set(waited);
            if waited > 3 * REPORTED {
                word.take(RemoteAccess::Read);
            }
            time
        },
        &mut |node| reported.push((node, now.get())),
    );
    assert_eq!(found, taken(), "it may go on after all");
    let [(70, when)] = reported[..] else { panic!("{reported:?}") };
    assert!((REPORTED..REPORTED + Duration::from_millis(2)).contains(&when), "{when:?}");
}

#[test]
fn the_time_that_a_home_stands_still_itself_does_not_count() {
    let words = LocalWords::default();
    let word = held(&words);
    let mut rests = 0;
    // It is stopped repeatedly for longer than the limit, and hardly sleeps in between.
    let found = word.withdraw(
        &mut |time| {
            rests += 1;
            if rests == 1000 {
                word.take(RemoteAccess::Read);
            }
            time.min(Duration::from_micros(1))
        },
        &mut |node| panic!("node {node} is reported"),
    );
    assert_eq!(found, taken());
    let moment = Duration::from_micros(20);
    assert!((moment..=2 * moment).contains(&rest(moment)), "what counts is bounded by what was asked for");
}
