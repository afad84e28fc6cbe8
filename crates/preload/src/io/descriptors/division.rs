//! Which node a descriptor's number belongs to.
//!
//! A run begins with a few numbers for each node. A node that has used up its own gets more (`extend`), of those that are nobody's,
//! as long as the program's limit on open files allows. So the numbers of all nodes together are what one process could have.

use std::ops::Range;
use std::sync::atomic::{AtomicI32, AtomicU16, Ordering};

/// `select` supports numbers below this: the first division is of these.
const SELECTABLE: i32 = 1024;
const _: () = assert!(SELECTABLE as usize == libc::FD_SETSIZE);

/// How many numbers a node other than node 0 has at first, unless there are many nodes, and the fewest that a node gets that needs more.
pub(super) const FEW: i32 = 16;

/// The most numbers that any run divides. Each node has a placeholder at almost every one up to the highest in use, which costs the
/// kernel time and memory.
pub(super) const MOST: i32 = 1 << 16;

/// In place of a node's number and one: nobody's, and the runtime's on all nodes.
const NOBODY: u16 = 0;
const RUNTIME: u16 = u16::MAX;

/// The numbers of one run, as one node sees them. Changes are made by one thread at a time.
pub(super) struct Division {
    owners: [AtomicU16; MOST as usize],
    room: AtomicI32,
}

impl Division {
    /// All are nobody's.
    pub(super) const fn new() -> Self {
        Self { owners: [const { AtomicU16::new(NOBODY) }; MOST as usize], room: AtomicI32::new(0) }
    }

    /// The first division: node 0 has the lowest numbers, as `main` expects, and every other node some. The runtime's begin at
    /// `limit`, or where `select` ends, and are so many.
    pub(super) fn begin(&self, nodes: u16, limit: i32, of_runtime: i32) {
        let room = limit.min(SELECTABLE);
        let first = room / 4;
        self.give(0..first, 0);
        let share = ((room - first) / (i32::from(nodes) - 1).max(1)).min(FEW);
        for node in 1..nodes {
            let start = first + share * (i32::from(node) - 1);
            self.give(start..start + share, node);
        }
        self.set(room..room + of_runtime, RUNTIME);
        self.room.store(room, Ordering::Release);
    }

    fn set(&self, numbers: Range<i32>, owner: u16) {
        for number in numbers {
            if let Some(entry) = self.entry(number) {
                entry.store(owner, Ordering::Release);
            }
        }
    }

    fn entry(&self, number: i32) -> Option<&AtomicU16> {
        // Negative numbers are beyond the end.
        self.owners.get(number.cast_unsigned() as usize)
    }

    fn of_entry(&self, number: i32) -> u16 {
        self.entry(number).map_or(NOBODY, |entry| entry.load(Ordering::Acquire))
    }

    /// The end of the numbers that this process may have open for the program.
    pub(super) fn room(&self) -> i32 {
        self.room.load(Ordering::Acquire)
    }

    /// Numbers up to here can be used.
    pub(super) fn set_room(&self, room: i32) {
        self.room.store(room, Ordering::Release);
    }

    /// Gives numbers to a node.
    pub(super) fn give(&self, numbers: Range<i32>, node: u16) {
        self.set(numbers, node + 1);
    }

    /// The numbers of a node, in order.
    pub(super) fn of(&self, node: u16) -> impl DoubleEndedIterator<Item = i32> {
        (0..self.room()).filter(move |&number| self.of_entry(number) == node + 1)
    }

    /// The node that a number belongs to.
    pub(super) fn owner(&self, number: i32) -> Option<u16> {
        match self.of_entry(number) {
            NOBODY | RUNTIME => None,
            owner => Some(owner - 1),
        }
    }

    /// True for numbers that a node could get.
    pub(super) fn is_nobodys(&self, number: i32) -> bool {
        (0..MOST).contains(&number) && self.of_entry(number) == NOBODY
    }

