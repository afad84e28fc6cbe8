//! `malloc` and related functions.
//!
//! Allocations of the program and its libraries are shared. Those of the C library for itself (stream buffers,
//! tables) stay private to the node, so that its system calls never meet an absent page. The caller's return address
//! distinguishes them.

use crate::io::stream_memory;
use crate::private::Private;
use gondwana_interpose::MALLOC_ALIGNMENT;
use gondwana_memory::PAGE_SIZE;
use gondwana_node::{Caller, Node};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::OnceLock;

/// The code whose allocations are private: the C library, the loader, and the standard library inside this one.
static PRIVATE_TEXT: OnceLock<[Range<usize>; 3]> = OnceLock::new();

/// The purpose of an allocation of the C library.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Its own buffers and tables.
    Own,
    /// A block that the program will own, such as the result of `strdup`.
    Program,
    /// A stream or directory, which the program passes back to the C library only.
    Stream,
    /// First the stream, then the block that the program will find its contents in.
    StreamThenProgram,
    /// The loader's own, while it loads a library for all nodes.
    Loading,
}

thread_local! {
    /// The purpose of the C library's present allocations on this thread.
    static PURPOSE: Cell<Purpose> = const { Cell::new(Purpose::Own) };
}

/// Where an allocation goes.
enum Place {
    Shared(&'static Node),
    Stream,
    Private,
}

/// Finds out whose allocations are private. Until then all are.
pub(crate) fn begin() {
    let text = gondwana_elf::loaded::text_of(&["libc.so", "ld-linux", "libgondwana.so"]);
    let range = |index: usize| text.get(index).cloned().unwrap_or(0..0);
    PRIVATE_TEXT.get_or_init(|| [range(0), range(1), range(2)]);
}

/// Runs a C library function that allocates memory for a purpose.
pub(crate) fn with_purpose<R>(purpose: Purpose, call: impl FnOnce() -> R) -> R {
    let before = PURPOSE.replace(purpose);
    let result = call();
    PURPOSE.set(before);
    result
}

/// Runs a C library function whose result the program will own.
pub(crate) fn for_program<R>(call: impl FnOnce() -> R) -> R {
    with_purpose(Purpose::Program, call)
}

/// The heap for an allocation of `caller`.
#[inline]
fn place(caller: Caller) -> Place {
    let (Some(node), Some(texts)) = (Node::current(), PRIVATE_TEXT.get()) else { return Place::Private };
    if !texts.iter().any(|text| text.contains(&caller.address)) {
        return Place::Shared(node);
    }
    match PURPOSE.get() {
        Purpose::Own => Place::Private,
        Purpose::Program => Place::Shared(node),
        Purpose::Stream => Place::Stream,
        Purpose::StreamThenProgram => {
            PURPOSE.set(Purpose::Program);
            Place::Stream
        }
        Purpose::Loading => {
            crate::library::loader_goes_on();
            Place::Private
        }
    }
}

fn or_enomem(address: Option<usize>) -> *mut c_void {
    address.map_or_else(
        || {
            crate::errno::set(libc::ENOMEM);
            std::ptr::null_mut()
        },
        |address| address as *mut c_void,
    )
}

gondwana_interpose::allocator! {
    malloc: allocate,
    calloc: allocate_zeroed,
    realloc: reallocate,
    reallocarray: reallocate_array,
    memalign: allocate_aligned,
    aligned_alloc: allocate_aligned,
    posix_memalign: allocate_posix,
    valloc: allocate_pages,
    pvalloc: allocate_pages,
}

/// `realloc` on the program's behalf.
///
/// # Safety
/// As the C library's `realloc`.
pub(crate) unsafe fn resize(pointer: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: forwards the request.
    unsafe { reallocate_for(pointer, size, Caller::NONE) }
}

/// `malloc` for the call whose return address is at `slot`.
///
/// # Safety
/// As the C library's `malloc`. The call has not returned yet.
pub(crate) unsafe extern "C" fn allocate(size: usize, slot: *const usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    allocate_for(size, unsafe { Caller::at(slot) })
}

#[inline]
fn allocate_for(size: usize, caller: Caller) -> *mut c_void {
    match place(caller) {
        Place::Shared(node) => or_enomem(node.allocate(size, MALLOC_ALIGNMENT, caller)),
        Place::Stream => stream_memory::allocate(size),
        // SAFETY: plain allocation.
        Place::Private => unsafe { Private::malloc(size) },
    }
}

/// Memory for the program, as by `malloc`, or by `calloc` if it is to be zero; null if there is none.
pub(crate) fn get(size: usize, zeroed: bool) -> *mut c_void {
    if zeroed { zeroed_for(1, size, Caller::NONE) } else { allocate_for(size, Caller::NONE) }
}

/// Memory for the program at a multiple of `align`; null if there is none, or that is no power of two.
pub(crate) fn get_aligned(size: usize, align: usize) -> *mut c_void {
    aligned_for(align, size, Caller::NONE)
}

unsafe extern "C" fn allocate_zeroed(count: usize, size: usize, slot: *const usize) -> *mut c_void {
    // SAFETY: as for `allocate`.
    zeroed_for(count, size, unsafe { Caller::at(slot) })
}

fn zeroed_for(count: usize, size: usize, caller: Caller) -> *mut c_void {
    match place(caller) {
        Place::Shared(node) => {
            or_enomem(count.checked_mul(size).and_then(|bytes| node.allocate_zeroed(bytes, caller)))
        }
        Place::Stream => stream_memory::allocate_zeroed(count.saturating_mul(size)),
        // SAFETY: plain allocation.
        Place::Private => unsafe { Private::calloc(count, size) },
    }
}

/// `aligned_alloc` for the call whose return address is at `slot`.
///
/// # Safety
/// As the C library's `aligned_alloc`. The call has not returned yet.
pub(crate) unsafe extern "C" fn allocate_aligned(
    alignment: usize,
    size: usize,
    slot: *const usize,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    aligned_for(alignment, size, unsafe { Caller::at(slot) })
}

fn aligned_for(alignment: usize, size: usize, caller: Caller) -> *mut c_void {
    if !alignment.is_power_of_two() {
        crate::errno::set(libc::EINVAL);
        return std::ptr::null_mut();
    }
    match place(caller) {
        Place::Shared(node) => or_enomem(node.allocate(size, alignment.max(MALLOC_ALIGNMENT), caller)),
        // SAFETY: plain allocation.
        Place::Stream | Place::Private => unsafe { Private::memalign(alignment, size) },
    }
}

unsafe extern "C" fn allocate_posix(
    result: *mut *mut c_void,
    alignment: usize,
    size: usize,
    slot: *const usize,
) -> c_int {
    if !alignment.is_power_of_two() || !alignment.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    // SAFETY: as the caller of posix_memalign promises, `result` is writable.
    unsafe {
        let before = crate::errno::get();
        let pointer = allocate_aligned(alignment, size, slot);
        crate::errno::set(before);
        if pointer.is_null() {
            return libc::ENOMEM;
        }
        *result = pointer;
    }
    0
}

unsafe extern "C" fn allocate_pages(size: usize, slot: *const usize) -> *mut c_void {
    match size.checked_next_multiple_of(PAGE_SIZE) {
        // SAFETY: forwards the caller's request.
        Some(bytes) => unsafe { allocate_aligned(PAGE_SIZE, bytes, slot) },
        None => or_enomem(None),
    }
}

unsafe extern "C" fn reallocate_array(
    pointer: *mut c_void,
    count: usize,
    size: usize,
    slot: *const usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: forwards the caller's request.
        Some(bytes) => unsafe { reallocate(pointer, bytes, slot) },
        None => or_enomem(None),
    }
}

