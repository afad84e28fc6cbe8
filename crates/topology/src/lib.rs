//! Names of the nodes of a machine and sets of them.
//!
//! Pure data: nothing here reads the computer it runs on.

mod node_set;

pub use node_set::NodeSet;

use serde::{Deserialize, Serialize};

/// The most nodes that one run may have.
pub const MAX_NODES: usize = 256;

/// One node of the machine, numbered from 0. Node 0 runs `main`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub u16);

impl NodeId {
    /// The number as an index.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl std::fmt::Display for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}