    /// True for numbers that the program never has.
    pub(super) fn is_of_runtime(&self, number: i32) -> bool {
        number >= self.room() || self.of_entry(number) == RUNTIME
    }

    /// The numbers that are the runtime's on all nodes, which stand in a row.
    pub(super) fn of_runtime(&self) -> impl Iterator<Item = i32> {
        let is_of_runtime = |&number: &i32| self.of_entry(number) == RUNTIME;
        (0..MOST)
            .skip_while(move |number| !is_of_runtime(number))
            .take_while(move |number| is_of_runtime(number))
    }

    /// How many numbers a node gets that has used up its own: the more the more it has, but most of the rest is left to others.
    pub(super) fn more(&self, node: u16, limit: i32) -> i32 {
        let left = int((0..limit.min(MOST)).filter(|&number| self.is_nobodys(number)).count());
        (int(self.of(node).count()) / 4).min(left / 8).max(FEW)
    }

    /// The first numbers from `least` on that are nobody's, below `limit`, so many or fewer. `None` if there are no more.
    pub(super) fn next(&self, least: i32, count: i32, limit: i32) -> Option<Range<i32>> {
        let is_left = |&number: &i32| self.is_nobodys(number);
        let limit = limit.min(MOST);
        let start = (least.max(0)..limit).find(is_left)?;
        let end = (start..limit.min(start.saturating_add(count))).take_while(is_left).last()? + 1;
        Some(start..end)
    }

    /// A node that opens this number or a higher one has almost used up its own, as the kernel gives the lowest.
    pub(super) fn last_of(&self, node: u16) -> i32 {
        let count = self.of(node).count();
        self.of(node).nth_back((count / 4).min(FEW.cast_unsigned() as usize)).unwrap_or(0)
    }
}

fn int(count: usize) -> i32 {
    i32::try_from(count).expect("no more than MOST")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn begun(nodes: u16, limit: i32) -> Box<Division> {
        let division = Box::new(Division::new());
        division.begin(nodes, limit, 64);
        division
    }

    #[test]
    fn main_has_the_first_numbers_and_everyone_some_for_select() {
        for (nodes, limit) in [(2, 1 << 20), (4, 1024), (16, 20_000), (64, 4096), (256, 1 << 20), (5, 300)] {
            let division = begun(nodes, limit);
            assert_eq!(division.owner(3), Some(0));
            for node in 0..nodes {
                assert!(division.of(node).count() >= 3, "node {node} of {nodes}");
                assert!(division.of(node).all(|number| number < limit.min(SELECTABLE)));
            }
            assert!(division.is_of_runtime(limit.min(SELECTABLE)));
        }
    }

    #[test]
    fn one_node_can_have_nearly_all_numbers() {
        let division = begun(2, 1024);
        while let Some(more) = division.next(0, division.more(0, 1024), 1024) {
            division.give(more, 0);
        }
        assert_eq!(division.of(0).count(), 1024 - 16);
        assert_eq!(division.of(1).count(), 16);
    }

    #[test]
    fn a_number_of_choice_comes_first() {
        let division = begun(2, 1024);
        assert_eq!(division.next(700, 1, 1024), Some(700..701));
        division.give(700..701, 1);
        assert_eq!(division.next(700, 16, 1024), Some(701..717));
        assert_eq!(division.next(690, 16, 1024), Some(690..700));
    }

    proptest! {
        #[test]
        fn what_is_given_was_nobodys(limit in 300..5000_i32, asked in prop::collection::vec((0..4_u16, 0..6000_i32), 1..40)) {
            let division = begun(4, limit);
            for (node, least) in asked {
                let Some(more) = division.next(least, division.more(node, limit), limit) else { continue };
                prop_assert!(more.start >= least && more.end <= limit && !more.is_empty());
                for number in more.clone() {
                    prop_assert_eq!(division.of_entry(number), NOBODY);
                }
                division.give(more.clone(), node);
                division.set_room(division.room().max(more.end));
                prop_assert!(division.last_of(node) < division.room());
            }
        }
    }
}
