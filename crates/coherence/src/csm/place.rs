//! Homes that a policy decides.
//!
//! The manager of an untouched page keeps in `probable_home` where its home is to be. Whoever touches the page first, the manager
//! then *gives* it to that node ([`CsmMessage::Placed`]), ahead of any request that it passes on, so that the usual
//! chase along the probable homes finds the new home. Nothing is sent for pages that nobody touches.
//!
//! A node can be given a page that it is just asking for. It is home at once, and notes that an answer is yet to come
//! (`GRANT_RACE`): until then the home does not move on, and the answer changes nothing. It comes from whoever would pass the
//! request on to the requester itself.
//!
//! Pages that were used before, or that another node than the home has ever had (pages are brought ahead of their use), may
//! have copies, diffs and notices under way, so they are not given: the home notes the node (`PINNED`), and moves there as it
//! would to any node that writes, in place of what the page's past says.

use super::Csm;
use super::message::CsmMessage;
use super::state::{GRANT_RACE, PENDING, PINNED, PageEntry, State, TWIN};
use crate::page_table::Flags;
use crate::runs::{count_of, runs, span};
use crate::{Access, Env, Event, Page, Violation};
use gondwana_page::to_usize;
use gondwana_topology::NodeId;

/// Most pages that are given with their contents in one message.
const MOST_GIVEN: u32 = 64;

impl Csm {
    pub(super) fn place_pages(
        &mut self,
        first: Page,
        count: u32,
        home: Option<NodeId>,
        used: bool,
        env: &mut dyn Env,
    ) {
        let me = self.pages.me();
        if home.is_some() {
            // What is freed and allocated again could not go where a policy wants it.
            self.options.common_after = None;
        }
        self.end_kept(first, count, env);
        let mut given = Vec::new();
        let mut elsewhere: Vec<(NodeId, Page)> = Vec::new();
        for page in span(first, count) {
            self.withdraw(page, env);
            let entry = *self.pages.entry(page);
            if matches!(entry.state, State::HomeCommon | State::HomeLeaving | State::Gone) {
                continue;
            }
            if !entry.state.is_home() {
                elsewhere.push((entry.probable_home, page));
            } else if !used && home.is_some_and(|home| home != me && self.may_be_given(&entry, home)) {
                given.push(page);
            } else {
                let entry = self.pages.entry(page);
                entry.take(PINNED);
                entry.probable_home = home.unwrap_or(me);
                if home.is_some() {
                    entry.set(PINNED);
                }
            }
        }
        for list in elsewhere.chunk_by(|(a, p), (b, q)| a == b && p.0 + 1 == q.0) {
            let (to, first) = list[0];
            let message = CsmMessage::Place { first, count: count_of(list), home, used };
            self.send(to, &message, &[], env);
        }
        let Some(home) = home else { return };
        for (first, count) in runs(&given) {
            self.give(first, count, home, env);
        }
    }

    /// True if no other node has a copy of the page, or a diff of one that it had.
    fn may_be_given(&self, entry: &PageEntry, to: NodeId) -> bool {
        self.is_unused(entry) && !entry.has(GRANT_RACE) && self.is_in_order(to)
    }

    /// Makes another node home of pages that have contents and are only here.
    fn give(&mut self, first: Page, count: u32, home: NodeId, env: &mut dyn Env) {
        for page in span(first, count) {
            self.leave_home(page, home);
            self.pages.entry(page).flags = Flags::default();
        }
        env.protect(first, count, Access::None);
        env.observe(Event::Left { exclusive: true, written: false }, first, count, home);
        for start in (0..count).step_by(MOST_GIVEN as usize) {
            let (first, count) = (Page(first.0 + start), MOST_GIVEN.min(count - start));
            self.send_pages(home, &CsmMessage::Placed { first, count }, first, count, env);
        }
    }

