//! Reading the memory of other nodes of this computer without asking them.
//!
//! Each node hands the others three descriptors: its frames, a table with a [door](door::Door) for each page and a
//! [book](guest_book::GuestBook) for each visitor, and the userfaultfd that guards its program's view. With the last, a
//! visitor can take write access away from the home's threads; the kernel stops all processors of that node from writing
//! before the call returns. Where that costs more than it saves, the visitor writes down which pages it copies, and the home
//! looks at them when it releases.

mod door;
#[cfg(test)]
mod door_tests;
mod guest_book;
mod held;
mod primitive;

pub use door::{Found, Purpose, Visits, Writers};

use crate::MemoryError;
use crate::access::Uffd;
use crate::geometry::{Geometry, PAGE_SIZE};
use crate::mapping::{map_anywhere, map_at, map_read_only};
use crate::pages::{data_in, memfd, set_length};
use door::{Door, NAMES};
use gondwana_racing::RacingBytes;
use guest_book::GuestBook;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The memory of the first node would begin here. All nodes find it at the same place, so that memory which the kernel
/// places is at equal addresses too.
const NEIGHBOURS_BASE: usize = 0x4100_0000_0000;
/// Executables are from here on.
const NEIGHBOURS_END: usize = 0x5400_0000_0000;

/// Nodes with this number or a higher one neither read the memory of others nor have theirs read.
pub const MOST_NEIGHBOURS: u16 = NAMES as u16;

/// At most so many pages that the threads of their home may be writing get another home in one visit. Those after the first
/// come on suspicion, and if it was wrong they have to be taken back.
const MOST_TAKEN: u32 = 8;

/// Visits of at most so many pages leave the home's threads their write access. To take it is one system call for all of
/// them, which interrupts those threads; to compare a page with its copy later takes the home half a microsecond.
const MOST_QUIET: u32 = 16;

/// A table with a door for each page, and a book for each visitor, which other nodes map too.
pub struct Doors {
    file: OwnedFd,
    base: *mut Door,
    pages: u32,
}

// SAFETY: the table is shared memory that stays mapped, and doors are atomic.
unsafe impl Send for Doors {}

impl Doors {
    /// All closed.
    pub fn new(pages: u32) -> Result<Self, MemoryError> {
        let file = memfd(c"gondwana-doors")?;
        set_length(&file, bytes_of_doors(pages))?;
        let base = map_anywhere(bytes_of_doors(pages), file.as_fd())?.cast();
        Ok(Self { file, base, pages })
    }

    /// Closes the door of a page. `held_by` hears which node holds the page, if one does for long.
    pub fn close(&self, page: u32, held_by: &mut dyn FnMut(u16)) -> Visits {
        self.of(page).close(&mut primitive::rest, held_by)
    }

    /// The door of a page.
    pub fn of(&self, page: u32) -> &Door {
        assert!(page < self.pages);
        // SAFETY: in bounds; zero is a closed door, and doors are atomic.
        unsafe { &*self.base.add(page as usize) }
    }

    /// The book in which a visitor writes. Nodes that have no name have none.
    fn book(&self, visitor: u16) -> Option<&GuestBook> {
        if u32::from(visitor) >= NAMES {
            return None;
        }
        // SAFETY: the books follow the doors, each in a page of its own; zero is an empty book, and books are atomic.
        Some(unsafe {
            let books = self.base.cast::<u8>().add(bytes_of_table(self.pages));
            &*books.add(usize::from(visitor) * PAGE_SIZE).cast()
        })
    }

    /// Tells of the pages that visitors among the first `nodes` nodes have written down since this was last asked. The
    /// node's threads have written what it is about to release.
    pub fn guests(&self, nodes: u16, mut tell: impl FnMut(u32)) {
        GuestBook::open();
        for book in (0..nodes).map_while(|visitor| self.book(visitor)) {
            book.read(&mut tell);
        }
    }

    /// Tells of the pages among these that other nodes have read since they were opened, with a bit for each of those nodes.
    pub fn visited(&self, pages: Range<u32>, mut tell: impl FnMut(u32, u64)) {
        let pages = pages.start..pages.end.min(self.pages);
        // Doors that were never used are holes in the table, which looking at them would fill.
        let offset = |page: u32| page as usize * size_of::<Door>();
        for used in data_in(&self.file, offset(pages.start), offset(pages.end)) {
            for page in (used.start / size_of::<Door>()) as u32..(used.end / size_of::<Door>()) as u32 {
                let names = self.of(page).names();
                if names != 0 {
                    tell(page, names);
                }
            }
        }
    }

