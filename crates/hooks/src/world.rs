//! The simulated machine with the program's threads on it; there is one in a process.

use crate::fiber::{self, Fiber};
use crate::openmp::OpenMp;
use crate::plan::Plan;
use crate::recorder::{self, Recorder};
use crate::settings::Settings;
use crate::threads::Thread;
use crate::{heap, start};
use gondwana_rset::{RSet, Registry, ThreadPlan, ThreadPolicy};
use gondwana_sim::{Kind, Machine, Next, Port, Schedule, ThreadId, Time};
use std::ops::Range;
use std::ptr;

/// Everything that is simulated.
pub(crate) struct World {
    pub machine: Machine,
    pub settings: Settings,
    pub schedule: Schedule,
    pub threads: Vec<Thread>,
    pub openmp: OpenMp,
    pub plan: ThreadPlan,
    pub recorder: Option<Box<Recorder>>,
    /// The user's plan.
    pub placed: Option<Plan>,
    /// The thread that runs.
    pub current: ThreadId,
    /// Code runs that must not leave the host thread that it is on: the end of a thread.
    pub stays: bool,
    /// The process whose statistics are wanted; -1 once they are written.
    pub process: i64,
    /// The program's own data.
    image: Range<usize>,
}

static mut WORLD: *mut World = ptr::null_mut();

/// The fast path of the processor that runs. Null before the machine is there.
static mut PORT: *mut Port = ptr::null_mut();

/// The fast path of the processor that runs, if the machine is there.
#[inline(always)]
pub(crate) fn port() -> Option<&'static mut Port> {
    // SAFETY: one host thread at a time simulates; the reference ends before the world is used.
    unsafe { PORT.as_mut() }
}

/// The world, if it is there. The reference must end before the thread waits or makes a slow access.
pub(crate) fn world() -> Option<&'static mut World> {
    // SAFETY: one host thread at a time simulates, and callers keep to what is said above.
    unsafe { WORLD.as_mut() }
}

/// Makes calls of libraries whose accesses and locks are none of the program's: for them there is no world.
pub(crate) fn aside<R>(calls: impl FnOnce() -> R) -> R {
    // SAFETY: one host thread at a time simulates, and this one goes on with the world only after the calls.
    unsafe {
        let hidden = (WORLD, PORT);
        (WORLD, PORT) = (ptr::null_mut(), ptr::null_mut());
        let result = calls();
        (WORLD, PORT) = hidden;
        result
    }
}

/// The world, where only a started program comes.
pub(crate) fn started() -> &'static mut World {
    world().unwrap_or_else(|| start::die("a thread function was called before the program's main function"))
}

/// Builds the world; the caller is thread 0.
pub(crate) fn begin(mut settings: Settings) -> Result<(), String> {
    let mut machine = Machine::new(&settings.machine);
    let topology = settings.machine.topology();
    let policy = ThreadPolicy::parse(&settings.threads, &topology, &Registry::default())
        .map_err(|error| format!("threads '{}': {}", settings.threads, error.message()))?;
    let plan = ThreadPlan::new(policy, &RSet::global(&topology), &topology)
        .map_err(|error| format!("threads '{}': {error}", settings.threads))?;
    let page_bytes = settings.machine.memory.page_size.0;
    let placed = settings
        .plan
        .take()
        .map(|(rules, groups)| Plan::begin(&rules, groups, &mut machine, &topology, page_bytes));
    let placed = placed.transpose()?;
    let usual = plan.place_of(0).processor.index();
    let first = placed.as_ref().map_or(usual, |placed| placed.processor(&machine, 0, usual, &[]));
    let node_of = (0..machine.processors()).map(|processor| usize::from(machine.node_of(processor)));
    let mut schedule = Schedule::new(&settings.machine.scheduler, node_of.collect(), first);
    if is_bound(&plan, placed.as_ref(), 0) {
        schedule.bind(0);
    }
    let (recording, image) = (settings.recording.take(), start::image());
    let world = Box::leak(Box::new(World {
        machine,
        settings,
        schedule,
        threads: vec![Thread::main(first)],
        openmp: OpenMp::default(),
        plan,
        recorder: None,
        placed,
        current: 0,
        stays: false,
        // SAFETY: a system call.
        process: unsafe { gondwana_sys::syscall!(libc::SYS_getpid) },
        image: image.clone(),
    }));
    world.grant(0);
    if let Some(file) = recording {
        recorder::begin(world, file, &image);
    }
    // SAFETY: no other thread runs yet.
    unsafe {
        PORT = world.machine.port(first);
        WORLD = world;
    }
    Ok(())
}

