//! Calls of threads of other nodes on streams of this node: the counterpart of `streams_elsewhere`.

use super::stream_marks::{note_marks, stream_of};
use super::streams_elsewhere::{
    clearerr, feof, feof_unlocked, ferror, ferror_unlocked, fileno, fseeko, ftello, getc, ungetc,
};
use super::{buffered, memory_streams, streams};
use crate::errno;
use gondwana_node::{StreamAction, StreamCall, StreamDone};
use gondwana_page::to_usize;
use libc::{FILE, c_int};

/// [`call_here`] in the receiving thread, if the stream's buffer suffices and no thread uses the stream; otherwise
/// `None`.
pub(crate) fn call_at_once(call: &StreamCall, bytes: &[u8]) -> Option<StreamDone> {
    let stream = stream_of(call.stream);
    let before = errno::get();
    // SAFETY: the program says that the stream is open.
    let done = unsafe {
        if buffered::is_locked_here(stream) || crate::real!(ftrylockfile: fn(*mut FILE) -> c_int)(stream) != 0
        {
            return None;
        }
        let suffices = match call.action {
            StreamAction::Get => !buffered::read(stream).is_empty(),
            StreamAction::Read(most) => buffered::read(stream).len() >= most as usize,
            StreamAction::Line(most, end) => {
                let read = buffered::read(stream);
                read.len() >= most as usize || read.contains(&end)
            }
            StreamAction::Write => buffered::room(stream) > bytes.len(),
            _ => false,
        };
        let done = suffices.then(|| call_here(call, bytes));
        crate::real!(funlockfile: fn(*mut FILE))(stream);
        done
    };
    errno::set(before);
    done
}

/// For another node: makes a call on a stream of this one.
pub(crate) fn call_here(call: &StreamCall, bytes: &[u8]) -> StreamDone {
    let stream = stream_of(call.stream);
    errno::set(0);
    // Streams without a file are about this node's memory, or the program's own functions. SAFETY: the program says that the
    // stream is open.
    if unsafe { fileno(stream) } < 0 {
        return StreamDone { result: -1, error: StreamDone::OUT_OF_REACH, ..StreamDone::default() };
    }
    let mut read = vec![];
    // SAFETY: as above.
    let result = unsafe {
        match call.action {
            StreamAction::Read(most) => {
                read = vec![0; most as usize];
                let got = streams::fread(read.as_mut_ptr().cast(), 1, read.len(), stream);
                read.truncate(got);
                got.cast_signed() as i64
            }
            StreamAction::Line(most, end) => {
                read = streams::bytes_to(end, most as usize, stream);
                read.len().cast_signed() as i64
            }
            StreamAction::Write => {
                streams::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), stream).cast_signed() as i64
            }
            StreamAction::Get => getc(stream).into(),
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
            StreamAction::Buffer { mode, size } => {
                streams::setvbuf(stream, std::ptr::null_mut(), mode, to_usize(size)).into()
            }
            StreamAction::Descriptor => fileno(stream).into(),
            StreamAction::Close => streams::fclose(stream).into(),
            StreamAction::CloseCommand => streams::pclose(stream).into(),
        }
    };
    let error = errno::get();
    let marks = match call.action {
        StreamAction::Close | StreamAction::CloseCommand => 0,
        // SAFETY: as above.
        _ => unsafe { marks_of(stream) },
    };
    if marks != 0 {
        note_marks(call.stream);
    }
    StreamDone { result, error, marks, bytes: read }
}

unsafe fn marks_of(stream: *mut FILE) -> u8 {
    // SAFETY: the caller's promise.
    let [is_at_end, has_failed] = unsafe { [feof_unlocked(stream), ferror_unlocked(stream)] };
    let mark = |is: c_int, mark| if is != 0 { mark } else { 0 };
    mark(is_at_end, StreamDone::AT_END) | mark(has_failed, StreamDone::FAILED)
}
