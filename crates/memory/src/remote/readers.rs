//! The readers of a page in the bits of its remote-access word.
//!
//! Runs of up to [`BITS`] nodes have a *reader bitmap*: a bit for each node. Larger ones have *limited pointers* (A.
//! Agarwal and others, *An Evaluation of Directory Schemes for Cache Coherence*, ISCA 1988): the numbers of the first
//! [`POINTERS`] readers. A node that finds all pointers in use sends a message instead; the home then withdraws the
//! page, which makes the readers sharers, and exposes it with an empty word.

use gondwana_topology::{NodeId, NodeSet};

/// The low bits of a word are for readers.
pub(super) const BITS: u32 = 58;

/// All of them.
pub(super) const ALL: u64 = (1 << BITS) - 1;

/// Bits of a pointer: the number of a node plus one; 0: free.
const POINTER: u32 = 9;

/// The number of pointers.
pub(super) const POINTERS: u32 = BITS / POINTER;

const _: () = assert!(gondwana_topology::MAX_NODES < 1 << POINTER);

/// How the readers are written. The same on all nodes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReaderFormat {
    /// A bit for each node.
    Bitmap,
    /// The numbers of a few nodes.
    Pointers,
}

impl ReaderFormat {
    /// The format for a run of `nodes` nodes.
    pub(super) fn of(nodes: usize) -> Self {
        if nodes <= BITS as usize { Self::Bitmap } else { Self::Pointers }
    }

    /// The bits if `node` is the only reader.
    pub(super) fn only(self, node: u16) -> u64 {
        match self {
            Self::Bitmap => {
                assert!(u32::from(node) < BITS, "node {node} of a run of {BITS} nodes at most");
                1 << node
            }
            Self::Pointers => u64::from(node) + 1,
        }
    }

    /// The bits with one more reader, or unchanged if it is already there; `None` if there is no room.
    pub(super) fn with(self, readers: u64, node: u16) -> Option<u64> {
        let own = self.only(node);
        if self == Self::Bitmap {
            return Some(readers | own);
        }
        for shift in (0..POINTERS).map(|index| index * POINTER) {
            match readers >> shift & ((1 << POINTER) - 1) {
                0 => return Some(readers | own << shift),
                pointer if pointer == own => return Some(readers),
                _ => {}
            }
        }
        None
    }

    /// The readers.
    pub(super) fn nodes(self, readers: u64) -> NodeSet {
        match self {
            Self::Bitmap => bits(readers).map(NodeId).collect(),
            Self::Pointers => (0..POINTERS)
                .filter_map(|index| (readers >> (index * POINTER) & ((1 << POINTER) - 1)).checked_sub(1))
                .filter_map(|node| u16::try_from(node).ok().map(NodeId))
                .collect(),
        }
    }

    /// The reader, of bits with exactly one.
    pub(super) fn single(self, readers: u64) -> u16 {
        match self {
            Self::Bitmap => u16::try_from(readers.trailing_zeros()).expect("a word has few bits"),
            Self::Pointers => ((readers - 1) & 0xffff) as u16,
        }
    }
}

/// The numbers of the bits that are set.
fn bits(mut word: u64) -> impl Iterator<Item = u16> {
    std::iter::from_fn(move || {
        let bit = u16::try_from(word.trailing_zeros()).ok()?;
        word &= word.checked_sub(1)?;
        Some(bit)
    })
}
