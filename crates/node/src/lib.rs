//! One running node of the cluster machine: wires the coherence and synchronisation machines to this node's
//! memory and to the fabric, and gives the program's threads what they call.
//!
//! One lock (`core`) guards the machines. A *service thread* receives messages; a thread of the program that
//! waits for an answer receives messages as well, as long as it spins.

mod adaptive_spin;
mod allocation_caller;
mod announcements;
mod birth;
mod by_ticket;
mod callers;
mod clock;
mod code_address;
mod core;
mod crowd;
mod defect;
mod deferred;
mod descriptor_calls;
mod env;
mod exit;
mod fault;
mod fixed_line;
mod fork;
#[doc(hidden)]
pub mod fuzzing;
mod heap;
mod heap_apart;
mod held_locks;
mod inject;
mod interruptions;
mod keepalive;
mod mapped_files;
pub mod monitor;
mod native_stack;
mod numbers;
mod per_thread;
mod pinned_words;
mod placement;
mod process;
mod process_change;
mod registry;
mod schedule;
mod service;
mod setup;
mod signal_mask;
mod sparse_memory;
mod start;
mod stats;
mod stdio_calls;
mod sync;
mod tell;
mod thread;
mod thread_calls;
mod thread_number;
mod threads;
mod wait;
mod wait_slots;
mod waiting;
mod waits;
mod waker;
mod wire;

pub use allocation_caller::Caller;
pub use announcements::Announcement;
pub use descriptor_calls::{CallMemory, DescriptorCall, DescriptorDone, Direction, Pointer};
pub use fork::Child;
pub use gondwana_coherence::sync::{Claim, Construct, Initialised, Object, Part};
pub use mapped_files::MappedFiles;
pub use monitor::MonitoredConstruct;
pub use native_stack::native_stack;
pub use pinned_words::PinnedFault;
pub use process_change::{FileMapping, ProcessChange, StandardStream};
pub use setup::Setup;
pub use signal_mask::CREDENTIALS_SIGNAL;
pub use start::{Hooks, StartError};
pub use stdio_calls::{MOST_BYTES, StreamAction, StreamCall, StreamDone};
pub use sync::dispatch::DispatchRing;
pub use sync::{Arrival, BarrierWait, JoinWait, MutexKind, RwOperation};
pub use thread::{Interrupted, Thread};
pub use wait::Pause;
pub use wait_slots::WaitSlot;
pub use waker::Waker;
pub use wire::{Ending, Inherited, Scheduling, ThreadSpec};

use crate::core::{Core, CoreGuard};
use announcements::Announcements;
use by_ticket::ByTicket;
use callers::Callers;
use exit::RunEnd;
use gondwana_control::{Control, Report};
use gondwana_fabric::Fabric;
use heap::SharedHeap;
use interruptions::Interruptions;
use placement::PagePlacement;
use service::Service;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex};
use sync::SyncObjects;
use threads::Threads;
use waiting::Waiting;

/// This process as a node of the run. Lives as long as the process.
///
/// Each part has its state and the logic on it, and borrows what else it needs; this type wires them together.
pub struct Node {
    /// What does not change while the node runs; read through [`Deref`](std::ops::Deref).
    setup: Setup,
    core: Mutex<Core>,
    fabric: Arc<dyn Fabric>,
    sync: SyncObjects,
    announcements: Announcements,
    heap: SharedHeap,
    threads: Threads,
    waiting: Waiting,
    placement: PagePlacement,
    /// The threads that make calls for other nodes.
    callers: Callers,
    interruptions: Interruptions,
    /// Results of calls of this node's threads on streams.
    streams_done: ByTicket<StreamDone>,
    answer_bytes: ByTicket<Vec<u8>>,
    service: Service,
    run_end: RunEnd,
    control: Control,
    monitor: monitor::Monitor,
    times: clock::Times,
    notes: waits::Notes,
}

impl std::ops::Deref for Node {
    type Target = Setup;

    #[inline]
    fn deref(&self) -> &Setup {
        &self.setup
    }
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

    fn core(&self) -> CoreGuard<'_> {
        CoreGuard::new(&self.core, self)
    }

    /// As `core`, if nobody else uses the machines.
    fn try_core(&self) -> Option<CoreGuard<'_>> {
        CoreGuard::try_new(&self.core, self)
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
