//! Faults on shared memory, and the program's own signal handlers.

use crate::handler_frame::Handler;
use crate::numbers::many;
use crate::private_stack::uninterrupted;
use crate::process::{result_of, stray_signals};
use crate::{
    accesses, handler_stack, locked, main_thread, private_stack, redirect, synchronising, system_calls,
    thread_memory,
};
use gondwana_locks::lock;
use gondwana_node::{Interrupted, Node, ProcessChange, Thread};
use gondwana_page::to_usize;
use libc::{c_int, c_void, sigaction as Action, siginfo_t, sigset_t, ucontext_t};
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::Mutex;

/// The kernel's form of an action.
#[repr(C)]
pub(crate) struct KernelAction {
    pub handler: usize,
    pub flags: u64,
    /// Code that a handler returns to; the C library brings its own.
    pub restorer: usize,
    pub mask: u64,
}

/// The flag of an action with such code, which the kernel must be told.
pub(crate) const HAS_RESTORER: c_int = 0x0400_0000;

/// The signals of faults and traps, which this library needs, so that the program blocks them for no thread.
const NEEDED: [c_int; 3] = [libc::SIGBUS, libc::SIGSEGV, libc::SIGTRAP];

/// Signals that end a program by default; the place is reported.
const CRASHES: [c_int; 3] = [libc::SIGILL, libc::SIGFPE, libc::SIGABRT];

/// The program's actions for the signals that this library handles itself.
struct Wanted(Mutex<[Action; 65]>);

// SAFETY: all zero is the default action with an empty mask.
static WANTED: Wanted = Wanted(Mutex::new(unsafe { zeroed() }));

impl Wanted {
    fn get(&self, signal: c_int) -> Action {
        uninterrupted(|| lock(&self.0)[many(signal)])
    }

    fn set(&self, signal: c_int, action: Action) {
        uninterrupted(|| lock(&self.0)[many(signal)] = action);
    }
}

fn real_sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    // SAFETY: forwards valid or null pointers.
    unsafe { crate::real!(sigaction: fn(c_int, *const Action, *mut Action) -> c_int)(signal, new, old) }
}

/// Takes over faults and crashes of this process.
pub(crate) fn begin() {
    for signal in NEEDED.into_iter().chain(CRASHES) {
        let fault = NEEDED.contains(&signal);
        let mut action = default();
        action.sa_sigaction =
            if fault { on_fault as *const () as usize } else { on_crash as *const () as usize };
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | if fault { libc::SA_RESTART } else { 0 };
        if fault {
            // Nothing may interrupt a thread while it resolves a fault.
            // SAFETY: the set is ours.
            unsafe { libc::sigfillset(&mut action.sa_mask) };
        }
        real_sigaction(signal, &action, null_mut());
    }
    handler_stack::begin_thread();
}

unsafe extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let errno = crate::errno::get();
    // SAFETY: passes on what the kernel passed.
    if signal == libc::SIGTRAP && unsafe { on_trap(info, context) } {
        return crate::errno::set(errno);
    }
    // SAFETY: the kernel passes the context of this thread.
    if signal == libc::SIGSEGV && unsafe { redirect::on_fault(info, context.cast()) } {
        return crate::errno::set(errno);
    }
    // SAFETY: the kernel passes valid pointers.
    let (address, code, write, at) = unsafe {
        let registers = &(*context.cast::<ucontext_t>()).uc_mcontext.gregs;
        let write = registers[libc::REG_ERR as usize] & 2 != 0;
        (
            (*info).si_addr() as usize,
            (*info).si_code,
            write,
            synchronising::original(locked::original(to_usize(
                registers[libc::REG_RIP as usize].cast_unsigned(),
            ))),
        )
    };
    let from_kernel = code > 0 && code != libc::SI_KERNEL;
    let resolved = from_kernel
        && signal != libc::SIGTRAP
        && Node::current().is_some_and(|node| {
            node.is_shared(address) && node.fault(address, write, at, signal)
                // A fork has stopped it for a moment. The access is tried again.
                || thread_memory::holds(node, address)
        });
    if !resolved {
        // SAFETY: forwards what the kernel passed.
        unsafe { deliver(signal, info, context, address, at) };
    }
    handler_stack::after_fault();
    crate::errno::set(errno);
}

