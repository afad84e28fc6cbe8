//! Shared mappings of files, at addresses that no other node and nothing else uses: each node has a part of a range.
//!
//! They are no part of the shared pages: the kernel has their contents, and other processes may change them. Nodes of one computer map
//! the same file, which the hardware keeps coherent. Between computers a mapping is on the node that made it, where others
//! [reach it](Node::read_pinned) one access at a time.

use crate::Node;
use gondwana_locks::lock;
use gondwana_page::PAGE_SIZE;
use gondwana_racing::RacingBytesMut;
use gondwana_topology::{Id, NodeId};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The addresses of all nodes' parts: behind the memory of threads, before the runtime's own view of the shared pages.
const ALL: Range<usize> = 0x2800_0000_0000..0x2c00_0000_0000;

/// A mapping of at least this length begins at a multiple of it, so that the kernel can use large pages.
const LARGE: usize = 2 << 20;

/// A part of this node's part that is mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mapping {
    addresses: Range<usize>,
    /// `PROT_...` flags.
    protection: i32,
}

/// The shared mappings of files of all nodes, as this one sees them.
#[derive(Debug)]
pub struct MappedFiles {
    part: usize,
    nodes: usize,
    me: usize,
    /// Whether all nodes map the same files.
    together: bool,
    /// What is mapped in this node's part, in the order of addresses.
    mappings: Mutex<Vec<Mapping>>,
}

impl MappedFiles {
    /// For node `me` of a run; `together` if the nodes can map the same files.
    #[must_use]
    pub(crate) fn new(me: u16, nodes: u16, together: bool) -> Self {
        Self {
            part: ALL.len() / usize::from(nodes) / LARGE * LARGE,
            nodes: usize::from(nodes),
            me: usize::from(me),
            together,
            mappings: Mutex::default(),
        }
    }

    /// True for an address that only mapped files have.
    #[must_use]
    #[inline(always)]
    pub const fn hold(address: usize) -> bool {
        address.wrapping_sub(ALL.start) < ALL.end - ALL.start
    }

    /// True if all nodes map the same files.
    #[must_use]
    pub fn are_together(&self) -> bool {
        self.together
    }

    /// The node in whose part an address is.
    #[must_use]
    #[inline]
    pub fn node_of(&self, address: usize) -> Option<usize> {
        let offset = address.wrapping_sub(ALL.start);
        (offset < self.nodes * self.part).then(|| offset / self.part)
    }

    /// The other node in whose part an address is, if its files are not mapped here.
    #[must_use]
    pub fn out_of_reach(&self, address: usize) -> Option<usize> {
        self.node_of(address).filter(|&node| !self.together && node != self.me)
    }

    /// Free addresses of this node's part, which are in use from now on. `None` if there are none.
    pub fn take(&self, bytes: usize) -> Option<usize> {
        let bytes = bytes.checked_next_multiple_of(PAGE_SIZE)?;
        let unit = if bytes >= LARGE { LARGE } else { PAGE_SIZE };
        let mut mappings = lock(&self.mappings);
        let mut start = ALL.start + self.me * self.part;
        let end_of_part = start + self.part;
        let mut index = 0;
        for mapping in mappings.iter() {
            if start.checked_add(bytes)? < mapping.addresses.start {
                break;
            }
            // A page between mappings: who goes beyond the end of one is not to find another.
            start = (mapping.addresses.end + PAGE_SIZE).next_multiple_of(unit);
            index += 1;
        }
        let end = start.checked_add(bytes).filter(|&end| end <= end_of_part)?;
        mappings.insert(index, Mapping { addresses: start..end, protection: libc::PROT_NONE });
        Some(start)
    }

    /// These addresses are mapped with a protection. Nothing happens if they are in another node's part.
    pub fn set(&self, addresses: Range<usize>, protection: i32) {
        if self.node_of(addresses.start) == Some(self.me) {
            let mut mappings = lock(&self.mappings);
            let index = cut(&mut mappings, &addresses);
            mappings.insert(index, Mapping { addresses, protection });
        }
    }

