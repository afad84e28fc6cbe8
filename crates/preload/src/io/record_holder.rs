//! The node that holds the record locks of all nodes of its computer.
//!
//! The kernel gives up all locks that a table of descriptors has on a file when any descriptor of the file in it is closed, and this
//! process closes some that the program knows nothing of: copies of other nodes' descriptors. So a thread with a table of its own holds the
//! locks, by one descriptor of each file. A command that has to wait gets a thread that shares that table.

use super::record_locks::description_of;
use crate::numbers::int;
use crate::pthread::cancel::{be_interruptible, interrupt};
use crate::report;
use gondwana_locks::lock;
use gondwana_node::Thread;
use libc::{c_int, flock, timespec};
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, LazyLock, Mutex};

/// The device and the number of a file.
pub(super) type Identity = (u64, u64);

/// What is said of a file that the holder cannot open: no lock fails with it.
pub(super) const OUT_OF_REACH: c_int = libc::EXDEV;

/// How often a thread that waits for a lock is interrupted until it has noticed, in nanoseconds.
const PERSISTENCE: i64 = 10_000_000;

/// What the thread that holds the locks is asked for.
enum Request {
    /// A command of `fcntl` about a lock of a file, which a process has open at a number.
    Lock { file: Identity, open: (c_int, c_int), command: c_int, wanted: flock, answer: Arc<Answer> },
    /// A thread has waited for a lock of a file, whether it has it now or not.
    Waited { file: Identity },
    /// All locks of a file are to be given up.
    GiveUp { file: Identity, answer: Arc<Answer> },
}

/// What comes of a command.
#[derive(Default)]
struct Answer {
    is_there: AtomicU32,
    /// The kernel's number of the thread that waits for the lock; 0 for none.
    thread: AtomicI32,
    /// An error number or 0, and what the kernel says of the lock.
    result: Mutex<(c_int, Option<flock>)>,
}

impl Answer {
    fn give(&self, error: c_int, lock: Option<flock>) {
        *gondwana_locks::lock(&self.result) = (error, lock);
        self.is_there.store(1, Ordering::SeqCst);
        // SAFETY: wakes the thread that waits below.
        unsafe {
            let (operation, one) = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
            gondwana_sys::syscall!(libc::SYS_futex, self.is_there.as_ptr(), operation, one)
        };
    }

    /// Waits for the answer. A signal ends the waiting for the lock.
    fn wait(&self) -> (c_int, Option<flock>) {
        let pause = Box::new(timespec { tv_sec: 0, tv_nsec: PERSISTENCE });
        let mut longest = std::ptr::null();
        while self.is_there.load(Ordering::SeqCst) == 0 {
            let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
            // SAFETY: waits at memory of this process that stays as it is.
            let waited = unsafe {
                gondwana_sys::syscall!(libc::SYS_futex, self.is_there.as_ptr(), operation, 0, longest)
            };
            if waited < 0 && [libc::EINTR, libc::ETIMEDOUT].contains(&crate::errno::get()) {
                longest = &raw const *pause;
                let thread = self.thread.load(Ordering::SeqCst);
                if thread != 0 {
                    interrupt(thread);
                }
            }
        }
        *gondwana_locks::lock(&self.result)
    }
}

static REQUESTS: LazyLock<Mutex<Sender<Request>>> = LazyLock::new(|| {
    let (requests, receiver) = channel();
    let own = requests.clone();
    if let Err(error) = Thread::start_native("record locks", move || hold(&receiver, &own)) {
        report::fatal(&format!("starting the thread that holds record locks: {error}"));
    }
    Mutex::new(requests)
});

fn ask(request: Request) {
    // The thread ends with the process.
    let _ = lock(&REQUESTS).send(request);
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
    let answer = Arc::new(Answer::default());
    // SAFETY: the caller's promise.
    let told = unsafe { wanted.read() };
    let (file, open) = ((device, number), (process, fd));
    ask(Request::Lock { file, open, command, wanted: told, answer: answer.clone() });
    let (error, found) = answer.wait();
    if let Some(found) = found {
        // SAFETY: the caller's promise.
        unsafe { wanted.write(found) };
    }
    if error == 0 {
        return 0;
    }
    crate::errno::set(error);
    -1
}

