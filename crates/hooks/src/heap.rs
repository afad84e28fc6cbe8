//! The program's heap and its threads' stacks, at addresses that are the same in each run.

use crate::world::world;
use crate::{plan, recorder};
use dlmalloc::{Allocator, Dlmalloc};
use gondwana_interpose::{MALLOC_ALIGNMENT, errno};
use libc::{c_int, c_void};
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The heap: 256 GiB of addresses, none of which takes memory before it is used.
pub(crate) const REGION: Range<usize> = 0x1000_0000_0000..0x1040_0000_0000;

/// Bytes of a thread's stack with its thread-local variables.
pub(crate) const STACK: usize = 16 << 20;

/// Stacks of all threads that may exist at a time.
pub(crate) const STACKS: Range<usize> = 0x2000_0000_0000..0x2000_0000_0000 + 2048 * STACK;

/// Maps memory at an address that nobody else has.
pub(crate) fn map(range: &Range<usize>) -> Result<(), String> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: replaces nothing.
    let at = unsafe {
        gondwana_sys::syscall!(libc::SYS_mmap, range.start, range.len(), access, flags, -1, 0_usize)
    };
    if at as usize == range.start {
        return Ok(());
    }
    Err(format!("{:#x} bytes of addresses from {:#x} on are not to be had", range.len(), range.start))
}

/// Gives the heap its memory from the bottom up.
struct Bottom {
    /// Where the part begins that was not given out yet; 0 before the heap is mapped.
    end: AtomicUsize,
}

// SAFETY: parts that are given out do not overlap, and are mapped.
unsafe impl Allocator for Bottom {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let end = match self.end.load(Ordering::Relaxed) {
            0 if map(&REGION).is_err() => return (ptr::null_mut(), 0, 0),
            0 => REGION.start,
            end => end,
        };
        match end.checked_add(size) {
            Some(next) if next <= REGION.end => {
                self.end.store(next, Ordering::Relaxed);
                (end as *mut u8, size, 0)
            }
            _ => (ptr::null_mut(), 0, 0),
        }
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        ptr::null_mut()
    }

    fn free_part(&self, _: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    fn free(&self, _: *mut u8, _: usize) -> bool {
        false
    }

    fn can_release_part(&self, _: u32) -> bool {
        false
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        4096
    }
}

static mut HEAP: Dlmalloc<Bottom> = Dlmalloc::new_with_allocator(Bottom { end: AtomicUsize::new(0) });

/// Before each block: how long it is, how far before it the allocator's own block begins, and for how much the alignment
/// made that one longer.
#[derive(Clone, Copy)]
#[repr(C)]
struct Header {
    size: usize,
    before: u32,
    extra: u32,
}

const HEADER: usize = size_of::<Header>();

/// A block with its header, or null. `slot` is where the return address of the program's call is.
pub(crate) fn allocate(size: usize, alignment: usize, zeroed: bool, slot: *const usize) -> *mut c_void {
    let bytes = size;
    // A block that a plan is about has pages of its own.
    let asked = world().and_then(|world| plan::asked(world, size, slot));
    let (alignment, room) = match &asked {
        Some(asked) => (alignment.max(asked.alignment), size.checked_next_multiple_of(asked.alignment)),
        None => (alignment, Some(size)),
    };
    let size = room.unwrap_or(usize::MAX);
    let extra = if alignment > MALLOC_ALIGNMENT { alignment } else { 0 };
    let total = size.checked_add(HEADER + extra);
    let total = total.filter(|total| *total <= REGION.len() && u32::try_from(HEADER + extra).is_ok());
    // SAFETY: one host thread at a time allocates.
    let heap = unsafe { (&raw mut HEAP).as_mut().unwrap_unchecked() };
    let start = total.map_or(ptr::null_mut(), |total| {
        // SAFETY: the alignment is a power of two.
        unsafe {
            if zeroed { heap.calloc(total, MALLOC_ALIGNMENT) } else { heap.malloc(total, MALLOC_ALIGNMENT) }
        }
    }) as usize;
    if start == 0 {
        errno::set(libc::ENOMEM);
        return ptr::null_mut();
    }
    let block = (start + HEADER).next_multiple_of(alignment.max(MALLOC_ALIGNMENT));
    let header = Header { size, before: (block - start) as u32, extra: extra as u32 };
    // SAFETY: the allocator's block has room for the header before this one.
    unsafe { ((block - HEADER) as *mut Header).write(header) };
    if let Some(world) = world() {
        if world.recorder.is_some() {
            recorder::allocated(world, block, bytes, slot);
        }
        if let Some(asked) = asked {
            asked.place(world, &(block..block + size));
        }
    }
    block as *mut c_void
}

