//! Streams of pipes, sockets and the like order what threads do, as calls on their descriptors do (`channels`).
//!
//! The C library reads, writes and closes the descriptors of its streams by functions that are in constant tables: when a buffer is empty
//! or full, at a flush, a close, and the end of the program. Functions of this library take their places there. So what only uses a
//! buffer costs nothing, inlined code included. By two more of the tables' functions `unlocked_output` learns who prints.

use super::buffered;
use super::channels::{giving_stream, taking_stream};
use super::descriptors::forget_kind;
use super::record_locks::closing;
use super::{output, unlocked_output};
use crate::next_function;
use crate::report;
use gondwana_elf::loaded;
use gondwana_interpose::{NextFunction, c_name};
use libc::{FILE, c_int, c_void, size_t, ssize_t};

type Transfer = unsafe extern "C" fn(*mut FILE, *mut c_void, ssize_t) -> ssize_t;
type Put = unsafe extern "C" fn(*mut FILE, *const c_void, size_t) -> size_t;
type Overflow = unsafe extern "C" fn(*mut FILE, c_int) -> c_int;
type Close = unsafe extern "C" fn(*mut FILE) -> c_int;

/// Puts this library's functions into the C library's tables. No other thread may run yet.
pub(crate) fn begin() {
    let in_c_library = libc::gnu_get_libc_version as *const () as usize;
    // SAFETY: nothing is unloaded during the start.
    let objects = unsafe { loaded::select(|_| true) };
    let Some(library) = objects.iter().find(|object| object.addresses().contains(&in_c_library)) else {
        return;
    };
    let tables = library.relocated_once();
    for (function, replacement) in [
        (&READ, read as *const () as usize),
        (&WRITE, write as *const () as usize),
        (&PUT, put as *const () as usize),
        (&OVERFLOW, overflow as *const () as usize),
        (&CLOSE, close as *const () as usize),
        (&CLOSE_COMMAND, close_command as *const () as usize),
    ] {
        let original = next_function::address(function);
        let words = tables.start.next_multiple_of(size_of::<usize>())..tables.end;
        let mut places = words.step_by(size_of::<usize>()).map(|word| word as *mut u64).filter(|&place| {
            // SAFETY: the loader has mapped these constants.
            unsafe { place.read() == original as u64 }
        });
        let Some(first) = places.next() else {
            report::fatal(&format!(
                "the C library has no table of streams with {}: Gondwana does not know this version of it",
                function.name().to_string_lossy()
            ));
        };
        for place in std::iter::once(first).chain(places) {
            // SAFETY: a function of the same type; no other thread runs.
            unsafe { library.overwrite(place, replacement as u64) };
        }
    }
}

static READ: NextFunction = NextFunction::new(c_name!(_IO_file_read));
static WRITE: NextFunction = NextFunction::new(c_name!(_IO_file_write));
static PUT: NextFunction = NextFunction::new(c_name!(_IO_file_xsputn));
static OVERFLOW: NextFunction = NextFunction::new(c_name!(_IO_file_overflow));
static CLOSE: NextFunction = NextFunction::new(c_name!(_IO_file_close));
static CLOSE_COMMAND: NextFunction = NextFunction::new(c_name!(_IO_proc_close));

/// Fills the buffer of a stream, or reads past it.
unsafe extern "C" fn read(stream: *mut FILE, target: *mut c_void, bytes: ssize_t) -> ssize_t {
    // SAFETY: the C library calls this with a stream that it has locked, in place of its own function.
    unsafe {
        let real: Transfer = std::mem::transmute(next_function::address(&READ));
        taking_stream(buffered::descriptor(stream), || real(stream, target, bytes))
    }
}

/// Writes out what is in the buffer of a stream, or past it.
unsafe extern "C" fn write(stream: *mut FILE, source: *mut c_void, bytes: ssize_t) -> ssize_t {
    // SAFETY: the C library has the bytes.
    if let Some(printed) = unsafe { output::print_by_first(stream, source, bytes.unsigned_abs()) } {
        return if printed == 0 && bytes > 0 { -1 } else { printed.cast_signed() };
    }
    output::before_writing(stream);
    // SAFETY: as in `read`.
    unsafe {
        let real: Transfer = std::mem::transmute(next_function::address(&WRITE));
        giving_stream(buffered::descriptor(stream), || real(stream, source, bytes))
    }
}

/// Puts bytes into the buffer of a stream, or writes them out.
unsafe extern "C" fn put(stream: *mut FILE, source: *const c_void, bytes: size_t) -> size_t {
    // SAFETY: as in `read`.
    unsafe {
        let real: Put = std::mem::transmute(next_function::address(&PUT));
        unlocked_output::printing(stream, || real(stream, source, bytes))
    }
}

/// Puts a byte for which there was no room into the buffer of a stream.
unsafe extern "C" fn overflow(stream: *mut FILE, byte: c_int) -> c_int {
    // SAFETY: as in `read`.
    unsafe {
        let real: Overflow = std::mem::transmute(next_function::address(&OVERFLOW));
        unlocked_output::printing(stream, || real(stream, byte))
    }
}

/// Closes the descriptor of a stream, which the other end notices.
unsafe fn close_by(function: &'static NextFunction, stream: *mut FILE) -> c_int {
    // SAFETY: as in `read`.
    unsafe {
        let real: Close = std::mem::transmute(next_function::address(function));
        let descriptor = buffered::descriptor(stream);
        giving_stream(descriptor, || {
            // Right after it, another thread may open something at that number.
            forget_kind(descriptor);
            closing(descriptor, || real(stream))
        })
    }
}

unsafe extern "C" fn close(stream: *mut FILE) -> c_int {
    // SAFETY: as in `read`.
    unsafe { close_by(&CLOSE, stream) }
}

unsafe extern "C" fn close_command(stream: *mut FILE) -> c_int {
    // SAFETY: as in `read`.
    unsafe { close_by(&CLOSE_COMMAND, stream) }
}
