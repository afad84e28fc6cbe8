//! Streams: the C library's buffers are private, but long transfers go straight between the kernel and the
//! program's memory. They pass through a private buffer here instead.

use super::delegations::{self, whole};
use super::descriptors::{Place, Reopened, close_with_copies, for_child, forget_kind, place, recall};
use super::stream_marks::unmark_elsewhere;
use super::streams_elsewhere::{Elsewhere, elsewhere};
use super::{BOUNCE, Buffer, is_shared, memory_streams, output, with_buffers};
use crate::alloc::{Purpose, with_purpose};
use crate::numbers;
use crate::private_stack::on_private_stack;
use gondwana_node::StreamAction;
use gondwana_sys::Argument;
use libc::{FILE, c_char, c_int, c_void, size_t, ssize_t};
use std::ffi::CStr;

/// Reads through a private buffer: `read` gets the buffer and the number of bytes.
///
/// # Safety
/// The target has room for that many bytes.
unsafe fn read_all(target: *mut c_void, bytes: usize, read: impl Fn(*mut c_void, usize) -> usize) -> usize {
    let mut bounce = vec![0u8; bytes.min(BOUNCE)];
    let mut done = 0;
    while done < bytes {
        let wanted = (bytes - done).min(BOUNCE);
        let got = read(bounce.as_mut_ptr().cast(), wanted);
        // SAFETY: the bounce buffer holds what was wanted, and the target all.
        unsafe { std::ptr::copy_nonoverlapping(bounce.as_ptr(), target.cast::<u8>().add(done), got) };
        done += got;
        if got < wanted {
            break;
        }
    }
    done
}

/// Writes through a private buffer: `write` gets the buffer and the number of bytes.
///
/// # Safety
/// The source has that many bytes.
unsafe fn write_all(
    source: *const c_void,
    bytes: usize,
    write: impl Fn(*const c_void, usize) -> usize,
) -> usize {
    let mut bounce = vec![0u8; bytes.min(BOUNCE)];
    let mut done = 0;
    while done < bytes {
        let wanted = (bytes - done).min(BOUNCE);
        // SAFETY: the bounce buffer has room for what is wanted, and the source has all.
        unsafe { std::ptr::copy_nonoverlapping(source.cast::<u8>().add(done), bounce.as_mut_ptr(), wanted) };
        let put = write(bounce.as_ptr().cast(), wanted);
        done += put;
        if put < wanted {
            break;
        }
    }
    done
}

macro_rules! reading {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(target: *mut c_void, size: size_t, count: size_t, stream: *mut FILE) -> size_t {
            let real = crate::real!($name: fn(*mut c_void, size_t, size_t, *mut FILE) -> size_t);
            let bytes = size.saturating_mul(count);
            // SAFETY: forwards the caller's arguments, or with a buffer that holds what is wanted.
            unsafe {
                if let Some(there) = elsewhere(stream) {
                    return there.read(target, bytes).checked_div(size).unwrap_or(0);
                }
                whole(stream, || {
                    if !is_shared(target, bytes) {
                        return real(target, size, count, stream);
                    }
                    let done = read_all(target, bytes, |buffer, wanted| real(buffer, 1, wanted, stream));
                    done.checked_div(size).unwrap_or(0)
                })
            }
        }
    )*};
}

reading! { fread fread_unlocked }

/// `fread` that ends the program if the target is too small, as the C library does.
macro_rules! reading_checked {
    ($($name:ident => $unchecked:ident;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            target: *mut c_void,
            room: size_t,
            size: size_t,
            count: size_t,
            stream: *mut FILE,
        ) -> size_t {
            // SAFETY: forwards the caller's arguments.
            unsafe {
                if size.saturating_mul(count) > room {
                    let real = crate::real!($name: fn(*mut c_void, size_t, size_t, size_t, *mut FILE) -> size_t);
                    return real(target, room, size, count, stream);
                }
                $unchecked(target, size, count, stream)
            }
        }
    )*};
}