/// # Safety
/// The block is from [`allocate`].
unsafe fn header(block: *mut c_void) -> Header {
    // SAFETY: as the caller promises.
    unsafe { ((block as usize - HEADER) as *const Header).read() }
}

gondwana_interpose::allocator! {
    malloc: allocate_plain,
    calloc: allocate_zeroed,
    realloc: reallocate,
    reallocarray: reallocate_array,
    memalign: allocate_aligned,
    aligned_alloc: allocate_aligned,
    posix_memalign: allocate_posix,
    valloc: allocate_page,
    pvalloc: allocate_pages,
}

unsafe extern "C" fn allocate_plain(size: usize, slot: *const usize) -> *mut c_void {
    allocate(size, MALLOC_ALIGNMENT, false, slot)
}

unsafe extern "C" fn allocate_zeroed(count: usize, size: usize, slot: *const usize) -> *mut c_void {
    match count.checked_mul(size) {
        Some(bytes) => allocate(bytes, MALLOC_ALIGNMENT, true, slot),
        None => {
            errno::set(libc::ENOMEM);
            ptr::null_mut()
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn free(block: *mut c_void) {
    // Blocks from before this library was there are not ours.
    if !REGION.contains(&(block as usize)) {
        return;
    }
    // SAFETY: the program gives back a block of this heap; one host thread at a time does.
    unsafe {
        let Header { size, before, extra } = header(block);
        let heap = (&raw mut HEAP).as_mut().unwrap_unchecked();
        let start = (block as usize - before as usize) as *mut u8;
        heap.free(start, HEADER + extra as usize + size, MALLOC_ALIGNMENT);
    }
}

unsafe extern "C" fn reallocate(block: *mut c_void, size: usize, slot: *const usize) -> *mut c_void {
    if block.is_null() {
        return allocate(size, MALLOC_ALIGNMENT, false, slot);
    }
    if size == 0 {
        // SAFETY: as the caller promises.
        unsafe { free(block) };
        return ptr::null_mut();
    }
    let moved = allocate(size, MALLOC_ALIGNMENT, false, slot);
    if !moved.is_null() {
        // SAFETY: the old block has as many bytes as its header says, and the new one is another.
        unsafe {
            let kept = header(block).size.min(size);
            crate::bytes::copied(moved as usize, block as usize, kept);
            ptr::copy_nonoverlapping(block.cast::<u8>(), moved.cast(), kept);
            free(block);
        }
    }
    moved
}

unsafe extern "C" fn reallocate_array(
    block: *mut c_void,
    count: usize,
    size: usize,
    slot: *const usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: as the caller promises.
        Some(bytes) => unsafe { reallocate(block, bytes, slot) },
        None => {
            errno::set(libc::ENOMEM);
            ptr::null_mut()
        }
    }
}

unsafe extern "C" fn allocate_aligned(alignment: usize, size: usize, slot: *const usize) -> *mut c_void {
    if !alignment.is_power_of_two() {
        errno::set(libc::EINVAL);
        return ptr::null_mut();
    }
    allocate(size, alignment, false, slot)
}

unsafe extern "C" fn allocate_posix(
    to: *mut *mut c_void,
    alignment: usize,
    size: usize,
    slot: *const usize,
) -> c_int {
    if !alignment.is_power_of_two() || alignment < size_of::<usize>() {
        return libc::EINVAL;
    }
    let block = allocate(size, alignment, false, slot);
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the program's variable.
    unsafe { to.write(block) };
    0
}

unsafe extern "C" fn allocate_page(size: usize, slot: *const usize) -> *mut c_void {
    allocate(size, 4096, false, slot)
}

unsafe extern "C" fn allocate_pages(size: usize, slot: *const usize) -> *mut c_void {
    allocate(size.next_multiple_of(4096), 4096, false, slot)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if REGION.contains(&(block as usize)) {
        // SAFETY: a block of this heap.
        unsafe { header(block).size }
    } else {
        0
    }
}