unsafe extern "C" fn reallocate(pointer: *mut c_void, size: usize, slot: *const usize) -> *mut c_void {
    // SAFETY: forwards the request; for the place see `allocate`.
    unsafe { reallocate_for(pointer, size, Caller::at(slot)) }
}

unsafe fn reallocate_for(pointer: *mut c_void, size: usize, caller: Caller) -> *mut c_void {
    if pointer.is_null() {
        return allocate_for(size, caller);
    }
    let shared = Node::current().filter(|node| node.is_shared(pointer as usize));
    let Some(node) = shared else {
        if stream_memory::contains(pointer as usize) {
            return resize_stream(pointer, size);
        }
        return match Node::inherited_block(pointer as usize) {
            // SAFETY: the block is that long.
            Some(old) => unsafe { take_over(pointer, old, size) },
            // SAFETY: the pointer came from the C library's allocator.
            None => unsafe { Private::realloc(pointer, size) },
        };
    };
    if size == 0 {
        node.free(pointer as usize);
        return std::ptr::null_mut();
    }
    let old = node.usable_size(pointer as usize);
    // The block stays unless it is too small, or would be mostly unused.
    if size <= old && size >= old / 2 {
        node.note_allocation(pointer as usize, size, caller, false);
        return pointer;
    }
    // Untouched pages of a large block stay untouched.
    let Some(moved) = node.allocate_zeroed(size, caller) else {
        return or_enomem(None);
    };
    let from = pointer as usize..pointer as usize + old.min(size);
    // SAFETY: both blocks are at least this long and do not overlap.
    unsafe { node.copy_to_zeros(from, moved) };
    node.free(pointer as usize);
    moved as *mut c_void
}

