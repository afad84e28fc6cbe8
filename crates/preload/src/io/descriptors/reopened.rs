//! Descriptors of other nodes, for a process that goes on without those. On one computer it gets copies. Of nodes of other computers, files
//! and devices that this computer has, too, are open again at the same numbers, with the same flags and at the same place; the rest is
//! out of reach there.
//!
//! This process has them only until the new one has begun: the other end of a pipe must see that its owner closes it.

use super::bits::Bits;
use super::copy::{Lasting, fetch};
use super::ranges::for_open;
use super::stops::{self, Numbers};
use super::there::There;
use crate::io::Buffer;
use crate::numbers::int;
use crate::private_stack::uninterrupted;
use crate::report;
use gondwana_locks::lock;
use gondwana_node::{Node, Thread};
use gondwana_sys::Argument;
use libc::{c_int, off_t, ssize_t};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::mem::ManuallyDrop;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// In a child process: numbers that another node had open, and that are out of reach.
static LEFT: Bits = Bits::new();

/// The numbers that are open for new processes, with how many threads have had that done. To this process they remain placeholders.
static OPENED: Mutex<BTreeMap<c_int, usize>> = Mutex::new(BTreeMap::new());

/// Numbers of other nodes that are open here for a new process, until this value is dropped.
#[derive(Default)]
pub(crate) struct Reopened {
    numbers: Vec<c_int>,
    left: Vec<c_int>,
}

impl Reopened {
    /// All that can be had, for a process that goes on with the program's code.
    pub(crate) fn for_fork() -> Self {
        Self::all(false)
    }

    /// What programs inherit, for one that this process starts.
    pub(crate) fn for_program() -> Self {
        Self::all(true)
    }

    fn all(lasts: bool) -> Self {
        let Some(node) = Node::current().filter(|node| node.has_company() && !Thread::inside_runtime())
        else {
            return Self::default();
        };
        let together = node.is_on_one_computer();
        let all = RefCell::new(Self::default());
        // Between computers, standard descriptors are what the run gives each node.
        let first = if together { 0 } else { libc::STDERR_FILENO.unsigned_abs() + 1 };
        for_open(
            (first, u32::MAX),
            |_| {},
            |node, owner, number| {
                let Some(original) = Original::find(node, owner, number) else { return };
                let lasting = original.lasting(number);
                if lasts && lasting == Lasting::UntilExec {
                    return;
                }
                match original.open(number) {
                    Some(file) => {
                        put(file, number, lasting);
                        all.borrow_mut().numbers.push(number);
                    }
                    None if together => {}
                    None => all.borrow_mut().left.push(number),
                }
            },
        );
        all.into_inner()
    }

    /// In the new process, which has copies of this one's memory: they are its own.
    pub(crate) fn keep(self) {
        // Not dropped: a thread that is not here may have had the lock.
        let own = ManuallyDrop::new(self);
        own.numbers.iter().copied().for_each(stops::taken);
        own.left.iter().for_each(|&number| LEFT.set(number));
    }
}

impl Drop for Reopened {
    fn drop(&mut self) {
        let Some(numbers) = Numbers::get().filter(|_| !self.numbers.is_empty()) else { return };
        uninterrupted(|| {
            let mut opened = lock(&OPENED);
            for number in &self.numbers {
                let users = opened.get_mut(number).map_or(0, |users| {
                    *users -= 1;
                    *users
                });
                if users == 0 {
                    opened.remove(number);
                    // Unless a thread of this process uses it by now.
                    if stops::is_stop(*number) {
                        numbers.close(*number);
                    }
                }
            }
        });
    }
}

/// Makes a number one that this process uses, while nothing is done for new processes.
pub(super) fn alone<R>(take: impl FnOnce() -> R) -> R {
    uninterrupted(|| {
        let _opened = lock(&OPENED);
        take()
    })
}

/// What a descriptor for a new process is made of.
enum Original {
    /// The descriptor of a process of this computer.
    Here(c_int),
    There(There),
}

impl Original {
    /// `None` if it is closed by now.
    fn find(node: &'static Node, owner: usize, number: c_int) -> Option<Self> {
        if node.is_on_one_computer() {
            node.borrow_descriptor(owner, number).ok().map(Self::Here)
        } else {
            Some(Self::There(There { node, owner }))
        }
    }

    fn lasting(&self, number: c_int) -> Lasting {
        match self {
            Self::Here(process) => Lasting::of(*process, number),
            Self::There(there) => {
                let flags: c_int = there.call("fcntl", &[number.into(), libc::F_GETFD.into(), 0], &[]);
                if flags & libc::FD_CLOEXEC == 0 { Lasting::AcrossExec } else { Lasting::UntilExec }
            }
        }
    }

