//! Allocators. libgomp has them: its memory and what it knows of an allocator are shared, like all that the program allocates. Here each thread
//! gets the default allocator of the thread that has begun its region.

use super::context;
use super::query::exported;
use libc::{c_ulong, c_void};

/// A number that names an allocator, or its address; 0 is the default one of the calling thread.
type Allocator = usize;

/// What libgomp is to use in place of an allocator.
fn chosen(allocator: Allocator) -> Allocator {
    if allocator == 0 { context::get().controls.allocator } else { allocator }
}

/// Defines functions that pass their arguments, of which the last is an allocator, on to libgomp.
macro_rules! passed_on {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        /// # Safety
        /// As OpenMP says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type,)* allocator: Allocator) -> $result {
            // SAFETY: forwards the caller's arguments.
            unsafe { crate::real!($name: fn($($type,)* Allocator) -> $result)($($argument,)* chosen(allocator)) }
        }
    )*};
}

passed_on! {
    GOMP_alloc(align: c_ulong, size: c_ulong) -> *mut c_void;
    omp_alloc(size: usize) -> *mut c_void;
    omp_aligned_alloc(align: usize, size: usize) -> *mut c_void;
    omp_calloc(count: usize, size: usize) -> *mut c_void;
    omp_aligned_calloc(align: usize, count: usize, size: usize) -> *mut c_void;
}

/// A block that grows stays with its allocator, unless there is another one; where there is no block, this is `omp_alloc`.
///
/// # Safety
/// As OpenMP says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn omp_realloc(
    block: *mut c_void,
    size: usize,
    allocator: Allocator,
    freed: Allocator,
) -> *mut c_void {
    let allocator = if block.is_null() { chosen(allocator) } else { allocator };
    // SAFETY: forwards the caller's arguments.
    unsafe {
        crate::real!(omp_realloc: fn(*mut c_void, usize, Allocator, Allocator) -> *mut c_void)(
            block, size, allocator, freed,
        )
    }
}

/// The default allocator of the calling thread.
fn default() -> Allocator {
    match context::get().controls.allocator {
        // SAFETY: a function without arguments.
        0 => unsafe { crate::real!(omp_get_default_allocator: fn() -> Allocator)() },
        allocator => allocator,
    }
}

/// The allocator that stands for the default one of the system.
const SYSTEM: Allocator = 1;

exported! {
    fn omp_get_default_allocator, omp_get_default_allocator_() -> Allocator = default();
    fn omp_set_default_allocator, omp_set_default_allocator_(allocator: Allocator) = context::update(|context| {
        context.controls.allocator = if allocator == 0 { SYSTEM } else { allocator };
    });
}
