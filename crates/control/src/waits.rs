//! What the threads of a node wait for, as the node tells the launcher.

use serde::{Deserialize, Serialize};

/// What a thread waits for. Only what another thread of the program does ends such a wait, but for [`Awaited::Page`] and
/// [`Awaited::Descriptor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Awaited {
    /// A mutex, by its address.
    Mutex = 1,
    /// A condition, by its address.
    Condition,
    /// A barrier, by its address.
    Barrier,
    /// A semaphore, by its address.
    Semaphore,
    /// A readers-writer lock, to read.
    ReadLock,
    /// A readers-writer lock, to write.
    WriteLock,
    /// The end of a thread, by its number in the run; 0: of all other threads.
    Join,
    /// What is done once, by its address.
    Once,
    /// A change of a word, by its address.
    Futex,
    /// A page of shared memory, by an address in it.
    Page,
    /// A call that another node makes on its descriptor of this number.
    Descriptor,
}

impl Awaited {
    /// All kinds, in the order of their numbers from 1.
    const ALL: [Self; 11] = [
        Self::Mutex,
        Self::Condition,
        Self::Barrier,
        Self::Semaphore,
        Self::ReadLock,
        Self::WriteLock,
        Self::Join,
        Self::Once,
        Self::Futex,
        Self::Page,
        Self::Descriptor,
    ];

    /// The kind with a number; `None` for others, such as 0.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number.checked_sub(1)?)).copied()
    }
}

/// A wait that a thread is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// For what.
    pub awaited: Awaited,
    /// Which one.
    pub object: u64,
    /// The wait ends by itself when a time is over.
    pub timed: bool,
}

/// A thread of the program on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingThread {
    /// Its number in the run, unique over all nodes.
    pub thread: u64,
    /// The kernel's number of it.
    pub task: u32,
    /// What it waits for, as far as the machines of the node know.
    pub wait: Option<Wait>,
    /// The barrier at which it has arrived last; 0: none so far.
    pub barrier: u64,
}

/// The threads of a node, and what they hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeWaits {
    /// The threads of the program on this node.
    pub threads: Vec<WaitingThread>,
    /// How many waits these threads have begun so far: if it stays the same, so have the waits.
    pub begun: u64,
    /// Something that is no thread of the program may end a wait: a handler of a signal, or a thread that a library has
    /// started by itself.
    pub others_may_act: bool,
    /// Mutexes that threads of this node hold, each with its holder.
    pub mutexes: Vec<(u64, u64)>,
    /// Readers-writer locks that threads of this node hold: of these threads the writer, or 0, and the readers.
    pub rwlocks: Vec<(u64, u64, Vec<u64>)>,
    /// Barriers at which threads of this node wait: address and the count of threads of an episode.
    pub barriers: Vec<(u64, u32)>,
    /// The part that the node's machines know is missing: they did not answer in time.
    pub incomplete: bool,
}

/// The number of a thread for people: 0 is the one that runs `main`.
#[must_use]
pub fn number_for_people(thread: u64) -> u32 {
    u32::try_from(thread & 0xffff_ffff).unwrap_or(0).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_known_by_their_numbers() {
        for (number, kind) in (1..).zip(Awaited::ALL) {
            assert_eq!(kind as u8, number);
            assert_eq!(Awaited::from_number(number), Some(kind));
        }
        let last = Awaited::Descriptor as u8;
        assert_eq!([0, last + 1, 255].map(Awaited::from_number), [None; 3]);
    }
}
