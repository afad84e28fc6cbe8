//! Cancellation of threads, on any node.
//!
//! The C library's own is never asked: it would unwind the stack wherever a thread waits, also where the runtime does. Here a
//! request is a mark at the thread, which looks at it where it enters a cancellation point and where it leaves one that was
//! interrupted, and then exits as by `pthread_exit`. A waiting thread is interrupted by a signal that the C library keeps
//! to itself, and at its wait slot. A signal may come right before a system call that waits; so a thread of the node repeats
//! it as long as somebody has not heard.

use super::thread::pthread_exit;
use crate::io::Failing;
use crate::io::descriptors::There;
use crate::private_stack::uninterrupted;
use crate::process::scheduling;
use crate::signals::{HAS_RESTORER, KernelAction};
use gondwana_locks::lock;
use gondwana_node::{Node, ProcessChange, Thread, WaitSlot};
use gondwana_page::to_usize;
use libc::{c_int, c_void, pthread_t, siginfo_t, ucontext_t};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ptr::null;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The signal: the C library uses it for its own cancellation, and lets no program block or handle it.
const SIGNAL: c_int = 32;

/// How soon a signal is repeated.
const REPEAT: Duration = Duration::from_millis(5);

/// `PTHREAD_CANCELED`.
const CANCELLED: *mut c_void = std::ptr::without_provenance_mut(usize::MAX);

/// `PTHREAD_CANCEL_DISABLE` and `PTHREAD_CANCEL_ASYNCHRONOUS`.
const DISABLE: c_int = 1;
const ASYNCHRONOUS: c_int = 1;

/// Bytes below the stack pointer that belong to the interrupted function.
const RED_ZONE: usize = 128;

/// What a thread has to do with cancellation.
#[derive(Default)]
struct Cancellation {
    /// The kernel's number of the thread; 0 until it has begun.
    kernel: AtomicI32,
    requested: AtomicBool,
    disabled: AtomicBool,
    asynchronous: AtomicBool,
    /// While it is in a cancellation point: its wait slot, plus 1.
    point: AtomicU32,
}

/// The threads of the program on this node, by their numbers.
static THREADS: Mutex<BTreeMap<u64, Arc<Cancellation>>> = Mutex::new(BTreeMap::new());

/// A thread repeats signals.
static REPEATING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// That of the calling thread, which [`THREADS`] keeps; null for a thread that is not one of the program's.
    static OWN: Cell<*const Cancellation> = const { Cell::new(null()) };
}

fn own() -> Option<&'static Cancellation> {
    // SAFETY: `begin` and `end` set it for the calling thread; nobody uses it after `end`.
    unsafe { OWN.get().as_ref() }
}

impl Cancellation {
    fn is_due(&self) -> bool {
        self.requested.load(Ordering::SeqCst) && !self.disabled.load(Ordering::Relaxed)
    }

    /// Interrupts the thread, which has not ended, if it is to act on a request.
    fn interrupt(&self, node: &Node) -> bool {
        if !self.is_due() {
            return false;
        }
        let point = self.point.load(Ordering::SeqCst);
        if let Some(slot) = point.checked_sub(1) {
            node.interrupt(WaitSlot(slot));
        }
        if point != 0 || self.asynchronous.load(Ordering::Relaxed) {
            interrupt(self.kernel.load(Ordering::Relaxed));
        }
        true
    }
}

/// A thread of the program is about to be started here: a request for it counts from now on.
pub(super) fn expect(thread: u64) {
    uninterrupted(|| lock(&THREADS).insert(thread, Arc::default()));
}

/// The calling thread, one of the program's, begins.
pub(crate) fn begin(thread: u64) {
    uninterrupted(|| {
        let mut threads = lock(&THREADS);
        let own = threads.entry(thread).or_default();
        own.kernel.store(gondwana_sys::thread(), Ordering::Relaxed);
        OWN.set(Arc::as_ptr(own));
    });
}

/// A thread that was expected could not be started.
pub(super) fn forget(thread: u64) {
    drop(uninterrupted(|| lock(&THREADS).remove(&thread)));
}

/// The calling thread ends.
pub(super) fn end(thread: u64) {
    OWN.set(null());
    forget(thread);
}

