//! What nodes say to each other.

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

/// What belongs to a process rather than to memory, and yet must be alike on all nodes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ProcessChange {
    /// How a signal is handled.
    Action {
        /// The signal.
        signal: i32,
        /// Address of the handler, or one of the kernel's constants.
        handler: u64,
        /// `SA_...` flags.
        flags: i32,
        /// Signals blocked meanwhile, bit 0 being signal 1.
        mask: u64,
    },
    /// The protection that the program wants for a range of shared memory.
    Protect {
        /// First address.
        address: u64,
        /// Bytes.
        length: u64,
        /// `PROT_...` flags.
        protection: i32,
        /// The range is the part of a mapping that lies beyond the mapped file.
        beyond_file: bool,
    },
    /// A change of the shared mappings of files.
    File(FileMapping),
    /// A descriptor of the receiver, which a thread of another node closes.
    CloseDescriptor {
        /// Its number.
        descriptor: i32,
    },
    /// A descriptor of which the receiver may have a copy is closed.
    ForgetDescriptor {
        /// Its number.
        descriptor: i32,
    },
    /// A stream of the sender is not at its end any more.
    UnmarkStream {
        /// As in [`StreamCall`](crate::StreamCall).
        stream: u64,
    },
    /// Standard input, output or error is another file, or closed.
    Standard {
        /// Its number.
        descriptor: i32,
        /// What is there now.
        stream: StandardStream,
    },
    /// A signal for a thread of the program, which may live on the receiver.
    Signal {
        /// The thread's number in the whole run.
        thread: u64,
        /// The signal.
        signal: i32,
        /// The value that comes with it.
        value: Option<u64>,
    },
    /// Functions without arguments to be called at each fork; 0 for none.
    AtFork {
        /// Before it.
        prepare: u64,
        /// After it in the parent.
        parent: u64,
        /// After it in the child.
        child: u64,
    },
    /// A function to be called at exit; on node 0 only.
    AtExit {
        /// Address of the function.
        function: u64,
        /// Its argument.
        argument: u64,
        /// The object that it belongs to.
        object: u64,
    },
    /// The program has made a robust mutex.
    ExpectRobustMutexes,
    /// The parameters of `erand48` and its relatives, which have their state from the caller.
    Congruential {
        /// What the state is multiplied by.
        multiplier: u64,
        /// What is added then.
        addend: u16,
    },
    /// A thread of the program, which may live on the receiver, is cancelled.
    Cancel {
        /// The thread's number in the whole run.
        thread: u64,
    },
    /// A signal for the program's process; on node 0 only.
    Kill {
        /// It goes to the whole process group.
        group: bool,
        /// The signal.
        signal: i32,
        /// The value that comes with it.
        value: Option<u64>,
    },
    /// A signal for a thread of the receiver.
    KillThread {
        /// The kernel's number of the thread.
        thread: i32,
        /// The signal.
        signal: i32,
    },
    /// Some signals are awaited: the receiver takes one of them that is pending for its process, and gives it in place of an
    /// error number.
    TakePending {
        /// The signals, bit 0 being signal 1.
        mask: u64,
    },
    /// The current directory.
    Directory {
        /// Its absolute path.
        path: Vec<u8>,
    },
    /// The mask of permissions of new files.
    Mask {
        /// As `umask` takes it.
        mask: u32,
    },
    /// Part of the memory that is alike on all nodes and private to each: the environment, and what the C library gives out.
    Common {
        /// Its address.
        at: u64,
        /// What is there now.
        bytes: Vec<u8>,
    },
    /// The C library's variable `environ`.
    Environ {
        /// The address of the list.
        list: u64,
    },
}

/// A change of the shared mappings of files, at addresses of [`MappedFiles`](crate::MappedFiles).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum FileMapping {
    /// A file is mapped.
    Map {
        /// The process that has the file open.
        process: i32,
        /// The number at which it has.
        descriptor: i32,
        /// First address.
        address: u64,
        /// Bytes.
        length: u64,
        /// `PROT_...` flags.
        protection: i32,
        /// `MAP_...` flags.
        flags: i32,
        /// Where in the file it begins.
        offset: u64,
    },
    /// A segment of System V shared memory is attached.
    Attach {
        /// The segment's number.
        segment: i32,
        /// First address.
        address: u64,
        /// Bytes.
        length: u64,
        /// `SHM_...` flags.
        flags: i32,
    },
    /// It is detached.
    Detach {
        /// First address.
        address: u64,
    },
    /// Nothing is mapped there any more.
    Unmap {
        /// First address.
        address: u64,
        /// Bytes.
        length: u64,
    },
    /// The protection is another one.
    Protect {
        /// First address.
        address: u64,
        /// Bytes.
        length: u64,
        /// `PROT_...` flags.
        protection: i32,
    },
    /// A mapping is longer, and elsewhere.
    Move {
        /// First address before.
        old: u64,
        /// Bytes before.
        old_length: u64,
        /// First address after.
        new: u64,
        /// Bytes after.
        new_length: u64,
    },
    /// What was written is to be in the file's storage.
    Sync {
        /// First address.
        address: u64,
        /// Bytes.
        length: u64,
        /// `MS_...` flags.
        flags: i32,
    },
}

/// What a node has at the number of a standard stream.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum StandardStream {
    /// Nothing.
    Closed,
    /// The null device.
    Null,
    /// Something that this process has open at the same number.
    Of(i32),
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
    /// True if nobody will join it.
    pub detached: bool,
    /// Signals that it starts with blocked, bit 0 being signal 1: those of the thread that creates it.
    pub blocked: u64,
    /// The nice value of the thread that creates it, if the program has changed that.
    pub nice: Option<i32>,
    /// The processors on which the thread that creates it may run, a bit for each, if the program has changed them.
    pub processors: Option<[u64; PROCESSORS]>,
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
