//! Record locks (`fcntl`, `lockf`) belong to the process, so that threads of one program never wait for each other's, and a descriptor that it
//! closes gives up all that it has on that file.
//!
//! To the kernel each node is a process of its own. So the first node of each computer [holds](super::record_holder) the locks of all its
//! nodes.

use super::buffers::Buffer;
use super::channels::locking;
use super::descriptors::{Place, There, copying, place, status};
use super::record_holder::{
    Identity, OUT_OF_REACH, by_borrowed, gondwana_give_up_records, gondwana_hold_records,
};
use super::{asking, with_buffers};
use crate::accesses;
use crate::numbers::{int, low_half};
use crate::pthread::cancel::at_point_if;
use gondwana_node::{Node, ProcessChange};
use gondwana_page::to_usize;
use libc::{c_int, c_short, c_ulong, flock, off_t};
use std::sync::atomic::{AtomicBool, Ordering};

/// Commands about locks that belong to the process.
const OF_PROCESS: [c_int; 3] = [libc::F_GETLK, libc::F_SETLK, libc::F_SETLKW];

/// The same about those that belong to an open file, and so to all who share it.
const OF_OPEN_FILE: [c_int; 3] = [libc::F_OFD_GETLK, libc::F_OFD_SETLK, libc::F_OFD_SETLKW];

/// A thread of the program has locked records.
static IS_USED: AtomicBool = AtomicBool::new(false);

/// Defines `fcntl` under its names.
macro_rules! controlling {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $name(fd: c_int, command: c_int, argument: c_ulong) -> c_int {
            let place = || place(&[fd], stringify!($name));
            let call = || match place() {
                Place::Here if OF_PROCESS.contains(&command) => {
                    // SAFETY: the caller's promise.
                    unsafe { of_records(fd, command, argument as *mut flock) }
                }
                Place::Here => with_buffers(&[description(command, argument)], || {
                    // SAFETY: forwards the caller's arguments.
                    unsafe { crate::real!($name: fn(c_int, c_int, c_ulong) -> c_int)(fd, command, argument) }
                }),
                Place::There(there) => {
                    let words = [fd.into(), command.into(), argument.cast_signed()];
                    there.call(stringify!($name), &words, &[description(command, argument)])
                }
                Place::Nowhere => -1,
            };
            // Threads of one process may wait for each other's.
            let waits = [libc::F_SETLKW, libc::F_OFD_SETLKW].contains(&command);
            let call = || at_point_if(waits, call);
            if OF_OPEN_FILE.contains(&command) {
                locking(fd, call)
            } else if [libc::F_DUPFD, libc::F_DUPFD_CLOEXEC].contains(&command) {
                copying(fd, low_half(to_usize(argument)).cast_signed(), call)
            } else {
                call()
            }
        }
    )*};
}

controlling! { fcntl fcntl64 }

/// The memory that a command of `fcntl` uses.
fn description(command: c_int, argument: c_ulong) -> Buffer {
    let locks = OF_PROCESS.contains(&command) || OF_OPEN_FILE.contains(&command);
    Buffer::result(if locks { argument as *mut flock } else { std::ptr::null_mut() })
}

/// Defines `lockf` under its names.
macro_rules! locking_files {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $name(fd: c_int, command: c_int, length: off_t) -> c_int {
            // SAFETY: the description is there.
            unsafe { lock_from_here(fd, command, length) }
        }
    )*};
}

locking_files! { lockf lockf64 }

unsafe fn lock_from_here(fd: c_int, command: c_int, length: off_t) -> c_int {
    let (command, kind) = match command {
        libc::F_LOCK => (libc::F_SETLKW, libc::F_WRLCK),
        libc::F_TLOCK => (libc::F_SETLK, libc::F_WRLCK),
        libc::F_ULOCK => (libc::F_SETLK, libc::F_UNLCK),
        libc::F_TEST => (libc::F_GETLK, libc::F_RDLCK),
        _ => {
            crate::errno::set(libc::EINVAL);
            return -1;
        }
    };
    let mut wanted = Box::new(description_of(kind, libc::SEEK_CUR, length));
    // SAFETY: the caller's promise.
    let result = unsafe { fcntl(fd, command, &raw mut *wanted as c_ulong) };
    if command == libc::F_GETLK && result == 0 && c_int::from(wanted.l_type) != libc::F_UNLCK {
        crate::errno::set(libc::EACCES);
        return -1;
    }
    result
}

/// A lock of so many bytes from a position on, or from there to the end.
pub(super) fn description_of(kind: c_int, from: c_int, length: off_t) -> flock {
    let short = |number: c_int| c_short::try_from(number).expect("a small constant");
    flock { l_type: short(kind), l_whence: short(from), l_start: 0, l_len: length, l_pid: 0 }
}

