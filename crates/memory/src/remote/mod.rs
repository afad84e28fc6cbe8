//! One-sided access to the memory of other nodes.
//!
//! A transport is a [`RemoteMemory`]: frames that can be read, and 64-bit words that several nodes update atomically.
//! [`Capabilities`] says what else a transport can do. Same-host peers ([`Peer`](crate::Peer)) are the first one;
//! RDMA would be another.
//!
//! Each node has a table with a [remote-access word](access_word) for each page and two [logs](remote_log) for
//! each other node: of what that copies beside writers, and of its write notices. Home and readers run the same code on it: the home on its own memory, readers through their transport. With
//! [`claim`] a node gets the right to read pages; where the home's threads write them, it takes their write access
//! away if the transport can, or logs which pages it copies beside them.

mod access_word;
#[cfg(test)]
mod access_word_tests;
mod claim;
mod notice;
mod primitive;
mod readers;
mod remote_log;
mod table;
mod wait;
mod words;

pub use access_word::Withdrawal;
#[cfg(debug_assertions)]
pub use claim::while_held;
pub use claim::{claim, complete_claim};
pub use notice::post_notice;
pub use table::{LoggedReads, TableLayout};
pub(crate) use table::{MappedWords, RemoteAccessTable};
pub use words::SharedWords;

use gondwana_racing::{RacingBytes, RacingBytesMut};
use std::ops::Range;

/// What a transport of one-sided accesses can do besides reading frames and updating words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The frames can be read at addresses of this process: [`RemoteMemory::frames`] returns them.
    pub mapped: bool,
    /// The write access of the home's threads can be taken away: [`RemoteMemory::stop_writers`]. Without it, pages that they
    /// write without logging it can only be copied beside them.
    pub stops_writers: bool,
}

/// The memory of another node, for one-sided accesses.
///
/// Only pages that [`claim`] has granted may be read. Reading is racy: see [`gondwana_racing`].
pub trait RemoteMemory: SharedWords + Send {
    /// What the transport can do.
    fn capabilities(&self) -> Capabilities;

    /// The layout of the node's table.
    fn layout(&self) -> TableLayout;

    /// Copies the frames of whole pages from `first` on.
    ///
    /// # Panics
    /// If the target is not a whole number of pages, or the node has not so many.
    fn read(&self, first: u32, into: RacingBytesMut<'_>);

    /// The frames of pages in this process; `None` if they are not [`mapped`](Capabilities::mapped).
    ///
    /// # Panics
    /// If the node has no such pages.
    fn frames(&self, _pages: Range<u32>) -> Option<RacingBytes<'static>> {
        None
    }

    /// The number of pages from `first` on, before `end`, that one call of [`RemoteMemory::stop_writers`] can stop.
    fn stoppable(&self, first: u32, end: u32) -> u32 {
        end - first
    }

    /// Takes the write access of the node's threads to pages, which this node has claimed; no thread has it on any
    /// processor when this returns. False if that is impossible.
    fn stop_writers(&self, _pages: Range<u32>) -> bool {
        false
    }
}
