//! Pages that several nodes go on writing: their writers are not stopped, and their copies not given up.
//!
//! A page of which more than one node writes parts, between any two releases, costs two faults in each interval if the usual rules
//! apply: a release takes write access away, so that the next write is seen, and an acquire gives up the copy, so that the next
//! access fetches it. A page that has been written in two intervals in a row is therefore *kept*:
//!
//! - *At a release* the node compares the page with its twin while threads write it (Cashmere's *flush-update*, section 2.2 of the
//!   paper) and makes the twin what the diff says. A byte that changes during the comparison is in the diff and in the twin,
//!   or it still differs from the twin at the next release. The home keeps a twin as well, which tells whether there is
//!   something to send notices about; diffs that it receives go into page and twin. A copy that was taken between two releases
//!   can have a byte that the home has set back since: its node gets a notice in any case.
//! - *At an acquire* a page about which there is a notice is merged at once with the home's frame, where that can be read
//!   one-sided. Local writes stay: they differ from the twin. The node is a sharer again, as after a fetch. Where the frame
//!   cannot be read, the copy is given up as usual, and keeps its twin.
//! - A kept page that was not written over some releases in a row ([`CsmOptions::keep`](super::CsmOptions::keep)) is protected,
//!   compared once more, since a thread may have written it meanwhile, and is an ordinary page again.
//!
//! The monitor sees which line of a page a thread accesses when it faults. While a node is observed, all its kept pages are therefore
//! ordinary ones after one in [`CsmOptions::sample`](super::CsmOptions::sample) releases: their accesses are sampled. The
//! intervals differ: a program that releases a fixed number of times in each step of a loop would be sampled in one place of it only.
//!
//! A page with a diff under way is not merged: the home's frame may lack what the twin already has, which would pass
//! for a change of the home's. A release at a barrier therefore waits for the acknowledgements of such diffs even if only one peer
//! can learn of it: the node that comes last acquires at once.

use super::Csm;
use super::outbox::Notices;
use super::state::{PENDING, PageEntry, REWRITTEN, State, TWIN};
use crate::runs::{runs, span};
use crate::{Access, Env, Page, RemoteAccess};
use gondwana_topology::NodeSet;

/// What a release finds about a page that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// It has been written since the last release.
    Written,
    /// It has not, or only after this release had begun.
    Idle,
}

/// Whether a release is one of those, one in `sample` (at least 1), whose accesses the monitor samples.
///
/// The multiples of the golden ratio are spread evenly, and in no fixed period.
fn is_sampled(release: u32, sample: u32) -> bool {
    const GOLDEN_RATIO: u32 = 0x9e37_79b9;
    release.wrapping_mul(GOLDEN_RATIO) <= u32::MAX / sample
}

impl Csm {
    /// Finds out which of the dirty `pages` (ascending) go on being written over this release, and takes write access from the
    /// others whose diffs are about to be made, so that a later write is seen.
    pub(super) fn stop_writers(&mut self, pages: &[Page], env: &mut dyn Env) {
        let completed = self.flushes.completed();
        let keeps =
            self.options.keep > 0 && !(env.is_observed() && is_sampled(self.releases, self.options.sample));
        let mut kept = std::mem::take(&mut self.kept);
        let mut stopped = std::mem::take(&mut self.scratch.pages);
        let known = kept.len();
        for &page in pages {
            let entry = *self.pages.entry(page);
            let is_due = match entry.state {
                State::Dirty => entry.flush <= completed,
                State::HomeDirty => entry.has(TWIN),
                _ => false,
            };
            let before = kept[..known].binary_search_by_key(&page, |&(page, _)| page);
            let idle = match before {
                _ if !is_due => continue,
                _ if !keeps || !entry.is_kept() => None,
                _ if env.is_written(page) => Some(0),
                Ok(index) => Some(kept[index].1 + 1).filter(|&idle| idle < self.options.keep),
                Err(_) => None,
            };
            match (idle, before) {
                (Some(idle), Ok(index)) => kept[index].1 = idle,
                (Some(idle), Err(_)) => kept.push((page, idle)),
                // No thread reaches a page that is taken.
                (None, _) if self.is_taken(page) => (),
                (None, _) => stopped.push(page),
            }
        }
        kept.retain(|&(page, _)| self.pages.entry(page).is_kept() && stopped.binary_search(&page).is_err());
        kept.sort_unstable();
        for (first, count) in runs(&stopped) {
            env.protect(first, count, Access::Read);
        }
        stopped.clear();
        self.scratch.pages = stopped;
        self.kept = kept;
    }

