//! Threads: started on the node that the placement policy names, on a stack inside the span.

use super::{attributes, cancel, code, deadline, inherited, key, robust};
use crate::private_stack::uninterrupted;
use crate::process::scheduling;
use crate::span_stack;
use crate::stack::on_stack;
use crate::{handler_stack, signals, thread_list, thread_memory};
use gondwana_interpose::NextFunction;
use gondwana_memory::PAGE_SIZE;
use gondwana_node::{JoinWait, Node, Thread, ThreadSpec};
use gondwana_page::to_usize;
use libc::{c_int, c_void, clockid_t, pthread_attr_t, pthread_t, sigset_t, timespec};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::OnceLock;
use std::time::Duration;

/// The least and the default size of a stack in the span.
const LEAST_STACK: usize = 64 * 1024;

pub(crate) type Routine = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

unsafe extern "C" {
    fn pthread_attr_getdetachstate(attributes: *const pthread_attr_t, state: *mut c_int) -> c_int;
}

/// The key whose destructor ends each of our threads, and `main` if it calls `pthread_exit`, after the C++ runtime's own destructors.
static LAST: OnceLock<libc::pthread_key_t> = OnceLock::new();

thread_local! {
    /// The program has brought the calling thread's stack.
    static BRINGS_STACK: Cell<bool> = const { Cell::new(false) };
}

/// The start data of a new thread.
struct Start {
    node: &'static Node,
    spec: ThreadSpec,
    stack: Range<usize>,
}

fn real_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    routine: Routine,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: forwards valid arguments.
    unsafe {
        crate::real!(pthread_create: fn(*mut pthread_t, *const pthread_attr_t, Routine, *mut c_void) -> c_int)(
            thread, attributes, routine, argument,
        )
    }
}

/// # Safety
/// As the C library's `pthread_create`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    routine: Routine,
    argument: *mut c_void,
) -> c_int {
    let Some(node) = Node::current().filter(|_| !Thread::is_starting_native()) else {
        return real_create(thread, attributes, routine, argument);
    };
    // SAFETY: the attributes are the caller's.
    let spec = unsafe { spec(attributes, routine as usize, argument as usize) };
    match spec.and_then(|spec| node.create_thread(spec)) {
        Ok(id) => {
            // SAFETY: the caller passes a place for the name.
            unsafe { *thread = id };
            0
        }
        Err(error) => error,
    }
}

/// The specification of a new thread from the arguments of `pthread_create`.
///
/// # Safety
/// The attributes are null or valid.
///
/// # Errors
/// An error number: they ask for what a thread cannot have.
pub(crate) unsafe fn spec(
    attributes: *const pthread_attr_t,
    function: usize,
    argument: usize,
) -> Result<ThreadSpec, c_int> {
    let mut stack = Node::current().map_or(LEAST_STACK, |node| node.default_stack());
    let mut detached = libc::PTHREAD_CREATE_JOINABLE;
    let mut stack_at = None;
    let (mut scheduling, mut blocked) = (scheduling::passed_on(), signals::blocked());
    if !attributes.is_null() {
        // SAFETY: the caller's promise; the results are private variables.
        unsafe {
            libc::pthread_attr_getstacksize(attributes, &mut stack);
            pthread_attr_getdetachstate(attributes, &mut detached);
            stack_at = stack_of(attributes);
            scheduling::by_attributes(&mut scheduling, attributes)?;
            blocked = signals_of(attributes).unwrap_or(blocked);
        }
    }
    Ok(ThreadSpec {
        id: 0,
        function: function as u64,
        argument: argument as u64,
        stack: if stack_at.is_some() { stack } else { stack.max(LEAST_STACK).next_multiple_of(PAGE_SIZE) }
            as u64,
        stack_at: stack_at.map(|at| at as u64),
        detached: detached == libc::PTHREAD_CREATE_DETACHED,
        blocked,
        scheduling,
        inherited: Some(inherited::own()),
    })
}

/// Where the stack begins that attributes bring, if it is in shared memory: one in other memory is replaced.
///
/// # Safety
/// The attributes are valid.
unsafe fn stack_of(attributes: *const pthread_attr_t) -> Option<usize> {
    let (mut start, mut bytes) = (std::ptr::null_mut(), 0);
    // SAFETY: the caller's promise; the results are private variables.
    let told = unsafe { libc::pthread_attr_getstack(attributes, &raw mut start, &raw mut bytes) };
    let start = start as usize;
    // Without one, its end is at 0.
    let is_brought = told == 0 && start.wrapping_add(bytes) != 0;
    let is_shared = |node: &Node| node.is_shared(start) && node.is_shared(start + bytes - 1);
    (is_brought && Node::current().is_some_and(is_shared)).then_some(start)
}

