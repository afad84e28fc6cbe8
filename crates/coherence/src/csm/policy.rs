//! When the home of a page moves.

use gondwana_topology::NodeId;
use serde::{Deserialize, Serialize};

/// After this many moves the price of another one stays the same.
const DEAREST: u8 = 6;

/// After this many moves a page is taken for one that several nodes write.
const SETTLED: u8 = 2;

/// What the home knows of a page's past; it travels with the home.
///
/// The home of a page should be the node that writes it, because a home writes without twin, diff or message. So
/// the first other node to write a page gets its home at once, which mends a page first touched by the wrong node
/// (often the one that initialised everything). A page that several nodes write by turns would go round and round;
/// therefore each move doubles the number of writes in a row that the same node must make before the next move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct History {
    moves: u8,
    streak: u8,
    writer: Option<NodeId>,
    /// The home moves to where it was asked to be, and stays there.
    pinned: bool,
    /// Another node than the home has written the page since it came here.
    elsewhere: bool,
}

impl History {
    /// Notes a write by `node`: a write fetch, a flushed diff, or a write fault of the home itself.
    pub fn wrote(&mut self, node: NodeId) {
        if self.writer == Some(node) {
            self.streak = self.streak.saturating_add(1);
        } else {
            self.writer = Some(node);
            self.streak = 1;
        }
    }

    /// Notes a write by another `node` than the home.
    pub(super) fn wrote_elsewhere(&mut self, node: NodeId) {
        self.elsewhere = true;
        self.wrote(node);
    }

    /// True if no other node than the home has written the page since it came here.
    pub(super) fn is_written_at_home(&self) -> bool {
        !self.elsewhere
    }

    /// How often the home has moved, up to a limit.
    pub(super) fn moves(&self) -> u8 {
        self.moves
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.pinned
    }

    /// True if the home may move to `node`, which is just writing: before that, it wrote `2^moves - 1` times
    /// without any other node writing in between.
    #[must_use]
    pub fn may_move_to(&self, node: NodeId) -> bool {
        let streak = if self.writer == Some(node) { self.streak } else { 0 };
        streak >= (1u8 << self.moves.min(DEAREST)) - 1
    }

    /// True if the page has moved to and fro, so that a single write will not move it.
    pub(super) fn is_settled(&self) -> bool {
        self.moves >= SETTLED
    }

    /// The same past, for a home that is to stay where it goes, or not.
    pub(super) fn pinned(self, pinned: bool) -> Self {
        Self { pinned, ..self }
    }

    /// The history that the new home starts with.
    #[must_use]
    pub fn moved(&self) -> Self {
        Self { moves: self.moves.saturating_add(1).min(DEAREST), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NodeId = NodeId(0);
    const B: NodeId = NodeId(1);

    #[test]
    fn each_move_doubles_the_price_of_the_next_up_to_a_limit() {
        let mut history = History::default();
        let mut prices = Vec::new();
        for _ in 0..8 {
            let mut writes = 0;
            while !history.may_move_to(A) {
                history.wrote(A);
                writes += 1;
            }
            prices.push(writes);
            history = history.moved();
        }
        assert_eq!(prices, [0, 1, 3, 7, 15, 31, 63, 63]);
    }

    #[test]
    fn a_write_by_another_node_starts_the_count_again() {
        let mut history = History::default().moved().moved();
        for _ in 0..2 {
            history.wrote(A);
        }
        history.wrote(B);
        history.wrote(A);
        assert!(!history.may_move_to(A) && !history.may_move_to(B));
        history.wrote(A);
        history.wrote(A);
        assert!(history.may_move_to(A) && !history.may_move_to(B));
    }
}
