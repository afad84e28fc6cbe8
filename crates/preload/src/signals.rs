//! Faults on shared memory, and the program's own signal handlers beside them.

use crate::stack::on_stack;
use gondwana_node::{Node, ProcessChange, Thread};
use libc::{c_int, c_void, sigaction as Action, siginfo_t, sigset_t, ucontext_t};
use std::cell::Cell;
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::Mutex;

/// The signals by which the kernel tells of faults.
const FAULTS: [c_int; 2] = [libc::SIGBUS, libc::SIGSEGV];

/// Signals that end a program by default and that are worth a report of where.
const CRASHES: [c_int; 4] = [libc::SIGILL, libc::SIGFPE, libc::SIGABRT, libc::SIGTRAP];

/// Bytes of the stack on which handlers run. It is private, so the kernel can always write a frame to it.
const HANDLER_STACK: usize = 256 * 1024;

/// What the program asked for, for the signals that we handle ourselves.
struct Wanted(Mutex<[Action; 65]>);

// SAFETY: all zero is the default action with an empty mask.
static WANTED: Wanted = Wanted(Mutex::new(unsafe { zeroed() }));

impl Wanted {
    fn get(&self, signal: c_int) -> Action {
        self.0.lock().expect("not poisoned")[signal as usize]
    }

    fn set(&self, signal: c_int, action: Action) {
        self.0.lock().expect("not poisoned")[signal as usize] = action;
    }
}

fn ours(signal: c_int) -> bool {
    FAULTS.contains(&signal)
}

fn real_sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    // SAFETY: forwards valid or null pointers.
    unsafe { crate::real!(sigaction: fn(c_int, *const Action, *mut Action) -> c_int)(signal, new, old) }
}

/// Takes over faults and crashes of this process.
pub fn begin() {
    for signal in FAULTS.into_iter().chain(CRASHES) {
        let fault = ours(signal);
        // SAFETY: all zero is a valid start for an action.
        let mut action: Action = unsafe { zeroed() };
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
    begin_thread();
}

thread_local! {
    /// The stack for handlers that the program gave the calling thread: address and size, 0 for none.
    static PROGRAM_STACK: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    /// Where the calling thread's stack for handlers ends; 0 if it has none.
    static PRIVATE_TOP: Cell<usize> = const { Cell::new(0) };
}

/// Calls a function on the thread's stack for handlers, unless the present stack is private already. A handler
/// that interrupts it goes on below, because the kernel sees that the stack is in use.
pub fn on_private_stack(call: &mut dyn FnMut()) {
    unsafe extern "C" fn enter(call: *mut c_void) -> *mut c_void {
        // SAFETY: `on_private_stack` passes a pointer to its argument, which outlives the call.
        unsafe { (*call.cast::<&mut dyn FnMut()>())() };
        null_mut()
    }
    let mut call = call;
    let here = &raw mut call;
    let top = PRIVATE_TOP.get();
    if top != 0 && Node::current().is_some_and(|node| node.is_shared(here as usize)) {
        // SAFETY: a thread on its own stack is not on its stack for handlers.
        unsafe { on_stack(enter, here.cast(), top) };
    } else {
        call();
    }
}

/// Gives the calling thread its stack for handlers.
pub fn begin_thread() {
    let stack = vec![0u8; HANDLER_STACK].leak();
    PRIVATE_TOP.set((stack.as_ptr() as usize + HANDLER_STACK) & !15);
    let stack = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: HANDLER_STACK };
    // SAFETY: the memory is never used for anything else.
    unsafe {
        crate::real!(sigaltstack: fn(*const libc::stack_t, *mut libc::stack_t) -> c_int)(&stack, null_mut())
    };
}

/// Takes the calling thread's stack for handlers away and frees it. The thread touches no shared memory any more.
pub fn end_thread() {
    // SAFETY: all zero is valid, and the stack was made by `begin_thread`.
    unsafe {
        let real = crate::real!(sigaltstack: fn(*const libc::stack_t, *mut libc::stack_t) -> c_int);
        let none = libc::stack_t { ss_sp: null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        let mut old: libc::stack_t = zeroed();
        if real(&none, &mut old) == 0 && old.ss_flags & libc::SS_DISABLE == 0 {
            drop(Vec::from_raw_parts(old.ss_sp.cast::<u8>(), 0, old.ss_size));
        }
    }
}

unsafe extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let errno = crate::errno::get();
    // SAFETY: the kernel passes valid pointers.
    let (address, code, write, at) = unsafe {
        let registers = &(*context.cast::<ucontext_t>()).uc_mcontext.gregs;
        let write = registers[libc::REG_ERR as usize] & 2 != 0;
        ((*info).si_addr() as usize, (*info).si_code, write, registers[libc::REG_RIP as usize] as usize)
    };
    let from_kernel = code > 0 && code != libc::SI_KERNEL;
    let resolved = from_kernel
        && Node::current().is_some_and(|node| node.is_shared(address) && node.fault(address, write, signal));
    if !resolved {
        // SAFETY: forwards what the kernel passed.
        unsafe { deliver(signal, info, context, address, at) };
    }
    crate::errno::set(errno);
}

