//! Accesses to memory that a program has passed to a call, where natively the kernel makes them: a pointer to nothing makes the call fail with
//! `EFAULT`, and is no fault of the program.
//!
//! Each function begins with the instruction that may fault. If the fault is not to be resolved, its handler has the thread go on behind it.

use crate::numbers::many;
use gondwana_page::PAGE_SIZE;
use libc::ucontext_t;
use std::arch::naked_asm;
use std::mem::MaybeUninit;

/// Bytes of [`copy_bytes`]'s first instruction.
const COPY: i64 = 2;

/// Copies bytes; gives how many are left.
#[unsafe(naked)]
unsafe extern "C" fn copy_bytes(to: *mut u8, from: *const u8, unused: usize, count: usize) -> usize {
    naked_asm!("rep movsb", "mov rax, rcx", "ret")
}

/// Bytes of [`touch_byte`]'s first two instructions.
const TOUCH: i64 = 6;

/// Writes a byte as it is; gives 0, or `failed`.
#[unsafe(naked)]
unsafe extern "C" fn touch_byte(at: *mut u8, failed: usize) -> usize {
    naked_asm!("lock or byte ptr [rdi], 0", "xor esi, esi", "mov rax, rsi", "ret")
}

/// True if a byte can be written; it stays as it is.
pub(crate) fn is_writable(at: *mut u8) -> bool {
    // SAFETY: changes nothing, and a fault is no harm.
    unsafe { touch_byte(at, 1) == 0 }
}

/// Copies bytes up to the first that cannot be read or written. Gives how many.
///
/// # Safety
/// If the memory is there, it is the caller's to read and to write.
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, count: usize) -> usize {
    // SAFETY: the caller's promise, and a fault is no harm.
    count - unsafe { copy_bytes(to, from, 0, count) }
}

/// A value of the program's, if it is there.
///
/// # Safety
/// Memory that is there has such a value.
pub(crate) unsafe fn load<T: Copy>(from: *const T) -> Option<T> {
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: the caller's promise.
    unsafe {
        let copied = copy(from.cast(), value.as_mut_ptr().cast(), size_of::<T>());
        (copied == size_of::<T>()).then(|| value.assume_init())
    }
}

/// Writes a value for the program. False if its memory is not there.
///
/// # Safety
/// Memory that is there is to be written to.
pub(crate) unsafe fn store<T: Copy>(value: &T, to: *mut T) -> bool {
    // SAFETY: the caller's promise.
    unsafe { copy(std::ptr::from_ref(value).cast(), to.cast(), size_of::<T>()) == size_of::<T>() }
}

/// True if a byte can be read.
pub(crate) fn is_readable(at: *const u8) -> bool {
    // SAFETY: whatever byte is there.
    unsafe { load(at) }.is_some()
}

/// The length of a string with its end, or with the first byte that cannot be read.
pub(crate) fn string(start: *const u8) -> usize {
    let mut piece = [0_u8; 64];
    let mut length = 0;
    loop {
        let at = start.wrapping_add(length);
        // Not beyond the page, behind which there may be nothing.
        let most = piece.len().min(PAGE_SIZE - at as usize % PAGE_SIZE);
        // SAFETY: whatever bytes are there, and a piece of that size.
        let read = unsafe { copy(at, piece.as_mut_ptr(), most) };
        match piece[..read].iter().position(|&byte| byte == 0) {
            Some(end) => return length + end + 1,
            None if read < most => return length + read + 1,
            None => length += most,
        }
    }
}

/// In the handler of a fault that is not to be resolved: has the thread go on if it is in such a function.
pub(crate) fn skip(context: &mut ucontext_t) -> bool {
    let at = &mut context.uc_mcontext.gregs[many(libc::REG_RIP)];
    let functions = [(copy_bytes as *const () as u64, COPY), (touch_byte as *const () as u64, TOUCH)];
    let here = functions.into_iter().find(|(start, _)| *at == start.cast_signed());
    *at += here.map_or(0, |(_, length)| length);
    here.is_some()
}
