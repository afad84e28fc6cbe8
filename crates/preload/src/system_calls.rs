//! System calls that the program and its libraries make by the instruction itself (`syscall`), without the C library.
//!
//! A jump replaces each, with instructions before it that make room; where there are none, a trap, whose handler has the thread go on at
//! the same place. There `syscall` is called as the C library's function of this name, which does what a program of several nodes needs. Calls that
//! change what the thread executes are made as they are, by a copy of the instruction.

use crate::map::FileCopy;
use crate::numbers::many;
use crate::ranges::in_pages;
use crate::traps::{self, TRAP, code, jump};
use crate::{errno, io, report};
use gondwana_atomics::{SYSTEM_CALL, SystemCall, may_make_system_calls, system_calls};
use gondwana_elf::loaded::{self, LoadedObject};
use gondwana_page::to_usize;
use libc::{c_long, ucontext_t};
use std::arch::naked_asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The state of vector and other registers that is kept over a call, by its numbers: x87, SSE, AVX, and the three of AVX-512.
const STATE: u32 = 0b1110_0111;

/// The most bytes of this state, with its header.
const STATE_BYTES: usize = 2752;

/// Where the header begins.
const HEADER: usize = 512;

/// Bytes behind the stack pointer that functions use.
const RED_ZONE: usize = 128;

/// The instructions of one object.
struct Replaced {
    /// Their addresses, ascending.
    places: Vec<usize>,
    /// The code for each.
    code: usize,
    next: *const Replaced,
}

/// Bytes of the code for one instruction: a [copy](write_copy) of it, and a [way](write_way) to [`make`].
const CODE: usize = 80;

/// Where the way begins.
const WAY: usize = 16;

/// `jmp [rip]`.
const JUMP_FAR: [u8; 6] = [0xff, 0x25, 0, 0, 0, 0];

/// `mov rcx, ...` and `mov r11, ...`, with eight bytes each.
const SET_RCX: [u8; 2] = [0x48, 0xb9];
const SET_R11: [u8; 2] = [0x49, 0xbb];

/// Those of all objects. A handler reads it at any time; nothing is ever taken out.
static REPLACED: AtomicPtr<Replaced> = AtomicPtr::new(null_mut());

/// Replaces the instructions of the program and the libraries that are loaded now. No other thread may run yet.
pub(crate) fn begin() {
    // SAFETY: what is there from the start is never unloaded.
    let objects = unsafe { loaded::select(|object| object.is_of_program()) };
    for (index, object) in objects.iter().enumerate() {
        let file = if index == 0 { Path::new("/proc/self/exe") } else { object.path() };
        // SAFETY: nothing of the program runs yet.
        unsafe { replace_in(object, file, &find_in(object, file)) };
    }
}

/// The instructions of an object that was loaded from a file; none if the file cannot be read.
pub(crate) fn find_in(object: &LoadedObject<'_>, file: &Path) -> Vec<SystemCall> {
    if !may_call(object) {
        return vec![];
    }
    let image = File::open(file).ok().and_then(|file| {
        let length = file.metadata().ok()?.len();
        FileCopy::of(&file, to_usize(length))
    });
    let calls = image.and_then(|image| system_calls(&image).ok()).unwrap_or_default();
    let text = object.text();
    // The file may be another one by now.
    let is_there = |call: &SystemCall| {
        let place = object.base().wrapping_add(to_usize(call.address));
        text.contains(&place) && text.contains(&(place + 1)) && code(place..place + 2) == SYSTEM_CALL
    };
    calls.into_iter().filter(is_there).collect()
}

/// Replaces instructions of an object that was loaded from a file.
///
/// # Safety
/// The object has them. It is never unloaded, and no thread executes its code yet.
pub(crate) unsafe fn replace_in(object: &LoadedObject<'_>, file: &Path, calls: &[SystemCall]) {
    // SAFETY: the caller's promise.
    if !calls.is_empty() && state_is_known() && unsafe { replace(object, calls) }.is_none() {
        report::line(&format!(
            "{}: the system does not let its code be changed: system calls that it makes without the C library go to the kernel of the thread's node",
            file.display()
        ));
    }
}