/// True for a thread that the user has given processors, or a group of a plan a node.
pub(crate) fn is_bound(plan: &ThreadPlan, placed: Option<&Plan>, thread: ThreadId) -> bool {
    matches!(plan.policy(), ThreadPolicy::Explicit(_))
        || placed.is_some_and(|placed| placed.has_group(thread))
}

impl World {
    /// The time of the thread that runs.
    pub(crate) fn now(&self) -> Time {
        self.machine.now(self.schedule.current())
    }

    /// Lets the current processor run from a time on, until it would be a quantum ahead of the next one.
    fn grant(&mut self, now: Time) {
        let until = self.schedule.next_time().max(now).saturating_add(self.machine.quantum());
        // A thread that is alone still looks up from time to time: others may wait for its processor.
        let until = until.min(now + 1_000_000_000);
        let current = self.schedule.current();
        self.machine.port(current).grant(now, until);
    }

    /// True for memory that the machine has: the heap, stacks, the program's own data.
    fn has(&self, address: usize) -> bool {
        heap::REGION.contains(&address) || heap::STACKS.contains(&address) || self.image.contains(&address)
    }

    /// True for a thread that waits, or has ended.
    pub(crate) fn is_waiting(&self, thread: ThreadId) -> bool {
        thread != self.current && !self.schedule.can_run(thread, self.threads[thread].processor)
    }

    /// Makes a thread that waits able to run from now on.
    pub(crate) fn wake(&mut self, thread: ThreadId) {
        let now = self.now();
        self.wake_at(thread, now);
        // The current one must not be further ahead of it than of others.
        self.grant(now);
    }

    fn wake_at(&mut self, thread: ThreadId, at: Time) {
        let deadline = self.threads[thread].deadline.take();
        let last = self.threads[thread].processor;
        if !self.schedule.moves_threads() && self.schedule.must_leave(thread, last) {
            self.threads[thread].processor = self.schedule.start(thread, last, at);
        }
        self.schedule.wake(thread, self.threads[thread].processor, at, deadline);
    }

    /// Chooses who runs; returns its fiber if that is another thread.
    fn choose(&mut self) -> Option<Fiber> {
        loop {
            match self.schedule.choose() {
                Next::Run(thread, processor, time) => {
                    self.grant(time);
                    if self.schedule.moves_threads() {
                        let last = std::mem::replace(&mut self.threads[thread].processor, processor);
                        self.schedule.count_move(last, processor);
                    }
                    let changed = thread != self.current;
                    self.current = thread;
                    return changed.then_some(self.threads[thread].fiber);
                }
                Next::TimedOut(thread, time) => {
                    self.threads[thread].deadline = None;
                    self.threads[thread].timed_out = true;
                    self.wake_at(thread, time);
                }
                Next::Over => start::die("the program runs for more than 40 hours of simulated time"),
                Next::Nobody => start::die(
                    "all threads of the program wait for each other: it would never end. \
                     Look for a lock that is taken twice or never given back, or a barrier with a wrong count",
                ),
            }
        }
    }
}