    /// Nothing is mapped at these addresses any more.
    pub fn remove(&self, addresses: &Range<usize>) {
        cut(&mut lock(&self.mappings), addresses);
    }

    /// What is mapped in this node's part from an address on without a gap.
    #[must_use]
    pub fn extent(&self, address: usize) -> Range<usize> {
        let mappings = lock(&self.mappings);
        let from_there = mappings.iter().skip_while(|mapping| mapping.addresses.start < address);
        let end = from_there.fold(address, |end, mapping| {
            if mapping.addresses.start == end { mapping.addresses.end } else { end }
        });
        address..end
    }

    /// True if these addresses of this node's part are mapped with at least a protection.
    #[must_use]
    pub fn allow(&self, addresses: &Range<usize>, protection: i32) -> bool {
        let mut at = addresses.start;
        for mapping in lock(&self.mappings).iter() {
            if mapping.addresses.contains(&at) && mapping.protection & protection == protection {
                at = mapping.addresses.end;
            }
        }
        at >= addresses.end
    }

    /// True if another node may access these bytes of this node's part: the mapping allows it, and the file is so long.
    fn admits(&self, addresses: &Range<usize>, protection: i32) -> bool {
        self.allow(addresses, protection) && pages_of(addresses).all(is_there)
    }

    fn word(&self, address: usize, protection: i32) -> Option<&AtomicU64> {
        let bytes = address..address.checked_add(size_of::<u64>())?;
        let is_word = address.is_multiple_of(size_of::<u64>()) && self.admits(&bytes, protection);
        // SAFETY: mapped, and aligned; other threads and processes change it as they do atomic words.
        is_word.then(|| unsafe { AtomicU64::from_ptr(address as *mut u64) })
    }

    /// Whole words of this node's part, as bytes, for another node; none if they cannot be read. Each is read in one step.
    pub(crate) fn read(&self, address: usize, count: usize) -> Vec<u8> {
        let words = (address..address + count).step_by(size_of::<u64>());
        let words = words.map_while(|address| self.word(address, libc::PROT_READ));
        words.flat_map(|word| word.load(Ordering::SeqCst).to_ne_bytes()).collect()
    }

    /// Writes to this node's part, for another node. False if it cannot be written.
    pub(crate) fn write(&self, address: usize, bytes: &[u8]) -> bool {
        if !self.admits(&(address..address + bytes.len()), libc::PROT_WRITE) {
            return false;
        }
        // SAFETY: mapped, with room for the bytes.
        unsafe { RacingBytesMut::new(address as *mut u8, bytes.len()) }.copy_from(bytes.into());
        true
    }

    /// Gives a word of this node's part a value if it has the `current` one, for another node. `None` if it cannot be written.
    pub(crate) fn exchange(&self, address: usize, current: u64, new: u64) -> Option<bool> {
        let word = self.word(address, libc::PROT_READ | libc::PROT_WRITE)?;
        Some(word.compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst).is_ok())
    }
}

/// Removes a range of addresses from mappings. Where one with this range belongs.
fn cut(mappings: &mut Vec<Mapping>, range: &Range<usize>) -> usize {
    let outside = |mapping: Mapping| {
        let Mapping { addresses, protection } = mapping;
        let before = addresses.start..addresses.end.min(range.start);
        let after = addresses.start.max(range.end)..addresses.end;
        [before, after]
            .into_iter()
            .filter(|addresses| !addresses.is_empty())
            .map(move |addresses| Mapping { addresses, protection })
    };
    *mappings = mappings.drain(..).flat_map(outside).collect();
    mappings.partition_point(|mapping| mapping.addresses.start < range.start)
}

/// The first address of each page of a range.
fn pages_of(addresses: &Range<usize>) -> impl Iterator<Item = usize> {
    (addresses.start & !(PAGE_SIZE - 1)..addresses.end).step_by(PAGE_SIZE)
}

