//! The state of one barrier on one node: who waits, what was gathered, and what was reported to the parent.

use super::gathering::Gathering;
use super::reported::Reported;
use crate::Waiter;
use gondwana_topology::NodeId;
use std::collections::VecDeque;

/// One barrier on one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Barrier {
    pub root: NodeId,
    /// How many threads make an episode, as far as this node has heard.
    pub count: u32,
    pub gathering: Gathering,
    /// What the parent was told of.
    pub sent: Reported,
    /// The parent expects so many together.
    pub expected: u32,
    /// Threads of this node, first come first.
    pub waiting: VecDeque<Waiter>,
    /// How many of them the flush that is under way covers.
    pub flushing: u32,
    /// The parent has permitted so many to go on as soon as they are reported; 0: none.
    pub permit: u32,
    /// What a child has been permitted.
    pub permitted: Option<Permitted>,
}

/// The part of an episode that a child was permitted before it reported it. It is gathered like what was reported: what
/// arrives later belongs to later episodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Permitted {
    pub child: NodeId,
    /// How many threads make the episode.
    pub count: u32,
    /// How many are the child's.
    pub threads: u32,
    /// How many of them are not yet reported.
    pub missing: u32,
    /// The child was told to keep back nothing: it uses the permit before it hears that, or declines it then.
    pub hurried: bool,
    /// The child has reported something else since, and will decline.
    pub declined: bool,
}

impl Barrier {
    pub(super) fn new(root: NodeId) -> Self {
        Self {
            root,
            count: 0,
            gathering: Gathering::default(),
            sent: Reported::default(),
            expected: 0,
            waiting: VecDeque::new(),
            flushing: 0,
            permit: 0,
            permitted: None,
        }
    }

    /// True if no thread waits here and no arrival is kept.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.gathering.received() == 0
    }

    /// Arrivals bring the count along. Another one belongs to a new barrier at the same address, of which nothing
    /// is agreed with the parent. True if there was a permit, which is void now.
    pub(super) fn note_count(&mut self, count: u32) -> bool {
        let changes = self.count != count;
        if changes {
            self.count = count;
            self.expected = 0;
        }
        changes && std::mem::take(&mut self.permit) > 0
    }

    /// Permits a child to go on, if an episode needs nothing but what it may keep back.
    pub(super) fn permit(&mut self, child: NodeId) -> Option<Permitted> {
        let (received, threads) = (self.gathering.received(), self.gathering.expected_from(child));
        let lacks = threads > 0 && self.gathering.received_from(child) == 0;
        if received == 0 || !lacks || received + threads != self.count {
            return None;
        }
        self.gathering.receive(child, threads);
        self.permitted = Some(Permitted {
            child,
            count: self.count,
            threads,
            missing: threads,
            hurried: false,
            declined: false,
        });
        self.permitted
    }

    /// A child has reported arrivals: how many of them are not the rest of what it was permitted.
    pub(super) fn settle(&mut self, child: NodeId, count: u32, threads: u32) -> u32 {
        let permitted =
            self.permitted.as_mut().filter(|permitted| permitted.child == child && !permitted.declined);
        let Some(permitted) = permitted else { return threads };
        if permitted.count != count {
            permitted.declined = permitted.missing > 0;
            return threads;
        }
        let settled = threads.min(permitted.missing);
        permitted.missing -= settled;
        threads - settled
    }

    /// True if enough threads of this node have come for a flush, which then begins.
    pub(super) fn begin_flush(&mut self, me: NodeId) -> bool {
        let waiting = u32::try_from(self.waiting.len()).expect("a process has fewer threads");
        let passed = self.gathering.received_from(me);
        let kept = waiting - passed - self.flushing;
        if self.flushing > 0 || kept == 0 || passed + kept < self.gathering.expected_from(me) {
            return false;
        }
        self.flushing = kept;
        true
    }

    pub(super) fn end_flush(&mut self, me: NodeId) {
        let threads = std::mem::take(&mut self.flushing);
        self.gathering.receive(me, threads);
    }
}
