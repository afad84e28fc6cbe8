//! Starts handlers of the program on the program's stacks, with what the kernel would have put there.
//!
//! The kernel starts a handler of this library on the thread's private stack. That one writes the frame of the program's
//! handler, a copy of the kernel's, to the stack where it belongs, and changes the kernel's own such that its return starts
//! the program's handler. When that returns, the copy goes back to the private stack, from where the kernel can read it,
//! and the thread goes on where it was interrupted, with what the handler has changed.
//!
//! A handler that interrupts the runtime on the private stack is told that the thread is where it left the program's stack.
//!
//! So a collector of garbage that stops threads by signals (Boehm's) finds their registers and the ends of their stacks, a
//! handler can walk the stack through its own frame, and contexts can be read by threads of other nodes.

use crate::handler_stack::{self, InUse, Place};
use crate::signals;
use crate::stack::on_stack;
use gondwana_node::{Interrupted, Thread};
use gondwana_page::to_usize;
use libc::{c_int, c_void, mcontext_t, siginfo_t, stack_t};
use std::arch::{asm, naked_asm};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::{copy_nonoverlapping, null_mut};

/// The most bytes of the state of floating-point and vector registers.
const MOST_STATE: usize = 16 * 1024;

/// The bytes of that state without extensions, and where in them the kernel says how many there are with them.
const LEAST_STATE: usize = 512;
const EXTENSIONS: usize = 464;

/// How the kernel marks a state with extensions.
const EXTENDED: u32 = 0x4650_5853;

/// Flags that are off when a handler begins: trap, direction, resume.
const CLEARED_FLAGS: i64 = 1 << 8 | 1 << 10 | 1 << 16;

thread_local! {
    /// The argument for the kernel, which must not be on a shared stack.
    static MASK: Cell<u64> = const { Cell::new(0) };
}

/// What the kernel keeps of the interrupted code: the start of the C library's `ucontext_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Context {
    flags: u64,
    link: usize,
    stack: stack_t,
    machine: mcontext_t,
    mask: u64,
}

impl Context {
    fn register(&mut self, number: c_int) -> &mut i64 {
        &mut self.machine.gregs[usize::try_from(number).expect("a register's number")]
    }

    /// Has the kernel register a stack for handlers before the code begins that this is the context of, as it does for no thread
    /// that is on one. Other signals are blocked meanwhile.
    fn register_first(&mut self, stack: *const stack_t) {
        MASK.set(self.mask);
        self.mask = signals::ALL_BUT_NEEDED;
        for (kept, register) in [
            (libc::REG_R12, libc::REG_RIP),
            (libc::REG_R13, libc::REG_RDI),
            (libc::REG_R14, libc::REG_RSI),
            (libc::REG_R15, libc::REG_RDX),
        ] {
            *self.register(kept) = *self.register(register);
        }
        let address = |address: usize| (address as u64).cast_signed();
        *self.register(libc::REG_RIP) = address(register_stack as *const () as usize);
        *self.register(libc::REG_RDI) = address(stack as usize);
        *self.register(libc::REG_RBX) = address(MASK.with(Cell::as_ptr) as usize);
    }
}

/// Registers a stack for handlers and sets the mask of signals without a use of the present stack, whose pages may be elsewhere:
/// then the handler for the fault would have to be on that stack already.
#[unsafe(naked)]
unsafe extern "C" fn register_stack() {
    naked_asm!(
        "mov eax, {sigaltstack}",
        "xor esi, esi",
        "syscall",
        "mov eax, {sigprocmask}",
        "mov edi, {set}",
        "mov rsi, rbx",
        "xor edx, edx",
        "mov r10d, 8",
        "syscall",
        "mov rdi, r13",
        "mov rsi, r14",
        "mov rdx, r15",
        "xor eax, eax",
        "jmp r12",
        sigaltstack = const libc::SYS_sigaltstack,
        sigprocmask = const libc::SYS_rt_sigprocmask,
        set = const libc::SIG_SETMASK,
    )
}

/// What a handler of the program returns to.
#[repr(C, align(16))]
struct Frame {
    context: Context,
    info: siginfo_t,
    after: InUse,
    interrupted: Option<Interrupted>,
    hidden: Option<Hidden>,
}

