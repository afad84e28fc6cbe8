//! One-sided reads: copying a page from its home's memory without a message (Cashmere's remote operations, for reads).
//!
//! Where nodes can reach each other's memory, a home *exposes* its pages while its machine is not working on them. A node
//! that lacks a page *claims* it in the page's remote-access word, and copies. The home finds the claims when it next
//! *withdraws* the page, which it does before anything else that it does about the page. It then counts the readers among
//! the sharers, as if each had sent a `Fetch`.
//!
//! If the home's threads write the page without noting it, the claiming node takes their write access away, which interrupts
//! them, or leaves it to them and logs the read for the home. The home compares logged pages when it releases: readers must get
//! a notice about what its threads have written since. If a reader's copy equals the page, nothing has been written, and the
//! home takes write access away; otherwise its threads keep it, because they will probably write again.
//!
//! A one-sided read is as good as a `Fetch` that the home answers at the moment of the claim:
//!
//! - The frame has all that was in force at the home by then. The home finds a claim together with any later diff, so that
//!   it sends the reader a notice; contents that are newer than the claim do no harm.
//! - A copy that equals the page lacks no write. The home compares when the page can no longer be written, so that a node that
//!   is still copying gets the same contents.
//! - The reader's machine does nothing else between claim and copy, so that every notice meets the copy that it is about.
//! - Pages that are granted, given or touched for the first time are withdrawn: a node that finds them so sends a message.
//!   So does a node that will write a page whose home may well move to it.
//!
//! A page that only its home has used goes to the first node that will write it ([`History`](super::History)). That node
//! makes itself the home: it takes the write access, copies, and counts the former home among the sharers. The former home
//! learns of it when it next withdraws the page, and has an ordinary copy from then on. Until then it sends nothing about the
//! page, since nothing asks it to: every request makes it withdraw the page first. A node that has read a page and then
//! writes it does the same if it is the only one in the reader bitmap: the home has not worked on the page since, so that the
//! copy equals the page.
//!
//! The page stays locked until its new home has copied it. Contents newer than the claim do no harm in a reader's copy, which
//! the next notice ends; here they would. What the former home's threads write after the claim reaches the new home as a diff
//! against the page as it was then. A byte that changes and gets back its value is in no diff: had the new home copied it in
//! between, it would keep the wrong value.

use super::state::{
    DirectoryEntry, GRANT_RACE, ONLY_CLAIMED, PENDING, PINNED, PageEntry, REFETCH, State, TWIN, WRITE,
};
use super::{Csm, History};
use crate::page_table::Flags;
use crate::runs::{count_of, runs, span};
use crate::{Access, Claims, Env, Event, Exposure, Page, RemoteAccess, Writers};
use gondwana_topology::{NodeId, NodeSet};

impl Csm {
    /// Withdraws a page until the end of this call, and acts on its claims: the nodes that have read it are sharers
    /// from now on, and it may have another home. Does nothing if the page's home was elsewhere.
    pub(super) fn withdraw(&mut self, page: Page, env: &mut dyn Env) {
        let state = self.pages.entry(page).state;
        if !self.options.one_sided || !state.is_home() || state == State::Untouched {
            return;
        }
        let Claims { readers, home, beside_writers } = env.withdraw(page);
        if let Some(home) = home {
            self.leave_home(page, home);
            self.pages.entry(page).state = State::Shared;
            env.observe(Event::Left { exclusive: true, written: true }, page, 1, home);
            return;
        }
        self.withdrawn.push(page);
        if readers.is_empty() {
            return;
        }
        let exclusive = self.is_exclusive(page);
        let (entry, directory) = self.pages.split(page);
        let has_twin = entry.has(TWIN);
        let known = directory.record(&mut entry.directory);
        known.sharers = known.sharers.union(&readers);
        known.notified = known.notified.difference(&readers);
        known.claimed = known.claimed.union(&readers);
        known.copied |= has_twin;
        if exclusive {
            entry.state = State::HomeShared;
            if beside_writers {
                entry.state = State::HomeDirty;
                entry.set(ONLY_CLAIMED);
                self.dirty.push(page);
            }
            self.counters.exclusive_left += 1;
            self.shared.extend(readers.iter().map(|node| (node, page)));
        }
    }

    /// Closes the pages that others have copied although this node's threads write them, because these writes are about to be
    /// released: they are dirty.
    pub(super) fn find_copied(&mut self, env: &mut dyn Env) {
        let mut pages = std::mem::take(&mut self.scratch.pages);
        env.copied_beside_writers(&mut pages);
        for page in pages.drain(..) {
            if self.pages.layout().holds(page, 1) {
                self.withdraw(page, env);
            }
        }
        self.scratch.pages = pages;
    }