/// A command about record locks, on a descriptor of this process.
///
/// # Safety
/// There is a description of a lock, or nothing.
unsafe fn of_records(fd: c_int, command: c_int, argument: *mut flock) -> c_int {
    // SAFETY: the caller's promise.
    let Some(told) = (unsafe { accesses::load(argument) }) else {
        crate::errno::set(libc::EFAULT);
        return -1;
    };
    let mut wanted = Box::new(flock { l_pid: 0, ..told });
    let by_kernel = |wanted: &mut flock| {
        let real = crate::real!(fcntl: fn(c_int, c_int, *mut flock) -> c_int);
        // SAFETY: private memory.
        unsafe { real(fd, command, wanted) }
    };
    // Even as long as there are no other threads: what main locks first, others may unlock.
    let result = match (asking(), identity(fd)) {
        (Some(node), Some(file)) => match refused(fd, command, &mut wanted) {
            Some(error) => {
                crate::errno::set(error);
                -1
            }
            None => match by_holder(node, fd, file, command, &mut wanted) {
                -1 if crate::errno::get() == OUT_OF_REACH => by_kernel(&mut wanted),
                result => result,
            },
        },
        _ => by_kernel(&mut wanted),
    };
    if command == libc::F_GETLK && result == 0 {
        let is_free = c_int::from(wanted.l_type) == libc::F_UNLCK;
        let found = if is_free { flock { l_type: wanted.l_type, ..told } } else { *wanted };
        // SAFETY: the caller's promise.
        unsafe { accesses::store(&found, argument) };
    }
    result
}

/// The identity of a regular file; `None` for anything else.
fn identity(fd: c_int) -> Option<Identity> {
    let found = status(fd).filter(|found| found.st_mode & libc::S_IFMT == libc::S_IFREG)?;
    Some((found.st_dev, found.st_ino))
}

/// The error with which the kernel would refuse a lock because of the descriptor. Has the lock described without its position, which only that
/// descriptor has.
fn refused(fd: c_int, command: c_int, wanted: &mut flock) -> Option<c_int> {
    // SAFETY: the calls touch no memory.
    let (flags, position) = unsafe {
        let flags = int(gondwana_sys::syscall!(libc::SYS_fcntl, fd, libc::F_GETFL, 0));
        (flags, gondwana_sys::syscall!(libc::SYS_lseek, fd, 0, libc::SEEK_CUR))
    };
    let access = flags & libc::O_ACCMODE;
    let cannot = match c_int::from(wanted.l_type) {
        _ if flags & libc::O_PATH != 0 => true,
        _ if command == libc::F_GETLK => false,
        libc::F_RDLCK => access == libc::O_WRONLY,
        libc::F_WRLCK => access == libc::O_RDONLY,
        _ => false,
    };
    if cannot {
        return Some(libc::EBADF);
    }
    if c_int::from(wanted.l_whence) == libc::SEEK_CUR {
        wanted.l_whence = description_of(0, libc::SEEK_SET, 0).l_whence;
        match wanted.l_start.checked_add(position) {
            Some(start) => wanted.l_start = start,
            None => return Some(libc::EOVERFLOW),
        }
    }
    None
}

/// Has the holder of this computer's locks carry out a command.
fn by_holder(node: &'static Node, fd: c_int, file: Identity, command: c_int, wanted: &mut flock) -> c_int {
    if !IS_USED.swap(true, Ordering::SeqCst) {
        // Noting it cannot fail.
        let _ = node.change_elsewhere(ProcessChange::LockRecords);
    }
    let process = gondwana_sys::process();
    let holder = node.first_on_computer();
    if holder == node.id() {
        // SAFETY: the description is private memory.
        return unsafe { gondwana_hold_records(process, fd, file.0, file.1, command, wanted) };
    }
    let there = There { node, owner: holder.index() };
    // SAFETY: as above.
    if let Some(result) = unsafe { by_borrowed(there, fd, file, command, wanted) } {
        return result;
    }
    let (device, number) = (file.0.cast_signed(), file.1.cast_signed());
    let wanted = std::ptr::from_mut(wanted);
    let words = [process.into(), fd.into(), device, number, command.into(), wanted as i64];
    there.call("gondwana_hold_records", &words, &[Buffer::result(wanted)])
}

/// For another node: a thread has locked records.
pub(crate) fn note_use() {
    IS_USED.store(true, Ordering::SeqCst);
}

/// Closes a descriptor by `close`, and gives up the program's locks of its file.
#[inline]
pub(crate) fn closing<R>(fd: c_int, close: impl FnOnce() -> R) -> R {
    if IS_USED.load(Ordering::Relaxed) { close_and_give_up(fd, close) } else { close() }
}

#[cold]
fn close_and_give_up<R>(fd: c_int, close: impl FnOnce() -> R) -> R {
    let file = asking().zip(identity(fd));
    let result = close();
    if let Some((node, (device, number))) = file {
        let before = crate::errno::get();
        let holder = node.first_on_computer();
        if holder == node.id() {
            gondwana_give_up_records(device, number);
        } else {
            let words = [device.cast_signed(), number.cast_signed()];
            let _: c_int =
                There { node, owner: holder.index() }.call("gondwana_give_up_records", &words, &[]);
        }
        crate::errno::set(before);
    }
    result
}
