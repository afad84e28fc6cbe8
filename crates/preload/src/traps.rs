//! Traps and jumps in the code of the program and its libraries, in place of instructions that are executed in another way.

use crate::map::kernel;
use crate::ranges::in_pages;
use gondwana_page::PAGE_SIZE;
use libc::{c_int, c_long, c_void, ucontext_t};
use std::ops::Range;

/// The instruction that traps (`int3`).
pub(crate) const TRAP: u8 = 0xcc;

/// `jmp` by a distance of four bytes.
const JUMP_NEAR: u8 = 0xe9;

/// Copies of instructions are within this distance of them: some name memory by its distance, and jumps to them have four bytes.
const NEAR: usize = 1 << 30;

/// Room is looked for at so many distances of this many bytes, and then at each that is twice the last one.
const NEAR_TRIES: usize = 64;
const STEP: usize = 1 << 16;

/// Replaces the first bytes of an instruction. False if the system does not let code be changed.
///
/// # Safety
/// Code of an object that stays loaded is there. No other thread executes it yet, and what executes the new bytes is ready.
pub(crate) unsafe fn replace(address: usize, with: &[u8]) -> bool {
    let place = address..address + with.len();
    if !protect(place.clone(), libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC) {
        return false;
    }
    // SAFETY: the pages are writable now, and this process's own copy of them is written to; no other thread executes it.
    unsafe { std::ptr::copy_nonoverlapping(with.as_ptr(), address as *mut u8, with.len()) };
    protect(place, libc::PROT_READ | libc::PROT_EXEC)
}

/// Code of an object.
pub(crate) fn code(range: Range<usize>) -> &'static [u8] {
    // SAFETY: the loader has mapped it, to be read, too, and its object is never unloaded.
    unsafe { std::slice::from_raw_parts(range.start as *const u8, range.len()) }
}

/// A jump from one address to another; `None` if they are too far from each other.
pub(crate) fn jump(from: usize, to: usize) -> Option<Vec<u8>> {
    let distance = to.wrapping_sub(from + 1 + size_of::<i32>()).cast_signed();
    let distance = i32::try_from(distance).ok()?;
    Some([&[JUMP_NEAR][..], &distance.to_ne_bytes()].concat())
}

/// Pages near code, which can be written to; `None` if there is no room.
pub(crate) fn room_near(text: &Range<usize>, bytes: usize) -> Option<usize> {
    let length = bytes.next_multiple_of(PAGE_SIZE);
    let highest = text.start.checked_sub(length)? & !(PAGE_SIZE - 1);
    // Below an object there is mostly nothing.
    let distances = (0..NEAR_TRIES).map(|one| one * STEP);
    let farther =
        std::iter::successors(Some(NEAR_TRIES * STEP), |far| Some(far * 2)).take_while(|far| *far <= NEAR);
    let places = distances.chain(farther).map_while(|distance| highest.checked_sub(distance));
    let below = places.into_iter().find(|place| map((*place).max(STEP), length) == Some(*place));
    // Where libraries are, so is what the kernel chooses, until there is much more.
    below.or_else(|| {
        let place = map(0, length)?;
        if text.end.abs_diff(place) <= NEAR {
            return Some(place);
        }
        // SAFETY: just mapped, and nobody uses it.
        unsafe { kernel::munmap(place as *mut c_void, length) };
        None
    })
}

/// New pages, which can be written to: at an address if nothing is there, anywhere for 0.
pub(crate) fn map(address: usize, length: usize) -> Option<usize> {
    kernel::map_anonymous(address, length, libc::PROT_READ | libc::PROT_WRITE)
}

/// Changes the protection of pages with code; false if the system does not allow it.
pub(crate) fn protect(range: Range<usize>, protection: c_int) -> bool {
    let pages = in_pages(&range);
    // SAFETY: the pages are code of the program or copies of it, and stay executable.
    let result: c_long =
        unsafe { gondwana_sys::syscall!(libc::SYS_mprotect, pages.start, pages.len(), protection) };
    result == 0
}

/// Where a thread has trapped.
pub(crate) fn place(context: &ucontext_t) -> usize {
    let next = context.uc_mcontext.gregs[libc::REG_RIP as usize];
    gondwana_page::to_usize(next.cast_unsigned()).wrapping_sub(1)
}
