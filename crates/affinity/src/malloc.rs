//! `malloc` and its relatives: blocks that a rule means come from its arena, all others from the next allocator.

use crate::arena::Block;
use crate::rules::rules;
use crate::{inside, message, next};
use libc::{c_int, c_void};
use std::arch::naked_asm;

/// Defines an exported function that hands its return address on in the register of the argument after its last.
macro_rules! with_caller {
    ($($name:ident, $register:literal => $target:path;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(concat!("mov ", $register, ", [rsp]"), "jmp {}", sym $target)
        }
    )*};
}

with_caller! {
    malloc, "rsi" => allocate;
    calloc, "rdx" => allocate_zeroed;
    realloc, "rdx" => reallocate;
    reallocarray, "rcx" => reallocate_array;
    memalign, "rdx" => allocate_aligned;
    aligned_alloc, "rdx" => allocate_by_c11;
    posix_memalign, "rcx" => allocate_by_posix;
    valloc, "rsi" => allocate_page;
    pvalloc, "rsi" => allocate_pages;
}

/// The alignment of all blocks.
pub const NATURAL: usize = 16;
const PAGE: usize = 4096;

/// A block from an arena, if a rule means an allocation by calls that return to these addresses.
#[inline]
pub fn placed(size: usize, alignment: usize, callers: &[usize]) -> Option<Block> {
    let rules = rules()?;
    if rules.rules.is_empty() {
        return None;
    }
    rules.placed(size, alignment, callers)
}

impl crate::rules::Rules {
    fn placed(&self, size: usize, alignment: usize, callers: &[usize]) -> Option<Block> {
        // What this library makes the C library allocate is never meant.
        let _inside = inside::enter()?;
        let before = errno();
        let arena = self.of(size, callers).and_then(|rule| rule.arena(self));
        let block = arena.and_then(|arena| arena.allocate(size, alignment.max(NATURAL)));
        set_errno(before);
        block
    }
}

unsafe extern "C" fn allocate(size: usize, caller: usize) -> *mut c_void {
    match placed(size, NATURAL, &[caller]) {
        Some(block) => block.address as *mut c_void,
        // SAFETY: the caller's request.
        None => unsafe { next::malloc(size) },
    }
}

unsafe extern "C" fn allocate_zeroed(count: usize, size: usize, caller: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else {
        set_errno(libc::ENOMEM);
        return std::ptr::null_mut();
    };
    match placed(bytes, NATURAL, &[caller]) {
        Some(block) => {
            if !block.fresh {
                // SAFETY: the block is new, and has so many bytes.
                unsafe { (block.address as *mut u8).write_bytes(0, bytes) };
            }
            block.address as *mut c_void
        }
        // SAFETY: the caller's request.
        None => unsafe { next::calloc(count, size) },
    }
}

/// A block from an arena with an alignment that the next allocator would take, too.
fn aligned(alignment: usize, size: usize, caller: usize) -> Option<*mut c_void> {
    let wanted = alignment.is_power_of_two().then(|| placed(size, alignment, &[caller]))?;
    wanted.map(|block| block.address as *mut c_void)
}

unsafe extern "C" fn allocate_aligned(alignment: usize, size: usize, caller: usize) -> *mut c_void {
    // SAFETY: the caller's request.
    aligned(alignment, size, caller).unwrap_or_else(|| unsafe { next::memalign(alignment, size) })
}

unsafe extern "C" fn allocate_by_c11(alignment: usize, size: usize, caller: usize) -> *mut c_void {
    // SAFETY: the caller's request.
    aligned(alignment, size, caller).unwrap_or_else(|| unsafe { next::aligned_alloc(alignment, size) })
}

unsafe extern "C" fn allocate_by_posix(
    result: *mut *mut c_void,
    alignment: usize,
    size: usize,
    caller: usize,
) -> c_int {
    let is_valid = alignment.is_multiple_of(size_of::<usize>());
    match is_valid.then(|| aligned(alignment, size, caller)).flatten() {
        Some(block) => {
            // SAFETY: as the caller promises.
            unsafe { *result = block };
            0
        }
        // SAFETY: the caller's request.
        None => unsafe { next::posix_memalign(result, alignment, size) },
    }
}

