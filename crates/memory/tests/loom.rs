//! The remote-access word and the logs under every interleaving and every reordering that the memory model
//! allows (with a bounded number of preemptions). The same source as in the library, over checked primitives.
#![expect(unreachable_pub, reason = "the included modules are public in their crate")]

#[allow(dead_code, reason = "the library uses all of it")]
#[path = "../src/remote/access_word.rs"]
mod access_word;
#[allow(dead_code, reason = "the library uses all of it")]
#[path = "../src/remote/readers.rs"]
mod readers;
#[allow(dead_code, reason = "the library uses all of it")]
#[path = "../src/remote/remote_log.rs"]
mod remote_log;
#[allow(dead_code, reason = "the library uses all of it")]
#[path = "../src/remote/wait.rs"]
mod wait;
#[path = "../src/remote/words.rs"]
mod words;

mod primitive {
    use std::time::Duration;

    pub fn relax() {
        loom::thread::yield_now();
    }

    /// The wait is never long enough to be reported.
    pub fn rest(_: Duration) -> Duration {
        loom::thread::yield_now();
        Duration::ZERO
    }
}

use access_word::{Claim, Means, RemoteAccessWord, Withdrawal};
use gondwana_page::{RemoteAccess, Writers};
use gondwana_topology::{NodeId, NodeSet};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::thread;
use readers::ReaderFormat;
use remote_log::RemoteLog;
use words::SharedWords;

/// The first words of a table.
struct CheckedWords<const COUNT: usize>([AtomicU64; COUNT]);

impl<const COUNT: usize> Default for CheckedWords<COUNT> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl<const COUNT: usize> SharedWords for CheckedWords<COUNT> {
    fn load(&self, word: usize) -> u64 {
        self.0[word].load(Ordering::Acquire)
    }

    fn store(&self, word: usize, value: u64) {
        self.0[word].store(value, Ordering::Release);
    }

