//! Doors, opened and closed in all ways.

use super::door::*;
use super::held::PATIENCE;
use super::primitive::rest;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const LOCKED_WRITABLE: Found = Found::Locked { writable: true };

fn door() -> Door {
    Door::default()
}

/// The home closes the page; no visitor holds it for long.
fn close(door: &Door) -> Visits {
    door.close(&mut rest, &mut |node| panic!("node {node} holds the page"))
}

#[test]
fn nobody_enters_a_closed_page() {
    let door = door();
    assert_eq!(door.enter(1, Purpose::Read, false), Found::Closed);
    assert_eq!(close(&door), Visits::default());
}

#[test]
fn names_are_found_once() {
    let door = door();
    door.open(Writers::Noted, None);
    assert_eq!([1, 0, 57, 1].map(|node| door.enter(node, Purpose::Read, false)), [Found::Entered; 4]);
    assert_eq!(close(&door), Visits { names: 1 << 57 | 3, ..Visits::default() });
    door.open(Writers::Noted, None);
    assert_eq!(close(&door), Visits::default());
}

#[test]
fn nodes_without_room_for_their_names_stay_outside() {
    let door = door();
    door.open(Writers::ToBeStopped, None);
    assert_eq!(
        [58, 59, 60, 61, 62, 64, 255].map(|node| door.enter(node, Purpose::Read, false)),
        [Found::Closed; 7]
    );
    assert_eq!(close(&door), Visits::default());
}

#[test]
fn the_first_visitor_takes_write_access() {
    let door = door();
    door.open(Writers::ToBeStopped, None);
    assert_eq!(door.enter(2, Purpose::Read, false), LOCKED_WRITABLE);
    assert_eq!(door.enter(3, Purpose::Read, false), Found::Closed);
    assert_eq!(door.names(), 0, "it may not get in");
    door.take(Purpose::Read);
    assert_eq!(door.enter(3, Purpose::Read, false), Found::Entered);
    assert_eq!(door.names(), 0b1100);
    assert_eq!(close(&door), Visits { names: 0b1100, taken: true, ..Visits::default() });
}

#[test]
fn quiet_visitors_leave_write_access_where_it_is() {
    let door = door();
    door.open(Writers::Compared, Some(Purpose::Home));
    assert_eq!(door.enter(2, Purpose::Read, true), Found::BesideWriters);
    assert_eq!(door.enter(3, Purpose::Read, true), Found::BesideWriters);
    assert_eq!(door.enter(4, Purpose::Write, true), Found::Closed, "the home may go to who writes");
    // Who copies beside the writers would not learn of their write access being taken.
    for purpose in [Purpose::Read, Purpose::Home] {
        assert_eq!(door.enter(4, purpose, false), Found::Closed);
    }
    assert_eq!(door.names(), 0b1100);
    assert_eq!(close(&door), Visits { names: 0b1100, beside_writers: true, ..Visits::default() });
    door.open(Writers::Noted, None);
    assert_eq!(door.enter(2, Purpose::Read, true), Found::Entered);
    assert_eq!(close(&door), Visits { names: 0b100, ..Visits::default() });
    door.open(Writers::ToBeStopped, None);
    assert_eq!(door.enter(2, Purpose::Read, true), LOCKED_WRITABLE);
    door.leave();
    assert_eq!(close(&door), Visits::default());
}

#[test]
fn a_visitor_that_cannot_take_it_leaves_nothing_behind() {
    let door = door();
    door.open(Writers::ToBeStopped, None);
    assert_eq!(door.enter(2, Purpose::Read, false), LOCKED_WRITABLE);
    door.leave();
    assert_eq!(close(&door), Visits::default());
}

