//! Common pages: pages that all nodes use in one place, which the hardware keeps coherent. `sc/common.rs` says when that is better than
//! copies.
//!
//! The home counts how often it had to tell nodes with copies that a page has changed, and how often the home has moved; not the first
//! move and its consequence, by which pages come from the node that has initialised them to the one that uses them. When that is [`StartOptions::common_after`](crate::StartOptions::common_after), it has all other nodes give the page up (`Retire`). Each of
//! them sends what it has written, as at a release, gives up its copy, and answers when the diff is acknowledged. Meanwhile the home
//! works as ever, but that the page does not move and that whoever asks for it waits. When all have answered, nobody else has
//! anything of the page, nor has anybody anything to tell about it: the home moves it to the common memory, and tells all that they can
//! use it there. A common page stays common.
//!
//! Writes reach other nodes before they are released then, which only programs with data races can tell.
//!
//! Pages whose home a policy decides do not become common, nor do the stacks of the home's threads.

use super::Csm;
use super::message::{CsmMessage, Grant};
use super::state::{GRANT_RACE, ONLY_CLAIMED, PENDING, PINNED, REFETCH, REWRITTEN, State, TWIN};
use crate::page_table::Flags;
use crate::runs::{runs, span};
use crate::{Access, Env, Event, Page, Violation};
use gondwana_topology::{NodeId, NodeSet};

/// Most pages that one message retires.
const MOST_RETIRED: usize = 1024;

/// Pages that other nodes are giving up, on their home.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Round {
    number: u32,
    pages: Vec<Page>,
    /// Those that have not answered.
    missing: NodeSet,
}

/// Pages that this node is giving up for their home.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Retired {
    home: NodeId,
    round: u32,
    pages: Vec<Page>,
}

/// A request that waits until its first page is common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct HeldFetch {
    first: Page,
    count: u32,
    write: bool,
    requester: NodeId,
}

/// What happens to pages that are about to become common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Commons {
    /// Pages of this home that are to become common; may list one twice. Empty between calls.
    contested: Vec<Page>,
    rounds: Vec<Round>,
    /// The number of the last one.
    last: u32,
    held: Vec<HeldFetch>,
    retired: Vec<Retired>,
}

impl Commons {
    /// True if nothing is under way.
    pub(super) fn is_quiet(&self) -> bool {
        self.rounds.is_empty() && self.held.is_empty() && self.retired.is_empty()
    }
}

impl Csm {
    /// Other nodes have just been told that a page of this home has changed.
    pub(super) fn count_told_of(&mut self, page: Page) {
        let Some(limit) = self.options.common_after else { return };
        let (entry, directory) = self.pages.split(page);
        let is_placed = entry.has(PINNED | GRANT_RACE);
        let known = directory.record(&mut entry.directory);
        known.told = known.told.saturating_add(1);
        // What one node has initialised for another moves once, and the first one is told once.
        let moves = known.history.moves();
        let usual = if moves > 0 { 2 } else { 0 };
        let contested = (known.told.saturating_add(moves)).saturating_sub(usual) >= limit.get();
        if contested && !is_placed && !known.retires {
            self.commons.contested.push(page);
        }
    }

    /// Has the other nodes give up the pages that were found to be contested during this call.
    pub(super) fn retire_contested(&mut self, env: &mut dyn Env) {
        if self.commons.contested.is_empty() {
            return;
        }
        let mut pages = std::mem::take(&mut self.commons.contested);
        pages.sort_unstable();
        pages.dedup();
        pages.retain(|&page| {
            self.withdraw(page, env);
            let is_home = matches!(
                self.pages.entry(page).state,
                State::HomeExclusive | State::HomeShared | State::HomeDirty
            );
            is_home && !env.is_stack(page) && env.can_be_common(page)
        });
        for &page in &pages {
            let (entry, directory) = self.pages.split(page);
            directory.record(&mut entry.directory).retires = true;
        }
        let missing = self.pages.layout().others();
        for pages in pages.chunks(MOST_RETIRED) {
            self.commons.last = self.commons.last.wrapping_add(1);
            let (round, pages) = (self.commons.last, pages.to_vec());
            for node in missing.iter() {
                self.send(node, &CsmMessage::Retire { round, pages: pages.clone() }, &[], env);
            }
            self.commons.rounds.push(Round { number: round, pages, missing: missing.clone() });
        }
        pages.clear();
        self.commons.contested = pages;
    }

    /// The home of these pages wants them for itself.
    pub(super) fn take_retire(
        &mut self,
        home: NodeId,
        round: u32,
        pages: Vec<Page>,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        const NAME: &str = "Retire";
        self.pages.check_node(NAME, home)?;
        if !pages.is_sorted_by(|a, b| a < b) {
            return Err(Violation::Contents { message: NAME });
        }
        let mut written = Vec::new();
        for &page in &pages {
            self.pages.check(page, 1)?;
            // The home may have come for the page by itself.
            self.withdraw(page, env);
            let entry = self.pages.entry(page);
            if entry.state.is_home() || entry.state == State::Common {
                return Err(Violation::Unexpected { message: NAME, page });
            }
            if entry.has(TWIN) {
                entry.take(REWRITTEN);
                written.push(page);
            }
            // A former home may have answered with a copy that is still on its way.
            if entry.state == State::Fetching {
                entry.set(REFETCH);
            }
        }
        if !written.is_empty() {
            self.flush_pages(&written, false, env);
        }
        self.commons.retired.push(Retired { home, round, pages });
        self.give_up_retired(env);
        Ok(())
    }