    /// The same file at another number, if it can be had.
    fn open(&self, number: c_int) -> Option<c_int> {
        match self {
            Self::Here(process) => Some(fetch(*process, number)).filter(|&copy| copy >= 0),
            Self::There(there) => open_again(*there, number),
        }
    }
}

/// Puts a file in place of the placeholder at a number.
fn put(file: c_int, number: c_int, lasting: Lasting) {
    uninterrupted(|| {
        let mut opened = lock(&OPENED);
        *opened.entry(number).or_insert(0) += 1;
        // SAFETY: touches no memory; the file is nobody else's, and the number one that the program cannot open here.
        unsafe {
            gondwana_sys::syscall!(libc::SYS_dup3, file, number, lasting.flags());
            gondwana_sys::syscall!(libc::SYS_close, file);
        }
    });
}

/// True if a child process could have a descriptor of another node.
pub(crate) fn can_open_again(there: There, number: c_int) -> bool {
    let file = open_again(there, number);
    // SAFETY: touches no memory; the file is nobody else's.
    file.is_some_and(|file| unsafe { gondwana_sys::syscall!(libc::SYS_close, file) } == 0)
}

/// Opens what another node has open, if this computer has it.
fn open_again(there: There, number: c_int) -> Option<c_int> {
    let flags: c_int = there.call("fcntl", &[number.into(), libc::F_GETFL.into(), 0], &[]);
    let original = status_there(there, number)?;
    let kinds = [libc::S_IFREG, libc::S_IFDIR, libc::S_IFCHR];
    let path = path_there(there, number)?;
    if flags < 0 || !kinds.contains(&(original.st_mode & libc::S_IFMT)) {
        return None;
    }
    let flags = flags & !(libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC) | libc::O_CLOEXEC | libc::O_NOCTTY;
    // SAFETY: a private string.
    let file = unsafe { gondwana_sys::syscall!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0) };
    if file < 0 {
        return None;
    }
    let file = int(file);
    if !super::status(file).is_some_and(|found| is_same(&original, &found)) {
        // SAFETY: touches no memory; the file is nobody else's.
        unsafe { gondwana_sys::syscall!(libc::SYS_close, file) };
        return None;
    }
    let at: off_t = there.call("lseek", &[number.into(), 0, libc::SEEK_CUR.into()], &[]);
    if at > 0 {
        // SAFETY: touches no memory.
        unsafe { gondwana_sys::syscall!(libc::SYS_lseek, file, at, libc::SEEK_SET) };
    }
    Some(file)
}

/// The same file, perhaps as another computer sees it.
fn is_same(one: &libc::stat, other: &libc::stat) -> bool {
    let identity = |file: &libc::stat| (file.st_mode, file.st_ino, file.st_rdev);
    let contents = |file: &libc::stat| (file.st_size, file.st_mtime, file.st_mtime_nsec);
    match one.st_mode & libc::S_IFMT {
        // Each computer has its own, by the same numbers.
        libc::S_IFCHR => (one.st_mode, one.st_rdev) == (other.st_mode, other.st_rdev),
        _ => {
            identity(one) == identity(other)
                && (one.st_dev == other.st_dev || contents(one) == contents(other))
        }
    }
}

fn status_there(there: There, number: c_int) -> Option<libc::stat> {
    // SAFETY: zero is a valid value.
    let mut status: Box<libc::stat> = Box::new(unsafe { std::mem::zeroed() });
    let place = &raw mut *status;
    let failed: c_int = there.call("fstat", &[number.into(), place.word()], &[Buffer::result(place)]);
    (failed == 0).then_some(*status)
}

fn path_there(there: There, number: c_int) -> Option<CString> {
    let link = CString::new(format!("/proc/self/fd/{number}")).ok()?;
    let mut path = vec![0_u8; 4096];
    let words = [link.as_ptr().word(), path.as_mut_ptr().word(), path.len().word()];
    let buffers = [
        Buffer::read(link.as_ptr(), link.as_bytes_with_nul().len()),
        Buffer::write(path.as_mut_ptr(), path.len()),
    ];
    let length: ssize_t = there.call("readlink", &words, &buffers);
    path.truncate(usize::try_from(length).ok()?);
    CString::new(path).ok()
}

/// In a child process that closes a number: true if it was open on another node.
pub(super) fn give_up(number: c_int) -> bool {
    LEFT.is_set(number) && LEFT.clear(number)
}

/// In a child process: true for the number of a file that is out of reach.
pub(super) fn is_out_of_reach(number: c_int) -> bool {
    LEFT.is_set(number)
}

/// In a child process that uses a number: says so, once, if it is one that it should have.
pub(super) fn miss(number: c_int, call: &str) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if LEFT.is_set(number) && !SAID.swap(true, Ordering::Relaxed) {
        report::line(&format!(
            "{call}() on descriptor {number} in a child process: a node on another computer has it open, and it is no file that both \
             have; open it in the thread that forks, or run with --threads fill"
        ));
    }
}
