//! `malloc` and related functions: blocks that match a rule come from its arena, all others from the next allocator.

use crate::arena::Block;
use crate::rules::rules;
use crate::{inside, message, next};
use gondwana_interpose::{MALLOC_ALIGNMENT, errno};
use gondwana_page::PAGE_SIZE;
use libc::{c_int, c_void};

gondwana_interpose::allocator! {
    malloc: allocate,
    calloc: allocate_zeroed,
    realloc: reallocate,
    reallocarray: reallocate_array,
    memalign: allocate_aligned,
    aligned_alloc: allocate_by_c11,
    posix_memalign: allocate_by_posix,
    valloc: allocate_page,
    pvalloc: allocate_pages,
}

/// A block from an arena, if a rule means an allocation by calls that return to these addresses.
#[inline]
pub(crate) fn placed(size: usize, alignment: usize, callers: &[usize]) -> Option<Block> {
    let rules = rules()?;
    if rules.rules.is_empty() {
        return None;
    }
    rules.placed(size, alignment, callers)
}

/// [`placed`] for the call whose return address is at `slot`.
///
/// # Safety
/// The call has not returned yet.
#[inline]
unsafe fn placed_for(size: usize, alignment: usize, slot: *const usize) -> Option<Block> {
    // SAFETY: as the caller promises.
    placed(size, alignment, &[unsafe { *slot }])
}

impl crate::rules::Rules {
    fn placed(&self, size: usize, alignment: usize, callers: &[usize]) -> Option<Block> {
        // Allocations of this library match no rule.
        let _inside = inside::enter()?;
        let before = errno::get();
        let arena = self.of(size, callers).and_then(|rule| rule.arena(self));
        let block = arena.and_then(|arena| arena.allocate(size, alignment.max(MALLOC_ALIGNMENT)));
        errno::set(before);
        block
    }
}

/// # Safety
/// The program's call, of which the return address is at `slot`, has not returned yet, and keeps the C library's rules for it.
unsafe extern "C" fn allocate(size: usize, slot: *const usize) -> *mut c_void {
    // SAFETY: the call waits for this one.
    match unsafe { placed_for(size, MALLOC_ALIGNMENT, slot) } {
        Some(block) => block.address as *mut c_void,
        // SAFETY: the caller's request.
        None => unsafe { next::malloc(size) },
    }
}