/// Handles a trap that this library has set, and a signal of that number that somebody has sent to the program. False if it is neither.
unsafe fn on_trap(info: *mut siginfo_t, context: *mut c_void) -> bool {
    // SAFETY: the kernel passes a description, and the context of this thread.
    unsafe {
        if locked::on_trap(context.cast())
            || synchronising::on_trap(context.cast())
            || system_calls::on_trap(context.cast())
        {
            return true;
        }
        let is_for_handler = (*info).si_code <= 0 && is_handled(libc::SIGTRAP);
        if is_for_handler {
            on_signal(libc::SIGTRAP, info, context);
        }
        is_for_handler
    }
}

/// Handles a fault of the program itself as natively.
unsafe fn deliver(mut signal: c_int, info: *mut siginfo_t, context: *mut c_void, address: usize, at: usize) {
    // SAFETY: the kernel passed a valid context.
    if matches!(signal, libc::SIGSEGV | libc::SIGBUS) && accesses::skip(unsafe { &mut *context.cast() }) {
        return;
    }
    if signal == libc::SIGSEGV && crate::map::is_beyond_file(address) {
        signal = libc::SIGBUS;
        // SAFETY: the kernel passed a valid description, which is ours to change.
        unsafe { (*info).si_signo = signal };
    }
    let action = WANTED.get(signal);
    // SAFETY: as above.
    let sent = unsafe { (*info).si_code } <= 0;
    match action.sa_sigaction {
        libc::SIG_IGN if sent => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            if let Some(node) = Node::current() {
                node.report_crash(signal, address, at);
            } else if let Some((parent, owner)) = Node::out_of_reach_of_child(address) {
                crate::report::line(&format!(
                    "a child process of node {parent} accesses thread-local variables or a mapped file of node {owner}, which is on \
                     another computer: a child has copies of shared memory only"
                ));
            }
            die_by(signal);
        }
        _ => {
            if action.sa_flags & libc::SA_RESETHAND != 0 {
                WANTED.set(signal, default());
            }
            block_all_but_needed();
            // SAFETY: the context is the kernel's.
            let mut mask =
                bits(unsafe { &(*context.cast::<ucontext_t>()).uc_sigmask }) | bits(&action.sa_mask);
            if action.sa_flags & libc::SA_NODEFER == 0 {
                mask |= 1 << (signal - 1);
            }
            // SAFETY: forwards what the kernel passed.
            unsafe { start(&action, mask, None, (signal, info, context)) };
        }
    }
}

/// What the kernel passes to a handler.
type Passed = (c_int, *mut siginfo_t, *mut c_void);

/// Has a handler of the program start, or calls it here if there is no place for it elsewhere. All signals are blocked but those
/// that are needed, and `mask` of the others is what the handler has blocked. `interrupted` is what the thread was, if that
/// is to be restored.
unsafe fn start(action: &Action, mask: u64, interrupted: Option<Interrupted>, passed: Passed) {
    let (signal, info, context) = passed;
    let mask = NEEDED.iter().fold(mask, |mask, needed| mask & !(1 << (needed - 1)));
    let handler = Handler { function: action.sa_sigaction, flags: action.sa_flags, mask, interrupted };
    // SAFETY: forwards what the kernel passed. Handlers take three arguments or one.
    unsafe {
        if !handler.start(signal, info, context) {
            block_only(mask);
            let function: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                std::mem::transmute(handler.function);
            function(signal, info, context);
            if let Some(interrupted) = interrupted {
                Thread::end_handler(interrupted);
            }
        }
    }
}

unsafe extern "C" fn on_crash(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes valid pointers.
    let at = unsafe { (*context.cast::<ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] };
    let at = to_usize(at.cast_unsigned());
    // SAFETY: as above.
    let address = if signal == libc::SIGABRT { at } else { unsafe { (*info).si_addr() as usize } };
    if let Some(node) = Node::current() {
        node.report_crash(signal, address, at);
    }
    die_by(signal);
}

/// Ends the process by the default action of a signal.
fn die_by(signal: c_int) {
    // SAFETY: default disposition, then the signal to this thread; nothing returns to the program.
    unsafe {
        let mut action = default();
        action.sa_sigaction = libc::SIG_DFL;
        real_sigaction(signal, &action, null_mut());
        let mut only: sigset_t = zeroed();
        libc::sigaddset(&mut only, signal);
        real_mask(libc::SIG_UNBLOCK, &only, null_mut());
        gondwana_sys::syscall!(libc::SYS_tgkill, gondwana_sys::process(), gondwana_sys::thread(), signal);
    }
}

