//! Calls on standard I/O streams (`FILE`) of other nodes: only the node that has opened a stream can make them.

use crate::by_ticket::ByTicket;
use crate::deferred::DeferredTask;
use crate::wire::Wire;
use crate::{Node, Thread};
use gondwana_coherence::sync::{Answer, Ticket};
use gondwana_locks::{lock, wait_while};
use gondwana_topology::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
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

/// A call to make for another node.
struct Asked {
    from: NodeId,
    ticket: Ticket,
    call: StreamCall,
    bytes: Vec<u8>,
}

/// The threads that make calls for other nodes. A call may wait as long as the writer at the other end of a pipe likes, and
/// others must not wait for it: there are as many threads as there have been calls at a time.
#[derive(Default)]
pub(crate) struct StdioCallers {
    calls: Mutex<Calls>,
    came: Condvar,
    /// The results of calls of this node's threads.
    done: ByTicket<StreamDone>,
}

#[derive(Default)]
struct Calls {
    waiting: VecDeque<Asked>,
    /// Threads that are free for a call, or will be when they have begun.
    free: usize,
}

impl StdioCallers {
    /// Queues a call; true if another thread is needed, which counts as free from now on.
    fn add(&self, asked: Asked) -> bool {
        let mut calls = lock(&self.calls);
        calls.waiting.push_back(asked);
        if calls.free >= calls.waiting.len() {
            self.came.notify_one();
            return false;
        }
        calls.free += 1;
        true
    }

    /// The next call, for a thread that is free; waits for one.
    fn next(&self) -> Asked {
        let mut calls = lock(&self.calls);
        loop {
            if let Some(asked) = calls.waiting.pop_front() {
                calls.free -= 1;
                return asked;
            }
            calls = wait_while(&self.came, calls, |calls| calls.waiting.is_empty());
        }
    }

    /// The calling thread has made its call and is free.
    fn finish(&self) {
        lock(&self.calls).free += 1;
    }
}

impl Node {
    /// Has the node that has opened a stream make a call on it. `bytes` is what the call writes.
    pub fn call_stream(&'static self, opener: usize, call: StreamCall, bytes: Vec<u8>) -> StreamDone {
        let opener = NodeId(u16::try_from(opener).expect("a node of the run"));
        self.privately(move || {
            let ticket = u64::from(Thread::current(self).slot.0);
            // The result of the call comes with the rest, ahead of the answer.
            let _ = self.ask_with(opener, bytes, move |ticket| Wire::Stream { ticket, call });
            self.stdio.done.take(ticket).expect("it came ahead of the answer")
        })
    }

    /// Another node requests a call.
    pub(crate) fn stream_call_came(&self, from: NodeId, ticket: Ticket, call: StreamCall, bytes: &[u8]) {
        if let Some(done) = (self.hooks.call_stream_at_once)(&call, bytes) {
            return self.answer_stream_call(from, ticket, done);
        }
        if self.stdio.add(Asked { from, ticket, call, bytes: bytes.to_vec() }) {
            self.defer(DeferredTask::CallStreams);
        }
    }

    /// Starts another thread that makes calls.
    pub(crate) fn start_stream_caller(&'static self) {
        if let Err(error) = Thread::start_native("streams", || self.make_stream_calls()) {
            crate::fatal(&format!("starting a thread for streams: {error}"));
        }
    }

    fn make_stream_calls(&'static self) {
        loop {
            let asked = self.stdio.next();
            let done = (self.hooks.call_stream)(&asked.call, &asked.bytes);
            // Ahead of the answer: the next call may be made right after it.
            self.stdio.finish();
            self.answer_stream_call(asked.from, asked.ticket, done);
        }
    }

    fn answer_stream_call(&self, to: NodeId, ticket: Ticket, mut done: StreamDone) {
        let bytes = std::mem::take(&mut done.bytes);
        self.core().env.post(to, &Wire::StreamDone { ticket, done }, &bytes);
    }

    /// A call of a thread of this node is made.
    pub(crate) fn stream_call_done(&self, ticket: Ticket, done: StreamDone) {
        self.stdio.done.keep(ticket.0, done);
        self.core().announce(ticket, Answer::Done(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(ticket: u64) -> Asked {
        let call = StreamCall { stream: 0, action: StreamAction::Get };
        Asked { from: NodeId(1), ticket: Ticket(ticket), call, bytes: vec![] }
    }

    #[test]
    fn there_are_as_many_threads_as_calls_at_a_time() {
        let callers = StdioCallers::default();
        assert!(callers.add(asked(1)), "there is no thread");
        assert!(callers.add(asked(2)), "the first thread will have the first call");
        assert_eq!([callers.next(), callers.next()].map(|asked| asked.ticket.0), [1, 2]);
        callers.finish();
        assert!(!callers.add(asked(3)), "one of the two threads is free");
        assert!(callers.add(asked(4)));
        assert_eq!(callers.next().ticket.0, 3);
    }

    #[test]
    fn a_thread_that_is_free_waits_for_the_next_call() {
        let callers = StdioCallers::default();
        assert!(callers.add(asked(1)));
        callers.next();
        callers.finish();
        std::thread::scope(|scope| {
            let caller = scope.spawn(|| callers.next().ticket.0);
            assert!(!callers.add(asked(2)));
            assert_eq!(caller.join().unwrap(), 2);
        });
    }

    #[test]
    fn a_result_is_taken_once_by_its_own_thread() {
        let callers = StdioCallers::default();
        callers.done.keep(7, StreamDone { result: 1, ..StreamDone::default() });
        assert_eq!(callers.done.take(8), None);
        assert_eq!(callers.done.take(7).map(|done| done.result), Some(1));
        assert_eq!(callers.done.take(7), None);
    }
}