/// True if the code of an object seems to have such instructions.
fn may_call(object: &LoadedObject<'_>) -> bool {
    let wanted = libc::PF_R | libc::PF_X;
    let mut segments = object.loads().filter(|header| header.p_flags & wanted == wanted);
    segments.any(|header| {
        let range = object.range(header);
        let Range { start, end } = in_pages(&range);
        // Otherwise each sixteen pages are a fault. An older kernel refuses it.
        // SAFETY: makes pages present.
        unsafe { gondwana_sys::syscall!(libc::SYS_madvise, start, end - start, libc::MADV_POPULATE_READ) };
        may_make_system_calls(code(range))
    })
}

/// # Safety
/// As for [`replace_in`].
unsafe fn replace(object: &LoadedObject<'_>, calls: &[SystemCall]) -> Option<()> {
    let bytes = calls.len() * CODE;
    let near = traps::room_near(&object.text(), bytes);
    let room = near.or_else(|| traps::map(0, bytes))?;
    let place = |call: &SystemCall| object.base().wrapping_add(to_usize(call.address));
    for (call, at) in calls.iter().zip((room..).step_by(CODE)) {
        let (place, before) = (place(call), to_usize(call.before));
        // SAFETY: the room is this long.
        let to = unsafe { std::slice::from_raw_parts_mut(at as *mut u8, CODE) };
        write_copy(to, place);
        write_way(&mut to[WAY..], code(place - before..place), at, place);
    }
    traps::protect(room..room + bytes, libc::PROT_READ | libc::PROT_EXEC).then_some(())?;
    // One list is added at a time: the program starts once, and opens one library at a time.
    let next = REPLACED.load(Ordering::Relaxed);
    let places: Vec<usize> = calls.iter().map(place).collect();
    let replaced = Box::leak(Box::new(Replaced { places, code: room, next }));
    REPLACED.store(replaced, Ordering::Release);
    let mut all = calls.iter().zip((room..).step_by(CODE));
    let is_done = all.all(|(call, at)| {
        let first = place(call) - to_usize(call.before);
        let jump = if call.before == 0 { None } else { jump(first, at + WAY) };
        let (first, with) = jump.map_or((place(call), vec![TRAP]), |jump| (first, jump));
        // SAFETY: the caller's promise.
        unsafe { traps::replace(first, &with) }
    });
    is_done.then_some(())
}

/// Writes the instruction, and a jump to what comes behind it.
fn write_copy(to: &mut [u8], place: usize) {
    let next = place + SYSTEM_CALL.len();
    put(to, &[&SYSTEM_CALL, &JUMP_FAR, &next.to_ne_bytes()]);
}

/// Writes the instructions before it, and a jump to [`make`] with what that expects in registers that the instruction changes in any case.
fn write_way(to: &mut [u8], before: &[u8], copy: usize, place: usize) {
    let (next, make) = (place + SYSTEM_CALL.len(), make as *const () as usize);
    put(
        to,
        &[
            before,
            &SET_R11,
            &copy.to_ne_bytes(),
            &SET_RCX,
            &next.to_ne_bytes(),
            &JUMP_FAR,
            &make.to_ne_bytes(),
        ],
    );
}

fn put(to: &mut [u8], parts: &[&[u8]]) {
    let bytes = parts.concat();
    to[..bytes.len()].copy_from_slice(&bytes);
}

/// The copy of the instruction at an address.
fn copy_of(place: usize) -> Option<usize> {
    // SAFETY: nothing is ever taken out.
    let mut next = unsafe { REPLACED.load(Ordering::Acquire).as_ref() };
    while let Some(replaced) = next {
        if let Ok(index) = replaced.places.binary_search(&place) {
            return Some(replaced.code + index * CODE);
        }
        // SAFETY: as above.
        next = unsafe { replaced.next.as_ref() };
    }
    None
}

/// Handles a trap. False if it is none of these instructions'.
///
/// # Safety
/// The context is that of a thread of this process that has trapped, as the kernel has passed it.
pub(crate) unsafe fn on_trap(context: *mut ucontext_t) -> bool {
    // SAFETY: the caller's promise.
    let context = unsafe { &mut *context };
    let place = traps::place(context);
    let Some(copy) = copy_of(place) else { return false };
    // As the way to it does.
    for (register, value) in [
        (libc::REG_RIP, make as *const () as usize),
        (libc::REG_RCX, place + SYSTEM_CALL.len()),
        (libc::REG_R11, copy),
    ] {
        context.uc_mcontext.gregs[many(register)] = (value as u64).cast_signed();
    }
    true
}

