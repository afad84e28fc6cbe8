//! Common pages: pages that all nodes use in one place, which the hardware keeps coherent. `sc/common.rs` says when that is better than
//! copies.
//!
//! With [`CommonAfter::Touch`], a page is common as soon as a node touches it, with the untouched pages around it, of which its manager
//! tells all others. There is nothing to move.
//!
//! Of other pages, the home counts how often it had to tell nodes with copies that a page has changed, and how often the home has
//! moved; not the first move and its consequence, by which pages come from the node that has initialised them to the one that uses them.
//! When that is
//! [`StartOptions::common_after`](crate::StartOptions::common_after), it posts a notice to whoever still has a copy, moves the page to the
//! common memory, and answers each later request with leave to use it there. A common page stays common.
//!
//! # Why nothing is lost
//!
//! - *Copies.* Nobody tells of what is written to a common page. Whoever has a copy has a notice about it, posted before the page moved, so
//!   that its next acquire gives the copy up. What is written later, it may see only after that. A page about which notices are on
//!   their way as messages does not become common.
//! - *Diffs.* A node that has written its copy sends a diff to the home as ever, which applies it to the common page: those bytes nobody
//!   else has written since, because they are not released. If the node asks for the page before it has released, it applies the diff
//!   itself, before its threads use the common page.
//! - *Own writes.* A page is asked for when its diff is acknowledged, and an answer that was overtaken by a diff is thrown away, as
//!   those with copies are.
//!
//! Writes reach other nodes before they are released, which only programs with data races can tell.
//!
//! A page that the stack of one of the home's threads is on does not become common any more. Where a policy has decided the home of a page
//! of this node, no more of its pages become common.

use super::Csm;
use super::message::{CsmMessage, Grant};
use super::state::{GRANT_RACE, ONLY_CLAIMED, PINNED, REFETCH, REWRITTEN, State, TWIN, WRITE};
use crate::page_table::Flags;
use crate::registry::TOUCHED_TOGETHER;
use crate::runs::{runs, span};
use crate::{Access, CommonAfter, Env, Event, Page, Violation};
use gondwana_topology::{NodeId, NodeSet};

/// All nodes are told of so many pages that become common together. Of fewer, they hear when they ask.
const WORTH_TELLING: usize = 8;

/// Most runs of pages that one message names.
const MOST_RUNS: usize = 1024;

impl Csm {
    /// Makes pages common that nobody has touched, around one that `toucher` is about to touch. False if that one is left as it is.
    pub(super) fn touch_common(&mut self, page: Page, toucher: NodeId, env: &mut dyn Env) -> bool {
        let like = *self.pages.entry(page);
        if self.options.common_after != Some(CommonAfter::Touch)
            || like.has(PINNED)
            || !env.can_be_common(page)
        {
            return false;
        }
        let (first, count) = self.pages.around(page, TOUCHED_TOGETHER, |entry| entry.is_alike(&like));
        for page in span(first, count) {
            self.pages.entry(page).state = State::HomeCommon;
        }
        self.counters.became_common += u64::from(count);
        let goes_on = page == first && toucher == self.pages.me();
        env.touch_common(first, count, if goes_on { first.before() } else { None });
        for node in self.pages.layout().others().iter() {
            self.send(node, &CsmMessage::Touched { first, count }, &[], env);
        }
        true
    }

    /// Other nodes have just been told that a page of this home has changed; `awaited` of them by messages.
    pub(super) fn count_told_of(&mut self, page: Page, awaited: &NodeSet, env: &mut dyn Env) {
        if self.options.common_after.is_none() {
            return;
        }
        let contested = self.is_contested(page);
        let unconfirmed = self.unconfirmed(page);
        let (entry, directory) = self.pages.split(page);
        let known = directory.record(&mut entry.directory);
        known.told = known.told.saturating_add(1);
        let sharers = known.sharers;
        let told = awaited.is_empty() && unconfirmed.is_empty();
        if !contested || !told || env.is_stack(page) || !env.can_be_common(page) {
            return;
        }
        if !self.post_notices(page, self.pages.me(), sharers, env).is_empty() {
            return;
        }
        let (entry, directory) = self.pages.split(page);
        directory.record(&mut entry.directory).sharers = NodeSet::EMPTY;
        self.contested.push(page);
    }

    /// True if a page of this home may become common when others are told of a change.
    pub(super) fn is_contested(&self, page: Page) -> bool {
        let entry = self.pages.get(page);
        let known = self.known(&entry);
        // What one node has initialised for another moves once, and the first one is told once.
        let moves = known.history.moves();
        let usual = if moves > 0 { 2 } else { 0 };
        let times = known.told.saturating_add(1).saturating_add(moves).saturating_sub(usual);
        self.options.common_after.is_some_and(|after| times >= after.times().get())
            && self.options.one_sided
            && !entry.has(PINNED | GRANT_RACE)
    }

