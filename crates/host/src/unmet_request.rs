//! Unmet requests, as sentences.

use gondwana_topology::{Bytes, NodeId, NodeSet, ProcessorSet};
use std::fmt;
use std::io;

/// A request that is not satisfied, or not entirely. Work continues without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnmetRequest {
    /// The kernel refuses a request.
    Refused {
        /// The request, as in "binding threads".
        what: &'static str,
        /// The number of its error.
        error: i32,
    },
    /// A node lacks pages that were requested on it.
    Missing {
        /// The node.
        node: NodeId,
        /// Pages that were requested on it.
        asked: usize,
        /// Those of them that are on it.
        found: usize,
        /// Its free memory, if known.
        free: Option<Bytes>,
    },
    /// Threads do not run on all requested processors.
    Processors {
        /// Those that are missing.
        missing: Box<ProcessorSet>,
        /// Those where they run.
        found: Box<ProcessorSet>,
    },
    /// Memory does not come from all requested nodes.
    Nodes {
        /// Those that are missing.
        missing: NodeSet,
        /// Those where it comes from.
        found: NodeSet,
    },
    /// Nodes have hardly any memory left.
    Full {
        /// Those nodes.
        nodes: NodeSet,
    },
    /// All nodes that memory was requested on have hardly any left.
    Overflowing {
        /// Those nodes.
        nodes: NodeSet,
        /// The nodes of the rest, if restricted.
        instead: Option<NodeSet>,
    },
    /// Pages are where they should not be.
    Strays {
        /// How many of them.
        pages: usize,
        /// The number of all.
        of: usize,
        /// Where they are.
        on: NodeSet,
    },
    /// Anything else, already a sentence.
    Other(String),
}

impl UnmetRequest {
    /// The kernel refuses a request.
    #[must_use]
    pub fn refused(what: &'static str, error: &io::Error) -> Self {
        Self::Refused { what, error: error.raw_os_error().unwrap_or(0) }
    }

    /// The requested but missing part, if any.
    #[must_use]
    pub fn processors(asked: &ProcessorSet, found: &ProcessorSet) -> Option<Self> {
        (asked != found)
            .then(|| Self::Processors { missing: Box::new(asked.difference(found)), found: Box::new(*found) })
    }

    /// The requested but missing part, if any.
    pub(crate) fn nodes(asked: &NodeSet, found: &NodeSet) -> Option<Self> {
        (asked != found).then(|| Self::Nodes { missing: asked.difference(found), found: *found })
    }
}

impl fmt::Display for UnmetRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { what, error } => {
                let reason = match *error {
                    libc::EPERM => "not permitted, as in containers without CAP_SYS_NICE".to_owned(),
                    libc::ENOSYS => "this kernel is built without NUMA".to_owned(),
                    libc::EINVAL => {
                        "a cpuset forbids it, or the computer has no such node or processor".to_owned()
                    }
                    other => io::Error::from_raw_os_error(other).to_string(),
                };
                write!(f, "{what} is refused by the kernel: {reason}")
            }
            Self::Missing { node, asked, found, free } => {
                write!(f, "node {node} has {found} of {asked} pages asked for")?;
                match free {
                    Some(bytes) => write!(f, ", and {} MiB free", bytes.0 >> 20),
                    None => Ok(()),
                }
            }
            Self::Processors { missing, found } => write!(
                f,
                "processors {missing} were asked for and are forbidden by a cpuset or switched off: threads run on {found}"
            ),
            Self::Nodes { missing, found } => write!(
                f,
                "memory of nodes {missing} was asked for and is forbidden by a cpuset or not there: it comes from {found}"
            ),
            Self::Full { nodes } => write!(f, "node {nodes} has hardly any memory left"),
            Self::Overflowing { nodes, instead } => {
                write!(f, "node {nodes} has hardly any memory left: what it has no room for comes from ")?;
                match instead {
                    Some(instead) => write!(f, "node {instead} of the set"),
                    None => f.write_str("other nodes"),
                }
            }
            Self::Strays { pages, of, on } => {
                write!(
                    f,
                    "{pages} of {of} pages that were tried are on nodes {on}, where none were asked for"
                )
            }
            Self::Other(sentence) => f.write_str(sentence),
        }
    }
}
