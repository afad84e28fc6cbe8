//! Calls on streams of other nodes: each is a message to the opener with the bytes to write, and an answer with the
//! bytes read. The opener's side is `streams_for_others`. The design note is `design/streams.md` of this crate.

use super::buffered;
use super::formatted::formatted;
use super::stream_marks::{name_of, stream_of, unmark_elsewhere};
use super::stream_memory::{self, opener_of};
use crate::errno;
use crate::numbers::{self, int};
use gondwana_node::{MOST_BYTES, Node, StreamAction, StreamCall, StreamDone};
use libc::{FILE, c_char, c_int, c_void};

/// A call of a thread of this node on a stream of another node.
pub(crate) struct Elsewhere {
    node: &'static Node,
    opener: usize,
    stream: *mut FILE,
    call: &'static str,
}

/// The stream, if another node has opened it.
#[inline]
pub(crate) fn elsewhere(stream: *mut FILE, call: &'static str) -> Option<Elsewhere> {
    opener_of(stream as usize).and_then(|opener| Elsewhere::new(opener, stream, call))
}

/// A number of bytes up to [`MOST_BYTES`], as it is asked for.
fn piece(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("up to MOST_BYTES")
}

impl Elsewhere {
    #[cold]
    fn new(opener: usize, stream: *mut FILE, call: &'static str) -> Option<Self> {
        Some(Self { node: Node::current()?, opener, stream, call })
    }

    fn ask(&self, action: StreamAction, bytes: Vec<u8>) -> StreamDone {
        let call = StreamCall { stream: name_of(self.stream), action };
        let done = self.node.call_stream(self.opener, call, bytes);
        buffered::mark(self.stream, done.marks);
        match done.error {
            0 => {}
            StreamDone::OUT_OF_REACH => stream_memory::refuse(self.opener, self.call),
            error => errno::set(error),
        }
        done
    }

    /// The result of the call.
    pub(crate) fn result(&self, action: StreamAction) -> i64 {
        self.ask(action, vec![]).result
    }

    /// The result of a call that gives an `int`.
    pub(crate) fn int(&self, action: StreamAction) -> c_int {
        int(self.result(action))
    }

    /// Reads `bytes` bytes, or fewer at the end; returns the number.
    ///
    /// # Safety
    /// The target has room for them.
    pub(crate) unsafe fn read(&self, target: *mut c_void, bytes: usize) -> usize {
        let mut done = 0;
        while done < bytes {
            let wanted = (bytes - done).min(MOST_BYTES);
            let got = self.ask(StreamAction::Read(piece(wanted)), vec![]).bytes;
            // SAFETY: as many bytes as were wanted, at most.
            unsafe { std::ptr::copy_nonoverlapping(got.as_ptr(), target.cast::<u8>().add(done), got.len()) };
            done += got.len();
            if got.len() < wanted {
                break;
            }
        }
        done
    }

    /// Reads up to and including `end`, or `most` bytes.
    pub(crate) fn line(&self, most: usize, end: u8) -> Vec<u8> {
        let mut line = vec![];
        while line.len() < most && line.last() != Some(&end) {
            let wanted = (most - line.len()).min(MOST_BYTES);
            let got = self.ask(StreamAction::Line(piece(wanted), end), vec![]).bytes;
            line.extend_from_slice(&got);
            if got.len() < wanted {
                break;
            }
        }
        line
    }

    /// Writes `bytes` bytes; returns the number of written ones.
    ///
    /// # Safety
    /// The source has them.
    pub(crate) unsafe fn write(&self, source: *const c_void, bytes: usize) -> usize {
        let mut done = 0;
        while done < bytes {
            let length = (bytes - done).min(MOST_BYTES);
            // SAFETY: the source has so many bytes.
            let some = unsafe { std::slice::from_raw_parts(source.cast::<u8>().add(done), length) };
            let put = self.ask(StreamAction::Write, some.to_vec()).result;
            let put = usize::try_from(put).unwrap_or(0);
            done += put;
            if put < length {
                break;
            }
        }
        done
    }

    /// `fgets`.
    ///
    /// # Safety
    /// The target has so much room.
    unsafe fn string(&self, target: *mut c_char, room: c_int) -> *mut c_char {
        let Some(most) = usize::try_from(room).ok().and_then(|room| room.checked_sub(1)) else {
            return std::ptr::null_mut();
        };
        let line = self.line(most, b'\n');
        if line.is_empty() && most > 0 {
            return std::ptr::null_mut();
        }
        // SAFETY: the target has room for that many, and one more.
        unsafe {
            std::ptr::copy_nonoverlapping(line.as_ptr(), target.cast(), line.len());
            target.add(line.len()).write(0);
        }
        target
    }

    /// `putc`.
    fn put(&self, byte: u8) -> c_int {
        if self.ask(StreamAction::Write, vec![byte]).result == 1 { byte.into() } else { libc::EOF }
    }

    /// `vfprintf`.
    ///
    /// # Safety
    /// The format is a string, and the list has its arguments.
    pub(crate) unsafe fn print(&self, format: *const c_char, arguments: *mut c_void) -> c_int {
        // SAFETY: as promised.
        match unsafe { formatted(format, arguments) } {
            // SAFETY: the text has them.
            Ok(text) if unsafe { self.write(text.as_ptr().cast(), text.len()) } == text.len() => {
                int(text.len())
            }
            Ok(_) => -1,
            Err(failed) => failed,
        }
    }
}

/// For the opener of a stream: clears the marks here.
pub(crate) fn unmark(stream: u64) -> c_int {
    buffered::mark(stream_of(stream), 0);
    0
}

