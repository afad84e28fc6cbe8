//! Calls on descriptors that another node has open, and of which this one cannot have a copy.

use crate::wire::Wire;
use crate::{Node, Thread};
use gondwana_coherence::sync::Ticket;
use gondwana_control::Awaited;
use gondwana_topology::NodeId;
use serde::{Deserialize, Serialize};

/// A call of a function of the C library, on a descriptor of the receiver. Contents of its memory travel behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescriptorCall {
    /// The function's name.
    pub function: String,
    /// Its arguments, as registers hold them.
    pub arguments: [u64; 6],
    /// The memory that its arguments, or earlier parts of its memory, point to.
    pub memory: Vec<CallMemory>,
}

/// A range of memory that a call uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallMemory {
    /// Where its address is.
    pub pointer: Pointer,
    /// Bytes.
    pub length: u32,
    /// What the call does with it.
    pub direction: Direction,
}

/// Where a call has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pointer {
    /// It is an argument.
    Argument(u8),
    /// It is a word in an earlier range of memory.
    Inside {
        /// The range's number.
        memory: u16,
        /// Where in it, in bytes.
        at: u32,
    },
}

/// What a call does with a range of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// It reads.
    Read,
    /// It reads and writes.
    Changed,
    /// It writes as many bytes as its result says.
    Filled,
}

/// What came of such a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescriptorDone {
    /// What the call gives.
    pub result: i64,
    /// `errno` after it.
    pub error: i32,
    /// The memory that it has written, in order. Travels behind the rest.
    #[serde(skip)]
    pub bytes: Vec<u8>,
}

/// A description, and the bytes behind it.
fn encoded(description: &impl Serialize, bytes: &[u8]) -> Vec<u8> {
    let mut message = postcard::to_stdvec(description).expect("a description can be encoded");
    message.extend_from_slice(bytes);
    message
}

impl Node {
    /// Has another node make a call on a descriptor that it has open. `bytes` is the memory that the call reads, in order.
    ///
    /// A call that waits ends with `EINTR` when the calling thread is interrupted.
    pub fn call_descriptor(
        &'static self,
        owner: usize,
        call: DescriptorCall,
        bytes: Vec<u8>,
    ) -> DescriptorDone {
        let owner = NodeId(u16::try_from(owner).expect("a node of the run"));
        self.privately(move || {
            let slot = Thread::current(self).slot;
            let _noted = self.note_wait(slot, Awaited::Descriptor, call.arguments[0], None);
            let ticket =
                self.ask_interruptibly(owner, &encoded(&call, &bytes), |ticket| Wire::Call { ticket });
            let answer = self.answer_bytes.take(ticket.0).expect("it came ahead of the answer");
            match postcard::take_from_bytes::<DescriptorDone>(&answer) {
                Ok((done, bytes)) => DescriptorDone { bytes: bytes.to_vec(), ..done },
                Err(error) => crate::fatal(&format!("node {owner} sent something unintelligible: {error}")),
            }
        })
    }

    /// Another node requests a call.
    pub(crate) fn descriptor_call_came(&'static self, from: NodeId, ticket: Ticket, message: &[u8]) {
        let (call, bytes) = match postcard::take_from_bytes::<DescriptorCall>(message) {
            Ok(whole) => whole,
            Err(error) => crate::fatal(&format!("node {from} sent something unintelligible: {error}")),
        };
        if let Some(done) = (self.hooks.call_descriptor_at_once)(&call, bytes) {
            return self.answer_descriptor_call(from, ticket, &done);
        }
        let bytes = bytes.to_vec();
        self.call_apart(Box::new(move |callers| {
            let done = {
                let interruptible = self.interruptions.begin(from, ticket);
                let is_asked = || interruptible.is_asked();
                (self.hooks.call_descriptor)(&call, &bytes, &is_asked)
            };
            callers.finish();
            self.answer_descriptor_call(from, ticket, &done);
        }));
    }

    fn answer_descriptor_call(&self, to: NodeId, ticket: Ticket, done: &DescriptorDone) {
        self.core().env.post(to, &Wire::Bytes { ticket }, &encoded(done, &done.bytes));
    }
}
