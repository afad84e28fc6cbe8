//! Contexts of `ucontext.h`, as the C library lays them out. Its functions have the kernel read and write the signal masks in contexts, which
//! another node may have taken the page of; here those go through memory of the thread.
//!
//! A context that one thread has saved can go on in a thread of another node, so that no function here is on its stack.

use crate::signals::ALL_BUT_NEEDED;
use libc::{c_int, sigset_t, stack_t, ucontext_t};
use std::arch::naked_asm;
use std::cell::Cell;
use std::mem::offset_of;

/// Where a register is in a context.
const fn register(number: c_int) -> usize {
    offset_of!(ucontext_t, uc_mcontext.gregs) + number.unsigned_abs() as usize * size_of::<i64>()
}

/// Where the address of the state of the floating-point unit is, and that state itself, of which contexts have the environment, and the control
/// and status word of vector instructions.
const STATE: usize = offset_of!(ucontext_t, uc_mcontext.fpregs);
const OWN_STATE: usize = MASK + size_of::<sigset_t>();
const VECTORS: usize = 24;

/// Where the mask is.
const MASK: usize = offset_of!(ucontext_t, uc_sigmask);

/// The registers that pass arguments.
const ARGUMENTS: [c_int; 6] =
    [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_RCX, libc::REG_R8, libc::REG_R9];

thread_local! {
    /// The masks that the kernel reads and writes: it must not touch shared memory.
    static MASKS: Cell<[u64; 2]> = const { Cell::new([0; 2]) };
}

/// Sets the calling thread's mask, but for the signals that this library needs, and gives what it was. Nothing is set if it is null.
unsafe extern "C" fn exchange(mask: *const u64) -> u64 {
    // SAFETY: the caller passes null or a mask.
    MASKS.set([unsafe { mask.as_ref() }.map_or(0, |mask| mask & ALL_BUT_NEEDED), 0]);
    let [new, old] = MASKS.with(|masks| {
        let first = masks.as_ptr().cast::<u64>();
        [if mask.is_null() { std::ptr::null_mut() } else { first }, first.wrapping_add(1)]
    });
    // SAFETY: both masks are the thread's own.
    unsafe {
        gondwana_sys::syscall!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, new, old, size_of::<u64>())
    };
    MASKS.get()[1]
}

