//! Mappings that last as long as the process.

use crate::MemoryError;
use crate::geometry::PAGE_SIZE;
use gondwana_page::Access;
use gondwana_racing::RacingBytes;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Stacks are to be executable, and so all that the program can read: a pointer to a function on one can be called by any thread.
static EXECUTABLE: AtomicBool = AtomicBool::new(false);

/// From now on, the program can execute all that it can read of shared memory. Called before any of that is mapped.
pub fn make_executable() {
    EXECUTABLE.store(true, Ordering::Relaxed);
}

/// What the program may do besides where it may read.
fn execute(executable: bool) -> i32 {
    if executable || EXECUTABLE.load(Ordering::Relaxed) { libc::PROT_EXEC } else { 0 }
}

/// Maps `bytes` of a memfd from `offset` on, shared, at exactly `base`, where nothing is mapped yet.
pub(crate) fn map_at(
    base: usize,
    bytes: usize,
    file: BorrowedFd<'_>,
    offset: usize,
) -> Result<(), MemoryError> {
    map(base, bytes, file, offset, libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE)?;
    leave_out_of_core_files(base, bytes);
    Ok(())
}

/// The kernel looks at each page of what it writes to a core file, which takes minutes for terabytes of addresses.
pub(crate) fn leave_out_of_core_files(base: usize, bytes: usize) {
    // SAFETY: changes nothing about the memory. A kernel that refuses writes larger files.
    unsafe { gondwana_sys::syscall!(libc::SYS_madvise, base, bytes, libc::MADV_DONTDUMP) };
}

/// Maps the beginning of a memfd, shared, at an address of the kernel's choice.
pub(crate) fn map_anywhere(bytes: usize, file: BorrowedFd<'_>) -> Result<*mut u8, MemoryError> {
    let (allowed, how) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_NORESERVE);
    // SAFETY: a new mapping at an address of the kernel's choice changes no existing memory.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, allowed, how, file.as_raw_fd(), 0) };
    if base == libc::MAP_FAILED {
        return Err(MemoryError::last("mapping shared memory"));
    }
    leave_out_of_core_files(base as usize, bytes);
    Ok(base.cast())
}

/// Maps `bytes` of a file from `offset` on copy on write, in place of what is mapped at `base`.
pub(crate) fn map_copy(
    base: usize,
    bytes: usize,
    file: BorrowedFd<'_>,
    offset: usize,
) -> Result<(), MemoryError> {
    map(base, bytes, file, offset, libc::MAP_PRIVATE | libc::MAP_FIXED)
}

/// Keeps addresses free, where nothing is mapped yet. Nobody can access them.
pub(crate) fn reserve(base: usize, bytes: usize) -> Result<(), MemoryError> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    map_file(libc::PROT_NONE, base, bytes, -1, 0, flags)
}

/// Like [`map_at`], from the beginning of the file, for reading.
pub(crate) fn map_read_only(base: usize, bytes: usize, file: BorrowedFd<'_>) -> Result<(), MemoryError> {
    let how = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE;
    map_with(libc::PROT_READ, base, bytes, file, 0, how)?;
    leave_out_of_core_files(base, bytes);
    Ok(())
}

/// Like [`map_at`], in place of what is mapped there now.
///
/// # Safety
/// Nothing but program data with the same contents may be in the range.
pub(crate) unsafe fn map_over(
    base: usize,
    bytes: usize,
    file: BorrowedFd<'_>,
    offset: usize,
) -> Result<(), MemoryError> {
    map(base, bytes, file, offset, libc::MAP_SHARED | libc::MAP_FIXED)
}

/// What the kernel calls this access. What cannot be accessed cannot be executed.
pub(crate) fn protection(access: Access, executable: bool) -> i32 {
    let execute = execute(executable);
    match access {
        Access::None => libc::PROT_NONE,
        Access::Read => libc::PROT_READ | execute,
        Access::Write => libc::PROT_READ | libc::PROT_WRITE | execute,
    }
}

/// Maps `bytes` of a memfd from `offset` on, shared and with this protection, in place of what is mapped at `base`. If it is to be
/// `filled`, the processor's tables are at once.
///
/// # Safety
/// Nobody can access what is replaced, and the file has the contents that belong there.
pub(crate) unsafe fn map_common(
    base: usize,
    bytes: usize,
    file: BorrowedFd<'_>,
    offset: usize,
    protection: i32,
    filled: bool,
) -> Result<(), MemoryError> {
    let how = libc::MAP_SHARED | libc::MAP_FIXED | if filled { libc::MAP_POPULATE } else { 0 };
    map_with(protection, base, bytes, file, offset, how)
}

