//! The program's threads. Each is a fiber; a thread of the C library that only waits lends it its thread pointer, so that
//! thread-local variables, `errno` and `pthread_self` are its own.

use crate::fiber::{self, Fiber};
use crate::heap::{STACK, STACKS};
use crate::world::{give_way, is_bound, leave_for_ever, pass, started, wait};
use crate::{next, processors, recorder, start};
use gondwana_sim::{Allowed, Kind, ThreadId, Time};
use libc::{c_int, c_void, pthread_attr_t, pthread_t};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

type Routine = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// The end of a stack, which belongs to the C library: thread-local variables, and the frames of the thread that waits.
const TOP: usize = 512 << 10;

/// One target thread.
pub(crate) struct Thread {
    pub fiber: Fiber,
    /// The simulated processor that it runs on.
    pub processor: usize,
    /// Until when it waits, if it does so for a time.
    pub deadline: Option<Time>,
    pub timed_out: bool,
    /// What the program knows it by.
    handle: pthread_t,
    slot: usize,
    routine: Option<Routine>,
    argument: *mut c_void,
    result: *mut c_void,
    ended: bool,
    detached: bool,
    joiner: Option<ThreadId>,
    host: Option<&'static Host>,
}

/// What a waiting thread of the C library and the host thread tell each other.
struct Host {
    thread_pointer: AtomicUsize,
    /// 0: it starts; 1: it waits; 2: it may end.
    state: AtomicU32,
}

impl Thread {
    /// The thread that runs `main`.
    pub(crate) fn main(processor: usize) -> Self {
        Self { handle: fiber::thread_pointer() as pthread_t, ..Self::new(processor, 0) }
    }

    fn new(processor: usize, slot: usize) -> Self {
        Self {
            fiber: Fiber::current(),
            processor,
            deadline: None,
            timed_out: false,
            handle: 0,
            slot,
            routine: None,
            argument: ptr::null_mut(),
            result: ptr::null_mut(),
            ended: false,
            detached: false,
            joiner: None,
            host: None,
        }
    }
}

impl Host {
    fn await_change(&self, from: u32) {
        while self.state.load(Ordering::Acquire) == from {
            let flags = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
            // SAFETY: the word is there for ever.
            unsafe {
                gondwana_sys::syscall!(libc::SYS_futex, self.state.as_ptr(), flags, from, 0_usize);
            }
        }
    }

    fn change(&self, to: u32) {
        self.state.store(to, Ordering::Release);
        let flags = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the word is there for ever.
        unsafe { gondwana_sys::syscall!(libc::SYS_futex, self.state.as_ptr(), flags, i32::MAX) };
    }
}

/// What the thread of the C library does: it lends its thread pointer until its fiber has ended.
extern "C" fn lend(host: *mut c_void) -> *mut c_void {
    // SAFETY: the creator passes a host that is never freed.
    let host = unsafe { &*host.cast::<Host>() };
    host.thread_pointer.store(fiber::thread_pointer(), Ordering::Relaxed);
    host.change(1);
    host.await_change(1);
    ptr::null_mut()
}