/// Interrupts a system call of a thread, by its number of the kernel's, that is [interruptible](be_interruptible).
pub(crate) fn interrupt(kernel: c_int) {
    // SAFETY: touches no memory.
    unsafe { gondwana_sys::syscall!(libc::SYS_tgkill, gondwana_sys::process(), kernel, SIGNAL) };
}

/// Calls of the calling thread, one of the runtime's, can be interrupted from now on.
pub(crate) fn be_interruptible() {
    let set = Box::new(1_u64 << (SIGNAL - 1));
    // SAFETY: the set is as long as told.
    unsafe {
        gondwana_sys::syscall!(
            libc::SYS_rt_sigprocmask,
            libc::SIG_UNBLOCK,
            &raw const *set,
            null::<u64>(),
            size_of::<u64>()
        )
    };
}

/// Requests that a thread of this node ends, if there is one of this number; 0 or `ESRCH`. It may start a thread.
pub(crate) fn request_here(thread: u64) -> c_int {
    let Some(node) = Node::current() else { return libc::ESRCH };
    let found = uninterrupted(|| {
        let threads = lock(&THREADS);
        let found = threads.get(&thread)?;
        found.requested.store(true, Ordering::SeqCst);
        found.interrupt(node);
        Some(())
    });
    if found.is_none() {
        return libc::ESRCH;
    }
    if !REPEATING.swap(true, Ordering::SeqCst)
        && Thread::start_native("cancellation", move || repeat(node)).is_err()
    {
        REPEATING.store(false, Ordering::SeqCst);
        return libc::EAGAIN;
    }
    0
}

/// True if somebody has requested that a thread ends, which has not.
pub(super) fn is_requested(node: &'static Node, thread: u64) -> bool {
    match node.place_of_thread(thread).filter(|&owner| owner != node.number().index()) {
        Some(owner) => {
            There { node, owner }.call::<c_int>(
                "__gondwana_is_cancelled",
                &[i64::from_ne_bytes(thread.to_ne_bytes())],
                &[],
            ) == 1
        }
        None => is_requested_here(thread),
    }
}

fn is_requested_here(thread: u64) -> bool {
    uninterrupted(|| {
        lock(&THREADS).get(&thread).is_some_and(|thread| thread.requested.load(Ordering::SeqCst))
    })
}

/// For other nodes: 1 if somebody has requested that a thread of this node ends.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __gondwana_is_cancelled(thread: u64) -> c_int {
    c_int::from(is_requested_here(thread))
}

/// Repeats signals until all threads have heard.
fn repeat(node: &'static Node) {
    loop {
        std::thread::sleep(REPEAT);
        let threads = lock(&THREADS);
        if threads.values().filter(|thread| thread.interrupt(node)).count() == 0
            && !threads.values().any(|thread| thread.requested.load(Ordering::SeqCst))
        {
            REPEATING.store(false, Ordering::SeqCst);
            return;
        }
    }
}

/// # Safety
/// As the C library's `pthread_cancel`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn pthread_cancel(thread: pthread_t) -> c_int {
    let Some(node) = Node::current().filter(|node| node.is_thread(thread)) else {
        // SAFETY: forwards the caller's argument.
        return unsafe { crate::real!(pthread_cancel: fn(pthread_t) -> c_int)(thread) };
    };
    let asked = match request_here(thread) {
        libc::ESRCH => node.change_where_it_is(ProcessChange::Cancel { thread }).err().unwrap_or(0),
        error => error,
    };
    // A thread that has ended and is not joined yet can be cancelled without effect.
    if asked == libc::ESRCH { 0 } else { asked }
}

/// Ends the calling thread as a cancelled one, unless nobody has asked for that.
#[inline]
fn act_if_due(own: &Cancellation) {
    if own.is_due() {
        act(own);
    }
}

#[cold]
fn act(own: &Cancellation) -> ! {
    own.disabled.store(true, Ordering::Relaxed);
    own.point.store(0, Ordering::SeqCst);
    // SAFETY: the calling thread's frames have nothing to drop that is not dropped by unwinding.
    unsafe { pthread_exit(CANCELLED) }
}

