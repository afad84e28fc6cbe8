//! The allocator of this library itself: the C library's own heap, which is private to the node, never the
//! shared heap that `malloc` means to the program.

use crate::handler_stack::uninterrupted;
use libc::c_void;
use std::alloc::{GlobalAlloc, Layout};

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(pointer: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_free(pointer: *mut c_void);
    fn __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
}

/// Defines the functions of the C library's allocator where nothing stops the thread midway.
///
/// Whoever receives messages allocates, too. A thread that waited for a page of its own stack while it held the allocator's
/// lock, or for a page that a handler of the program needs, would wait for ever: the receiver would wait for it.
macro_rules! allocator {
    ($(fn $name:ident = $real:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        pub unsafe fn $name($($argument: $type),*) $(-> $result)? {
            // SAFETY: the caller's promise.
            uninterrupted(|| unsafe { $real($($argument),*) })
        }
    )*};
}

allocator! {
    fn malloc = __libc_malloc(size: usize) -> *mut c_void;
    fn calloc = __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn realloc = __libc_realloc(pointer: *mut c_void, size: usize) -> *mut c_void;
    fn free = __libc_free(pointer: *mut c_void);
    fn memalign = __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
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
                malloc(layout.size()).cast()
            } else {
                memalign(layout.align(), layout.size()).cast()
            }
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, _layout: Layout) {
        // SAFETY: the pointer came from `alloc` or `realloc`.
        unsafe { free(pointer.cast()) };
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= NATURAL {
            // SAFETY: plain allocation.
            return unsafe { calloc(1, layout.size()).cast() };
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
                return realloc(pointer.cast(), size).cast();
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
