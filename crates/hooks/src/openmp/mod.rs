//! OpenMP as gcc compiles it: the functions of libgomp, on simulated threads.
//!
//! What teams, tasks and locks are is known here. As with the objects of `sync`, each call is also an access to memory of the
//! machine: a team has a few lines of its own, which travel between its processors as those of libgomp would.
//!
//! - `team`: regions, their threads, barriers.
//! - `shares`: loops, sections, single, ordered.
//! - `tasks`: tasks and waiting for them.
//! - `locks`: critical, atomic, locks.
//! - `query`: the functions of `omp.h`.
//! - `refused`: what is not there.

mod locks;
mod query;
mod refused;
mod settings;
mod shares;
mod tasks;
mod team;

use crate::heap;
use crate::world::started;
use gondwana_sim::ThreadId;
use locks::Lock;
use settings::{Controls, Settings};
use shares::Work;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tasks::{Group, Task};
use team::Assignment;

/// Bytes of a line that travels; no machine that comes with Gondwana has longer ones in its second caches.
const LINE: usize = 128;

/// Lines of a team.
#[derive(Clone, Copy)]
enum Line {
    /// The barrier, and what threads of a region are to do.
    Barrier,
    /// The constructs that share work.
    Work,
    /// The queue of tasks.
    Tasks,
}

/// A region's threads.
struct Team {
    /// By number.
    members: Vec<ThreadId>,
    /// The team and the number of the thread that has made it; none for that of a thread outside of regions.
    made_by: Option<(u64, usize)>,
    /// Regions around it and itself, and of these those with more than one thread.
    levels: (usize, usize),
    /// Its lines.
    block: usize,
    arrived: usize,
    /// How often its barrier has been passed.
    episode: u64,
    /// Threads that wait at the barrier.
    sleepers: Vec<ThreadId>,
    /// Tasks that nobody runs yet.
    queue: VecDeque<u64>,
    /// Tasks that are not finished.
    unfinished: usize,
    /// Constructs that some threads have yet to leave, by their number.
    works: BTreeMap<u64, Work>,
    /// What `copyprivate` passes on.
    copied: usize,
}

impl Team {
    fn line(&self, line: Line) -> *const u8 {
        (self.block + line as usize * LINE) as *const u8
    }
}

/// What a thread is in: a region, or a task in it.
#[derive(Clone)]
struct Context {
    team: u64,
    number: usize,
    /// Constructs that share work that it has met.
    met: u64,
    /// The one that it is in, how many chunks it has had of it, and the first and the next iteration of the last one.
    work: u64,
    rounds: u64,
    chunk: (u64, u64),
    /// The task that it runs.
    task: u64,
    controls: Controls,
}

/// All that is known about OpenMP.
#[derive(Default)]
pub(crate) struct OpenMp {
    settings: Option<Settings>,
    teams: BTreeMap<u64, Team>,
    tasks: BTreeMap<u64, Task>,
    groups: BTreeMap<u64, Group>,
    /// By thread: what it is in, the innermost last.
    contexts: BTreeMap<ThreadId, Vec<Context>>,
    /// Threads that wait for something to do.
    free: BTreeSet<ThreadId>,
    assignments: BTreeMap<ThreadId, Assignment>,
    locks: BTreeMap<usize, Lock>,
    /// The last number of a team or task.
    numbers: u64,
    /// The line of unnamed critical sections, and that of atomic operations.
    lines: usize,
}

/// The state. The reference must end before the thread waits or makes an access.
fn state() -> &'static mut OpenMp {
    &mut started().openmp
}

impl OpenMp {
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn settings(&mut self) -> &Settings {
        self.settings.get_or_insert_with(|| Settings::read(started().machine.processors()))
    }

    /// What the thread that runs is in. The first time, that is a team of its own.
    fn context(&mut self) -> &mut Context {
        let thread = started().current;
        if self.contexts.get(&thread).is_none_or(Vec::is_empty) {
            let controls = self.settings().controls;
            let team = self.open(vec![thread], None, (0, 0));
            let task = self.implicit_task(team);
            let context =
                Context { team, number: 0, met: 0, work: 0, rounds: 0, chunk: (0, 0), task, controls };
            self.contexts.entry(thread).or_default().push(context);
        }
        self.contexts.get_mut(&thread).and_then(|all| all.last_mut()).unwrap_or_else(|| missing())
    }

    /// The team of the thread that runs.
    fn team(&mut self) -> &mut Team {
        let team = self.context().team;
        self.teams.get_mut(&team).unwrap_or_else(|| missing())
    }

    fn push(&mut self, context: Context) {
        self.contexts.entry(started().current).or_default().push(context);
    }

    fn pop(&mut self) {
        let thread = started().current;
        self.contexts.get_mut(&thread).and_then(Vec::pop);
    }

    /// Makes a team.
    fn open(&mut self, members: Vec<ThreadId>, made_by: Option<(u64, usize)>, levels: (usize, usize)) -> u64 {
        let number = self.number();
        let team = Team {
            members,
            made_by,
            levels,
            block: allocate(3 * LINE, LINE),
            arrived: 0,
            episode: 0,
            sleepers: vec![],
            queue: VecDeque::new(),
            unfinished: 0,
            works: BTreeMap::new(),
            copied: 0,
        };
        self.teams.insert(number, team);
        number
    }
}

/// Memory of the machine.
fn allocate(bytes: usize, alignment: usize) -> usize {
    let block = heap::allocate(bytes, alignment, false, std::ptr::null());
    if block.is_null() {
        crate::start::die("the simulated machine has no memory left for OpenMP");
    }
    block as usize
}

fn missing() -> ! {
    crate::start::die(
        "the program leaves an OpenMP construct that it has not entered, which cannot be simulated",
    )
}
