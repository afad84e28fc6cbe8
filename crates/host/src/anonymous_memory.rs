//! Memory that is there to be placed.

use crate::sys;
use gondwana_page::PAGE_SIZE;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};

/// Anonymous memory of this process, readable and writable, returned to the kernel when it is dropped.
#[derive(Debug)]
pub struct AnonymousMemory {
    start: NonNull<u8>,
    /// In bytes, whole pages.
    length: usize,
}

// SAFETY: the memory belongs to no thread, and shared references to a region only touch it atomically.
unsafe impl Send for AnonymousMemory {}
// SAFETY: as above.
unsafe impl Sync for AnonymousMemory {}

impl AnonymousMemory {
    /// At least `bytes` bytes of untouched memory.
    pub fn new(bytes: usize) -> io::Result<Self> {
        Self::map(bytes, libc::PROT_READ | libc::PROT_WRITE)
    }

    fn map(bytes: usize, protection: libc::c_int) -> io::Result<Self> {
        let length = bytes
            .checked_next_multiple_of(PAGE_SIZE)
            .filter(|&length| length > 0)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        // SAFETY: a new mapping where the kernel likes; the arguments are those of anonymous memory.
        let start = unsafe {
            gondwana_sys::syscall!(
                libc::SYS_mmap,
                std::ptr::null_mut::<libc::c_void>(),
                length,
                protection,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == -1 {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start as *mut u8).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { start, length })
    }

    /// Reserves addresses for at least `bytes` bytes. They are inaccessible until they are [renewed](Self::renewed).
    pub fn reserved(bytes: usize) -> io::Result<Range<usize>> {
        let region = Self::map(bytes, libc::PROT_NONE)?;
        Ok(region.into_addresses())
    }

    /// Maps fresh memory over some addresses.
    ///
    /// # Safety
    /// They are whole pages that belong to the caller, and their present contents are not used any more.
    pub unsafe fn renewed(addresses: Range<usize>) -> io::Result<Self> {
        let (start, length) = (addresses.start, addresses.len());
        // SAFETY: as the caller promises.
        unsafe { map_at(start, length, libc::PROT_READ | libc::PROT_WRITE) }?;
        let start = NonNull::new(start as *mut u8).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { start, length })
    }

    /// Returns the memory at some addresses to the kernel and keeps the addresses reserved. They are inaccessible
    /// until they are [renewed](Self::renewed).
    ///
    /// # Safety
    /// As for [`AnonymousMemory::renewed`].
    pub unsafe fn vacate(addresses: Range<usize>) -> io::Result<()> {
        // SAFETY: as the caller promises.
        unsafe { map_at(addresses.start, addresses.len(), libc::PROT_NONE) }
    }

    /// Its addresses.
    #[must_use]
    pub fn addresses(&self) -> Range<usize> {
        let start = self.start.as_ptr() as usize;
        start..start + self.length
    }

    /// Its first byte.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The number of its pages.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.length / PAGE_SIZE
    }

    /// The address of a page.
    #[must_use]
    pub fn address(&self, page: usize) -> usize {
        assert!(page < self.pages());
        self.addresses().start + page * PAGE_SIZE
    }

    /// Touches a page as a write by the calling thread, without changing its contents.
    pub fn touch(&self, page: usize) {
        let byte = self.address(page) as *mut u8;
        // SAFETY: the address is inside the mapping, which is readable and writable and lives as long as `self`.
        let byte = unsafe { AtomicU8::from_ptr(byte) };
        let value = byte.load(Ordering::Relaxed);
        // Compilers reduce operations such as `fetch_or(0)` to a read. If this fails, another thread has written.
        let _ = byte.compare_exchange(value, value, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Touches consecutive pages, with one system call if possible.
    pub fn touch_all(&self, pages: Range<usize>) {
        if pages.is_empty() {
            return;
        }
        let start = self.address(pages.start);
        let length = self.address(pages.end - 1) + PAGE_SIZE - start;
        // Kernels before 5.14 lack it, and it may be interrupted.
        if pages.len() == 1 || sys::populate(&(start..start + length)).is_err() {
            pages.for_each(|page| self.touch(page));
        }
    }

    /// The first pages, and the rest, as regions of their own.
    ///
    /// # Panics
    /// If either would be empty.
    #[must_use]
    pub fn split(self, pages: usize) -> (Self, Self) {
        assert!((1..self.pages()).contains(&pages), "both parts have a page at least");
        let (start, length) = (self.start, pages * PAGE_SIZE);
        let rest = self.into_addresses().len() - length;
        // SAFETY: still inside the mapping.
        let middle = unsafe { start.add(length) };
        (Self { start, length }, Self { start: middle, length: rest })
    }

    /// Moves a page from another region here without copying. The old contents are lost, and the other region gets an
    /// untouched page.
    pub(crate) fn take(&self, page: usize, from: &Self, other: usize) -> io::Result<()> {
        let (target, source) = (self.address(page), from.address(other));
        // SAFETY: both pages belong to regions, and both stay mapped: there is no hole that another mapping could take.
        let moved = unsafe {
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
            gondwana_sys::syscall!(libc::SYS_mremap, source, PAGE_SIZE, PAGE_SIZE, flags, target)
        };
        if moved == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Releases ownership, for instance to C: the caller must `munmap` it.
    #[must_use]
    pub fn into_addresses(self) -> Range<usize> {
        let addresses = self.addresses();
        std::mem::forget(self);
        addresses
    }
}

/// Maps anonymous memory over an address range.
///
/// # Safety
/// As for [`AnonymousMemory::renewed`].
unsafe fn map_at(start: usize, length: usize, protection: libc::c_int) -> io::Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: as the caller promises.
    let mapped = unsafe { gondwana_sys::syscall!(libc::SYS_mmap, start, length, protection, flags, -1, 0) };
    if mapped == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl Drop for AnonymousMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody can have a reference that outlives `self`.
        unsafe { gondwana_sys::syscall!(libc::SYS_munmap, self.start.as_ptr(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages;

    #[test]
    fn memory_is_there_once_it_is_touched() {
        let region = AnonymousMemory::new(10 * PAGE_SIZE - 1).unwrap();
        sys::without_huge_pages(&region.addresses()).unwrap();
        assert_eq!(region.pages(), 10);
        assert_eq!(pages::count(0, region.addresses()).unwrap().absent, 10);
        [1, 4, 9].into_iter().for_each(|page| region.touch(page));
        let found = pages::count(0, region.addresses()).unwrap();
        assert_eq!((found.present(), found.absent), (3, 7));
    }

    #[test]
    fn parts_of_a_region_go_one_by_one() {
        let (first, rest) = AnonymousMemory::new(3 * PAGE_SIZE).unwrap().split(1);
        assert_eq!((first.pages(), rest.pages(), first.addresses().end), (1, 2, rest.addresses().start));
        drop(first);
        rest.touch(0);
        assert_eq!(pages::count(0, rest.addresses()).unwrap().present(), 1);
    }

    #[test]
    fn no_memory_and_more_than_there_can_be_are_refused() {
        assert_eq!(AnonymousMemory::new(0).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert_eq!(AnonymousMemory::new(usize::MAX).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert_eq!(AnonymousMemory::new(1 << 60).unwrap_err().raw_os_error(), Some(libc::ENOMEM));
    }
}
