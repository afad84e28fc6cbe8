//! The threads behind the teams.
//!
//! Threads of the main thread's regions persist, so that each keeps its number and its thread-local variables from
//! one region to the next: between regions they wait at a barrier, the *dock*. Nested regions, and those of other
//! threads, start new threads.

use super::membership;
use super::settings;
use super::sync::{self, Name};
use super::team::Team;
use gondwana_elf::loaded;
use gondwana_node::{Node, Thread};
use libc::{c_void, pthread_attr_t, pthread_t};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::ptr::null_mut;
use std::sync::OnceLock;

/// Where the threads of the main thread's teams wait, in shared memory.
#[repr(C)]
struct Dock {
    barrier: Name,
    /// The number of threads that meet there, including the main thread.
    threads: u32,
    /// The main thread's orders, used alternately. Unneeded threads may still be reading the order of the last
    /// meeting, but not that of the meeting before, since they have arrived at the last.
    words: [Word; 2],
}

/// The order after a meeting.
#[repr(C)]
#[derive(Clone, Copy)]
struct Word {
    /// The dock to go to instead; null to stay.
    moved: *mut Dock,
    /// The team that is to begin, and stays until all of its threads are back.
    team: *mut Team,
}

impl Dock {
    fn new(threads: u32) -> Self {
        let nothing = Word { moved: null_mut(), team: null_mut() };
        Self { barrier: Name::new(), threads, words: [nothing; 2] }
    }
}

/// The main thread's dock, the number of meetings, the team of the last one, and whether that is still in its region.
#[derive(Clone, Copy)]
struct Berth {
    dock: *mut Dock,
    meetings: usize,
    team: *mut Team,
    busy: bool,
}

/// The start data of a new thread, in shared memory.
#[repr(C)]
struct Place {
    dock: *mut Dock,
    /// A team that has no dock.
    team: *mut Team,
    number: u32,
}

/// The other threads of a region.
pub(super) enum Started {
    /// No other threads.
    None,
    /// They go back to the dock.
    Docked,
    /// They end.
    Own(Vec<pthread_t>),
}

thread_local! {
    static BERTH: Cell<Berth> =
        const { Cell::new(Berth { dock: null_mut(), meetings: 0, team: null_mut(), busy: false }) };
}

/// True if other threads can be started.
pub(super) fn is_possible() -> bool {
    Node::current().is_some()
}

/// True if some object of the program makes tasks.
pub(super) fn has_tasks() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let makes = |name: &str| {
            name.starts_with("GOMP_target_")
                || matches!(name, "GOMP_task" | "GOMP_taskloop" | "GOMP_taskloop_ull")
        };
        let found = loaded::visit(|object| match object.needs_symbol(makes) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        found.is_some()
    })
}

/// Starts other threads in a team in which the calling thread is number 0.
pub(super) fn start(team: Team) -> (*mut Team, Started) {
    let (threads, level) = (team.threads, team.level);
    let team = sync::create(team);
    if threads == 1 {
        return (team, Started::None);
    }
    let main = Node::current().is_some_and(|node| Thread::current(node).id == node.main_thread());
    // A `target` region is outside all others, even if the main thread meets it inside one.
    if main && level == 1 && !BERTH.get().busy {
        start_docked(team, threads);
        return (team, Started::Docked);
    }
    let place = |number| Place { dock: null_mut(), team, number };
    (team, Started::Own((1..threads).map(|number| create(place(number))).collect()))
}

fn start_docked(team: *mut Team, threads: u32) {
    let mut berth = BERTH.get();
    // SAFETY: docks stay for good, and who reads what when is the rule of `Dock::words`.
    unsafe {
        if berth.dock.is_null() || (*berth.dock).threads < threads {
            let new = sync::create(Dock::new(threads));
            let there = berth.dock.as_ref().map_or(1, |dock| dock.threads);
            if !berth.dock.is_null() {
                berth.meet(Word { moved: new, team: null_mut() });
            }
            for number in there..threads {
                create(Place { dock: new, team: null_mut(), number });
            }
            (berth.dock, berth.meetings) = (new, 0);
        }
        berth.meet(Word { moved: null_mut(), team });
    }
    berth.busy = true;
    BERTH.set(berth);
}

impl Berth {
    /// Meets the other threads, which then execute the order. When all have arrived, no thread is in the last team
    /// any more.
    ///
    /// # Safety
    /// Called by the main thread, outside regions.
    unsafe fn meet(&mut self, word: Word) {
        // SAFETY: see `Dock::words`.
        unsafe {
            (*self.dock).words[self.meetings % 2] = word;
            self.meetings += 1;
            sync::meet(&raw const (*self.dock).barrier, (*self.dock).threads);
        }
        let last = std::mem::replace(&mut self.team, word.team);
        if !last.is_null() {
            sync::discard(last);
        }
    }
}

impl Started {
    /// After the last barrier of a region.
    pub(super) fn end(self, team: *mut Team) {
        let threads = match self {
            Self::None => vec![],
            Self::Docked => return BERTH.set(Berth { busy: false, ..BERTH.get() }),
            Self::Own(threads) => threads,
        };
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
        if let Some(stack) = settings::get().stack {
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
    // SAFETY: whoever has started the thread passes its place; docks stay for good.
    unsafe {
        let Place { mut dock, team, number } = place.read();
        sync::discard(place);
        if dock.is_null() {
            membership::take_part(team, number);
            return null_mut();
        }
        let mut meetings = 0;
        loop {
            sync::meet(&raw const (*dock).barrier, (*dock).threads);
            let Word { moved, team } = (*dock).words[meetings % 2];
            meetings += 1;
            if !moved.is_null() {
                (dock, meetings) = (moved, 0);
            } else if number < (*team).threads {
                membership::take_part(team, number);
            }
        }
    }
}