    /// Finds out which of the dirty `pages` nobody has written since they were copied: those are shared, and their writers
    /// stopped.
    pub(super) fn stop_idle_writers(&mut self, pages: &[Page], env: &mut dyn Env) {
        let mut idle = std::mem::take(&mut self.scratch.pages);
        for &page in pages {
            if self.pages.entry(page).has(ONLY_CLAIMED) {
                self.withdraw(page, env);
                if self.has_current_copies(page, env) {
                    idle.push(page);
                }
            }
        }
        for (first, count) in runs(&idle) {
            env.protect(first, count, Access::Read);
        }
        for page in idle.drain(..) {
            self.share_or_go_on(page, env);
        }
        self.scratch.pages = idle;
    }

    /// The home of a page that was copied one-sided may move to one that writes it: finds out whether anybody here has written
    /// it since, whose writes would have to be released first.
    pub(super) fn settle_copied(&mut self, page: Page, env: &mut dyn Env) {
        if self.pages.entry(page).has(ONLY_CLAIMED) {
            env.protect(page, 1, Access::Read);
            self.share_or_go_on(page, env);
            self.pages.entry(page).take(ONLY_CLAIMED);
        }
    }

    /// Nobody can write this page now that was copied one-sided: shares it if all copies are like it. Otherwise its writers go on.
    fn share_or_go_on(&mut self, page: Page, env: &mut dyn Env) {
        if self.are_current(page, env) {
            let entry = self.pages.entry(page);
            entry.state = State::HomeShared;
            entry.take(ONLY_CLAIMED);
        } else {
            env.protect(page, 1, Access::Write);
        }
    }

    /// True of a page that was copied one-sided only, if all copies are like it.
    fn has_current_copies(&mut self, page: Page, env: &mut dyn Env) -> bool {
        let entry = *self.pages.entry(page);
        let known = self.known(&entry);
        entry.state == State::HomeDirty
            && entry.has(ONLY_CLAIMED)
            && known.unconfirmed(&self.completed).is_empty()
            && self.are_current(page, env)
    }

    /// True if the copies of all sharers are like the page.
    fn are_current(&mut self, page: Page, env: &mut dyn Env) -> bool {
        let entry = *self.pages.entry(page);
        self.known(&entry).sharers.iter().all(|sharer| env.is_current(sharer, page))
    }

    /// Ends a call: moves contested pages, and opens the pages that were closed, or came here, during this call.
    pub(super) fn end_call(&mut self, env: &mut dyn Env) {
        self.move_contested(env);
        if self.withdrawn.is_empty() {
            return;
        }
        let mut withdrawn = std::mem::take(&mut self.withdrawn);
        if self.options.one_sided {
            withdrawn.sort_unstable();
            withdrawn.dedup();
            for &page in &withdrawn {
                let entry = *self.pages.entry(page);
                if !self.known(&entry).rereads.is_empty() {
                    continue;
                }
                let writers = match entry.state {
                    // Who writes its copy changes it, so that comparing it would not tell what was written here.
                    State::HomeExclusive if !self.known(&entry).history.is_written_at_home() => {
                        Writers::ToBeStopped
                    }
                    State::HomeExclusive => Writers::Compared,
                    State::HomeShared | State::HomeDirty => Writers::Noted,
                    _ => continue,
                };
                let to_writers = self
                    .open_to_writers(&entry)
                    .filter(|&way| way != RemoteAccess::Home || !env.is_stack(page));
                env.expose(page, Exposure { writers, to_writers });
            }
        }
        withdrawn.clear();
        self.withdrawn = withdrawn;
        self.report_shared(env);
    }

    /// Tells of the pages that others were found to have come for during this call, those of each together.
    fn report_shared(&mut self, env: &mut dyn Env) {
        self.shared.sort_unstable();
        for run in self.shared.chunk_by(|one, next| (one.0, one.1.0 + 1) == (next.0, next.1.0)) {
            env.observe(Event::Shared, run[0].1, count_of(run), run[0].0);
        }
        self.shared.clear();
    }

    /// Takes write access from pages that only this node has used, all at once. Otherwise each reader would have to, for
    /// the pages that it comes for, and would interrupt every processor of this node each time.
    pub(super) fn stop_first_writers(&mut self, env: &mut dyn Env) {
        let mut pages = std::mem::take(&mut self.scratch.pages);
        // Its room is kept: faults add to it.
        let mut fresh = std::mem::take(&mut self.fresh);
        for (first, count) in fresh.drain(..) {
            for page in span(first, count) {
                self.withdraw(page, env);
                let entry = *self.pages.entry(page);
                let exposable =
                    self.open_to_writers(&entry) == Some(RemoteAccess::Home) && !env.is_stack(page);
                if exposable && entry.state == State::HomeExclusive {
                    self.pages.entry(page).state = State::HomeShared;
                    pages.push(page);
                }
            }
        }
        self.fresh = fresh;
        pages.sort_unstable();
        for (first, count) in runs(&pages) {
            env.protect(first, count, Access::Read);
        }
        pages.clear();
        self.scratch.pages = pages;
    }

