//! What the threads of this node wait for, kept so that it can be told at any time: also while threads hang.
//!
//! A thread notes what it is going to wait for on the slow paths only, in words of its own; whoever is asked reads them without
//! a lock.

use crate::Node;
use crate::held_locks::HeldLocks;
use crate::wait_slots::{MAX_THREADS, WaitSlot};
use gondwana_control::{Awaited, MAX_REPORT, NodeWaits, Report, Wait, WaitingThread};
use gondwana_locks::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Marks waits with a time limit, beside the number of what is awaited.
const TIMED: u32 = 1 << 8;

/// How long the machines may take to answer.
const MACHINES: Duration = Duration::from_secs(1);

/// How often they are asked meanwhile.
const AGAIN: Duration = Duration::from_millis(1);

/// The most mutexes and other objects that are told of, so that the report is not too long.
const MOST_OBJECTS: usize = 1000;

/// What one thread has noted. All bytes zero is a place of nobody.
#[derive(Default)]
struct Note {
    /// The thread's number in the run; 0 if the place is nobody's.
    thread: AtomicU64,
    /// The kernel's number of it.
    task: AtomicU32,
    /// What it waits for, as a number with [`TIMED`]; 0: nothing that is noted.
    kind: AtomicU32,
    object: AtomicU64,
    /// The barrier at which it has arrived last.
    barrier: AtomicU64,
    /// How many waits it has begun.
    begun: AtomicU64,
    /// How deep it is in handlers of signals.
    handlers: AtomicU32,
    /// The readers-writer locks that it holds.
    locks: HeldLocks,
}

/// The notes of all threads of this node.
pub(crate) struct Notes {
    notes: Box<[Note]>,
    /// How many of the first places threads have or had.
    used: AtomicU32,
    /// Threads of the runtime itself.
    natives: AtomicU32,
    /// Only one asker at a time.
    asking: Mutex<()>,
}

impl Default for Notes {
    fn default() -> Self {
        let notes = Box::<[Note]>::new_zeroed_slice(MAX_THREADS);
        // SAFETY: atomic integers, for which all bytes zero is the value 0.
        let notes = unsafe { notes.assume_init() };
        Self { notes, used: AtomicU32::new(0), natives: AtomicU32::new(0), asking: Mutex::default() }
    }
}

/// A wait that is noted as long as this value lives; then what was noted before is again.
pub(crate) struct Noted {
    note: &'static Note,
    before: (u32, u64),
}

impl Drop for Noted {
    fn drop(&mut self) {
        let (kind, object) = self.before;
        self.note.object.store(object, Ordering::Relaxed);
        self.note.kind.store(kind, Ordering::Release);
    }
}

impl Notes {
    fn note(&self, slot: WaitSlot) -> &Note {
        &self.notes[slot.0 as usize]
    }

    /// The calling thread, one of the program's, waits at this slot from now on.
    pub(crate) fn begin_thread(&self, slot: WaitSlot, thread: u64) {
        let note = self.note(slot);
        note.kind.store(0, Ordering::Relaxed);
        note.barrier.store(0, Ordering::Relaxed);
        note.handlers.store(0, Ordering::Relaxed);
        note.task.store(gondwana_sys::thread().unsigned_abs(), Ordering::Relaxed);
        self.used.fetch_max(slot.0 + 1, Ordering::Relaxed);
        note.thread.store(thread, Ordering::Release);
    }

    /// The thread of a slot has ended.
    pub(crate) fn end_thread(&self, slot: WaitSlot) {
        self.note(slot).thread.store(0, Ordering::Release);
    }

