//! Remote-access words under every interleaving and every reordering that the memory model allows (with a bounded number
//! of preemptions). The same source as in the library, over checked primitives.

#[allow(dead_code, reason = "the library uses all of it")]
#[path = "../src/neighbour/door.rs"]
mod door;
#[allow(dead_code, reason = "the library uses all of it")]
#[path = "../src/neighbour/held.rs"]
mod held;

mod primitive {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    pub fn relax() {
        loom::thread::yield_now();
    }

    /// The wait is never long enough to be told of.
    pub fn rest(_: Duration) -> Duration {
        loom::thread::yield_now();
        Duration::ZERO
    }
}

use door::{Door, Found, Purpose, Visits, Writers};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// A page of a home: its door, what the home has written before it opened the page, and the right to write it, which only
/// the home while the page is closed, or a visitor that has locked it, may change.
#[derive(Default)]
struct Page {
    door: Door,
    contents: UnsafeCell<u32>,
    right: UnsafeCell<u32>,
}

const CONTENTS: u32 = 7;

/// What the visitor with a number comes to do, and whether it could do that.
fn visit(page: &Page, visitor: u16, purpose: Purpose) -> bool {
    match page.door.enter(visitor, purpose, false) {
        Found::Closed => return false,
        Found::Entered | Found::BesideWriters => {}
        Found::Locked { .. } => {
            page.right.with_mut(|right| {
                // SAFETY: loom reports it if anybody else reads or changes it meanwhile.
                unsafe { *right += 1 }
            });
            page.door.take(purpose);
        }
    }
    page.contents.with(|contents| {
        // SAFETY: as above.
        assert_eq!(unsafe { *contents }, CONTENTS, "what the home has written before is seen");
    });
    true
}

fn close(page: &Page) -> Visits {
    page.door.close(&mut primitive::rest, &mut |_| unreachable!("the wait is short"))
}

/// How often write access was taken. Called by the home, which has closed the page.
fn taken(page: &Page) -> u32 {
    page.right.with(|right| {
        // SAFETY: as above.
        unsafe { *right }
    })
}

/// A home opens a page and closes it, while visitors come. `check` is told who could do what it came for, and what the home
/// has found at last.
fn explore<const N: usize>(
    writers: Writers,
    more: Option<Purpose>,
    purposes: [Purpose; N],
    check: fn([bool; N], Visits, u32),
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let page = Arc::new(Page::default());
        page.contents.with_mut(|contents| {
            // SAFETY: nobody else has the page yet.
            unsafe { *contents = CONTENTS }
        });
        page.door.open(writers, more);
        let visitors: Vec<_> = (0..)
            .zip(purposes)
            .map(|(number, purpose)| {
                let page = Arc::clone(&page);
                thread::spawn(move || visit(&page, number, purpose))
            })
            .collect();
        let visits = close(&page);
        let times = taken(&page);
        let mut came = visitors.into_iter().map(|visitor| visitor.join().unwrap());
        let came = std::array::from_fn(|_| came.next().unwrap());
        assert_eq!(times, taken(&page), "nobody takes write access of a page that is closed");
        assert_eq!(close(&page), Visits::default(), "nobody comes to a page that is closed");
        check(came, visits, times);
    });
}

/// A bit for each visitor that has come.
fn names<const N: usize>(came: [bool; N]) -> u64 {
    came.into_iter().zip(0..).map(|(came, number)| u64::from(came) << number).sum()
}

#[test]
fn the_home_finds_all_readers_and_one_has_taken_write_access() {
    explore(Writers::ToBeStopped, None, [Purpose::Read, Purpose::Read], |came, visits, times| {
        assert_eq!((visits.names, visits.home), (names(came), None));
        assert_eq!((visits.taken, times), (names(came) != 0, u32::from(names(came) != 0)));
    });
}

#[test]
fn the_home_finds_all_readers_of_a_page_that_nobody_writes() {
    explore(Writers::Noted, None, [Purpose::Read, Purpose::Read], |came, visits, times| {
        assert_eq!((visits.names, visits.taken, times), (names(came), false, 0));
    });
}

#[test]
fn one_of_two_becomes_the_home_and_knows_it() {
    let purposes = [Purpose::Home, Purpose::Home];
    explore(Writers::ToBeStopped, Some(Purpose::Home), purposes, |came, visits, times| {
        let home = came.iter().position(|&came| came).map(|number| number as u16);
        assert!(came != [true; 2], "a page has one home");
        assert_eq!((visits.home, visits.taken, times), (home, home.is_some(), u32::from(home.is_some())));
    });
}

#[test]
fn a_reader_and_a_new_home_exclude_each_other() {
    for writers in [Writers::ToBeStopped, Writers::Noted] {
        explore(writers, Some(Purpose::Home), [Purpose::Read, Purpose::Home], |came, visits, _| {
            assert!(
                came != [true; 2],
                "who reads is known to the home, and a home that does not know it cannot be"
            );
            assert_eq!(visits.home, came[1].then_some(1));
            assert_eq!(visits.names, u64::from(came[0]));
        });
    }
}
