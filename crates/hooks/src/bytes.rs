//! Functions of the C library that read and write memory of the program. The linker has the program's calls of `memcpy` come
//! to `__wrap_memcpy` and so on; the C library's own calls stay its own.

use crate::world::access;
use gondwana_sim::Kind;
use libc::{c_char, c_int, c_void};

/// A loop of the C library moves so many bytes at a time.
const STEP: usize = 8;

/// Reads `count` bytes at one address and writes as many to another, in turns.
pub(crate) fn copied(to: usize, from: usize, count: usize) {
    each(count, |at, width| {
        access(from + at, width, Kind::Read);
        access(to + at, width, Kind::Write);
    });
}

fn each(count: usize, mut visit: impl FnMut(usize, u64)) {
    for at in (0..count).step_by(STEP) {
        visit(at, STEP.min(count - at) as u64);
    }
}

fn seen(at: usize, count: usize, kind: Kind) {
    each(count, |offset, width| access(at + offset, width, kind));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_memcpy(to: *mut c_void, from: *const c_void, count: usize) -> *mut c_void {
    copied(to as usize, from as usize, count);
    // SAFETY: the program's own call.
    unsafe { libc::memcpy(to, from, count) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_memmove(to: *mut c_void, from: *const c_void, count: usize) -> *mut c_void {
    copied(to as usize, from as usize, count);
    // SAFETY: the program's own call.
    unsafe { libc::memmove(to, from, count) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_memset(to: *mut c_void, byte: c_int, count: usize) -> *mut c_void {
    seen(to as usize, count, Kind::Write);
    // SAFETY: the program's own call.
    unsafe { libc::memset(to, byte, count) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_memcmp(one: *const c_void, other: *const c_void, count: usize) -> c_int {
    each(count, |at, width| {
        access(one as usize + at, width, Kind::Read);
        access(other as usize + at, width, Kind::Read);
    });
    // SAFETY: the program's own call.
    unsafe { libc::memcmp(one, other, count) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_strlen(text: *const c_char) -> usize {
    // SAFETY: the program's own call.
    let length = unsafe { libc::strlen(text) };
    seen(text as usize, length + 1, Kind::Read);
    length
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_strcpy(to: *mut c_char, from: *const c_char) -> *mut c_char {
    // SAFETY: the program's own call.
    unsafe {
        copied(to as usize, from as usize, libc::strlen(from) + 1);
        libc::strcpy(to, from)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_strcmp(one: *const c_char, other: *const c_char) -> c_int {
    // SAFETY: the program's own call; neither is read beyond its end.
    unsafe {
        let mut equal = 0;
        while *one.add(equal) != 0 && *one.add(equal) == *other.add(equal) {
            equal += 1;
        }
        seen(one as usize, equal + 1, Kind::Read);
        seen(other as usize, equal + 1, Kind::Read);
        libc::strcmp(one, other)
    }
}
