//! This machine as part of another one, which sends its messages: what a node writes elsewhere must be released before a page that it has
//! written leaves it.

use super::message::ScMessage;
use super::state::ScState;
use super::{Sc, ScOptions};
use crate::{Access, Env, Layout, Page};
use gondwana_topology::NodeId;

/// A message that waits to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Letter {
    pub to: NodeId,
    pub message: ScMessage,
    /// The pages whose contents go with it. They stay as they are until the message has arrived: nobody here may write them.
    pub pages: Option<(Page, u32)>,
}

/// What a call wants to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Outgoing {
    pub letters: Vec<Letter>,
    /// This node could write some of the pages until now.
    pub written: bool,
}

impl Outgoing {
    pub(super) fn add(&mut self, to: NodeId, message: &ScMessage, pages: Option<(Page, u32)>) {
        self.letters.push(Letter { to, message: message.clone(), pages });
    }
}

impl Sc {
    /// A machine for pages that are handed to it ([`Sc::take_over`]), and that sends nothing itself.
    pub(crate) fn as_part(layout: Layout, options: ScOptions) -> Self {
        Self { outgoing: Some(Outgoing::default()), ..Self::new(layout, options) }
    }

    /// What is to be sent since the last call of this.
    pub(crate) fn take_outgoing(&mut self) -> Outgoing {
        self.outgoing.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Gives back a list for reuse.
    pub(crate) fn reuse(&mut self, mut letters: Vec<Letter>) {
        letters.clear();
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.letters = letters;
        }
    }

    /// The page, with its contents, is at `owner` alone; this machine sees to it from now on.
    pub(crate) fn take_over(&mut self, page: Page, owner: NodeId, env: &mut dyn Env) {
        let me = self.pages.me();
        let entry = self.pages.entry(page);
        if entry.is_manager(me) {
            entry.owner = owner;
        }
        if owner == me {
            entry.state = ScState::Write;
            self.counters.exclusive_entered += 1;
            env.protect(page, 1, Access::Write);
        }
    }
}
