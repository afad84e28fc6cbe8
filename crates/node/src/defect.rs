//! What becomes of a panic, which is a defect of Gondwana: it ends the run with a sentence.
//!
//! A thread that panicked and was gone would leave others waiting: for messages that nobody receives, for a lock that is
//! poisoned. So the process ends in the hook of panics, before anything is unwound: whichever thread it is, one of the
//! runtime or one of the program inside of it. Only what can be done without is tried, and given up if it fails.

use crate::Thread;
use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

thread_local! {
    /// What this thread does may fail: that is told by whoever has tried it.
    static TRIES: Cell<bool> = const { Cell::new(false) };
    /// Where and why what this thread has tried last failed.
    static WHY: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The number of the node that this process is, plus 1; 0 if it is none.
static NODE: AtomicU32 = AtomicU32::new(0);

/// This process is about to become a node: from now on a panic ends it, and with it the run.
pub(crate) fn begin(node: u16) {
    NODE.store(u32::from(node) + 1, Ordering::Release);
    watch();
}

/// The number of the node that this process is or is about to become.
pub(crate) fn node() -> Option<u32> {
    NODE.load(Ordering::Acquire).checked_sub(1)
}

/// Does something that may fail; else gives where and why it has, in a few words.
pub(crate) fn attempt<R>(what: impl FnOnce() -> R) -> Result<R, String> {
    watch();
    let before = TRIES.replace(true);
    // Whatever is half done is given up.
    let result = catch_unwind(AssertUnwindSafe(what));
    TRIES.set(before);
    result.map_err(|_| WHY.take())
}

fn watch() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            if TRIES.get() {
                WHY.set(words(panic));
            } else if node().is_some() {
                end(panic);
            } else {
                others(panic);
            }
        }));
    });
}

/// Ends the run. Of several threads only the first says why; the others wait for the end.
fn end(panic: &PanicHookInfo<'_>) -> ! {
    static ENDS: AtomicBool = AtomicBool::new(false);
    while ENDS.swap(true, Ordering::AcqRel) {
        // SAFETY: waits for the end of the process.
        unsafe { libc::pause() };
    }
    crate::fatal(&sentence(&acting(), &words(panic)))
}

fn sentence(thread: &dyn Display, what: &str) -> String {
    format!("{thread} has failed: {what}: this is a defect of Gondwana, please report it")
}

/// The calling thread, for people.
fn acting() -> String {
    if Thread::is_service() {
        return "the service thread".to_owned();
    }
    if Thread::is_of_program() {
        return format!("thread {}", Thread::current_number());
    }
    match std::thread::current().name() {
        Some(name) => format!("the thread \"{name}\" of the runtime"),
        None => "a thread that is not the program's".to_owned(),
    }
}

/// Why and where, on one line.
fn words(panic: &PanicHookInfo<'_>) -> String {
    let what = panic.payload_as_str().unwrap_or("it gave no reason");
    let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
    match panic.location() {
        Some(place) => format!("{what}, {}:{}", place.file(), place.line()),
        None => what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn what_fails_says_where_and_why() {
        assert_eq!(attempt(|| 7), Ok(7));
        let empty: Vec<u8> = std::hint::black_box(vec![]);
        let line = line!() + 1;
        let why = attempt(|| empty[1]).unwrap_err();
        let expected = "index out of bounds: the len is 0 but the index is 1";
        assert_eq!(why, format!("{expected}, {}:{line}", file!()));
        // Each time anew, also within something that is tried, and other threads can go on with what was locked.
        let number = Mutex::new(1);
        let outer = attempt(|| {
            let mut locked = number.lock().unwrap();
            *locked = 2;
            let inner = attempt(|| panic!("the {}", "inner"));
            assert!(inner.is_err_and(|why: String| why.starts_with("the inner, ")));
            panic!("the outer");
        });
        assert!(outer.is_err_and(|why: String| why.starts_with("the outer, ")));
        assert_eq!(*gondwana_locks::lock(&number), 2);
    }

    #[test]
    fn a_reason_of_several_lines_becomes_one() {
        let why = attempt(|| assert_eq!(1, 2, "sums")).unwrap_err();
        assert!(why.starts_with("assertion `left == right` failed: sums left: 1 right: 2, "), "{why}");
    }
}
