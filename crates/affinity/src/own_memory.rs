//! The allocator of this library itself: the C library's own functions, never the ones that it replaces.

use libc::c_void;
use std::alloc::{GlobalAlloc, Layout};

unsafe extern "C" {
    fn __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
}

pub struct OwnMemory;

/// The alignment of all blocks of the C library.
const NATURAL: usize = 16;

// SAFETY: the C library's functions honour the size and the alignment, and blocks go back to where they are from.
unsafe impl GlobalAlloc for OwnMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: neither function asks anything of its arguments.
        unsafe {
            match layout.align() <= NATURAL {
                true => __libc_malloc(layout.size()).cast(),
                false => __libc_memalign(layout.align(), layout.size()).cast(),
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= NATURAL {
            // SAFETY: as above. Large blocks are fresh from the kernel and need not be written to.
            return unsafe { __libc_calloc(1, layout.size()).cast() };
        }
        // SAFETY: as the caller promises; a block has the size that was asked for.
        unsafe {
            let block = self.alloc(layout);
            if !block.is_null() {
                block.write_bytes(0, layout.size());
            }
            block
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: the block is from one of the functions above.
        unsafe { __libc_free(block.cast()) };
    }
}