/// True if the kernel can read the page at an address: not so beyond the end of a mapped file.
fn is_there(page: usize) -> bool {
    let mut byte = 0_u8;
    let here = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let there = libc::iovec { iov_base: page as *mut libc::c_void, iov_len: 1 };
    let process = gondwana_sys::process();
    // SAFETY: the kernel writes to a private variable, and fails where it cannot read.
    let read = unsafe {
        gondwana_sys::syscall!(
            libc::SYS_process_vm_readv,
            process,
            &raw const here,
            1,
            &raw const there,
            1,
            0
        )
    };
    read == 1
}

impl Node {
    /// The other node that alone can access an address, one of a thread's memory or of a mapped file.
    #[must_use]
    pub fn out_of_reach(&self, address: usize) -> Option<NodeId> {
        let owner = self.thread_memory.out_of_reach(address);
        owner.or_else(|| self.mapped_files.out_of_reach(address)).map(NodeId::from_index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_used_once_until_they_are_free() {
        let files = MappedFiles::new(1, 3, false);
        let first = files.take(1).unwrap();
        let second = files.take(3 * PAGE_SIZE).unwrap();
        assert_eq!((files.node_of(first), files.node_of(second)), (Some(1), Some(1)));
        assert!(second > first + PAGE_SIZE);
        files.remove(&(first..first + PAGE_SIZE));
        assert_eq!(files.take(PAGE_SIZE), Some(first));
        assert!(files.take(LARGE).unwrap().is_multiple_of(LARGE));
        assert_eq!(files.take(files.part), None);
        assert_eq!(files.take(usize::MAX), None);
    }

    #[test]
    fn parts_of_mappings_have_protections_of_their_own() {
        let files = MappedFiles::new(0, 2, false);
        let at = files.take(4 * PAGE_SIZE).unwrap();
        let page = |index: usize| at + index * PAGE_SIZE..at + (index + 1) * PAGE_SIZE;
        files.set(at..at + 4 * PAGE_SIZE, libc::PROT_READ | libc::PROT_WRITE);
        files.set(page(1), libc::PROT_READ);
        files.remove(&page(2));
        assert!(files.allow(&(at..page(1).end), libc::PROT_READ));
        assert!(!files.allow(&(at..page(1).end), libc::PROT_WRITE));
        assert!(files.allow(&page(3), libc::PROT_WRITE));
        assert_eq!(files.extent(at), at..page(2).start);
        assert_eq!(files.extent(page(2).start), page(2).start..page(2).start);
        assert!(!files.allow(&(page(1).start..page(3).end), libc::PROT_READ));
    }

    #[test]
    fn all_parts_are_of_some_node_and_elsewhere_if_not_together() {
        for nodes in [1, 2, 7, 256] {
            let apart = MappedFiles::new(0, nodes, false);
            let last = ALL.start + usize::from(nodes) * apart.part - 1;
            assert_eq!(apart.node_of(last), Some(usize::from(nodes) - 1));
            assert_eq!(apart.node_of(ALL.start - 1), None);
            assert!(last < ALL.end);
            assert_eq!(apart.out_of_reach(ALL.start), None);
            assert_eq!(apart.out_of_reach(last).is_some(), nodes > 1);
            assert_eq!(MappedFiles::new(0, nodes, true).out_of_reach(last), None);
        }
    }

    #[test]
    fn what_is_not_mapped_is_neither_read_nor_written() {
        let files = MappedFiles::new(0, 2, false);
        let at = files.take(PAGE_SIZE).unwrap();
        files.set(at..at + PAGE_SIZE, libc::PROT_READ | libc::PROT_WRITE);
        // The table has it, but the kernel does not.
        assert!(files.read(at, 8).is_empty());
        assert!(!files.write(at, &[1; 8]));
        assert_eq!(files.exchange(at, 0, 1), None);
    }
}
