//! Directories (`DIR`): as with streams, the node that has opened one makes the calls.

use super::descriptors::{close_with_copies, hides, note_directory};
use super::stream_memory::opener_of;
use super::streams_elsewhere::Elsewhere;
use super::{Buffer, with_buffers};
use crate::alloc::{Purpose, with_purpose};
use crate::errno;
use gondwana_node::{StreamAction, StreamCall, StreamDone};
use libc::{DIR, c_char, c_int, c_long, dirent};
use std::ffi::CStr;
use std::mem::offset_of;
use std::ptr::null_mut;

/// Where this node puts an entry of another node's directory, from the directory's address on: each node has memory at the address.
/// The least that the C library allocates for one is larger by far.
const ENTRY: usize = 512;

/// The directory, if another node has opened it.
fn elsewhere(directory: *mut DIR) -> Option<Elsewhere> {
    let address = directory as usize;
    opener_of(address).and_then(|opener| Elsewhere::without_record(opener, address as u64))
}

/// The next entry of another node's directory, which is put where it is said. False at the end, or with an error number.
fn read(there: &Elsewhere, entry: *mut dirent) -> Result<bool, c_int> {
    let done = there.ask(StreamAction::ReadEntry, vec![]);
    let length = done.bytes.len().min(size_of::<dirent>());
    // SAFETY: the caller has room for an entry.
    unsafe { std::ptr::copy_nonoverlapping(done.bytes.as_ptr(), entry.cast::<u8>(), length) };
    if done.error == 0 { Ok(done.result != 0) } else { Err(done.error) }
}

/// Defines functions on directories: the code for one of another node.
macro_rules! on_directory {
    ($(fn $name:ident($directory:ident: *mut DIR $(, $argument:ident: $type:ty)*) $(-> $result:ty)? {
        |$there:ident| $body:expr
    })*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($directory: *mut DIR $(, $argument: $type)*) $(-> $result)? {
            match elsewhere($directory) {
                Some($there) => $body,
                // SAFETY: forwards the caller's arguments.
                None => unsafe {
                    crate::real!($name: fn(*mut DIR $(, $type)*) $(-> $result)?)($directory $(, $argument)*)
                },
            }
        }
    )*};
}

/// `readdir`.
fn next_entry(there: &Elsewhere, directory: *mut DIR) -> *mut dirent {
    let entry = directory.wrapping_byte_add(ENTRY).cast::<dirent>();
    if read(there, entry) == Ok(true) { entry } else { null_mut() }
}

/// `readdir_r`.
fn copy_entry(there: &Elsewhere, entry: *mut dirent, result: *mut *mut dirent) -> c_int {
    let read = read(there, entry);
    // SAFETY: the caller passes a place for the result.
    unsafe { result.write(if read == Ok(true) { entry } else { null_mut() }) };
    read.err().unwrap_or(0)
}

/// Defines `readdir`.
macro_rules! reading {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(directory: *mut DIR) -> *mut dirent {
            if let Some(there) = elsewhere(directory) {
                return next_entry(&there, directory);
            }
            // SAFETY: forwards the caller's argument; an entry has a name.
            unsafe {
                loop {
                    let entry = crate::real!($name: fn(*mut DIR) -> *mut dirent)(directory);
                    if entry.is_null() || !is_hidden(directory, entry) {
                        return entry;
                    }
                }
            }
        }
    )*};
}

reading! { readdir readdir64 }

/// True for an entry that the program is not to see.
///
/// # Safety
/// The directory is open on this node, and the entry one of it.
unsafe fn is_hidden(directory: *mut DIR, entry: *const dirent) -> bool {
    // SAFETY: as promised.
    unsafe {
        let number = crate::real!(dirfd: fn(*mut DIR) -> c_int)(directory);
        hides(number, CStr::from_ptr((&raw const (*entry).d_name).cast()))
    }
}