unsafe extern "C" fn allocate_page(size: usize, caller: usize) -> *mut c_void {
    // SAFETY: the caller's request.
    aligned(PAGE, size, caller).unwrap_or_else(|| unsafe { next::valloc(size) })
}

unsafe extern "C" fn allocate_pages(size: usize, caller: usize) -> *mut c_void {
    let whole = size.checked_next_multiple_of(PAGE);
    let block = whole.and_then(|whole| aligned(PAGE, whole, caller));
    // SAFETY: the caller's request.
    block.unwrap_or_else(|| unsafe { next::pvalloc(size) })
}

unsafe extern "C" fn reallocate_array(
    block: *mut c_void,
    count: usize,
    size: usize,
    caller: usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's request.
        Some(bytes) => unsafe { reallocate(block, bytes, caller) },
        None => {
            set_errno(libc::ENOMEM);
            std::ptr::null_mut()
        }
    }
}

/// Blocks that an arena has no better place for stay if they have room, and if no more than half of it is wasted.
unsafe extern "C" fn reallocate(block: *mut c_void, size: usize, caller: usize) -> *mut c_void {
    if block.is_null() {
        // SAFETY: the caller's request.
        return unsafe { allocate(size, caller) };
    }
    let room = match usable_in_arena(block) {
        Some(_) if size == 0 => {
            // SAFETY: the caller's request: the C library's function frees then.
            unsafe { free(block) };
            return std::ptr::null_mut();
        }
        Some(room) if size <= room && (size >= room / 2 || room <= PAGE) => return block,
        Some(room) => room,
        None => match (size > 0).then(|| placed(size, NATURAL, &[caller])).flatten() {
            Some(moved) => {
                // SAFETY: the block is the next allocator's.
                let room = unsafe { next::malloc_usable_size(block) };
                // SAFETY: each has so much room.
                return unsafe { moved_to(moved.address as *mut c_void, block, room.min(size)) };
            }
            // SAFETY: the caller's request.
            None => return unsafe { next::realloc(block, size) },
        },
    };
    // SAFETY: the caller's request; the block has so much room.
    unsafe {
        let moved = allocate(size, caller);
        if moved.is_null() { moved } else { moved_to(moved, block, room.min(size)) }
    }
}

/// Copies so many bytes to a new block and frees the old one.
///
/// # Safety
/// Both blocks have them.
unsafe fn moved_to(moved: *mut c_void, block: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: as the caller promises; the new block overlaps nothing.
    unsafe {
        std::ptr::copy_nonoverlapping(block.cast::<u8>(), moved.cast(), bytes);
        free(block);
    }
    moved
}

/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    if let Some(arena) = rules().and_then(|rules| rules.owner(block as usize)) {
        let before = errno();
        let _inside = inside::enter();
        if !arena.free(block as usize) {
            message::say_and_abort("free", block as usize);
        }
        set_errno(before);
    } else if !next::is_early(block) {
        // SAFETY: the caller's block.
        unsafe { next::free(block) };
    }
}

/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    // SAFETY: the caller's block.
    usable_in_arena(block).unwrap_or_else(|| unsafe { next::malloc_usable_size(block) })
}

/// The room in a block of an arena; `None` if the block is none.
fn usable_in_arena(block: *mut c_void) -> Option<usize> {
    let arena = rules()?.owner(block as usize)?;
    let _inside = inside::enter();
    Some(arena.usable(block as usize).unwrap_or_else(|| message::say_and_abort("realloc", block as usize)))
}

/// As the C library's function; what is loaded next may come to where this was.
///
/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    // SAFETY: the caller's handle.
    let result = unsafe { next::dlclose(handle) };
    if let Some(rules) = rules() {
        rules.forget_sites();
    }
    result
}

fn errno() -> c_int {
    // SAFETY: the calling thread's own variable.
    unsafe { *libc::__errno_location() }
}

fn set_errno(number: c_int) {
    // SAFETY: the calling thread's own variable.
    unsafe { *libc::__errno_location() = number };
}