reading_checked! {
    __fread_chk => fread;
    __fread_unlocked_chk => fread_unlocked;
}

macro_rules! writing {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(source: *const c_void, size: size_t, count: size_t, stream: *mut FILE) -> size_t {
            let real = crate::real!($name: fn(*const c_void, size_t, size_t, *mut FILE) -> size_t);
            let bytes = size.saturating_mul(count);
            // SAFETY: forwards the caller's arguments, or with a buffer that holds what is wanted.
            unsafe {
                if let Some(there) = elsewhere(stream) {
                    return there.write(source, bytes).checked_div(size).unwrap_or(0);
                }
                if !is_shared(source, bytes) {
                    return real(source, size, count, stream);
                }
                let done = write_all(source, bytes, |buffer, wanted| real(buffer, 1, wanted, stream));
                done.checked_div(size).unwrap_or(0)
            }
        }
    )*};
}

writing! { fwrite fwrite_unlocked }

macro_rules! putting {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(text: *const c_char, stream: *mut FILE) -> c_int {
            if let Some(there) = elsewhere(stream) {
                // SAFETY: the caller passes a string.
                return unsafe {
                    let length = libc::strlen(text);
                    if there.write(text.cast(), length) == length { 1 } else { -1 }
                };
            }
            // SAFETY: forwards the caller's arguments.
            with_buffers(&[Buffer::string(text)], || unsafe {
                crate::real!($name: fn(*const c_char, *mut FILE) -> c_int)(text, stream)
            })
        }
    )*};
}

putting! { fputs fputs_unlocked }

/// # Safety
/// As the C library's `puts`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn puts(text: *const c_char) -> c_int {
    // SAFETY: forwards the caller's argument.
    with_buffers(&[Buffer::string(text)], || unsafe { crate::real!(puts: fn(*const c_char) -> c_int)(text) })
}

/// # Safety
/// As the C library's `setvbuf`. A buffer in shared memory is not used: the library allocates its own.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn setvbuf(
    stream: *mut FILE,
    buffer: *mut c_char,
    mode: c_int,
    size: size_t,
) -> c_int {
    if let Some(there) = elsewhere(stream) {
        return there.int(StreamAction::Buffer { mode, size: size as u64 });
    }
    if output::stays_unbuffered(stream) {
        return 0;
    }
    let buffer = if is_shared(buffer.cast(), size) { std::ptr::null_mut() } else { buffer };
    // SAFETY: forwards the caller's arguments.
    whole(stream, || unsafe {
        crate::real!(setvbuf: fn(*mut FILE, *mut c_char, c_int, size_t) -> c_int)(stream, buffer, mode, size)
    })
}

/// # Safety
/// As the C library's `setbuf`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn setbuf(stream: *mut FILE, buffer: *mut c_char) {
    // SAFETY: forwards the caller's arguments.
    unsafe { setbuffer(stream, buffer, libc::BUFSIZ as size_t) };
}

/// # Safety
/// As the C library's `setbuffer`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn setbuffer(stream: *mut FILE, buffer: *mut c_char, size: size_t) {
    let mode = if buffer.is_null() { libc::_IONBF } else { libc::_IOFBF };
    // SAFETY: forwards the caller's arguments.
    unsafe { setvbuf(stream, buffer, mode, size) };
}

/// # Safety
/// As the C library's `setlinebuf`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn setlinebuf(stream: *mut FILE) {
    // SAFETY: forwards the caller's argument.
    unsafe { setvbuf(stream, std::ptr::null_mut(), libc::_IOLBF, 0) };
}

/// The by-value argument of `fopencookie`: the functions that read, write, seek and close.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct CookieFunctions([*mut c_void; 4]);

impl CookieFunctions {
    /// Those of a stream that is only read.
    pub(super) fn reading(read: unsafe extern "C" fn(*mut c_void, *mut c_char, usize) -> ssize_t) -> Self {
        Self([read as *mut c_void, std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut()])
    }
}