/// The signals that attributes say a thread begins with blocked, if they do: by a function that the C library has since its version 2.32.
///
/// # Safety
/// The attributes are valid.
unsafe fn signals_of(attributes: *const pthread_attr_t) -> Option<u64> {
    type Get = unsafe extern "C" fn(*const pthread_attr_t, *mut sigset_t) -> c_int;
    static GET: NextFunction = NextFunction::new(c"pthread_attr_getsigmask_np");
    let get = GET.known().or_else(|| uninterrupted(|| GET.find()))?;
    let mut set = Box::new(MaybeUninit::<sigset_t>::zeroed());
    // SAFETY: the function of that name and type; zero is a valid set.
    unsafe {
        let get = std::mem::transmute::<usize, Get>(get);
        (get(attributes, set.as_mut_ptr()) == 0).then(|| signals::bits(set.assume_init_ref()))
    }
}

/// Starts a thread on this node.
///
/// # Errors
/// An error number, as from `pthread_create`.
pub(crate) fn start(node: &'static Node, spec: ThreadSpec) -> Result<(), i32> {
    let memory = thread_memory::take(node).ok_or(libc::EAGAIN)?;
    let bytes = to_usize(spec.stack);
    let stack = match spec.stack_at.map(to_usize) {
        Some(start) => {
            node.begin_stack(&(start..start + bytes));
            Some(start..start + bytes)
        }
        None => span_stack::take(node, bytes),
    };
    let Some(stack) = stack else {
        thread_memory::give_back(&memory);
        return Err(libc::EAGAIN);
    };
    let id = spec.id;
    let start = Box::into_raw(Box::new(Start { node, spec, stack }));
    let create = || start_in(&memory, begin, start.cast());
    // A signal waits until the new thread runs on the stack that handlers may use.
    let blocked = signals::blocked();
    signals::block_only(signals::ALL_BUT_NEEDED);
    cancel::expect(id);
    let result = node.begin_native(id, create);
    signals::block_only(blocked);
    result.inspect_err(|_| {
        cancel::forget(id);
        // SAFETY: no thread was started, so the box is still ours.
        let start = unsafe { Box::from_raw(start) };
        give_stack_back(node, &start.stack, start.spec.stack_at.is_some());
        thread_memory::give_back(&memory);
    })
}

/// Starts a thread of the C library in memory from [`thread_memory::take`], which it owns with the argument. Gives the C library's name
/// for it.
///
/// # Errors
/// The error number of `pthread_create`.
pub(crate) fn start_in(memory: &Range<usize>, routine: Routine, argument: *mut c_void) -> Result<u64, c_int> {
    let mut attributes = MaybeUninit::<pthread_attr_t>::uninit();
    let mut thread = 0;
    // SAFETY: the attributes are initialised before use.
    let result = unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setstack(attributes.as_mut_ptr(), memory.start as *mut c_void, memory.len());
        libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED);
        thread_list::begin_thread(|| real_create(&mut thread, attributes.as_ptr(), routine, argument))
    };
    if result == 0 { Ok(thread) } else { Err(result) }
}

unsafe extern "C" fn begin(start: *mut c_void) -> *mut c_void {
    // SAFETY: `start` made this box for us.
    let Start { node, spec, stack } = *unsafe { Box::from_raw(start.cast::<Start>()) };
    handler_stack::begin_thread();
    let top = stack.end;
    attributes::begin(spec.id, stack.clone());
    BRINGS_STACK.set(spec.stack_at.is_some());
    let thread = Thread::begin(node, spec.id, stack, to_usize(spec.function));
    call_at_end(node);
    cancel::begin(spec.id);
    scheduling::take_over(&spec.scheduling);
    if let Some(inherited) = &spec.inherited {
        inherited::take(inherited);
    }
    // SAFETY: the stack was made for this thread.
    unsafe {
        // The routine and its argument come from the program; the stack is this thread's own.
        let routine: Routine = std::mem::transmute(to_usize(spec.function));
        signals::block_only(spec.blocked);
        let value = on_stack(routine, spec.argument as *mut c_void, top, &mut 0);
        thread.value.set(value as u64);
    }
    std::ptr::null_mut()
}

/// A stack on which no thread runs any more is the program's, or free.
fn give_stack_back(node: &'static Node, stack: &Range<usize>, is_programs: bool) {
    if is_programs {
        node.end_stack(stack);
    } else {
        span_stack::give_back(node, stack);
    }
}

/// Has [`end`] called when the calling thread ends.
fn call_at_end(node: &'static Node) {
    // SAFETY: the destructor only needs a value that is not null.
    unsafe {
        let last = LAST.get_or_init(|| {
            let mut key = 0;
            crate::real!(pthread_key_create: fn(*mut libc::pthread_key_t, unsafe extern "C" fn(*mut c_void)) -> c_int)(
                &mut key, end,
            );
            key
        });
        crate::real!(pthread_setspecific: fn(libc::pthread_key_t, *const c_void) -> c_int)(
            *last,
            std::ptr::from_ref(node).cast(),
        );
    }
}

