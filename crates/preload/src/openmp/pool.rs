//! The threads behind the teams.
//!
//! Threads of the main thread's regions persist, so that each keeps its number and its thread-local variables from
//! one region to the next: between regions they wait for the next assignment. Nested regions, and those of other
//! threads, start new threads.

use super::assignment::Assignment;
use super::kmpc;
use super::membership;
use super::settings;
use super::sync;
use super::team::Team;
use gondwana_elf::loaded;
use gondwana_node::{DispatchRing, Node, Thread};
use gondwana_topology::{Id, NodeId};
use libc::{c_void, pthread_attr_t, pthread_t};
use std::cell::{Cell, RefCell};
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The threads of the main thread's regions.
#[derive(Clone, Copy)]
struct Pool {
    /// The team of all its regions; its address names the assignments.
    team: *mut Team,
    /// How many threads there are, with the main thread.
    threads: u32,
    /// How many regions there have been.
    regions: u64,
    /// The main thread is in one of them.
    busy: bool,
    /// The team's dispatch buffers, and for how many constructs they have been used.
    ring: Option<(DispatchRing, u64)>,
}

/// The start data of a new thread, in shared memory.
struct Place {
    /// The number in its teams.
    number: u32,
    work: Work,
}

/// What a new thread does.
enum Work {
    /// The assignments to the pool of this team, after so many.
    Pool(*mut Team, u64),
    /// One region; the assignment is the thread's.
    Region(*mut Assignment),
}

/// The other threads of a region.
pub(super) enum Started {
    /// No other threads.
    None,
    /// They wait for the next region.
    Pooled,
    /// They end, and the team with them.
    Own(Vec<pthread_t>),
}

thread_local! {
    static POOL: Cell<Pool> =
        const { Cell::new(Pool { team: null_mut(), threads: 1, regions: 0, busy: false, ring: None }) };
}

thread_local! {
    /// On which nodes the pool's threads are, from number 1 on.
    static NODES: RefCell<Vec<NodeId>> = const { RefCell::new(vec![]) };
}

/// The node of a thread that was just started.
fn node_of(thread: pthread_t) -> NodeId {
    let place = Node::current().and_then(|node| node.place_of_thread(thread));
    NodeId::from_index(place.expect("a pool's thread is one of the run"))
}

/// True if other threads can be started.
pub(super) fn is_possible() -> bool {
    Node::current().is_some()
}

/// True if some object of the program makes tasks.
pub(super) fn has_tasks() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        is_needed(|name| {
            name.starts_with("GOMP_target_")
                || matches!(
                    name,
                    "GOMP_task" | "GOMP_taskloop" | "GOMP_taskloop_ull" | "__kmpc_omp_task_alloc"
                )
        })
    })
}

/// True if a thread that is alone in its team queues tasks rather than run them at once: they may be cancelled, or one may wait for an
/// event that a later one fulfils.
pub(super) fn one_thread_has_tasks() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        settings::get().cancellation
            || is_needed(|name| matches!(name, "omp_fulfill_event" | "omp_fulfill_event_"))
    })
}

