//! Faults of this node's threads and the pages that come in because of them.

use super::message::{CsmMessage, Grant};
use super::state::{GRANT_RACE, PENDING, PINNED, PageEntry, REFETCH, REWRITTEN, State, TWIN, WRITE};
use super::{Csm, History};
use crate::page_table::Flags;
use crate::runs::{count_of, leading, runs, span};
use crate::{Access, Env, Event, Outcome, Page, Violation, Waiter};
use gondwana_page::to_usize;
use gondwana_topology::NodeId;

/// How many windows of untouched pages a node asks for; see [`CsmOptions::window`](super::CsmOptions::window).
const UNTOUCHED_WINDOWS: u32 = 8;

/// How many pages with contents come in one answer: while a thread uses these, the next ones are on their way.
const IN_ANSWER: u32 = 32;

impl Csm {
    pub(super) fn take_fault(
        &mut self,
        page: Page,
        write: bool,
        ahead: u32,
        waiter: Waiter,
        env: &mut dyn Env,
    ) -> Outcome {
        if write {
            self.counters.write_faults += 1;
        } else {
            self.counters.read_faults += 1;
        }
        let ahead = ahead.saturating_add(1);
        if self.is_taken(page) {
            self.await_page(page, waiter);
            return Outcome::Wait;
        }
        self.withdraw(page, env);
        let state = self.pages.entry(page).state;
        match state {
            // Another thread of this node was faster.
            State::HomeExclusive | State::HomeDirty | State::Dirty => Outcome::Done,
            State::Common | State::HomeCommon => Outcome::Done,
            State::HomeLeaving | State::Gone => unreachable!("threads are kept from pages that leave"),
            State::HomeShared | State::Shared if !write => Outcome::Done,
            State::Untouched if self.place_first(page, ahead, env) => {
                self.await_page(page, waiter);
                self.request(page, ahead, write, env);
                Outcome::Wait
            }
            State::Untouched => {
                if !self.touch_common(page, self.pages.me(), env) {
                    self.touch_first(page, ahead, env);
                }
                Outcome::Done
            }
            State::HomeShared => {
                self.write_at_home(page, ahead, env);
                Outcome::Done
            }
            State::Shared => {
                if !self.take_home_of_copy(page, ahead, env) {
                    self.write_copy(page, ahead, env);
                }
                Outcome::Done
            }
            State::Invalid | State::StaleDirty if self.claim(page, ahead, write, env) => Outcome::Done,
            State::Invalid | State::StaleDirty => {
                self.await_page(page, waiter);
                self.request(page, ahead, write, env);
                Outcome::Wait
            }
            State::Deferred => {
                if write {
                    self.pages.entry(page).set(WRITE);
                }
                self.await_page(page, waiter);
                Outcome::Wait
            }
            // Whoever wants more than the answer allows faults again, without a message. A thread that is faster than the pages of a
            // long stream asks for the next ones here; a short one mostly ends where it was expected to.
            State::Fetching => {
                self.await_page(page, waiter);
                if ahead > IN_ANSWER {
                    self.request_behind(page, ahead, write, env);
                }
                Outcome::Wait
            }
        }
    }

    fn await_page(&mut self, page: Page, waiter: Waiter) {
        if !self.waiting.iter().any(|(awaited, _)| *awaited == page) {
            self.counters.awaited += 1;
        }
        self.waiting.push((page, waiter));
    }

    /// Makes use of untouched pages of which this node is to be home.
    pub(super) fn touch_first(&mut self, first: Page, most: u32, env: &mut dyn Env) {
        let like = *self.pages.entry(first);
        let count = self.pages.run(first, most, |entry| entry.is_alike(&like));
        for page in span(first, count) {
            self.pages.entry(page).state = State::HomeExclusive;
            self.withdrawn.push(page);
        }
        if self.options.one_sided {
            self.fresh.push((first, count));
        }
        self.counters.first_touches += u64::from(count);
        self.counters.exclusive_entered += u64::from(count);
        env.protect(first, count, Access::Write);
    }

