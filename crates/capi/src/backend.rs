//! What the functions for C need of the machine that they run on.

use crate::error::Error;
use crate::monitor_backend::Monitor;
use gondwana_rset::{Placement, RSet, Registry};
use gondwana_topology::{Bytes, Machine, NodeId, ProcessorId};
use libc::{c_int, c_void};

/// What kind of machine a program runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One computer; the kernel places threads and pages.
    Host,
    /// Several nodes under `gondwana run`; Gondwana does.
    Cluster,
}

/// Whose binding is meant. Numbers are those that the kernel gives threads and processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    /// The calling thread.
    ThisThread,
    /// All threads of the program, with those that they start later.
    ThisProcess,
    /// A thread of the program.
    Thread(c_int),
    /// All threads of a process.
    Process(c_int),
}

/// What else memory is to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// All pages are there at once, also where the policy leaves the choice to the system.
    pub prefault: bool,
    /// Pages stay in memory.
    pub lock: bool,
    /// No huge pages.
    pub small_pages: bool,
    /// Pages in a row cycle through the colours of a cache.
    pub coloured: bool,
}

/// Memory that [`Backend::allocate`] has got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The address of its first page. The page before belongs to the block, too.
    pub address: usize,
    /// The node from whose point of view all pages were placed, if the policy is one that follows the touching thread
    /// ([`Placement::follows_touch`]); `None` if each page is placed when it is touched, or the policy is another one.
    pub seen_from: Option<NodeId>,
    /// What could not be had, one sentence each; none if all is as asked for.
    pub remarks: Vec<String>,
}

/// What `pthread_create` takes, and the set that the thread is to run in.
///
/// The start routine may unwind (`pthread_exit`, cancellation).
#[derive(Clone, Copy, Debug)]
pub struct NewThread<'a> {
    /// Processors to run on and memory to use; both are there, and in the machine.
    pub rset: &'a RSet,
    /// The caller's attributes, or null.
    pub attributes: *const libc::pthread_attr_t,
    /// What the thread does.
    pub routine: Routine,
    /// What it is given.
    pub argument: *mut c_void,
}

/// The function that a thread runs.
pub type Routine = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// The machine below the functions for C.
///
/// The functions check what the program passes (null, lengths, sets outside of the machine) and copy it before they
/// call a backend, and write results to the program's memory after it has returned: a backend does not touch memory
/// of the program except where it is said here. It may be called by any thread of the program at any time after the
/// backend was installed, and does not unwind. What it returns as a *remark* is a sentence about something that was
/// asked for and could not be had, with which the program goes on.
///
/// On a cluster, each node installs its own backend, and a call is made on the node of the calling thread. A handle
/// or block made on one node can be used and freed on every other.
pub trait Backend: Sync {
    /// What the machine is.
    fn kind(&self) -> Kind;

    /// The nodes with their processors, memory and distances; its `limits` say what the program may use. The same on
    /// all nodes of a cluster, and all the time.
    fn machine(&self) -> Result<&Machine, Error>;

    /// Memory that a node has left at this moment; `None` if that is unknown.
    fn available_memory(&self, node: NodeId) -> Option<Bytes>;

    /// How many colours pages can have, for [`Extras::coloured`]: an error says why there are none.
    fn colours(&self) -> Result<u64, Error>;

    /// Where the calling thread is.
    fn here(&self) -> Result<(ProcessorId, NodeId), Error>;

    /// The node on which a thread is, or of a process the thread that it began with. `ESRCH` if there is none.
    fn node_of(&self, whom: Whom) -> Result<NodeId, Error>;

    /// The named sets.
    fn registry(&self) -> Result<Registry, Error>;

    /// Changes the named sets, or leaves them as they are if `change` fails. Of several that do so at the same time,
    /// one waits for the other.
    fn change_registry(
        &self,
        change: &mut dyn FnMut(&mut Registry) -> Result<(), Error>,
    ) -> Result<(), Error>;

    /// Memory of the program's own heap, as `malloc` gives it, for a handle; null if there is none left. The caller
    /// writes to it.
    fn allocate_handle(&self, bytes: usize) -> *mut c_void;

    /// Returns it.
    ///
    /// # Safety
    /// It came from `allocate_handle`, of whichever node, and nobody uses it any more.
    unsafe fn free_handle(&self, handle: *mut c_void);

    /// Copies bytes at an address of the program that may be wrong: false if they cannot be read. The address comes
    /// from a program that passes it off as a block.
    fn peek(&self, address: usize, bytes: &mut [u8]) -> bool;

    /// `pages` pages of zeros, placed by `placement` from the point of view of the calling thread: its page number 0
    /// is the first one of the block. One more page lies before it, readable and writable and anywhere: the caller
    /// keeps its own record there.
    ///
    /// Pages that are on other nodes than asked for are no error but a remark. `ENOMEM` if there is no such memory.
    fn allocate(&self, pages: usize, placement: &Placement, extras: Extras) -> Result<Block, Error>;

    /// Returns a block with the page before it.
    ///
    /// # Safety
    /// It came from `allocate`, of whichever node, with as many pages, and nobody uses it any more.
    unsafe fn free(&self, address: usize, pages: usize) -> Result<(), Error>;

    /// Writes the node of each page from an address on, which begins a page, or -1 for pages that are nowhere: never
    /// touched, or out on a disk. On a cluster, a page is on its home, which those with a policy have before they are
    /// touched. The pages need not be from `allocate`.
    ///
    /// `nodes` may be the program's memory. A backend that takes locks must not do so while it writes there.
    fn nodes_of_pages(&self, address: usize, nodes: &mut [c_int]) -> Result<(), Error>;

    /// Binds threads to the processors of a set and to its memory, for what they touch from now on. An empty part of
    /// the set leaves that as it is; threads and processes that bound threads start inherit the binding.
    ///
    /// What cannot be had becomes remarks, if `strict` an error, and then everything is as it was before.
    fn bind(&self, whom: Whom, rset: &RSet, strict: bool) -> Result<Vec<String>, Error>;

    /// Where threads may run and have memory from, as the system has it now, not as somebody has asked for.
    fn binding(&self, whom: Whom) -> Result<RSet, Error>;

    /// Starts a thread on a processor of the set, bound to the set before its routine runs, and says what is in the
    /// way. The number is what `pthread_join` and the other functions take.
    ///
    /// # Errors
    /// Those of `pthread_create`.
    ///
    /// # Safety
    /// As for `pthread_create`.
    unsafe fn start_thread(&self, thread: NewThread<'_>) -> Result<(libc::pthread_t, Vec<String>), Error>;

    /// The monitor. `ENOTSUP` where nothing crosses between nodes that it could see.
    fn monitor(&self) -> Result<&dyn Monitor, Error>;
}