/// True if some object of the program needs a symbol with such a name.
fn is_needed(name: impl Fn(&str) -> bool) -> bool {
    let found = loaded::visit(|object| match object.needs_symbol(&name) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    found.is_some()
}

/// The number before those of a new region's work-sharing constructs, of which it may have 2^32. No other region that this node has
/// begun has the same ones, so that those of a team at a reused address are new.
pub(super) fn next_sequence() -> u64 {
    static REGIONS: AtomicU64 = AtomicU64::new(1);
    REGIONS.fetch_add(1, Ordering::Relaxed) << 32
}

/// Starts the other threads of a region, of which the calling thread is number 0, and makes its team: inside the region of `parent`, in
/// which the calling thread has the number `number`.
pub(super) fn start(assignment: &mut Assignment, parent: *mut Team, number: u32) -> Started {
    let shape = assignment.shape;
    let main = Node::current().is_some_and(|node| Thread::current(node).id == node.main_thread());
    // A `target` region is outside all others, even if the main thread meets it inside one.
    if main && shape.level == 1 && shape.threads > 1 && !POOL.get().busy {
        let mut pool = POOL.get();
        assign(&mut pool, assignment, parent);
        POOL.set(pool);
        return Started::Pooled;
    }
    assignment.team = sync::create(Team::new(shape, parent, number));
    if shape.threads == 1 {
        return Started::None;
    }
    if shape.threads <= DispatchRing::MOST_THREADS {
        assignment.use_ring(sync::take_dispatch_ring());
    }
    let place = |number| Place { number, work: Work::Region(sync::create(*assignment)) };
    Started::Own((1..shape.threads).map(|number| create(place(number))).collect())
}

/// Gives the pool's threads a region of the main thread. There are more threads if there must be.
fn assign(pool: &mut Pool, assignment: &mut Assignment, parent: *mut Team) {
    let shape = assignment.shape;
    if pool.team.is_null() {
        pool.team = sync::create(Team::new(shape, parent, 0));
        pool.ring = sync::take_dispatch_ring();
    }
    assignment.team = pool.team;
    if shape.threads <= DispatchRing::MOST_THREADS {
        assignment.use_ring(pool.ring);
    }
    // SAFETY: the team stays for good, and its other threads are in no region. They look at it only if they have nested regions,
    // so it is written only if it changes: then its page stays here.
    unsafe {
        if (*pool.team).shape != shape {
            (*pool.team).shape = shape;
        }
        if (*pool.team).parent != parent {
            (*pool.team).parent = parent;
        }
    }
    for number in pool.threads..shape.threads {
        let thread = create(Place { number, work: Work::Pool(pool.team, pool.regions) });
        NODES.with_borrow_mut(|nodes| nodes.push(node_of(thread)));
    }
    pool.threads = pool.threads.max(shape.threads);
    pool.regions += 1;
    pool.busy = true;
    let others = shape.threads as usize - 1;
    let nodes = NODES.with_borrow(|nodes| nodes.iter().take(others).copied().collect());
    sync::announce(nodes, pool.team, pool.regions, assignment.words());
}

impl Started {
    /// After the last barrier of a region, whose team may have dispatch buffers, which have been used for so many constructs.
    pub(super) fn end(self, team: *mut Team, ring: Option<(DispatchRing, u64)>) {
        let threads = match self {
            Self::None => vec![],
            Self::Pooled => {
                let pool = POOL.get();
                return POOL.set(Pool { busy: false, ring: ring.or(pool.ring), ..pool });
            }
            Self::Own(threads) => threads,
        };
        sync::give_back_dispatch_ring(ring);
        for thread in threads {
            // SAFETY: this thread has started them and joins each once.
            unsafe { libc::pthread_join(thread, null_mut()) };
        }
        sync::discard(team);
    }
}

fn create(place: Place) -> pthread_t {
    let place = sync::create(place).cast::<c_void>();
    let mut attributes = MaybeUninit::<pthread_attr_t>::uninit();
    let mut thread = 0;
    // SAFETY: the attributes are initialised before use; the new thread owns its place.
    let result = unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr());
        if let Some(stack) = settings::stack() {
            libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack);
        }
        libc::pthread_create(&mut thread, attributes.as_ptr(), begin, place)
    };
    if result != 0 {
        crate::report::fatal("OpenMP: no further thread can be started; ask for fewer with OMP_NUM_THREADS");
    }
    thread
}

extern "C" fn begin(place: *mut c_void) -> *mut c_void {
    let place = place.cast::<Place>();
    // SAFETY: whoever has started the thread passes its place.
    let Place { number, work } = unsafe { place.read() };
    sync::discard(place);
    match work {
        Work::Region(place) => {
            // SAFETY: as above.
            let assignment = unsafe { place.read() };
            sync::discard(place);
            membership::take_part(&assignment, number);
            kmpc::end_threadprivate();
        }
        Work::Pool(team, mut last) => loop {
            let words;
            (last, words) = sync::await_announcement(team, last);
            let assignment = Assignment::from_words(&words);
            if number < assignment.shape.threads {
                membership::take_part(&assignment, number);
            }
        },
    }
    null_mut()
}
