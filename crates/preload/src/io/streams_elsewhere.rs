//! Calls on streams of other nodes: each is a message to the opener with the bytes to write, and an answer with the
//! bytes read. The opener's side is `streams_for_others`. The design note is `design/streams.md` of this crate.

use super::delegations::whole;
use super::formatted::formatted;
use super::stream_marks::{name_of, stream_of, unmark_elsewhere};
use super::stream_memory::{self, opener_of};
use super::{buffered, delegated};
use crate::errno;
use crate::numbers::{self, int};
use gondwana_node::{MOST_BYTES, Node, StreamAction, StreamCall, StreamDone, Thread};
use libc::{FILE, c_char, c_int, c_void};
use std::sync::atomic::Ordering;

/// A call of a thread of this node on a stream or directory of another node.
pub(crate) struct Elsewhere {
    node: &'static Node,
    opener: usize,
    name: u64,
    /// The stream at whose address this node keeps marks and what is delegated to it.
    record: Option<*mut FILE>,
}

/// The stream, if another node has opened it.
#[inline]
pub(crate) fn elsewhere(stream: *mut FILE) -> Option<Elsewhere> {
    opener_of(stream as usize).and_then(|opener| Elsewhere::new(opener, stream))
}

/// A number of bytes up to [`MOST_BYTES`], as it is asked for.
pub(super) fn piece(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("up to MOST_BYTES")
}

impl Elsewhere {
    #[inline]
    fn new(opener: usize, stream: *mut FILE) -> Option<Self> {
        Some(Self { node: Node::current()?, opener, name: name_of(stream), record: Some(stream) })
    }

    /// A directory, or a stream of which only the lock is used.
    pub(super) fn without_record(opener: usize, name: u64) -> Option<Self> {
        Some(Self { node: Node::current()?, opener, name, record: None })
    }

    /// True if this node is the opener.
    pub(super) fn is_here(&self) -> bool {
        self.opener == self.node.id().index()
    }

    fn thread(&self) -> u64 {
        Thread::current(self.node).id
    }

    pub(super) fn ask(&self, action: StreamAction, bytes: Vec<u8>) -> StreamDone {
        let before = errno::get();
        let thread = self.thread();
        let returned = self
            .record
            .filter(|_| !action.leaves_delegation())
            .and_then(|stream| delegated::give_up(stream, thread));
        let must_release = self.record.map(delegated::must_release);
        let is_released =
            action.is_about_memory() || must_release.is_some_and(|must| must.load(Ordering::Relaxed));
        let node = self.node.id().0;
        let call = StreamCall { stream: self.name, action, node, thread, returned, is_released };
        let mut done = self.call(call, bytes.clone());
        if done.error == StreamDone::UNRELEASED {
            if let Some(must) = must_release {
                must.store(true, Ordering::Relaxed);
            }
            done = self.call(StreamCall { is_released: true, ..call }, bytes);
        }
        if let Some(stream) = self.record {
            buffered::mark(stream, done.marks);
            if done.delegation != 0 {
                delegated::install(stream, done.delegation, &done.bytes);
            }
        }
        errno::set(if done.error == 0 { before } else { done.error });
        done
    }

    /// Makes a call, before which this node's writes are released, and after which it sees those of the opener, if the call says so.
    fn call(&self, call: StreamCall, bytes: Vec<u8>) -> StreamDone {
        if call.is_released {
            self.node.release_and_wait();
        }
        let done = self.node.call_stream(self.opener, call, bytes);
        if call.is_released {
            self.node.acquire(None);
        }
        done
    }

    /// `flockfile`.
    pub(super) fn lock(&self) {
        self.result(StreamAction::Lock);
        self.note_lock();
    }

    /// True if the calling thread has locked the stream now.
    pub(super) fn try_lock(&self) -> bool {
        let has_locked = self.result(StreamAction::TryLock) == 0;
        if has_locked {
            self.note_lock();
        }
        has_locked
    }

    fn note_lock(&self) {
        if let Some(stream) = self.record {
            delegated::locked(stream, self.thread());
        }
    }

    /// `funlockfile`.
    pub(super) fn unlock(&self) {
        if let Some(stream) = self.record {
            delegated::unlocked(stream, self.thread());
        }
        self.result(StreamAction::Unlock);
    }

    /// `getc`.
    #[inline]
    pub(super) fn get(&self) -> c_int {
        match self.record.and_then(|stream| delegated::next(stream, || self.thread())) {
            Some(byte) => byte.into(),
            None => self.int(StreamAction::Get(false)),
        }
    }

    /// `ungetc`.
    fn unget(&self, byte: c_int) -> c_int {
        let is_here = self.record.is_some_and(|stream| {
            byte != libc::EOF && delegated::unread(stream, self.thread(), Some(numbers::byte(byte)))
        });
        if is_here { numbers::byte(byte).into() } else { self.int(StreamAction::Unget(byte)) }
    }