/// Defines interposed functions: names with one signature, and the code for a stream of another node.
macro_rules! also_elsewhere {
    (@each [$($name:ident)*] $function:tt) => { $(also_elsewhere! { @one $name $function })* };
    (@one $name:ident {
        ($($argument:ident: $type:ty),*) $(-> $result:ty)?, $stream:expr => |$there:ident| $body:expr
        $(; $then:ident)?
    }) => {
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            if let Some($there) = elsewhere($stream, stringify!($name)) {
                return $body;
            }
            // SAFETY: forwards the caller's arguments.
            let result = unsafe { crate::real!($name: fn($($type),*) $(-> $result)?)($($argument),*) };
            $($then($stream);)?
            result
        }
    };
    ($($names:tt $function:tt)*) => { $(also_elsewhere! { @each $names $function })* };
}

also_elsewhere! {
    // Inlined `getc_unlocked` and `putc_unlocked` call the last function of each list if the buffer is empty.
    [getc fgetc _IO_getc getc_unlocked fgetc_unlocked __uflow] {
        (stream: *mut FILE) -> c_int, stream => |there| there.int(StreamAction::Get)
    }
    [__overflow] {
        (stream: *mut FILE, byte: c_int) -> c_int, stream => |there| there.put(numbers::byte(byte))
    }
    [getchar getchar_unlocked] {
        () -> c_int, stream_memory::standard_input() => |there| there.int(StreamAction::Get)
    }
    [ungetc] {
        (byte: c_int, stream: *mut FILE) -> c_int,
        stream => |there| there.int(StreamAction::Unget(byte));
        unmark_elsewhere
    }
    [putc fputc _IO_putc putc_unlocked fputc_unlocked] {
        (byte: c_int, stream: *mut FILE) -> c_int, stream => |there| there.put(numbers::byte(byte))
    }
    [fgets fgets_unlocked] {
        (target: *mut c_char, room: c_int, stream: *mut FILE) -> *mut c_char,
        // SAFETY: the caller's promise.
        stream => |there| unsafe { there.string(target, room) }
    }
    [__fgets_chk __fgets_unlocked_chk] {
        (target: *mut c_char, size: usize, room: c_int, stream: *mut FILE) -> *mut c_char,
        stream => |there| {
            if usize::try_from(room).is_ok_and(|room| room > size) {
                // SAFETY: ends the program, as the C library does.
                unsafe { crate::real!(__chk_fail: fn())() };
            }
            // SAFETY: the caller's promise.
            unsafe { there.string(target, room) }
        }
    }
    [fseek fseeko fseeko64] {
        (stream: *mut FILE, offset: i64, whence: c_int) -> c_int,
        stream => |there| there.int(StreamAction::Seek { offset, whence });
        unmark_elsewhere
    }
    [ftell ftello ftello64] {
        (stream: *mut FILE) -> i64, stream => |there| there.result(StreamAction::Tell)
    }
    [rewind] {
        (stream: *mut FILE), stream => |there| {
            there.result(StreamAction::Seek { offset: 0, whence: libc::SEEK_SET });
            there.result(StreamAction::ClearError);
        };
        unmark_elsewhere
    }
    [fgetpos fgetpos64] {
        (stream: *mut FILE, position: *mut Position) -> c_int,
        stream => |there| match there.result(StreamAction::Tell) {
            offset if offset < 0 => -1,
            // SAFETY: the caller's promise.
            offset => unsafe {
                position.write(Position { offset, characters: 0 });
                0
            },
        }
    }
    [fsetpos fsetpos64] {
        (stream: *mut FILE, position: *const Position) -> c_int,
        stream => |there| {
            // SAFETY: the caller's promise.
            let offset = unsafe { (*position).offset };
            there.int(StreamAction::Seek { offset, whence: libc::SEEK_SET })
        };
        unmark_elsewhere
    }
    [feof feof_unlocked] {
        (stream: *mut FILE) -> c_int, stream => |there| there.int(StreamAction::IsAtEnd)
    }
    [ferror ferror_unlocked] {
        (stream: *mut FILE) -> c_int, stream => |there| there.int(StreamAction::HasFailed)
    }
    [clearerr clearerr_unlocked] {
        (stream: *mut FILE), stream => |there| { there.result(StreamAction::ClearError); };
        unmark_elsewhere
    }
    [fileno fileno_unlocked] {
        (stream: *mut FILE) -> c_int, stream => |there| there.int(StreamAction::Descriptor)
    }
    [vfprintf] {
        (stream: *mut FILE, format: *const c_char, arguments: *mut c_void) -> c_int,
        // SAFETY: the caller's promise.
        stream => |there| unsafe { there.print(format, arguments) }
    }
    [__vfprintf_chk] {
        (stream: *mut FILE, flag: c_int, format: *const c_char, arguments: *mut c_void) -> c_int,
        // SAFETY: the caller's promise.
        stream => |there| unsafe { there.print(format, arguments) }
    }
    [setlinebuf] {
        (stream: *mut FILE), stream => |there| {
            there.result(StreamAction::Buffer { mode: libc::_IOLBF, size: 0 });
        }
    }
}

/// The C library's `fpos_t`.
#[repr(C)]
pub(crate) struct Position {
    offset: i64,
    /// The conversion state of wide characters.
    characters: u64,
}

/// `vfprintf` on a stream of another node, for the calls that are checked in assembly.
///
/// # Safety
/// As for `vfprintf`.
pub(crate) unsafe extern "C" fn print_elsewhere(
    stream: *mut FILE,
    format: *const c_char,
    arguments: *mut c_void,
) -> c_int {
    let Some(there) = elsewhere(stream, "fprintf") else { return -1 };
    // SAFETY: the caller's promise.
    unsafe { there.print(format, arguments) }
}
