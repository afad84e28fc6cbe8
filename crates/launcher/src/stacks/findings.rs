//! Who waits for whom, from what the nodes of a run have told of their threads.

use gondwana_control::{Awaited, NodeWaits, Wait, WaitingThread, number_for_people};
use std::collections::{BTreeMap, BTreeSet};

/// The threads of all nodes.
#[derive(Clone, Copy, Debug)]
pub struct Waits<'a>(pub &'a BTreeMap<u16, NodeWaits>);

impl<'a> Waits<'a> {
    /// All threads of the program, each with its node.
    pub fn threads(self) -> impl Iterator<Item = (u16, &'a WaitingThread)> {
        self.0.iter().flat_map(|(node, waits)| waits.threads.iter().map(move |thread| (*node, thread)))
    }

    /// The node of a thread, if that is known.
    pub fn node_of(self, thread: u64) -> Option<u16> {
        self.threads().find(|(_, known)| known.thread == thread).map(|(node, _)| node)
    }

    /// The threads one of which, or each of which, has to act before a wait can end.
    pub fn awaited(self, thread: u64, wait: &Wait) -> Vec<u64> {
        match wait.awaited {
            Awaited::Mutex => {
                let held = self.0.values().flat_map(|node| &node.mutexes);
                held.filter(|(mutex, _)| *mutex == wait.object).map(|(_, holder)| *holder).collect()
            }
            Awaited::ReadLock | Awaited::WriteLock => {
                // Each node tells of those of its own threads that hold it.
                let locks = self.0.values().flat_map(|node| &node.rwlocks);
                let parts =
                    locks.filter(|(lock, ..)| *lock == wait.object).flat_map(|(_, writer, readers)| {
                        let readers = readers.iter().filter(|_| wait.awaited == Awaited::WriteLock);
                        std::iter::once(writer).chain(readers)
                    });
                parts.copied().filter(|holder| *holder != 0).collect()
            }
            Awaited::Join if wait.object == 0 => {
                self.threads().map(|(_, other)| other.thread).filter(|other| *other != thread).collect()
            }
            Awaited::Join => vec![wait.object],
            Awaited::Barrier => self.missing(wait.object).0,
            _ => vec![],
        }
    }

    /// Who is missing at a barrier, as far as is known, and how many are missing. Threads that were there before are known. At
    /// the first time, those that are nowhere near are, if there are no more of them than are missing.
    pub fn missing(self, barrier: u64) -> (Vec<u64>, u32) {
        let is_there = |thread: &WaitingThread| {
            thread.wait.is_some_and(|wait| wait.awaited == Awaited::Barrier && wait.object == barrier)
        };
        let arrived = self.threads().filter(|(_, thread)| is_there(thread)).count();
        let count = self.0.values().flat_map(|node| &node.barriers);
        let count = count.filter(|(known, _)| *known == barrier).map(|(_, count)| *count).max().unwrap_or(0);
        let missing = count.saturating_sub(u32::try_from(arrived).unwrap_or(u32::MAX));
        let absent = |before: bool| -> Vec<u64> {
            let absent = self.threads().filter(|(_, thread)| !is_there(thread));
            absent
                .filter(|(_, thread)| !before || thread.barrier == barrier)
                .map(|(_, thread)| thread.thread)
                .collect()
        };
        let known = absent(true);
        if known.len() >= missing as usize {
            return (known, missing);
        }
        let all = absent(false);
        // The one that waits for the end of others has no part in it.
        let joins = |thread: &u64| {
            let wait =
                self.threads().find(|(_, known)| known.thread == *thread).and_then(|(_, known)| known.wait);
            wait.is_some_and(|wait| wait.awaited == Awaited::Join)
        };
        let working: Vec<u64> = all.into_iter().filter(|thread| !joins(thread)).collect();
        (if working.len() == missing as usize { working } else { known }, missing)
    }