    /// `feof` and `ferror`: a mark, and the call that asks for it.
    fn is_marked(&self, mark: c_int, action: StreamAction) -> c_int {
        match self.record.and_then(delegated::marks) {
            Some(marks) => c_int::from(marks & mark != 0),
            None => self.int(action),
        }
    }

    /// Bytes that are delegated to this node, as many as `wanted` says when it is shown them.
    pub(super) fn take(&self, wanted: impl FnOnce(&[u8]) -> Option<usize>) -> Option<Vec<u8>> {
        delegated::take(self.record?, self.thread(), wanted)
    }

    /// Takes back so many bytes that were taken last; returns how many of them cannot be.
    pub(super) fn untake(&self, bytes: usize) -> usize {
        let Some(stream) = self.record else { return bytes };
        let back = (0..bytes).take_while(|_| delegated::unread(stream, self.thread(), None)).count();
        bytes - back
    }

    /// `fclose` and its relatives.
    pub(super) fn close(&self, action: StreamAction) -> c_int {
        let result = self.int(action);
        if let Some(stream) = self.record {
            delegated::forget(stream);
        }
        result
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
        if let Some(here) = self.take(|here| (here.len() >= bytes).then_some(bytes)) {
            // SAFETY: as many bytes as were wanted.
            unsafe { std::ptr::copy_nonoverlapping(here.as_ptr(), target.cast::<u8>(), bytes) };
            return bytes;
        }
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
        let in_here = |here: &[u8]| {
            let end = here.iter().take(most).position(|&byte| byte == end).map(|at| at + 1);
            end.or((here.len() >= most).then_some(most))
        };
        if let Some(line) = self.take(in_here) {
            return line;
        }
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

/// Defines interposed functions: names with one signature, how the call is made on a stream of this node, and the code for a
/// stream of another node. A call that reads or moves is made on the `whole` stream; one that does so without a lock is
/// `unlocked`; one that comes from inlined code that writes is `inlined`.
macro_rules! also_elsewhere {
    (@each [$($name:ident)*] $function:tt) => { $(also_elsewhere! { @one $name $function })* };
    (@here plain $stream:expr, $call:expr) => { $call };
    (@here inlined $stream:expr, $call:expr) => {{
        $crate::io::unlocked_output::inlined($stream);
        $call
    }};
    (@here whole $stream:expr, $call:expr) => { $crate::io::delegations::whole($stream, || $call) };
    (@here unlocked $stream:expr, $call:expr) => {{
        $crate::io::delegations::recall_unlocked($stream);
        $call
    }};
    (@one $name:ident {
        ($($argument:ident: $type:ty),*) $(-> $result:ty)?, $how:ident $stream:expr => |$there:ident| $body:expr
        $(; $then:ident)?
    }) => {
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            if let Some($there) = $crate::io::streams_elsewhere::elsewhere($stream) {
                return $body;
            }
            // SAFETY: forwards the caller's arguments.
            let result = also_elsewhere!(@here $how $stream, unsafe {
                $crate::real!($name: fn($($type),*) $(-> $result)?)($($argument),*)
            });
            $($then($stream);)?
            result
        }
    };
    ($($names:tt $function:tt)*) => { $(also_elsewhere! { @each $names $function })* };
}

pub(super) use also_elsewhere;

/// # Safety
/// As the C library's `getc`.
#[inline]
unsafe fn read_byte(stream: *mut FILE) -> c_int {
    if let Some(there) = elsewhere(stream) {
        return there.get();
    }
    // SAFETY: the program says that the stream is open.
    if let Some(byte) = unsafe { buffered::take(stream) } {
        return byte.into();
    }
    whole(stream, || {
        // SAFETY: the stream is locked.
        unsafe { crate::real!(getc_unlocked: fn(*mut FILE) -> c_int)(stream) }
    })
}

/// Defines the functions that read a byte.
macro_rules! reading_a_byte {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(stream: *mut FILE) -> c_int {
            // SAFETY: forwards the caller's argument.
            unsafe { read_byte(stream) }
        }
    )*};
}

reading_a_byte! { getc fgetc _IO_getc }

