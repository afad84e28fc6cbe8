//! Other nodes' [thread memory](gondwana_memory::ThreadMemory) and [mapped files](crate::MappedFiles), where they are not mapped here:
//! *pinned* memory. Each access is a message and its answer.

use crate::Node;
use crate::wire::Wire;
use gondwana_page::to_usize;
use gondwana_topology::NodeId;

/// The answer that pinned memory cannot be accessed: it is protected, or there is none.
const FAULT: i64 = -1;

/// The owner of pinned memory cannot access it either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinnedFault;

impl Node {
    /// Reads bytes of another node's pinned memory, as many as a message carries at most.
    ///
    /// # Errors
    /// If the owner cannot read them.
    pub fn read_pinned(
        &'static self,
        owner: NodeId,
        address: usize,
        into: &mut [u8],
    ) -> Result<(), PinnedFault> {
        let (address, count) = (address as u64, u32::try_from(into.len()).unwrap_or(0));
        let bytes = self.ask_for_bytes(owner, move |ticket| Wire::ReadPinned { ticket, address, count });
        let bytes = bytes.filter(|bytes| bytes.len() == into.len()).ok_or(PinnedFault)?;
        into.copy_from_slice(&bytes);
        Ok(())
    }

    /// Writes such bytes.
    ///
    /// # Errors
    /// If the owner cannot write them.
    pub fn write_pinned(
        &'static self,
        owner: NodeId,
        address: usize,
        bytes: Vec<u8>,
    ) -> Result<(), PinnedFault> {
        let address = address as u64;
        match self.ask_for_access(owner, bytes, move |ticket| Wire::WritePinned { ticket, address }) {
            FAULT => Err(PinnedFault),
            _ => Ok(()),
        }
    }

    /// Gives a word in such memory a value if it has the `current` one, in one step. True if it had.
    ///
    /// # Errors
    /// If the owner cannot write it.
    pub fn exchange_pinned(
        &'static self,
        owner: NodeId,
        address: usize,
        current: u64,
        new: u64,
    ) -> Result<bool, PinnedFault> {
        let address = address as u64;
        match self.ask_for_access(owner, vec![], move |ticket| Wire::ExchangePinned {
            ticket,
            address,
            current,
            new,
        }) {
            FAULT => Err(PinnedFault),
            done => Ok(done != 0),
        }
    }

    /// For another node: bytes of this node's pinned memory; fewer if they cannot be read.
    pub(crate) fn pinned_here(&self, address: u64, count: u32) -> Vec<u8> {
        let (address, count) = (to_usize(address), count as usize);
        match self.mapped_files.node_of(address) {
            Some(_) => self.mapped_files.read(address, count),
            None => self.thread_memory.read(address, count),
        }
    }

    /// For another node: writes to this node's pinned memory. The answer.
    pub(crate) fn write_pinned_here(&self, address: u64, bytes: &[u8]) -> i64 {
        let address = to_usize(address);
        if self.mapped_files.node_of(address).is_none() {
            self.thread_memory.write(address, bytes);
            return 0;
        }
        if self.mapped_files.write(address, bytes) { 0 } else { FAULT }
    }

    /// For another node: exchanges a word of this node's pinned memory. The answer.
    pub(crate) fn exchange_pinned_here(&self, address: u64, current: u64, new: u64) -> i64 {
        let address = to_usize(address);
        if self.mapped_files.node_of(address).is_some() {
            return self.mapped_files.exchange(address, current, new).map_or(FAULT, i64::from);
        }
        let order = std::sync::atomic::Ordering::SeqCst;
        let word = self.thread_memory.word(address);
        word.is_none_or(|word| word.compare_exchange(current, new, order, order).is_ok()).into()
    }
}
