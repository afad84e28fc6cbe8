//! Same-host peers: other nodes of this computer, whose memory is mapped here.
//!
//! Each node hands the others three descriptors: its frames, its [remote-access table](crate::remote), and the userfaultfd
//! that guards its program's view. With the last, a peer can take write access away from the home's threads; the kernel
//! stops all processors of that node from writing before the call returns.

use crate::MemoryError;
use crate::access::Uffd;
use crate::geometry::{Geometry, PAGE_SIZE};
use crate::mapping::{map_at, map_read_only};
use crate::remote::{Capabilities, MappedWords, RemoteMemory, SharedWords, TableLayout};
use gondwana_page::whole_pages;
use gondwana_racing::{RacingBytes, RacingBytesMut};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};

/// The address of the first node's memory. It is the same on all nodes, so that mappings placed by the kernel have
/// equal addresses too.
pub(crate) const PEERS_BASE: usize = 0x4100_0000_0000;
/// Executables are from here on.
const PEERS_END: usize = 0x5400_0000_0000;

/// Another node of this computer.
pub struct Peer {
    frames: usize,
    words: MappedWords,
    faults: Uffd,
    geometry: Geometry,
    layout: TableLayout,
}

impl Peer {
    /// The number of descriptors that a node passes.
    pub const DESCRIPTORS: usize = 3;

    /// Maps the memory of the node with this number, one of `nodes`, which has handed over its frames, its remote-access
    /// table and its userfaultfd, in this order (see [`Pages::handover`](crate::Pages::handover)).
    ///
    /// # Errors
    /// If these have another length than here, the addresses are in use, or the kernel refuses.
    pub fn new(
        number: u16,
        nodes: u16,
        handed: [OwnedFd; Self::DESCRIPTORS],
        geometry: &Geometry,
    ) -> Result<Self, MemoryError> {
        let what = "what another node has handed over";
        let [frames, table, faults] = handed;
        let layout = TableLayout::new(geometry.pages(), nodes);
        let bytes = geometry.pages() as usize * PAGE_SIZE;
        let table_bytes = layout.words() * size_of::<u64>();
        for (file, length) in [(&frames, bytes), (&table, table_bytes)] {
            let found = length_of(file).map_err(|source| MemoryError::System { what, source })?;
            if found != length as u64 {
                return Err(MemoryError::System { what, source: io::ErrorKind::InvalidData.into() });
            }
        }
        let room = bytes + table_bytes;
        let base = PEERS_BASE + usize::from(number) * room;
        if base + room > PEERS_END {
            return Err(MemoryError::Occupied { base, bytes: room });
        }
        map_read_only(base, bytes, frames.as_fd())?;
        map_at(base + bytes, table_bytes, table.as_fd(), 0)?;
        // SAFETY: just mapped, and never unmapped.
        let words = unsafe { MappedWords::new((base + bytes) as *mut u8, layout.words()) };
        Ok(Self { frames: base, words, faults: Uffd::handed(faults), geometry: geometry.clone(), layout })
    }

    fn frames_of(&self, pages: Range<u32>) -> RacingBytes<'static> {
        assert!(pages.start <= pages.end && pages.end <= self.geometry.pages());
        let start = self.frames + pages.start as usize * PAGE_SIZE;
        // SAFETY: the pages exist and stay mapped as long as the process.
        unsafe { RacingBytes::new(start as *const u8, pages.len() * PAGE_SIZE) }
    }
}

impl SharedWords for Peer {
    fn load(&self, word: usize) -> u64 {
        self.words.load(word)
    }

    fn store(&self, word: usize, value: u64) {
        self.words.store(word, value);
    }

    fn compare_exchange(&self, word: usize, current: u64, new: u64) -> Result<u64, u64> {
        self.words.compare_exchange(word, current, new)
    }

    fn fence(&self) {
        self.words.fence();
    }
}

impl RemoteMemory for Peer {
    fn capabilities(&self) -> Capabilities {
        Capabilities { mapped: true, stops_writers: true }
    }

    fn layout(&self) -> TableLayout {
        self.layout
    }

    fn read(&self, first: u32, into: RacingBytesMut<'_>) {
        into.copy_from(self.frames_of(first..first + whole_pages(into.len())));
    }

    fn frames(&self, pages: Range<u32>) -> Option<RacingBytes<'static>> {
        Some(self.frames_of(pages))
    }

    /// One system call reaches consecutive addresses.
    fn stoppable(&self, first: u32, end: u32) -> u32 {
        self.geometry.consecutive(first, end)
    }

    fn stop_writers(&self, pages: Range<u32>) -> bool {
        let base = self.geometry.address_of(pages.start);
        self.faults.write_protect(base, pages.end.saturating_sub(pages.start), true).is_ok()
    }
}

fn length_of(file: &OwnedFd) -> io::Result<u64> {
    Ok(std::fs::File::from(file.try_clone()?).metadata()?.len())
}