    /// What other nodes need to use the doors.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(debug_assertions)]
static WHILE_HELD: std::sync::OnceLock<fn()> = std::sync::OnceLock::new();

/// For tests: has this process call a function each time that it holds pages of another node.
#[cfg(debug_assertions)]
pub fn while_held(call: fn()) {
    WHILE_HELD.get_or_init(|| call);
}

/// Another node of this computer, whose memory is mapped here.
pub struct Neighbour {
    frames: usize,
    doors: Doors,
    faults: Uffd,
    geometry: Geometry,
}

impl Neighbour {
    /// Maps the memory of the node with this number, which has handed over `frames`, `doors` and `faults`, in this order
    /// (see [`Pages::offer`](crate::Pages::offer)).
    ///
    /// # Errors
    /// If these are of another length than here, there is no room among the addresses, or the kernel refuses.
    pub fn new(number: u16, handed: [OwnedFd; 3], geometry: &Geometry) -> Result<Self, MemoryError> {
        let what = "what another node has handed over";
        let [frames, doors, faults] = handed;
        let pages = geometry.pages();
        let bytes = pages as usize * PAGE_SIZE;
        for (file, length) in [(&frames, bytes), (&doors, bytes_of_doors(pages))] {
            if length_of(file).map_err(|source| MemoryError::System { what, source })? != length as u64 {
                return Err(MemoryError::System { what, source: io::ErrorKind::InvalidData.into() });
            }
        }
        let room = bytes + bytes_of_doors(pages);
        let base = NEIGHBOURS_BASE + usize::from(number) * room;
        if base + room > NEIGHBOURS_END {
            return Err(MemoryError::Occupied { base, bytes: room });
        }
        map_read_only(base, bytes, frames.as_fd())?;
        map_at(base + bytes, bytes_of_doors(pages), doors.as_fd(), 0)?;
        Ok(Self {
            frames: base,
            doors: Doors { file: doors, base: (base + bytes) as *mut Door, pages },
            faults: Uffd::handed(faults),
            geometry: geometry.clone(),
        })
    }

    /// Leaves the name of node `me` at the doors of the pages from `first` on, at most `most`, as far as they are open for
    /// its `purpose`, and takes the write access of that node's threads where they have it. Returns how many pages may be
    /// read.
    pub fn visit(&self, me: u16, first: u32, most: u32, purpose: Purpose) -> u32 {
        let mut end = first + most.min(self.geometry.consecutive(first, first + most));
        let mut most_writable = if purpose == Purpose::Home { MOST_TAKEN } else { most };
        let book = self.doors.book(me).filter(|book| most <= MOST_QUIET && most <= book.room());
        // The first of the pages that were found locked and are still, and whether any of them can be written.
        let mut locked = None;
        let mut page = first;
        while page < end {
            let found = self.doors.of(page).enter(me, purpose, book.is_some());
            if let (Found::BesideWriters, Some(book)) = (found, book) {
                book.write(page);
            }
            locked = match (found, locked) {
                (Found::Closed, _) => break,
                (Found::Entered | Found::BesideWriters, Some(run)) => {
                    if !self.take(run, page, purpose) {
                        return run.0 - first;
                    }
                    None
                }
                (Found::Entered | Found::BesideWriters, None) => None,
                (Found::Locked { writable }, None) => Some((page, writable)),
                (Found::Locked { writable }, Some((from, any))) => Some((from, any || writable)),
            };
            page += 1;
            most_writable -= u32::from(found == Found::Locked { writable: true });
            if most_writable == 0 {
                end = page;
            }
        }
        match locked {
            Some(run) if !self.take(run, page, purpose) => run.0 - first,
            _ => page - first,
        }
    }

    /// Takes write access to the pages until `end` that this node has found locked. False if the kernel refuses: then they
    /// are left.
    fn take(&self, (from, writable): (u32, bool), end: u32, purpose: Purpose) -> bool {
        #[cfg(debug_assertions)]
        if let Some(call) = WHILE_HELD.get() {
            call();
        }
        let base = self.geometry.address_of(from);
        let taken = !writable || self.faults.write_protect(base, end - from, true).is_ok();
        for page in from..end {
            let door = self.doors.of(page);
            if taken { door.take(purpose) } else { door.leave() }
        }
        taken
    }

    /// The frames of `count` pages from `first` on, which threads of that node may be writing.
    pub fn frames(&self, first: u32, count: u32) -> RacingBytes<'static> {
        assert!(u64::from(first) + u64::from(count) <= u64::from(self.geometry.pages()));
        let start = self.frames + first as usize * PAGE_SIZE;
        // SAFETY: the pages exist and stay mapped as long as the process.
        unsafe { RacingBytes::new(start as *const u8, count as usize * PAGE_SIZE) }
    }
}

/// The length of the table of doors, after which the books begin.
fn bytes_of_table(pages: u32) -> usize {
    (pages as usize * size_of::<Door>()).next_multiple_of(PAGE_SIZE)
}

fn bytes_of_doors(pages: u32) -> usize {
    const { assert!(size_of::<GuestBook>() <= PAGE_SIZE) }
    bytes_of_table(pages) + NAMES as usize * PAGE_SIZE
}

fn length_of(file: &OwnedFd) -> io::Result<u64> {
    Ok(std::fs::File::from(file.try_clone()?).metadata()?.len())
}
