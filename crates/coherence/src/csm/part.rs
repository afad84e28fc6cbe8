//! This machine as part of another one (`c11`): what that must know of releases, and pages that leave this machine, because another part
//! is to see to them. The whole keeps threads from the page meanwhile.
//!
//! A node is done with a page that leaves when it has no copy, has released what it has written there, and no answer about it is on its way. Its home
//! stays where it is from then on, with the page's contents, and serves those that are not done yet.

use super::outbox::{DiffBatches, Notices};
use super::state::{GRANT_RACE, ONLY_CLAIMED, REWRITTEN, State, TWIN};
use super::{Csm, CsmOptions, Scratch};
use crate::message::{Encoder, Part};
use crate::{Access, Env, Event, Layout, Page, SyncPoint};

/// What a node still has of a page that is about to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// Something is under way, or is to be released.
    UnderWay,
    /// Nothing.
    Gone,
    /// The page itself: this node is its home.
    Home,
}

impl Csm {
    /// A machine that is part of another one.
    pub(crate) fn as_part(layout: Layout, options: CsmOptions, part: Part) -> Self {
        let encoder = Encoder::of_part(part);
        let scratch = Scratch {
            batches: DiffBatches::encoded_by(encoder.clone()),
            notices: Notices::encoded_by(encoder.clone()),
            ..Scratch::default()
        };
        Self { encoder, scratch, ..Self::new(layout, options) }
    }

    /// [`Protocol::release`](crate::Protocol::release) for the machine of which this one is part: the number that
    /// [`Csm::completed`] reaches when it is complete; `None` if it is.
    pub(crate) fn begin_release(&mut self, at: SyncPoint, env: &mut dyn Env) -> Option<u64> {
        let flush = self.begin_flush(at, env);
        self.end_call(env);
        flush
    }

    /// The pages that a release would look at, and perhaps others.
    pub(crate) fn dirty(&self) -> impl Iterator<Item = Page> {
        self.dirty.iter().copied()
    }

    /// The number of the last flush that is complete, as are all before it.
    pub(crate) fn completed(&self) -> u64 {
        self.flushes.completed()
    }

    /// Takes the page from this node's threads, as far as that is possible now; to be called again after whatever happens, until
    /// nothing is under way. What the node has written there leaves with its next release; a home tells the sharers at once.
    pub(crate) fn leave(&mut self, page: Page, env: &mut dyn Env) -> Leaving {
        self.withdraw(page, env);
        let entry = self.pages.entry(page);
        if entry.state == State::HomeDirty {
            // Nodes that have not been asked to leave it yet use their copies until they acquire.
            entry.take(REWRITTEN);
            if self.options.ordered {
                self.write_without_twin(page, env);
            }
            self.flush_pages(&[page], false, env);
        }
        let completed = self.flushes.completed();
        let (me, exclusive) = (self.pages.me(), self.is_exclusive(page));
        let entry = self.pages.entry(page);
        match entry.state {
            State::Untouched | State::HomeExclusive | State::HomeShared | State::HomeDirty => {
                if entry.has(TWIN) {
                    env.drop_twin(page);
                }
                entry.flags.0 &= !(TWIN | REWRITTEN | ONLY_CLAIMED);
                entry.state = State::HomeLeaving;
                if exclusive {
                    self.counters.exclusive_left += 1;
                    env.observe(Event::Shared, page, 1, me);
                }
                env.protect(page, 1, Access::None);
            }
            State::Dirty => {
                entry.take(REWRITTEN);
                entry.state = State::StaleDirty;
                env.protect(page, 1, Access::None);
                self.apply_hidden(page, env);
            }
            State::Shared => {
                entry.state = State::Invalid;
                env.protect(page, 1, Access::None);
                self.apply_hidden(page, env);
            }
            _ => (),
        }
        let entry = self.pages.entry(page);
        let leaving = match entry.state {
            State::HomeLeaving if !entry.has(GRANT_RACE) => Leaving::Home,
            State::Invalid if entry.flush <= completed => {
                entry.state = State::Gone;
                Leaving::Gone
            }
            State::Gone => Leaving::Gone,
            _ => Leaving::UnderWay,
        };
        self.end_call(env);
        leaving
    }

    /// All nodes are done with the page, and what they have written there is released. At its home, the contents stay where they are.
    pub(crate) fn gone(&mut self, page: Page, env: &mut dyn Env) {
        self.apply_hidden(page, env);
        self.pages.forget(page);
        self.pages.entry(page).state = State::Gone;
    }
}
