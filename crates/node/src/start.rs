//! How a process becomes a node.

use crate::MappedFiles;
use crate::announcements::Announcements;
use crate::by_ticket::ByTicket;
use crate::callers::Callers;
use crate::core::Core;
use crate::crowd::Crowd;
use crate::env::NodeEnv;
use crate::exit::RunEnd;
use crate::heap::SharedHeap;
use crate::interruptions::Interruptions;
use crate::keepalive::Keepalives;
use crate::monitor::Monitor;
use crate::placement::{PagePlacement, Placer};
use crate::registry::Registry;
use crate::service::Service;
use crate::sync::SyncObjects;
use crate::threads::Threads;
use crate::wait_slots::WaitSlots;
use crate::waiting::Waiting;
use crate::waits::Notes;
use crate::wire::Ending;
use crate::{
    CURRENT, DescriptorCall, DescriptorDone, Node, ProcessChange, Setup, StreamCall, StreamDone, ThreadSpec,
    clock,
};
use gondwana_coherence::sync::{LockTable, ManagerOf, Object, RestingTable};
use gondwana_coherence::{CommonAfter, Engine, Layout, Managers, Page, Region, StartOptions};
use gondwana_control::{Boot, Consistency, Control, Exchange, FabricBoot};
use gondwana_elf::{data_segments, loaded};
use gondwana_fabric::{ConnectError, Fabric, Security, SegmentError, ShmFabric, TcpConfig, TcpFabric};
use gondwana_memory::heap::{Heap, Layout as HeapLayout};
use gondwana_memory::{Access, MemoryError, PAGE_SIZE, Pages, SPAN_BASE, Segment, ThreadMemory};
use gondwana_page::{PAGE_BITS, to_usize};
use gondwana_rset::{PlacementError, RSet, ThreadPlan};
use gondwana_topology::NodeId;
use std::net::TcpListener;
use std::ops::Range;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use thiserror::Error;

