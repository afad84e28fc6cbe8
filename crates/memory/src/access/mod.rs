//! The protection of the application view, page by page.
//!
//! Two mechanisms: userfaultfd, and mprotect where the kernel or a container refuses userfaultfd.

mod mprotect;
mod states;
mod uffd;

use crate::MemoryError;
use crate::geometry::{Geometry, PAGE_SIZE};
use gondwana_page::{Access, whole_pages};
use gondwana_racing::RacingBytes;
use serde::{Deserialize, Serialize};
use states::PageStates;
use std::ops::Range;
use std::os::fd::BorrowedFd;

pub(crate) use uffd::Uffd;
pub use uffd::{Missing, probe as probe_userfaultfd};

/// How faults are raised and resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mechanism {
    /// userfaultfd in SIGBUS mode.
    Userfaultfd,
    /// mprotect and SIGSEGV, for places that refuse userfaultfd.
    Mprotect,
}

enum Backend {
    Uffd(uffd::Uffd),
    Mprotect,
}

/// Ranges of at least this many pages become writable by remapping. Ending the write protection in place does not
/// make the page-table entries writable: the first write of each page is one more minor fault of 1 us. Remapping 128
/// pages takes 0.55 us each; remapping one page takes 2.5 us instead of 1.8.
const REMAPPED: u32 = 8;

/// The protection of every shared page, kept beside the kernel's so that a change is one system call for each
/// run of pages in the same state.
pub(crate) struct Protection {
    backend: Backend,
    geometry: Geometry,
    now: PageStates,
}

/// The recorded state of a page: its access, whether the memfd holds a page for it, whether the application view
/// shows another mapping in its place, which may be the common page, and the limit that the program has set by mprotect.
mod record {
    pub(super) const ACCESS: u8 = 3;
    pub(super) const POPULATED: u8 = 4;
    pub(super) const EXCLUDED: u8 = 8;
    pub(super) const UNWRITABLE: u8 = 16;
    pub(super) const UNREADABLE: u8 = 32;
    pub(super) const EXECUTABLE: u8 = 64;
    pub(super) const COMMON: u8 = 128;
    /// The application view does not show the memfd here.
    pub(super) const ELSEWHERE: u8 = EXCLUDED | COMMON;
}

impl Protection {
    /// Takes charge of all pages; the program can reach none of them afterwards.
    pub(crate) fn new(geometry: Geometry, mechanism: Mechanism) -> Result<Self, MemoryError> {
        let now = PageStates::new(geometry.pages() as usize)?;
        let backend = match mechanism {
            Mechanism::Userfaultfd => {
                let uffd = uffd::Uffd::open()?;
                for segment in geometry.segments() {
                    uffd.register(segment.base, segment.pages)?;
                }
                Backend::Uffd(uffd)
            }
            Mechanism::Mprotect => {
                for segment in geometry.segments() {
                    mprotect::set(segment.base, segment.pages, Access::None, false)?;
                }
                Backend::Mprotect
            }
        };
        Ok(Self { backend, geometry, now })
    }

    /// The present access of the program to a page.
    pub(crate) fn access(&self, page: u32) -> Access {
        match self.now.get(page) {
            state if state & record::EXCLUDED != 0 => Access::Write,
            state => access_in(state),
        }
    }

