//! Files in memory, which other processes can map.

use crate::MemoryError;
use crate::files::out_of_the_way;
use std::ffi::CStr;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// An empty file in memory that other processes can map. Pages are allocated at first use.
pub(crate) fn memfd(name: &CStr) -> Result<OwnedFd, MemoryError> {
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(MemoryError::last("memfd_create"));
    }
    // SAFETY: the kernel has just given us this descriptor.
    Ok(out_of_the_way(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// Gives a [`memfd`] its length.
pub(crate) fn set_length(file: &OwnedFd, bytes: usize) -> Result<(), MemoryError> {
    let sized = file.try_clone().and_then(|file| std::fs::File::from(file).set_len(bytes as u64));
    sized.map_err(|source| MemoryError::System { what: "sizing the span", source })
}

/// The parts of a file between two offsets that hold data, page aligned.
pub(crate) fn data_in(file: &OwnedFd, start: usize, end: usize) -> Vec<Range<usize>> {
    let mut parts = vec![];
    let mut at = start;
    while let Some(part) = next_data(file, at, end) {
        at = part.end;
        parts.push(part);
    }
    parts
}

/// The first part of a file between two offsets that holds data, page aligned.
pub(crate) fn next_data(file: &OwnedFd, start: usize, end: usize) -> Option<Range<usize>> {
    let seek = |from: usize, whence: i32| {
        let from = libc::off_t::try_from(from).ok()?;
        // SAFETY: seeking touches no memory.
        let found = unsafe { libc::lseek(file.as_raw_fd(), from, whence) };
        usize::try_from(found).ok().filter(|&found| found < end)
    };
    let data = seek(start, libc::SEEK_DATA)?;
    Some(data..seek(data, libc::SEEK_HOLE).unwrap_or(end))
}