    /// What a release that is being made finds about a page that threads go on writing; `None` if they do not go on: it is an
    /// ordinary page from now on.
    pub(super) fn going_on(&mut self, page: Page) -> Option<Kept> {
        let index = self.kept.binary_search_by_key(&page, |&(page, _)| page).ok()?;
        if !self.pages.entry(page).is_kept() {
            return None;
        }
        self.counters.kept += 1;
        Some(if self.kept[index].1 == 0 { Kept::Written } else { Kept::Idle })
    }

    /// A home's part of release `number` about a page that it has a twin of: one that is kept, or that others are updated of.
    /// `at_barrier`: it is one at which the other nodes release, too, so that what they wrote has come to be known.
    pub(super) fn release_at_home(
        &mut self,
        page: Page,
        number: u64,
        at_barrier: bool,
        notices: &mut Notices,
        env: &mut dyn Env,
    ) {
        let me = self.pages.me();
        let going_on = self.going_on(page);
        let begins = at_barrier && self.begins_updates(env);
        let (entry, directory) = self.pages.split(page);
        let known = directory.record(&mut entry.directory);
        let copied = std::mem::take(&mut known.copied);
        let wrote = std::mem::take(&mut known.wrote);
        let rewriters = if begins { wrote.intersection(&known.sharers) } else { NodeSet::EMPTY };
        let has_diff = !rewriters.is_empty() || self.can_update(page, env);
        let mut diff = std::mem::take(&mut self.scratch.bytes);
        let mut bytes = 0;
        let written = match going_on {
            Some(Kept::Written) if has_diff => {
                bytes = env.diff_and_keep(page, &mut diff);
                bytes > 0
            }
            Some(Kept::Written) => env.renew_twin(page),
            Some(Kept::Idle) => false,
            None if has_diff => {
                bytes = env.diff(page, &mut diff);
                bytes > 0
            }
            None => env.is_written(page),
        };
        let tells = written || copied;
        if tells {
            // What a reader copies itself is written once, an update four times: into and out of a message, into page and twin.
            let short = !self.options.one_sided || bytes <= self.pages.layout().page_size() / 2;
            let diff = if short { &diff[..] } else { &[] };
            if self.options.ordered && !diff.is_empty() {
                self.put_behind_kept(page, diff, env);
            }
            self.tell_of_own(page, number, (diff, copied, &rewriters), notices, env);
        }
        if written {
            let (entry, directory) = self.pages.split(page);
            directory.record(&mut entry.directory).history.wrote(me);
        }
        diff.clear();
        self.scratch.bytes = diff;
        if going_on.is_some() {
            return;
        }
        env.drop_twin(page);
        let unconfirmed = self.unconfirmed(page);
        let entry = *self.pages.entry(page);
        let alone = self.known(&entry).sharers.is_empty() && (tells || unconfirmed.is_empty());
        let entry = self.pages.entry(page);
        entry.take(TWIN);
        let was_kept = entry.take(REWRITTEN);
        if written && !was_kept {
            entry.set(REWRITTEN);
        }
        entry.state = if alone { State::HomeExclusive } else { State::HomeShared };
        if alone {
            self.counters.exclusive_entered += 1;
            if !self.is_taken(page) {
                env.protect(page, 1, Access::Write);
            }
        }
    }

    /// True if nodes that could read the memory of homes are updated nonetheless: where there are two. Among more, what is posted and
    /// what is sent would have to be brought into one order.
    fn begins_updates(&self, env: &dyn Env) -> bool {
        self.options.one_sided && self.pages.layout().only_peer().is_some() && self.may_update(env)
    }