/// Where a handler has interrupted the runtime. It is told of another place: a collector of garbage looks for references from the stack
/// pointer on, in the thread's stack.
#[derive(Clone, Copy)]
struct Hidden {
    /// What the handler is told.
    told: [i64; 2],
    /// What is true.
    real: [i64; 2],
}

impl Hidden {
    const REGISTERS: [c_int; 2] = [libc::REG_RSP, libc::REG_RIP];

    /// Has a context tell that the thread is at the switch of stacks, where the unwinder stops.
    fn hide(context: &mut Context, left: usize) -> Self {
        let told = [left, on_stack as *const () as usize + 1].map(|word| (word as u64).cast_signed());
        let mut real = [0; 2];
        for ((register, real), told) in Self::REGISTERS.into_iter().zip(&mut real).zip(told) {
            *real = std::mem::replace(context.register(register), told);
        }
        Self { told, real }
    }

    /// The thread goes on where it was, unless the handler has set another place.
    fn reveal(self, context: &mut Context) {
        if Self::REGISTERS.map(|register| *context.register(register)) == self.told {
            for (register, real) in Self::REGISTERS.into_iter().zip(self.real) {
                *context.register(register) = real;
            }
        }
    }
}

/// A handler of the program that is to start.
pub(crate) struct Handler {
    pub function: usize,
    /// `SA_...` flags.
    pub flags: c_int,
    /// The signals that are blocked meanwhile.
    pub mask: u64,
    /// What the thread was, if that is to be restored.
    pub interrupted: Option<Interrupted>,
}

impl Handler {
    /// Has the handler start when the calling handler, which the kernel has started, returns. False if there is no place for
    /// it but where the caller runs.
    ///
    /// # Safety
    /// With what the kernel has passed to the caller. Signals of faults are not blocked, all others are.
    pub(crate) unsafe fn start(&self, signal: c_int, info: *const siginfo_t, context: *mut c_void) -> bool {
        // SAFETY: the caller's promise.
        let (context, info) = unsafe { (&mut *context.cast::<Context>(), *info) };
        let pointer = to_usize(context.register(libc::REG_RSP).cast_unsigned());
        let Some(place) = Place::find(self.flags, pointer, size_of::<Resumed>()) else { return false };
        let state = context.machine.fpregs.cast::<u8>();
        // SAFETY: the kernel has put it there.
        let bytes = unsafe { bytes_of_state(state) };
        if bytes > MOST_STATE {
            return false;
        }
        let copied = (place.top - bytes) & !63;
        let frame = ((copied - size_of::<Frame>()) & !15) as *mut Frame;
        let own = handler_stack::program_stack();
        // SAFETY: what is below the top is free. Its pages may be elsewhere until they are written to.
        unsafe {
            copy_nonoverlapping(state, copied as *mut u8, bytes);
            let (after, interrupted) = (place.after, self.interrupted);
            frame.write(Frame { context: *context, info, after, interrupted, hidden: None });
            (*frame).hidden = place.left().map(|left| Hidden::hide(&mut (*frame).context, left));
            (*frame).context.machine.fpregs = copied as *mut _;
            (*frame).context.stack = handler_stack::described(&own, own.contains(&place.top));
            // The unwinder looks for the function of what is before an address that calls return to.
            frame.cast::<usize>().sub(1).write(resume as *const () as usize + 1);
        }
        // As at the start of a program.
        context.machine.fpregs = null_mut();
        *context.register(libc::REG_EFL) &= !CLEARED_FLAGS;
        // SAFETY: addresses within the frame.
        let passed = unsafe { (&raw const (*frame).info as usize, &raw const (*frame).context as usize) };
        let mut set = |register, value: usize| *context.register(register) = (value as u64).cast_signed();
        set(libc::REG_RSP, frame as usize - size_of::<usize>());
        set(libc::REG_RIP, self.function);
        set(libc::REG_RDI, usize::try_from(signal).expect("a signal's number"));
        set(libc::REG_RSI, passed.0);
        set(libc::REG_RDX, passed.1);
        set(libc::REG_RAX, 0);
        context.mask = self.mask;
        let meanwhile = place.meanwhile(frame as usize);
        if meanwhile.note() {
            context.register_first(meanwhile.argument());
        }
        true
    }
}

