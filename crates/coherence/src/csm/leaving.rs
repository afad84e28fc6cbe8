//! Pages that leave this machine, because another one of the same node is to see to them: both are parts of a third one, which keeps
//! threads from the page meanwhile (`c11`).
//!
//! A node is done with the page when it has no copy, has released what it has written there, and no answer about it is on its way. Its home
//! stays where it is from then on, with the page's contents, and serves those that are not done yet.

use super::Csm;
use super::state::{GRANT_RACE, ONLY_CLAIMED, REWRITTEN, State, TWIN};
use crate::{Access, Env, Page};

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
    /// Takes the page from this node's threads, as far as that is possible now; to be called again after whatever happens, until
    /// nothing is under way. What the node has written there leaves with its next release.
    pub(crate) fn leave(&mut self, page: Page, env: &mut dyn Env) -> Leaving {
        self.withdraw(page, env);
        let completed = self.flushes.completed();
        let exclusive = self.is_exclusive(page);
        let entry = self.pages.entry(page);
        match entry.state {
            State::Untouched | State::HomeExclusive | State::HomeShared | State::HomeDirty => {
                if entry.has(TWIN) {
                    env.drop_twin(page);
                }
                entry.flags.0 &= !(TWIN | REWRITTEN | ONLY_CLAIMED);
                self.counters.exclusive_left += u64::from(exclusive);
                entry.state = State::HomeLeaving;
                env.protect(page, 1, Access::None);
            }
            State::Dirty => {
                entry.take(REWRITTEN);
                entry.state = State::StaleDirty;
                env.protect(page, 1, Access::None);
            }
            State::Shared => {
                entry.state = State::Invalid;
                env.protect(page, 1, Access::None);
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

    /// All nodes are done with the page. At its home, the contents stay where they are.
    pub(crate) fn gone(&mut self, page: Page) {
        self.pages.forget(page);
        self.pages.entry(page).state = State::Gone;
    }
}
