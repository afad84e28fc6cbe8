//! The allocator of this library itself: the C library's own heap, which is private to the node, never the
//! shared heap that `malloc` means to the program.

use std::alloc::{GlobalAlloc, Layout};

unsafe extern "C" {
    pub fn __libc_malloc(size: usize) -> *mut libc::c_void;
    pub fn __libc_calloc(count: usize, size: usize) -> *mut libc::c_void;
    pub fn __libc_realloc(pointer: *mut libc::c_void, size: usize) -> *mut libc::c_void;
    pub fn __libc_free(pointer: *mut libc::c_void);
    pub fn __libc_memalign(alignment: usize, size: usize) -> *mut libc::c_void;
}

pub struct Private;

/// What the C library guarantees without being asked.
const NATURAL: usize = 16;

// SAFETY: forwards to the C library's allocator, which honours size and alignment.
unsafe impl GlobalAlloc for Private {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: plain allocation.
        unsafe {
            if layout.align() <= NATURAL {
                __libc_malloc(layout.size()).cast()
            } else {
                __libc_memalign(layout.align(), layout.size()).cast()
            }
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, _layout: Layout) {
        // SAFETY: the pointer came from `alloc` or `realloc`.
        unsafe { __libc_free(pointer.cast()) };
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= NATURAL {
            // SAFETY: plain allocation.
            return unsafe { __libc_calloc(1, layout.size()).cast() };
        }
        // SAFETY: plain allocation, then filling what was allocated.
        unsafe {
            let pointer = self.alloc(layout);
            if !pointer.is_null() {
                pointer.write_bytes(0, layout.size());
            }
            pointer
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the pointer came from this allocator.
        unsafe {
            if layout.align() <= NATURAL {
                return __libc_realloc(pointer.cast(), size).cast();
            }
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                std::ptr::copy_nonoverlapping(pointer, moved, size.min(layout.size()));
                self.dealloc(pointer, layout);
            }
            moved
        }
    }
}
