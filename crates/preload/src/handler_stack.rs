//! The stacks of signal handlers.
//!
//! Each thread has an alternate signal stack that is private to the node: there the kernel can always write its
//! frame, and there the runtime works. Handlers of the program run where they do natively, on the interrupted stack or
//! on the alternate stack that the program has set ([`crate::handler_frame`] has the kernel start them there). What was
//! interrupted may be the runtime, on the private stack; then the handler leaves that part of it alone.

use crate::left_behind::LeftBehind;
use crate::private_stack::{LEFT, PART, uninterrupted};
use crate::signals::{ALL_BUT_NEEDED, block_only};
use gondwana_locks::lock;
use gondwana_node::{Node, Thread};
use libc::{c_int, c_void, stack_t};
use std::cell::{Cell, UnsafeCell};
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::Mutex;

/// Bytes of a thread's private stack.
const PRIVATE_STACK: usize = 256 * 1024;

/// The least part of the private stack with which a further handler may be started.
const LEAST_PART: usize = 64 * 1024;

/// Bytes below the stack pointer that belong to the interrupted function.
const RED_ZONE: usize = 128;

/// The smallest stack for handlers that the C library accepts.
const LEAST_PROGRAM_STACK: usize = 2048;

/// The private stacks of threads that have ended or are about to.
static ENDED: Mutex<LeftBehind> = Mutex::new(LeftBehind::new());

thread_local! {
    /// The calling thread is about to end.
    static HAS_ENDED: Cell<bool> = const { Cell::new(false) };
    /// The start of the memory of the private stack; 0 if there is none.
    static MEMORY: Cell<usize> = const { Cell::new(0) };
    /// The whole private stack of the calling thread: its ends, equal if it has none.
    static WHOLE: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    /// The frame of the innermost handler that has interrupted the runtime on the private stack; 0 for none.
    static ABOVE_RUNTIME: Cell<usize> = const { Cell::new(0) };
    /// The stack for handlers that the program gave the calling thread: its ends, equal for none.
    static PROGRAM: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    /// The argument for the kernel, which must not be on a shared stack.
    static TOLD: UnsafeCell<stack_t> =
        const { UnsafeCell::new(stack_t { ss_sp: null_mut(), ss_flags: 0, ss_size: 0 }) };
}

fn real_sigaltstack(new: *const stack_t, old: *mut stack_t) -> c_int {
    // SAFETY: forwards valid or null pointers.
    unsafe { crate::real!(sigaltstack: fn(*const stack_t, *mut stack_t) -> c_int)(new, old) }
}

/// Has the kernel use this part of the private stack. Not called on that part.
fn use_part(part: (usize, usize)) {
    PART.set(part);
    real_sigaltstack(argument_for(part), null_mut());
}

/// The argument by which the kernel is told of a part of the private stack, in private memory of the calling thread.
fn argument_for((start, end): (usize, usize)) -> *const stack_t {
    let ss_flags = if start == end { libc::SS_DISABLE } else { 0 };
    TOLD.with(|argument| {
        // SAFETY: only this thread uses the variable, and a handler that interrupts it here leaves it as it was.
        unsafe { *argument.get() = stack_t { ss_sp: start as *mut c_void, ss_flags, ss_size: end - start } };
        argument.get().cast_const()
    })
}

/// What a thread has in use of its private stack.
#[derive(Clone, Copy)]
pub(crate) struct InUse {
    /// The part that is registered with the kernel.
    part: (usize, usize),
    /// As [`LEFT`].
    left: usize,
    /// As [`ABOVE_RUNTIME`].
    above_runtime: usize,
}

impl InUse {
    fn now() -> Self {
        Self { part: PART.get(), left: LEFT.get(), above_runtime: ABOVE_RUNTIME.get() }
    }

    /// Notes it for the calling thread. True if the kernel must be told of another part.
    pub(crate) fn note(self) -> bool {
        LEFT.set(self.left);
        ABOVE_RUNTIME.set(self.above_runtime);
        PART.replace(self.part) != self.part
    }

    /// The argument by which the kernel is told of the part.
    pub(crate) fn argument(self) -> *const stack_t {
        argument_for(self.part)
    }

    /// Where a thread prepares to go back to this, with so many bytes for the kernel to read: the top of its stack
    /// meanwhile, and where these bytes are. The kernel registers a part only for a thread that is on none.
    pub(crate) fn way_back(self, bytes: usize) -> (usize, usize) {
        let (_, top) = PART.get();
        if self.part == PART.get() { (top - bytes, top - bytes) } else { (top, top) }
    }
}

/// Where a handler of the program starts.
pub(crate) struct Place {
    /// The bytes below are free.
    pub top: usize,
    /// What is in use when the handler has returned.
    pub after: InUse,
    part: (usize, usize),
    interrupts_runtime: bool,
}

