//! The memory that the nodes of one computer share.

use super::doorbell::Doorbell;
use super::ring::{LINE, Lines, RingControl, least_lines};
use crate::{MAX_BULK, MAX_HEAD, SegmentError};
use gondwana_page::{PAGE_SIZE, to_usize};
use gondwana_racing::{RacingBytes, RacingBytesMut};
use gondwana_topology::{MAX_NODES, NodeId};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::{fs::File, io};

/// The usual size of each ring. Rings are sparse: one that is never used takes no memory.
pub const DEFAULT_RING_BYTES: usize = 4 << 20;

/// Identifies the memory; the last digit is the version of the layout.
const MAGIC: u64 = u64::from_le_bytes(*b"gondwan4");

/// The start of the segment.
#[repr(C)]
struct Preamble {
    magic: AtomicU64,
    nodes: AtomicU64,
    ring_bytes: AtomicU64,
}

/// One node's entry.
#[repr(C)]
struct NodeEntry {
    doorbell: Doorbell,
    senders: Senders,
    attached: AtomicU32,
}

/// The nodes that have ever sent to one node, a bit each. Polling the rings of all nodes would allocate memory for
/// each, and take long in large runs. In another cache line than the doorbell, because it is hardly ever written.
#[repr(C, align(128))]
pub(crate) struct Senders([AtomicU64; MAX_NODES.div_ceil(64)]);

impl Senders {
    /// Marks a node as a sender. Called before it publishes anything, so a thread that sees the message sees the mark
    /// too.
    pub(super) fn note(&self, node: NodeId) {
        self.0[node.index() / 64].fetch_or(1 << (node.index() % 64), Ordering::Release);
    }

    /// The numbers of the nodes, as far as is known here.
    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(index, word)| {
            let mut left = word.load(Ordering::Acquire);
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.checked_sub(1)?;
                Some(64 * index + bit)
            })
        })
    }
}

/// The layout of the segment: preamble, an entry per node, a control block per ordered pair of nodes, the rings.
#[derive(Clone, Copy)]
struct Layout {
    nodes: usize,
    ring_bytes: usize,
}

impl Layout {
    fn new(nodes: usize, ring_bytes: usize) -> Result<Self, SegmentError> {
        let fits = ring_bytes.is_power_of_two() && ring_bytes >= LINE * least_lines(MAX_HEAD, MAX_BULK);
        if !(2..=MAX_NODES).contains(&nodes) || !fits || ring_bytes > 1 << 30 {
            return Err(SegmentError::Parameters { nodes, ring_bytes });
        }
        Ok(Self { nodes, ring_bytes })
    }

    fn entry(self, node: NodeId) -> usize {
        PAGE_SIZE + node.index() * size_of::<NodeEntry>()
    }

    fn control(self, pair: usize) -> usize {
        PAGE_SIZE + self.nodes * size_of::<NodeEntry>() + pair * size_of::<RingControl>()
    }

    fn ring(self, pair: usize) -> usize {
        self.control(self.nodes * self.nodes).next_multiple_of(PAGE_SIZE) + pair * self.ring_bytes
    }

    fn total(self) -> usize {
        self.ring(self.nodes * self.nodes)
    }

    /// The rings *to* one node lie next to each other.
    fn pair(self, from: NodeId, to: NodeId) -> usize {
        to.index() * self.nodes + from.index()
    }
}

/// Makes the memory that the [`crate::ShmFabric`]s of one run attach to.
pub struct ShmSegment;

impl ShmSegment {
    /// The bytes of address space of a segment in each process; `usize::MAX` if there is no such segment.
    #[must_use]
    pub fn bytes(nodes: usize, ring_bytes: usize) -> usize {
        Layout::new(nodes, ring_bytes).map_or(usize::MAX, Layout::total)
    }

    /// Makes a segment of zeroed memory for `nodes` nodes, with a ring of `ring_bytes` bytes for each ordered pair.
    /// Pages are allocated at first use. The descriptor closes on exec unless the caller changes that.
    ///
    /// # Errors
    /// If the system makes no such memory, or `ring_bytes` is not a power of two large enough for the longest
    /// message ([`DEFAULT_RING_BYTES`] is).
    pub fn create(nodes: usize, ring_bytes: usize) -> Result<OwnedFd, SegmentError> {
        let layout = Layout::new(nodes, ring_bytes)?;
        // SAFETY: the name is a constant string.
        let fd = unsafe {
            libc::memfd_create(c"gondwana-fabric".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)
        };
        if fd < 0 {
            return Err(system("memfd_create"));
        }
        // SAFETY: the descriptor is new and nobody else's.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        file.set_len(layout.total() as u64)
            .map_err(|source| SegmentError::System { what: "ftruncate of the fabric's memory", source })?;
        // The size is fixed, so that no node can make another fault on its own mapping.
        // SAFETY: fcntl on a live descriptor with an integer argument.
        if unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW) } < 0 {
            return Err(system("sealing of the fabric's memory"));
        }
        let mapping = Mapping::new(file.as_fd(), layout)?;
        let preamble = mapping.preamble();
        preamble.nodes.store(nodes as u64, Ordering::Relaxed);
        preamble.ring_bytes.store(ring_bytes as u64, Ordering::Relaxed);
        preamble.magic.store(MAGIC, Ordering::Release);
        Ok(file.into())
    }
}

