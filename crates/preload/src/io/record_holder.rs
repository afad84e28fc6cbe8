//! The node that holds the record locks of all nodes of its computer.
//!
//! It has them as locks of open files (`F_OFD_SETLK`), of one open file for each file. Locks of a process would be given up whenever this one
//! closes a descriptor of the file, and it closes some that the program knows nothing of: copies of other nodes' descriptors.

use super::descriptors;
use super::record_locks::description_of;
use crate::numbers::int;
use gondwana_locks::lock;
use libc::{c_int, flock};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::CString;
use std::sync::{Arc, LazyLock, Mutex};

/// The device and the number of a file.
pub(super) type Identity = (u64, u64);

/// What is said of a file that the holder cannot open: no lock fails with it.
pub(super) const OUT_OF_REACH: c_int = libc::EXDEV;

/// A descriptor of the runtime, with which the last user closes the open file.
struct Held(c_int);

impl Drop for Held {
    fn drop(&mut self) {
        descriptors::close_withdrawn(self.0);
    }
}

/// The files of which there may be locks.
static HELD: LazyLock<Mutex<HashMap<Identity, Arc<Held>>>> = LazyLock::new(Mutex::default);

/// For threads of all nodes of this computer: a command about locks of a file that a process of it has open at a number.
///
/// # Safety
/// There is a description of a lock, in private memory.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn gondwana_hold_records(
    process: c_int,
    fd: c_int,
    device: u64,
    number: u64,
    command: c_int,
    wanted: *mut flock,
) -> c_int {
    let held = match lock(&HELD).entry((device, number)) {
        Entry::Occupied(held) => held.get().clone(),
        Entry::Vacant(place) => match open_again(process, fd) {
            Some(file) => place.insert(Arc::new(file)).clone(),
            None => {
                crate::errno::set(OUT_OF_REACH);
                return -1;
            }
        },
    };
    let command = match command {
        libc::F_GETLK => libc::F_OFD_GETLK,
        libc::F_SETLK => libc::F_OFD_SETLK,
        _ => libc::F_OFD_SETLKW,
    };
    // SAFETY: the caller's promise. This may wait, and `HELD` is not locked.
    int(unsafe { gondwana_sys::syscall!(libc::SYS_fcntl, held.0, command, wanted) })
}

/// For threads of all nodes of this computer: gives up all locks of a file.
#[unsafe(no_mangle)]
pub(super) extern "C-unwind" fn gondwana_give_up_records(device: u64, number: u64) -> c_int {
    let held = lock(&HELD).remove(&(device, number));
    if let Some(held) = held {
        // A thread that waits for a lock still uses the open file.
        let mut whole = Box::new(description_of(libc::F_UNLCK, libc::SEEK_SET, 0));
        // SAFETY: private memory.
        unsafe { gondwana_sys::syscall!(libc::SYS_fcntl, held.0, libc::F_OFD_SETLK, &raw mut *whole) };
    }
    0
}

/// In the child of a fork: the open files, and so the locks, are the parent's.
pub(super) fn leave_to_parent() {
    if let Ok(mut all) = HELD.try_lock() {
        all.clear();
    }
}

/// Opens what a process of this computer has open, for all kinds of locks if it may, and not at a number of the program.
fn open_again(process: c_int, fd: c_int) -> Option<Held> {
    let path = CString::new(format!("/proc/{process}/fd/{fd}")).ok()?;
    [libc::O_RDWR, libc::O_RDONLY, libc::O_WRONLY].into_iter().find_map(|access| {
        let flags = access | libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK;
        // SAFETY: a string in private memory.
        let opened =
            unsafe { gondwana_sys::syscall!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0) };
        (opened >= 0).then(|| Held(descriptors::withdraw(int(opened))))
    })
}