/// Removes what is mapped in a range.
///
/// # Safety
/// Nobody uses it.
pub(crate) unsafe fn unmap(base: usize, bytes: usize) -> Result<(), MemoryError> {
    // By system call: in the preloaded library, the function of that name is the program's.
    // SAFETY: the caller's promise.
    if unsafe { gondwana_sys::syscall!(libc::SYS_munmap, base, bytes) } == 0 {
        return Ok(());
    }
    Err(MemoryError::last("making room in the program's view"))
}

fn map(base: usize, bytes: usize, file: BorrowedFd<'_>, offset: usize, how: i32) -> Result<(), MemoryError> {
    map_with(libc::PROT_READ | libc::PROT_WRITE | execute(false), base, bytes, file, offset, how)
}

fn map_with(
    allowed: i32,
    base: usize,
    bytes: usize,
    file: BorrowedFd<'_>,
    offset: usize,
    how: i32,
) -> Result<(), MemoryError> {
    map_file(allowed, base, bytes, file.as_raw_fd(), offset, libc::MAP_NORESERVE | how)
}

fn map_file(
    allowed: i32,
    base: usize,
    bytes: usize,
    file: RawFd,
    offset: usize,
    flags: i32,
) -> Result<(), MemoryError> {
    // By system call: in the preloaded library, the function of that name is the program's.
    // SAFETY: with MAP_FIXED_NOREPLACE the kernel refuses to touch existing mappings; with MAP_FIXED the caller
    // of `map_over` has promised that the range may be replaced.
    let address =
        unsafe { gondwana_sys::syscall!(libc::SYS_mmap, base, bytes, allowed, flags, file, offset) };
    if usize::try_from(address) == Ok(base) {
        return Ok(());
    }
    if address == -1 && std::io::Error::last_os_error().raw_os_error() != Some(libc::EEXIST) {
        return Err(MemoryError::last("mapping shared memory"));
    }
    Err(MemoryError::Occupied { base, bytes })
}

/// Zero-filled private memory of this many bytes. Pages are allocated at first use.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn map_private(bytes: usize) -> Result<*mut u8, MemoryError> {
    let (allowed, how) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // By system call: in the preloaded library, the function of that name is the program's.
    // SAFETY: a new mapping at an address of the kernel's choice changes no existing memory.
    let base = unsafe { gondwana_sys::syscall!(libc::SYS_mmap, 0, bytes, allowed, how, -1, 0) };
    if base == -1 {
        return Err(MemoryError::last("mapping private memory"));
    }
    let base = base as *mut u8;
    leave_out_of_core_files(base as usize, bytes);
    Ok(base)
}

/// A private zero-filled array of one value per page, allocated at first use.
///
/// Not synchronised: the owner of the value decides who may use it.
pub(crate) struct SparseTable<T: Copy> {
    base: *mut T,
    len: usize,
    values: PhantomData<T>,
}

// SAFETY: the table is plain memory owned by this value; access needs `&mut` or `&`.
unsafe impl<T: Copy + Send> Send for SparseTable<T> {}

impl<T: Copy> SparseTable<T> {
    /// `T` must be a plain number for which zero is valid.
    pub(crate) fn new(len: usize) -> Result<Self, MemoryError> {
        let base = map_private(len * size_of::<T>())?;
        Ok(Self { base: base.cast(), len, values: PhantomData })
    }

    /// How many values it has: no more than a number of a page tells.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.len).unwrap_or(u32::MAX)
    }

    pub(crate) fn get(&self, index: u32) -> T {
        assert!((index as usize) < self.len);
        // SAFETY: in bounds, and zero is a valid T.
        unsafe { self.base.add(index as usize).read() }
    }

    pub(crate) fn set(&mut self, index: u32, value: T) {
        assert!((index as usize) < self.len);
        // SAFETY: in bounds; `&mut self` excludes others.
        unsafe { self.base.add(index as usize).write(value) }
    }
}

/// On a read fault of a file mapping the kernel maps the aligned group of this many pages around it
/// (`fault_around_bytes`, with its default), as writable as the mapping. On a write fault it maps that page alone.
/// `MADV_POPULATE_READ` takes 1.7 us a page.
const MAPPED_AROUND: usize = 16;

/// Makes the kernel map pages that are in use.
pub(crate) fn read_ahead(pages: RacingBytes<'_>) {
    let group = MAPPED_AROUND * PAGE_SIZE;
    let start = pages.as_ptr() as usize;
    let mut at = 0;
    while at < pages.len() {
        // The value does not matter.
        pages.part(at..at + 1).copy_to(&mut [0]);
        at = (start + at + 1).next_multiple_of(group) - start;
    }
}
