//! The pages of this node through the runtime's own view, which never faults.

mod common;
mod private_copy;

use crate::MemoryError;
use crate::access::{Mechanism, Protection};
use crate::common_frames::CommonFrames;
use crate::diff;
use crate::geometry::{Geometry, PAGE_SIZE, PageBytes, RUNTIME_BASE};
use crate::mapping::{map_at, map_over, read_ahead, unmap};
use crate::memfd::{memfd, next_data, set_length};
use crate::peer::Peer;
use crate::program_data::{contents_of, low_is_free};
use crate::remote::{LoggedReads, RemoteAccessTable, RemoteMemory, TableLayout, Withdrawal};
use crate::twins::Twins;
use gondwana_elf::DataSegment;
use gondwana_page::{Access, RemoteAccess, Writers, whole_pages};
use gondwana_racing::{RacingBytes, RacingBytesMut};
use gondwana_topology::NodeSet;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;

/// All shared pages of this node: one memfd, mapped for the program and for the runtime.
///
/// Threads of the program read and write the same bytes at any time, so that contents are [`RacingBytes`]. A copy is
/// correct in all bytes that no thread is writing meanwhile.
pub struct Pages {
    geometry: Geometry,
    protection: Protection,
    twins: Twins,
    file: OwnedFd,
    /// The table in which other nodes claim pages of this one, if they may.
    table: Option<RemoteAccessTable>,
    /// Pages of the span in whose place the application view has another mapping.
    excluded: Vec<Range<u32>>,
    /// Where common pages are, if there may be any.
    common: Option<CommonFrames>,
}

impl Pages {
    /// Reserves the span, and [`LOW`](crate::LOW) if the program does not lie there, and lays shared memory over the program's data
    /// segments. Their contents stay if
    /// `keeps_data`, which one node of a run does; pages without frames (not in [`Pages::next_used`]) stay without.
    /// The program can access no shared page until [`Pages::protect`] allows it. `file` comes from [`empty_frames`].
    ///
    /// # Safety
    /// No other thread runs yet, and the data segments are the ones of this process.
    ///
    /// # Errors
    /// If addresses are taken or the kernel refuses.
    pub unsafe fn new(
        span_pages: u32,
        data: &[DataSegment],
        keeps_data: bool,
        mechanism: Mechanism,
        file: OwnedFd,
    ) -> Result<Self, MemoryError> {
        let ranges: Vec<_> = data.iter().map(|segment| (segment.base, segment.pages)).collect();
        let mut geometry = Geometry::new(span_pages, &ranges);
        if low_is_free(data) {
            geometry = geometry.with_low();
        }
        let bytes = geometry.pages() as usize * PAGE_SIZE;
        set_length(&file, bytes)?;
        map_at(RUNTIME_BASE, bytes, file.as_fd(), 0)?;
        let span = geometry.span();
        map_at(span.base, span.pages as usize * PAGE_SIZE, file.as_fd(), 0)?;
        if let Some(low) = geometry.low() {
            map_at(low.base, low.pages as usize * PAGE_SIZE, file.as_fd(), low.first as usize * PAGE_SIZE)?;
        }
        let contents = if keeps_data { contents_of(data, geometry.overlays())? } else { vec![] };
        for pages in &contents {
            let source = geometry.address_of(pages.start) as *const u8;
            // SAFETY: the caller promised that these are this process's data segments and that no other thread runs.
            unsafe { std::ptr::copy_nonoverlapping(source, runtime(pages.start), pages.len() * PAGE_SIZE) };
        }
        for segment in geometry.overlays() {
            let (length, offset) = (segment.pages as usize * PAGE_SIZE, segment.first as usize * PAGE_SIZE);
            // SAFETY: as above. The new mapping has the contents of the old one, or the program cannot reach it before
            // the node that keeps them has sent them.
            unsafe { map_over(segment.base, length, file.as_fd(), offset)? };
        }
        let mut protection = Protection::new(geometry.clone(), mechanism)?;
        for pages in &contents {
            protection.populated(pages.start, pages.end - pages.start);
        }
        let twins = Twins::new(geometry.pages() as usize)?;
        Ok(Self { geometry, protection, twins, file, table: None, excluded: vec![], common: None })
    }

    /// Which addresses are shared.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Sets the program's access to `count` pages from `first` on.
    ///
    /// # Errors
    /// If the kernel refuses: the node cannot go on.
    pub fn protect(&mut self, first: u32, count: u32, access: Access) -> Result<(), MemoryError> {
        self.protection.set(first, count, access)
    }

    /// The present access of the program to a page.
    #[must_use]
    pub fn access(&self, page: u32) -> Access {
        self.protection.access(page)
    }