/// Defines functions that open a stream or directory; the descriptor argument follows the name, with the call where another node has
/// it open.
macro_rules! opening {
    ($($purpose:ident fn $name:ident$([$fd:ident |$there:ident| $elsewhere:expr])?($($argument:ident: $type:ty),* $(,)?) -> $result:ty {
        $($buffer:expr),*
    })*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            $(match place(&[$fd], stringify!($name)) {
                Place::Here => {}
                Place::There($there) => return $elsewhere,
                Place::Nowhere => return std::ptr::null_mut(),
            })?
            with_purpose(Purpose::$purpose, || with_buffers(&[$($buffer),*], || {
                // SAFETY: forwards the caller's arguments.
                unsafe { crate::real!($name: fn($($type),*) -> $result)($($argument),*) }
            }))
        }
    )*};
}

opening! {
    Stream fn fopen(path: *const c_char, mode: *const c_char) -> *mut FILE {
        Buffer::string(path), Buffer::string(mode)
    }
    Stream fn fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE {
        Buffer::string(path), Buffer::string(mode)
    }
    Stream fn fdopen[
        fd |there| there.call("fdopen", &[fd.into(), mode.word()], &[Buffer::string(mode)])
    ](fd: c_int, mode: *const c_char) -> *mut FILE { Buffer::string(mode) }
    Stream fn tmpfile() -> *mut FILE {}
    Stream fn tmpfile64() -> *mut FILE {}
    Stream fn fmemopen(memory: *mut c_void, size: size_t, mode: *const c_char) -> *mut FILE { Buffer::string(mode) }
    Stream fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: CookieFunctions) -> *mut FILE {
        Buffer::string(mode)
    }
    Stream fn fdopendir[fd |there| there.call("fdopendir", &[fd.into()], &[])](fd: c_int) -> *mut libc::DIR {}
}

/// # Safety
/// As the C library's `popen`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn popen(command: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: the caller passes strings.
    let [command, mode] = [command, mode].map(|text| unsafe { CStr::from_ptr(text).to_owned() });
    let mut stream = std::ptr::null_mut();
    // The child shares this process's memory until the shell starts, and cannot wait for pages.
    let mut start = || {
        // SAFETY: passes strings.
        stream = unsafe {
            crate::real!(popen: fn(*const c_char, *const c_char) -> *mut FILE)(
                command.as_ptr(),
                mode.as_ptr(),
            )
        };
    };
    let reopened = Reopened::for_program();
    with_purpose(Purpose::Stream, || for_child(|| on_private_stack(&mut start)));
    drop(reopened);
    super::descriptors::notice();
    stream
}

/// The descriptor of a stream or directory; -1 for streams in memory.
unsafe fn descriptor_of<T>(tell: unsafe extern "C" fn(*mut T) -> c_int, stream: *mut T) -> c_int {
    let before = crate::errno::get();
    // SAFETY: the caller passes an open stream and the function for its kind.
    let descriptor = unsafe { tell(stream) };
    crate::errno::set(before);
    descriptor
}

/// Defines functions that close a stream.
macro_rules! closing {
    ($($name:ident => $elsewhere:ident;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(stream: *mut FILE) -> c_int {
            if let Some(there) = elsewhere(stream) {
                return there.close(StreamAction::$elsewhere);
            }
            unmark_elsewhere(stream);
            delegations::forget(stream);
            memory_streams::closing(stream, || {
                // SAFETY: forwards the caller's argument, which is not used after it is closed.
                unsafe {
                    let descriptor = descriptor_of(crate::real!(fileno: fn(*mut FILE) -> c_int), stream);
                    close_with_copies(descriptor, || crate::real!($name: fn(*mut FILE) -> c_int)(stream))
                }
            })
        }
    )*};
}

closing! {
    fclose => Close;
    pclose => CloseCommand;
}