/// The handler of all other signals that the program handles. A handler that interrupted the runtime is deferred
/// until the thread leaves it, because it may access shared memory.
unsafe extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: passes on what the kernel passed.
    if unsafe { main_thread::gets(signal, info) } {
        return;
    }
    if Thread::inside_runtime() {
        // SAFETY: passes on what the kernel passed.
        unsafe { Thread::postpone_signal(signal, info, context.cast()) };
        return;
    }
    let action = WANTED.get(signal);
    if action.sa_flags & libc::SA_RESETHAND != 0 {
        WANTED.set(signal, default());
    }
    if handles(&action) {
        let errno = crate::errno::get();
        let mask = blocked();
        block_all_but_needed();
        let interrupted = Thread::begin_handler(action.sa_flags & libc::SA_RESTART != 0);
        crate::io::channels::learn();
        crate::errno::set(errno);
        // SAFETY: forwards what the kernel passed.
        unsafe { start(&action, mask, Some(interrupted), (signal, info, context)) };
    }
}

pub(crate) fn default() -> Action {
    // SAFETY: all zero is the default action with an empty mask.
    unsafe { zeroed() }
}

fn real_mask(how: c_int, set: *const sigset_t, old: *mut sigset_t) -> c_int {
    // SAFETY: forwards valid or null pointers.
    unsafe {
        crate::real!(pthread_sigmask: fn(c_int, *const sigset_t, *mut sigset_t) -> c_int)(how, set, old)
    }
}

fn handles(action: &Action) -> bool {
    !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN)
}

fn is_handled(signal: c_int) -> bool {
    handles(&WANTED.get(signal))
}

/// True if the program handles a signal.
pub(crate) fn are_handled() -> bool {
    uninterrupted(|| lock(&WANTED.0).iter().any(handles))
}

/// Puts an action of the program in force in this process.
///
/// # Errors
/// The error number.
fn put_in_force(signal: c_int, wanted: Action) -> Result<(), c_int> {
    let before = WANTED.get(signal);
    WANTED.set(signal, wanted);
    if NEEDED.contains(&signal) {
        return Ok(());
    }
    let mut action = wanted;
    if handles(&action) {
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags |= libc::SA_SIGINFO | libc::SA_ONSTACK;
    } else if action.sa_sigaction == libc::SIG_DFL && CRASHES.contains(&signal) {
        action.sa_sigaction = on_crash as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    }
    for needed in NEEDED {
        // SAFETY: the set is our copy.
        unsafe { libc::sigdelset(&mut action.sa_mask, needed) };
    }
    if real_sigaction(signal, &action, null_mut()) == 0 {
        stray_signals::note(signal, handles(&wanted));
        return Ok(());
    }
    WANTED.set(signal, before);
    Err(crate::errno::get())
}

/// Puts an action in force that the program set on another node; 0 or an error number.
pub(crate) fn put_in_force_here(signal: c_int, handler: usize, flags: c_int, mask: u64) -> c_int {
    let mut action = default();
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    action.sa_mask = set_of(mask);
    put_in_force(signal, action).err().unwrap_or(0)
}

/// Signals are handled alike on all nodes, because the threads of the program are on all of them.
///
/// # Safety
/// As the C library's `sigaction`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    // The C library refuses those that it keeps to itself.
    if !(1..65).contains(&signal) || (32..34).contains(&signal) {
        return real_sigaction(signal, new, old);
    }
    // SAFETY: the caller passes null or a valid action.
    let new = unsafe { new.as_ref() }.map(|&new| Action {
        // As the C library has it, whose actions have code that handlers return to.
        sa_flags: new.sa_flags | HAS_RESTORER,
        ..new
    });
    let before = match Node::current() {
        Some(node) => set_everywhere(node, signal, new),
        None => set_in_child(signal, new),
    };
    result_of(before.map(|before| {
        if !old.is_null() {
            // SAFETY: the caller passes null or a place for an action.
            unsafe { *old = before };
        }
    }))
}

/// Sets an action of the program, if there is a new one. Returns the one before.
///
/// # Errors
/// The error number.
fn set_everywhere(node: &'static Node, signal: c_int, new: Option<Action>) -> Result<Action, c_int> {
    let before = WANTED.get(signal);
    if let Some(action) = new {
        put_in_force(signal, action)?;
        node.change_elsewhere(ProcessChange::Action {
            signal,
            handler: action.sa_sigaction as u64,
            flags: action.sa_flags,
            mask: bits(&action.sa_mask),
        })?;
    }
    Ok(before)
}

/// As [`set_everywhere`], in a process that is no node: a child, in which the actions of its parent hold until it sets others.
fn set_in_child(signal: c_int, new: Option<Action>) -> Result<Action, c_int> {
    let mut before = default();
    let place = new.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    if real_sigaction(signal, place, &raw mut before) != 0 {
        return Err(crate::errno::get());
    }
    let own = [on_fault as *const (), on_crash as *const (), on_signal as *const ()];
    if own.into_iter().any(|own| own as usize == before.sa_sigaction) {
        before = WANTED.get(signal);
    }
    Ok(before)
}