    /// Writes to a page whose home this node is, and likewise to those after it that its threads may only read: at most `most`,
    /// and only as far as either all or none have been used by others.
    fn write_at_home(&mut self, page: Page, most: u32, env: &mut dyn Env) {
        let (me, keep, updates) = (self.pages.me(), self.options.keep > 0, self.may_update(env));
        if self.write_alone(page, most, env) {
            env.observe(Event::Upgraded, page, 1, me);
            return;
        }
        let mut pages = std::mem::take(&mut self.scratch.pages);
        self.find_shared(page, most, &mut pages, env);
        for &page in &pages {
            let unconfirmed = self.unconfirmed(page);
            let (entry, directory) = self.pages.split(page);
            let known = directory.record(&mut entry.directory);
            known.history.wrote(me);
            if known.sharers.is_empty() && unconfirmed.is_empty() {
                entry.state = State::HomeExclusive;
                self.counters.exclusive_entered += 1;
            } else {
                entry.state = State::HomeDirty;
                if keep && entry.has(REWRITTEN) || updates && !known.rereads.is_empty() {
                    entry.set(TWIN);
                    // Who is still copying may copy what is written from now on.
                    known.copied |= !known.claimed.is_empty();
                    env.make_twin(page);
                    self.counters.twins += 1;
                }
                self.dirty.push(page);
            }
        }
        for (first, count) in runs(&pages) {
            env.protect(first, count, Access::Write);
            env.observe(Event::Upgraded, first, count, me);
        }
        pages.clear();
        self.scratch.pages = pages;
    }

    /// Adds those of `most` pages from `first` on that this node's threads may only read because others have used them; they
    /// are closed then. Ends where the home is another node, or nobody else has used a page, or threads must wait for it.
    fn find_shared(&mut self, first: Page, most: u32, pages: &mut Vec<Page>, env: &mut dyn Env) {
        for page in span(first, self.pages.layout().clip(first, most)) {
            if matches!(self.pages.entry(page).state, State::HomeExclusive | State::HomeShared) {
                self.withdraw(page, env);
            }
            let entry = *self.pages.entry(page);
            match entry.state {
                State::HomeShared if !self.is_unused(&entry) && !self.is_taken(page) => pages.push(page),
                State::HomeExclusive | State::HomeDirty => (),
                _ => return,
            }
        }
    }

    /// Lets threads write pages from `first` on, at most `most`, as far as they may only read them although nobody else has used
    /// them. False if there are none.
    pub(super) fn write_alone(&mut self, first: Page, most: u32, env: &mut dyn Env) -> bool {
        let alone = self.count_unused(first, most, env);
        if alone == 0 {
            return false;
        }
        for page in span(first, alone) {
            self.pages.entry(page).state = State::HomeExclusive;
        }
        self.fresh.push((first, alone));
        env.protect(first, alone, Access::Write);
        true
    }

    /// How many pages from `first` on, at most `most`, this node may only read although nobody else has used them. They are
    /// closed then.
    fn count_unused(&mut self, first: Page, most: u32, env: &mut dyn Env) -> u32 {
        let most = self.pages.layout().clip(first, most);
        leading(first, most, |page| {
            let entry = *self.pages.entry(page);
            let exposed = entry.state == State::HomeShared && self.is_unused(&entry);
            exposed && {
                self.withdraw(page, env);
                let entry = *self.pages.entry(page);
                self.is_unused(&entry)
            }
        })
    }

    fn write_copy(&mut self, first: Page, most: u32, env: &mut dyn Env) {
        let count = self.pages.run(first, most, |entry| entry.state == State::Shared);
        let count = leading(first, count, |page| !self.is_taken(page));
        self.twin(first, count, env);
        env.protect(first, count, Access::Write);
        // Whether the others will be written as well is not known.
        let home = self.pages.entry(first).probable_home;
        env.observe(Event::Upgraded, first, 1, home);
    }

    /// Makes copies that nobody here may write yet `Dirty`; their protection is the caller's business.
    fn twin(&mut self, first: Page, count: u32, env: &mut dyn Env) {
        for page in span(first, count) {
            env.make_twin(page);
            let entry = self.pages.entry(page);
            entry.state = State::Dirty;
            entry.set(TWIN);
            self.dirty.push(page);
        }
        self.counters.twins += u64::from(count);
    }

    /// Asks for pages that nobody waits for, except for those that are here and those that would have to wait for
    /// something themselves.
    pub(super) fn fetch_early(&mut self, first: Page, count: u32, write: bool, env: &mut dyn Env) {
        let completed = self.flushes.completed();
        for page in span(first, count) {
            let due = self.pages.entry(page).is_due(completed);
            if due && !self.claim(page, first.0 + count - page.0, write, env) {
                // Those that go with it are no longer invalid when their turn comes.
                self.request(page, first.0 + count - page.0, write, env);
            }
        }
    }