impl Elsewhere {
    /// `freopen`.
    ///
    /// # Safety
    /// The mode is a string, and the path null or one.
    unsafe fn reopen(&self, path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE {
        // SAFETY: the caller's promise.
        let [mode, path] = [mode, path].map(|text| unsafe {
            if text.is_null() { vec![] } else { CStr::from_ptr(text).to_bytes_with_nul().to_vec() }
        });
        let action = StreamAction::Reopen(!path.is_empty());
        if self.ask(action, [mode, path].concat()).result == 0 { stream } else { std::ptr::null_mut() }
    }
}

/// Defines `freopen`, which puts another file into a stream.
macro_rules! reopening {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            path: *const c_char,
            mode: *const c_char,
            stream: *mut FILE,
        ) -> *mut FILE {
            if let Some(there) = elsewhere(stream) {
                // SAFETY: the caller passes strings, or null for the path.
                return unsafe { there.reopen(path, mode, stream) };
            }
            unmark_elsewhere(stream);
            delegations::forget(stream);
            // SAFETY: forwards the caller's argument.
            let descriptor = unsafe { descriptor_of(crate::real!(fileno: fn(*mut FILE) -> c_int), stream) };
            let reopened = with_buffers(&[Buffer::string(path), Buffer::string(mode)], || {
                // SAFETY: forwards the caller's arguments.
                unsafe {
                    crate::real!($name: fn(*const c_char, *const c_char, *mut FILE) -> *mut FILE)(path, mode, stream)
                }
            });
            forget_kind(descriptor);
            recall(descriptor);
            reopened
        }
    )*};
}

reopening! { freopen freopen64 }

/// Reads up to and including `end`, or `most` bytes.
///
/// # Safety
/// The stream is open, and this node's.
pub(super) unsafe fn bytes_to(end: u8, most: usize, stream: *mut FILE) -> Vec<u8> {
    whole(stream, || {
        let mut bytes = Vec::new();
        let next = crate::real!(getc_unlocked: fn(*mut FILE) -> c_int);
        while bytes.len() < most && bytes.last() != Some(&end) {
            // SAFETY: as promised; the stream is locked.
            let byte = unsafe { next(stream) };
            if byte == libc::EOF {
                break;
            }
            bytes.push(numbers::byte(byte));
        }
        bytes
    })
}

/// Reads up to and including `end` into a block that grows as needed. The C library's own function would allocate
/// the stream's buffer, which must be private, in the same call as the line, which must be shared.
unsafe fn read_line(line: *mut *mut c_char, size: *mut size_t, end: c_int, stream: *mut FILE) -> ssize_t {
    if line.is_null() || size.is_null() {
        crate::errno::set(libc::EINVAL);
        return -1;
    }
    let mut bytes = match elsewhere(stream) {
        Some(there) => there.line(usize::MAX, numbers::byte(end)),
        // SAFETY: the caller passes an open stream.
        None => unsafe { bytes_to(numbers::byte(end), usize::MAX, stream) },
    };
    if bytes.is_empty() {
        return -1;
    }
    bytes.push(0);
    // SAFETY: the caller passes null or a block from `malloc`, and its size.
    unsafe {
        if (*line).is_null() || *size < bytes.len() {
            let wanted = bytes.len().next_power_of_two().max(LEAST_LINE);
            let block = crate::alloc::resize((*line).cast(), wanted);
            if block.is_null() {
                return -1;
            }
            *line = block.cast();
            *size = wanted;
        }
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), (*line).cast::<u8>(), bytes.len());
    }
    bytes.len().cast_signed() - 1
}

/// The least allocation of `getline`.
const LEAST_LINE: usize = 128;

macro_rules! reading_a_line {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            line: *mut *mut c_char,
            size: *mut size_t,
            end: c_int,
            stream: *mut FILE,
        ) -> ssize_t {
            // SAFETY: forwards the caller's arguments.
            unsafe { read_line(line, size, end, stream) }
        }
    )*};
}

reading_a_line! { getdelim __getdelim }

/// # Safety
/// As the C library's `getline`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn getline(
    line: *mut *mut c_char,
    size: *mut size_t,
    stream: *mut FILE,
) -> ssize_t {
    // SAFETY: forwards the caller's arguments.
    unsafe { read_line(line, size, c_int::from(b'\n'), stream) }
}
