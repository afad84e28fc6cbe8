//! Which pages this node asks for: those that threads wait for, and with them those that they will probably touch next.

use super::Sc;
use super::message::ScMessage;
use super::state::{ASKED, GIVE, NOBODY, PINNED, Request, ScState};
use crate::runs::{leading, span};
use crate::{Access, Env, Event, Page};

/// How many pages come back together, those of one aligned block.
const AROUND: u32 = 16;

impl Sc {
    /// Asks for a page and up to `most - 1` pages behind it that are like it. Returns how many those are in all.
    pub(super) fn ask(&mut self, first: Page, most: u32, write: bool, env: &mut dyn Env) -> u32 {
        self.give_first(first, most, env);
        let manager = self.manager(first);
        let me = self.pages.me();
        let like = *self.pages.entry(first);
        if manager == me && like.owner == NOBODY {
            return self.touch_common(first, me, env).unwrap_or_else(|| self.touch_first(first, most, env));
        }
        let asked = 1 + self.pages.run(Page(first.0 + 1), most - 1, |entry| {
            entry.manager == like.manager
                && (entry.state == ScState::None) == (like.state == ScState::None)
                && !matches!(entry.state, ScState::Write | ScState::Common)
                && (manager != me || entry.owner != NOBODY)
                && !entry.has(ASKED | GIVE)
        });
        for page in span(first, asked) {
            self.pages.entry(page).set(ASKED);
        }
        let slice = self.holds.slice_number(env.now());
        if manager == me {
            self.enqueue(first, Request { requester: me, slice, write, asked, kept: false }, env);
        } else {
            self.counters.fetches += 1;
            env.observe(Event::Asked, first, asked, manager);
            let message = ScMessage::Request { first, count: asked, write, requester: me, slice };
            self.send(manager, &message, env);
        }
        asked
    }

    /// Asks for those of the pages of which this node has what is `wanted`.
    pub(super) fn ask_ahead(
        &mut self,
        first: Page,
        count: u32,
        write: bool,
        wanted: impl Fn(ScState) -> bool,
        env: &mut dyn Env,
    ) {
        let end = first.0 + self.pages.layout().clip(first, count);
        let mut next = first;
        while next.0 < end {
            let entry = self.pages.get(next);
            let asks = wanted(entry.state) && !entry.has(ASKED);
            next.0 += if asks { self.ask(next, end - next.0, write, env) } else { 1 };
        }
    }

    /// In a slice in which many pages have come back, asks for those around one, too: most of what this node has lost, it uses.
    pub(super) fn ask_around(&mut self, page: Page, env: &mut dyn Env) {
        let now = env.now();
        if !self.holds.collects(now) || !self.holds.was_lost_lately(page, now) {
            return;
        }
        let first = Page(page.0 - page.0 % AROUND);
        let end = first.0 + self.pages.layout().clip(first, AROUND);
        let mut next = first;
        while next.0 < end {
            let write = self.holds.was_written(next);
            let lost = leading(next, end - next.0, |page| {
                let entry = self.pages.get(page);
                entry.state == ScState::None
                    && !entry.has(ASKED)
                    && self.holds.was_lost_lately(page, now)
                    && self.holds.was_written(page) == write
            });
            next.0 += if lost == 0 { 1 } else { self.ask(next, lost, write, env) };
        }
    }

    /// Makes this node owner of the page and of those behind it that are like it; returns how many those are in all.
    fn touch_first(&mut self, first: Page, most: u32, env: &mut dyn Env) -> u32 {
        let count = self.untouched(first, most);
        for page in span(first, count) {
            self.own(page);
        }
        self.counters.first_touches += u64::from(count);
        self.counters.exclusive_entered += u64::from(count);
        env.protect(first, count, Access::Write);
        count
    }

    /// How many pages from the untouched page `first` on, at most `most`, are like it.
    pub(super) fn untouched(&mut self, first: Page, most: u32) -> u32 {
        let (me, like) = (self.pages.me(), *self.pages.entry(first));
        self.pages.run(first, most, |entry| {
            entry.owner == NOBODY
                && entry.manager == me
                && (entry.flags.0 ^ like.flags.0) & (PINNED | GIVE) == 0
        })
    }
}
