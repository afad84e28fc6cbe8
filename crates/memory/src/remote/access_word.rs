//! The remote-access word of a page, which synchronises its home with the nodes that read its memory.

use super::readers::{ALL, BITS, ReaderFormat};
use super::wait::Wait;
use super::words::SharedWords;
use gondwana_page::{RemoteAccess, Writers};
use gondwana_topology::NodeSet;
use std::time::Duration;

/// Set if nodes may also claim the page to write it.
const TO_WRITERS: u64 = 1 << BITS;

/// Set if a node may become the home.
const TO_OWNERS: u64 = 1 << (BITS + 1);

/// Set when a node has taken the write access of the home's threads.
const TAKEN: u64 = 1 << (BITS + 2);

/// Set if a node may copy the page beside the home's writers.
const BESIDE_WRITERS: u64 = 1 << (BITS + 3);

const STATE: u64 = 3 << 62;
/// Only the home may use the page. With [`TAKEN`], the only reader is the new home.
const WITHDRAWN: u64 = 0;
/// Any node may become a reader.
const SHARED: u64 = 1 << 62;
/// The home's threads write the page without logging it. The first node to claim it takes their write access, or becomes a reader
/// beside them; then all do.
const EXCLUSIVE: u64 = 2 << 62;
/// A node is just taking write access, or, with [`TAKEN`], has found that done and becomes the home.
const LOCKED: u64 = 3 << 62;

/// The bit of a word that permits an access; 0: always permitted.
fn bit(access: RemoteAccess) -> u64 {
    match access {
        RemoteAccess::Read => 0,
        RemoteAccess::Write => TO_WRITERS,
        RemoteAccess::Home | RemoteAccess::Upgrade => TO_OWNERS,
    }
}

/// The result of withdrawing a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Withdrawal {
    /// The nodes that have read the page.
    pub readers: NodeSet,
    /// The node that is the home now; no other node has claimed the page.
    pub home: Option<u16>,
    /// A node has taken the write access of the home's threads.
    pub taken: bool,
    /// The home's threads wrote it without logging, and still may.
    pub beside_writers: bool,
}

/// The outcome of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The page is withdrawn, its home is elsewhere, it is not exposed for this access, or the word has no room for
    /// another reader.
    Refused,
    /// The node is a reader: it may copy.
    Granted,
    /// As `Granted`, once the node has logged the page for the home, whose threads continue to write it.
    BesideWriters,
    /// As `Granted`, once the node has taken the write access of the home's threads, if they have it (`writable`),
    /// and has called [`RemoteAccessWord::take`] or [`RemoteAccessWord::leave`].
    Locked { writable: bool },
}

/// How a node can deal with writers of the home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Means {
    /// It can log which pages it copies beside them.
    pub log: bool,
    /// It can stop them.
    pub stop: bool,
}

/// The word of one page of a home: withdrawn (all zero), or exposed with the nodes that have read it since.
pub(super) struct RemoteAccessWord<'a, W: ?Sized> {
    pub words: &'a W,
    pub word: usize,
    pub format: ReaderFormat,
}