/// The lowest stack that nobody has. One that has ended keeps its own until it is joined: the stack is its handle.
fn free_slot() -> Option<usize> {
    let world = started();
    let keeps = |thread: &&Thread| !thread.ended || (thread.handle != 0 && !thread.detached);
    let mut used: Vec<usize> = world.threads.iter().filter(keeps).map(|thread| thread.slot).collect();
    used.sort_unstable();
    let free = (0..).zip(&used).find(|(slot, used)| slot != *used).map_or(used.len(), |(slot, _)| slot);
    (STACKS.start + (free + 1) * STACK <= STACKS.end).then_some(free)
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pthread_create(
    to: *mut pthread_t,
    attributes: *const pthread_attr_t,
    routine: Routine,
    argument: *mut c_void,
) -> c_int {
    give_way(false);
    let Some(slot) = free_slot() else { return libc::EAGAIN };
    let bottom = STACKS.start + slot * STACK;
    let host: &'static Host =
        Box::leak(Box::new(Host { thread_pointer: AtomicUsize::new(0), state: AtomicU32::new(0) }));
    let mut handle: pthread_t = 0;
    let real = next!(pthread_create: unsafe extern "C" fn(
        *mut pthread_t, *const pthread_attr_t, extern "C" fn(*mut c_void) -> *mut c_void, *mut c_void
    ) -> c_int);
    // SAFETY: the stack is nobody's, and the thread gets what it expects.
    unsafe {
        let mut own = MaybeUninit::<pthread_attr_t>::uninit();
        libc::pthread_attr_init(own.as_mut_ptr());
        libc::pthread_attr_setstack(own.as_mut_ptr(), bottom as *mut c_void, STACK);
        let error = real(&raw mut handle, own.as_ptr(), lend, ptr::from_ref(host).cast_mut().cast());
        libc::pthread_attr_destroy(own.as_mut_ptr());
        if error != 0 {
            return error;
        }
        to.write(handle);
    }
    host.await_change(0);
    let mut kind = libc::PTHREAD_CREATE_JOINABLE;
    if !attributes.is_null() {
        // SAFETY: the program's attributes.
        unsafe { pthread_attr_getdetachstate(attributes, &raw mut kind) };
    }
    let world = started();
    let id = world.threads.len();
    let usual = world.plan.place_of(id).processor.index();
    let processor = world.placed.as_ref().map_or(usual, |placed| {
        let running: Vec<usize> = world.threads.iter().map(|thread| thread.processor).collect();
        placed.processor(&world.machine, id, usual, &running)
    });
    if is_bound(&world.plan, world.placed.as_ref(), id) {
        world.schedule.bind(id);
    }
    let inherited = world.schedule.allowed(world.current);
    // SAFETY: the program's attributes.
    let allowed = unsafe { processors::of_attributes(attributes) }.unwrap_or(inherited);
    if allowed != Allowed::ALL {
        world.schedule.allow(id, allowed);
    }
    let processor = world.schedule.start(id, processor, world.now());
    let mut thread = Thread::new(processor, slot);
    // SAFETY: the fiber's part of the stack is below what the thread that waits uses.
    thread.fiber =
        unsafe { Fiber::new(bottom + STACK - TOP, host.thread_pointer.load(Ordering::Relaxed), run) };
    thread.handle = handle;
    (thread.routine, thread.argument) = (Some(routine), argument);
    thread.detached = kind == libc::PTHREAD_CREATE_DETACHED;
    thread.host = Some(host);
    world.threads.push(thread);
    recorder::created(world, id, slot, routine as usize);
    world.wake(id);
    // Others run up to a time that this thread did not know of.
    give_way(false);
    0
}

unsafe extern "C" {
    fn pthread_attr_getdetachstate(attributes: *const pthread_attr_t, to: *mut c_int) -> c_int;
}

/// The first function of a fiber.
extern "C" fn run() -> ! {
    let world = started();
    let thread = &mut world.threads[world.current];
    let argument = thread.argument;
    let Some(routine) = thread.routine.take() else { start::die("a thread has no function") };
    // SAFETY: the program's own function.
    let result = unsafe { routine(argument) };
    end(result)
}

/// Ends the current thread.
fn end(result: *mut c_void) -> ! {
    give_way(false);
    let world = started();
    let id = world.current;
    world.threads[id].result = result;
    if let Some(host) = world.threads[id].host {
        world.stays = true;
        let handle = world.threads[id].handle;
        let main = world.threads[0].fiber_thread_pointer();
        let join = next!(pthread_join: unsafe extern "C" fn(pthread_t, *mut *mut c_void) -> c_int);
        // The thread of the C library ends, with the destructors of thread-local objects, and must not wait for itself.
        // SAFETY: the first thread does not run on the host as long as this one does.
        unsafe {
            fiber::set_thread_pointer(main);
            host.change(2);
            join(handle, ptr::null_mut());
        }
        started().stays = false;
    }
    let world = started();
    world.threads[id].ended = true;
    if let Some(joiner) = world.threads[id].joiner {
        world.wake(joiner);
    }
    if world.threads.iter().all(|thread| thread.ended) {
        // As natively, the last thread's end is the program's.
        // SAFETY: ends the process.
        unsafe { libc::exit(0) };
    }
    leave_for_ever()
}

impl Thread {
    fn fiber_thread_pointer(&self) -> usize {
        self.handle as usize
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_exit(result: *mut c_void) -> ! {
    end(result)
}

/// The number of a thread that was not joined.
pub(crate) fn find(handle: pthread_t) -> Option<ThreadId> {
    started().threads.iter().rposition(|thread| thread.handle == handle && handle != 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_join(handle: pthread_t, to: *mut *mut c_void) -> c_int {
    give_way(false);
    let world = started();
    let Some(id) = find(handle) else { return libc::ESRCH };
    if id == world.current {
        return libc::EDEADLK;
    }
    if world.threads[id].detached || world.threads[id].joiner.is_some() {
        return libc::EINVAL;
    }
    if !world.threads[id].ended {
        world.threads[id].joiner = Some(world.current);
        wait(None);
    }
    let thread = &mut started().threads[id];
    thread.handle = 0;
    if !to.is_null() {
        // SAFETY: the program's variable.
        unsafe { to.write(thread.result) };
    }
    0
}

#[unsafe(no_mangle)]
extern "C" fn pthread_detach(handle: pthread_t) -> c_int {
    let Some(id) = find(handle) else { return libc::ESRCH };
    started().threads[id].detached = true;
    0
}

#[unsafe(no_mangle)]
extern "C" fn pthread_cancel(_handle: pthread_t) -> c_int {
    start::die("the program cancels a thread, which cannot be simulated: have the thread look at a flag")
}

#[unsafe(no_mangle)]
extern "C" fn sched_yield() -> c_int {
    const CYCLES: u64 = 100;
    pass(CYCLES * started().machine.cycle());
    give_way(true);
    0
}

/// Makes an access to an object that threads wait at.
pub(crate) fn touch<T>(object: *const T, kind: Kind) {
    match kind {
        Kind::Read => crate::accesses::read(object as usize, 4),
        Kind::Write => crate::accesses::write(object as usize, 4),
    }
}
