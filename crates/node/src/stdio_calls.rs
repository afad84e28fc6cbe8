//! Calls on standard I/O streams (`FILE`) of other nodes: only the node that has opened a stream can make them.

use crate::wire::Wire;
use crate::{Node, Thread};
use gondwana_coherence::sync::{Answer, Ticket};
use gondwana_topology::NodeId;
use serde::{Deserialize, Serialize};

/// How many bytes a call reads or writes at most.
pub const MOST_BYTES: usize = gondwana_fabric::MAX_BULK;

/// A call on a stream.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct StreamCall {
    /// The stream's address on the node that has opened it; 0 for standard input.
    pub stream: u64,
    /// What to do with it.
    pub action: StreamAction,
}

/// What can be done with a stream from elsewhere.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum StreamAction {
    /// `fread` of so many bytes, [`MOST_BYTES`] at most. The result is how many there are.
    Read(u32),
    /// Reads up to and including this byte, or so many bytes, [`MOST_BYTES`] at most. The result is how many there are.
    Line(u32, u8),
    /// `fwrite`. The result is how many bytes are written.
    Write,
    /// `getc`.
    Get,
    /// `ungetc`.
    Unget(i32),
    /// `fseeko`.
    Seek {
        /// How far.
        offset: i64,
        /// From where: `SEEK_...`.
        whence: i32,
    },
    /// `ftello`.
    Tell,
    /// `feof`.
    IsAtEnd,
    /// `ferror`.
    HasFailed,
    /// `clearerr`.
    ClearError,
    /// `fflush`.
    Flush,
    /// `setvbuf` without a buffer of the program's.
    Buffer {
        /// `_IO...BF`.
        mode: i32,
        /// In bytes.
        size: u64,
    },
    /// `fileno`.
    Descriptor,
    /// `fclose`.
    Close,
    /// `pclose`.
    CloseCommand,
}

/// What came of a call on a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamDone {
    /// What the call gives.
    pub result: i64,
    /// `errno` after it; [`StreamDone::OUT_OF_REACH`] if this kind of stream is for its own node only.
    pub error: i32,
    /// [`StreamDone::AT_END`] and [`StreamDone::FAILED`], as far as they are so.
    pub marks: u8,
    /// What was read. Travels beside the rest.
    #[serde(skip)]
    pub bytes: Vec<u8>,
}

impl StreamDone {
    /// In place of an error number.
    pub const OUT_OF_REACH: i32 = -1;
    /// The stream has been read to its end.
    pub const AT_END: u8 = 1;
    /// An error has occurred on the stream.
    pub const FAILED: u8 = 2;
}

impl Node {
    /// Has the node that has opened a stream make a call on it. `bytes` is what the call writes.
    pub fn call_stream(&'static self, opener: usize, call: StreamCall, bytes: Vec<u8>) -> StreamDone {
        let opener = NodeId(u16::try_from(opener).expect("a node of the run"));
        self.privately(move || {
            let ticket = u64::from(Thread::current(self).slot.0);
            // The result of the call comes with the rest, ahead of the answer.
            let _ = self.ask_with(opener, bytes, move |ticket| Wire::Stream { ticket, call });
            self.streams_done.take(ticket).expect("it came ahead of the answer")
        })
    }

    /// Another node requests a call.
    pub(crate) fn stream_call_came(
        &'static self,
        from: NodeId,
        ticket: Ticket,
        call: StreamCall,
        bytes: &[u8],
    ) {
        if let Some(done) = (self.hooks.call_stream_at_once)(&call, bytes) {
            return self.answer_stream_call(from, ticket, done);
        }
        let bytes = bytes.to_vec();
        self.call_apart(Box::new(move |callers| {
            let done = (self.hooks.call_stream)(&call, &bytes);
            callers.finish();
            self.answer_stream_call(from, ticket, done);
        }));
    }

    fn answer_stream_call(&self, to: NodeId, ticket: Ticket, mut done: StreamDone) {
        let bytes = std::mem::take(&mut done.bytes);
        self.core().env.post(to, &Wire::StreamDone { ticket, done }, &bytes);
    }

    /// A call of a thread of this node is made.
    pub(crate) fn stream_call_done(&self, ticket: Ticket, done: StreamDone) {
        self.streams_done.keep(ticket.0, done);
        self.core().announce(ticket, Answer::Done(0));
    }
}
