//! The size of a page, and what threads and nodes may do with one: the words in which the coherence protocols give orders
//! and the memory of a node carries them out. Neither of the two crates uses the other.
#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

/// [`PAGE_SIZE`] as a power of two.
pub const PAGE_BITS: u8 = 12;

/// Bytes in a page of memory, the same on every x86-64 Linux.
pub const PAGE_SIZE: usize = 1 << PAGE_BITS;

/// An address or a length in memory that is kept as a number of 64 bits. They have as many here: nothing is lost, and
/// where there were fewer this would not compile.
#[must_use]
#[inline]
pub const fn to_usize(number: u64) -> usize {
    usize::from_ne_bytes(number.to_ne_bytes())
}

/// How many whole pages so many bytes are. Numbers of pages have 32 bits: there are never as many as the greatest.
#[must_use]
#[inline]
pub fn whole_pages(bytes: usize) -> u32 {
    u32::try_from(bytes / PAGE_SIZE).unwrap_or(u32::MAX)
}

/// The access of a node's threads to a page that raises no fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Access {
    /// Every access faults.
    None,
    /// Reads proceed, writes fault.
    Read,
    /// Nothing faults.
    Write,
}

/// The purpose of a one-sided claim of a page in the memory of its home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RemoteAccess {
    /// A copy to read: the node becomes a reader of the page.
    Read,
    /// A copy to write.
    Write,
    /// To become the home. The former home keeps a copy that can be read.
    Home,
    /// As `Home`, of a page of which the node has the only copy since it was exposed, and which the home's threads cannot
    /// write without noting it: the copy equals the page. A page that is exposed to `Home` is exposed to this.
    Upgrade,
}

/// The access of a home's threads to an exposed page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Writers {
    /// They read it, or write it and note that.
    Noted,
    /// They write it without noting that: the first node to claim it takes their write access away.
    ToBeStopped,
    /// As `ToBeStopped`, but nodes that claim few pages may leave them write access: the home compares the copies.
    Compared,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_not_cut_off() {
        assert_eq!([0, 4095, 4096, 10 << 12, usize::MAX].map(whole_pages), [0, 0, 1, 10, u32::MAX]);
    }
}
