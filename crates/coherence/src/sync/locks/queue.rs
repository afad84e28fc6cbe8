use crate::Waiter;
use crate::slices::Turn;
use crate::sync::entry::Word;
use crate::sync::{Object, Thread};
use gondwana_topology::NodeId;
#[cfg(test)]
use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Waiting {
    pub waiter: Waiter,
    pub thread: Thread,
    /// The number of a trylock.
    pub attempt: Option<u64>,
}

/// What is known of a mutex beyond its word. Kept only while something is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Queue {
    /// Threads of this node, first come first.
    pub waiting: VecDeque<Waiting>,
    /// The token was asked for and has not come.
    pub requested: bool,
    /// Where the token goes when this node is done with it.
    pub next: Option<Turn>,
    /// When the token was asked for.
    pub asked: Duration,
    /// Where the token goes as soon as the flush is complete, and whether the mutex then becomes common.
    pub leaving: Option<(NodeId, bool)>,
    /// Hand-overs within the node since `next` is waiting.
    pub handovers: u32,
    /// How often threads of this node may use the mutex before the token leaves, unless it must leave earlier.
    pub uses_left: u32,
    /// Until when the token stays for them; `None` until one of them is over.
    pub until: Option<Duration>,
    /// The token stays for a slice, or has stayed.
    pub sliced: bool,
    /// Nodes to be told when a thread of this node gets the mutex, each with its trylock.
    pub asking: Vec<(NodeId, u64)>,
}

impl Queue {
    /// True if the token is not to leave before a slice ends.
    pub(super) fn stays_for_slice(&self) -> bool {
        self.sliced && self.uses_left > 0
    }

    /// The word of a mutex that a thread of this node holds.
    pub(super) fn held(&self) -> Word {
        if self.waiting.is_empty() && self.next.is_none() { Word::Held } else { Word::HeldQueued }
    }

    /// The latest trylock that waits.
    pub(super) fn latest_attempt(&self) -> Option<u64> {
        self.waiting.iter().filter_map(|waiting| waiting.attempt).max()
    }

    /// Takes out the trylocks up to a number.
    pub(super) fn take_attempts(&mut self, latest: u64) -> Vec<Waiter> {
        let mut taken = Vec::new();
        self.waiting.retain(|waiting| {
            let takes = waiting.attempt.is_some_and(|attempt| attempt <= latest);
            if takes {
                taken.push(waiting.waiter);
            }
            !takes
        });
        taken
    }

    fn clear(&mut self) {
        let Self { waiting, requested, next, asked, leaving, handovers, uses_left, until, sliced, asking } =
            self;
        waiting.clear();
        asking.clear();
        (*requested, *next, *leaving, *handovers) = (false, None, None, 0);
        (*asked, *uses_left, *until, *sliced) = (Duration::ZERO, 0, None, false);
    }

    /// `to` is told when a thread of this node gets the mutex.
    pub(super) fn note_asking(&mut self, to: NodeId, attempt: u64) {
        match self.asking.iter_mut().find(|(node, _)| *node == to) {
            Some((_, latest)) => *latest = attempt.max(*latest),
            None => self.asking.push((to, attempt)),
        }
    }
}

/// The queues of this node. A queue comes and goes with each hand-over of a mutex, without allocation.
///
/// They are few at a time: of each thread of the run that waits there is one at most, and of each trylock whose token has not
/// come. So looking through them is cheaper than a map.
#[derive(Clone, Debug, Default)]
pub(super) struct Queues {
    /// Whose the first queues are.
    objects: Vec<Object>,
    /// The others are empty, kept for the next mutexes.
    queues: Vec<Queue>,
}

impl Queues {
    pub(super) fn get(&self, object: Object) -> Option<&Queue> {
        self.place(object).map(|place| &self.queues[place])
    }

    pub(super) fn get_mut(&mut self, object: Object) -> Option<&mut Queue> {
        self.place(object).map(|place| &mut self.queues[place])
    }

    /// The queue of an object, made if there was none.
    pub(super) fn of(&mut self, object: Object) -> &mut Queue {
        let place = self.place(object).unwrap_or_else(|| {
            self.objects.push(object);
            if self.queues.len() < self.objects.len() {
                self.queues.push(Queue::default());
            }
            self.objects.len() - 1
        });
        &mut self.queues[place]
    }

    /// Nothing is known of the mutex any more beyond its word.
    pub(super) fn forget(&mut self, object: Object) {
        if let Some(place) = self.place(object) {
            self.queues[place].clear();
            self.objects.swap_remove(place);
            self.queues.swap(place, self.objects.len());
        }
    }

    /// True if a thread of this node waits for a token.
    pub(super) fn any_requested(&self) -> bool {
        self.queues[..self.objects.len()].iter().any(|queue| queue.requested)
    }

    fn place(&self, object: Object) -> Option<usize> {
        self.objects.iter().position(|other| *other == object)
    }
}

#[cfg(test)]
impl Queues {
    /// All queues, in the order of the objects.
    pub(super) fn contents(&self) -> BTreeMap<Object, Queue> {
        self.objects.iter().copied().zip(self.queues.iter().cloned()).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}
