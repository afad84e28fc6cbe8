//! The stacks of signal handlers.
//!
//! Each thread has an alternate signal stack that is private to the node: there the kernel can always write its
//! frame, and there the runtime works. The program's own alternate stack may be in shared memory, so a handler for it
//! is called there from a frame on the private stack. That frame must survive until the handler returns, so meanwhile
//! `sigaltstack` is set to the unused part of the private stack. The kernel accepts that only from a thread that is
//! not on that stack, and the first push to the program's stack may already fault: in between, the thread runs on a
//! third stack, the *bridge*.

use crate::private_stack::{PART, enter};
use crate::stack::on_stack;
use gondwana_node::Node;
use gondwana_page::to_usize;
use libc::{c_int, c_void, sigset_t, stack_t, ucontext_t};
use std::cell::{Cell, UnsafeCell};
use std::mem::zeroed;
use std::ops::Range;
use std::ptr::null_mut;

/// Bytes of a thread's private stack.
const PRIVATE_STACK: usize = 256 * 1024;

/// Bytes of one bridge.
const BRIDGE: usize = 2048;

/// The nesting limit of handlers on the program's stack.
const BRIDGES: usize = 8;

/// Bytes below a frame that its own function may still use when it calls a handler.
const FRAME_RESERVE: usize = 4096;

/// The least part of the private stack on which a further handler may be started.
const LEAST_PART: usize = 64 * 1024;

/// Bytes below the stack pointer that belong to the interrupted function.
const RED_ZONE: usize = 128;

/// The smallest stack for handlers that the C library accepts.
const LEAST_PROGRAM_STACK: usize = 2048;

thread_local! {
    /// The start of the memory of the bridges and the private stack; 0 if there is none.
    static MEMORY: Cell<usize> = const { Cell::new(0) };
    /// The whole private stack of the calling thread: its ends, equal if it has none.
    static WHOLE: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    /// The number of bridges in use. They are below the private stack.
    static CROSSED: Cell<usize> = const { Cell::new(0) };
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
    TOLD.with(|told| {
        let ss_flags = if part.0 == part.1 { libc::SS_DISABLE } else { 0 };
        // SAFETY: only this thread uses the variable, and a handler that interrupts it here leaves it as it was.
        unsafe { *told.get() = stack_t { ss_sp: part.0 as *mut c_void, ss_flags, ss_size: part.1 - part.0 } };
        real_sigaltstack(told.get(), null_mut());
    });
}

/// Calls a handler of the program on the program's alternate stack, if it has one and the handler's flags request it.
/// The handler that the kernel started calls this on the private stack and passes its `context`.
pub(crate) fn on_wanted_stack(flags: c_int, context: *const c_void, call: &mut dyn FnMut()) {
    // SAFETY: the kernel passed a valid context.
    let interrupted = unsafe { (*context.cast::<ucontext_t>()).uc_mcontext.gregs[libc::REG_RSP as usize] };
    let interrupted = to_usize(interrupted.cast_unsigned());
    let (start, end) = PROGRAM.get();
    if flags & libc::SA_ONSTACK == 0 || start == end {
        return call();
    }
    let own = start..end;
    let (whole, before) = (WHOLE.get(), PART.get());
    let low = (&raw const before as usize - FRAME_RESERVE) & !15;
    let nested = own.contains(&interrupted) || (whole.0..whole.1).contains(&interrupted);
    let part = part_to_use(whole, before, low, nested);
    let crossed = if nested { CROSSED.get() } else { 0 };
    if part.1.saturating_sub(part.0) < LEAST_PART || crossed == BRIDGES {
        return call();
    }
    let top = if own.contains(&interrupted) { interrupted - RED_ZONE } else { end } & !15;
    let mut on_bridge = || {
        use_part(part);
        CROSSED.set(crossed + 1);
        let mut call: &mut dyn FnMut() = call;
        // SAFETY: the program's stack is used above `top` only.
        unsafe { on_stack(enter, (&raw mut call).cast(), top) };
        CROSSED.set(crossed);
        use_part(before);
    };
    let mut on_bridge: &mut dyn FnMut() = &mut on_bridge;
    // SAFETY: the bridge is not in use: those that are have lower numbers.
    unsafe { on_stack(enter, (&raw mut on_bridge).cast(), whole.0 - crossed * BRIDGE) };
}

/// The free part of the private stack while a handler runs on the program's stack, called from a frame that ends at
/// `low` in the part `before`.
///
/// A handler may leave by `siglongjmp` and never release its part. So if this frame is not `nested` in others, it is
/// the only live one, and the larger of the parts below and above it is free.
fn part_to_use(whole: (usize, usize), before: (usize, usize), low: usize, nested: bool) -> (usize, usize) {
    if nested {
        return (before.0, low);
    }
    let (below, above) = ((whole.0, low), (before.1, whole.1));
    if below.1 - below.0 >= above.1 - above.0 { below } else { above }
}

/// Makes the private stack of the calling thread.
pub(crate) fn begin_thread() {
    let memory = vec![0u8; BRIDGES * BRIDGE + PRIVATE_STACK].leak().as_ptr() as usize;
    let start = memory.next_multiple_of(16) + BRIDGES * BRIDGE;
    WHOLE.set((start, (memory + BRIDGES * BRIDGE + PRIVATE_STACK) & !15));
    MEMORY.set(memory);
    use_part(WHOLE.get());
}

/// Frees the private stack of the calling thread, which must not access shared memory or handle signals any more.
pub(crate) fn end_thread() {
    // SAFETY: the sets are private variables; the stack was made by `begin_thread`.
    unsafe {
        let mut all: sigset_t = zeroed();
        libc::sigfillset(&mut all);
        let real = crate::real!(pthread_sigmask: fn(c_int, *const sigset_t, *mut sigset_t) -> c_int);
        real(libc::SIG_SETMASK, &all, null_mut());
        WHOLE.set((0, 0));
        use_part((0, 0));
        let memory = MEMORY.replace(0);
        if memory != 0 {
            drop(Vec::from_raw_parts(memory as *mut u8, 0, BRIDGES * BRIDGE + PRIVATE_STACK));
        }
    }
}

/// # Safety
/// As the C library's `sigaltstack`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sigaltstack(new: *const stack_t, old: *mut stack_t) -> c_int {
    if Node::current().is_none() {
        return real_sigaltstack(new, old);
    }
    let before = PROGRAM.get();
    let in_use = (before.0..before.1).contains(&(&raw const before as usize));
    // SAFETY: the caller passes null or a description.
    if let Some(stack) = unsafe { new.as_ref() } {
        match wanted(stack) {
            Ok(_) if in_use => return fail(libc::EPERM),
            Ok(wanted) => PROGRAM.set((wanted.start, wanted.end)),
            Err(error) => return fail(error),
        }
    }
    if !old.is_null() {
        let ss_flags = match before {
            (start, end) if start == end => libc::SS_DISABLE,
            _ if in_use => libc::SS_ONSTACK,
            _ => 0,
        };
        let ss_size = before.1 - before.0;
        // SAFETY: the caller passes null or a place for a description.
        unsafe { *old = stack_t { ss_sp: before.0 as *mut c_void, ss_flags, ss_size } };
    }
    0
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