    /// Gives up the copies of pages that are to become common as soon as what was written to them has been sent, and answers when that is
    /// acknowledged.
    pub(super) fn give_up_retired(&mut self, env: &mut dyn Env) {
        let completed = self.flushes.completed();
        let mut retired = std::mem::take(&mut self.commons.retired);
        retired.retain(|Retired { home, round, pages }| {
            let mut copies = std::mem::take(&mut self.scratch.pages);
            let mut done = true;
            for &page in pages {
                let entry = self.pages.entry(page);
                if entry.state == State::Shared {
                    entry.state = State::Invalid;
                    entry.take(PENDING);
                    copies.push(page);
                }
                done &= !entry.has(TWIN) && entry.flush <= completed;
            }
            for (first, count) in runs(&copies) {
                env.protect(first, count, Access::None);
                env.observe(Event::Invalidated, first, count, *home);
            }
            self.counters.invalidations += copies.len() as u64;
            copies.clear();
            self.scratch.pages = copies;
            if done {
                self.send(*home, &CsmMessage::RetireAck { round: *round }, &[], env);
            }
            !done
        });
        self.commons.retired = retired;
    }

    pub(super) fn take_retire_ack(
        &mut self,
        from: NodeId,
        number: u32,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        const NAME: &str = "RetireAck";
        let rounds = &mut self.commons.rounds;
        let index = rounds.iter().position(|round| round.number == number);
        let removed = index.is_some_and(|index| rounds[index].missing.remove(from));
        let Some(index) = index.filter(|_| removed) else {
            return Err(Violation::Contents { message: NAME });
        };
        if rounds[index].missing.is_empty() {
            let pages = rounds.remove(index).pages;
            let pages = self.make_common(&pages, env);
            if !pages.is_empty() {
                for node in self.pages.layout().others().iter() {
                    self.send(node, &CsmMessage::Common { pages: pages.clone() }, &[], env);
                }
            }
            for HeldFetch { first, count, write, requester } in std::mem::take(&mut self.commons.held) {
                self.serve_fetch(first, count, write, requester, env)?;
            }
        }
        Ok(())
    }

    /// No other node has anything of these pages. Returns those that are common now.
    fn make_common(&mut self, pages: &[Page], env: &mut dyn Env) -> Vec<Page> {
        let mut moved = Vec::new();
        let me = self.pages.me();
        for &page in pages {
            self.withdraw(page, env);
            let exclusive = self.is_exclusive(page);
            let (entry, directory) = self.pages.split(page);
            let known = directory.record(&mut entry.directory);
            (known.retires, known.told) = (false, 0);
            // A policy has come in between.
            if entry.has(PINNED) {
                continue;
            }
            if entry.has(TWIN) {
                env.drop_twin(page);
            }
            entry.flags.0 &= !(TWIN | REWRITTEN | ONLY_CLAIMED);
            entry.state = State::HomeCommon;
            directory.take(&mut entry.directory);
            if exclusive {
                self.counters.exclusive_left += 1;
                env.observe(Event::Shared, page, 1, me);
            }
            moved.push(page);
        }
        for (first, count) in runs(&moved) {
            env.make_common(first, count);
        }
        self.counters.became_common += moved.len() as u64;
        moved
    }

    /// Pages that this node has given up are common.
    pub(super) fn take_commons(
        &mut self,
        home: NodeId,
        mut pages: Vec<Page>,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        const NAME: &str = "Common";
        if !pages.is_sorted_by(|a, b| a < b) {
            return Err(Violation::Contents { message: NAME });
        }
        for &page in &pages {
            self.pages.check(page, 1)?;
            if !matches!(self.pages.get(page).state, State::Invalid | State::Fetching) {
                return Err(Violation::Unexpected { message: NAME, page });
            }
        }
        // Those that this node has asked for come with the answer.
        pages.retain(|&page| self.pages.get(page).state == State::Invalid);
        for (first, count) in runs(&pages) {
            self.take_common(home, first, count, env);
        }
        Ok(())
    }

    /// True if a request for a page of this home, which is common or is about to be, has been answered or put off.
    pub(super) fn serve_common(
        &mut self,
        first: Page,
        count: u32,
        write: bool,
        requester: NodeId,
        env: &mut dyn Env,
    ) -> bool {
        if self.retires(first) {
            self.commons.held.push(HeldFetch { first, count, write, requester });
            return true;
        }
        if self.pages.entry(first).state != State::HomeCommon {
            return false;
        }
        let served = self.pages.run(first, count, |entry| entry.state == State::HomeCommon);
        let message = CsmMessage::Pages { first, asked: count, served, grant: Grant::Common };
        env.observe(Event::Served { write }, first, served, requester);
        self.send(requester, &message, &[], env);
        true
    }

    /// True if the other nodes are giving up this page of this home.
    pub(super) fn retires(&self, page: Page) -> bool {
        self.options.common_after.is_some() && self.known(&self.pages.get(page)).retires
    }

    /// Lets threads use common pages of which this node has nothing.
    pub(super) fn take_common(&mut self, from: NodeId, first: Page, count: u32, env: &mut dyn Env) {
        for page in span(first, count) {
            let entry = self.pages.entry(page);
            entry.flags = Flags::default();
            entry.state = State::Common;
            entry.probable_home = from;
        }
        env.map_common(first, count);
        self.counters.became_common += u64::from(count);
    }
}
