//! How long pages stay that other nodes want.
//!
//! A page stays for a moment after a thread that waited for it goes on, so that the thread makes progress.
//!
//! Nodes that write the same pages at random take turns with all of them: see [`crate::slices`]. A node whose threads all wait for
//! something else than pages keeps nothing.

use super::ScOptions;
use crate::runs::span;
use crate::slices::{SliceRules, Slices, Turn};
use crate::{Env, Page};
use gondwana_topology::NodeId;
use std::hash::Hash;
use std::time::Duration;

/// But for the least, which is [`ScOptions::slice_pages`].
const RULES: SliceRules = SliceRules {
    share: 8,
    shortest: Duration::ZERO,
    longest: Duration::from_millis(100),
    soon: Duration::from_millis(500),
    least: 0,
    remembered: 1 << 13,
};

/// Each page that comes back without a wait counts as a quarter of one, but no more of a run than these: a run is one message.
const MOST_COUNTED: u32 = 16;

/// For how many times the least time a page is kept for a thread that was resumed and has not gone on.
const RESUMPTION: u32 = 250;

/// A page that came for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Arrival {
    page: Page,
    until: Duration,
}

/// What decides how long pages stay.
#[derive(Clone, Debug)]
pub(super) struct Holds {
    options: ScOptions,
    arrivals: Vec<Arrival>,
    slices: Slices,
}

impl Holds {
    pub(super) fn new(options: ScOptions) -> Self {
        let rules = SliceRules { least: options.slice_pages, ..RULES };
        Self { options, arrivals: Vec::new(), slices: Slices::new(rules) }
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
        self.slices.lost(page.0.into(), written, now);
    }

    /// True in a slice in which many pages have come back.
    pub(super) fn collects(&self, now: Duration) -> bool {
        self.slices.collects(now)
    }

    /// True if this node could write a page when it lost it.
    pub(super) fn was_written(&self, page: Page) -> bool {
        self.slices.was_written(page.0.into())
    }

    pub(super) fn was_lost_lately(&self, page: Page, now: Duration) -> bool {
        self.slices.was_lost_lately(page.0.into(), now)
    }

    /// A page comes for threads that have waited for it since `asked`, perhaps for one that kept it.
    pub(super) fn came(&mut self, page: Page, asked: Duration, kept: bool, now: Duration) {
        let Some(least) = self.options.hold else { return };
        self.slices.came(page.0.into(), now.saturating_sub(asked), kept, now);
        self.arrivals.retain(|arrival| arrival.until >= now && arrival.page != page);
        self.arrivals.push(Arrival { page, until: now + least * RESUMPTION });
    }

    /// Pages come together; `awaited`: a thread has waited for one of them.
    pub(super) fn came_along(&mut self, first: Page, count: u32, awaited: bool, now: Duration) {
        let back =
            span(first, count).map(|page| u32::from(self.slices.came_along(page.0.into(), now))).sum::<u32>();
        if !awaited {
            self.slices.lengthen(back.min(MOST_COUNTED));
        }
    }

    /// A thread that waited for a page goes on.
    pub(super) fn repeats(&mut self, page: Page, now: Duration) {
        let arrival = self.arrivals.iter_mut().find(|arrival| arrival.page == page);
        if let (Some(arrival), Some(least)) = (arrival, self.options.hold) {
            arrival.until = arrival.until.min(now + least);
        }
    }

    /// The slices of this node.
    pub(super) fn slices(&mut self) -> &mut Slices {
        &mut self.slices
    }

    /// The number of the present slice, or else of the next one.
    pub(super) fn slice_number(&self, now: Duration) -> u32 {
        self.slices.number(now)
    }

    /// Another node asks for a page.
    pub(super) fn saw(&mut self, slice: u32) {
        self.slices.saw(slice);
    }

    /// Until when a page stays that another node wants; `None` if it may leave.
    pub(super) fn end(&self, page: Page, wanted: Turn, me: NodeId, env: &dyn Env) -> Option<Duration> {
        let now = env.now();
        let arrival = self.arrivals.iter().find(|arrival| arrival.page == page).map(|arrival| arrival.until);
        let slice = self.slices.keeps(page.0.into(), wanted, me, now).filter(|_| env.is_computing());
        arrival.filter(|until| *until >= now).max(slice)
    }

    /// Forgets what is over.
    pub(super) fn end_due(&mut self, now: Duration) {
        self.arrivals.retain(|arrival| arrival.until > now);
    }
}