/// What the library around the node does for it.
#[derive(Clone, Copy)]
pub struct Hooks {
    /// Starts a thread of the program on this node.
    pub start_thread: fn(&'static Node, ThreadSpec) -> Result<(), i32>,
    /// Writes out what standard output holds, without waiting for a thread that is using it.
    pub flush_output: fn(),
    /// Writes out what all streams hold, waiting for threads that are using them.
    pub flush_all_streams: fn(),
    /// Does to this process what a thread of another node did to its own; 0 or an error number.
    pub apply: fn(&ProcessChange) -> i32,
    /// Lends a descriptor of the program to another node. Gives this process's number or, negative, an error number.
    pub lend: fn(i32) -> i32,
    /// The first descriptor, of a number or above, that the program has open in this process; -1 if there is none.
    pub next_descriptor: fn(i32) -> i32,
    /// Makes a call on a stream of this node for another one, which has given these bytes to be written.
    pub call_stream: fn(&StreamCall, &[u8]) -> StreamDone,
    /// Makes a call on a descriptor for another node, with the memory that it reads. It is repeated
    /// after an interruption that the function given does not know of.
    pub call_descriptor: fn(&DescriptorCall, &[u8], &dyn Fn() -> bool) -> DescriptorDone,
    /// The same in the receiving thread, if the call waits for nothing; otherwise `None`.
    pub call_descriptor_at_once: fn(&DescriptorCall, &[u8]) -> Option<DescriptorDone>,
    /// Interrupts a system call of the thread with this number of the kernel's.
    pub interrupt: fn(i32),
    /// As `call_stream` if that takes no time: neither a system call nor another thread is in the way.
    pub call_stream_at_once: fn(&StreamCall, &[u8]) -> Option<StreamDone>,
    /// Calls a function on a stack that is private to the node, if the present one is not.
    pub on_private_stack: fn(&mut dyn FnMut()),
    /// What [`Node::tell`] says on another node, by a thread that receives messages: it must not wait.
    pub told: fn(NodeId, &[u64]),
    /// What [`Node::later`] has left to the service thread, which may wait.
    pub later: fn(&[u64]),
    /// Ends the program with a status. Called on node 0.
    pub exit: fn(Ending, i32),
    /// The C library's name for the calling thread.
    pub native_self: fn() -> u64,
    /// True if the program handles a signal, so that one may end a wait.
    pub handles_signals: fn() -> bool,
}

/// Why a process could not become a node.
#[derive(Debug, Error)]
pub enum StartError {
    /// Of this node's memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Of the shared memory segment.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// Of the connections to the other nodes.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Of the policies for threads and memory.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// The span is too small for its parts or too large for page numbers.
    #[error("a span of {0} bytes cannot be divided among the nodes; give another --span")]
    Span(u64),
    /// There is no coherence protocol of this name.
    #[error("there is no coherence protocol {0:?}")]
    Protocol(String),
}

/// The heap deals out parts of this granularity.
const PART_UNIT: u64 = 1 << 20;

/// How long nodes wait for each other at the start.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// How much longer for each node of the run: they begin one after the other, and may share the processors of one computer.
const CONNECT_TIMEOUT_EACH: Duration = Duration::from_millis(250);

/// How long a computer may be silent before its nodes count as lost. Its kernel breaks the silence however busy its
/// processors are, and packets that were lost are sent again after 0.2 s and 0.6 s.
const SILENCE: Duration = Duration::from_millis(1200);

impl Node {
    /// Makes this process a node.
    ///
    /// # Safety
    /// Called once, before the program's own code runs and while no other thread does. `own` is an address inside
    /// the calling library, whose data stays private.
    ///
    /// # Errors
    /// If memory or the other nodes cannot be had.
    pub unsafe fn start(boot: Boot, hooks: Hooks, own: usize) -> Result<&'static Self, StartError> {
        let me = NodeId(boot.node);
        crate::defect::begin(boot.node);
        crate::inject::begin(boot.node);
        let part = part(&boot);
        let part_pages = u32::try_from(part / PAGE_SIZE as u64).map_err(|_| StartError::Span(boot.span))?;
        let span_pages = part_pages.checked_mul(u32::from(boot.nodes)).ok_or(StartError::Span(boot.span))?;
        if part_pages == 0 {
            return Err(StartError::Span(boot.span));
        }
        // SAFETY: the launcher left this descriptor to this process.
        let frames = unsafe { OwnedFd::from_raw_fd(boot.frames_fd) };
        if loaded::want_executable_stacks() {
            gondwana_memory::make_executable();
        }
        // SAFETY: the caller promised that nobody else is running; the segments are this process's.
        let mut pages =
            unsafe { Pages::new(span_pages, &data_segments(own), me == NodeId(0), boot.mechanism, frames)? };
        // Before common pages are to be seen, which nodes that have started already may be using.
        let data = contents(&pages);
        // SAFETY: as above.
        let common = unsafe { OwnedFd::from_raw_fd(boot.common_fd) };
        let start = ThreadMemory::length(boot.nodes, boot.span);
        let share = |_| pages.share(common.as_fd(), start, boot.nodes);
        let words = boot.common_after.map(share).transpose()?.flatten();
        let common_pages = pages.common_set();
        let common_after = boot.common_after.filter(|_| words.is_some());
        let together = matches!(boot.fabric, FabricBoot::Shm { .. });
        let thread_memory = ThreadMemory::map(boot.node, boot.nodes, boot.span, common, together)?;
        let geometry = pages.geometry().clone();
        let first_data = Page(span_pages);
        let data_pages = geometry.pages() - span_pages;
        let layout = Layout::new(
            boot.nodes,
            me,
            1 << PAGE_BITS,
            vec![
                Region {
                    first: Page(0),
                    count: span_pages,
                    managers: Managers::Even { per_node: part_pages },
                },
                Region { first: first_data, count: data_pages, managers: Managers::Node(NodeId(0)) },
            ],
        );
        let all_common = common_after == Some(CommonAfter::Touch);
        for run in &data {
            let count = run.end - run.start;
            if all_common {
                pages.make_common(run.start, count)?;
            } else {
                pages.protect(run.start, count, Access::Write)?;
            }
        }
        let one_sided = boot.is_one_sided() && pages.admit_peers(boot.nodes)?;
        let end = Instant::now() + connect_timeout(boot.nodes);
        // SAFETY: the launcher left this descriptor to this process alone.
        let exchange = boot.exchange_fd.map(|fd| Exchange::new(unsafe { OwnedFd::from_raw_fd(fd) }));
        // A node that can hand over nothing closes its end, so that nobody waits for it.
        let exchange = exchange
            .filter(|exchange| pages.handover().is_some_and(|offer| exchange.offer(&offer, end).is_ok()));
        let protocol = boot.protocol().ok_or_else(|| StartError::Protocol(boot.protocol.clone()))?;
        let mut protocol = (protocol.start)(layout.clone(), &StartOptions { one_sided, common_after });
        data.iter().for_each(|run| protocol.adopt(Page(run.start), run.end - run.start));
        let fabric = connect(&boot, me)?;
        let slots = Arc::new(WaitSlots::new());
        let (lock_table, resting) = (Arc::new(LockTable::new()), Arc::new(RestingTable::new()));
        let unseen_reads = pages.unseen_reads();
        let mut env = NodeEnv::new(pages, Arc::clone(&fabric), Arc::clone(&slots));
        let has_no_posts = exchange.is_none();
        if let Some(exchange) = exchange {
            env.meet_peers(exchange.handed(end));
        }
        let manager: ManagerOf = {
            let (geometry, layout) = (geometry.clone(), layout.clone());
            Arc::new(move |object: Object| crate::setup::manager_of(&geometry, &layout, to_usize(object.0)))
        };
        let engine = Engine::new(&layout, protocol, Arc::clone(&lock_table), Arc::clone(&resting), manager);
        let engine = if all_common { engine.with_common_mutexes() } else { engine };
        let heap = Heap::new(HeapLayout::new(SPAN_BASE, to_usize(part), usize::from(boot.nodes)), me);
        // SAFETY: the launcher left this descriptor to this process alone.
        let control = Control::new(unsafe { OwnedFd::from_raw_fd(boot.control_fd) });
        let machine = gondwana_control::machine(boot.nodes, boot.processors_each, boot.span);
        let plan = ThreadPlan::new(boot.threads.clone(), &RSet::global(&machine), &machine)?;
        let registry = Registry::new(plan, boot.groups.clone(), boot.nodes, boot.processors);
        let has_processor = processors() >= usize::from(boot.nodes);
        let crowd =
            words.as_ref().filter(|_| !has_processor).map(|words| Crowd::new(words.alone(1), processors()));
        let placer = Placer::new(&boot, loaded::base_of)?;
        if placer.is_some() {
            heap.watch_slabs(|addresses, fresh| {
                if let Some(node) = Self::current() {
                    node.place_slab(&addresses, fresh);
                }
            });
        }
        let node = Box::leak(Box::new(Self {
            core: Mutex::new(Core::new(engine, env)),
            fabric,
            sync: SyncObjects::new(lock_table, resting, words, unseen_reads, has_no_posts, boot.nodes),
            announcements: Announcements::default(),
            heap: SharedHeap::new(heap, boot.consistency != Consistency::Rc),
            threads: Threads::new(registry, boot.processors, me == NodeId(0), crowd),
            waiting: Waiting::new(slots, has_processor, crowd.is_some()),
            placement: PagePlacement::new(placer, &geometry),
            callers: Callers::default(),
            interruptions: Interruptions::default(),
            streams_done: ByTicket::default(),
            answer_bytes: ByTicket::default(),
            service: Service::new(Keepalives::new(&boot.fabric, me)),
            run_end: RunEnd::default(),
            control,
            monitor: Monitor::default(),
            times: clock::Times::new(boot.stats),
            notes: Notes::default(),
            setup: Setup {
                me,
                mapped_files: MappedFiles::new(boot.node, boot.nodes, together),
                boot,
                hooks,
                geometry,
                layout,
                thread_memory,
                common_pages,
                stack_bytes: stack_limit(|limit| limit.rlim_cur).clamp(LEAST_STACK, MOST_STACK),
            },
        }));
        CURRENT.store(node, Ordering::Release);
        Ok(node)
    }
}