#[test]
fn writers_enter_where_they_are_welcome() {
    let door = door();
    door.open(Writers::ToBeStopped, Some(Purpose::Write));
    assert_eq!(door.enter(2, Purpose::Write, false), LOCKED_WRITABLE);
    door.leave();
    assert_eq!(door.enter(2, Purpose::Write, false), LOCKED_WRITABLE);
    door.take(Purpose::Read);
    assert_eq!(door.enter(3, Purpose::Write, false), Found::Entered);
    assert_eq!(close(&door), Visits { names: 0b1100, taken: true, ..Visits::default() });
    for writers in [Writers::Noted, Writers::ToBeStopped, Writers::Compared] {
        door.open(writers, None);
        assert_eq!(door.enter(2, Purpose::Write, false), Found::Closed);
        assert_eq!(close(&door), Visits::default());
    }
}

#[test]
fn one_visitor_becomes_home() {
    let door = door();
    door.open(Writers::ToBeStopped, Some(Purpose::Home));
    assert_eq!(door.enter(2, Purpose::Write, false), Found::Closed);
    assert_eq!(door.enter(2, Purpose::Home, false), LOCKED_WRITABLE);
    door.leave();
    assert_eq!(door.enter(2, Purpose::Home, false), LOCKED_WRITABLE);
    door.take(Purpose::Home);
    for purpose in [Purpose::Read, Purpose::Write, Purpose::Home] {
        assert_eq!(door.enter(3, purpose, false), Found::Closed);
    }
    assert_eq!(door.names(), 0b100);
    assert_eq!(close(&door), Visits { home: Some(2), taken: true, ..Visits::default() });
    assert_eq!(close(&door), Visits::default());
}

#[test]
fn a_page_that_nobody_writes_gets_a_home_without_more() {
    let door = door();
    door.open(Writers::Noted, Some(Purpose::Home));
    assert_eq!(door.enter(2, Purpose::Home, false), Found::Locked { writable: false });
    door.leave();
    assert_eq!(door.enter(3, Purpose::Home, false), Found::Locked { writable: false });
    door.take(Purpose::Home);
    assert_eq!(close(&door), Visits { home: Some(3), taken: true, ..Visits::default() });
}

#[test]
fn the_only_reader_becomes_home_if_nothing_was_written_since() {
    let door = door();
    for writers in [Writers::Noted, Writers::ToBeStopped, Writers::Compared] {
        door.open(writers, Some(Purpose::Home));
        assert_eq!(door.enter(2, Purpose::Upgrade, false), Found::Closed, "it has not read the page");
        match door.enter(2, Purpose::Read, writers == Writers::Compared) {
            Found::Locked { .. } => door.take(Purpose::Read),
            found => assert_ne!(found, Found::Closed),
        }
        let (found, home) = match writers {
            // The home may have written it after the visitor has copied it.
            Writers::Compared => (Found::Closed, None),
            Writers::ToBeStopped | Writers::Noted => (Found::Entered, Some(2)),
        };
        assert_eq!(door.enter(3, Purpose::Upgrade, false), Found::Closed);
        assert_eq!(door.enter(2, Purpose::Upgrade, false), found);
        assert_eq!(close(&door).home, home);
    }
    door.open(Writers::Noted, Some(Purpose::Home));
    for node in [2, 3] {
        assert_eq!(door.enter(node, Purpose::Read, false), Found::Entered);
    }
    assert_eq!(door.enter(2, Purpose::Upgrade, false), Found::Closed, "another one has a copy");
    assert_eq!(close(&door), Visits { names: 0b1100, ..Visits::default() });
}

#[test]
fn a_page_that_was_read_keeps_its_home() {
    let door = door();
    door.open(Writers::ToBeStopped, Some(Purpose::Home));
    assert_eq!(door.enter(2, Purpose::Read, false), LOCKED_WRITABLE);
    door.take(Purpose::Read);
    assert_eq!(door.enter(3, Purpose::Home, false), Found::Closed);
    assert_eq!(close(&door), Visits { names: 0b100, taken: true, ..Visits::default() });
}