    fn compare_exchange(&self, word: usize, current: u64, new: u64) -> Result<u64, u64> {
        self.0[word].compare_exchange_weak(current, new, Ordering::AcqRel, Ordering::Acquire)
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}

fn model(check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

/// A page of a home: its remote-access word, what the home has written before it exposed the page, and the right to write
/// it, which only the home while the page is withdrawn, or a node that has locked it, may change.
#[derive(Default)]
struct Page {
    words: CheckedWords<1>,
    contents: UnsafeCell<u32>,
    right: UnsafeCell<u32>,
}

/// A run of few nodes, and of more than a bitmap has bits. In the latter the readers are its last nodes.
const RUNS: [(usize, u16); 2] = [(8, 0), (256, 250)];

impl Page {
    fn word(&self, nodes: usize) -> RemoteAccessWord<'_, CheckedWords<1>> {
        RemoteAccessWord { words: &self.words, word: 0, format: ReaderFormat::of(nodes) }
    }
}

const CONTENTS: u32 = 7;

/// A node claims the page and reads it, if it may.
fn read(page: &Page, nodes: usize, node: u16, access: RemoteAccess) -> bool {
    let word = page.word(nodes);
    match word.claim(node, access, Means { log: false, stop: true }) {
        Claim::Refused => return false,
        Claim::Granted | Claim::BesideWriters => {}
        Claim::Locked { .. } => {
            page.right.with_mut(|right| {
                // SAFETY: loom reports it if anybody else reads or changes it meanwhile.
                unsafe { *right += 1 }
            });
            if access == RemoteAccess::Home {
                copy(page);
                word.take(access);
                return true;
            }
            word.take(access);
        }
    }
    copy(page);
    true
}

fn copy(page: &Page) {
    page.contents.with(|contents| {
        // SAFETY: loom reports it if anybody changes it meanwhile.
        assert_eq!(unsafe { *contents }, CONTENTS, "what the home has written before is seen");
    });
}

fn withdraw(page: &Page, nodes: usize) -> Withdrawal {
    page.word(nodes).withdraw(&mut primitive::rest, &mut |_| unreachable!("the wait is short"))
}

/// How often write access was taken. Called by the home, which has withdrawn the page.
fn taken(page: &Page) -> u32 {
    page.right.with(|right| {
        // SAFETY: as above.
        unsafe { *right }
    })
}

/// What a model found: which nodes could do what they claimed, and what the home has found at last, with the numbers of
/// the nodes.
struct Outcome<const N: usize> {
    granted: [bool; N],
    found: Withdrawal,
    times: u32,
    first: u16,
}

impl<const N: usize> Outcome<N> {
    /// The nodes whose claims were granted.
    fn nodes(&self) -> NodeSet {
        self.granted
            .iter()
            .zip(self.first..)
            .filter(|(granted, _)| **granted)
            .map(|(_, node)| NodeId(node))
            .collect()
    }
}

/// A home exposes a page and withdraws it, while nodes claim it, in runs of both formats.
fn explore<const N: usize>(
    writers: Writers,
    more: Option<RemoteAccess>,
    accesses: [RemoteAccess; N],
    check: fn(&Outcome<N>),
) {
    for (nodes, first) in RUNS {
        model(move || {
            let page = Arc::new(Page::default());
            page.contents.with_mut(|contents| {
                // SAFETY: no other thread has the page yet.
                unsafe { *contents = CONTENTS }
            });
            page.word(nodes).expose(writers, more);
            let readers: Vec<_> = (first..)
                .zip(accesses)
                .map(|(node, access)| {
                    let page = Arc::clone(&page);
                    thread::spawn(move || read(&page, nodes, node, access))
                })
                .collect();
            let found = withdraw(&page, nodes);
            let times = taken(&page);
            if found.home.is_some() {
                page.contents.with_mut(|contents| {
                    // SAFETY: loom reports it if the new home is still copying the page.
                    unsafe { *contents += 1 }
                });
            }
            let mut granted = readers.into_iter().map(|reader| reader.join().unwrap());
            let granted = std::array::from_fn(|_| granted.next().unwrap());
            assert_eq!(times, taken(&page), "no node takes write access of a page that is withdrawn");
            assert_eq!(
                withdraw(&page, nodes),
                Withdrawal::default(),
                "no node claims a page that is withdrawn"
            );
            check(&Outcome { granted, found, times, first });
        });
    }
}

#[test]
fn the_home_finds_all_readers_and_one_has_taken_write_access() {
    explore(Writers::ToBeStopped, None, [RemoteAccess::Read, RemoteAccess::Read], |outcome| {
        let any = !outcome.nodes().is_empty();
        assert_eq!((outcome.found.readers, outcome.found.home), (outcome.nodes(), None));
        assert_eq!((outcome.found.taken, outcome.times), (any, u32::from(any)));
    });
}

#[test]
fn the_home_finds_all_readers_of_a_page_that_no_thread_writes() {
    explore(Writers::Noted, None, [RemoteAccess::Read, RemoteAccess::Read], |outcome| {
        let Withdrawal { readers, taken, .. } = outcome.found;
        assert_eq!((readers, taken, outcome.times), (outcome.nodes(), false, 0));
    });
}

#[test]
fn one_of_two_becomes_the_home_and_knows_it() {
    let accesses = [RemoteAccess::Home, RemoteAccess::Home];
    explore(Writers::ToBeStopped, Some(RemoteAccess::Home), accesses, |outcome| {
        let home = outcome.nodes().first().map(|node| node.0);
        assert!(outcome.granted != [true; 2], "a page has one home");
        let Withdrawal { home: found, taken, .. } = outcome.found;
        assert_eq!((found, taken, outcome.times), (home, home.is_some(), u32::from(home.is_some())));
    });
}

#[test]
fn a_reader_and_a_new_home_exclude_each_other() {
    for writers in [Writers::ToBeStopped, Writers::Noted] {
        let accesses = [RemoteAccess::Read, RemoteAccess::Home];
        explore(writers, Some(RemoteAccess::Home), accesses, |outcome| {
            let [read, moved] = outcome.granted;
            assert!(!(read && moved), "the home knows each reader, and a home that does not cannot be");
            assert_eq!(outcome.found.home, moved.then_some(outcome.first + 1));
            assert_eq!(!outcome.found.readers.is_empty(), read);
        });
    }
}

/// Seven nodes of a large run claim a page that has room for six readers: the home finds those that were let in.
#[test]
fn a_word_without_room_refuses_a_reader() {
    model(|| {
        let page = Arc::new(Page::default());
        page.contents.with_mut(|contents| {
            // SAFETY: no other thread has the page yet.
            unsafe { *contents = CONTENTS }
        });
        page.word(256).expose(Writers::Noted, None);
        let early: Vec<_> = (100..105).collect();
        assert!(early.iter().all(|&node| read(&page, 256, node, RemoteAccess::Read)));
        let late = [200, 201].map(|node| {
            let page = Arc::clone(&page);
            thread::spawn(move || read(&page, 256, node, RemoteAccess::Read).then_some(node))
        });
        let late: Vec<_> = late.into_iter().filter_map(|reader| reader.join().unwrap()).collect();
        assert_eq!(late.len(), 1, "there is room for one more");
        let readers = early.into_iter().chain(late).map(NodeId).collect::<NodeSet>();
        assert_eq!(withdraw(&page, 256).readers, readers);
    });
}

/// A node posts a notice to a sharer and says that its release is complete: a sharer that has heard so finds the notice.
#[test]
fn whoever_hears_of_a_release_finds_the_notice() {
    model(|| {
        let shared = Arc::new((CheckedWords::<18>::default(), AtomicU32::new(0)));
        let releaser = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (words, released) = &*shared;
                RemoteLog::new(words, 0, 18).write(5);
                released.store(1, Ordering::Release);
            })
        };
        let (words, released) = &*shared;
        let heard = released.load(Ordering::Acquire) == 1;
        let mut found = vec![];
        RemoteLog::new(words, 0, 18).read(|entry| found.push(entry));
        assert!(found == [5] || !heard, "a notice is missing");
        releaser.join().unwrap();
        RemoteLog::new(words, 0, 18).read(|entry| found.push(entry));
        assert_eq!(found, [5], "the notice is found once");
    });
}

/// The home writes a page and scans the log, while a reader logs the page and copies it: the home finds the page, or the copy
/// has what the home has written.
#[test]
fn the_home_finds_the_page_in_the_log_or_the_copy_is_new() {
    model(|| {
        let shared = Arc::new((CheckedWords::<18>::default(), AtomicU32::new(0)));
        let reader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (words, page) = &*shared;
                RemoteLog::new(words, 0, 18).write(5);
                words.fence();
                page.load(Ordering::Relaxed)
            })
        };
        let (words, page) = &*shared;
        page.store(CONTENTS, Ordering::Relaxed);
        words.fence();
        let mut found = vec![];
        RemoteLog::new(words, 0, 18).read(|page| found.push(page));
        let copied = reader.join().unwrap();
        assert!(found == [5] || copied == CONTENTS, "an old copy that the home does not know of");
        RemoteLog::new(words, 0, 18).read(|page| found.push(page));
        assert_eq!(found, [5], "the page is found once");
    });
}
