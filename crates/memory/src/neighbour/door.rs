//! The word by which a home and its visitors agree about one page.

use super::held::Wait;
use super::primitive::{AtomicU64, Ordering};
use std::time::Duration;

/// Nodes with a higher number do not fit into the word: they send messages.
pub const NAMES: u32 = 58;

/// Set if visitors may copy the page to write it, too.
const TO_WRITERS: u64 = 1 << NAMES;

/// Set if a visitor may become the home.
const TO_OWNERS: u64 = 1 << (NAMES + 1);

/// Set when a visitor has taken the write access of the home's threads.
const TAKEN: u64 = 1 << (NAMES + 2);

/// Set if a visitor may copy the page beside the home's writers.
const BESIDE_WRITERS: u64 = 1 << (NAMES + 3);

/// The bits of the names.
const ALL: u64 = TO_WRITERS - 1;

const STATE: u64 = 3 << 62;
/// Only the home may use the page. With [`TAKEN`], the only name is that of the new home.
const CLOSED: u64 = 0;
/// Anybody may leave a name and read.
const SHARED: u64 = 1 << 62;
/// The home's threads write the page without noting it. Whoever comes first takes their write access, or leaves a name beside
/// them; then all do.
const EXCLUSIVE: u64 = 2 << 62;
/// A visitor is just taking write access, or, with [`TAKEN`], has found that done and becomes the home.
const LOCKED: u64 = 3 << 62;

/// One page of a home: closed (all zero), or open with the names of the nodes that have read it since.
#[derive(Default)]
#[repr(transparent)]
pub struct Door(AtomicU64);

/// What a visitor comes for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A copy to read.
    Read,
    /// A copy to write.
    Write,
    /// To become the home.
    Home,
    /// To become the home of a page that the visitor has copied since it was opened, and nobody else has.
    Upgrade,
}

impl Purpose {
    /// The bit of a door that is open for that; 0: every one.
    fn bit(self) -> u64 {
        match self {
            Self::Read => 0,
            Self::Write => TO_WRITERS,
            Self::Home | Self::Upgrade => TO_OWNERS,
        }
    }
}

/// What the home's threads do with an open page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// They read it, or write it and note that.
    Noted,
    /// They write it without noting that: whoever comes first takes their write access.
    ToBeStopped,
    /// As `ToBeStopped`, but visitors of few pages may leave it to them: their copies are compared.
    Compared,
}

/// What happened while a page was open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visits {
    /// A bit for each node that has read the page.
    pub names: u64,
    /// The node that is the home now; nobody else has come.
    pub home: Option<u16>,
    /// The home's threads may only read it now, though they could write it before.
    pub taken: bool,
    /// The home's threads wrote it without noting that, and still may.
    pub beside_writers: bool,
}

impl Visits {
    /// What the word of an open door, or of one that a new home has closed, tells.
    fn told_by(word: u64) -> Self {
        let (names, taken) = (word & ALL, word & TAKEN != 0);
        if word & STATE == CLOSED && taken {
            Self { home: Some(names.trailing_zeros() as u16), taken, ..Self::default() }
        } else {
            Self { names, home: None, taken, beside_writers: word & STATE == EXCLUSIVE && names != 0 }
        }
    }
}

/// How a visitor finds a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The home is at work on it, or it is somewhere else.
    Closed,
    /// The visitor's name is there: it may read.
    Entered,
    /// As `Entered`, once the visitor has written the page down for the home, whose threads go on writing it.
    BesideWriters,
    /// As `Entered`, once the visitor has taken the write access of the home's threads, if they have it (`writable`), and
    /// has said so with [`Door::take`] or [`Door::leave`].
    Locked { writable: bool },
}

impl Door {
    /// The home opens a page that is closed, to readers and to those who come for `more`.
    pub fn open(&self, writers: Writers, more: Option<Purpose>) {
        debug_assert_eq!(self.0.load(Ordering::Relaxed), CLOSED, "names would be lost");
        let state = match writers {
            Writers::Noted => SHARED,
            Writers::ToBeStopped => EXCLUSIVE,
            Writers::Compared => EXCLUSIVE | BESIDE_WRITERS,
        };
        // What the home has written before is seen by whoever enters.
        self.0.store(state | more.map_or(0, Purpose::bit), Ordering::Release);
    }

    /// The home closes the page. While a visitor holds it the home waits by `rest`, see [`Wait`]; if that takes long,
    /// `held_by` hears once which node it is.
    pub fn close(&self, rest: &mut dyn FnMut(Duration) -> Duration, held_by: &mut dyn FnMut(u16)) -> Visits {
        let mut wait = Wait::default();
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            if word & STATE == LOCKED {
                if wait.go_on(rest) {
                    // Who finds nobody's name but its own is the only one that can hold it.
                    held_by((word & ALL).trailing_zeros() as u16);
                }
                word = self.0.load(Ordering::Acquire);
                continue;
            }
            match self.0.compare_exchange_weak(word, CLOSED, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Visits::told_by(word),
                Err(now) => word = now,
            }
        }
    }

    /// A bit for each node that has come for the page since it was opened, unless the home has closed it since.
    pub fn names(&self) -> u64 {
        let word = self.0.load(Ordering::Acquire);
        // A visitor that has locked it may still leave without having read.
        if word & STATE == LOCKED { 0 } else { word & ALL }
    }

    /// A visitor leaves its name. It takes no write access to read (`quietly`) if it can write down where it was. Only a page
    /// that nobody else has read can get another home.
    pub fn enter(&self, visitor: u16, purpose: Purpose, quietly: bool) -> Found {
        let Some(name) = 1_u64.checked_shl(visitor.into()).filter(|name| name & ALL != 0) else {
            return Found::Closed;
        };
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            let quietly = quietly && word & BESIDE_WRITERS != 0;
            let (next, found) = match word & STATE {
                _ if word & purpose.bit() != purpose.bit() => return Found::Closed,
                SHARED if purpose == Purpose::Upgrade && word & ALL == name => {
                    (CLOSED | TAKEN | name, Found::Entered)
                }
                _ if purpose == Purpose::Upgrade => return Found::Closed,
                SHARED if purpose == Purpose::Home && word & ALL == 0 => {
                    (word | name | LOCKED | TAKEN, Found::Locked { writable: false })
                }
                SHARED if purpose != Purpose::Home => (word | name, Found::Entered),
                EXCLUSIVE if quietly && purpose != Purpose::Home => (word | name, Found::BesideWriters),
                EXCLUSIVE if word & ALL == 0 => (word | name | LOCKED, Found::Locked { writable: true }),
                _ => return Found::Closed,
            };
            match self.0.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return found,
                Err(now) => word = now,
            }
        }
    }

    /// The visitor that found the page locked by itself has taken write access, and comes for `purpose`.
    pub fn take(&self, purpose: Purpose) {
        let word = self.0.load(Ordering::Relaxed);
        let next = match purpose {
            Purpose::Home | Purpose::Upgrade => CLOSED | word & ALL,
            Purpose::Read | Purpose::Write => SHARED | word & (ALL | TO_WRITERS | TO_OWNERS),
        };
        self.0.store(next | TAKEN, Ordering::Release);
    }

    /// The visitor that found the page locked by itself could not take write access, and has read nothing.
    pub fn leave(&self) {
        let word = self.0.load(Ordering::Relaxed);
        let state = if word & TAKEN == 0 { EXCLUSIVE } else { SHARED };
        self.0.store(state | word & (TO_WRITERS | TO_OWNERS | BESIDE_WRITERS), Ordering::Release);
    }
}