/// Two visitors and a home that works on the page again and again: whoever reads is known to the home when it works, and
/// nobody reads while it does.
#[test]
fn visitors_and_home_do_not_miss_each_other() {
    const ROUNDS: u32 = 20_000;
    let (door, page) = (door(), AtomicU32::new(0));
    door.open(Writers::ToBeStopped, None);
    let (entered, known) = ([AtomicU32::new(0), AtomicU32::new(0)], [AtomicU32::new(0), AtomicU32::new(0)]);
    std::thread::scope(|scope| {
        for node in 0..2_u16 {
            let (door, page, entered, known) =
                (&door, &page, &entered[usize::from(node)], &known[usize::from(node)]);
            scope.spawn(move || {
                while page.load(Ordering::Acquire) < 2 * ROUNDS {
                    // Left before reading: the home must find it afterwards, whatever it does.
                    let met = known.load(Ordering::Acquire);
                    let found = door.enter(node, Purpose::Read, met % 3 == 0);
                    match found {
                        Found::Closed => continue,
                        Found::Locked { .. } => door.take(Purpose::Read),
                        Found::Entered | Found::BesideWriters => (),
                    }
                    entered.fetch_add(1, Ordering::AcqRel);
                    while known.load(Ordering::Acquire) == met && page.load(Ordering::Acquire) < 2 * ROUNDS {
                        std::thread::yield_now();
                    }
                }
            });
        }
        for round in 0..ROUNDS {
            let visits = close(&door);
            page.store(2 * round + 1, Ordering::Release);
            for (node, known) in known.iter().enumerate() {
                if visits.names >> node & 1 != 0 {
                    known.fetch_add(1, Ordering::AcqRel);
                }
            }
            page.store(2 * round + 2, Ordering::Release);
            door.open(if round % 2 == 0 { Writers::Compared } else { Writers::Noted }, None);
        }
    });
    let last = close(&door);
    for node in 0..2 {
        let found = known[node].load(Ordering::Acquire) + (last.names >> node & 1) as u32;
        assert_eq!(found, entered[node].load(Ordering::Acquire), "node {node}");
    }
}

/// A page that node 7 holds.
fn held() -> Door {
    let door = door();
    door.open(Writers::ToBeStopped, None);
    assert_eq!(door.enter(7, Purpose::Read, false), LOCKED_WRITABLE);
    door
}

const TAKEN_BY_7: Visits = Visits { names: 1 << 7, home: None, taken: true, beside_writers: false };

#[test]
fn a_home_lets_others_run_for_longer_and_longer() {
    let door = held();
    let mut rests = vec![];
    let visits = door.close(
        &mut |time| {
            rests.push(time);
            if rests.len() == 40 {
                door.take(Purpose::Read);
            }
            time
        },
        &mut |node| panic!("node {node} is named already"),
    );
    assert_eq!((visits, rests.len()), (TAKEN_BY_7, 40));
    assert!(rests.is_sorted(), "{rests:?}");
    assert_eq!((rests[0], rests[39]), (Duration::ZERO, Duration::from_millis(1)), "{rests:?}");
}

#[test]
fn a_home_that_waits_for_long_says_once_for_whom_and_waits_on() {
    let door = held();
    let (mut waited, mut told) = (Duration::ZERO, vec![]);
    let now = std::cell::Cell::new(waited);
    let visits = door.close(
        &mut |time| {
            waited += time;
            now.set(waited);
            if waited > 3 * PATIENCE {
                door.take(Purpose::Read);
            }
            time
        },
        &mut |node| told.push((node, now.get())),
    );
    assert_eq!(visits, TAKEN_BY_7, "it may go on after all");
    let [(7, when)] = told[..] else { panic!("{told:?}") };
    assert!((PATIENCE..PATIENCE + Duration::from_millis(2)).contains(&when), "{when:?}");
}

#[test]
fn the_time_that_a_home_stands_still_itself_does_not_count() {
    let door = held();
    let mut rests = 0;
    // It is stopped again and again for longer than it has patience, and hardly sleeps in between.
    let visits = door.close(
        &mut |time| {
            rests += 1;
            if rests == 1000 {
                door.take(Purpose::Read);
            }
            time.min(Duration::from_micros(1))
        },
        &mut |node| panic!("node {node} is named"),
    );
    assert_eq!(visits, TAKEN_BY_7);
    let moment = Duration::from_micros(20);
    assert!((moment..=2 * moment).contains(&rest(moment)), "what counts is bounded by what was asked for");
}