impl<W: SharedWords + ?Sized> RemoteAccessWord<'_, W> {
    fn load(&self) -> u64 {
        self.words.load(self.word)
    }

    fn store(&self, value: u64) {
        self.words.store(self.word, value);
    }

    /// The home exposes a page that is withdrawn, to readers and to nodes that claim `more`.
    pub(super) fn expose(&self, writers: Writers, more: Option<RemoteAccess>) {
        debug_assert_eq!(self.load(), WITHDRAWN, "readers would be lost");
        let state = match writers {
            Writers::Noted => SHARED,
            Writers::ToBeStopped => EXCLUSIVE,
            Writers::Compared => EXCLUSIVE | BESIDE_WRITERS,
        };
        // Releases: each node that claims the page sees the earlier writes of the home.
        self.store(state | more.map_or(0, bit));
    }

    /// The home withdraws the page. While a node has it locked, the home waits by `rest`, see [`Wait`]; if that takes
    /// long, `held_by` is called once with its number.
    pub(super) fn withdraw(
        &self,
        rest: &mut dyn FnMut(Duration) -> Duration,
        held_by: &mut dyn FnMut(u16),
    ) -> Withdrawal {
        let mut wait = Wait::default();
        let mut word = self.load();
        loop {
            if word & STATE == LOCKED {
                if wait.go_on(rest) {
                    // Only a node that is the single reader can hold it.
                    held_by(self.format.single(word & ALL));
                }
                word = self.load();
                continue;
            }
            match self.words.compare_exchange(self.word, word, WITHDRAWN) {
                Ok(_) => return self.found_in(word),
                Err(now) => word = now,
            }
        }
    }

    /// Decodes the word of an exposed page, or of one that a new home has withdrawn.
    fn found_in(&self, word: u64) -> Withdrawal {
        let (readers, taken) = (word & ALL, word & TAKEN != 0);
        if word & STATE == WITHDRAWN && taken {
            return Withdrawal { home: Some(self.format.single(readers)), taken, ..Withdrawal::default() };
        }
        let beside_writers = word & STATE == EXCLUSIVE && readers != 0;
        Withdrawal { readers: self.format.nodes(readers), home: None, taken, beside_writers }
    }

    /// The nodes that have claimed the page since it was exposed, unless the home has withdrawn it since.
    pub(super) fn readers(&self) -> NodeSet {
        let word = self.load();
        // A node that has locked it may still leave without having read.
        if word & STATE == LOCKED { NodeSet::EMPTY } else { self.format.nodes(word & ALL) }
    }

    /// A node becomes a reader. It takes no write access to read if it can log that. Only a page that no other node has
    /// read can get another home.
    pub(super) fn claim(&self, node: u16, access: RemoteAccess, means: Means) -> Claim {
        let own = self.format.only(node);
        let mut word = self.load();
        loop {
            let Some(readers) = self.format.with(word & ALL, node) else { return Claim::Refused };
            let joined = word & !ALL | readers;
            let beside = means.log && word & BESIDE_WRITERS != 0 && access != RemoteAccess::Home;
            let (next, claim) = match word & STATE {
                _ if word & bit(access) != bit(access) => return Claim::Refused,
                SHARED if access == RemoteAccess::Upgrade && word & ALL == own => {
                    (WITHDRAWN | TAKEN | own, Claim::Granted)
                }
                _ if access == RemoteAccess::Upgrade => return Claim::Refused,
                SHARED if access == RemoteAccess::Home && word & ALL == 0 => {
                    (joined | LOCKED | TAKEN, Claim::Locked { writable: false })
                }
                SHARED if access != RemoteAccess::Home => (joined, Claim::Granted),
                EXCLUSIVE if beside => (joined, Claim::BesideWriters),
                EXCLUSIVE if means.stop && word & ALL == 0 => {
                    (joined | LOCKED, Claim::Locked { writable: true })
                }
                _ => return Claim::Refused,
            };
            match self.words.compare_exchange(self.word, word, next) {
                Ok(_) => return claim,
                Err(now) => word = now,
            }
        }
    }

    /// The node that has the page locked has taken write access, and claims `access`. If that is the home, it has copied the
    /// page, too.
    pub(super) fn take(&self, access: RemoteAccess) {
        let word = self.load();
        let next = match access {
            RemoteAccess::Home | RemoteAccess::Upgrade => WITHDRAWN | word & ALL,
            RemoteAccess::Read | RemoteAccess::Write => SHARED | word & (ALL | TO_WRITERS | TO_OWNERS),
        };
        self.store(next | TAKEN);
    }

    /// The node that has the page locked could not take write access, and has read nothing.
    pub(super) fn leave(&self) {
        let word = self.load();
        let state = if word & TAKEN == 0 { EXCLUSIVE } else { SHARED };
        self.store(state | word & (TO_WRITERS | TO_OWNERS | BESIDE_WRITERS));
    }
}