    /// The descriptor with which another process can take write access from this one; `None` if there is none.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.backend {
            Backend::Uffd(uffd) => Some(uffd.descriptor()),
            Backend::Mprotect => None,
        }
    }

    /// Another process has taken write access to a page.
    pub(crate) fn taken(&mut self, page: u32) {
        let state = self.now.get(page);
        if access_in(state) == Access::Write {
            self.now.set(page, state & !record::ACCESS | Access::Read as u8);
        }
    }

    /// How many pages from `first` on, before `end`, the memfd holds nothing for and the program cannot reach.
    pub(crate) fn fresh_run(&self, first: u32, end: u32) -> u32 {
        let end = first + self.geometry.consecutive(first, end);
        leading(first..end, |page| self.now.get(page) == 0)
    }

    /// Fills pages that the memfd does not hold and the program cannot access from `source`, which begins with page
    /// `first`, and gives the program `access`. Returns for how many leading pages that was possible.
    pub(crate) fn copy_in(&mut self, first: u32, source: RacingBytes<'_>, access: Access) -> u32 {
        let Backend::Uffd(uffd) = &self.backend else { return 0 };
        let fresh = self.fresh_run(first, first + whole_pages(source.len()));
        if fresh == 0 || access == Access::None {
            return 0;
        }
        let read_only = access == Access::Read;
        let source = source.part(0..fresh as usize * PAGE_SIZE);
        let copied = uffd.copy(self.geometry.address_of(first), source, read_only);
        for page in first..first + copied {
            self.now.set(page, record::POPULATED | access as u8);
        }
        copied
    }

    /// Excludes these pages of the application view: the mapping there stays as it is.
    pub(crate) fn exclude(&mut self, first: u32, count: u32) {
        for page in first..first + count {
            self.now.set(page, self.now.get(page) | record::EXCLUDED);
        }
    }

    /// Includes excluded pages, over which the application view has just been mapped again.
    pub(crate) fn include(&mut self, first: u32, count: u32) -> Result<(), MemoryError> {
        if let Backend::Uffd(uffd) = &self.backend {
            uffd.register(self.geometry.address_of(first), count)?;
        }
        for page in first..first + count {
            let state = self.now.get(page) & !record::EXCLUDED;
            self.now.set(page, state);
            // With userfaultfd a page that nothing has been put into yet faults, and is refreshed then.
            if let (Backend::Mprotect, 0) = (&self.backend, state & record::COMMON) {
                let access = access_in(state).min(limit_in(state));
                mprotect::set(self.geometry.address_of(page), 1, access, is_executable(state))?;
            }
        }
        Ok(())
    }

    /// The memfd holds these pages now.
    pub(crate) fn populated(&mut self, first: u32, count: u32) {
        for page in first..first + count {
            self.now.set(page, self.now.get(page) | record::POPULATED);
        }
    }

    /// The number of pages from `first` on, before `end`, that the memfd holds.
    pub(crate) fn populated_run(&self, first: u32, end: u32) -> u32 {
        leading(first..end, |page| self.now.get(page) & record::POPULATED != 0)
    }

    /// What the program may do with a page as far as it has limited that itself, and whether it may execute it.
    pub(crate) fn limit_of(&self, page: u32) -> (Access, bool) {
        let state = self.now.get(page);
        (limit_in(state), is_executable(state))
    }

    /// How many pages from `first` on, before `end`, have the same [`limit`](Protection::limit_of) and are
    /// [included](Protection::is_included) or not, at consecutive addresses.
    pub(crate) fn alike(&self, first: u32, end: u32) -> u32 {
        let end = first + self.geometry.consecutive(first, end);
        let like = |page| (self.limit_of(page), self.is_included(page));
        leading(first..end, |page| like(page) == like(first))
    }

    /// True if the page is not excluded.
    pub(crate) fn is_included(&self, page: u32) -> bool {
        self.now.get(page) & record::EXCLUDED == 0
    }

    /// True if the program uses a common page here, unless that is excluded.
    pub(crate) fn is_common(&self, page: u32) -> bool {
        self.now.get(page) & record::COMMON != 0
    }

    /// Gives memory to common pages, which the application view shows already, at once: that takes half as long as a fault for each.
    pub(crate) fn fill_common(&self, pages: Range<u32>) -> Result<(), MemoryError> {
        let Backend::Uffd(uffd) = &self.backend else { return Ok(()) };
        let mut start = pages.start;
        while start < pages.end {
            let run = self.alike(start, pages.end);
            if self.is_included(start) && limit_in(self.now.get(start)) == Access::Write {
                uffd.populate_others(self.geometry.address_of(start), run)?;
            }
            start += run;
        }
        Ok(())
    }

    /// The application view shows the common pages here from now on, which the program may access as it likes.
    pub(crate) fn becomes_common(&mut self, first: u32, count: u32) {
        for page in first..first + count {
            let state = self.now.get(page) & !record::ACCESS;
            self.now.set(page, state | record::COMMON | Access::Write as u8);
        }
    }

    /// The program limits its own access to these pages to `limit`, and may or may not execute them. False if the kernel's mprotect enforces it:
    /// userfaultfd works with any protection of the mapping.
    pub(crate) fn limit(
        &mut self,
        first: u32,
        count: u32,
        limit: Access,
        executable: bool,
    ) -> Result<bool, MemoryError> {
        let limits = match limit {
            Access::None => record::UNREADABLE,
            Access::Read => record::UNWRITABLE,
            Access::Write => 0,
        } | if executable { record::EXECUTABLE } else { 0 };
        self.now.limit(first..first + count, limits);
        let Backend::Mprotect = &self.backend else { return Ok(false) };
        let mut start = first;
        while start < first + count {
            let run = self.run(start, first + count);
            let state = self.now.get(start);
            if state & record::EXCLUDED == 0 {
                let access = access_in(state).min(limit);
                mprotect::set(self.geometry.address_of(start), run, access, executable)?;
            }
            start += run;
        }
        Ok(true)
    }

    /// True if the program's own limit forbids an access that was just refused by SIGSEGV.
    pub(crate) fn is_forbidden(&self, page: u32, access: Access) -> bool {
        match &self.backend {
            Backend::Uffd(_) => self.access(page) >= access,
            Backend::Mprotect => {
                let state = self.now.get(page);
                state & record::EXCLUDED != 0 || access > limit_in(state)
            }
        }
    }

    /// How many pages from `start` on are in the same state, at consecutive addresses.
    fn run(&self, start: u32, end: u32) -> u32 {
        let state = self.now.get(start);
        let end = start + self.geometry.consecutive(start, end);
        leading(start + 1..end, |page| self.now.get(page) == state) + 1
    }

    /// Sets the program's access to `count` pages from `first` on.
    pub(crate) fn set(&mut self, first: u32, count: u32, access: Access) -> Result<(), MemoryError> {
        let mut start = first;
        let end = first + count;
        while start < end {
            let run = self.run(start, end);
            self.set_run(start, run, access)?;
            start += run;
        }
        Ok(())
    }

    /// Changes a run of pages that are all in the same state.
    fn set_run(&mut self, first: u32, count: u32, access: Access) -> Result<(), MemoryError> {
        let state = self.now.get(first);
        let before = access_in(state);
        if before == access {
            return Ok(());
        }
        let base = self.geometry.address_of(first);
        match &self.backend {
            _ if state & record::ELSEWHERE != 0 => {}
            Backend::Mprotect => {
                mprotect::set(base, count, access.min(limit_in(state)), is_executable(state))?
            }
            Backend::Uffd(uffd) => match (before, access) {
                (_, Access::None) => uffd.zap(base, count)?,
                (Access::None, Access::Write) if state & record::POPULATED == 0 => {
                    uffd.populate(base, count)?
                }
                (Access::None, _) => uffd.map(base, count, access == Access::Read)?,
                (Access::Read, Access::Write) if count >= REMAPPED => {
                    uffd.zap(base, count)?;
                    uffd.map(base, count, false)?;
                }
                (Access::Read, Access::Write) => uffd.write_protect(base, count, false)?,
                (Access::Write, Access::Read) => uffd.write_protect(base, count, true)?,
                (Access::Read, Access::Read) | (Access::Write, Access::Write) => {}
            },
        }
        let touched = if access == Access::None { 0 } else { record::POPULATED };
        let kept = state & !record::ACCESS | if state & record::EXCLUDED == 0 { touched } else { 0 };
        for page in first..first + count {
            self.now.set(page, kept | access as u8);
        }
        Ok(())
    }

    /// Sets the kernel's mapping of one page to the recorded state again: the kernel may have dropped it.
    pub(crate) fn refresh(&mut self, page: u32) -> Result<(), MemoryError> {
        let state = self.now.get(page);
        let access = access_in(state);
        if let (Backend::Uffd(uffd), Access::Read | Access::Write, 0) =
            (&self.backend, access, state & record::ELSEWHERE)
        {
            let base = self.geometry.address_of(page);
            uffd.map(base, 1, access == Access::Read)?;
            uffd.write_protect(base, 1, access == Access::Read)?;
        }
        Ok(())
    }
}

/// How many of the first of these pages are `like` that.
fn leading(pages: Range<u32>, like: impl Fn(u32) -> bool) -> u32 {
    let Range { start, end } = pages;
    pages.into_iter().find(|&page| !like(page)).unwrap_or(end.max(start)) - start
}

/// The access that the record of a page holds.
fn access_in(state: u8) -> Access {
    match state & record::ACCESS {
        0 => Access::None,
        1 => Access::Read,
        _ => Access::Write,
    }
}

/// True if the program may execute a page.
fn is_executable(state: u8) -> bool {
    state & record::EXECUTABLE != 0
}

/// The program's own limit.
fn limit_in(state: u8) -> Access {
    if state & record::UNREADABLE != 0 {
        Access::None
    } else if state & record::UNWRITABLE != 0 {
        Access::Read
    } else {
        Access::Write
    }
}