    /// Tells of what the home has written of a page that it keeps. `diff` is that, if it is at hand and short; `copied` says that
    /// copies were taken beside the writers, which the diff does not fit. The `rewriters` have copies that they go on writing: a
    /// short diff is an update for them from now on.
    fn tell_of_own(
        &mut self,
        page: Page,
        number: u64,
        (diff, copied, rewriters): (&[u8], bool, &NodeSet),
        notices: &mut Notices,
        env: &mut dyn Env,
    ) {
        let origin = (self.pages.me(), number);
        if diff.is_empty() {
            self.tell(page, origin, &[], notices, env);
        } else if copied {
            self.tell(page, origin, &[], notices, env);
            // They fetch the page once more, as it is released.
            self.update_from_now_on(page, rewriters);
        } else {
            self.update_from_now_on(page, rewriters);
            self.tell(page, origin, diff, notices, env);
        }
    }

    fn update_from_now_on(&mut self, page: Page, nodes: &NodeSet) {
        let (entry, directory) = self.pages.split(page);
        let known = directory.record(&mut entry.directory);
        known.rereads = known.rereads.union(nodes);
    }

    /// The homes of pages are about to be decided: makes kept pages ordinary ones. What this home has written is released early,
    /// so that the home can move; the home of a copy learns of the next writes to it even if they change nothing.
    pub(super) fn end_kept(&mut self, first: Page, count: u32, env: &mut dyn Env) {
        if self.options.keep == 0 {
            return;
        }
        let mut here = Vec::new();
        for page in span(first, count) {
            let entry = self.pages.entry(page);
            if entry.has(TWIN) && matches!(entry.state, State::Dirty | State::HomeDirty) {
                entry.take(REWRITTEN);
                if entry.state == State::HomeDirty {
                    here.push(page);
                }
            }
        }
        if !here.is_empty() {
            self.flush_pages(&here, false, env);
        }
    }

    /// Brings copies up to date that threads go on writing and that there are notices about. What cannot be had without a
    /// message is left in `pages` (ascending).
    pub(super) fn update_kept(&mut self, pages: &mut Vec<Page>, env: &mut dyn Env) {
        if !self.options.one_sided || self.options.keep == 0 {
            return;
        }
        let mut updated = std::mem::take(&mut self.scratch.pages);
        for (first, count) in runs(pages) {
            let mut next = first.0;
            while next < first.0 + count {
                let done = self.update_run(Page(next), first.0 + count - next, env);
                updated.extend(span(Page(next), done));
                // The page behind those that were updated is left.
                next += done + 1;
            }
        }
        pages.retain(|page| updated.binary_search(page).is_err());
        updated.clear();
        self.scratch.pages = updated;
    }

    /// Updates pages from `first` on, at most `most`; returns how many.
    fn update_run(&mut self, first: Page, most: u32, env: &mut dyn Env) -> u32 {
        let (home, completed) = (self.pages.entry(first).probable_home, self.flushes.completed());
        let is_due = |entry: &PageEntry| {
            let due = entry.state == State::Dirty && entry.is_kept() && entry.has(PENDING);
            due && entry.probable_home == home && entry.flush <= completed
        };
        let most = self.pages.run(first, most, is_due);
        let count = if most == 0 { 0 } else { env.claim(home, first, most, RemoteAccess::Read) };
        for page in span(first, count) {
            env.merge_from(home, page);
            self.pages.entry(page).take(PENDING);
        }
        let updated = u64::from(count);
        self.counters.page_transfers += updated;
        self.counters.one_sided_reads += updated;
        self.counters.merges += updated;
        count
    }
}

#[cfg(test)]
mod tests {
    use super::is_sampled;

    #[test]
    fn one_in_so_many_releases_is_sampled_in_each_place_of_a_loop() {
        assert!((0..100).all(|release| is_sampled(release, 1)));
        for sample in [2, 4, 16, 60] {
            let sampled: Vec<u32> = (0..10_000).filter(|&release| is_sampled(release, sample)).collect();
            let expected = 10_000 / sample as usize;
            assert!(sampled.len().abs_diff(expected) <= expected / 20, "{sample}: {}", sampled.len());
            assert!(sampled.windows(2).all(|pair| pair[1] - pair[0] <= 3 * sample), "{sampled:?}");
            for steps in [2, 3, 4, 8, 16] {
                assert!(
                    (0..steps).all(|place| sampled.iter().any(|release| release % steps == place)),
                    "{sample} {steps}"
                );
            }
        }
    }
}