unsafe extern "C-unwind" fn act_now() -> ! {
    match own() {
        Some(own) => act(own),
        None => std::process::abort(),
    }
}

/// Where a thread goes on that was interrupted anywhere. The stack has the interrupted place and, behind it, the stack pointer
/// there; the unwinder learns from the directives that this is the frame of a signal.
#[unsafe(naked)]
unsafe extern "C-unwind" fn act_where_interrupted() {
    std::arch::naked_asm!(
        ".cfi_startproc simple",
        ".cfi_signal_frame",
        // The frame's address is the word at rsp + 8, and rip is saved at rsp.
        ".cfi_escape 0x0f, 3, 0x77, 8, 0x06",
        ".cfi_escape 0x10, 16, 2, 0x77, 0",
        // The unwinder may look one byte before the place.
        "nop",
        "call {act}",
        "ud2",
        ".cfi_endproc",
        act = sym act_now,
    )
}

/// Makes a call in which nothing is a cancellation point. A thread that can be cancelled at any time can be there, too.
pub(crate) fn without_points<R>(call: impl FnOnce() -> R) -> R {
    let own = own().filter(|own| !own.asynchronous.load(Ordering::Relaxed));
    let before = own.map(|own| own.disabled.swap(true, Ordering::Relaxed));
    let result = call();
    if let (Some(own), Some(before)) = (own, before) {
        own.disabled.store(before, Ordering::Relaxed);
    }
    result
}

/// # Safety
/// Has no preconditions.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn pthread_testcancel() {
    own().into_iter().for_each(act_if_due);
}

/// Exchanges one of a thread's settings.
fn exchange(
    wanted: c_int,
    before: *mut c_int,
    setting: impl FnOnce(&'static Cancellation) -> &'static AtomicBool,
) -> c_int {
    if !(0..=1).contains(&wanted) {
        return libc::EINVAL;
    }
    let was = own().map(|own| setting(own).swap(wanted == 1, Ordering::SeqCst));
    if !before.is_null() {
        // SAFETY: the caller passes null or a place for the setting.
        unsafe { *before = c_int::from(was.unwrap_or(false)) };
    }
    if let Some(own) = own().filter(|own| own.asynchronous.load(Ordering::Relaxed)) {
        act_if_due(own);
    }
    0
}

const _: () = assert!(DISABLE == 1 && ASYNCHRONOUS == 1, "the settings are flags");

/// # Safety
/// As the C library's `pthread_setcancelstate`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int {
    exchange(state, before, |own| &own.disabled)
}

/// # Safety
/// As the C library's `pthread_setcanceltype`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn pthread_setcanceltype(kind: c_int, before: *mut c_int) -> c_int {
    exchange(kind, before, |own| &own.asynchronous)
}

/// Makes a call that is a cancellation point. `interrupted` tells whether it has ended without effect, so that the thread may
/// end in its place.
#[inline]
pub(crate) fn at_point<R>(call: impl FnOnce() -> R, interrupted: impl FnOnce(&R) -> bool) -> R {
    // The runtime makes some of its own calls by the functions of the program.
    let own = own().filter(|_| !Thread::inside_runtime());
    let (Some(own), Some(node)) = (own, Node::current()) else { return call() };
    let slot = Thread::current(node).slot;
    let before = own.point.load(Ordering::Relaxed);
    node.forget_interruption(slot);
    // Ahead of the look: whoever requests now either sees this thread here or is seen.
    own.point.store(slot.0 + 1, Ordering::SeqCst);
    act_if_due(own);
    let result = call();
    own.point.store(before, Ordering::SeqCst);
    if own.requested.load(Ordering::SeqCst) {
        leave_after_request(node, own, slot, interrupted(&result));
    }
    result
}

#[cold]
fn leave_after_request(node: &Node, own: &Cancellation, slot: WaitSlot, interrupted: bool) {
    if interrupted {
        act_if_due(own);
    }
    // Whoever has seen the thread at the point has interrupted it by now; the next wait is none that may be.
    uninterrupted(|| drop(lock(&THREADS)));
    node.forget_interruption(slot);
}

