//! What nodes say to each other.

use crate::process_change::ProcessChange;
use crate::{StreamCall, StreamDone};
use gondwana_coherence::sync::{Answer, KeeperMessage, Request, SyncMessage, Ticket};
use gondwana_topology::{NodeId, NodeSet};
use serde::{Deserialize, Serialize};

/// By which function of the C library a program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// `exit`, with all that is done at a program's end.
    Exit,
    /// `quick_exit`, with the functions that were registered for it.
    QuickExit,
    /// `_exit`: at once.
    AtOnce,
}

/// Everything that one node may send to another, but for a [`SyncMessage`] and for messages of the coherence protocol; no
/// encoding begins like one of these. Bulk data travels beside it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Wire {
    /// An operation on an object that the receiver manages.
    Request {
        /// The sender's name for the operation.
        ticket: Ticket,
        /// What to do.
        request: Request,
    },
    /// The answer to a request.
    Reply {
        /// The receiver's name for the operation.
        ticket: Ticket,
        /// The answer.
        answer: Answer,
    },
    /// About an object that does not rest at its manager.
    Keeper(KeeperMessage),
    /// To node 0: choose a node and a number for a new thread; answered with the number.
    Place {
        /// The sender's name for the operation.
        ticket: Ticket,
        /// The nodes to choose from, if they are not all.
        among: Option<NodeSet>,
    },
    /// Start a thread; answered with 0 or an error.
    Start {
        /// The sender's name for the operation.
        ticket: Ticket,
        /// What to start.
        thread: ThreadSpec,
    },
    /// To node 0: a thread has ended.
    Ended,
    /// A thread announces something to threads that wait for it under a name.
    Announce {
        /// The name.
        name: u64,
        /// The announcement's number among those of its name.
        number: u64,
        /// What it says.
        words: Vec<u64>,
    },
    /// Something that the runtime library of the program's language has to say: the [`Hooks`](crate::Hooks) understand it.
    Tell {
        /// The receiver sees what the sender has written before.
        releases: bool,
        /// What it says.
        words: Vec<u64>,
        /// The sender's name for the operation, if it is to be answered with 0.
        ticket: Option<Ticket>,
    },
    /// These blocks of the receiver's part of the heap are free again.
    Free(Vec<u64>),
    /// How large is this block of the receiver's part of the heap?
    UsableSize {
        /// The sender's name for the operation.
        ticket: Ticket,
        /// The block's address.
        address: u64,
    },
    /// To which of these pages has the receiver given memory? Answered with the first run of them: its first page in the
    /// upper half, how many they are in the lower one, 0 for none.
    Used {
        /// The sender's name for the operation.
        ticket: Ticket,
        /// The first page.
        first: u32,
        /// The page after the last one.
        end: u32,
    },
    /// Do to this process what a thread of the program did to its own; answered with 0 or an error number.
    Everywhere {
        /// The sender's name for the operation.
        ticket: Ticket,
        /// What to do.
        change: ProcessChange,
    },
    /// Does the program have this descriptor open on the receiver? Answered with the receiver's process or, negative,
    /// an error number.
    Lend {
        /// The sender's name for the operation.
        ticket: Ticket,
        /// The descriptor's number.
        descriptor: i32,
    },
    /// Which descriptor, of this number or above, does the program have open on the receiver? Answered with the first, or -1.
    NextDescriptor {
        /// The sender's name for the operation.
        ticket: Ticket,
        /// The least number.
        from: i32,
    },
    /// Make a call on a stream that the receiver has opened; answered with `StreamDone`. What the call writes travels beside it.
    Stream {
        /// The sender's name for the operation.
        ticket: Ticket,
        /// The call.
        call: StreamCall,
    },
    /// A call on a stream is made. What it has read travels beside it.
    StreamDone {
        /// The receiver's name for the operation.
        ticket: Ticket,
        /// What came of it.
        done: StreamDone,
    },
    /// Make a call on a descriptor that the receiver has open: a [`DescriptorCall`](crate::DescriptorCall) travels beside it. Answered
    /// with `Bytes`.
    Call {
        /// The sender's name for the operation.
        ticket: Ticket,
    },
    /// A call that the receiver makes for the sender is to end, if it waits.
    Interrupt {
        /// The sender's name for the call.
        ticket: Ticket,
    },
    /// Of which of these pages is the receiver home, or knows where nobody else does? Answered with `HomesFound`, and
    /// then with 0.
    Homes {
        /// The sender's name for the operation.
        ticket: Ticket,
        /// The sender's name for the question.
        name: u64,
        /// The first page.
        first: u32,
        /// How many there are.
        count: u32,
    },
    /// The homes of some pages.
    HomesFound {
        /// The receiver's name for the question.
        name: u64,
        /// First pages, how many, and their home.
        runs: Vec<(u32, u32, NodeId)>,
    },
    /// These pages of the sender's part of the span are mostly read, or no longer.
    Replicate {
        /// The first page.
        first: u32,
        /// How many there are.
        count: u32,
        /// They are.
        on: bool,
    },
    /// These bytes of the receiver's pinned memory, which is not mapped on the sender, or fewer if they cannot be read; answered with `Bytes`.
    ReadPinned {
        /// The sender's name for the operation.
        ticket: Ticket,
        /// Address of the first one.
        address: u64,
        /// How many there are.
        count: u32,
    },
    /// The answer travels beside it.
    Bytes {
        /// The receiver's name for the operation.
        ticket: Ticket,
    },
    /// The semaphores whose state is at the receiver, from an address on and as many as fit; answered with `Bytes`.
    Semaphores {
        /// The sender's name for the operation.
        ticket: Ticket,
        /// The least address.
        from: u64,
    },
    /// What travels beside it is written to the receiver's pinned memory; answered with 0, or -1 if it cannot be.
    WritePinned {
        /// The sender's name for the operation.
        ticket: Ticket,
        /// Address of the first byte.
        address: u64,
    },
    /// A word of the receiver's pinned memory gets a value if it has an expected one; answered with 1 if it had, or 0, or -1 if it
    /// cannot be written.
    ExchangePinned {
        /// The sender's name for the operation.
        ticket: Ticket,
        /// Its address.
        address: u64,
        /// What is expected.
        current: u64,
        /// What it gets.
        new: u64,
    },
    /// To node 0: the program ends, with this status.
    Exit(Ending, i32),
    /// From node 0: write out what the streams hold and stand still.
    Close,
    /// All is written.
    Closed,
    /// The sender's computer is there.
    Alive,
}

