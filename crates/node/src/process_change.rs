//! Changes of what belongs to the program's process, which all its nodes make.

use serde::{Deserialize, Serialize};

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
    /// Numbers of descriptors are a node's from now on.
    Descriptors {
        /// The node.
        node: u16,
        /// The first of them.
        first: i32,
        /// Behind the last.
        end: i32,
    },
    /// A node is about to start its first child.
    HasChildren {
        /// The node.
        node: u16,
    },
    /// A thread locks records of files: from now on a descriptor that is closed may give up some.
    LockRecords,
    /// Locks of a file are given up, by whose open file the receiver may lock.
    ForgetRecords {
        /// The file's device.
        device: u64,
        /// Its number there.
        number: u64,
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
    /// Whether a thread of the receiver takes a signal: else the answer is `ESRCH`.
    Takes {
        /// The signal.
        signal: i32,
    },
    /// A signal for the program's process: for node 0, but for one that its threads block and a thread of the receiver takes.
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
    /// The program has registered a table of frames of code that it has made.
    Frames {
        /// The table's address.
        table: u64,
        /// Of each function where it begins and ends, and the address of its entry.
        functions: Vec<[u64; 3]>,
    },
    /// A table of frames is registered no more.
    ForgetFrames {
        /// The table's address.
        table: u64,
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