/// The same for a function of a name that is a point or none, and that fails with `EINTR` if it is interrupted.
#[inline]
pub(crate) fn at_point_if<R: Failing>(is_point: bool, call: impl FnOnce() -> R) -> R {
    if is_point {
        at_point(call, |result| result.failed() && crate::errno::get() == libc::EINTR)
    } else {
        call()
    }
}

#[unsafe(naked)]
unsafe extern "C" fn return_from_handler() {
    std::arch::naked_asm!("mov rax, {number}", "syscall", number = const libc::SYS_rt_sigreturn)
}

/// Takes the signal over in this process.
pub(crate) fn handle_signal() {
    let action = KernelAction {
        handler: on_signal as *const () as usize,
        flags: u64::from((libc::SA_SIGINFO | libc::SA_ONSTACK | HAS_RESTORER).cast_unsigned()),
        restorer: return_from_handler as *const () as usize,
        mask: 0,
    };
    // SAFETY: a valid action. The C library's own function refuses this signal.
    unsafe {
        gondwana_sys::syscall!(
            libc::SYS_rt_sigaction,
            SIGNAL,
            &raw const action,
            std::ptr::null_mut::<KernelAction>(),
            size_of::<u64>()
        );
    }
}

/// Has the kernel start the C library's handler of a signal on private stacks, if there is one: a page of another stack may be absent.
/// The caller's stack is private.
pub(crate) fn handle_on_private_stacks(signal: c_int) {
    let mut action = KernelAction { handler: libc::SIG_DFL, flags: 0, restorer: 0, mask: 0 };
    let none = std::ptr::null_mut::<KernelAction>();
    // SAFETY: valid actions. The C library's own function refuses this signal.
    unsafe {
        gondwana_sys::syscall!(libc::SYS_rt_sigaction, signal, none, &raw mut action, size_of::<u64>());
        if !matches!(action.handler, libc::SIG_DFL | libc::SIG_IGN) {
            action.flags |= u64::from(libc::SA_ONSTACK.cast_unsigned());
            gondwana_sys::syscall!(libc::SYS_rt_sigaction, signal, &raw const action, none, size_of::<u64>());
        }
    }
}

/// Has a thread that may be cancelled anywhere end where it was interrupted, unless the runtime was. For all others the
/// signal has done its work: it has interrupted a system call.
unsafe extern "C" fn on_signal(_signal: c_int, _info: *mut siginfo_t, context: *mut c_void) {
    let (Some(own), Some(node)) = (own(), Node::current()) else { return };
    if !own.is_due() || !own.asynchronous.load(Ordering::Relaxed) || Thread::inside_runtime() {
        return;
    }
    // SAFETY: the kernel passes the context of this thread, which it restores when this function returns.
    unsafe {
        let registers = &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs;
        let stack = to_usize(registers[libc::REG_RSP as usize].cast_unsigned());
        // On its private stack it is in the runtime.
        if !node.is_shared(stack) {
            return;
        }
        let top = ((stack - RED_ZONE) & !15) - 2 * size_of::<usize>();
        let words = top as *mut i64;
        words.write(registers[libc::REG_RIP as usize]);
        words.add(1).write(registers[libc::REG_RSP as usize]);
        registers[libc::REG_RSP as usize] = (top as u64).cast_signed();
        registers[libc::REG_RIP as usize] = (act_where_interrupted as *const () as u64).cast_signed();
    }
}

/// Defines sleeps, which give the time that is left in whole units or -1.
macro_rules! sleeping {
    ($($name:ident($type:ty) -> $result:ty;)*) => {$(
        /// # Safety
        /// Has no preconditions.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C-unwind" fn $name(time: $type) -> $result {
            let _pause = scheduling::pause();
            // SAFETY: touches no memory.
            at_point(|| unsafe { crate::real!($name: fn($type) -> $result)(time) }, |&left| left != 0)
        }
    )*};
}

sleeping! {
    sleep(libc::c_uint) -> libc::c_uint;
    usleep(libc::c_uint) -> c_int;
}

/// # Safety
/// Has no preconditions.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn pause() -> c_int {
    let _pause = scheduling::pause();
    // SAFETY: touches no memory.
    at_point(|| unsafe { crate::real!(pause: fn() -> c_int)() }, |_| true)
}
