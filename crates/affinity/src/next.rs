//! The allocator that the program would use without this library: the C library's, or its own.

use crate::inside;
use gondwana_interpose::{MALLOC_ALIGNMENT, NextFunction, c_name};
use gondwana_page::PAGE_SIZE;
use libc::{c_int, c_void};
use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    /// Whether the thread is looking up one of the functions.
    static LOOKING: Cell<bool> = const { Cell::new(false) };
}

/// The function's address, found at the first call; `None` while this thread looks up a function.
#[inline]
fn address(function: &NextFunction) -> Option<usize> {
    function.known().or_else(|| find(function))
}

#[cold]
fn find(function: &NextFunction) -> Option<usize> {
    // The loader may allocate during the lookup.
    if LOOKING.replace(true) {
        return None;
    }
    let _inside = inside::enter();
    let found = function.find();
    LOOKING.set(false);
    found
}

/// Defines functions that call those of the next allocator, or `otherwise` during a lookup.
macro_rules! next {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty, $otherwise:expr;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        pub(crate) unsafe fn $name($($argument: $type),*) -> $result {
            static NEXT: NextFunction = NextFunction::new(c_name!($name));
            match address(&NEXT) {
                None => $otherwise,
                Some(found) => {
                    // SAFETY: the function of this name has this type in every allocator.
                    let function: unsafe extern "C" fn($($type),*) -> $result = unsafe { std::mem::transmute(found) };
                    // SAFETY: as the caller promises.
                    unsafe { function($($argument),*) }
                }
            }
        }
    )*};
}

next! {
    malloc(size: usize) -> *mut c_void, early(size, MALLOC_ALIGNMENT);
    calloc(count: usize, size: usize) -> *mut c_void, early(count.saturating_mul(size), MALLOC_ALIGNMENT);
    realloc(block: *mut c_void, size: usize) -> *mut c_void, grown_early(block, size);
    memalign(alignment: usize, size: usize) -> *mut c_void, early(size, alignment);
    posix_memalign(result: *mut *mut c_void, alignment: usize, size: usize) -> c_int, {
        let block = early(size, alignment);
        // SAFETY: as the caller promises.
        unsafe { *result = block };
        if block.is_null() { libc::ENOMEM } else { 0 }
    };
    aligned_alloc(alignment: usize, size: usize) -> *mut c_void, early(size, alignment);
    valloc(size: usize) -> *mut c_void, early(size, PAGE_SIZE);
    pvalloc(size: usize) -> *mut c_void, early(size.saturating_add(PAGE_SIZE - 1) & !(PAGE_SIZE - 1), PAGE_SIZE);
    free(block: *mut c_void) -> (), ();
    malloc_usable_size(block: *mut c_void) -> usize, 0;
    dlclose(handle: *mut c_void) -> c_int, -1;
}

/// Memory for the loader during the lookup of the next allocator; it is never freed.
struct Early(UnsafeCell<[u8; 16 << 10]>);

// SAFETY: each byte is given to one caller only.
unsafe impl Sync for Early {}

static EARLY: Early = Early(UnsafeCell::new([0; 16 << 10]));
static EARLY_USED: AtomicUsize = AtomicUsize::new(0);

fn early(size: usize, alignment: usize) -> *mut c_void {
    let start = EARLY.0.get() as usize;
    let mut block = 0;
    let taken = EARLY_USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
        block = (start + used).checked_next_multiple_of(alignment.max(MALLOC_ALIGNMENT))?;
        let end = block.checked_add(size)? - start;
        (end <= size_of::<Early>()).then_some(end)
    });
    if taken.is_ok() { block as *mut c_void } else { std::ptr::null_mut() }
}

fn grown_early(block: *mut c_void, size: usize) -> *mut c_void {
    let grown = early(size, MALLOC_ALIGNMENT);
    if !block.is_null() && !grown.is_null() && is_early(block) {
        let start = EARLY.0.get() as usize;
        let room = (start + size_of::<Early>() - block as usize).min(size);
        // SAFETY: both are inside the memory for early blocks; what follows the old block is none of its contents, and
        // does no harm. They may overlap behind its end.
        unsafe { std::ptr::copy(block.cast::<u8>(), grown.cast(), room) };
    }
    grown
}

/// True if the block was allocated during the lookup of the next allocator: it must not be freed.
pub(crate) fn is_early(block: *const c_void) -> bool {
    let start = EARLY.0.get() as usize;
    (start..start + size_of::<Early>()).contains(&(block as usize))
}