/// A segment mapped into this process.
pub(crate) struct Mapping {
    base: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the mapping is plain memory; everything in it that two threads may touch at the same time is atomic.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a segment for `nodes` nodes and claims the entry of `node` in it.
    pub(super) fn attach(fd: BorrowedFd<'_>, node: NodeId, nodes: usize) -> Result<Self, SegmentError> {
        let mismatch = || SegmentError::Mismatch { nodes };
        let file = File::from(
            fd.try_clone_to_owned()
                .map_err(|source| SegmentError::System { what: "dup of the fabric's memory", source })?,
        );
        let len = file
            .metadata()
            .map_err(|source| SegmentError::System { what: "fstat of the fabric's memory", source })?
            .len();
        let len = to_usize(len);
        // The ring size follows from the length; the preamble must then agree.
        let fixed = Layout::new(nodes, DEFAULT_RING_BYTES)?.ring(0);
        if node.index() >= nodes {
            return Err(SegmentError::Parameters { nodes, ring_bytes: DEFAULT_RING_BYTES });
        }
        let layout = len
            .checked_sub(fixed)
            .and_then(|rings| Layout::new(nodes, rings / (nodes * nodes)).ok())
            .filter(|layout| layout.total() == len)
            .ok_or_else(mismatch)?;
        let mapping = Self::new(fd, layout)?;
        let preamble = mapping.preamble();
        if preamble.magic.load(Ordering::Acquire) != MAGIC
            || preamble.nodes.load(Ordering::Relaxed) != nodes as u64
            || preamble.ring_bytes.load(Ordering::Relaxed) != layout.ring_bytes as u64
        {
            return Err(mismatch());
        }
        if mapping.entry(node).attached.swap(1, Ordering::Relaxed) != 0 {
            return Err(SegmentError::Taken(node));
        }
        Ok(mapping)
    }

    fn new(fd: BorrowedFd<'_>, layout: Layout) -> Result<Self, SegmentError> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice changes no existing memory.
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), layout.total(), protection, flags, fd.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED {
            return Err(system("mmap of the fabric's memory"));
        }
        let base = NonNull::new(base.cast()).expect("no mapping is made at address 0");
        Ok(Self { base, layout })
    }

    fn preamble(&self) -> &Preamble {
        // SAFETY: the segment starts with a preamble, all of whose fields are atomic integers.
        unsafe { self.base.cast().as_ref() }
    }

    fn entry(&self, node: NodeId) -> &NodeEntry {
        assert!(node.index() < self.layout.nodes);
        // SAFETY: the entry lies inside the mapping, aligned, and consists of atomic integers.
        unsafe { self.base.add(self.layout.entry(node)).cast().as_ref() }
    }

    /// The doorbell of a node.
    pub(super) fn doorbell(&self, node: NodeId) -> &Doorbell {
        &self.entry(node).doorbell
    }

    /// Who sends to a node.
    pub(super) fn senders(&self, to: NodeId) -> &Senders {
        &self.entry(to).senders
    }

    /// The control block of the ring from one node to another.
    pub(super) fn control(&self, from: NodeId, to: NodeId) -> &RingControl {
        assert!(from.index().max(to.index()) < self.layout.nodes);
        let offset = self.layout.control(self.layout.pair(from, to));
        // SAFETY: the control block lies inside the mapping, aligned, and consists of atomic integers.
        unsafe { self.base.add(offset).cast().as_ref() }
    }

    /// The memory of the ring from one node to another.
    pub(super) fn ring(self: &Arc<Self>, from: NodeId, to: NodeId) -> MappedLines {
        assert!(from.index().max(to.index()) < self.layout.nodes);
        // SAFETY: the ring lies inside the mapping.
        let base = unsafe { self.base.add(self.layout.ring(self.layout.pair(from, to))) };
        MappedLines { base, count: self.layout.ring_bytes / LINE, _mapping: Arc::clone(self) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and every reference into it borrows from, or holds on to, `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.layout.total()) };
    }
}

/// The memory of one ring.
pub(crate) struct MappedLines {
    base: NonNull<u8>,
    count: usize,
    /// Keeps the memory mapped.
    _mapping: Arc<Mapping>,
}

// SAFETY: as for `Mapping`; the records are synchronised by their headers.
unsafe impl Send for MappedLines {}
// SAFETY: as above.
unsafe impl Sync for MappedLines {}

impl Lines for MappedLines {
    fn count(&self) -> usize {
        self.count
    }

    fn header(&self, line: usize) -> &AtomicU64 {
        assert!(line < self.count);
        // SAFETY: inside the ring and aligned to a line.
        unsafe { self.base.add(line * LINE).cast().as_ref() }
    }

    unsafe fn fill(&self, offset: usize, bytes: RacingBytes<'_>) {
        debug_assert!(offset + bytes.len() <= self.count * LINE);
        // SAFETY: inside the ring, and nobody else's now, as the caller promises.
        unsafe { RacingBytesMut::new(self.base.add(offset).as_ptr(), bytes.len()) }.copy_from(bytes);
    }

    unsafe fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        debug_assert!(offset + len <= self.count * LINE || len == 0);
        // SAFETY: inside the ring and not written to for as long as the slice is used, as the caller promises.
        unsafe { std::slice::from_raw_parts(self.base.add(offset).as_ptr(), len) }
    }
}

fn system(what: &'static str) -> SegmentError {
    SegmentError::System { what, source: io::Error::last_os_error() }
}
