//! Named semaphores: mapped files, which other processes find by their names, too.

use crate::map;
use crate::private_stack::uninterrupted;
use gondwana_locks::lock;
use gondwana_node::Node;
use libc::{c_char, c_int, c_uint, mode_t, sem_t};
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the C library keeps them.
const FOLDER: &[u8] = b"/dev/shm/sem.";

/// A semaphore that this node has opened: a program that opens it again gets the same address.
struct Opened {
    file: (libc::dev_t, libc::ino_t),
    address: usize,
    times: u32,
}

static OPENED: Mutex<Vec<Opened>> = Mutex::new(vec![]);

type Open = unsafe extern "C" fn(*const c_char, c_int, mode_t, c_uint) -> *mut sem_t;

/// # Safety
/// As the C library's `sem_open`. Arguments that the caller did not pass have arbitrary values, which it ignores.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sem_open(
    name: *const c_char,
    flags: c_int,
    mode: mode_t,
    value: c_uint,
) -> *mut sem_t {
    let open: Open = crate::real!(sem_open: fn(*const c_char, c_int, mode_t, c_uint) -> *mut sem_t);
    let Some(node) = Node::current() else {
        // SAFETY: forwards the caller's arguments.
        return unsafe { open(name, flags, mode, value) };
    };
    // SAFETY: the caller passes a string; the copy is private.
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    // SAFETY: as above.
    let own = unsafe { open(name.as_ptr(), flags, mode, value) };
    if own == libc::SEM_FAILED {
        return own;
    }
    match node.mapped_files().are_together().then(|| mapped(node, &name)).flatten() {
        Some(address) => {
            // SAFETY: nobody else knows this address.
            unsafe { crate::real!(sem_close: fn(*mut sem_t) -> c_int)(own) };
            address as *mut sem_t
        }
        None => {
            static TOLD: AtomicBool = AtomicBool::new(false);
            if !TOLD.swap(true, Ordering::Relaxed) {
                node.refuse(
                    "sem_open(): threads of other nodes cannot use this named semaphore; use sem_init()",
                );
            }
            own
        }
    }
}

/// Maps the file of a semaphore that exists on all nodes, or finds where it is mapped already.
fn mapped(node: &'static Node, name: &CStr) -> Option<usize> {
    let bare = name.to_bytes().iter().skip_while(|&&byte| byte == b'/').copied();
    let path = CString::new(FOLDER.iter().copied().chain(bare).collect::<Vec<u8>>()).ok()?;
    // By system call: the descriptor is none of the program's. SAFETY: a string.
    let file = unsafe {
        let flags = libc::O_RDWR | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        gondwana_sys::syscall!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0)
    };
    let file = c_int::try_from(file).ok().filter(|&file| file >= 0)?;
    // SAFETY: the kernel has just given us this descriptor.
    let file = gondwana_memory::out_of_the_way(unsafe { OwnedFd::from_raw_fd(file) });
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel fills in the structure if the call succeeds.
    let status =
        unsafe { (libc::fstat(file.as_raw_fd(), status.as_mut_ptr()) == 0).then(|| status.assume_init()) }?;
    let id = (status.st_dev, status.st_ino);
    let again = uninterrupted(|| {
        let mut opened = lock(&OPENED);
        let known = opened.iter_mut().find(|known| known.file == id)?;
        known.times += 1;
        Some(known.address)
    });
    again.or_else(|| {
        let address = map::map_everywhere(node, file.as_raw_fd(), size_of::<sem_t>())?;
        uninterrupted(|| lock(&OPENED).push(Opened { file: id, address, times: 1 }));
        Some(address)
    })
}

/// # Safety
/// As the C library's `sem_close`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sem_close(semaphore: *mut sem_t) -> c_int {
    let left = uninterrupted(|| {
        let mut opened = lock(&OPENED);
        let index = opened.iter().position(|known| known.address == semaphore as usize)?;
        opened[index].times -= 1;
        let left = opened[index].times;
        if left == 0 {
            opened.swap_remove(index);
        }
        Some(left)
    });
    match left {
        // SAFETY: the program is done with it.
        Some(0) => unsafe { map::munmap(semaphore.cast(), size_of::<sem_t>()) },
        Some(_) => 0,
        // Another node has opened it, and unmaps it when it closes it.
        None if Node::current()
            .is_some_and(|node| node.mapped_files().node_of(semaphore as usize).is_some()) =>
        {
            0
        }
        // SAFETY: forwards the caller's argument.
        None => unsafe { crate::real!(sem_close: fn(*mut sem_t) -> c_int)(semaphore) },
    }
}