/// Does with a fault of the program's own what would natively be done.
unsafe fn deliver(mut signal: c_int, info: *mut siginfo_t, context: *mut c_void, address: usize, at: usize) {
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
            }
            die_by(signal);
        }
        handler => {
            // SAFETY: the program's own handler and mask, with what the kernel passed. The mask that was in force
            // comes back with the return from this handler, or with the program's siglongjmp.
            unsafe {
                let mut mask = (*context.cast::<ucontext_t>()).uc_sigmask;
                for other in 1..65 {
                    if libc::sigismember(&action.sa_mask, other) == 1 {
                        libc::sigaddset(&mut mask, other);
                    }
                }
                for fault in FAULTS {
                    libc::sigdelset(&mut mask, fault);
                }
                real_mask(libc::SIG_SETMASK, &mask, null_mut());
                call(handler, action.sa_flags, signal, info, context);
            }
        }
    }
}

unsafe fn call(handler: usize, flags: c_int, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the program registered this handler with these flags.
    unsafe {
        if flags & libc::SA_SIGINFO != 0 {
            let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = std::mem::transmute(handler);
            handler(signal, info, context);
        } else {
            let handler: extern "C" fn(c_int) = std::mem::transmute(handler);
            handler(signal);
        }
    }
}

unsafe extern "C" fn on_crash(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes valid pointers.
    let at = unsafe { (*context.cast::<ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] as usize };
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
        let mut action: Action = zeroed();
        action.sa_sigaction = libc::SIG_DFL;
        real_sigaction(signal, &action, null_mut());
        let mut only: sigset_t = zeroed();
        libc::sigaddset(&mut only, signal);
        real_mask(libc::SIG_UNBLOCK, &only, null_mut());
        libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::syscall(libc::SYS_gettid), signal);
    }
}

/// The handler of every other signal that the program handles: a handler that interrupted the runtime itself
/// waits until the thread leaves it, because it may touch shared memory.
unsafe extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    if Thread::inside_runtime() {
        Thread::postpone_signal(signal);
        return;
    }
    let action = WANTED.get(signal);
    if action.sa_flags & libc::SA_RESETHAND != 0 {
        // SAFETY: all zero is the default action.
        WANTED.set(signal, unsafe { zeroed() });
    }
    if !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN) {
        // SAFETY: forwards what the kernel passed.
        unsafe { call(action.sa_sigaction, action.sa_flags, signal, info, context) };
    }
}

fn real_mask(how: c_int, set: *const sigset_t, old: *mut sigset_t) -> c_int {
    // SAFETY: forwards valid or null pointers.
    unsafe {
        crate::real!(pthread_sigmask: fn(c_int, *const sigset_t, *mut sigset_t) -> c_int)(how, set, old)
    }
}

/// Puts an action of the program in force in this process.
///
/// # Errors
/// The error number.
fn put_in_force(signal: c_int, wanted: Action) -> Result<(), c_int> {
    let before = WANTED.get(signal);
    WANTED.set(signal, wanted);
    if ours(signal) {
        return Ok(());
    }
    let mut action = wanted;
    if !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN) {
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags |= libc::SA_SIGINFO | libc::SA_ONSTACK;
    } else if action.sa_sigaction == libc::SIG_DFL && CRASHES.contains(&signal) {
        action.sa_sigaction = on_crash as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    }
    for fault in FAULTS {
        // SAFETY: the set is our copy.
        unsafe { libc::sigdelset(&mut action.sa_mask, fault) };
    }
    if real_sigaction(signal, &action, null_mut()) == 0 {
        return Ok(());
    }
    WANTED.set(signal, before);
    Err(crate::errno::get())
}