/// A thread that a library has started ends, or uses no shared memory any more.
pub(crate) fn foreign_ends(node: &'static Node) {
    key::run_destructors(node);
    robust::thread_ends(node);
    node.release(None);
    Thread::detach(node);
}

/// The end of a thread: releases its writes and notifies joining threads. If it is `main`, after `pthread_exit`, the
/// program ends when all other threads have ended.
unsafe extern "C" fn end(node: *mut c_void) {
    // In the child of a fork, which is no node, the C library does all.
    if Node::current().is_none() {
        return;
    }
    // SAFETY: the key's value is the node, which lives as long as the process.
    let node: &'static Node = unsafe { &*node.cast::<Node>() };
    key::run_destructors(node);
    robust::thread_ends(node);
    let thread = Thread::current(node);
    if node.is_main(thread.id) {
        node.main_exits_alone(thread.value.get());
        // SAFETY: ends the program as the last thread's end natively would.
        unsafe { crate::exit::exit(0) };
    }
    let stack = thread.stack.clone();
    if !BRINGS_STACK.get() {
        span_stack::unprotect(node, &stack);
    }
    cancel::end(thread.id);
    attributes::end(thread.id);
    node.thread_ended(thread.id, thread.value.get());
    Thread::detach(node);
    handler_stack::end_thread();
    if !stack.is_empty() {
        give_stack_back(node, &stack, BRINGS_STACK.get());
    }
    thread_memory::end_thread(node);
    thread_list::end_thread();
}

/// # Safety
/// As the C library's `pthread_exit`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn pthread_exit(value: *mut c_void) -> ! {
    let real = crate::real!(pthread_exit: fn(*mut c_void) -> ());
    // SAFETY: the same function, as it is declared.
    let real: unsafe extern "C-unwind" fn(*mut c_void) -> ! = unsafe { std::mem::transmute(real) };
    if let Some(node) = Node::current() {
        let thread = Thread::current(node);
        thread.value.set(value as u64);
        if node.is_main(thread.id) {
            call_at_end(node);
        }
    }
    // SAFETY: forwards the call.
    unsafe { real(value) }
}

fn join(thread: pthread_t, value: *mut *mut c_void, wait: JoinWait) -> c_int {
    let node = Node::current().expect("called for a thread of the run");
    let join = || {
        cancel::at_point(
            || node.join_thread(thread, wait),
            // Without a time, nothing else ends a wait.
            |joined| *joined == Err(libc::ETIMEDOUT),
        )
    };
    let mut joined = join();
    // One that waits for this thread, but has been cancelled, will not wait for long.
    while joined == Err(libc::EDEADLK)
        && thread != Thread::current(node).id
        && cancel::is_requested(node, thread)
    {
        std::thread::sleep(Duration::from_millis(1));
        joined = join();
    }
    match joined {
        Ok(result) => {
            if !value.is_null() {
                // SAFETY: the caller passes null or a place for the value.
                unsafe { *value = result as *mut c_void };
            }
            0
        }
        Err(error) => error,
    }
}

/// Joins until a time; null stands for no end.
fn join_until(thread: pthread_t, value: *mut *mut c_void, clock: clockid_t, time: *const timespec) -> c_int {
    if time.is_null() {
        return join(thread, value, JoinWait::Forever);
    }
    match deadline(clock, time) {
        Ok(until) => join(thread, value, JoinWait::Until(until)),
        Err(error) => error,
    }
}

/// Defines the functions with a thread argument: the code for threads of the run; otherwise the C library's function
/// is called.
macro_rules! naming_a_thread {
    ($(fn $name:ident($thread:ident: pthread_t $(, $argument:ident: $type:ty)*) = $body:expr;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $name($thread: pthread_t $(, $argument: $type)*) -> c_int {
            if Node::current().is_some_and(|node| node.is_thread($thread)) {
                return $body;
            }
            // SAFETY: forwards the caller's arguments.
            unsafe { crate::real!($name: fn(pthread_t $(, $type)*) -> c_int)($thread $(, $argument)*) }
        }
    )*};
}

naming_a_thread! {
    fn pthread_join(thread: pthread_t, value: *mut *mut c_void) =
        join(thread, value, JoinWait::Forever);
    fn pthread_tryjoin_np(thread: pthread_t, value: *mut *mut c_void) =
        join(thread, value, JoinWait::Not);
    fn pthread_timedjoin_np(thread: pthread_t, value: *mut *mut c_void, time: *const timespec) =
        join_until(thread, value, libc::CLOCK_REALTIME, time);
    fn pthread_clockjoin_np(thread: pthread_t, value: *mut *mut c_void, clock: clockid_t, time: *const timespec) =
        join_until(thread, value, clock, time);
    fn pthread_detach(thread: pthread_t) = code(Node::current().map_or(Ok(()), |node| node.detach_thread(thread)));
}
