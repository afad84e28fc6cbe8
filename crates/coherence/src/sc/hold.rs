//! How long pages stay that other nodes want.
//!
//! A page stays for a moment after a thread that waited for it goes on, so that the thread makes progress.
//!
//! Nodes that write the same pages at random would fetch one for nearly each access. So a node that fetches pages that it
//! lost only just before has them for itself for a *slice* of time, in proportion to the time for which its threads waited for such
//! pages: the other nodes wait meanwhile, and fetch them all once instead of again and again. A node makes others wait
//! [`SHARE`] times as long as it waited itself, at most, so that a program in which nobody uses what is kept
//! is slower by no more than that. A node whose threads all wait for something else than pages keeps nothing.
//!
//! Nodes take turns: slices are numbered, a request has the number of its node's present or next slice, and a slice keeps pages
//! only from requests with later numbers, and with the same number from those of nodes with higher ones (the *wound-wait* rule of
//! databases). So two nodes that each want what the other one has do not wait for each other.

use super::ScOptions;
use crate::runs::span;
use crate::{Env, Page};
use gondwana_topology::NodeId;
use std::hash::Hash;
use std::time::Duration;

/// A slice is so many times as long as the threads' waits for the pages that came back in it.
const SHARE: u32 = 8;

/// The longest slice.
const LONGEST: Duration = Duration::from_millis(100);

/// Each page that comes back without a wait counts as a quarter of one, but no more of a run than these: a run is one message.
const MOST_COUNTED: u32 = 16;

/// A page that comes back within this time after it was lost is one that nodes fight for.
const SOON: Duration = Duration::from_millis(500);

/// For how many times the least time a page is kept for a thread that was resumed and has not gone on.
const RESUMPTION: u32 = 250;

/// How many losses are remembered, each in the place of its page's number modulo this.
const LOSSES: usize = 1 << 13;

/// A page that came for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Arrival {
    page: Page,
    until: Duration,
}

/// When a page left this node.
#[derive(Clone, Copy, Debug, Default)]
struct Loss {
    /// The page; `None` if nothing was lost yet.
    page: Option<Page>,
    /// In milliseconds.
    at: u32,
    /// The slice in which it came back last.
    counted: u32,
    /// This node could write it.
    written: bool,
}

/// Whose turn it is: of two, the lesser one is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Turn {
    pub slice: u32,
    pub node: NodeId,
}

/// What decides how long pages stay.
#[derive(Clone, Debug)]
pub(super) struct Holds {
    options: ScOptions,
    arrivals: Vec<Arrival>,
    losses: Vec<Loss>,
    /// The present slice, or the last one: its beginning and the waits for pages that came back in it.
    began: Duration,
    waited: Duration,
    /// How many pages came back in it.
    pages: u32,
    /// The number of that slice, and the highest one that another node has named.
    slice: u32,
    seen: u32,
    /// How long threads wait on average for a page that nobody keeps.
    usual: Duration,
}

impl Holds {
    pub(super) fn new(options: ScOptions) -> Self {
        Self {
            options,
            arrivals: Vec::new(),
            losses: vec![Loss::default(); LOSSES],
            began: Duration::ZERO,
            waited: Duration::ZERO,
            pages: 0,
            slice: 0,
            seen: 0,
            usual: Duration::ZERO,
        }
    }

