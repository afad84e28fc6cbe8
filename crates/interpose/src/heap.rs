//! The allocator of the library itself: the C library's own functions, never the ones that the library stands in front of.

use crate::{MALLOC_ALIGNMENT, NextFunction};
use libc::{c_int, c_void};
use std::alloc::{GlobalAlloc, Layout};
use std::marker::PhantomData;

/// The address of a function of the C library's allocator: allocators of programs (mimalloc, tcmalloc, tbbmalloc) define these names,
/// too, and the loader prefers theirs. Allocates nothing.
#[inline]
fn address(function: &NextFunction) -> usize {
    function.of_c_library().unwrap_or_else(|| {
        let text = c"gondwana: the C library has no allocator of the usual names\n";
        // SAFETY: the text is as long as that; nothing else is asked. What composes a line would allocate.
        unsafe {
            gondwana_sys::syscall!(libc::SYS_write, 2, text.as_ptr(), text.count_bytes());
            libc::abort()
        }
    })
}

/// Code around calls of the C library that may take a lock.
pub trait CallGuard {
    /// Makes the call.
    fn during<R>(call: impl FnOnce() -> R) -> R;
}

/// Nothing: the call can be interrupted without harm.
#[derive(Debug)]
pub struct Unguarded;

impl CallGuard for Unguarded {
    #[inline]
    fn during<R>(call: impl FnOnce() -> R) -> R {
        call()
    }
}

/// The C library's heap, where each call is guarded by `G`.
#[derive(Debug)]
pub struct CLibraryHeap<G>(PhantomData<G>);

impl<G> CLibraryHeap<G> {
    /// The heap; there is only one.
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<G> Default for CLibraryHeap<G> {
    fn default() -> Self {
        Self::new()
    }
}

/// Defines the functions of the C library's allocator.
macro_rules! guarded {
    ($($name:ident = $function:literal($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        /// The C library's function of this name.
        ///
        /// # Safety
        /// As for the C library's.
        pub unsafe fn $name($($argument: $type),*) $(-> $result)? {
            static FUNCTION: NextFunction = NextFunction::new($function);
            G::during(|| {
                // SAFETY: the C library's function has this signature, and the rest is as the caller promises.
                unsafe {
                    let function: unsafe extern "C" fn($($type),*) $(-> $result)? =
                        std::mem::transmute(address(&FUNCTION));
                    function($($argument),*)
                }
            })
        }
    )*};
}

impl<G: CallGuard> CLibraryHeap<G> {
    guarded! {
        malloc = c"__libc_malloc"(size: usize) -> *mut c_void;
        calloc = c"__libc_calloc"(count: usize, size: usize) -> *mut c_void;
        realloc = c"__libc_realloc"(block: *mut c_void, size: usize) -> *mut c_void;
        free = c"__libc_free"(block: *mut c_void);
        memalign = c"__libc_memalign"(alignment: usize, size: usize) -> *mut c_void;
        usable_size = c"malloc_usable_size"(block: *mut c_void) -> usize;
        mallopt = c"mallopt"(option: c_int, value: c_int) -> c_int;
    }
}

// SAFETY: the C library's functions honour the size and the alignment, and blocks go back to where they are from.
unsafe impl<G: CallGuard> GlobalAlloc for CLibraryHeap<G> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: neither function asks anything of its arguments.
        unsafe {
            if layout.align() <= MALLOC_ALIGNMENT {
                Self::malloc(layout.size()).cast()
            } else {
                Self::memalign(layout.align(), layout.size()).cast()
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= MALLOC_ALIGNMENT {
            // SAFETY: as above. Large blocks are fresh from the kernel and need not be written to.
            return unsafe { Self::calloc(1, layout.size()).cast() };
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
        // SAFETY: the block is from one of the other functions.
        unsafe { Self::free(block.cast()) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the block is from this allocator; the new one overlaps nothing.
        unsafe {
            if layout.align() <= MALLOC_ALIGNMENT {
                return Self::realloc(block.cast(), size).cast();
            }
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                std::ptr::copy_nonoverlapping(block, moved, size.min(layout.size()));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_alignment_and_contents_as_they_grow() {
        let heap = CLibraryHeap::<Unguarded>::new();
        for alignment in [1, 16, 64, 4096] {
            let layout = Layout::from_size_align(100, alignment).unwrap();
            // SAFETY: the block is used within its size and freed once, with its layout.
            unsafe {
                let block = heap.alloc_zeroed(layout);
                assert!(block.addr().is_multiple_of(alignment));
                assert!((0..100).all(|at| *block.add(at) == 0));
                block.add(99).write(7);
                let grown = GlobalAlloc::realloc(&heap, block, layout, 100_000);
                assert!(grown.addr().is_multiple_of(alignment));
                assert_eq!(*grown.add(99), 7);
                heap.dealloc(grown, Layout::from_size_align(100_000, alignment).unwrap());
            }
        }
    }
}