/// `realloc` in the child of a `fork`, for a block from before it: moves the block to the C library's heap. `old` is the block's size,
/// or 0 where only the node that has allocated it knows.
unsafe fn take_over(pointer: *mut c_void, old: usize, size: usize) -> *mut c_void {
    // What follows a shorter block can be read as well, and its copy may hold anything.
    let copied = if old == 0 { size } else { old.min(size) };
    // SAFETY: both are at least as long as what is copied, and do not overlap.
    unsafe {
        let moved = Private::malloc(size);
        if !moved.is_null() {
            std::ptr::copy_nonoverlapping(pointer.cast::<u8>(), moved.cast(), copied);
        }
        moved
    }
}

/// `realloc` of a block that belongs to a stream.
fn resize_stream(pointer: *mut c_void, size: usize) -> *mut c_void {
    let moved = stream_memory::allocate(size);
    if !moved.is_null() {
        let length = stream_memory::usable_size(pointer).min(size);
        // SAFETY: both blocks are at least that long, and do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(pointer.cast::<u8>(), moved.cast(), length) };
        stream_memory::free(pointer);
    }
    moved
}

/// In the child of a `fork`, a block from before it is not freed: its allocator is the parent's.
///
/// # Safety
/// As the C library's `free`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free(pointer: *mut c_void) {
    match Node::current() {
        Some(node) if node.is_shared(pointer as usize) => node.free(pointer as usize),
        None if Node::inherited_block(pointer as usize).is_some() => {}
        _ if stream_memory::contains(pointer as usize) => stream_memory::free(pointer),
        // SAFETY: the pointer came from the C library's allocator.
        _ => unsafe { Private::free(pointer) },
    }
}

/// # Safety
/// As the C library's `malloc_usable_size`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn malloc_usable_size(pointer: *mut c_void) -> usize {
    match Node::current() {
        Some(node) if node.is_shared(pointer as usize) => node.usable_size(pointer as usize),
        // SAFETY: the pointer came from the C library's allocator.
        _ => Node::inherited_block(pointer as usize)
            .unwrap_or_else(|| unsafe { Private::usable_size(pointer) }),
    }
}