    /// What decides what happens next where the clock stands still: there is no slice then.
    pub(super) fn behaviour(&self) -> impl Hash + PartialEq + '_ {
        (&self.options, &self.arrivals)
    }

    /// True if pages stay for threads that waited for them.
    pub(super) fn any_arrived(&self) -> bool {
        !self.arrivals.is_empty()
    }

    /// A page leaves that threads of this node could use, or could write.
    pub(super) fn lost(&mut self, page: Page, written: bool, now: Duration) {
        let loss = &mut self.losses[page.0 as usize % LOSSES];
        let counted = if loss.page == Some(page) { loss.counted } else { 0 };
        *loss = Loss { page: Some(page), at: milliseconds(now), counted, written };
    }

    /// True in a slice in which many pages have come back.
    pub(super) fn collects(&self, now: Duration) -> bool {
        self.pages >= self.options.slice_pages && self.slice_end() > now
    }

    /// True if this node could write a page when it lost it.
    pub(super) fn was_written(&self, page: Page) -> bool {
        self.losses[page.0 as usize % LOSSES].written
    }

    pub(super) fn was_lost_lately(&self, page: Page, now: Duration) -> bool {
        let loss = self.losses[page.0 as usize % LOSSES];
        loss.page == Some(page) && milliseconds(now).wrapping_sub(loss.at) <= milliseconds(SOON)
    }

    /// A page comes for threads that have waited for it since `asked`, perhaps for one that kept it.
    pub(super) fn came(&mut self, page: Page, asked: Duration, kept: bool, now: Duration) {
        let Some(least) = self.options.hold else { return };
        let waited = now.saturating_sub(asked);
        // Slices that grew with waits for slices would grow for ever. Some waits are long because a processor had other things to do.
        if !kept {
            self.usual = match waited.checked_sub(self.usual) {
                Some(longer) if !self.usual.is_zero() => self.usual + longer.min(self.usual) / 32,
                _ => (self.usual + waited) / 2,
            };
        }
        if self.was_lost_lately(page, now) {
            if now > self.slice_end() {
                self.slice = self.slice_number(now);
                (self.began, self.waited, self.pages) = (now, Duration::ZERO, 0);
            }
            self.count(page);
            self.waited += waited.min(self.usual);
        }
        self.arrivals.retain(|arrival| arrival.until >= now && arrival.page != page);
        self.arrivals.push(Arrival { page, until: now + least * RESUMPTION });
    }

    /// Pages come together; `awaited`: a thread has waited for one of them.
    pub(super) fn came_along(&mut self, first: Page, count: u32, awaited: bool, now: Duration) {
        let mut back = 0;
        for page in span(first, count) {
            if self.slice_end() > now && self.was_lost_lately(page, now) {
                self.count(page);
                back += 1;
            }
        }
        if !awaited {
            self.waited += self.usual / 4 * back.min(MOST_COUNTED);
        }
    }

    /// A page came back in the present slice.
    fn count(&mut self, page: Page) {
        let loss = &mut self.losses[page.0 as usize % LOSSES];
        if std::mem::replace(&mut loss.counted, self.slice) != self.slice {
            self.pages += 1;
        }
    }

    /// A thread that waited for a page goes on.
    pub(super) fn repeats(&mut self, page: Page, now: Duration) {
        let arrival = self.arrivals.iter_mut().find(|arrival| arrival.page == page);
        if let (Some(arrival), Some(least)) = (arrival, self.options.hold) {
            arrival.until = arrival.until.min(now + least);
        }
    }

    fn slice_end(&self) -> Duration {
        self.began + (self.waited * SHARE).min(LONGEST)
    }

    /// The number of the present slice, or else of the next one. A node that had none for long does not make up for that.
    pub(super) fn slice_number(&self, now: Duration) -> u32 {
        if self.slice_end() > now { self.slice } else { (self.slice + 1).max(self.seen.saturating_sub(1)) }
    }

    /// Another node asks for a page.
    pub(super) fn saw(&mut self, slice: u32) {
        self.seen = self.seen.max(slice);
    }

    /// Until when a page stays that another node wants; `None` if it may leave.
    pub(super) fn end(&self, page: Page, wanted: Turn, me: NodeId, env: &dyn Env) -> Option<Duration> {
        let now = env.now();
        let arrival = self.arrivals.iter().find(|arrival| arrival.page == page).map(|arrival| arrival.until);
        let fights = self.collects(now)
            && Turn { slice: self.slice, node: me } < wanted
            && self.was_lost_lately(page, now)
            && env.is_computing();
        arrival.filter(|until| *until >= now).max(fights.then(|| self.slice_end()))
    }

    /// Forgets what is over.
    pub(super) fn end_due(&mut self, now: Duration) {
        self.arrivals.retain(|arrival| arrival.until > now);
    }
}

/// A time in milliseconds, modulo 2^32.
fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis() % (1 << 32)).expect("it is less than 2^32")
}
