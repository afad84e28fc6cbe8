//! Memory for what the C library keeps of each thread: its control block, its thread-local variables, and the stack on which it
//! starts. Each node has its own part, at addresses that no other node uses, so that a pointer to a thread-local variable
//! means the same everywhere.
//!
//! It is no part of the shared pages: the C library and the fault handler use it at moments when no fault can be resolved. Nodes of
//! one computer that may share memory map one file, which the hardware keeps coherent.

use crate::MemoryError;
use crate::geometry::PAGE_SIZE;
use crate::mapping::{leave_out_of_core_files, map_at, map_copy, map_over, reserve};
use crate::memfd::{memfd, set_length};
use crate::rseq;
use gondwana_page::to_usize;
use gondwana_racing::RacingBytesMut;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Where the part of node 0 begins: behind the longest span.
const THREADS_BASE: usize = 0x2000_0000_0000;

/// The greatest length of a node's part, in bytes. Only what threads use costs memory.
const MOST_PART: u64 = 4 << 30;

/// The parts together are this fraction of the span, but for their least and greatest length.
const OF_SPAN: u64 = 32;

/// The thread memory of all nodes, as this one sees it.
#[derive(Debug)]
pub struct ThreadMemory {
    file: OwnedFd,
    part: usize,
    nodes: usize,
    me: usize,
    /// Whether the parts of other nodes are mapped here.
    together: bool,
    /// This node's part again, without what the C library or the program protects, for accesses on behalf of other nodes; 0 if they have it
    /// mapped themselves.
    view: usize,
}

impl ThreadMemory {
    /// The least length of a node's part, in bytes.
    pub const LEAST_PART: u64 = 24 << 20;

    /// Bytes of a node's part in a run of this many nodes with a span of so many bytes.
    #[must_use]
    pub fn part(nodes: u16, span: u64) -> u64 {
        let page = PAGE_SIZE as u64;
        (span / OF_SPAN / u64::from(nodes)).clamp(Self::LEAST_PART, MOST_PART) / page * page
    }

    /// Bytes of the parts of all nodes together.
    #[must_use]
    pub fn length(nodes: u16, span: u64) -> usize {
        to_usize(Self::part(nodes, span)) * usize::from(nodes)
    }

    /// At most so many bytes of addresses does a node use, with a span that is large enough for more than the least length of each part.
    #[must_use]
    pub fn most(span: u64) -> u64 {
        2 * (span / OF_SPAN)
    }

    /// A file for the parts of all nodes. No page of it is in use. Other things may be put behind [`ThreadMemory::length`].
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn file(nodes: u16, span: u64) -> Result<OwnedFd, MemoryError> {
        let file = memfd(c"gondwana-common")?;
        set_length(&file, Self::length(nodes, span))?;
        Ok(file)
    }

    /// Maps this node's part of a [`ThreadMemory::file`], and those of all others if they use the same file (`together`). Otherwise the
    /// others' addresses are kept free, and nobody can access them.
    ///
    /// # Errors
    /// If addresses are taken or the kernel refuses.
    pub fn map(me: u16, nodes: u16, span: u64, file: OwnedFd, together: bool) -> Result<Self, MemoryError> {
        let mut memory = Self {
            file,
            part: to_usize(Self::part(nodes, span)),
            nodes: usize::from(nodes),
            me: usize::from(me),
            together,
            view: 0,
        };
        let all = memory.all();
        if together {
            map_at(all.start, all.len(), memory.file.as_fd(), 0)?;
        } else {
            let own = memory.own();
            reserve(all.start, all.len())?;
            // SAFETY: nobody uses the addresses, which have just been reserved.
            unsafe { map_over(own.start, own.len(), memory.file.as_fd(), own.start - THREADS_BASE)? };
            leave_out_of_core_files(own.start, own.len());
            memory.view = all.end;
            map_at(memory.view, own.len(), memory.file.as_fd(), own.start - THREADS_BASE)?;
        }
        Ok(memory)
    }

    /// The addresses of all nodes' parts.
    #[must_use]
    pub fn all(&self) -> Range<usize> {
        THREADS_BASE..THREADS_BASE + self.nodes * self.part
    }

    /// The addresses of this node's part.
    #[must_use]
    pub fn own(&self) -> Range<usize> {
        let start = THREADS_BASE + self.me * self.part;
        start..start + self.part
    }

    /// The node in whose part an address is.
    #[must_use]
    #[inline]
    pub fn node_of(&self, address: usize) -> Option<usize> {
        let offset = address.wrapping_sub(THREADS_BASE);
        (offset < self.nodes * self.part).then(|| offset / self.part)
    }