    /// What nodes that will write a page may come for without asking.
    fn open_to_writers(&self, entry: &PageEntry) -> Option<RemoteAccess> {
        if entry.has(PINNED) {
            return (entry.probable_home == self.pages.me()).then_some(RemoteAccess::Write);
        }
        if !self.options.migrate || self.known(entry).history.is_settled() {
            return Some(RemoteAccess::Write);
        }
        (self.is_unused(entry) && !entry.has(GRANT_RACE)).then_some(RemoteAccess::Home)
    }

    /// True of a page whose home is here and that nobody else has ever used.
    pub(super) fn is_unused(&self, entry: &PageEntry) -> bool {
        let clean = matches!(entry.state, State::HomeExclusive | State::HomeShared);
        clean && self.known(entry) == DirectoryEntry::default()
    }

    /// True if nobody else uses the page, whether or not this node's threads may write it at the moment.
    pub(super) fn is_exclusive(&self, page: Page) -> bool {
        let entry = self.pages.get(page);
        entry.state == State::HomeExclusive || self.is_unused(&entry)
    }

    /// Brings an unusable page, and those after it that are in the same situation, at most `most` in all, from the memory
    /// of their home. False if that is not possible: then somebody has to be asked.
    pub(super) fn claim(&mut self, first: Page, most: u32, write: bool, env: &mut dyn Env) -> bool {
        let entry = *self.pages.entry(first);
        let (home, merges) = (entry.probable_home, entry.has(TWIN));
        if !self.options.one_sided || entry.flush > self.flushes.completed() {
            return false;
        }
        let most = self.fetched_with(first, most, home);
        // Where there are unflushed writes, the home would not move in any case.
        let write = write && !merges;
        let ways = if write { &[RemoteAccess::Home, RemoteAccess::Write][..] } else { &[RemoteAccess::Read] };
        let found =
            ways.iter().map(|&way| (way, env.claim(home, first, most, way))).find(|&(_, count)| count > 0);
        let Some((way, count)) = found else { return false };
        self.counters.page_transfers += u64::from(count);
        self.counters.one_sided_reads += u64::from(count);
        if way == RemoteAccess::Home {
            env.install_from(home, first, count, Access::Write);
            env.complete_claim(home, first, count);
            self.take_home(first, count, home, env);
            return true;
        }
        for page in span(first, count) {
            let entry = self.pages.entry(page);
            entry.take(PENDING | REFETCH | WRITE);
            entry.state = State::Shared;
        }
        let (mut copied, mut copies) = (first, count);
        if merges {
            env.merge_from(home, first);
            self.pages.entry(first).state = State::Dirty;
            env.protect(first, 1, Access::Write);
            self.counters.merges += 1;
            (copied, copies) = (Page(first.0 + 1), count - 1);
        }
        if copies > 0 {
            env.install_from(home, copied, copies, Access::Read);
            self.admit(copied, copies, write, env);
        }
        true
    }

    /// Makes this node, which writes a copy, the home of that page and of those after it that are in the same situation, at
    /// most `most` in all. False if their home is not to be had without a message.
    pub(super) fn take_home_of_copy(&mut self, first: Page, most: u32, env: &mut dyn Env) -> bool {
        if !self.options.one_sided {
            return false;
        }
        let (home, completed) = (self.pages.entry(first).probable_home, self.flushes.completed());
        // A diff under way must still meet the home that it was sent to.
        let is_due = |entry: &PageEntry| {
            entry.state == State::Shared && entry.probable_home == home && entry.flush <= completed
        };
        let most = self.pages.run(first, most, is_due);
        let count = if most == 0 { 0 } else { env.claim(home, first, most, RemoteAccess::Upgrade) };
        if count > 0 {
            // Whether the others will be written as well is not known.
            env.observe(Event::Upgraded, first, 1, home);
            self.take_home(first, count, home, env);
        }
        count > 0
    }

    /// Makes this node the home of pages that are about to be written, and of which the former home keeps copies.
    fn take_home(&mut self, first: Page, count: u32, former: NodeId, env: &mut dyn Env) {
        for page in span(first, count) {
            let (entry, directory) = self.pages.split(page);
            entry.flags = Flags::default();
            entry.state = State::HomeDirty;
            let known = directory.record(&mut entry.directory);
            known.history = History::default().moved();
            known.sharers = NodeSet::only(former);
            self.dirty.push(page);
            self.withdrawn.push(page);
        }
        self.counters.home_moves += u64::from(count);
        env.protect(first, count, Access::Write);
    }
}
