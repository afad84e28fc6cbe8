//! Directories that list the descriptors of this process (`/proc/self/fd`): programs that look there find their own.

use super::bits::Bits;
use super::ranges::for_open;
use super::stops;
use crate::private_stack::uninterrupted;
use gondwana_locks::lock;
use libc::{c_int, c_uint};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The numbers at which such a directory is open.
static LISTS: Bits = Bits::new();

/// What other nodes had open when it was opened.
static OPEN_ELSEWHERE: Mutex<BTreeSet<c_int>> = Mutex::new(BTreeSet::new());

/// There has been one.
static IS_USED: AtomicBool = AtomicBool::new(false);

/// Notes what has been opened at a number, by this path.
pub(crate) fn note_directory(number: c_int, path: &CStr) {
    let path = path.to_bytes();
    let names = [&b"fd"[..], b"fdinfo"];
    // A name of another kind does not lead there but by a link, which programs do not make.
    let last = path.strip_suffix(b"/").unwrap_or(path).rsplit(|&byte| byte == b'/').next();
    if last.is_some_and(|last| names.contains(&last)) && leads_to_own(number) {
        let elsewhere = RefCell::new(BTreeSet::new());
        for_open(
            (0, c_uint::MAX),
            |_| {},
            |_, _, number| {
                elsewhere.borrow_mut().insert(number);
            },
        );
        uninterrupted(|| *lock(&OPEN_ELSEWHERE) = elsewhere.into_inner());
        LISTS.set(number);
        IS_USED.store(true, Ordering::Relaxed);
    } else if IS_USED.load(Ordering::Relaxed) {
        LISTS.clear(number);
    }
}

/// True if the directory is of this process, as the system's names of what is open have it.
fn leads_to_own(number: c_int) -> bool {
    let Ok(target) = std::fs::read_link(format!("/proc/self/fd/{number}")) else { return false };
    let process = PathBuf::from(format!("/proc/{}", gondwana_sys::process()));
    target.parent() == Some(&*process) || target.starts_with(process.join("task"))
}

/// True for an entry that is none of the program's, in the directory that is open at a number.
#[inline]
pub(crate) fn hides(directory: c_int, name: &CStr) -> bool {
    IS_USED.load(Ordering::Relaxed) && LISTS.is_set(directory) && is_foreign(name)
}

fn is_foreign(name: &CStr) -> bool {
    let number = name.to_str().ok().and_then(|name| name.parse().ok());
    let is_open_elsewhere = |number| uninterrupted(|| lock(&OPEN_ELSEWHERE).contains(&number));
    number.is_some_and(|number| {
        stops::is_of_runtime(number) || stops::is_stop(number) && !is_open_elsewhere(number)
    })
}