    /// Moves the pages that were found to be contested during this call.
    pub(super) fn move_contested(&mut self, env: &mut dyn Env) {
        if self.contested.is_empty() {
            return;
        }
        let mut pages = std::mem::take(&mut self.contested);
        pages.sort_unstable();
        pages.dedup();
        pages.retain(|&page| {
            matches!(
                self.pages.entry(page).state,
                State::HomeExclusive | State::HomeShared | State::HomeDirty
            )
        });
        for &page in &pages {
            let exclusive = self.is_exclusive(page);
            let (entry, directory) = self.pages.split(page);
            if entry.has(TWIN) {
                env.drop_twin(page);
            }
            entry.flags.0 &= !(TWIN | REWRITTEN | ONLY_CLAIMED);
            entry.state = State::HomeCommon;
            directory.take(&mut entry.directory);
            if exclusive {
                self.counters.exclusive_left += 1;
                env.observe(Event::Shared, page, 1, self.pages.me());
            }
        }
        for (first, count) in runs(&pages) {
            env.make_common(first, count);
        }
        self.counters.became_common += pages.len() as u64;
        if pages.len() >= WORTH_TELLING {
            let runs: Vec<_> = runs(&pages).collect();
            for part in runs.chunks(MOST_RUNS) {
                for node in self.pages.layout().others().iter() {
                    self.send(node, &CsmMessage::Common { runs: part.to_vec() }, &[], env);
                }
            }
        }
        pages.clear();
        self.contested = pages;
    }

    /// True if a request for a page of this home was answered because it is common.
    pub(super) fn serve_common(
        &mut self,
        first: Page,
        count: u32,
        write: bool,
        requester: NodeId,
        env: &mut dyn Env,
    ) -> bool {
        if self.pages.entry(first).state != State::HomeCommon {
            return false;
        }
        let served = self.pages.run(first, count, |entry| entry.state == State::HomeCommon);
        let message = CsmMessage::Pages { first, asked: count, served, grant: Grant::Common };
        env.observe(Event::Served { write }, first, served, requester);
        self.send(requester, &message, &[], env);
        true
    }

    /// Pages that this node has asked for are common.
    pub(super) fn take_common(&mut self, from: NodeId, first: Page, count: u32, env: &mut dyn Env) {
        let mut next = first;
        while next.0 < first.0 + count {
            let like = *self.pages.entry(next);
            let mut alike = 1;
            if like.has(REFETCH) {
                // The home may not have what this node has written last.
                self.counters.refetches += 1;
                env.observe(Event::Overtaken, next, 1, from);
                self.request(next, 1, like.has(WRITE), env);
            } else if like.has(TWIN) {
                let mut diff = std::mem::take(&mut self.scratch.bytes);
                let written = env.diff(next, &mut diff) > 0;
                env.drop_twin(next);
                if written {
                    env.map_common_with(next, &diff);
                } else {
                    env.map_common(next, 1);
                }
                diff.clear();
                self.scratch.bytes = diff;
                self.use_common(from, next, 1);
            } else {
                alike = self
                    .pages
                    .run(next, first.0 + count - next.0, |entry| !entry.has(REFETCH) && !entry.has(TWIN));
                env.map_common(next, alike);
                self.use_common(from, next, alike);
            }
            next.0 += alike;
        }
    }

    /// Other pages are common, of which this node may have copies unless they were `untouched`. Those that it has written, or asked for, it
    /// comes to know later.
    pub(super) fn take_commons(
        &mut self,
        home: NodeId,
        told: &[(Page, u32)],
        untouched: bool,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        const NAME: &str = "Common";
        self.pages.check_node(NAME, home)?;
        told.iter().try_for_each(|&(first, count)| self.pages.check(first, count))?;
        if !told.is_sorted_by(|a, b| a.0.0 + a.1 < b.0.0) {
            return Err(Violation::Contents { message: NAME });
        }
        let completed = self.flushes.completed();
        // What this node has asked for, its answer brings.
        let goes_on = |first: &Page| self.pages.get(*first).state == State::Fetching;
        let from = told.first().map(|run| run.0).filter(goes_on).and_then(Page::before);
        let mut pages: Vec<Page> = told.iter().flat_map(|&(first, count)| span(first, count)).collect();
        for &page in &pages {
            // The home may have come for the page by itself.
            self.withdraw(page, env);
        }
        pages.retain(|&page| {
            let entry = self.pages.entry(page);
            matches!(entry.state, State::Invalid | State::Shared) && entry.flush <= completed
        });
        let copies: Vec<Page> =
            pages.iter().copied().filter(|&page| self.pages.get(page).state == State::Shared).collect();
        for (first, count) in runs(&copies) {
            env.protect(first, count, Access::None);
            env.observe(Event::Invalidated, first, count, home);
        }
        self.counters.invalidations += copies.len() as u64;
        for (first, count) in runs(&pages) {
            if untouched {
                env.touch_common(first, count, from);
            } else {
                env.map_common(first, count);
            }
            self.use_common(home, first, count);
        }
        Ok(())
    }

    /// Threads of this node use these pages where they are common.
    fn use_common(&mut self, home: NodeId, first: Page, count: u32) {
        for page in span(first, count) {
            let entry = self.pages.entry(page);
            entry.flags = Flags::default();
            entry.state = State::Common;
            entry.probable_home = home;
        }
        self.counters.became_common += u64::from(count);
    }
}