    /// Threads that wait for each other in a ring, by what only the next in the ring can give: each ring begins with the
    /// thread with the smallest number. A thread that waits for what it holds itself is a ring, too.
    pub fn deadlocks(self) -> Vec<Vec<u64>> {
        let next: BTreeMap<u64, Vec<u64>> = self
            .threads()
            .filter_map(|(_, thread)| {
                let wait = thread.wait.filter(|wait| !wait.timed && wait.awaited != Awaited::Barrier)?;
                // All others at once are no ring.
                (wait.object != 0).then(|| (thread.thread, self.awaited(thread.thread, &wait)))
            })
            .collect();
        let mut rings = BTreeSet::new();
        for &first in next.keys() {
            let mut path = vec![first];
            rings_from(&next, &mut path, &mut rings);
        }
        rings.into_iter().collect()
    }

    /// True if every thread of the program waits for what only another thread of the program can give.
    pub fn all_wait(self) -> bool {
        let mut threads = self.threads().peekable();
        threads.peek().is_some()
            && threads.all(|(_, thread)| {
                let others_act = [Awaited::Page, Awaited::Descriptor];
                thread.wait.is_some_and(|wait| !wait.timed && !others_act.contains(&wait.awaited))
            })
    }

    /// True if something else than threads of the program may end a wait.
    pub fn others_may_act(self) -> bool {
        self.0.values().any(|node| node.others_may_act)
    }

    /// What is concluded of who waits for whom.
    pub fn conclusions(self) -> Conclusions {
        Conclusions { deadlocks: self.deadlocks(), stuck_at: self.all_wait().then(|| self.begun()) }
    }

    /// How many waits have been begun so far.
    pub fn begun(self) -> u64 {
        self.0.values().map(|node| node.begun).sum()
    }
}

/// What one look at all nodes shows. They have not told all at the same moment, so that only what two looks show is true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conclusions {
    /// Threads that wait for each other in a ring.
    pub deadlocks: Vec<Vec<u64>>,
    /// How many waits had been begun when every thread waited for another one; `None` if not all do.
    pub stuck_at: Option<u64>,
}

impl Conclusions {
    /// True if nobody is kept from going on.
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }

    /// What an earlier look has shown as well.
    #[must_use]
    pub fn confirmed_by(mut self, earlier: &Self) -> Self {
        self.deadlocks.retain(|ring| earlier.deadlocks.contains(ring));
        self.stuck_at = self.stuck_at.filter(|_| self.stuck_at == earlier.stuck_at);
        self
    }
}

/// The order of threads for people, who do not see the node in the number.
fn order(thread: u64) -> (u32, u64) {
    (number_for_people(thread), thread)
}

