//! Calls of threads of other nodes on streams of this node: the counterpart of `streams_elsewhere`.

use super::delegations::{self, Locked};
use super::descriptors::is_channel_of_stream;
use super::stream_locks::{self, as_holder, is_held_by};
use super::stream_marks::{note_marks, stream_of};
use super::streams_elsewhere::{
    __fpending, __fpurge, clearerr, feof, feof_unlocked, ferror, ferror_unlocked, fileno, fseeko, ftello,
    getc, ungetc,
};
use super::{
    buffered, delegated, directories, memory_streams, output, scanning, stream_memory, streams, wide_streams,
};
use crate::errno;
use crate::numbers;
use gondwana_node::{Node, StreamAction, StreamCall, StreamDone};
use gondwana_page::to_usize;
use libc::{FILE, c_int};
use std::ffi::CStr;
use std::ptr::{null, null_mut};

/// [`call_here`] in the receiving thread, if the stream's buffer suffices and no thread uses the stream; otherwise
/// `None`.
pub(crate) fn call_at_once(call: &StreamCall, bytes: &[u8]) -> Option<StreamDone> {
    let stream = stream_of(call.stream);
    if let StreamAction::Recall(number) = call.action {
        return delegated::recalled(stream, number, false);
    }
    if !may_be_at_once(call.action) {
        return None;
    }
    let before = errno::get();
    let holds = is_held_by(stream, call.thread);
    // SAFETY: the program says that the stream is open.
    if !holds && unsafe { buffered::is_locked_here(stream) } {
        return None;
    }
    let done = as_holder(stream, call.thread, || {
        let _locked = Locked::at_once(stream)?;
        settle(call, stream);
        let recalls = delegations::delegate_of(stream)
            .is_some_and(|delegate| !(call.action.leaves_delegation() && delegate == call.node));
        // SAFETY: as above; the stream is locked.
        (!recalls && unsafe { suffices(call, stream, bytes) }).then(|| act(call, stream, bytes))
    });
    errno::set(before);
    done
}

/// True for calls that are made at once if nothing is in the way.
fn may_be_at_once(action: StreamAction) -> bool {
    use StreamAction::{Get, Line, Lock, Read, TryLock, Unlock, Write};
    matches!(action, Get(_) | Line(..) | Lock | Read(_) | TryLock | Unlock | Write)
}

/// True if the call takes no time on a stream that the calling thread has locked.
///
/// # Safety
/// The stream is open.
unsafe fn suffices(call: &StreamCall, stream: *mut FILE, bytes: &[u8]) -> bool {
    // SAFETY: the caller's promise. What a stream without a file has may be shared memory.
    unsafe {
        match call.action {
            StreamAction::Lock | StreamAction::TryLock | StreamAction::Unlock => true,
            _ if has_no_file(stream) || orders(stream) && !call.is_released => false,
            StreamAction::Get(_) => !buffered::read(stream).is_empty() || delegations::reads_file(stream),
            StreamAction::Read(most) => buffered::read(stream).len() >= most as usize,
            StreamAction::Line(most, end) => {
                let read = buffered::read(stream);
                read.len() >= most as usize || read.contains(&end)
            }
            StreamAction::Write => !is_common(stream) && buffered::room(stream) > bytes.len(),
            _ => false,
        }
    }
}

/// True for a stream of which each node has one.
fn is_common(stream: *mut FILE) -> bool {
    stream_memory::common_name_of(stream).is_some()
}

/// Streams without a file are about the program's memory or its functions.
unsafe fn has_no_file(stream: *mut FILE) -> bool {
    let before = errno::get();
    // SAFETY: the caller says that the stream is open.
    let has_none = unsafe { fileno(stream) } < 0;
    errno::set(before);
    has_none
}

/// Streams of pipes, sockets and the like order what threads do.
unsafe fn orders(stream: *mut FILE) -> bool {
    // SAFETY: the caller says that the stream is open.
    is_channel_of_stream(unsafe { buffered::descriptor(stream) })
}

/// For another node: makes a call on a stream or directory of this one.
pub(crate) fn call_here(call: &StreamCall, bytes: &[u8]) -> StreamDone {
    let stream = stream_of(call.stream);
    if let StreamAction::Recall(number) = call.action {
        return delegated::recalled(stream, number, true).expect("it was waited for");
    }
    if let Some(done) = directories::call_here(call) {
        return done;
    }
    let uses_no_memory = call.action.leaves_delegation();
    // SAFETY: the program says that the stream is open.
    let (has_no_file, orders) = unsafe { (has_no_file(stream), orders(stream)) };
    if !call.is_released && !uses_no_memory && (has_no_file || orders) {
        return StreamDone { result: -1, error: StreamDone::UNRELEASED, ..StreamDone::default() };
    }
    let is_about_memory = has_no_file || call.action.is_about_memory();
    let node = Node::current().filter(|_| call.is_released && is_about_memory);
    node.inspect(|node| node.acquire(None));
    let done = as_holder(stream, call.thread, || make(call, stream, bytes));
    node.inspect(|node| node.release_and_wait());
    done
}

/// Takes back what comes with the call. The calling thread has locked the stream.
fn settle(call: &StreamCall, stream: *mut FILE) {
    if let Some((number, read)) = call.returned {
        delegations::returned(stream, number, read);
    }
}

