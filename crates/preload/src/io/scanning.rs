//! `scanf` and its relatives. For a stream of another node the C library reads a stream of this one, which gets its bytes from
//! there; what it has not used is given back. Meanwhile the stream is locked for the calling thread.
//!
//! The C library has no such streams for wide characters. There the opener makes the call, and writes to the program's memory.

use super::buffered;
use super::delegations::whole;
use super::stream_memory::standard_input;
use super::streams::CookieFunctions;
use super::streams_elsewhere::{Elsewhere, elsewhere};
use super::wide_streams::WIDTH;
use crate::alloc::{Purpose, with_purpose};
use crate::errno;
use crate::numbers;
use gondwana_node::StreamAction;
use libc::{FILE, c_char, c_int, c_void, ssize_t, wchar_t};
use std::ptr::null;

/// Bytes that are read at a time.
const PIECE: usize = 4096;

/// Where the bytes come from.
struct Source {
    there: Elsewhere,
    /// What is read from now on has been read before.
    is_over: bool,
}

impl Source {
    /// Some bytes: none at the end, `None` after an error.
    fn some(&self, room: usize) -> Option<Vec<u8>> {
        if self.is_over {
            return Some(vec![]);
        }
        let take = || self.there.take(|here| Some(here.len().min(room)));
        if let Some(bytes) = take() {
            return Some(bytes);
        }
        let done = self.there.ask(StreamAction::Get(true), vec![]);
        if done.result < 0 {
            return (done.error == 0).then(Vec::new);
        }
        let byte = numbers::byte(numbers::int(done.result));
        match self.there.untake(usize::from(done.delegation != 0)) {
            0 if done.delegation != 0 => take(),
            _ => Some(vec![byte]),
        }
    }

    /// Gives back what was not used.
    fn give_back(&mut self, stream: *mut FILE) {
        self.is_over = true;
        let next = crate::real!(fgetc: fn(*mut FILE) -> c_int);
        // SAFETY: the stream is open.
        let unused: Vec<c_int> =
            std::iter::from_fn(|| Some(unsafe { next(stream) }).filter(|&next| next != libc::EOF)).collect();
        let left = self.there.untake(unused.len());
        unused[..left].iter().rev().for_each(|&byte| {
            self.there.result(StreamAction::Unget(byte));
        });
    }
}

/// The function that reads, of the stream that is read here.
unsafe extern "C" fn read(source: *mut c_void, target: *mut c_char, room: usize) -> ssize_t {
    // SAFETY: the stream was made with a source, and has room.
    unsafe {
        let source = &*source.cast::<Source>();
        let Some(bytes) = source.some(room) else { return -1 };
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), target.cast(), bytes.len());
        bytes.len().cast_signed()
    }
}

/// Reads a stream of another node by `scan`, to which it passes one of this node.
fn scan_elsewhere(there: Elsewhere, scan: impl FnOnce(*mut FILE) -> c_int) -> c_int {
    there.lock();
    let mut source = Box::new(Source { there, is_over: false });
    let mut buffer = vec![0_u8; PIECE];
    let functions = CookieFunctions::reading(read);
    // SAFETY: the source and the buffer stay until the stream is closed.
    let (result, error) = unsafe {
        let stream = crate::real!(fopencookie: fn(*mut c_void, *const c_char, CookieFunctions) -> *mut FILE)(
            (&raw mut *source).cast(),
            c"r".as_ptr(),
            functions,
        );
        if stream.is_null() {
            (libc::EOF, errno::get())
        } else {
            crate::real!(setvbuf: fn(*mut FILE, *mut c_char, c_int, usize) -> c_int)(
                stream,
                buffer.as_mut_ptr().cast(),
                libc::_IOFBF,
                PIECE,
            );
            let result = with_purpose(Purpose::Program, || scan(stream));
            let error = errno::get();
            source.give_back(stream);
            crate::real!(fclose: fn(*mut FILE) -> c_int)(stream);
            (result, error)
        }
    };
    source.there.unlock();
    errno::set(error);
    result
}

/// Reads a stream of this node. What `%m` allocates is the program's, but not the stream's buffer.
fn scan_here(stream: *mut FILE, scan: impl FnOnce() -> c_int) -> c_int {
    whole(stream, || {
        // SAFETY: the program says that the stream is open.
        let has_buffer = unsafe { buffered::has_buffer(stream) };
        with_purpose(if has_buffer { Purpose::Program } else { Purpose::StreamThenProgram }, scan)
    })
}

/// A `va_list` on x86-64.
#[repr(C)]
#[derive(Clone, Copy)]
struct Arguments {
    /// Bytes of `registers` that are used up.
    general: u32,
    floating: u32,
    rest: *const u64,
    registers: *const u64,
}

/// Bytes of general registers, and of all, in such a list.
const GENERAL: u32 = 48;
const ALL: u32 = 176;

/// How many arguments a format of wide characters takes, all of which are pointers.
fn pointers_in(format: &[wchar_t]) -> usize {
    const PERCENT: wchar_t = '%' as wchar_t;
    const STAR: wchar_t = '*' as wchar_t;
    let mut rest = format;
    let mut pointers = 0;
    while let Some(at) = rest.iter().position(|&character| character == PERCENT) {
        let next = rest.get(at + 1).copied();
        pointers += usize::from(next != Some(PERCENT) && next != Some(STAR));
        rest = rest.get(at + 2..).unwrap_or(&[]);
    }
    pointers
}