/// A thread to be started.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ThreadSpec {
    /// The thread's number in the whole run.
    pub id: u64,
    /// Address of its start routine.
    pub function: u64,
    /// Its argument.
    pub argument: u64,
    /// Bytes of stack.
    pub stack: u64,
    /// Where they are, if the program has brought them.
    pub stack_at: Option<u64>,
    /// True if nobody will join it.
    pub detached: bool,
    /// Signals that it starts with blocked, bit 0 being signal 1: those of the thread that creates it, unless its attributes say others.
    pub blocked: u64,
    /// How the kernel is to run it.
    pub scheduling: Scheduling,
    /// What else the thread that creates it passes on; `None` if a thread of the runtime does.
    pub inherited: Option<Inherited>,
}

/// How the kernel runs a new thread: as the thread that creates it, where the program has changed that, or as the attributes say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduling {
    /// Its nice value.
    pub nice: Option<i32>,
    /// The processors on which it may run, a bit for each.
    pub processors: Option<[u64; PROCESSORS]>,
    /// Its policy, and its priority under that.
    pub policy: Option<[i32; 2]>,
}

/// What the kernel gives a new thread of its creator.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Inherited {
    /// Its name, which ends with a null.
    pub name: [u8; 16],
    /// How it computes with floating-point numbers: its `MXCSR` in the upper half, and the control word of the x87.
    pub modes: u32,
}

/// Words of a set of processors, as large as the C library's.
const PROCESSORS: usize = 16;

/// Names under which messages that are not the coherence protocol's are counted; the index is the number that [`Wire::kind`]
/// gives. Several types share a name: "heap" also counts the questions about homes and the requests for replicas, "process"
/// also counts calls on streams of other nodes.
pub(crate) const KINDS: [&str; 8] =
    ["lock", "barrier", "request", "reply", "thread", "heap", "process", "alive"];

impl Wire {
    /// The type's number in [`KINDS`].
    #[must_use]
    pub(crate) fn kind(&self) -> usize {
        match self {
            Self::Request { .. } | Self::Keeper(_) => 2,
            Self::Reply { .. } => 3,
            Self::Place { .. }
            | Self::Start { .. }
            | Self::Ended
            | Self::Announce { .. }
            | Self::Tell { .. } => 4,
            Self::Free(_)
            | Self::UsableSize { .. }
            | Self::Used { .. }
            | Self::Homes { .. }
            | Self::HomesFound { .. }
            | Self::ReadPinned { .. }
            | Self::Bytes { .. }
            | Self::Semaphores { .. }
            | Self::WritePinned { .. }
            | Self::ExchangePinned { .. }
            | Self::Replicate { .. } => 5,
            Self::Everywhere { .. }
            | Self::Lend { .. }
            | Self::NextDescriptor { .. }
            | Self::Stream { .. }
            | Self::StreamDone { .. }
            | Self::Call { .. }
            | Self::Interrupt { .. }
            | Self::Exit(..)
            | Self::Close
            | Self::Closed => 6,
            Self::Alive => 7,
        }
    }
}

/// The number in [`KINDS`] of a message about a mutex or a barrier.
#[must_use]
pub(crate) fn sync_kind_of(message: SyncMessage) -> usize {
    match message {
        SyncMessage::Lock(_) => 0,
        SyncMessage::Barrier(_) => 1,
    }
}
