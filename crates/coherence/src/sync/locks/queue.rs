use crate::Waiter;
use crate::sync::entry::Word;
use crate::sync::object_map::ObjectMap;
use crate::sync::{Object, Thread};
use gondwana_topology::NodeId;
#[cfg(test)]
use std::collections::BTreeMap;
use std::collections::VecDeque;

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
    pub next: Option<NodeId>,
    /// Where the token goes as soon as the flush is complete.
    pub leaving: Option<NodeId>,
    /// Hand-overs within the node since `next` is waiting.
    pub handovers: u32,
    /// Nodes to be told when a thread of this node gets the mutex, each with its trylock.
    pub asking: Vec<(NodeId, u64)>,
}

impl Queue {
    /// The word of a mutex that a thread of this node holds.
    pub fn held(&self) -> Word {
        if self.waiting.is_empty() && self.next.is_none() { Word::Held } else { Word::HeldQueued }
    }

    /// The latest trylock that waits.
    pub fn latest_attempt(&self) -> Option<u64> {
        self.waiting.iter().filter_map(|waiting| waiting.attempt).max()
    }

    /// Takes out the trylocks up to a number.
    pub fn take_attempts(&mut self, latest: u64) -> Vec<Waiter> {
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
        let Self { waiting, requested, next, leaving, handovers, asking } = self;
        waiting.clear();
        asking.clear();
        (*requested, *next, *leaving, *handovers) = (false, None, None, 0);
    }

    /// `to` is told when a thread of this node gets the mutex.
    pub fn note_asking(&mut self, to: NodeId, attempt: u64) {
        match self.asking.iter_mut().find(|(node, _)| *node == to) {
            Some((_, latest)) => *latest = attempt.max(*latest),
            None => self.asking.push((to, attempt)),
        }
    }
}

/// How many queues that are out of use are kept for the next mutexes.
const SPARE: usize = 64;

/// The queues of this node. A queue comes and goes with each hand-over of a mutex, without allocation.
#[derive(Clone, Debug, Default)]
pub(super) struct Queues {
    queues: ObjectMap<Queue>,
    /// Empty ones.
    spare: Vec<Queue>,
}

impl Queues {
    pub fn get(&self, object: Object) -> Option<&Queue> {
        self.queues.get(&object)
    }

    pub fn get_mut(&mut self, object: Object) -> Option<&mut Queue> {
        self.queues.get_mut(&object)
    }

    /// The queue of an object, made if there was none.
    pub fn of(&mut self, object: Object) -> &mut Queue {
        self.queues.entry(object).or_insert_with(|| self.spare.pop().unwrap_or_default())
    }

    /// Nothing is known of the mutex any more beyond its word.
    pub fn forget(&mut self, object: Object) {
        if let Some(mut queue) = self.queues.remove(&object)
            && self.spare.len() < SPARE
        {
            queue.clear();
            self.spare.push(queue);
        }
    }
}

#[cfg(test)]
impl Queues {
    /// All queues, in the order of the objects.
    pub fn contents(&self) -> BTreeMap<Object, Queue> {
        self.queues.iter().map(|(object, queue)| (*object, queue.clone())).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }
}
