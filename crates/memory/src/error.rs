use std::io;
use thiserror::Error;

/// Why this node's memory could not be set up.
#[derive(Debug, Error)]
pub enum MemoryError {
    /// A system call was refused.
    #[error("{what}: {source}")]
    System {
        /// The action that failed, in words.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The address range is in use by something else.
    #[error("the addresses from {base:#x} on ({bytes} bytes) are not free; give a smaller --span")]
    Occupied {
        /// First address wanted.
        base: usize,
        /// Length wanted.
        bytes: usize,
    },
}

impl MemoryError {
    /// The last system call's error, with what it was for.
    pub(crate) fn last(what: &'static str) -> Self {
        Self::System { what, source: io::Error::last_os_error() }
    }
}