/// Goes on with whoever is next; returns when this thread is.
fn go_on() {
    let world = started();
    let from = world.current;
    let chosen = world.choose();
    let processor = world.schedule.current();
    let port: *mut Port = world.machine.port(processor);
    // SAFETY: one host thread at a time simulates.
    unsafe { PORT = port };
    if let Some(to) = chosen {
        let from = &raw mut world.threads[from].fiber;
        // SAFETY: the other fiber does not run; `world` is not used any more, and `from` is written before others run.
        unsafe { fiber::switch(from, to) };
    }
}

/// Lets others run whose time is less. With `give_way`, also those that wait for this processor.
pub(crate) fn give_way(give_way: bool) {
    let world = started();
    let now = world.now();
    if world.stays {
        world.grant(now);
        return;
    }
    world.schedule.leave(now, give_way);
    go_on();
}

/// A thread may not run any more where it ran last: it goes on on another processor. One that runs now, but is not this one,
/// does so when it has waited.
pub(crate) fn go_to_another(thread: ThreadId) {
    let world = started();
    let now = world.now();
    let this = thread == world.current;
    let last = world.threads[thread].processor;
    let queued = !this && world.schedule.withdraw(thread, last);
    if this {
        world.schedule.stop(now, None);
    }
    if this || queued {
        world.wake_at(thread, now);
    }
    if this {
        go_on();
    }
}

/// Waits until somebody wakes this thread, or until a time. False if the time has come.
pub(crate) fn wait(deadline: Option<Time>) -> bool {
    let world = started();
    if world.stays {
        start::die(
            "a destructor of a thread-local object waits for another thread, which cannot be simulated",
        );
    }
    let now = world.now();
    let current = world.current;
    let deadline = deadline.map(|time| time.max(now));
    world.threads[current].deadline = deadline;
    world.threads[current].timed_out = false;
    world.schedule.stop(now, deadline);
    go_on();
    let world = started();
    !std::mem::take(&mut world.threads[current].timed_out)
}

/// Ends the current thread: never comes back.
pub(crate) fn leave_for_ever() -> ! {
    let world = started();
    let now = world.now();
    world.schedule.stop(now, None);
    go_on();
    unreachable!("a thread that has ended runs again")
}

/// An access that the fast path has not made.
#[cold]
#[inline(never)]
pub(crate) fn slow_access(address: usize, width: u64, kind: Kind) {
    let Some(world) = world() else { return };
    let processor = world.schedule.current();
    if !world.has(address) {
        world.machine.access_outside(processor, kind);
        if world.machine.port(processor).is_late() {
            give_way(false);
        }
        return;
    }
    if world.machine.port(processor).is_late() {
        give_way(false);
    }
    let world = started();
    if world.machine.access_private(world.schedule.current(), address as u64, width, kind) {
        return;
    }
    await_turn();
    if started().machine.moves_pages() {
        attend(address, width);
    }
    let world = started();
    world.machine.access(world.schedule.current(), address as u64, width, kind);
    if world.recorder.is_some() {
        recorder::accessed(world);
    }
}

/// Lets others run whose time is less: requests reach the buses in the order of time.
#[inline(always)]
fn await_turn() {
    let world = started();
    let now = world.now();
    if now > world.schedule.next_time() || world.schedule.shares(now) {
        give_way(false);
    }
}

/// Has the machine's system do what is due before an access.
#[cold]
#[inline(never)]
fn attend(address: usize, width: u64) {
    loop {
        let world = started();
        if !world.machine.attend(world.schedule.current(), address as u64, width) {
            return;
        }
        if world.recorder.is_some() {
            recorder::attended(world);
        }
        await_turn();
    }
}

/// An access of any width.
pub(crate) fn access(address: usize, width: u64, kind: Kind) {
    if width > 0 {
        slow_access(address, width, kind);
    }
}

/// Lets time pass on the current processor.
pub(crate) fn pass(time: Time) {
    if let Some(port) = port() {
        port.pass(time);
    }
}
