//! Calls on streams of the C library, which only the node that has opened one can make: it makes them for others.

use crate::service::Errand;
use crate::wire::Wire;
use crate::{Node, Thread};
use gondwana_coherence::sync::{Answer, Ticket};
use gondwana_topology::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex};

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

/// What to do for another node.
struct Asked {
    from: NodeId,
    ticket: Ticket,
    call: StreamCall,
    bytes: Vec<u8>,
}

/// The threads that make calls for other nodes. Each call may wait as long as whoever writes at the other end of a pipe
/// likes, and others must not wait for it: there are as many threads as there have been calls at a time.
#[derive(Default)]
pub(crate) struct StreamCallers {
    calls: Mutex<Calls>,
    came: Condvar,
    /// What came of the calls of this node's threads, by their tickets, until they take it.
    done: Mutex<HashMap<u64, StreamDone>>,
}

#[derive(Default)]
struct Calls {
    waiting: VecDeque<Asked>,
    /// Threads that are free for a call, or will be when they have begun.
    free: usize,
}

impl Node {
    /// Has the node that has opened a stream make a call on it. `bytes` is what the call writes.
    pub fn call_stream(&'static self, opener: usize, call: StreamCall, bytes: Vec<u8>) -> StreamDone {
        let opener = NodeId(u16::try_from(opener).expect("a node of the run"));
        self.privately(move || {
            let ticket = u64::from(Thread::current(self).slot.0);
            // What the call gives comes with the rest.
            let _ = self.ask_with(opener, bytes, move |ticket| Wire::Stream { ticket, call });
            let done = self.stream_callers.done.lock().expect("not poisoned").remove(&ticket);
            done.expect("it came ahead of the answer")
        })
    }

    /// Another node wants a call to be made.
    pub(crate) fn stream_call_came(&self, from: NodeId, ticket: Ticket, call: StreamCall, bytes: &[u8]) {
        if let Some(done) = (self.hooks.call_stream_at_once)(&call, bytes) {
            return self.answer_stream_call(from, ticket, done);
        }
        let mut calls = self.stream_callers.calls.lock().expect("not poisoned");
        calls.waiting.push_back(Asked { from, ticket, call, bytes: bytes.to_vec() });
        if calls.free >= calls.waiting.len() {
            self.stream_callers.came.notify_one();
        } else {
            calls.free += 1;
            drop(calls);
            self.leave_to_service(Errand::CallStreams);
        }
    }

    /// Starts another thread that makes calls.
    pub(crate) fn start_stream_caller(&'static self) {
        if let Err(error) = Thread::start_native("streams", || self.make_stream_calls()) {
            crate::fatal(&format!("starting a thread for streams: {error}"));
        }
    }

    fn make_stream_calls(&'static self) {
        crate::service::block_all_signals();
        let callers = &self.stream_callers;
        loop {
            let asked = {
                let calls = callers.calls.lock().expect("not poisoned");
                let mut calls =
                    callers.came.wait_while(calls, |calls| calls.waiting.is_empty()).expect("not poisoned");
                calls.free -= 1;
                calls.waiting.pop_front().expect("not empty")
            };
            let done = (self.hooks.call_stream)(&asked.call, &asked.bytes);
            // Ahead of the answer: the next call may be made right after it.
            callers.calls.lock().expect("not poisoned").free += 1;
            self.answer_stream_call(asked.from, asked.ticket, done);
        }
    }

    fn answer_stream_call(&self, to: NodeId, ticket: Ticket, mut done: StreamDone) {
        let bytes = std::mem::take(&mut done.bytes);
        self.core().ports.post(to, &Wire::StreamDone { ticket, done }, &bytes);
    }

    /// A call of a thread of this node is made.
    pub(crate) fn stream_call_done(&self, ticket: Ticket, done: StreamDone) {
        self.stream_callers.done.lock().expect("not poisoned").insert(ticket.0, done);
        self.core().announce(ticket, Answer::Done(0));
    }
}