impl Place {
    /// For a handler with these flags that interrupts a thread whose stack pointer was `interrupted`, and for so many bytes for
    /// the kernel when it has returned, a multiple of 64. `None` if the thread was about to start another handler, or if
    /// the private stack has no room for more: then the place is where the caller runs.
    pub(crate) fn find(flags: c_int, interrupted: usize, bytes: usize) -> Option<Self> {
        let (whole, mut after) = (WHOLE.get(), InUse::now());
        let interrupts_runtime = (whole.0..=whole.1).contains(&interrupted);
        let on_program_stack = match after.left {
            0 if interrupts_runtime => return None,
            left if interrupts_runtime => left,
            _ => interrupted,
        };
        if !interrupts_runtime && !is_below(on_program_stack, after.above_runtime) {
            // A handler that has interrupted the runtime may have left it by `siglongjmp`.
            after = InUse { part: whole, left: after.left, above_runtime: 0 };
        }
        let part = match interrupts_runtime {
            true => (after.part.0, (interrupted - RED_ZONE - bytes) & !63),
            false => after.part,
        };
        if part.1.saturating_sub(part.0) < LEAST_PART {
            return None;
        }
        let own = program_stack();
        let top = if flags & libc::SA_ONSTACK == 0 || own.is_empty() || own.contains(&on_program_stack) {
            on_program_stack - RED_ZONE
        } else {
            own.end
        };
        Some(Self { top, after, part, interrupts_runtime })
    }

    /// Where the thread has left the program's stack, if the handler interrupts the runtime.
    pub(crate) fn left(&self) -> Option<usize> {
        self.interrupts_runtime.then_some(self.after.left)
    }

    /// What is in use while the handler runs, whose frame is at this address.
    pub(crate) fn meanwhile(&self, frame: usize) -> InUse {
        let above_runtime = if self.interrupts_runtime { frame } else { self.after.above_runtime };
        InUse { part: self.part, left: 0, above_runtime }
    }
}

/// True if a stack pointer is of a function that the handler with this frame has called.
fn is_below(pointer: usize, frame: usize) -> bool {
    let own = program_stack();
    pointer < frame && own.contains(&pointer) == own.contains(&frame)
}

/// The stack for handlers that the program has set, empty if there is none.
pub(crate) fn program_stack() -> Range<usize> {
    let (start, end) = PROGRAM.get();
    start..end
}

/// Makes the private stack of the calling thread.
pub(crate) fn begin_thread() {
    let left = uninterrupted(|| lock(&ENDED).take());
    let memory = left.unwrap_or_else(|| vec![0u8; PRIVATE_STACK].leak().as_ptr() as usize);
    WHOLE.set((memory.next_multiple_of(64), (memory + PRIVATE_STACK) & !63));
    MEMORY.set(memory);
    use_part(WHOLE.get());
}

/// The calling thread is about to end, and handles no signals any more but those of faults: the C library frees what it has kept for the
/// thread, perhaps by a function of the program, which accesses shared memory. Its private stack is for others when it has ended.
pub(crate) fn end_thread() {
    // Not those by which the C library changes users.
    block_only(ALL_BUT_NEEDED);
    HAS_ENDED.set(true);
    let memory = MEMORY.replace(0);
    if memory != 0 {
        uninterrupted(|| lock(&ENDED).add(memory, gondwana_sys::thread()));
    }
}

/// After a fault: a thread that was about to end is no thread of the node any more.
pub(crate) fn after_fault() {
    if HAS_ENDED.get()
        && let Some(node) = Node::current()
    {
        Thread::detach(node);
    }
}

/// # Safety
/// As the C library's `sigaltstack`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sigaltstack(new: *const stack_t, old: *mut stack_t) -> c_int {
    if Node::current().is_none() {
        return real_sigaltstack(new, old);
    }
    let before = program_stack();
    let in_use = before.contains(&(&raw const before as usize));
    // SAFETY: the caller passes null or a description.
    if let Some(stack) = unsafe { new.as_ref() } {
        match wanted(stack) {
            Ok(_) if in_use => return fail(libc::EPERM),
            Ok(wanted) => PROGRAM.set((wanted.start, wanted.end)),
            Err(error) => return fail(error),
        }
    }
    if !old.is_null() {
        // SAFETY: the caller passes null or a place for a description.
        unsafe { *old = described(&before, in_use) };
    }
    0
}

/// The program's stack for handlers as the kernel would describe it.
pub(crate) fn described(stack: &Range<usize>, in_use: bool) -> stack_t {
    let ss_flags = match stack.is_empty() {
        true => libc::SS_DISABLE,
        false if in_use => libc::SS_ONSTACK,
        false => 0,
    };
    stack_t { ss_sp: stack.start as *mut c_void, ss_flags, ss_size: stack.len() }
}

fn wanted(stack: &stack_t) -> Result<Range<usize>, c_int> {
    let start = stack.ss_sp as usize;
    match stack.ss_flags {
        libc::SS_DISABLE => Ok(0..0),
        0 if stack.ss_size < LEAST_PROGRAM_STACK => Err(libc::ENOMEM),
        0 => Ok(start..start + stack.ss_size),
        _ => Err(libc::EINVAL),
    }
}

fn fail(error: c_int) -> c_int {
    crate::errno::set(error);
    -1
}
