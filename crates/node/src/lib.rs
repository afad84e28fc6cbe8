//! One running node of the cluster machine: wires the coherence and synchronisation machines to this node's
//! memory and to the fabric, and gives the program's threads what they call.
//!
//! One lock (`core`) guards the machines. A *service thread* receives messages; a thread of the program that
//! waits for an answer receives messages as well, as long as it spins.

mod alive;
mod caller;
mod clock;
mod core;
mod defect;
mod exit;
mod fault;
mod fork;
#[doc(hidden)]
pub mod fuzzing;
mod heap;
mod inject;
mod line;
pub mod monitor;
mod own;
mod patience;
pub mod placement;
mod ports;
mod process;
mod schedule;
mod service;
mod slots;
mod start;
mod stats;
mod stream_calls;
mod sync;
mod thread;
mod threads;
mod unwind;
mod used;
mod wait;
mod wire;

pub use caller::Caller;
pub use gondwana_coherence::sync::{Initialised, Object};
pub use start::{Hooks, StartError};
pub use stream_calls::{MOST_BYTES, StreamAction, StreamCall, StreamDone};
pub use sync::{JoinWait, MutexKind, RwOperation};
pub use thread::Thread;
pub use wire::{ProcessChange, StandardStream, ThreadSpec};

use crate::core::{Core, CoreGuard};
use gondwana_coherence::sync::LockTable;
use gondwana_control::{Boot, Consistency, Control, FabricBoot, Report};
use gondwana_fabric::Fabric;
use gondwana_memory::Geometry;
use gondwana_topology::NodeId;
use patience::Patience;
use service::Errand;
use slots::Slots;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

/// This process as a node of the run. Lives as long as the process.
pub struct Node {
    me: NodeId,
    boot: Boot,
    hooks: Hooks,
    geometry: Geometry,
    layout: gondwana_coherence::Layout,
    core: Mutex<Core>,
    fabric: Arc<dyn Fabric>,
    slots: Arc<Slots>,
    lock_table: Arc<LockTable>,
    heap: Arc<gondwana_memory::heap::Heap>,
    freed_elsewhere: heap::FreedElsewhere,
    /// The C library's names for the threads of this node.
    natives: Mutex<HashMap<u64, u64>>,
    /// `pthread_once` controls that this node knows to be done, with their generation.
    onces: RwLock<HashMap<usize, u32>>,
    stamps: AtomicU64,
    /// Node 0's record of all threads.
    registry: Mutex<threads::Registry>,
    /// What the service thread is to do once it is not receiving.
    errands: Mutex<VecDeque<Errand>>,
    /// There may be some.
    has_errands: AtomicBool,
    stream_callers: stream_calls::StreamCallers,
    remote_threads: AtomicBool,
    /// Set and woken when the last thread has ended while main waits for it.
    idle: AtomicU32,
    /// Worker nodes that have written out their streams, at the end.
    closed: AtomicU32,
    /// A page is kept for a thread of this node although another node wants it.
    holding: AtomicBool,
    heard: alive::Heard,
    control: Control,
    stack_bytes: usize,
    /// Threads of the program on this node, also those that are being started, and of these, those that wait.
    live: AtomicU32,
    waiting: AtomicU32,
    /// What polling was good for: for threads that wait for pages, which come soon or from a busy node; for those that
    /// wait for what other threads do; and for the service thread.
    page_patience: Patience,
    patience: Patience,
    service_patience: Patience,
    /// Where pages go, unless that is left to the system.
    placer: Option<placement::Placer>,
    /// The program has allocated memory with a policy of its own.
    has_placed: AtomicBool,
    asked: Mutex<placement::Asked>,
    replicated: placement::Replicated,
    /// Homes that other nodes have told, by the name of the question.
    found: Mutex<HashMap<u64, Vec<placement::HomeRun>>>,
    /// What becomes of what the tap of the ports sees.
    monitor: monitor::Monitor,
    times: clock::Times,
    events: stats::Events,
}

static CURRENT: AtomicPtr<Node> = AtomicPtr::new(std::ptr::null_mut());

impl Node {
    /// The node that this process is, once it is one.
    #[inline]
    #[must_use]
    pub fn current() -> Option<&'static Self> {
        // SAFETY: the pointer is null or comes from a leaked box.
        unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
    }

    /// True on the node that runs `main`.
    #[inline]
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.me == NodeId(0)
    }

    /// How many nodes the run has.
    #[must_use]
    pub fn nodes(&self) -> usize {
        usize::from(self.boot.nodes)
    }

    /// How many processors the whole machine has, if all nodes have as many as this one.
    #[must_use]
    pub fn processors(&self) -> u32 {
        u32::from(self.boot.nodes) * u32::from(self.boot.processors)
    }

    /// True if the program runs release consistent only because no atomic instruction was found in it.
    #[must_use]
    pub fn relies_on_no_atomics(&self) -> bool {
        self.boot.chosen && self.boot.consistency == Consistency::Rc
    }

    /// True if all nodes are known to be processes of one computer.
    #[must_use]
    pub fn is_on_one_computer(&self) -> bool {
        matches!(self.boot.fabric, FabricBoot::Shm { .. })
    }

    /// True if the address is shared by all nodes.
    #[inline]
    #[must_use]
    pub fn is_shared(&self, address: usize) -> bool {
        self.geometry.page_of(address).is_some()
    }

    /// The node that manages the object at an address: the manager of its page.
    fn manager(&self, address: usize) -> NodeId {
        manager_of(&self.geometry, &self.layout, address)
    }

    fn core(&self) -> CoreGuard<'_> {
        CoreGuard::new(&self.core, self)
    }

    fn report(&self, report: &Report) {
        // A launcher that is gone takes this process with it; nobody is left to be told.
        let _ = self.control.send(report);
    }

    /// As `report`, unless the launcher is so far behind in reading that it would be waited for.
    fn report_now(&self, report: &Report) {
        let _ = self.control.send_now(report);
    }

    /// Tells the user of something that cannot work on several nodes.
    pub fn refuse(&self, what: &str) {
        self.report(&Report::Refused { what: what.to_owned() });
    }
}

fn manager_of(geometry: &Geometry, layout: &gondwana_coherence::Layout, address: usize) -> NodeId {
    geometry.page_of(address).map_or(NodeId(0), |page| layout.manager(gondwana_coherence::Page(page)))
}

/// Ends this node, and with it the run, with one line for the user.
fn fatal(what: &str) -> ! {
    let line = match defect::node() {
        Some(node) => format!("gondwana: node {node}: {what}\n"),
        None => format!("gondwana: {what}\n"),
    };
    // By system call: the functions of these names are the program's, and end the whole run in order, which needs the lock
    // that this thread may hold.
    // SAFETY: the buffer is valid for its length; the process ends at once.
    unsafe {
        gondwana_sys::syscall!(libc::SYS_write, 2, line.as_ptr(), line.len());
        gondwana_sys::syscall!(libc::SYS_exit_group, 125);
    }
    unreachable!("exit_group does not return")
}
