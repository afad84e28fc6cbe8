//! The word by which a home and its visitors agree about one page.

use std::sync::atomic::{AtomicU64, Ordering};

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

/// How often to look before letting others run: taking write access is one system call.
const LOOKS: u32 = 64;

/// One page of a home: closed (all zero), or open with the names of the nodes that have read it since.
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

    /// The home closes the page.
    pub fn close(&self) -> Visits {
        let mut looks = 0_u32;
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            if word & STATE == LOCKED {
                looks += 1;
                if looks.is_multiple_of(LOOKS) {
                    std::thread::yield_now()
                } else {
                    std::hint::spin_loop()
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    const LOCKED_WRITABLE: Found = Found::Locked { writable: true };

    fn door() -> Door {
        Door(AtomicU64::new(CLOSED))
    }

    #[test]
    fn nobody_enters_a_closed_page() {
        let door = door();
        assert_eq!(door.enter(1, Purpose::Read, false), Found::Closed);
        assert_eq!(door.close(), Visits::default());
    }

    #[test]
    fn names_are_found_once() {
        let door = door();
        door.open(Writers::Noted, None);
        assert_eq!([1, 0, 57, 1].map(|node| door.enter(node, Purpose::Read, false)), [Found::Entered; 4]);
        assert_eq!(door.close(), Visits { names: 1 << 57 | 3, ..Visits::default() });
        door.open(Writers::Noted, None);
        assert_eq!(door.close(), Visits::default());
    }

    #[test]
    fn nodes_without_room_for_their_names_stay_outside() {
        let door = door();
        door.open(Writers::ToBeStopped, None);
        assert_eq!(
            [58, 59, 60, 61, 62, 64, 255].map(|node| door.enter(node, Purpose::Read, false)),
            [Found::Closed; 7]
        );
        assert_eq!(door.close(), Visits::default());
    }

    #[test]
    fn the_first_visitor_takes_write_access() {
        let door = door();
        door.open(Writers::ToBeStopped, None);
        assert_eq!(door.enter(2, Purpose::Read, false), LOCKED_WRITABLE);
        assert_eq!(door.enter(3, Purpose::Read, false), Found::Closed);
        assert_eq!(door.names(), 0, "it may not get in");
        door.take(Purpose::Read);
        assert_eq!(door.enter(3, Purpose::Read, false), Found::Entered);
        assert_eq!(door.names(), 0b1100);
        assert_eq!(door.close(), Visits { names: 0b1100, taken: true, ..Visits::default() });
    }

    #[test]
    fn quiet_visitors_leave_write_access_where_it_is() {
        let door = door();
        door.open(Writers::Compared, Some(Purpose::Home));
        assert_eq!(door.enter(2, Purpose::Read, true), Found::BesideWriters);
        assert_eq!(door.enter(3, Purpose::Read, true), Found::BesideWriters);
        assert_eq!(door.enter(4, Purpose::Write, true), Found::Closed, "the home may go to who writes");
        // Who copies beside the writers would not learn of their write access being taken.
        for purpose in [Purpose::Read, Purpose::Home] {
            assert_eq!(door.enter(4, purpose, false), Found::Closed);
        }
        assert_eq!(door.names(), 0b1100);
        assert_eq!(door.close(), Visits { names: 0b1100, beside_writers: true, ..Visits::default() });
        door.open(Writers::Noted, None);
        assert_eq!(door.enter(2, Purpose::Read, true), Found::Entered);
        assert_eq!(door.close(), Visits { names: 0b100, ..Visits::default() });
        door.open(Writers::ToBeStopped, None);
        assert_eq!(door.enter(2, Purpose::Read, true), LOCKED_WRITABLE);
        door.leave();
        assert_eq!(door.close(), Visits::default());
    }

    #[test]
    fn a_visitor_that_cannot_take_it_leaves_nothing_behind() {
        let door = door();
        door.open(Writers::ToBeStopped, None);
        assert_eq!(door.enter(2, Purpose::Read, false), LOCKED_WRITABLE);
        door.leave();
        assert_eq!(door.close(), Visits::default());
    }

    #[test]
    fn writers_enter_where_they_are_welcome() {
        let door = door();
        door.open(Writers::ToBeStopped, Some(Purpose::Write));
        assert_eq!(door.enter(2, Purpose::Write, false), LOCKED_WRITABLE);
        door.leave();
        assert_eq!(door.enter(2, Purpose::Write, false), LOCKED_WRITABLE);
        door.take(Purpose::Read);
        assert_eq!(door.enter(3, Purpose::Write, false), Found::Entered);
        assert_eq!(door.close(), Visits { names: 0b1100, taken: true, ..Visits::default() });
        for writers in [Writers::Noted, Writers::ToBeStopped, Writers::Compared] {
            door.open(writers, None);
            assert_eq!(door.enter(2, Purpose::Write, false), Found::Closed);
            assert_eq!(door.close(), Visits::default());
        }
    }

    #[test]
    fn one_visitor_becomes_home() {
        let door = door();
        door.open(Writers::ToBeStopped, Some(Purpose::Home));
        assert_eq!(door.enter(2, Purpose::Write, false), Found::Closed);
        assert_eq!(door.enter(2, Purpose::Home, false), LOCKED_WRITABLE);
        door.leave();
        assert_eq!(door.enter(2, Purpose::Home, false), LOCKED_WRITABLE);
        door.take(Purpose::Home);
        for purpose in [Purpose::Read, Purpose::Write, Purpose::Home] {
            assert_eq!(door.enter(3, purpose, false), Found::Closed);
        }
        assert_eq!(door.names(), 0b100);
        assert_eq!(door.close(), Visits { home: Some(2), taken: true, ..Visits::default() });
        assert_eq!(door.close(), Visits::default());
    }

    #[test]
    fn a_page_that_nobody_writes_gets_a_home_without_more() {
        let door = door();
        door.open(Writers::Noted, Some(Purpose::Home));
        assert_eq!(door.enter(2, Purpose::Home, false), Found::Locked { writable: false });
        door.leave();
        assert_eq!(door.enter(3, Purpose::Home, false), Found::Locked { writable: false });
        door.take(Purpose::Home);
        assert_eq!(door.close(), Visits { home: Some(3), taken: true, ..Visits::default() });
    }

    #[test]
    fn the_only_reader_becomes_home_if_nothing_was_written_since() {
        let door = door();
        for writers in [Writers::Noted, Writers::ToBeStopped, Writers::Compared] {
            door.open(writers, Some(Purpose::Home));
            assert_eq!(door.enter(2, Purpose::Upgrade, false), Found::Closed, "it has not read the page");
            match door.enter(2, Purpose::Read, writers == Writers::Compared) {
                Found::Locked { .. } => door.take(Purpose::Read),
                found => assert_ne!(found, Found::Closed),
            }
            let (found, home) = match writers {
                // The home may have written it after the visitor has copied it.
                Writers::Compared => (Found::Closed, None),
                Writers::ToBeStopped | Writers::Noted => (Found::Entered, Some(2)),
            };
            assert_eq!(door.enter(3, Purpose::Upgrade, false), Found::Closed);
            assert_eq!(door.enter(2, Purpose::Upgrade, false), found);
            assert_eq!(door.close().home, home);
        }
        door.open(Writers::Noted, Some(Purpose::Home));
        for node in [2, 3] {
            assert_eq!(door.enter(node, Purpose::Read, false), Found::Entered);
        }
        assert_eq!(door.enter(2, Purpose::Upgrade, false), Found::Closed, "another one has a copy");
        assert_eq!(door.close(), Visits { names: 0b1100, ..Visits::default() });
    }

    #[test]
    fn a_page_that_was_read_keeps_its_home() {
        let door = door();
        door.open(Writers::ToBeStopped, Some(Purpose::Home));
        assert_eq!(door.enter(2, Purpose::Read, false), LOCKED_WRITABLE);
        door.take(Purpose::Read);
        assert_eq!(door.enter(3, Purpose::Home, false), Found::Closed);
        assert_eq!(door.close(), Visits { names: 0b100, taken: true, ..Visits::default() });
    }

    /// Two visitors and a home that works on the page again and again: whoever reads is known to the home when it works, and
    /// nobody reads while it does.
    #[test]
    fn visitors_and_home_do_not_miss_each_other() {
        const ROUNDS: u32 = 20_000;
        let (door, page) = (door(), AtomicU32::new(0));
        door.open(Writers::ToBeStopped, None);
        let (entered, known) =
            ([AtomicU32::new(0), AtomicU32::new(0)], [AtomicU32::new(0), AtomicU32::new(0)]);
        std::thread::scope(|scope| {
            for node in 0..2_u16 {
                let (door, page, entered, known) =
                    (&door, &page, &entered[usize::from(node)], &known[usize::from(node)]);
                scope.spawn(move || {
                    while page.load(Ordering::Acquire) < 2 * ROUNDS {
                        // Left before reading: the home must find it afterwards, whatever it does.
                        let met = known.load(Ordering::Acquire);
                        let found = door.enter(node, Purpose::Read, met % 3 == 0);
                        match found {
                            Found::Closed => continue,
                            Found::Locked { .. } => door.take(Purpose::Read),
                            Found::Entered | Found::BesideWriters => (),
                        }
                        entered.fetch_add(1, Ordering::AcqRel);
                        while known.load(Ordering::Acquire) == met
                            && page.load(Ordering::Acquire) < 2 * ROUNDS
                        {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            for round in 0..ROUNDS {
                let visits = door.close();
                page.store(2 * round + 1, Ordering::Release);
                for (node, known) in known.iter().enumerate() {
                    if visits.names >> node & 1 != 0 {
                        known.fetch_add(1, Ordering::AcqRel);
                    }
                }
                page.store(2 * round + 2, Ordering::Release);
                door.open(if round % 2 == 0 { Writers::Compared } else { Writers::Noted }, None);
            }
        });
        let last = door.close();
        for node in 0..2 {
            let found = known[node].load(Ordering::Acquire) + (last.names >> node & 1) as u32;
            assert_eq!(found, entered[node].load(Ordering::Acquire), "node {node}");
        }
    }
}
