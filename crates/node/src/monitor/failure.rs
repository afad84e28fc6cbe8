//! A mistake in the monitor costs the recording, never the run.

use super::Monitor;
use crate::Node;
use crate::control::Report;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// What this thread does may fail: that is told by whoever has tried it.
    static TRIES: Cell<bool> = const { Cell::new(false) };
    /// Where and why what this thread has tried last failed.
    static WHY: RefCell<String> = const { RefCell::new(String::new()) };
}

impl Monitor {
    /// Forgets the recording, which what has failed may have left half done.
    fn give_up(&self) {
        *self.recorder() = None;
    }
}

impl Node {
    /// Does something for the monitor. If that fails, nothing more is recorded here, the user hears of it, and the program goes on.
    pub(super) fn attempt<R>(&'static self, what: impl FnOnce() -> R) -> Option<R> {
        attempt(what)
            .inspect_err(|why| {
                self.monitor.give_up();
                drop(self.stop_journal());
                self.report(&Report::Unrecorded { why: why.clone() });
            })
            .ok()
    }
}

/// Does something that may fail; else gives where and why it has, in a few words.
fn attempt<R>(what: impl FnOnce() -> R) -> Result<R, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| if TRIES.get() { WHY.set(words(panic)) } else { others(panic) }));
    });
    let before = TRIES.replace(true);
    // Whatever is half done is given up.
    let result = catch_unwind(AssertUnwindSafe(what));
    TRIES.set(before);
    result.map_err(|_| WHY.take())
}

fn words(panic: &PanicHookInfo<'_>) -> String {
    let what = panic.payload_as_str().unwrap_or("it gave no reason");
    match panic.location() {
        Some(place) => format!("{what}, {}:{}", place.file(), place.line()),
        None => what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, PoisonError};

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
        assert_eq!(*number.lock().unwrap_or_else(PoisonError::into_inner), 2);
    }
}
