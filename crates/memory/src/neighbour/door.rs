//! The word by which a home and its visitors agree about one page.

use std::sync::atomic::{AtomicU64, Ordering};

/// Nodes with a higher number do not fit into the word: they send messages.
const NAMES: u32 = 60;

/// Set if visitors that will write the page are welcome, too.
const TO_WRITERS: u64 = 1 << NAMES;

/// Set when a visitor has taken the write access of the home's threads.
const TAKEN: u64 = 1 << (NAMES + 1);

/// The bits of the names.
const ALL: u64 = TO_WRITERS - 1;

const STATE: u64 = 3 << 62;
/// Only the home may use the page.
const CLOSED: u64 = 0;
/// Anybody may leave a name and read.
const SHARED: u64 = 1 << 62;
/// Whoever comes first has to take the write access of the home's threads.
const EXCLUSIVE: u64 = 2 << 62;
/// A visitor is just doing that.
const LOCKED: u64 = 3 << 62;

/// How often to look before letting others run: taking write access is one system call.
const LOOKS: u32 = 64;

/// One page of a home: closed (all zero), or open with the names of the nodes that have read it since.
#[repr(transparent)]
pub struct Door(AtomicU64);

/// What happened while a page was open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visits {
    /// A bit for each node that has read the page.
    pub names: u64,
    /// The home's threads may only read it now, though they could write it before.
    pub taken: bool,
}

/// How a visitor finds a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The home is at work on it, or it is somewhere else.
    Closed,
    /// The visitor's name is there: it may read.
    Entered,
    /// As `Entered`, once the visitor has taken write access and said so with [`Door::take`] or [`Door::leave`].
    Locked,
}

impl Door {
    /// The home opens a page that is closed.
    pub fn open(&self, exclusive: bool, to_writers: bool) {
        debug_assert_eq!(self.0.load(Ordering::Relaxed), CLOSED, "names would be lost");
        let state = if exclusive { EXCLUSIVE } else { SHARED };
        // What the home has written before is seen by whoever enters.
        self.0.store(state | if to_writers { TO_WRITERS } else { 0 }, Ordering::Release);
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
                Ok(_) => return Visits { names: word & ALL, taken: word & TAKEN != 0 },
                Err(now) => word = now,
            }
        }
    }

    /// A visitor leaves its name; it will write the page, or not.
    pub fn enter(&self, visitor: u16, write: bool) -> Found {
        let Some(name) = 1_u64.checked_shl(visitor.into()).filter(|name| name & ALL != 0) else {
            return Found::Closed;
        };
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            let (next, found) = match word & STATE {
                _ if write && word & TO_WRITERS == 0 => return Found::Closed,
                SHARED => (word | name, Found::Entered),
                EXCLUSIVE => (word | name | LOCKED, Found::Locked),
                _ => return Found::Closed,
            };
            match self.0.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return found,
                Err(now) => word = now,
            }
        }
    }

    /// The visitor that found the page locked by itself has taken write access.
    pub fn take(&self) {
        let kept = self.0.load(Ordering::Relaxed) & (ALL | TO_WRITERS);
        self.0.store(SHARED | TAKEN | kept, Ordering::Release);
    }

    /// The visitor that found the page locked by itself could not take write access, and has read nothing.
    pub fn leave(&self) {
        let kept = self.0.load(Ordering::Relaxed) & TO_WRITERS;
        self.0.store(EXCLUSIVE | kept, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    fn door() -> Door {
        Door(AtomicU64::new(CLOSED))
    }

    #[test]
    fn nobody_enters_a_closed_page() {
        let door = door();
        assert_eq!(door.enter(1, false), Found::Closed);
        assert_eq!(door.close(), Visits::default());
    }

    #[test]
    fn names_are_found_once() {
        let door = door();
        door.open(false, false);
        assert_eq!([1, 0, 59, 1].map(|node| door.enter(node, false)), [Found::Entered; 4]);
        assert_eq!(door.close(), Visits { names: 1 << 59 | 3, taken: false });
        door.open(false, false);
        assert_eq!(door.close(), Visits::default());
    }

    #[test]
    fn nodes_without_room_for_their_names_stay_outside() {
        let door = door();
        door.open(true, false);
        assert_eq!([60, 61, 62, 64, 255].map(|node| door.enter(node, false)), [Found::Closed; 5]);
        assert_eq!(door.close(), Visits::default());
    }

    #[test]
    fn the_first_visitor_takes_write_access() {
        let door = door();
        door.open(true, false);
        assert_eq!(door.enter(2, false), Found::Locked);
        assert_eq!(door.enter(3, false), Found::Closed);
        door.take();
        assert_eq!(door.enter(3, false), Found::Entered);
        assert_eq!(door.close(), Visits { names: 0b1100, taken: true });
    }

    #[test]
    fn a_visitor_that_cannot_take_it_leaves_nothing_behind() {
        let door = door();
        door.open(true, false);
        assert_eq!(door.enter(2, false), Found::Locked);
        door.leave();
        assert_eq!(door.close(), Visits::default());
    }

    #[test]
    fn writers_enter_where_they_are_welcome() {
        let door = door();
        door.open(true, true);
        assert_eq!(door.enter(2, true), Found::Locked);
        door.leave();
        assert_eq!(door.enter(2, true), Found::Locked);
        door.take();
        assert_eq!(door.enter(3, true), Found::Entered);
        assert_eq!(door.close(), Visits { names: 0b1100, taken: true });
        for exclusive in [false, true] {
            door.open(exclusive, false);
            assert_eq!(door.enter(2, true), Found::Closed);
            assert_eq!(door.close(), Visits::default());
        }
    }

    /// Two visitors and a home that works on the page again and again: whoever reads is known to the home when it works, and
    /// nobody reads while it does.
    #[test]
    fn visitors_and_home_do_not_miss_each_other() {
        const ROUNDS: u32 = 20_000;
        let (door, page) = (door(), AtomicU32::new(0));
        door.open(true, false);
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
                        let found = door.enter(node, false);
                        match found {
                            Found::Closed => continue,
                            Found::Locked => door.take(),
                            Found::Entered => (),
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
                door.open(round % 2 == 0, false);
            }
        });
        let last = door.close();
        for node in 0..2 {
            let found = known[node].load(Ordering::Acquire) + (last.names >> node & 1) as u32;
            assert_eq!(found, entered[node].load(Ordering::Acquire), "node {node}");
        }
    }
}