/// True if the processor keeps the state where this code expects it.
fn state_is_known() -> bool {
    let component = |number: u32| __cpuid_count(0xd, number);
    let has_instructions = __cpuid(1).ecx >> 27 & 1 == 1;
    let all = if has_instructions { component(0).eax } else { return false };
    (2..u32::BITS).filter(|number| (STATE & all) >> number & 1 == 1).all(|number| {
        let found = component(number);
        (found.ebx + found.eax) as usize <= STATE_BYTES
    })
}

/// Where a thread goes on instead of an instruction, with the registers that it has passed, but for `rcx`, which has the address behind the
/// instruction, and `r11`, which has that of a copy. All registers stay as they are but for those that the instruction changes.
#[unsafe(naked)]
unsafe extern "C" fn make() {
    naked_asm!(
        // For those who unwind the stack: the program goes on at what rcx holds.
        ".cfi_startproc simple",
        ".cfi_def_cfa rsp, 0",
        ".cfi_register rip, rcx",
        "lea rsp, [rsp - {red_zone}]",
        "pushfq",
        // These return to elsewhere, or on another stack.
        "cmp eax, {sigreturn}",
        "je 2f",
        "cmp eax, {clone3}",
        "je 2f",
        "cmp eax, {clone}",
        "jne 3f",
        // On the same one it is a fork.
        "test rsi, rsi",
        "je 3f",
        "2:",
        "popfq",
        "lea rsp, [rsp + {red_zone}]",
        "jmp r11",
        "3:",
        "push rcx",
        "push r9",
        "push r8",
        "push r10",
        "push rdx",
        "push rsi",
        "push rdi",
        "push rbx",
        "mov rbx, rsp",
        ".cfi_def_cfa rbx, {red_zone} + 72",
        ".cfi_offset rip, -{red_zone} - 16",
        ".cfi_offset rbx, -{red_zone} - 72",
        "sub rsp, {state_bytes}",
        "and rsp, -64",
        "mov rdi, rax",
        // Of the header the instruction writes the first word only.
        "xor eax, eax",
        "mov [rsp + {header}], rax",
        "mov [rsp + {header} + 8], rax",
        "mov [rsp + {header} + 16], rax",
        "mov [rsp + {header} + 24], rax",
        "mov [rsp + {header} + 32], rax",
        "mov [rsp + {header} + 40], rax",
        "mov [rsp + {header} + 48], rax",
        "mov [rsp + {header} + 56], rax",
        "mov eax, {state}",
        "xor edx, edx",
        "xsave64 [rsp]",
        "lea rsi, [rbx + 8]",
        "cld",
        "call {call}",
        "mov rcx, rax",
        "mov eax, {state}",
        "xor edx, edx",
        "xrstor64 [rsp]",
        "mov rax, rcx",
        "mov rsp, rbx",
        "pop rbx",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop r10",
        "pop r8",
        "pop r9",
        "pop rcx",
        "popfq",
        "lea rsp, [rsp + {red_zone}]",
        "jmp rcx",
        ".cfi_endproc",
        sigreturn = const libc::SYS_rt_sigreturn,
        clone3 = const libc::SYS_clone3,
        clone = const libc::SYS_clone,
        red_zone = const RED_ZONE,
        state_bytes = const STATE_BYTES,
        header = const HEADER,
        state = const STATE,
        call = sym call,
    )
}

/// Makes a system call; the result is the kernel's.
unsafe extern "C" fn call(number: c_long, arguments: &[usize; 6]) -> c_long {
    let errno = errno::get();
    let [a, b, c, d, e, f] = *arguments;
    // SAFETY: the program's call.
    let result = unsafe { io::syscall(number, a, b, c, d, e, f) };
    let result = if result == -1 { -c_long::from(errno::get()) } else { result };
    errno::set(errno);
    result
}