/// How many bytes of the span each node allocates from.
pub(crate) fn part(boot: &Boot) -> u64 {
    boot.span / u64::from(boot.nodes) / PART_UNIT * PART_UNIT
}

/// The pages of the program's data that this node has contents of. All others are like memory that was never touched.
fn contents(pages: &Pages) -> Vec<Range<u32>> {
    let of = |segment: &Segment| {
        let end = segment.first + segment.pages;
        let mut from = segment.first;
        std::iter::from_fn(move || {
            let run = pages.next_used(from..end)?;
            from = run.end;
            Some(run)
        })
    };
    pages.geometry().overlays().iter().flat_map(of).collect()
}

fn connect(boot: &Boot, me: NodeId) -> Result<Arc<dyn Fabric>, StartError> {
    Ok(match &boot.fabric {
        FabricBoot::Shm { fd } => {
            // SAFETY: the launcher left this descriptor to this process alone.
            let segment = unsafe { OwnedFd::from_raw_fd(*fd) };
            Arc::new(ShmFabric::attach(&segment, me, usize::from(boot.nodes))?)
        }
        FabricBoot::Tcp { listener_fd, peers, secret } => {
            // SAFETY: as above.
            let listener = TcpListener::from(unsafe { OwnedFd::from_raw_fd(*listener_fd) });
            let mut run = [0; 16];
            run[..8].copy_from_slice(&boot.run.to_le_bytes());
            let config = TcpConfig {
                node: me,
                peers: peers.clone(),
                run,
                security: secret.map_or(Security::Plain, Security::Encrypted),
                timeout: connect_timeout(boot.nodes),
                silence: SILENCE,
            };
            Arc::new(TcpFabric::connect(listener, &config)?)
        }
    })
}

fn connect_timeout(nodes: u16) -> Duration {
    CONNECT_TIMEOUT + CONNECT_TIMEOUT_EACH * u32::from(nodes)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Bytes of the shortest and the longest stack that `main` gets.
const LEAST_STACK: usize = 1 << 20;
pub(crate) const MOST_STACK: usize = 1 << 30;

/// The stack that the system would give main by the limit, or by the one up to which the program may raise that; whole pages.
pub(crate) fn stack_limit(which: impl FnOnce(&libc::rlimit) -> u64) -> usize {
    const UNLIMITED: usize = 64 << 20;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the result goes to a private variable.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &mut limit) };
    match which(&limit) {
        _ if result != 0 => 8 << 20,
        libc::RLIM_INFINITY if limit.rlim_cur == libc::RLIM_INFINITY => UNLIMITED,
        bytes => to_usize(bytes.min(1 << 40)).next_multiple_of(PAGE_SIZE),
    }
}