also_elsewhere! {
    // Inlined `getc_unlocked` and `putc_unlocked` call the last function of each list if the buffer is empty.
    [getc_unlocked fgetc_unlocked __uflow] {
        (stream: *mut FILE) -> c_int, unlocked stream => |there| there.get()
    }
    [__overflow] {
        (stream: *mut FILE, byte: c_int) -> c_int, inlined stream => |there| there.put(numbers::byte(byte))
    }
    [getchar] {
        () -> c_int, whole stream_memory::standard_input() => |there| there.get()
    }
    [getchar_unlocked] {
        () -> c_int, unlocked stream_memory::standard_input() => |there| there.get()
    }
    [ungetc] {
        (byte: c_int, stream: *mut FILE) -> c_int, whole stream => |there| there.unget(byte);
        unmark_elsewhere
    }
    [putc fputc _IO_putc putc_unlocked fputc_unlocked] {
        (byte: c_int, stream: *mut FILE) -> c_int, plain stream => |there| there.put(numbers::byte(byte))
    }
    [fgets fgets_unlocked] {
        (target: *mut c_char, room: c_int, stream: *mut FILE) -> *mut c_char,
        // SAFETY: the caller's promise.
        whole stream => |there| unsafe { there.string(target, room) }
    }
    [__fgets_chk __fgets_unlocked_chk] {
        (target: *mut c_char, size: usize, room: c_int, stream: *mut FILE) -> *mut c_char,
        whole stream => |there| {
            if usize::try_from(room).is_ok_and(|room| room > size) {
                // SAFETY: ends the program, as the C library does.
                unsafe { crate::real!(__chk_fail: fn())() };
            }
            // SAFETY: the caller's promise.
            unsafe { there.string(target, room) }
        }
    }
    [getw] {
        (stream: *mut FILE) -> c_int, whole stream => |there| {
            let mut word = [0; size_of::<c_int>()];
            // SAFETY: the word has that many bytes.
            let read = unsafe { there.read(word.as_mut_ptr().cast(), word.len()) };
            if read == word.len() { c_int::from_ne_bytes(word) } else { libc::EOF }
        }
    }
    [putw] {
        (word: c_int, stream: *mut FILE) -> c_int, plain stream => |there| {
            let bytes = word.to_ne_bytes();
            // SAFETY: the bytes are there.
            let written = unsafe { there.write(bytes.as_ptr().cast(), bytes.len()) };
            if written == bytes.len() { 0 } else { libc::EOF }
        }
    }
    [fseek fseeko fseeko64] {
        (stream: *mut FILE, offset: i64, whence: c_int) -> c_int,
        whole stream => |there| there.int(StreamAction::Seek { offset, whence });
        unmark_elsewhere
    }
    [ftell ftello ftello64] {
        (stream: *mut FILE) -> i64, whole stream => |there| there.result(StreamAction::Tell)
    }
    [rewind] {
        (stream: *mut FILE), whole stream => |there| {
            there.result(StreamAction::Seek { offset: 0, whence: libc::SEEK_SET });
            there.result(StreamAction::ClearError);
        };
        unmark_elsewhere
    }
    [fgetpos fgetpos64] {
        (stream: *mut FILE, position: *mut Position) -> c_int,
        whole stream => |there| match there.result(StreamAction::Tell) {
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
        whole stream => |there| {
            // SAFETY: the caller's promise.
            let offset = unsafe { (*position).offset };
            there.int(StreamAction::Seek { offset, whence: libc::SEEK_SET })
        };
        unmark_elsewhere
    }
    [feof feof_unlocked] {
        (stream: *mut FILE) -> c_int, plain stream => |there| there.is_marked(buffered::EOF_SEEN, StreamAction::IsAtEnd)
    }
    [ferror ferror_unlocked] {
        (stream: *mut FILE) -> c_int, plain stream => |there| there.is_marked(buffered::ERR_SEEN, StreamAction::HasFailed)
    }
    [clearerr clearerr_unlocked] {
        (stream: *mut FILE), plain stream => |there| { there.result(StreamAction::ClearError); };
        unmark_elsewhere
    }
    [fileno fileno_unlocked] {
        (stream: *mut FILE) -> c_int, plain stream => |there| there.int(StreamAction::Descriptor)
    }
    [__fpurge] {
        (stream: *mut FILE), whole stream => |there| { there.result(StreamAction::Purge); }
    }
    [__fpending] {
        (stream: *mut FILE) -> usize,
        plain stream => |there| usize::try_from(there.result(StreamAction::Pending)).unwrap_or(0)
    }
    [vfprintf] {
        (stream: *mut FILE, format: *const c_char, arguments: *mut c_void) -> c_int,
        // SAFETY: the caller's promise.
        plain stream => |there| unsafe { there.print(format, arguments) }
    }
    [__vfprintf_chk] {
        (stream: *mut FILE, flag: c_int, format: *const c_char, arguments: *mut c_void) -> c_int,
        // SAFETY: the caller's promise.
        plain stream => |there| unsafe { there.print(format, arguments) }
    }
}

/// The C library's `fpos_t`.
#[repr(C)]
pub(crate) struct Position {
    offset: i64,
    /// The conversion state of wide characters.
    characters: u64,
}