/// # Safety
/// As the C library's `opendir`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn opendir(path: *const c_char) -> *mut DIR {
    with_purpose(Purpose::Stream, || {
        // SAFETY: forwards the caller's argument.
        let open = || unsafe { crate::real!(opendir: fn(*const c_char) -> *mut DIR)(path) };
        let directory = with_buffers(&[Buffer::string(path)], open);
        if !directory.is_null() {
            // SAFETY: the directory is open, and the path was a string.
            unsafe {
                note_directory(crate::real!(dirfd: fn(*mut DIR) -> c_int)(directory), CStr::from_ptr(path))
            };
        }
        directory
    })
}

on_directory! {
    fn readdir_r(directory: *mut DIR, entry: *mut dirent, result: *mut *mut dirent) -> c_int {
        |there| copy_entry(&there, entry, result)
    }
    fn readdir64_r(directory: *mut DIR, entry: *mut dirent, result: *mut *mut dirent) -> c_int {
        |there| copy_entry(&there, entry, result)
    }
    fn rewinddir(directory: *mut DIR) { |there| { there.result(StreamAction::RewindDirectory); } }
    fn telldir(directory: *mut DIR) -> c_long { |there| there.result(StreamAction::TellDirectory) }
    fn seekdir(directory: *mut DIR, position: c_long) {
        |there| { there.result(StreamAction::SeekDirectory(position)); }
    }
    fn dirfd(directory: *mut DIR) -> c_int { |there| there.int(StreamAction::DirectoryDescriptor) }
}

/// # Safety
/// As the C library's `closedir`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn closedir(directory: *mut DIR) -> c_int {
    if let Some(there) = elsewhere(directory) {
        return there.int(StreamAction::CloseDirectory);
    }
    // SAFETY: forwards the caller's argument, which is not used after it is closed.
    unsafe {
        let before = errno::get();
        let descriptor = dirfd(directory);
        errno::set(before);
        close_with_copies(descriptor, || crate::real!(closedir: fn(*mut DIR) -> c_int)(directory))
    }
}

/// Makes a call for another node, if it is one on a directory.
pub(super) fn call_here(call: &StreamCall) -> Option<StreamDone> {
    let directory = call.stream as *mut DIR;
    errno::set(0);
    let mut bytes = vec![];
    // SAFETY: the program says that the directory is open.
    let result = unsafe {
        match call.action {
            StreamAction::ReadEntry => {
                bytes = entry_here(directory);
                i64::from(!bytes.is_empty())
            }
            StreamAction::RewindDirectory => {
                rewinddir(directory);
                0
            }
            StreamAction::TellDirectory => telldir(directory),
            StreamAction::SeekDirectory(position) => {
                seekdir(directory, position);
                0
            }
            StreamAction::DirectoryDescriptor => dirfd(directory).into(),
            StreamAction::CloseDirectory => closedir(directory).into(),
            _ => return None,
        }
    };
    Some(StreamDone { result, error: errno::get(), bytes, ..StreamDone::default() })
}

/// The next entry of a directory of this node; nothing at the end.
///
/// # Safety
/// The directory is open.
unsafe fn entry_here(directory: *mut DIR) -> Vec<u8> {
    let mut entry = vec![0_u8; size_of::<dirent>()];
    let mut result = null_mut();
    // By the function that copies the entry: another thread may read the next one meanwhile. SAFETY: the entry has room for one.
    unsafe {
        let error = crate::real!(readdir64_r: fn(*mut DIR, *mut dirent, *mut *mut dirent) -> c_int)(
            directory,
            entry.as_mut_ptr().cast(),
            &raw mut result,
        );
        errno::set(error);
        if result.is_null() {
            return vec![];
        }
        if is_hidden(directory, result) {
            return entry_here(directory);
        }
        let name = result.cast::<u8>().add(offset_of!(dirent, d_name)).cast();
        entry.truncate(offset_of!(dirent, d_name) + libc::strlen(name) + 1);
    }
    entry
}