/// The bytes of a state of floating-point and vector registers.
unsafe fn bytes_of_state(state: *const u8) -> usize {
    // SAFETY: the caller passes a state.
    let [mark, bytes] = unsafe { state.add(EXTENSIONS).cast::<[u32; 2]>().read() };
    if mark == EXTENDED { bytes as usize } else { LEAST_STATE }
}

/// Describes where the interrupted code has its registers, for a stack pointer that is at a [`Context`]: `number` is what
/// DWARF calls the register, `low` and `high` are the LEB128 of its offset.
macro_rules! saved {
    ($number:literal at $low:literal $high:literal) => {
        concat!(".cfi_escape 0x10,", $number, ",3,0x77,", $low, ",", $high)
    };
}

/// Where a handler of the program returns to, the address behind the first instruction. The stack pointer is at the [`Frame`].
#[unsafe(naked)]
unsafe extern "C" fn resume() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_signal_frame",
        // The canonical frame address is the saved stack pointer.
        ".cfi_escape 0x0f,4,0x77,0xa0,0x01,6",
        saved!(8 at 0xa8 0x00),
        saved!(9 at 0xb0 0x00),
        saved!(10 at 0xb8 0x00),
        saved!(11 at 0xc0 0x00),
        saved!(12 at 0xc8 0x00),
        saved!(13 at 0xd0 0x00),
        saved!(14 at 0xd8 0x00),
        saved!(15 at 0xe0 0x00),
        saved!(5 at 0xe8 0x00),
        saved!(4 at 0xf0 0x00),
        saved!(6 at 0xf8 0x00),
        saved!(3 at 0x80 0x01),
        saved!(1 at 0x88 0x01),
        saved!(0 at 0x90 0x01),
        saved!(2 at 0x98 0x01),
        saved!(16 at 0xa8 0x01),
        "nop",
        "mov rdi, rsp",
        "call {end}",
        "ud2",
        ".cfi_endproc",
        end = sym end,
    )
}

/// Ends a handler of the program and goes on where it interrupted the thread.
unsafe extern "C" fn end(frame: *mut Frame) -> ! {
    signals::block_all_but_needed();
    // SAFETY: the handler has returned to its frame.
    if let Some(interrupted) = unsafe { (*frame).interrupted } {
        let errno = crate::errno::get();
        Thread::end_handler(interrupted);
        crate::errno::set(errno);
    }
    // SAFETY: as above.
    let (top, resumed) = unsafe { (*frame).after }.way_back(size_of::<Resumed>());
    let mut way = (frame.cast_const(), resumed as *mut Resumed);
    // SAFETY: the thread is not on its private stack, where that part is free.
    unsafe { on_stack(go_on, (&raw mut way).cast(), top, &mut 0) };
    unreachable!("the kernel goes on elsewhere")
}

/// What the kernel reads when a thread goes on.
#[repr(C, align(64))]
struct Resumed {
    state: [MaybeUninit<u8>; MOST_STATE],
    context: Context,
}

/// Has the kernel go on as a frame says, on the private stack.
unsafe extern "C" fn go_on(way: *mut c_void) -> *mut c_void {
    // SAFETY: `end` passes the frame of a handler and where what the kernel reads is to be.
    unsafe {
        let (frame, resumed) = *way.cast::<(*const Frame, *mut Resumed)>();
        let (mut context, after) = ((*frame).context, (*frame).after);
        if let Some(hidden) = (*frame).hidden {
            hidden.reveal(&mut context);
        }
        let state = context.machine.fpregs.cast::<MaybeUninit<u8>>();
        let bytes = bytes_of_state(state.cast()).min(MOST_STATE);
        copy_nonoverlapping(state, (&raw mut (*resumed).state).cast(), bytes);
        context.machine.fpregs = (&raw mut (*resumed).state).cast();
        context.stack = after.argument().read();
        after.note();
        (&raw mut (*resumed).context).write(context);
        asm!(
            "mov rsp, {context}",
            "syscall",
            context = in(reg) &raw const (*resumed).context,
            in("rax") libc::SYS_rt_sigreturn,
            options(noreturn),
        )
    }
}