/// Puts an action in force that the program set on another node; 0 or an error number.
pub fn put_in_force_here(signal: c_int, handler: usize, flags: c_int, mask: u64) -> c_int {
    // SAFETY: all zero is a valid start for an action.
    let mut action: Action = unsafe { zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    for other in (1..65).filter(|other| mask >> (other - 1) & 1 == 1) {
        // SAFETY: the set is ours.
        unsafe { libc::sigaddset(&mut action.sa_mask, other) };
    }
    put_in_force(signal, action).err().unwrap_or(0)
}

/// Signals are handled alike on all nodes, because the threads of the program are on all of them.
///
/// # Safety
/// As the C library's `sigaction`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    let node = Node::current().filter(|_| (1..65).contains(&signal));
    let Some(node) = node else { return real_sigaction(signal, new, old) };
    let before = WANTED.get(signal);
    // SAFETY: the caller passes null or a valid action.
    if let Some(&action) = unsafe { new.as_ref() } {
        // SAFETY: asks about members of our copy of the set.
        let member = |other| unsafe { libc::sigismember(&action.sa_mask, other) } == 1;
        let change = ProcessChange::Action {
            signal,
            handler: action.sa_sigaction as u64,
            flags: action.sa_flags,
            mask: (1..65).filter(|&other| member(other)).fold(0, |mask, other| mask | 1 << (other - 1)),
        };
        if let Err(error) = put_in_force(signal, action).and_then(|()| node.change_elsewhere(change)) {
            crate::errno::set(error);
            return -1;
        }
    }
    if !old.is_null() {
        // SAFETY: the caller passes null or a place for an action.
        unsafe { *old = before };
    }
    0
}

/// # Safety
/// As the C library's `signal`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn signal(number: c_int, handler: usize) -> usize {
    // SAFETY: all zero is a valid start for an action.
    let (mut new, mut old): (Action, Action) = unsafe { (zeroed(), zeroed()) };
    new.sa_sigaction = handler;
    new.sa_flags = libc::SA_RESTART;
    // SAFETY: both are valid.
    if unsafe { sigaction(number, &new, &mut old) } == 0 { old.sa_sigaction } else { libc::SIG_ERR }
}

/// Blocking the fault signals would turn the next fault on shared memory into the process's death.
unsafe fn without_faults(how: c_int, set: *const sigset_t) -> Option<sigset_t> {
    // SAFETY: the caller passes null or a valid set.
    let mut set = *unsafe { set.as_ref() }?;
    if how != libc::SIG_UNBLOCK {
        for fault in FAULTS {
            // SAFETY: the set is our copy.
            unsafe { libc::sigdelset(&mut set, fault) };
        }
    }
    Some(set)
}

macro_rules! masking {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(how: c_int, set: *const sigset_t, old: *mut sigset_t) -> c_int {
            let real = crate::real!($name: fn(c_int, *const sigset_t, *mut sigset_t) -> c_int);
            // SAFETY: the result goes through our own variable, because the kernel could not write to a page of
            // shared memory that is absent.
            unsafe {
                let set = without_faults(how, set);
                let mut before: sigset_t = zeroed();
                let result = real(how, set.as_ref().map_or(std::ptr::null(), |set| set), &mut before);
                if result == 0 && !old.is_null() {
                    *old = before;
                }
                result
            }
        }
    )*};
}

masking! { pthread_sigmask sigprocmask }

/// The smallest stack for handlers that the C library accepts.
const LEAST_HANDLER_STACK: usize = 2048;

/// The program's own stack for handlers: remembered, and not used, because handlers already run on a stack apart,
/// one that the kernel can always write to.
///
/// # Safety
/// As the C library's `sigaltstack`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int {
    if Node::current().is_none() {
        // SAFETY: forwards the caller's arguments.
        return unsafe {
            crate::real!(sigaltstack: fn(*const libc::stack_t, *mut libc::stack_t) -> c_int)(new, old)
        };
    }
    let before = PROGRAM_STACK.get();
    // SAFETY: the caller passes null or a description.
    if let Some(&stack) = unsafe { new.as_ref() } {
        let disabled = stack.ss_flags & libc::SS_DISABLE != 0;
        let error = match stack.ss_flags & !libc::SS_DISABLE {
            0 if disabled || stack.ss_size >= LEAST_HANDLER_STACK => 0,
            0 => libc::ENOMEM,
            _ => libc::EINVAL,
        };
        if error != 0 {
            crate::errno::set(error);
            return -1;
        }
        PROGRAM_STACK.set(if disabled { (0, 0) } else { (stack.ss_sp as usize, stack.ss_size) });
    }
    if !old.is_null() {
        let ss_flags = if before.1 == 0 { libc::SS_DISABLE } else { 0 };
        // SAFETY: the caller passes null or a place for a description.
        unsafe { *old = libc::stack_t { ss_sp: before.0 as *mut c_void, ss_flags, ss_size: before.1 } };
    }
    0
}
