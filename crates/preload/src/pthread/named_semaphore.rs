//! Named semaphores: mapped files, which other processes find by their names, too.
//!
//! Between computers each name has a *home*: the node that has opened it first, to make it, or else node 0. There it is opened, and used for
//! all (`semaphore`), so that a name is one semaphore for the whole run, and for the other processes of its home's computer.

use crate::io::descriptors::There;
use crate::io::{Buffer, Failing};
use crate::map;
use crate::numbers::int;
use crate::private_stack::uninterrupted;
use gondwana_locks::lock;
use gondwana_node::Node;
use gondwana_sys::Argument;
use libc::{c_char, c_int, c_uint, mode_t, sem_t};
use std::collections::BTreeMap;
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

/// On node 0: the homes of names that other nodes have made, or that it has made itself.
static HOMES: Mutex<BTreeMap<CString, c_int>> = Mutex::new(BTreeMap::new());

/// The answer of [`__gondwana_semaphore_home`] that the asking node is a name's home from now on.
const NEW: c_int = -1;

/// For all nodes, on node 0: the home of the semaphore of this name. A name without one gets `maker`, unless that is negative.
///
/// # Safety
/// The name is a string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn __gondwana_semaphore_home(name: *const c_char, maker: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    uninterrupted(|| {
        let mut homes = lock(&HOMES);
        match homes.get(&name) {
            Some(&home) => home,
            None if maker < 0 => 0,
            None => {
                homes.insert(name, maker);
                NEW
            }
        }
    })
}

/// For all nodes, on node 0: a semaphore has no name any more, or was not made.
///
/// # Safety
/// As for [`__gondwana_semaphore_home`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn __gondwana_semaphore_forget(name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    uninterrupted(|| lock(&HOMES).remove(&name));
    0
}

/// A name, which is private memory, as the memory of a call.
fn text(name: &CStr) -> Buffer {
    Buffer::read(name.as_ptr(), name.count_bytes() + 1)
}

/// Node 0's [`__gondwana_semaphore_home`].
fn home(node: &'static Node, name: &CStr, maker: c_int) -> c_int {
    if node.is_first() {
        // SAFETY: a string.
        return unsafe { __gondwana_semaphore_home(name.as_ptr(), maker) };
    }
    let words = [name.as_ptr().word(), maker.word()];
    There { node, owner: 0 }.call("__gondwana_semaphore_home", &words, &[text(name)])
}

/// Node 0's [`__gondwana_semaphore_forget`].
fn forget_home(node: &'static Node, name: &CStr) {
    let before = crate::errno::get();
    if node.is_first() {
        // SAFETY: a string.
        unsafe { __gondwana_semaphore_forget(name.as_ptr()) };
    } else {
        let there = There { node, owner: 0 };
        let words = [name.as_ptr().word()];
        let _: c_int = there.call("__gondwana_semaphore_forget", &words, &[text(name)]);
    }
    crate::errno::set(before);
}

/// Makes a call on a name where it is at home: by `call` here, with whether this node is the home only since now, or by the function of the
/// same name there.
fn at_home<R: Failing>(
    node: &'static Node,
    (function, name): (&str, &CStr),
    arguments: &[i64],
    makes: bool,
    call: impl FnOnce(bool) -> R,
) -> R {
    let own = int(node.number().index());
    if node.mapped_files().are_together() {
        return call(false);
    }
    match home(node, name, if makes { own } else { -1 }) {
        NEW => call(true),
        home if home == own => call(false),
        home => {
            let words: Vec<i64> = [name.as_ptr().word()].iter().chain(arguments).copied().collect();
            let there = There { node, owner: usize::try_from(home).unwrap_or(0) };
            there.call(function, &words, &[text(name)])
        }
    }
}

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
    let makes = flags & libc::O_CREAT != 0;
    let arguments = [flags.word(), mode.word(), value.word()];
    at_home(node, ("sem_open", &name), &arguments, makes, |is_new| {
        // SAFETY: forwards the caller's arguments, with a string.
        let own = unsafe { open(name.as_ptr(), flags, mode, value) };
        if own == libc::SEM_FAILED {
            if is_new {
                forget_home(node, &name);
            }
            return own;
        }
        if let Some(address) = mapped(node, &name) {
            // SAFETY: nobody else knows this address.
            unsafe { crate::real!(sem_close: fn(*mut sem_t) -> c_int)(own) };
            return address as *mut sem_t;
        }
        static TOLD: AtomicBool = AtomicBool::new(false);
        if !TOLD.swap(true, Ordering::Relaxed) {
            node.refuse("sem_open(): threads of other nodes cannot use this named semaphore; use sem_init()");
        }
        own
    })
}

/// # Safety
/// As the C library's `sem_unlink`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sem_unlink(name: *const c_char) -> c_int {
    let unlink = crate::real!(sem_unlink: fn(*const c_char) -> c_int);
    let Some(node) = Node::current() else {
        // SAFETY: forwards the caller's argument.
        return unsafe { unlink(name) };
    };
    // SAFETY: as in `sem_open`.
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    at_home(node, ("sem_unlink", &name), &[], false, |_| {
        // SAFETY: a string.
        let failed = unsafe { unlink(name.as_ptr()) };
        if failed == 0 && !node.mapped_files().are_together() {
            forget_home(node, &name);
        }
        failed
    })
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
    if let Some(node) = Node::current()
        && let Some(owner) = node.mapped_files().out_of_reach(semaphore as usize)
    {
        return There { node, owner }.call("sem_close", &[semaphore.word()], &[]);
    }
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