/// With the fault signals blocked, the next fault on shared memory would kill the process.
pub(crate) unsafe fn without_faults(how: c_int, set: *const sigset_t) -> Option<sigset_t> {
    if set.is_null() {
        return None;
    }
    // The kernel's sets are shorter than those of the C library, and a program may have one of those.
    // SAFETY: the caller passes a valid set.
    let mut set = set_of(unsafe { set.cast::<u64>().read_unaligned() });
    if how != libc::SIG_UNBLOCK {
        for needed in NEEDED {
            // SAFETY: the set is our copy.
            unsafe { libc::sigdelset(&mut set, needed) };
        }
    }
    Some(set)
}

/// Makes a call with another mask of the calling thread, if one is given.
pub(crate) fn with_mask<R>(mask: Option<&sigset_t>, call: impl FnOnce() -> R) -> R {
    let Some(&mask) = mask else { return call() };
    let exchange = |new: sigset_t| {
        // SAFETY: all zero is an empty set.
        let mut old: sigset_t = unsafe { zeroed() };
        // The kernel uses private variables: the caller's stack may be shared.
        private_stack::on_private_stack(&mut || {
            // SAFETY: as above.
            let (new, mut before) = (new, unsafe { zeroed() });
            real_mask(libc::SIG_SETMASK, &raw const new, &raw mut before);
            old = before;
        });
        old
    };
    let before = exchange(mask);
    let result = call();
    exchange(before);
    result
}

/// The signals that the calling thread blocks, bit 0 being signal 1.
pub(crate) fn blocked() -> u64 {
    // SAFETY: all zero is an empty set.
    let mut set: sigset_t = unsafe { zeroed() };
    private_stack::on_private_stack(&mut || {
        // The kernel writes to a private variable: the caller's stack may be shared.
        // SAFETY: as above.
        let mut now: sigset_t = unsafe { zeroed() };
        real_mask(libc::SIG_SETMASK, std::ptr::null(), &mut now);
        set = now;
    });
    bits(&set)
}

/// All signals except those that this library needs, as bits.
pub(crate) const ALL_BUT_NEEDED: u64 =
    !(1 << (libc::SIGBUS - 1) | 1 << (libc::SIGSEGV - 1) | 1 << (libc::SIGTRAP - 1));

/// Blocks all signals for the calling thread but those that this library needs.
pub(crate) fn block_all_but_needed() {
    /// In memory that the kernel can always read.
    static BLOCKED: u64 = ALL_BUT_NEEDED;
    let blocked = &raw const BLOCKED;
    let old = null_mut::<u64>();
    // SAFETY: a valid set.
    unsafe {
        gondwana_sys::syscall!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, blocked, old, size_of::<u64>())
    };
}

/// Sets the calling thread's signal mask. Its stack must be private.
pub(crate) fn block_only(blocked: u64) {
    real_mask(libc::SIG_SETMASK, &set_of(blocked), null_mut());
}

/// The signals of a set, bit 0 being signal 1.
pub(crate) fn bits(set: &sigset_t) -> u64 {
    // SAFETY: the first word of a set is the kernel's.
    unsafe { std::ptr::from_ref(set).cast::<u64>().read() }
}

/// The set of some signals, but for those that the C library keeps to itself.
pub(crate) fn set_of(bits: u64) -> sigset_t {
    // SAFETY: all zero is an empty set, of which the first word is the kernel's.
    unsafe {
        let mut set: sigset_t = zeroed();
        (&raw mut set).cast::<u64>().write(bits & !(1 << 31 | 1 << 32));
        set
    }
}

macro_rules! masking {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(how: c_int, set: *const sigset_t, old: *mut sigset_t) -> c_int {
            let real = crate::real!($name: fn(c_int, *const sigset_t, *mut sigset_t) -> c_int);
            // SAFETY: the result goes through our own variable, because the kernel could not write to a page of
            // shared memory that is absent.
            unsafe {
                let set = without_faults(how, set);
                let mut before: sigset_t = zeroed();
                let result = real(how, set.as_ref().map_or(std::ptr::null(), |set| set), &mut before);
                if result == 0 && !old.is_null() {
                    old.cast::<u64>().write_unaligned(bits(&before));
                }
                result
            }
        }
    )*};
}

masking! { pthread_sigmask sigprocmask }