    /// The thread of a slot begins a handler of a signal, or ends it.
    pub(crate) fn handles(&self, slot: WaitSlot, begins: bool) {
        let handlers = &self.note(slot).handlers;
        if begins {
            handlers.fetch_add(1, Ordering::Relaxed);
        } else {
            handlers.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// A thread of the runtime itself begins, or ends.
    pub(crate) fn native(&self, begins: bool) {
        if begins {
            self.natives.fetch_add(1, Ordering::Relaxed);
        } else {
            self.natives.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The thread of a slot is going to wait for something, perhaps for a limited time.
    fn begin_wait(&'static self, slot: WaitSlot, awaited: Awaited, object: u64, timed: bool) -> Noted {
        let note = self.note(slot);
        let before = (note.kind.load(Ordering::Relaxed), note.object.load(Ordering::Relaxed));
        note.begun.fetch_add(1, Ordering::Relaxed);
        if awaited == Awaited::Barrier {
            note.barrier.store(object, Ordering::Relaxed);
        }
        note.object.store(object, Ordering::Relaxed);
        note.kind.store(awaited as u32 | if timed { TIMED } else { 0 }, Ordering::Release);
        Noted { note, before }
    }

    /// Where the thread of a slot notes the readers-writer locks that it holds: none so far.
    pub(crate) fn locks(&'static self, slot: WaitSlot) -> &'static HeldLocks {
        let locks = &self.note(slot).locks;
        locks.clear();
        locks
    }

    /// Readers-writer locks with the threads that hold them, and whether for writing.
    pub(crate) fn held_locks(&self) -> impl Iterator<Item = (u64, u64, bool)> {
        self.threads().flat_map(|note| {
            let thread = note.thread.load(Ordering::Relaxed);
            note.locks.known().map(move |(lock, write)| (thread, lock, write))
        })
    }

    /// The places that threads have or had.
    fn places(&self) -> &[Note] {
        &self.notes[..self.used.load(Ordering::Relaxed) as usize]
    }

    fn threads(&self) -> impl Iterator<Item = &Note> {
        self.places().iter().filter(|note| note.thread.load(Ordering::Acquire) != 0)
    }
}

impl Note {
    fn told(&self) -> WaitingThread {
        let kind = self.kind.load(Ordering::Acquire);
        let awaited = u8::try_from(kind & !TIMED).ok().and_then(Awaited::from_number);
        let wait = awaited.filter(|_| self.handlers.load(Ordering::Relaxed) == 0).map(|awaited| Wait {
            awaited,
            object: self.object.load(Ordering::Relaxed),
            timed: kind & TIMED != 0,
        });
        WaitingThread {
            thread: self.thread.load(Ordering::Relaxed),
            task: self.task.load(Ordering::Relaxed),
            wait,
            barrier: self.barrier.load(Ordering::Relaxed),
        }
    }
}

impl Node {
    /// Notes what the thread of a slot is going to wait for.
    pub(crate) fn note_wait(
        &'static self,
        slot: WaitSlot,
        awaited: Awaited,
        object: u64,
        until: Option<Instant>,
    ) -> Noted {
        self.notes.begin_wait(slot, awaited, object, until.is_some())
    }

    /// Tells the launcher what the threads of this node wait for.
    pub(crate) fn report_waits(&'static self, handles_signals: bool) {
        let _alone = lock(&self.notes.asking);
        let mut waits = NodeWaits {
            threads: self.notes.threads().map(Note::told).collect(),
            begun: self.notes.places().iter().map(|note| note.begun.load(Ordering::Relaxed)).sum(),
            mutexes: self.sync.held_mutexes(self.me, MOST_OBJECTS),
            rwlocks: self.held_rwlocks(MOST_OBJECTS),
            ..NodeWaits::default()
        };
        let natives = self.notes.natives.load(Ordering::Relaxed) as usize;
        // And the process's first one, which serves the node or, on the first, waits for ever.
        let own = waits.threads.len() + natives + 1;
        // A thread that has been woken, and has had no processor since, does not know yet.
        let wakes = self.waiting.slots.waking() > 0;
        waits.others_may_act = handles_signals || wakes || tasks() > own;
        let end = Instant::now() + MACHINES;
        loop {
            if let Some(core) = self.try_core() {
                waits.barriers = core.awaited_barriers(MOST_OBJECTS);
                break;
            }
            if Instant::now() >= end {
                waits.incomplete = true;
                break;
            }
            crate::wait_slots::futex_wait(&AtomicU32::new(0), 0, Some(AGAIN));
        }
        self.report_parts(waits);
    }

    /// A datagram holds only so much: what is left over follows.
    fn report_parts(&self, mut waits: NodeWaits) {
        /// Bytes of the longest description of a thread, generously.
        const THREAD: usize = 200;
        let most = MAX_REPORT / 2 / THREAD;
        while waits.threads.len() > most {
            let rest = waits.threads.split_off(waits.threads.len() - most);
            self.report(&Report::Waits {
                part: NodeWaits { threads: rest, ..NodeWaits::default() },
                last: false,
            });
        }
        self.report(&Report::Waits { part: waits, last: true });
    }
}

/// How many threads this process has, as the kernel counts.
fn tasks() -> usize {
    let mut text = [0_u8; 4096];
    // By system call: the functions of the C library are about the program's descriptors.
    // SAFETY: the path is a C string, and the kernel writes at most the length of the buffer.
    let length = unsafe {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        let fd =
            gondwana_sys::syscall!(libc::SYS_openat, libc::AT_FDCWD, c"/proc/self/status".as_ptr(), flags);
        let length = gondwana_sys::syscall!(libc::SYS_read, fd, text.as_mut_ptr(), text.len());
        gondwana_sys::syscall!(libc::SYS_close, fd);
        usize::try_from(length).unwrap_or(0)
    };
    let text = std::str::from_utf8(&text[..length]).unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("Threads:"));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_counts_threads() {
        let before = tasks();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (told, begun) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            told.send(()).unwrap();
            let _ = wait.recv();
        });
        begun.recv().unwrap();
        assert!(before >= 1 && tasks() >= 2, "{before}");
        drop(go);
        thread.join().unwrap();
    }

    #[test]
    fn what_was_noted_before_is_noted_again() {
        let notes: &'static Notes = Box::leak(Box::default());
        let slot = WaitSlot(3);
        assert_eq!(notes.threads().count(), 0);
        notes.begin_thread(slot, 9);
        let told = || notes.threads().map(Note::told).next().unwrap();
        assert_eq!((told().thread, told().wait), (9, None));
        let outer = notes.begin_wait(slot, Awaited::Condition, 64, false);
        let inner = notes.begin_wait(slot, Awaited::Mutex, 32, true);
        let wait = |awaited, object, timed| Some(Wait { awaited, object, timed });
        assert_eq!(told().wait, wait(Awaited::Mutex, 32, true));
        drop(inner);
        assert_eq!(told().wait, wait(Awaited::Condition, 64, false));
        notes.handles(slot, true);
        assert_eq!(told().wait, None, "a handler of a signal runs");
        notes.handles(slot, false);
        drop(outer);
        assert_eq!(told().wait, None);
        drop(notes.begin_wait(slot, Awaited::Barrier, 8, false));
        assert_eq!((told().barrier, told().wait), (8, None));
        notes.end_thread(slot);
        assert_eq!(notes.threads().count(), 0);
    }
}
