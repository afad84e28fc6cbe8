//! Calls on standard I/O streams (`FILE`) and directories of other nodes: only the node that has opened one can make them.

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
    /// The stream's or directory's address on the node that has opened it; [`StreamCall::INPUT`] and its relatives.
    pub stream: u64,
    /// What to do with it.
    pub action: StreamAction,
    /// The node of the calling thread.
    pub node: u16,
    /// The calling thread's number in the whole run.
    pub thread: u64,
    /// The delegation that the caller's node gives back with this call, and how many of its bytes were read.
    pub returned: Option<(u64, u32)>,
    /// The call is about the program's memory or its functions: the caller has released what its node wrote.
    pub is_released: bool,
}

impl StreamCall {
    /// In place of an address: standard input.
    pub const INPUT: u64 = 0;
    /// Node 0's standard output, of which only the lock is of use elsewhere.
    pub const OUTPUT: u64 = 1;
    /// Its standard error.
    pub const ERRORS: u64 = 2;
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
    /// `getc`. The rest of the buffer may come with it, as a delegation; it does if this says so.
    Get(bool),
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
    /// Reads wide characters up to and including this one, or so many. The result is how many there are.
    ReadWide(u32, u32),
    /// Writes wide characters. The result is how many are written.
    WriteWide,
    /// `vfwscanf` by the function of this number. The bytes are the format with its terminator, then the program's pointers.
    ScanWide(u8),
    /// `ungetwc`.
    UngetWide(u32),
    /// `fwide`.
    Orient(i32),
    /// `flockfile`, for the calling thread.
    Lock,
    /// `ftrylockfile`.
    TryLock,
    /// `funlockfile`.
    Unlock,
    /// `freopen`: the bytes are the mode and, if this says so, the path, with their terminators.
    Reopen(bool),
    /// `__fpurge`.
    Purge,
    /// `__fpending`.
    Pending,
    /// To the node that has a delegation: gives back the one of this number. The result is how many of its bytes were read.
    Recall(u64),
    /// `readdir`: the bytes are the entry. The result is 0 at the end.
    ReadEntry,
    /// `rewinddir`.
    RewindDirectory,
    /// `telldir`.
    TellDirectory,
    /// `seekdir`.
    SeekDirectory(i64),
    /// `dirfd`.
    DirectoryDescriptor,
    /// `closedir`.
    CloseDirectory,
}

impl StreamAction {
    /// True if the call writes to the program's memory, on whatever stream.
    #[must_use]
    pub fn is_about_memory(self) -> bool {
        matches!(self, Self::ScanWide(_))
    }

    /// True if the call neither reads nor moves, so that the calling node keeps what was delegated to it.
    #[must_use]
    pub fn leaves_delegation(self) -> bool {
        matches!(
            self,
            Self::Lock | Self::TryLock | Self::Unlock | Self::Descriptor | Self::HasFailed | Self::IsAtEnd
        )
    }
}

/// What came of a call on a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamDone {
    /// What the call gives.
    pub result: i64,
    /// `errno` after it; [`StreamDone::UNRELEASED`] if nothing was done.
    pub error: i32,
    /// [`StreamDone::AT_END`] and [`StreamDone::FAILED`], as far as they are so.
    pub marks: u8,
    /// The number of the delegation whose bytes come with the answer; 0 for none.
    pub delegation: u64,
    /// What was read. Travels beside the rest.
    #[serde(skip)]
    pub bytes: Vec<u8>,
}

impl StreamDone {
    /// In place of an error number: the call is about the program's memory, or orders what threads do, and the caller must release what
    /// its node wrote.
    pub const UNRELEASED: i32 = -1;
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