/// `vfwscanf` on a stream of another node, by the function of this number.
///
/// # Safety
/// The format is a string, and the list has its arguments.
unsafe fn scan_wide(
    there: &Elsewhere,
    function: u8,
    format: *const wchar_t,
    arguments: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    let (format, mut list) = unsafe {
        let length = libc::wcslen(format) + 1;
        (std::slice::from_raw_parts(format, length), arguments.cast::<Arguments>().read())
    };
    let mut bytes: Vec<u8> = format.iter().flat_map(|character| character.to_ne_bytes()).collect();
    for _ in 0..pointers_in(format) {
        // SAFETY: as above.
        let pointer = unsafe {
            if list.general < GENERAL {
                list.general += 8;
                list.registers.byte_add((list.general - 8) as usize).read()
            } else {
                list.rest = list.rest.add(1);
                list.rest.sub(1).read()
            }
        };
        bytes.extend(pointer.to_ne_bytes());
    }
    numbers::int(there.ask(StreamAction::ScanWide(function), bytes).result)
}

/// For another node: [`scan_wide`].
///
/// # Safety
/// The stream is open, and this node's; the bytes are those of `scan_wide`.
pub(super) unsafe fn scan_wide_here(stream: *mut FILE, function: u8, bytes: &[u8]) -> i64 {
    let (characters, _) = bytes.as_chunks::<WIDTH>();
    let mut format: Vec<wchar_t> = characters
        .iter()
        .map(|&character| wchar_t::from_ne_bytes(character))
        .take_while(|&character| character != 0)
        .collect();
    format.push(0);
    let rest = bytes.get(format.len() * WIDTH..).unwrap_or(&[]);
    let pointers: Vec<u64> = rest.as_chunks().0.iter().map(|&pointer| u64::from_ne_bytes(pointer)).collect();
    let mut list = Arguments { general: GENERAL, floating: ALL, rest: pointers.as_ptr(), registers: null() };
    let scan = WIDE.get(usize::from(function)).copied().unwrap_or(vfwscanf);
    // SAFETY: the caller's promise.
    unsafe { scan(stream, format.as_ptr(), (&raw mut list).cast()) }.into()
}

type ScanWide = unsafe extern "C" fn(*mut FILE, *const wchar_t, *mut c_void) -> c_int;

/// The functions by their numbers.
const WIDE: [ScanWide; 3] = [vfwscanf, __isoc99_vfwscanf, __isoc23_vfwscanf];

/// Defines functions with a stream, a format and a list of arguments: the code for streams of other nodes.
macro_rules! scanning {
    ($($name:ident($stream:ident, $format:ident: $character:ty, $arguments:ident)
        |$there:ident, $scan:ident| $elsewhere:expr;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            $stream: *mut FILE,
            $format: *const $character,
            $arguments: *mut c_void,
        ) -> c_int {
            let real = crate::real!($name: fn(*mut FILE, *const $character, *mut c_void) -> c_int);
            // SAFETY: forwards the caller's arguments, with the stream or one that gives what is in it.
            let $scan = |stream| unsafe { real(stream, $format, $arguments) };
            match elsewhere($stream) {
                Some($there) => $elsewhere,
                None => scan_here($stream, || $scan($stream)),
            }
        }
    )*};
}

scanning! {
    vfscanf(stream, format: c_char, arguments) |there, scan| scan_elsewhere(there, scan);
    __isoc99_vfscanf(stream, format: c_char, arguments) |there, scan| scan_elsewhere(there, scan);
    __isoc23_vfscanf(stream, format: c_char, arguments) |there, scan| scan_elsewhere(there, scan);
    // SAFETY: the caller's promise.
    vfwscanf(stream, format: wchar_t, arguments) |there, scan| unsafe { scan_wide(&there, 0, format, arguments) };
    __isoc99_vfwscanf(stream, format: wchar_t, arguments)
        // SAFETY: as above.
        |there, scan| unsafe { scan_wide(&there, 1, format, arguments) };
    __isoc23_vfwscanf(stream, format: wchar_t, arguments)
        // SAFETY: as above.
        |there, scan| unsafe { scan_wide(&there, 2, format, arguments) };
}

/// Defines the functions that read standard input, each by that for any stream.
macro_rules! scanning_input {
    ($($character:ty: $($name:ident = $of_stream:ident)*;)*) => {$($(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(format: *const $character, arguments: *mut c_void) -> c_int {
            let input = standard_input();
            if elsewhere(input).is_some() {
                // SAFETY: forwards the caller's arguments.
                return unsafe { $of_stream(input, format, arguments) };
            }
            // SAFETY: forwards the caller's arguments.
            scan_here(input, || unsafe {
                crate::real!($name: fn(*const $character, *mut c_void) -> c_int)(format, arguments)
            })
        }
    )*)*};
}

scanning_input! {
    c_char: vscanf = vfscanf __isoc99_vscanf = __isoc99_vfscanf __isoc23_vscanf = __isoc23_vfscanf;
    wchar_t: vwscanf = vfwscanf __isoc99_vwscanf = __isoc99_vfwscanf __isoc23_vwscanf = __isoc23_vfwscanf;
}