/// For threads of all nodes of this computer: gives up all locks of a file.
#[unsafe(no_mangle)]
pub(super) extern "C-unwind" fn gondwana_give_up_records(device: u64, number: u64) -> c_int {
    let answer = Arc::new(Answer::default());
    ask(Request::GiveUp { file: (device, number), answer: answer.clone() });
    answer.wait().0
}

/// A file of which there may be locks.
struct Held {
    descriptor: c_int,
    /// The threads that wait for locks of it.
    waiting: usize,
}

/// The thread that holds the locks.
fn hold(requests: &Receiver<Request>, own: &Sender<Request>) {
    // SAFETY: from here on this thread uses no descriptors but those that it opens.
    unsafe {
        if gondwana_sys::syscall!(libc::SYS_unshare, libc::CLONE_FILES) < 0 {
            report::fatal("the system does not give a thread descriptors of its own, to lock records with");
        }
        gondwana_sys::syscall!(libc::SYS_close_range, 0, u32::MAX, 0);
    }
    let mut all: HashMap<Identity, Held> = HashMap::new();
    for request in requests {
        match request {
            Request::Lock { file, open, command, wanted, answer } => {
                let held = match all.entry(file) {
                    std::collections::hash_map::Entry::Occupied(held) => held.into_mut(),
                    std::collections::hash_map::Entry::Vacant(place) => match open_again(open) {
                        Some(descriptor) => place.insert(Held { descriptor, waiting: 0 }),
                        None => {
                            answer.give(OUT_OF_REACH, None);
                            continue;
                        }
                    },
                };
                let at_once = if command == libc::F_SETLKW { libc::F_SETLK } else { command };
                let (error, found) = control(held.descriptor, at_once, wanted);
                if command == libc::F_SETLKW && [libc::EAGAIN, libc::EACCES].contains(&error) {
                    let waits = wait(held.descriptor, file, wanted, answer, own.clone());
                    held.waiting += usize::from(waits);
                } else {
                    answer.give(error, Some(found));
                }
            }
            Request::Waited { file } => {
                if let Some(held) = all.get_mut(&file) {
                    held.waiting -= 1;
                }
            }
            Request::GiveUp { file, answer } => {
                if let Some(held) = all.remove(&file) {
                    if held.waiting > 0 {
                        // Its descriptor is in use.
                        control(
                            held.descriptor,
                            libc::F_SETLK,
                            description_of(libc::F_UNLCK, libc::SEEK_SET, 0),
                        );
                        all.insert(file, held);
                    } else {
                        // SAFETY: a descriptor of this table.
                        unsafe { gondwana_sys::syscall!(libc::SYS_close, held.descriptor) };
                    }
                }
                answer.give(0, None);
            }
        }
    }
}

/// Waits for a lock, in a thread that shares the table of the calling one; false if there is no room for it.
fn wait(
    descriptor: c_int,
    file: Identity,
    wanted: flock,
    answer: Arc<Answer>,
    done: Sender<Request>,
) -> bool {
    let given = answer.clone();
    let started = Thread::start_native("record lock", move || {
        be_interruptible();
        given.thread.store(int(gondwana_sys::thread()), Ordering::SeqCst);
        let (error, found) = control(descriptor, libc::F_SETLKW, wanted);
        given.give(error, Some(found));
        let _ = done.send(Request::Waited { file });
    });
    if started.is_err() {
        answer.give(libc::ENOLCK, None);
    }
    started.is_ok()
}

/// `fcntl` by the calling thread's table. Gives an error number or 0, and the description afterwards.
fn control(descriptor: c_int, command: c_int, wanted: flock) -> (c_int, flock) {
    let mut wanted = Box::new(wanted);
    // SAFETY: the description is private memory.
    let result = unsafe { gondwana_sys::syscall!(libc::SYS_fcntl, descriptor, command, &raw mut *wanted) };
    (if result < 0 { crate::errno::get() } else { 0 }, *wanted)
}

/// Opens what a process of this computer has open, for all kinds of locks if it may.
fn open_again((process, fd): (c_int, c_int)) -> Option<c_int> {
    let path = CString::new(format!("/proc/{process}/fd/{fd}")).ok()?;
    [libc::O_RDWR, libc::O_RDONLY, libc::O_WRONLY].into_iter().find_map(|access| {
        let flags = access | libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK;
        // SAFETY: a string in private memory.
        let opened =
            unsafe { gondwana_sys::syscall!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0) };
        (opened >= 0).then(|| int(opened))
    })
}
