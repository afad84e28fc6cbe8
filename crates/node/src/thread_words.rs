//! Other nodes' [thread memory](gondwana_memory::ThreadMemory), where it is not mapped here. Each access is a message and its answer.

use crate::wire::Wire;
use crate::{Node, Thread};
use gondwana_topology::NodeId;

impl Node {
    /// Reads bytes that a thread of another node has in its memory, as many as a message carries at most.
    pub fn read_thread_bytes(&'static self, owner: NodeId, address: usize, into: &mut [u8]) {
        let (address, count) = (address as u64, u32::try_from(into.len()).unwrap_or(0));
        self.ask(owner, move |ticket| Wire::ReadThreadBytes { ticket, address, count });
        let bytes = self.thread_bytes.take(u64::from(Thread::current(self).slot.0));
        if let Some(bytes) = bytes.filter(|bytes| bytes.len() == into.len()) {
            into.copy_from_slice(&bytes);
        }
    }

    /// Writes such bytes.
    pub fn write_thread_bytes(&'static self, owner: NodeId, address: usize, bytes: Vec<u8>) {
        let address = address as u64;
        // No error is possible.
        let _ = self.ask_with(owner, bytes, move |ticket| Wire::WriteThreadBytes { ticket, address });
    }

    /// Gives a word in such memory a value if it has the `current` one, in one step. True if it had.
    pub fn exchange_thread_word(
        &'static self,
        owner: NodeId,
        address: usize,
        current: u64,
        new: u64,
    ) -> bool {
        let address = address as u64;
        self.ask(owner, move |ticket| Wire::ExchangeThreadWord { ticket, address, current, new }) != 0
    }
}
