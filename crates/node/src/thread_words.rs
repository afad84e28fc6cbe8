//! Words of other nodes' [thread memory](gondwana_memory::ThreadMemory), where it is not mapped here. Each access is a message and its answer.

use crate::Node;
use crate::wire::Wire;
use gondwana_topology::NodeId;

impl Node {
    /// The present value of a word that a thread of another node has in its memory.
    #[must_use]
    pub fn thread_word(&'static self, owner: NodeId, address: usize) -> u64 {
        let address = address as u64;
        self.ask(owner, move |ticket| Wire::ThreadWord { ticket, address }).cast_unsigned()
    }

    /// Gives such a word a value if it has the `current` one, in one step. True if it had.
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