    /// The other node in whose part an address is, if that is not mapped here.
    #[must_use]
    pub fn out_of_reach(&self, address: usize) -> Option<usize> {
        self.node_of(address).filter(|&node| !self.together && node != self.me)
    }

    /// A word of this node's part, for another node that has not mapped it.
    #[must_use]
    pub fn word(&self, address: usize) -> Option<&AtomicU64> {
        let own = self.own();
        let is_word = own.contains(&address) && address.is_multiple_of(size_of::<u64>()) && self.view != 0;
        // SAFETY: mapped as long as the process, and aligned; threads of this node may change it at any time, as those of other processes
        // change atomic words.
        is_word.then(|| unsafe { AtomicU64::from_ptr((self.view + (address - own.start)) as *mut u64) })
    }

    /// Whole words of this node's part, as bytes, for another node that has not mapped it; none where there are none. Each is read in
    /// one step.
    #[must_use]
    pub fn read(&self, address: usize, count: usize) -> Vec<u8> {
        let words = (address..address + count).step_by(size_of::<u64>());
        let words = words.map_while(|address| self.word(address));
        words.flat_map(|word| word.load(Ordering::SeqCst).to_ne_bytes()).collect()
    }

    /// Writes to this node's part, for such a node.
    pub fn write(&self, address: usize, bytes: &[u8]) {
        let own = self.own();
        if self.view != 0 && own.contains(&address) && bytes.len() <= own.end - address {
            let seen = (self.view + (address - own.start)) as *mut u8;
            // SAFETY: mapped as long as the process, with room for the bytes.
            unsafe { RacingBytesMut::new(seen, bytes.len()) }.copy_from(bytes.into());
        }
    }

    /// Before a `fork` by the thread of this node that has this memory: replaces it by a copy that parent and child each have for
    /// themselves. Other nodes do not see what is written from now on.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn begin_fork(&self, range: &Range<usize>) -> Result<(), MemoryError> {
        rseq::prepare();
        self.copy(range)?;
        for page in range.clone().step_by(PAGE_SIZE) {
            // SAFETY: part of the mapping just made, and accessed by atomic instructions here.
            let byte = unsafe { AtomicU8::from_ptr(page as *mut u8) };
            // Written as it is, so that the kernel copies the page. Another thread's write at the same time is not lost.
            byte.fetch_or(0, Ordering::Relaxed);
        }
        Ok(())
    }

    /// In the child of a `fork`: what is written from now on is the child's own. `range` is the memory that
    /// [`ThreadMemory::begin_fork`] has copied.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn end_fork_in_child(&self, range: &Range<usize>) -> Result<(), MemoryError> {
        let mapped = if self.together { self.all() } else { self.own() };
        self.copy(&(mapped.start..range.start))?;
        self.copy(&(range.end..mapped.end))
    }

    /// In the parent, after a `fork` by the thread that has this memory: other nodes see it again. Meanwhile threads of this node that
    /// write to it fault; they must try again until they do not.
    ///
    /// # Safety
    /// The calling thread blocks all signals, and this function uses no memory of the range: it runs on another stack, and the system
    /// calls that it makes succeed.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub unsafe fn end_fork_in_parent(&self, range: &Range<usize>) -> Result<(), MemoryError> {
        if range.is_empty() {
            return Ok(());
        }
        // Where the kernel cannot be kept from writing, threads are not either: a write of theirs in these microseconds is lost.
        let together = rseq::quietly(|| {
            // SAFETY: only takes the right to write away; the caller promised that this thread does not write.
            unsafe { gondwana_sys::syscall!(libc::SYS_mprotect, range.start, range.len(), libc::PROT_READ) };
            self.write_back(range)
        });
        together.unwrap_or_else(|| self.write_back(range))
    }

    /// Writes a copy back to the file, and maps that.
    fn write_back(&self, range: &Range<usize>) -> Result<(), MemoryError> {
        let (file, offset) = (self.file.as_raw_fd(), range.start - THREADS_BASE);
        // SAFETY: the kernel reads the memory.
        let written =
            unsafe { gondwana_sys::syscall!(libc::SYS_pwrite64, file, range.start, range.len(), offset) };
        if usize::try_from(written) != Ok(range.len()) {
            return Err(MemoryError::last("after a fork"));
        }
        // SAFETY: the file has the same contents.
        unsafe { map_over(range.start, range.len(), self.file.as_fd(), offset) }
    }

    /// Maps part of the file copy on write.
    fn copy(&self, range: &Range<usize>) -> Result<(), MemoryError> {
        if range.is_empty() {
            return Ok(());
        }
        map_copy(range.start, range.len(), self.file.as_fd(), range.start - THREADS_BASE)
    }
}