    /// The program limits its own access to `count` pages from `first` on to `limit`. False if the caller must
    /// enforce that by mprotect on the application view.
    ///
    /// # Errors
    /// If the kernel refuses: the node cannot go on.
    pub fn limit(
        &mut self,
        first: u32,
        count: u32,
        limit: Access,
        executable: bool,
    ) -> Result<bool, MemoryError> {
        self.protection.limit(first, count, limit, executable)
    }

    /// True if the program's own limit forbids an access that the kernel has just refused by SIGSEGV.
    #[must_use]
    pub fn is_forbidden(&self, page: u32, access: Access) -> bool {
        self.protection.is_forbidden(page, access)
    }

    /// Restores the mapping of a page that the kernel may have dropped.
    ///
    /// # Errors
    /// If the kernel refuses: the node cannot go on.
    pub fn refresh(&mut self, page: u32) -> Result<(), MemoryError> {
        self.protection.refresh(page)
    }

    /// Keeps a pristine copy of a page.
    ///
    /// # Panics
    /// If it has one already.
    pub fn make_twin(&mut self, page: u32) {
        self.contents(page, 1).copy_to(self.twins.take(page));
    }

    /// A page's twin.
    pub fn twin(&mut self, page: u32) -> &[u8] {
        &self.twins.of(page)[..]
    }

    /// Forgets a page's twin.
    pub fn drop_twin(&mut self, page: u32) {
        self.twins.give_back(page);
    }

    /// Appends the bytes in which a page differs from its twin; returns how many there are.
    pub fn diff(&mut self, page: u32, out: &mut Vec<u8>) -> usize {
        let contents = self.contents(page, 1);
        diff::encode(contents, self.twins.of(page), out)
    }

    /// True if a page differs from its twin now.
    pub fn is_written(&mut self, page: u32) -> bool {
        !diff::is_same(self.contents(page, 1), (&*self.twins.of(page)).into())
    }

    /// As [`Pages::diff`] of a page that threads may be writing; also applies the diff to the twin.
    pub fn diff_and_keep(&mut self, page: u32, out: &mut Vec<u8>) -> usize {
        let contents = self.contents(page, 1);
        diff::encode_and_refresh(contents, self.twins.of(page), out)
    }

    /// Copies a page, which threads may be writing, to its twin; true if they differed.
    pub fn renew_twin(&mut self, page: u32) -> bool {
        let contents = self.contents(page, 1);
        diff::refresh(contents, self.twins.of(page))
    }

    /// As [`Pages::patch`], and the same for the page's twin.
    ///
    /// # Errors
    /// If the diff is malformed.
    pub fn patch_with_twin(&mut self, page: u32, bytes: &[u8]) -> Result<(), diff::Malformed> {
        self.patch(page, bytes)?;
        diff::apply(bytes, self.twins.of(page).into())
    }

    /// Writes the bytes of a diff, and no others.
    ///
    /// # Errors
    /// If the diff is malformed.
    pub fn patch(&mut self, page: u32, bytes: &[u8]) -> Result<(), diff::Malformed> {
        if self.protection.is_common(page) {
            return self.patch_common(page, bytes);
        }
        self.protection.populated(page, 1);
        diff::apply(bytes, self.frames(page, 1))
    }

    /// Two-way diffing: applies the changes of other nodes and keeps those of local threads.
    pub fn merge(&mut self, page: u32, incoming: &PageBytes) {
        self.merge_racing(page, incoming.into());
    }

    fn merge_racing(&mut self, page: u32, incoming: RacingBytes<'_>) {
        let frame = self.frames(page, 1);
        diff::merge(frame, self.twins.of(page), incoming);
    }

    /// Overwrites whole pages, which the program cannot access. Afterwards it may have up to `access` to some of
    /// them.
    ///
    /// # Panics
    /// If `incoming` is not a whole number of pages or runs past the last page.
    pub fn install(&mut self, first: u32, incoming: &[u8], access: Access) {
        assert!(incoming.len().is_multiple_of(PAGE_SIZE));
        let count = whole_pages(incoming.len());
        assert!(first + count <= self.geometry.pages());
        let fresh = self.protection.copy_in(first, incoming.into(), access);
        let (first, rest) = (first + fresh, &incoming[fresh as usize * PAGE_SIZE..]);
        let known = self.protection.populated_run(first, first + count - fresh);
        read_ahead(self.contents(first, known));
        self.frames(first, count - fresh).copy_from(rest.into());
        self.protection.populated(first, count - fresh);
    }

    /// Fills whole pages with zeros.
    pub fn clear(&mut self, first: u32, count: u32) {
        self.frames(first, count).clear();
        self.protection.populated(first, count);
    }

