//! What could not be had, in a sentence.

use gondwana_topology::{Bytes, NodeId};
use std::fmt;
use std::io;

/// Something that was asked for and cannot be had, or not entirely. Work goes on without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// The kernel does not do what it was asked to.
    Refused {
        /// What it was asked to do, as in "binding threads".
        what: &'static str,
        /// The number of its error.
        error: i32,
    },
    /// A node lacks pages that were asked for on it.
    Missing {
        /// The node.
        node: NodeId,
        /// Pages that were asked for on it.
        asked: usize,
        /// Those of them that are there.
        found: usize,
        /// Memory that it has left, if that is known.
        free: Option<Bytes>,
    },
    /// Anything else, already a sentence.
    Other(String),
}

impl Remark {
    /// The kernel does not do what it was asked to.
    pub(crate) fn refused(what: &'static str, error: &io::Error) -> Self {
        Self::Refused { what, error: error.raw_os_error().unwrap_or(0) }
    }
}

impl fmt::Display for Remark {
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
            Self::Other(sentence) => f.write_str(sentence),
        }
    }
}
