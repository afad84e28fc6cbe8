//! The node that holds the record locks of all nodes of its computer.
//!
//! It has them as locks of open files (`F_OFD_SETLK`), of one open file for each file. Locks of a process would be given up whenever this one
//! closes a descriptor of the file, and it closes some that the program knows nothing of: copies of other nodes' descriptors.
//!
//! Where nodes may copy each other's descriptors, another node borrows the open file, and locks by itself.

use super::descriptors::{self, There};
use super::record_locks::description_of;
use crate::numbers::{int, low_half};
use gondwana_locks::{lock, try_lock};
use gondwana_node::{Node, ProcessChange};
use libc::{c_int, flock};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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

/// The open files of the holder, and those that another node has borrowed from it.
static HELD: LazyLock<Mutex<HashMap<Identity, Arc<Held>>>> = LazyLock::new(Mutex::default);

/// The holder has lent open files.
static HAS_LENT: AtomicBool = AtomicBool::new(false);

/// Counts the orders to forget open files.
static FORGOTTEN: AtomicU64 = AtomicU64::new(0);

/// The open file of a file that a process of this computer has open at a number.
fn held(process: c_int, fd: c_int, file: Identity) -> Option<Arc<Held>> {
    match lock(&HELD).entry(file) {
        Entry::Occupied(held) => Some(held.get().clone()),
        Entry::Vacant(place) => open_again(process, fd).map(|file| place.insert(Arc::new(file)).clone()),
    }
}

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
    let Some(held) = held(process, fd, (device, number)) else {
        crate::errno::set(OUT_OF_REACH);
        return -1;
    };
    // SAFETY: the caller's promise.
    unsafe { control(&held, command, wanted) }
}

/// Carries out a command about locks of a process for those of an open file.
///
/// # Safety
/// There is a description of a lock, in private memory.
unsafe fn control(held: &Held, command: c_int, wanted: *mut flock) -> c_int {
    let command = match command {
        libc::F_GETLK => libc::F_OFD_GETLK,
        libc::F_SETLK => libc::F_OFD_SETLK,
        _ => libc::F_OFD_SETLKW,
    };
    // SAFETY: the caller's promise. This may wait, and `HELD` is not locked.
    int(unsafe { gondwana_sys::syscall!(libc::SYS_fcntl, held.0, command, wanted) })
}

/// For another node of this computer: this process, in the upper half, and the number at which it has the open file; or -1.
#[unsafe(no_mangle)]
extern "C-unwind" fn gondwana_lend_records(process: c_int, fd: c_int, device: u64, number: u64) -> isize {
    HAS_LENT.store(true, Ordering::SeqCst);
    held(process, fd, (device, number))
        .map_or(-1, |held| (gondwana_sys::process() as isize) << 32 | held.0 as isize)
}

/// By the open file of the holder, if this node can borrow it: carries out a command about locks of a file that it has open at a number.
///
/// # Safety
/// There is a description of a lock, in private memory.
pub(super) unsafe fn by_borrowed(
    holder: There,
    fd: c_int,
    file: Identity,
    command: c_int,
    wanted: *mut flock,
) -> Option<c_int> {
    static CANNOT: AtomicBool = AtomicBool::new(false);
    if !holder.node.is_on_one_computer() || CANNOT.load(Ordering::Relaxed) {
        return None;
    }
    let known = lock(&HELD).get(&file).cloned();
    let Some(held) = known.or_else(|| borrow(holder, fd, file)) else {
        CANNOT.store(true, Ordering::Relaxed);
        return None;
    };
    // SAFETY: the caller's promise.
    Some(unsafe { control(&held, command, wanted) })
}

/// A copy of the holder's descriptor of an open file.
fn borrow(holder: There, fd: c_int, file: Identity) -> Option<Arc<Held>> {
    let words = [gondwana_sys::process().into(), fd.into(), file.0.cast_signed(), file.1.cast_signed()];
    loop {
        let forgotten = FORGOTTEN.load(Ordering::SeqCst);
        let lent: isize = holder.call("gondwana_lend_records", &words, &[]);
        let process = c_int::try_from(lent >> 32).ok().filter(|&process| process > 0)?;
        let copy = descriptors::fetch(process, low_half(lent.cast_unsigned()).cast_signed());
        if copy < 0 {
            return None;
        }
        let copy = Arc::new(Held(descriptors::withdraw(copy)));
        let held = lock(&HELD).entry(file).or_insert(copy).clone();
        if FORGOTTEN.load(Ordering::SeqCst) == forgotten {
            return Some(held);
        }
        // It may be one that was to be forgotten before it was here.
        lock(&HELD).remove(&file);
    }
}

/// For the holder: another open file stands for this one from now on, if any.
pub(crate) fn forget(device: u64, number: u64) {
    FORGOTTEN.fetch_add(1, Ordering::SeqCst);
    lock(&HELD).remove(&(device, number));
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
        if let Some(node) = Node::current().filter(|_| HAS_LENT.load(Ordering::SeqCst)) {
            // Forgetting cannot fail.
            let _ = node.change_elsewhere(ProcessChange::ForgetRecords { device, number });
        }
    }
    0
}

/// In the child of a fork: the open files, and so the locks, are the parent's.
pub(super) fn leave_to_parent() {
    if let Some(mut all) = try_lock(&HELD) {
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