    /// Asks for an unusable page and for those after it that are in the same situation, at most `most` in all; or
    /// notes that it must be asked for when its last diff is acknowledged.
    pub(super) fn request(&mut self, first: Page, most: u32, write: bool, env: &mut dyn Env) {
        let completed = self.flushes.completed();
        let entry = self.pages.entry(first);
        if entry.flush > completed {
            entry.state = State::Deferred;
            if write {
                entry.set(WRITE);
            }
            self.deferred.push(first);
            self.counters.fetches_deferred += 1;
            return;
        }
        let (home, merge) = (entry.probable_home, entry.has(TWIN));
        let sweeps = self.sweeps(first);
        let most = if sweeps { self.options.window * UNTOUCHED_WINDOWS } else { most };
        let count = self.fetched_with(first, most, home);
        for page in span(first, count) {
            let entry = self.pages.entry(page);
            entry.state = State::Fetching;
            // What the notice was about is in force at the home by now.
            entry.take(PENDING);
            entry.take(REFETCH);
            entry.take(WRITE);
            if write {
                entry.set(WRITE);
            }
        }
        env.observe(Event::Asked, first, count, home);
        let in_answer = if sweeps { count } else { IN_ANSWER };
        for asked in (0..count).step_by(to_usize(in_answer.into())) {
            self.counters.fetches += 1;
            let message = CsmMessage::Fetch {
                first: Page(first.0 + asked),
                count: in_answer.min(count - asked),
                write: write && !merge,
                requester: self.pages.me(),
                completed,
            };
            self.send(home, &message, &[], env);
        }
    }

    /// Asks for the pages behind those that have been asked for from `first` on, as far as they are in the same situation; up to
    /// `most` in all.
    fn request_behind(&mut self, first: Page, most: u32, write: bool, env: &mut dyn Env) {
        let home = self.pages.entry(first).probable_home;
        let is_like = |entry: &PageEntry| entry.state == State::Fetching && entry.probable_home == home;
        let asked = self.pages.run(first, most, is_like);
        let next = Page(first.0 + asked);
        if asked < self.pages.layout().clip(first, most) {
            let entry = self.pages.get(next);
            if entry.probable_home == home && entry.is_due(self.flushes.completed()) {
                self.request(next, most - asked, write, env);
            }
        }
    }

    /// True if a whole window of pages before `first` has its home here, and what was asked for last had been touched by nobody:
    /// then this node is probably the first to touch those that follow, too.
    fn sweeps(&self, first: Page) -> bool {
        let window = self.options.window;
        let is_home = |page| self.pages.get(page).state.is_home();
        self.found_untouched && first.0 >= window && span(Page(first.0 - window), window).all(is_home)
    }