/// Defines functions in assembly with the places of a context.
macro_rules! in_assembly {
    ($($(#[$meta:meta])* $visibility:vis fn $name:ident { $($line:expr),* $(,)? })*) => {$(
        $(#[$meta])*
        #[unsafe(naked)]
        $visibility unsafe extern "C" fn $name() {
            naked_asm!(
                $($line,)*
                // In a comment: a function need not use all of them.
                "/* {rax} {rip} {rsp} {rbx} {rbp} {r12} {r13} {r14} {r15} {rdi} {rsi} {rdx} {rcx} {r8} {r9} */",
                "/* {state} {own} {vectors} {mask} {exchange} {save} {go_on} */",
                rax = const register(libc::REG_RAX),
                rip = const register(libc::REG_RIP),
                rsp = const register(libc::REG_RSP),
                rbx = const register(libc::REG_RBX),
                rbp = const register(libc::REG_RBP),
                r12 = const register(libc::REG_R12),
                r13 = const register(libc::REG_R13),
                r14 = const register(libc::REG_R14),
                r15 = const register(libc::REG_R15),
                rdi = const register(libc::REG_RDI),
                rsi = const register(libc::REG_RSI),
                rdx = const register(libc::REG_RDX),
                rcx = const register(libc::REG_RCX),
                r8 = const register(libc::REG_R8),
                r9 = const register(libc::REG_R9),
                state = const STATE,
                own = const OWN_STATE,
                vectors = const VECTORS,
                mask = const MASK,
                exchange = sym exchange,
                save = sym save,
                go_on = sym go_on,
            )
        }
    )*};
}

in_assembly! {
    /// Saves the caller's caller in the context at rdi, but for the mask. Changes rax and rcx.
    fn save {
        "mov [rdi + {rbx}], rbx",
        "mov [rdi + {rbp}], rbp",
        "mov [rdi + {r12}], r12",
        "mov [rdi + {r13}], r13",
        "mov [rdi + {r14}], r14",
        "mov [rdi + {r15}], r15",
        "mov [rdi + {rdi}], rdi",
        "mov [rdi + {rsi}], rsi",
        "mov [rdi + {rdx}], rdx",
        "mov [rdi + {r8}], r8",
        "mov [rdi + {r9}], r9",
        "mov rax, [rsp + 8]",
        "mov [rdi + {rip}], rax",
        "lea rax, [rsp + 16]",
        "mov [rdi + {rsp}], rax",
        "lea rcx, [rdi + {own}]",
        "mov [rdi + {state}], rcx",
        "fnstenv [rcx]",
        "fldenv [rcx]",
        "stmxcsr [rcx + {vectors}]",
        "ret",
    }

    /// Goes on with the context at rdi, whose mask is set.
    fn go_on {
        "mov rcx, [rdi + {state}]",
        "fldenv [rcx]",
        "ldmxcsr [rcx + {vectors}]",
        "mov rsp, [rdi + {rsp}]",
        "mov rbx, [rdi + {rbx}]",
        "mov rbp, [rdi + {rbp}]",
        "mov r12, [rdi + {r12}]",
        "mov r13, [rdi + {r13}]",
        "mov r14, [rdi + {r14}]",
        "mov r15, [rdi + {r15}]",
        "mov r11, [rdi + {rip}]",
        "mov rsi, [rdi + {rsi}]",
        "mov rdx, [rdi + {rdx}]",
        "mov rcx, [rdi + {rcx}]",
        "mov r8, [rdi + {r8}]",
        "mov r9, [rdi + {r9}]",
        "mov rdi, [rdi + {rdi}]",
        "xor eax, eax",
        "jmp r11",
    }

    /// # Safety
    /// As the C library's `getcontext`.
    #[unsafe(no_mangle)]
    pub(super) fn getcontext {
        "call {save}",
        "push rdi",
        "xor edi, edi",
        "call {exchange}",
        "pop rdi",
        "mov [rdi + {mask}], rax",
        "xor eax, eax",
        "ret",
    }

    /// # Safety
    /// As the C library's `setcontext`.
    #[unsafe(no_mangle)]
    pub(super) fn setcontext {
        "push rdi",
        "add rdi, {mask}",
        "call {exchange}",
        "pop rdi",
        "jmp {go_on}",
    }

    /// # Safety
    /// As the C library's `swapcontext`.
    #[unsafe(no_mangle)]
    pub(super) fn swapcontext {
        "call {save}",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "lea rdi, [rsi + {mask}]",
        "call {exchange}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "mov [rdi + {mask}], rax",
        "mov rdi, rsi",
        "jmp {go_on}",
    }
}

/// Jumps without the check that hardened programs have: the C library would ask the kernel for the stack of handlers, which is not the program's.
///
/// # Safety
/// As the C library's `siglongjmp`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn __longjmp_chk(place: *mut libc::c_void, value: c_int) -> ! {
    // SAFETY: forwards the caller's arguments; no frame here has anything to give up.
    unsafe { crate::real!(siglongjmp: fn(*mut libc::c_void, c_int) -> !)(place, value) }
}

/// What the function of a context returns to, behind its first instruction: another context follows whose address is where rbx points to, or the
/// program ends.
#[unsafe(naked)]
unsafe extern "C" fn returned() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_undefined rip",
        "nop",
        "mov rdi, [rbx]",
        "mov rsp, rbx",
        "and rsp, -16",
        "test rdi, rdi",
        "je 2f",
        "call {setcontext}",
        "2:",
        "call {exit}",
        "ud2",
        ".cfi_endproc",
        setcontext = sym setcontext,
        exit = sym libc::exit,
    )
}

/// Prepares a context for a function with `count` arguments, of which the first three are at `registers`, the others at `stack`.
unsafe extern "C" fn prepare(
    context: *mut ucontext_t,
    function: usize,
    count: c_int,
    registers: *const i64,
    stack: *const i64,
) {
    const WORD: usize = size_of::<i64>();
    let count = usize::try_from(count).unwrap_or(0);
    let more = count.saturating_sub(ARGUMENTS.len());
    // SAFETY: the caller passes a context with a stack, and so many arguments.
    unsafe {
        let stack_t { ss_sp, ss_size, .. } = (*context).uc_stack;
        let end = ss_sp as usize + ss_size - (more + 1) * WORD;
        // As where a function begins that was called.
        let top = (end & !15) - WORD;
        let link = top + (more + 1) * WORD;
        let (top, link) = (top as *mut usize, link as *mut usize);
        top.write(returned as *const () as usize + 1);
        link.write((*context).uc_link as usize);
        let set = |number: c_int, value: i64| context.byte_add(register(number)).cast::<i64>().write(value);
        let address = |place: *mut usize| (place as u64).cast_signed();
        set(libc::REG_RIP, (function as u64).cast_signed());
        set(libc::REG_RBX, address(link));
        set(libc::REG_RSP, address(top));
        for index in 0..count {
            let value = if index < 3 { *registers.add(index) } else { *stack.add(index - 3) };
            match ARGUMENTS.get(index) {
                Some(&number) => set(number, value),
                None => top.cast::<i64>().add(1 + index - ARGUMENTS.len()).write(value),
            }
        }
    }
}

crate::variadic_words! {
    /// # Safety
    /// As the C library's `makecontext`.
    makecontext by prepare;
}