/// Makes a call, waiting for the stream.
fn make(call: &StreamCall, stream: *mut FILE, bytes: &[u8]) -> StreamDone {
    let locked = match call.action {
        StreamAction::TryLock => Locked::at_once(stream),
        _ => Some(Locked::new(stream)),
    };
    let Some(locked) = locked else { return StreamDone { result: 1, ..StreamDone::default() } };
    settle(call, stream);
    if !(call.action.leaves_delegation() && delegations::delegate_of(stream) == Some(call.node)) {
        delegations::recall(stream);
    }
    if matches!(call.action, StreamAction::Close | StreamAction::CloseCommand) {
        drop(locked);
        stream_locks::forget(stream);
    }
    act(call, stream, bytes)
}

/// Makes a call on a stream that the calling thread has locked, or that it closes.
fn act(call: &StreamCall, stream: *mut FILE, bytes: &[u8]) -> StreamDone {
    errno::set(0);
    let mut done = StreamDone::default();
    // SAFETY: the program says that the stream is open.
    done.result = unsafe {
        match call.action {
            StreamAction::Read(most) => {
                done.bytes = vec![0; most as usize];
                let got = streams::fread(done.bytes.as_mut_ptr().cast(), 1, done.bytes.len(), stream);
                done.bytes.truncate(got);
                got.cast_signed() as i64
            }
            StreamAction::Line(most, end) => {
                done.bytes = streams::bytes_to(end, most as usize, stream);
                done.bytes.len().cast_signed() as i64
            }
            StreamAction::Write => {
                let written = streams::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), stream);
                // The other node's stream has written that out.
                let failed = is_common(stream) && memory_streams::fflush(stream) != 0;
                if failed { 0 } else { written.cast_signed() as i64 }
            }
            StreamAction::Get(wants) => {
                let byte = getc(stream);
                if byte != libc::EOF {
                    (done.delegation, done.bytes) =
                        delegations::delegate(stream, numbers::byte(byte), call.node, wants);
                }
                byte.into()
            }
            StreamAction::Unget(byte) => ungetc(byte, stream).into(),
            StreamAction::Seek { offset, whence } => fseeko(stream, offset, whence).into(),
            StreamAction::Tell => ftello(stream),
            StreamAction::IsAtEnd => feof(stream).into(),
            StreamAction::HasFailed => ferror(stream).into(),
            StreamAction::ClearError => {
                clearerr(stream);
                0
            }
            StreamAction::Flush => memory_streams::fflush(stream).into(),
            StreamAction::Buffer { .. } if is_common(stream) => output::stop_buffering(stream).into(),
            StreamAction::Buffer { mode, size } => {
                streams::setvbuf(stream, null_mut(), mode, to_usize(size)).into()
            }
            StreamAction::Descriptor => fileno(stream).into(),
            StreamAction::Close => streams::fclose(stream).into(),
            StreamAction::CloseCommand => streams::pclose(stream).into(),
            StreamAction::ReadWide(most, end) => {
                done.bytes = wide_streams::read_here(stream, most, end);
                (done.bytes.len() / wide_streams::WIDTH).cast_signed() as i64
            }
            StreamAction::WriteWide => wide_streams::write_here(stream, bytes),
            StreamAction::ScanWide(function) => scanning::scan_wide_here(stream, function, bytes),
            StreamAction::UngetWide(character) => wide_streams::ungetwc(character, stream).into(),
            StreamAction::Orient(mode) => wide_streams::fwide(stream, mode).into(),
            StreamAction::Lock | StreamAction::TryLock => {
                stream_locks::lock_for(stream, call.thread);
                0
            }
            StreamAction::Unlock => {
                stream_locks::unlock_for(stream, call.thread);
                0
            }
            StreamAction::Reopen(has_path) => reopen(stream, bytes, has_path),
            StreamAction::Purge => {
                __fpurge(stream);
                0
            }
            StreamAction::Pending => __fpending(stream).cast_signed() as i64,
            StreamAction::Recall(_)
            | StreamAction::ReadEntry
            | StreamAction::RewindDirectory
            | StreamAction::TellDirectory
            | StreamAction::SeekDirectory(_)
            | StreamAction::DirectoryDescriptor
            | StreamAction::CloseDirectory => unreachable!("not a call on a stream of this node"),
        }
    };
    done.error = errno::get();
    done.marks = match call.action {
        StreamAction::Close | StreamAction::CloseCommand => 0,
        // SAFETY: as above.
        _ => unsafe { marks_of(stream) },
    };
    if done.marks != 0 {
        note_marks(call.stream);
    }
    done
}

/// `freopen`: 0 or -1.
unsafe fn reopen(stream: *mut FILE, bytes: &[u8], has_path: bool) -> i64 {
    let Ok(mode) = CStr::from_bytes_until_nul(bytes) else { return -1 };
    let path = CStr::from_bytes_until_nul(bytes.get(mode.count_bytes() + 1..).unwrap_or(&[]));
    let path = path.ok().filter(|_| has_path).map_or(null(), CStr::as_ptr);
    // SAFETY: strings, and the caller's promise.
    if unsafe { streams::freopen(path, mode.as_ptr(), stream) }.is_null() { -1 } else { 0 }
}

unsafe fn marks_of(stream: *mut FILE) -> u8 {
    // SAFETY: the caller's promise.
    let [is_at_end, has_failed] = unsafe { [feof_unlocked(stream), ferror_unlocked(stream)] };
    let mark = |is: c_int, mark| if is != 0 { mark } else { 0 };
    mark(is_at_end, StreamDone::AT_END) | mark(has_failed, StreamDone::FAILED)
}