    /// How many pages from the unusable page `first` on, at most `most`, can be fetched from `home` together with it.
    pub(super) fn fetched_with(&mut self, first: Page, most: u32, home: NodeId) -> u32 {
        let completed = self.flushes.completed();
        let is_due = |entry: &PageEntry| entry.probable_home == home && entry.is_due(completed);
        1 + self.pages.run(Page(first.0 + 1), most - 1, is_due)
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of the message")]
    pub(super) fn take_pages(
        &mut self,
        from: NodeId,
        first: Page,
        asked: u32,
        served: u32,
        grant: Grant,
        bulk: &[u8],
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        const NAME: &str = "Pages";
        self.pages.check_node(NAME, from)?;
        self.pages.check(first, asked)?;
        let sized = self.pages.layout().are_contents(bulk, served);
        let fits = match &grant {
            Grant::Copy => sized,
            Grant::Home(histories) => sized && histories.len() == served as usize,
            Grant::Untouched | Grant::Placed | Grant::Raced | Grant::Common => bulk.is_empty(),
        };
        if !fits || served == 0 || served > asked {
            return Err(Violation::Contents { message: NAME });
        }
        if grant == Grant::Raced {
            env.observe(Event::Answered, first, served, from);
        } else {
            env.observe(Event::Arrived { bytes: bulk.len() as u64 }, first, served, from);
        }
        if self.options.ordered && !bulk.is_empty() {
            // What comes may be newer than copies.
            self.invalidate_but((first, served), env);
        }
        let moves = !matches!(grant, Grant::Copy | Grant::Common);
        for page in span(first, asked) {
            let entry = *self.pages.entry(page);
            let races = grant == Grant::Raced && page.0 - first.0 < served;
            let awaited = entry.state == State::Fetching && !races && !(moves && entry.has(TWIN));
            let raced = entry.has(GRANT_RACE) && (races || page.0 - first.0 >= served);
            if !awaited && !raced {
                return Err(Violation::Unexpected { message: NAME, page });
            }
        }
        for page in span(Page(first.0 + served), asked - served) {
            let entry = self.pages.entry(page);
            if entry.take(GRANT_RACE) {
                continue;
            }
            entry.state = if entry.has(TWIN) { State::StaleDirty } else { State::Invalid };
            entry.take(REFETCH);
        }
        self.found_untouched = matches!(grant, Grant::Untouched | Grant::Placed);
        match grant {
            Grant::Copy => self.take_copies(from, first, served, bulk, env),
            Grant::Home(histories) => {
                env.install(first, bulk, Access::Write);
                self.counters.page_transfers += u64::from(served);
                self.become_home(first, &histories, env);
            }
            Grant::Untouched | Grant::Placed => {
                self.become_manager(first, served, grant == Grant::Placed);
                self.touch_first(first, self.options.window, env);
            }
            Grant::Common => self.take_common(from, first, served, env),
            Grant::Raced => {
                for page in span(first, served) {
                    self.pages.entry(page).take(GRANT_RACE);
                }
            }
        }
        self.resume(first, asked, env);
        Ok(())
    }

    fn take_copies(&mut self, from: NodeId, first: Page, served: u32, bulk: &[u8], env: &mut dyn Env) {
        let size = self.pages.layout().page_size();
        let bytes = |page: Page, count: u32| {
            let start = (page.0 - first.0) as usize * size;
            &bulk[start..start + count as usize * size]
        };
        let end = first.0 + served;
        let mut page = first;
        while page.0 < end {
            let like = *self.pages.entry(page);
            let mut count = 1;
            self.pages.entry(page).probable_home = from;
            if like.has(REFETCH) {
                self.counters.refetches += 1;
                env.observe(Event::Overtaken, page, 1, from);
                self.request(page, 1, like.has(WRITE), env);
            } else if like.has(TWIN) {
                env.merge(page, bytes(page, 1));
                self.pages.entry(page).state = State::Dirty;
                env.protect(page, 1, Access::Write);
                self.counters.merges += 1;
                self.counters.page_transfers += 1;
            } else {
                count = self.pages.run(page, end - page.0, |entry| {
                    (entry.flags.0 ^ like.flags.0) & !(PENDING | REWRITTEN) == 0
                });
                env.install(page, bytes(page, count), Access::Read);
                for page in span(page, count) {
                    let entry = self.pages.entry(page);
                    entry.probable_home = from;
                    entry.state = State::Shared;
                }
                self.counters.page_transfers += u64::from(count);
                self.admit(page, count, like.has(WRITE), env);
            }
            page.0 += count;
        }
    }

    /// Makes this node answer for pages that nobody has touched, as their home to be if they are `placed` here.
    fn become_manager(&mut self, first: Page, count: u32, placed: bool) {
        let me = self.pages.me();
        for page in span(first, count) {
            let entry = self.pages.entry(page);
            entry.flags = Flags(if placed { PINNED } else { 0 });
            entry.state = State::Untouched;
            entry.probable_home = me;
        }
    }

    /// Lets the threads of this node use copies that have just come, to `write` them or to read them.
    pub(super) fn admit(&mut self, first: Page, count: u32, write: bool, env: &mut dyn Env) {
        if write {
            self.twin(first, count, env);
            env.protect(first, count, Access::Write);
        } else {
            env.protect(first, count, Access::Read);
        }
    }

    /// Makes this node the home of one page for each history; the frames hold the contents already.
    pub(super) fn become_home(&mut self, first: Page, histories: &[History], env: &mut dyn Env) {
        let count = count_of(histories);
        let me = self.pages.me();
        for (page, &history) in span(first, count).zip(histories) {
            let (entry, directory) = self.pages.split(page);
            if entry.has(TWIN) {
                env.drop_twin(page);
            }
            entry.flags = Flags::default();
            entry.state = State::HomeExclusive;
            if history.is_pinned() {
                entry.set(PINNED);
                entry.probable_home = me;
            }
            let history = history.pinned(false);
            if history != History::default() {
                directory.record(&mut entry.directory).history = history;
                self.counters.home_moves += 1;
            }
        }
        self.withdrawn.extend(span(first, count));
        self.counters.exclusive_entered += u64::from(count);
        env.protect(first, count, Access::Write);
    }
}
