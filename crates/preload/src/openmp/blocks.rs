//! Blocks of memory of allocators. Each has a header, so that it can be freed without its allocator.

use super::allocators::{Fallback, Handle, USUAL, by_clang, chosen, made};
use crate::alloc;
use gondwana_interpose::MALLOC_ALIGNMENT;
use libc::{c_int, c_ulong, c_void};
use std::ptr::null_mut;

/// What stands before a block.
#[repr(C)]
#[derive(Clone, Copy)]
struct Header {
    /// Where its memory begins.
    start: *mut c_void,
    size: usize,
    allocator: Handle,
    /// What it takes of its allocator's pool.
    taken: usize,
}

/// What a block has to be like.
#[derive(Clone, Copy)]
struct Wish {
    size: usize,
    align: usize,
    zeroed: bool,
}

impl Wish {
    /// What the block takes of a pool, as libgomp counts: its size, its header, and what alignment can cost.
    fn takes(self) -> Option<usize> {
        self.size.checked_add(size_of::<Header>())?.checked_add(self.align.saturating_sub(size_of::<usize>()))
    }

    /// A block of this allocator; `freed` are bytes of its pool that become free at the same time.
    fn block(self, allocator: Handle, freed: usize) -> Option<*mut c_void> {
        let pool = made(allocator);
        let wish = Self { align: self.align.max(pool.map_or(1, |pool| pool.alignment)), ..self };
        let taken = wish.takes()?;
        if !pool.is_none_or(|pool| pool.take(taken, freed)) {
            return None;
        }
        let Self { size, align, zeroed } = wish;
        let room = size.checked_add(size_of::<Header>() + align.saturating_sub(MALLOC_ALIGNMENT))?;
        let start = alloc::get(room, zeroed);
        if start.is_null() {
            pool.inspect(|pool| {
                pool.give_back(taken);
                // What was to become free is not.
                pool.take(freed, 0);
            });
            return None;
        }
        // SAFETY: the memory has room for a header and the block behind it, wherever the next multiple of the alignment is.
        unsafe {
            let behind = start.byte_add(size_of::<Header>());
            let block = behind.byte_add(behind.addr().next_multiple_of(align.max(1)) - behind.addr());
            block.cast::<Header>().sub(1).write(Header { start, size, allocator, taken });
            Some(block)
        }
    }

    /// A block of this allocator, or of that which is asked where it has none; null if none has.
    fn fulfilled(self, allocator: Handle, mut freed: usize) -> *mut c_void {
        if self.size == 0 {
            return null_mut();
        }
        let mut allocator = chosen(allocator);
        loop {
            if let Some(block) = self.block(allocator, freed) {
                return block;
            }
            freed = 0;
            let Some(made) = made(allocator) else { return null_mut() };
            allocator = match made.fallback {
                Fallback::Usual => USUAL,
                Fallback::Other => chosen(made.other),
                Fallback::Null => return null_mut(),
                Fallback::Abort => {
                    crate::report::fatal(&format!("OpenMP: out of memory allocating {} bytes", self.size))
                }
            };
        }
    }
}

fn get(align: usize, size: usize, allocator: Handle) -> *mut c_void {
    Wish { size, align, zeroed: false }.fulfilled(allocator, 0)
}

fn get_zeroed(align: usize, count: usize, size: usize, allocator: Handle) -> *mut c_void {
    // No allocator has so much that its size is no number.
    let size = count.saturating_mul(size);
    Wish { size, align, zeroed: true }.fulfilled(allocator, 0)
}

/// # Safety
/// It is null or a block that has not been freed.
unsafe fn free(block: *mut c_void) {
    if !block.is_null() {
        // SAFETY: the caller's promise: a header is before it.
        unsafe {
            let Header { start, allocator, taken, .. } = block.cast::<Header>().sub(1).read();
            made(allocator).inspect(|pool| pool.give_back(taken));
            alloc::free(start);
        }
    }
}

/// Another block with what was in one, which is freed; it has the same allocator if none is named.
///
/// # Safety
/// As for [`free`].
unsafe fn resize(block: *mut c_void, size: usize, allocator: Handle) -> *mut c_void {
    if block.is_null() {
        return get(1, size, allocator);
    }
    // SAFETY: the caller's promise; a header is before each block.
    unsafe {
        if size == 0 {
            free(block);
            return null_mut();
        }
        let old = block.cast::<Header>().sub(1).read();
        let allocator = if allocator == 0 { old.allocator } else { allocator };
        let freed = if allocator == old.allocator { old.taken } else { 0 };
        let new = Wish { size, align: 1, zeroed: false }.fulfilled(allocator, freed);
        if !new.is_null() {
            std::ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast(), old.size.min(size));
            let same = (*new.cast::<Header>().sub(1)).allocator == allocator;
            if freed == 0 || !same {
                made(old.allocator).inspect(|pool| pool.give_back(old.taken));
            }
            alloc::free(old.start);
        }
        new
    }
}

/// Defines functions that OpenMP or gcc's code calls.
macro_rules! exported {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $body:expr;)*) => {$(
        /// # Safety
        /// As OpenMP says.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            $body
        }
    )*};
}

exported! {
    GOMP_alloc(align: c_ulong, size: c_ulong, allocator: Handle) -> *mut c_void =
        get(gondwana_page::to_usize(align), gondwana_page::to_usize(size), allocator);
    omp_alloc(size: usize, allocator: Handle) -> *mut c_void = get(1, size, allocator);
    omp_aligned_alloc(align: usize, size: usize, allocator: Handle) -> *mut c_void =
        get(align.next_power_of_two(), size, allocator);
    omp_calloc(count: usize, size: usize, allocator: Handle) -> *mut c_void = get_zeroed(1, count, size, allocator);
    omp_aligned_calloc(align: usize, count: usize, size: usize, allocator: Handle) -> *mut c_void =
        get_zeroed(align.next_power_of_two(), count, size, allocator);
    omp_realloc(block: *mut c_void, size: usize, allocator: Handle, _freed: Handle) -> *mut c_void =
        // SAFETY: the program passes a block of these functions.
        unsafe { resize(block, size, allocator) };
    // SAFETY: likewise.
    omp_free(block: *mut c_void, _allocator: Handle) = unsafe { free(block) };
    // SAFETY: likewise.
    GOMP_free(block: *mut c_void, _allocator: Handle) = unsafe { free(block) };
}

by_clang! {
    __kmpc_alloc(size: usize, allocator: Handle) -> *mut c_void = omp_alloc;
    __kmpc_aligned_alloc(align: usize, size: usize, allocator: Handle) -> *mut c_void = omp_aligned_alloc;
    __kmpc_calloc(count: usize, size: usize, allocator: Handle) -> *mut c_void = omp_calloc;
    __kmpc_realloc(block: *mut c_void, size: usize, allocator: Handle, freed: Handle) -> *mut c_void = omp_realloc;
    __kmpc_free(block: *mut c_void, allocator: Handle) = omp_free;
}