/// # Safety
/// The program's call, of which the return address is at `slot`, has not returned yet, and keeps the C library's rules for it.
unsafe extern "C" fn allocate_zeroed(count: usize, size: usize, slot: *const usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else {
        errno::set(libc::ENOMEM);
        return std::ptr::null_mut();
    };
    // SAFETY: the call waits for this one.
    match unsafe { placed_for(bytes, MALLOC_ALIGNMENT, slot) } {
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

/// A block from an arena, with an alignment that the next allocator also accepts.
///
/// # Safety
/// The call whose return address is at `slot` has not returned yet.
unsafe fn aligned(alignment: usize, size: usize, slot: *const usize) -> Option<*mut c_void> {
    // SAFETY: as the caller promises.
    let wanted = alignment.is_power_of_two().then(|| unsafe { placed_for(size, alignment, slot) })?;
    wanted.map(|block| block.address as *mut c_void)
}

/// # Safety
/// The program's call, of which the return address is at `slot`, has not returned yet, and keeps the C library's rules for it.
unsafe extern "C" fn allocate_aligned(alignment: usize, size: usize, slot: *const usize) -> *mut c_void {
    // SAFETY: the caller's request, for a call that waits.
    unsafe { aligned(alignment, size, slot).unwrap_or_else(|| next::memalign(alignment, size)) }
}

/// # Safety
/// The program's call, of which the return address is at `slot`, has not returned yet, and keeps the C library's rules for it.
unsafe extern "C" fn allocate_by_c11(alignment: usize, size: usize, slot: *const usize) -> *mut c_void {
    // SAFETY: the caller's request, for a call that waits.
    unsafe { aligned(alignment, size, slot).unwrap_or_else(|| next::aligned_alloc(alignment, size)) }
}

/// # Safety
/// The program's call, of which the return address is at `slot`, has not returned yet, and keeps the C library's rules for it.
unsafe extern "C" fn allocate_by_posix(
    result: *mut *mut c_void,
    alignment: usize,
    size: usize,
    slot: *const usize,
) -> c_int {
    let is_valid = alignment.is_multiple_of(size_of::<usize>());
    // SAFETY: the call waits for this one.
    match is_valid.then(|| unsafe { aligned(alignment, size, slot) }).flatten() {
        Some(block) => {
            // SAFETY: as the caller promises.
            unsafe { *result = block };
            0
        }
        // SAFETY: the caller's request.
        None => unsafe { next::posix_memalign(result, alignment, size) },
    }
}

/// # Safety
/// The program's call, of which the return address is at `slot`, has not returned yet, and keeps the C library's rules for it.
unsafe extern "C" fn allocate_page(size: usize, slot: *const usize) -> *mut c_void {
    // SAFETY: the caller's request, for a call that waits.
    unsafe { aligned(PAGE_SIZE, size, slot).unwrap_or_else(|| next::valloc(size)) }
}

/// # Safety
/// The program's call, of which the return address is at `slot`, has not returned yet, and keeps the C library's rules for it.
unsafe extern "C" fn allocate_pages(size: usize, slot: *const usize) -> *mut c_void {
    let whole = size.checked_next_multiple_of(PAGE_SIZE);
    // SAFETY: the caller's request, for a call that waits.
    unsafe {
        let block = whole.and_then(|whole| aligned(PAGE_SIZE, whole, slot));
        block.unwrap_or_else(|| next::pvalloc(size))
    }
}

/// # Safety
/// The program's call, of which the return address is at `slot`, has not returned yet, and keeps the C library's rules for it.
unsafe extern "C" fn reallocate_array(
    block: *mut c_void,
    count: usize,
    size: usize,
    slot: *const usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's request.
        Some(bytes) => unsafe { reallocate(block, bytes, slot) },
        None => {
            errno::set(libc::ENOMEM);
            std::ptr::null_mut()
        }
    }
}

/// A block stays in place if it is large enough and at least half used, unless a rule places it elsewhere.
///
/// # Safety
/// The program's call, of which the return address is at `slot`, has not returned yet, and keeps the C library's rules for it.
unsafe extern "C" fn reallocate(block: *mut c_void, size: usize, slot: *const usize) -> *mut c_void {
    if block.is_null() {
        // SAFETY: the caller's request.
        return unsafe { allocate(size, slot) };
    }
    let room = match usable_in_arena(block) {
        Some(_) if size == 0 => {
            // SAFETY: the caller's request: the C library's function frees then.
            unsafe { free(block) };
            return std::ptr::null_mut();
        }
        Some(room) if size <= room && (size >= room / 2 || room <= PAGE_SIZE) => return block,
        Some(room) => room,
        // SAFETY: the call waits for this one.
        None => match (size > 0).then(|| unsafe { placed_for(size, MALLOC_ALIGNMENT, slot) }).flatten() {
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
        let moved = allocate(size, slot);
        if moved.is_null() { moved } else { moved_to(moved, block, room.min(size)) }
    }
}

/// Copies `bytes` bytes to a new block and frees the old one.
///
/// # Safety
/// Both blocks are at least that long.
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
pub(crate) unsafe extern "C" fn free(block: *mut c_void) {
    if let Some(arena) = rules().and_then(|rules| rules.owner(block as usize)) {
        let before = errno::get();
        let _inside = inside::enter();
        if !arena.free(block as usize) {
            message::say_and_abort("free", block as usize);
        }
        errno::set(before);
    } else if !next::is_early(block) {
        // SAFETY: the caller's block.
        unsafe { next::free(block) };
    }
}

/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    // SAFETY: the caller's block.
    usable_in_arena(block).unwrap_or_else(|| unsafe { next::malloc_usable_size(block) })
}

/// The room in a block of an arena; `None` if the block is none.
fn usable_in_arena(block: *mut c_void) -> Option<usize> {
    let arena = rules()?.owner(block as usize)?;
    let _inside = inside::enter();
    Some(arena.usable(block as usize).unwrap_or_else(|| message::say_and_abort("realloc", block as usize)))
}

/// As the C library's function. The next library may be loaded at the same address.
///
/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    // SAFETY: the caller's handle.
    let result = unsafe { next::dlclose(handle) };
    if let Some(rules) = rules() {
        rules.forget_sites();
    }
    result
}