    /// Untouched pages are being touched: makes the node home that is to be, if it is another one. False if there is
    /// none.
    pub(super) fn place_first(&mut self, first: Page, most: u32, env: &mut dyn Env) -> bool {
        let like = *self.pages.entry(first);
        if !like.has(PINNED) || like.probable_home == self.pages.me() {
            return false;
        }
        let count = self.pages.run(first, most, |entry| entry.is_alike(&like));
        for page in span(first, count) {
            let entry = self.pages.entry(page);
            entry.state = State::Invalid;
            entry.flags = Flags::default();
        }
        self.send(like.probable_home, &CsmMessage::Placed { first, count }, &[], env);
        true
    }

    /// Gives away what nobody has touched of these pages, ahead of the first touch.
    pub(super) fn give_untouched(&mut self, first: Page, count: u32, env: &mut dyn Env) {
        let end = first.0 + count;
        for page in span(first, count) {
            if self.pages.entry(page).state == State::Untouched {
                self.place_first(page, end - page.0, env);
            }
        }
    }

    /// The home of these pages is to be elsewhere; a former home passes the message on.
    pub(super) fn take_place(
        &mut self,
        first: Page,
        count: u32,
        home: Option<NodeId>,
        used: bool,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        const NAME: &str = "Place";
        self.pages.check(first, count)?;
        if let Some(home) = home.filter(|home| home.0 >= self.pages.layout().nodes()) {
            return Err(Violation::Node { message: NAME, node: home.0 });
        }
        for page in span(first, count) {
            let entry = *self.pages.entry(page);
            if !entry.state.is_home() && entry.state != State::Gone {
                self.pages.check_node(NAME, entry.probable_home)?;
            }
        }
        self.place_pages(first, count, home, used, env);
        Ok(())
    }

    /// This node is home from now on.
    pub(super) fn take_placed(
        &mut self,
        from: NodeId,
        first: Page,
        count: u32,
        bulk: &[u8],
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        const NAME: &str = "Placed";
        self.pages.check_node(NAME, from)?;
        self.pages.check(first, count)?;
        if !bulk.is_empty() && !self.pages.layout().are_contents(bulk, count) {
            return Err(Violation::Contents { message: NAME });
        }
        env.observe(Event::Given { bytes: bulk.len() as u64 }, first, count, from);
        if self.options.ordered && !bulk.is_empty() {
            self.invalidate(env);
        }
        let me = self.pages.me();
        for page in span(first, count) {
            let entry = self.pages.entry(page);
            // A one-sided read can overtake the request that made the sender give the page.
            let copied = entry.state == State::Shared && entry.has(PENDING);
            let fits = copied || matches!(entry.state, State::Invalid | State::Fetching | State::Gone);
            if !fits || entry.has(TWIN) {
                return Err(Violation::Unexpected { message: NAME, page });
            }
            if copied {
                env.protect(page, 1, Access::None);
            }
            let entry = self.pages.entry(page);
            entry.flags = Flags(PINNED | if entry.state == State::Fetching { GRANT_RACE } else { 0 });
            // This node was done with a page that leaves, and has it after all.
            let leaves = entry.state == State::Gone;
            entry.state = if leaves { State::HomeLeaving } else { State::HomeExclusive };
            entry.probable_home = me;
            self.withdrawn.push(page);
        }
        let (mut next, mut rest) = (first, bulk);
        while next.0 < first.0 + count {
            let state = self.pages.get(next).state;
            let alike = self.pages.run(next, first.0 + count - next.0, |entry| entry.state == state);
            let exclusive = state == State::HomeExclusive;
            let access = if exclusive { Access::Write } else { Access::None };
            if !rest.is_empty() {
                let (contents, behind) =
                    rest.split_at(to_usize(alike.into()) * self.pages.layout().page_size());
                env.install(next, contents, access);
                rest = behind;
            }
            env.protect(next, alike, access);
            self.counters.exclusive_entered += u64::from(if exclusive { alike } else { 0 });
            next.0 += alike;
        }
        if bulk.is_empty() {
            // Never touched anywhere, so this node's frames are zero as well.
            self.counters.first_touches += u64::from(count);
        } else {
            self.counters.page_transfers += u64::from(count);
        }
        self.resume(first, count, env);
        Ok(())
    }
}