/// Adds the rings that a path leads into, those that begin with their smallest thread.
fn rings_from(next: &BTreeMap<u64, Vec<u64>>, path: &mut Vec<u64>, rings: &mut BTreeSet<Vec<u64>>) {
    let (first, last) = (path[0], path[path.len() - 1]);
    for &thread in next.get(&last).into_iter().flatten() {
        if thread == first {
            rings.insert(path.clone());
        } else if order(thread) > order(first) && !path.contains(&thread) && next.contains_key(&thread) {
            path.push(thread);
            rings_from(next, path, rings);
            path.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(thread: u64, wait: Option<(Awaited, u64)>) -> WaitingThread {
        let wait = wait.map(|(awaited, object)| Wait { awaited, object, timed: false });
        WaitingThread { thread, task: 0, wait, barrier: 0 }
    }

    fn node(threads: Vec<WaitingThread>) -> NodeWaits {
        NodeWaits { threads, ..NodeWaits::default() }
    }

    #[test]
    fn what_one_look_shows_by_chance_another_one_does_not() {
        let ring = |threads: &[u64]| threads.to_vec();
        let first = Conclusions { deadlocks: vec![ring(&[1, 2]), ring(&[3])], stuck_at: Some(7) };
        let same = Conclusions { deadlocks: vec![ring(&[1, 2])], stuck_at: Some(7) };
        assert_eq!(same.clone().confirmed_by(&first), same);
        let later = Conclusions { deadlocks: vec![ring(&[4])], stuck_at: Some(8) };
        assert!(later.confirmed_by(&first).are_none() && !first.are_none());
    }

    #[test]
    fn two_mutexes_over_two_nodes_are_a_ring() {
        use Awaited::{Join, Mutex};
        let zero = node(vec![thread(1, Some((Join, 2))), thread(3, Some((Mutex, 0x20)))]);
        let one = node(vec![thread(2, Some((Mutex, 0x10)))]);
        let zero = NodeWaits { mutexes: vec![(0x10, 3)], ..zero };
        let one = NodeWaits { mutexes: vec![(0x20, 2)], ..one };
        let nodes = BTreeMap::from([(0, zero), (1, one)]);
        let waits = Waits(&nodes);
        assert_eq!(waits.deadlocks(), [[2, 3]]);
        assert!(waits.all_wait() && !waits.others_may_act());
        assert_eq!(waits.node_of(2), Some(1));
    }

    #[test]
    fn a_mutex_that_its_holder_locks_again_is_a_ring() {
        let own = node(vec![thread(1, Some((Awaited::Mutex, 0x10)))]);
        let nodes = BTreeMap::from([(0, NodeWaits { mutexes: vec![(0x10, 1)], ..own })]);
        assert_eq!(Waits(&nodes).deadlocks(), [[1]]);
    }

    #[test]
    fn what_may_end_by_itself_is_no_deadlock() {
        let timed = Some(Wait { awaited: Awaited::Mutex, object: 0x10, timed: true });
        let own = node(vec![WaitingThread { wait: timed, ..thread(1, None) }]);
        let nodes = BTreeMap::from([(0, NodeWaits { mutexes: vec![(0x10, 1)], ..own })]);
        assert!(Waits(&nodes).deadlocks().is_empty() && !Waits(&nodes).all_wait());
        for awaited in [Awaited::Page, Awaited::Descriptor] {
            let others_act = node(vec![thread(1, Some((awaited, 0x1000)))]);
            assert!(!Waits(&BTreeMap::from([(0, others_act)])).all_wait());
        }
        assert!(!Waits(&BTreeMap::from([(0, node(vec![thread(1, None)]))])).all_wait());
        assert!(!Waits(&BTreeMap::new()).all_wait(), "no thread is known");
    }

    #[test]
    fn readers_keep_a_writer_out() {
        let own = node(vec![
            thread(1, Some((Awaited::WriteLock, 0x10))),
            thread(2, Some((Awaited::Join, 1))),
            thread(3, Some((Awaited::ReadLock, 0x10))),
        ]);
        let nodes = BTreeMap::from([(0, NodeWaits { rwlocks: vec![(0x10, 0, vec![2])], ..own })]);
        let waits = Waits(&nodes);
        assert_eq!(waits.deadlocks(), [[1, 2]]);
        let of = |number: u64| {
            waits.threads().find(|(_, thread)| thread.thread == number).unwrap().1.wait.unwrap()
        };
        assert_eq!(waits.awaited(3, &of(3)), [0; 0], "it waits behind the writer");
    }

    #[test]
    fn the_missing_at_a_barrier_were_there_before_or_are_all_that_is_left() {
        let there = |number, before| WaitingThread {
            barrier: before,
            ..thread(number, Some((Awaited::Barrier, 0x40)))
        };
        let main = thread(1, Some((Awaited::Join, 2)));
        let late = WaitingThread { barrier: 0x40, ..thread(4, None) };
        let own = node(vec![main, there(2, 0x40), there(3, 0x40), late, thread(5, None)]);
        let own = NodeWaits { barriers: vec![(0x40, 3)], ..own };
        let nodes = BTreeMap::from([(0, own.clone())]);
        assert_eq!(Waits(&nodes).missing(0x40), (vec![4], 1));
        let first =
            NodeWaits { threads: vec![main, there(2, 0x40), there(3, 0x40), thread(4, None)], ..own.clone() };
        assert_eq!(Waits(&BTreeMap::from([(0, first)])).missing(0x40), (vec![4], 1));
        // Of three that may come, two are missing.
        let rest = vec![there(2, 0x40), thread(4, None), thread(5, None), thread(6, None)];
        let unclear = NodeWaits { threads: rest, ..own };
        assert_eq!(Waits(&BTreeMap::from([(0, unclear)])).missing(0x40), (vec![], 2));
    }
}
