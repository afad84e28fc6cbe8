//! Nodes, processors and memories of a machine, and sets of them.
//!
//! Pure data: nothing here reads the computer it runs on. A [`Machine`] is filled in by whoever knows it (a computer,
//! a running cluster) or read from a description ([`Machine::from_toml`]).

#![forbid(unsafe_code)]

mod bytes;
mod check;
mod description;
mod id_set;
mod list;
mod machine;

pub use bytes::{Bytes, BytesError};
pub use check::Problem;
pub use description::DescriptionError;
pub use id_set::{Id, IdSet};
pub use list::ListError;
pub use machine::{Cache, CacheKind, HugePages, Limits, Machine, MachineNode, Memory, View};

use serde::{Deserialize, Serialize};

/// The most nodes that one run may have.
pub const MAX_NODES: usize = 256;

/// The most processors that one machine may have.
pub const MAX_PROCESSORS: usize = 4096;

/// A set of nodes: the *sharing set* of a page (Cashmere, section 2.1), for one.
pub type NodeSet = IdSet<NodeId, { MAX_NODES / 64 }>;

/// A set of processors.
pub type ProcessorSet = IdSet<ProcessorId, { MAX_PROCESSORS / 64 }>;

macro_rules! id {
    ($(#[$documentation:meta])* $name:ident, $noun:literal) => {
        $(#[$documentation])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub u16);

        impl $name {
            /// The number as an index.
            #[must_use]
            pub fn index(self) -> usize {
                usize::from(self.0)
            }
        }

        impl Id for $name {
            const NOUN: &'static str = $noun;

            fn index(self) -> usize {
                $name::index(self)
            }

            fn from_index(index: usize) -> Self {
                Self(u16::try_from(index).expect("sets hold numbers of 16 bits"))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id! {
    /// One node of the machine, numbered from 0. Node 0 runs `main`.
    NodeId, "node"
}

id! {
    /// One processor of the machine: what a thread runs on, so each of those that share a core. On a Linux computer
    /// these are the kernel's numbers.
    ProcessorId, "processor"
}
