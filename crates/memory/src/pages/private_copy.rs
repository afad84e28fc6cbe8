//! The pages of a child process, which is no node.

use super::Pages;
use crate::MemoryError;
use crate::mapping::map_copy;
use crate::memfd::data_in;
use gondwana_page::PAGE_SIZE;
use std::os::fd::AsFd;

impl Pages {
    /// In the child of a `fork`: replaces the program's view by a private copy of all contents, so that parent
    /// and child no longer see each other's writes. The parent must stand still meanwhile. Without `all`, only what the
    /// child writes to is copied, and elsewhere it sees what the parent writes.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn become_private(&mut self, all: bool) -> Result<(), MemoryError> {
        for segment in self.geometry.segments() {
            for pages in self.included(segment.first..segment.first + segment.pages) {
                let (base, offset) =
                    (self.geometry.address_of(pages.start), pages.start as usize * PAGE_SIZE);
                let length = (pages.end - pages.start) as usize * PAGE_SIZE;
                map_copy(base, length, self.file.as_fd(), offset)?;
                if all {
                    for data in data_in(&self.file, offset, offset + length) {
                        // SAFETY: part of the mapping just made.
                        unsafe { copy_private(base + data.start - offset, data.len()) };
                    }
                }
                let Some(common) = &self.common else { continue };
                for part in common.among(pages.clone()) {
                    let base = self.geometry.address_of(part.start);
                    common.map_copy(base, part.len() * PAGE_SIZE, part.start)?;
                    if all {
                        for used in common.used(part) {
                            // SAFETY: as above.
                            unsafe {
                                copy_private(self.geometry.address_of(used.start), used.len() * PAGE_SIZE);
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Has the kernel copy what is mapped copy on write: all at once, or, before Linux 5.14, by writing a byte of each page back as it is.
///
/// # Safety
/// The bytes are mapped like that, and the process has no other thread.
unsafe fn copy_private(base: usize, length: usize) {
    // SAFETY: the caller's promise.
    if unsafe { libc::madvise(base as *mut libc::c_void, length, libc::MADV_POPULATE_WRITE) } == 0 {
        return;
    }
    for at in (base..base + length).step_by(PAGE_SIZE) {
        let byte = at as *mut u8;
        // SAFETY: the caller's promise.
        unsafe { byte.write_volatile(byte.read_volatile()) };
    }
}