    /// The first run of these pages with frames on this node or common ones, including short gaps. All pages of the range before it
    /// read as zero here.
    #[must_use]
    pub fn next_used(&self, pages: Range<u32>) -> Option<Range<u32>> {
        let common = self.common.as_ref().and_then(|common| common.next_used(pages.clone()));
        self.next_used_here(pages).into_iter().chain(common).min_by_key(|run| run.start)
    }

    /// The same without common pages, of which each node can tell.
    #[must_use]
    pub fn next_used_here(&self, pages: Range<u32>) -> Option<Range<u32>> {
        /// Gaps of up to this many bytes are included in a run.
        const GAP: usize = 32 * PAGE_SIZE;
        let end = pages.end as usize * PAGE_SIZE;
        let mut run = next_data(&self.file, pages.start as usize * PAGE_SIZE, end)?;
        while let Some(more) = next_data(&self.file, run.end, end.min(run.end + GAP)) {
            run.end = more.end.min(end);
        }
        Some(whole_pages(run.start)..whole_pages(run.end))
    }

    /// Lets same-host peers, of a run of `nodes` nodes, read exposed pages ([`Pages::expose`]). False without
    /// userfaultfd: peers could not take write access.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn admit_peers(&mut self, nodes: u16) -> Result<bool, MemoryError> {
        let possible = self.protection.descriptor().is_some();
        if possible {
            self.table = Some(RemoteAccessTable::new(TableLayout::new(self.geometry.pages(), nodes))?);
        }
        Ok(possible)
    }

    /// The descriptors for [`Peer::new`](crate::Peer::new) on another node, if this node admits peers.
    #[must_use]
    pub fn handover(&self) -> Option<[BorrowedFd<'_>; Peer::DESCRIPTORS]> {
        Some([self.file.as_fd(), self.table.as_ref()?.file(), self.protection.descriptor()?])
    }

    /// Lets other nodes copy a page that is withdrawn, or claim `more`.
    pub fn expose(&mut self, page: u32, writers: Writers, more: Option<RemoteAccess>) {
        if let Some(table) = &self.table {
            table.expose(page, writers, more);
        }
    }

    /// Withdraws a page from other nodes; returns which have claimed it. The home waits for a node that is just
    /// taking write access; if that takes long, `held_by` is called once with its number.
    pub fn withdraw(&mut self, page: u32, mut held_by: impl FnMut(u16)) -> Withdrawal {
        let table = self.table.as_ref();
        let found = table.map_or_else(Withdrawal::default, |table| table.withdraw(page, &mut held_by));
        if found.taken {
            self.protection.taken(page);
        }
        found
    }

    /// Calls `found` for each of these pages that other nodes have read since it was exposed, with those nodes.
    /// [`Pages::withdraw`] will return at least these.
    pub fn readers(&self, pages: Range<u32>, found: impl FnMut(u32, NodeSet)) {
        if let Some(table) = &self.table {
            table.readers(pages, found);
        }
    }

    /// Calls `found` for each page that other nodes have copied while the program could write it. Copies of all other
    /// pages contain all writes of the program so far.
    pub fn logged_reads(&self, found: impl FnMut(u32)) {
        if let Some(table) = &self.table {
            table.logged(found);
        }
    }

    /// Tells whether [`Pages::logged_reads`] would find anything; `None` if no node reads this one's pages.
    #[must_use]
    pub fn unseen_reads(&self) -> Option<LoggedReads> {
        self.table.as_ref().map(RemoteAccessTable::logged_reads)
    }

    /// Calls `found` for each page that other nodes have posted a notice about since the last call
    /// ([`post_notice`](crate::post_notice)), with the node that wrote it.
    pub fn posted_notices(&self, found: impl FnMut(u16, u32)) {
        if let Some(table) = &self.table {
            table.notices(found);
        }
    }

    /// Overwrites whole pages, which the program cannot access, with those of another node, which this one has
    /// claimed. Afterwards the program may have up to `access` to some of them.
    pub fn install_from(&mut self, home: &dyn RemoteMemory, first: u32, count: u32, access: Access) {
        let end = first + count;
        let mut page = first;
        while page < end {
            let fresh = self.protection.fresh_run(page, end);
            if let Some(frames) = home.frames(page..page + fresh).filter(|_| fresh > 0) {
                // Pages that this node has copied before are already mapped.
                read_ahead(frames);
                page += self.protection.copy_in(page, frames, access);
            }
            if page < end {
                let known = self.protection.populated_run(page, end).max(1);
                read_ahead(self.contents(page, known));
                home.read(page, self.frames(page, known));
                self.protection.populated(page, known);
                page += known;
            }
        }
    }

    /// [`Pages::merge`] with the page of another node, which this one has claimed.
    pub fn merge_from(&mut self, home: &dyn RemoteMemory, page: u32) {
        if let Some(frame) = home.frames(page..page + 1) {
            return self.merge_racing(page, frame);
        }
        let mut incoming: PageBytes = [0; PAGE_SIZE];
        home.read(page, (&mut incoming).into());
        self.merge(page, &incoming);
    }

    /// True if a page equals that of another node. Both may change meanwhile.
    #[must_use]
    pub fn is_same(&self, other: &dyn RemoteMemory, page: u32) -> bool {
        let own = self.contents(page, 1);
        if let Some(frame) = other.frames(page..page + 1) {
            return diff::is_same(own, frame);
        }
        let mut copy: PageBytes = [0; PAGE_SIZE];
        other.read(page, (&mut copy).into());
        diff::is_same(own, (&copy).into())
    }

    /// The contents of `count` pages from `first` on, which the program may be writing.
    #[must_use]
    pub fn contents(&self, first: u32, count: u32) -> RacingBytes<'static> {
        self.frames(first, count).readable()
    }

    /// The frames of `count` pages from `first` on, which the program and peers may be using.
    fn frames(&self, first: u32, count: u32) -> RacingBytesMut<'static> {
        assert!(u64::from(first) + u64::from(count) <= u64::from(self.geometry.pages()));
        // SAFETY: the pages exist and stay mapped as long as the process, readable and writable.
        unsafe { RacingBytesMut::new(runtime(first), count as usize * PAGE_SIZE) }
    }

    /// The contents of pages as words that threads of the program may write meanwhile. The reference outlives the
    /// lock.
    #[must_use]
    pub fn words(&self, pages: Range<u32>) -> &'static [AtomicU64] {
        assert!(pages.start <= pages.end && pages.end <= self.geometry.pages());
        let count = (pages.end - pages.start) as usize * PAGE_SIZE / size_of::<u64>();
        // SAFETY: the pages exist and stay mapped as long as the process; atomic words may change at any time.
        unsafe { std::slice::from_raw_parts(runtime(pages.start).cast(), count) }
    }

    /// Leaves a hole in the program's view, for something that is to be private to this node. The pages go on
    /// existing for the runtime.
    ///
    /// # Safety
    /// The program does not use the pages.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub unsafe fn exclude(&mut self, pages: Range<u32>) -> Result<(), MemoryError> {
        let count = pages.end - pages.start;
        self.protection.exclude(pages.start, count);
        // SAFETY: the caller promised that nobody uses what is unmapped here.
        unsafe { unmap(self.geometry.address_of(pages.start), count as usize * PAGE_SIZE)? };
        self.excluded.push(pages);
        Ok(())
    }

    /// Maps excluded pages into the application view again, in place of the present mapping.
    ///
    /// # Safety
    /// Nobody uses what is there now.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub unsafe fn include(&mut self, pages: Range<u32>) -> Result<(), MemoryError> {
        let count = pages.end - pages.start;
        let (base, offset) = (self.geometry.address_of(pages.start), pages.start as usize * PAGE_SIZE);
        // SAFETY: the caller's promise.
        unsafe { map_over(base, count as usize * PAGE_SIZE, self.file.as_fd(), offset)? };
        self.protection.include(pages.start, count)?;
        self.show_common(pages.clone())?;
        let parts = self
            .excluded
            .iter()
            .flat_map(|part| [part.start..part.end.min(pages.start), part.start.max(pages.end)..part.end]);
        self.excluded = parts.filter(|part| !part.is_empty()).collect();
        Ok(())
    }

    /// A range without the excluded pages.
    #[must_use]
    pub fn included(&self, pages: Range<u32>) -> Vec<Range<u32>> {
        let mut excluded = self.excluded.clone();
        excluded.sort_unstable_by_key(|part| part.start);
        let mut parts = vec![];
        let mut at = pages.start;
        for part in excluded.iter().filter(|part| pages.contains(&part.start)) {
            parts.push(at..part.start);
            at = part.end;
        }
        parts.push(at..pages.end);
        parts.retain(|part| !part.is_empty());
        parts
    }
}

/// Where the runtime sees a page.
pub(crate) fn runtime(page: u32) -> *mut u8 {
    (RUNTIME_BASE + page as usize * PAGE_SIZE) as *mut u8
}

/// A file in memory for the contents of one node's pages, without any yet.
///
/// The process that closes the last descriptor or mapping waits until the kernel has freed the pages.
///
/// # Errors
/// If the kernel refuses.
pub fn empty_frames() -> Result<OwnedFd, MemoryError> {
    memfd(c"gondwana-span")
}
