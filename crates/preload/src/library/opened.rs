//! The libraries that were opened while the program runs, as this node has them.

use gondwana_atomics::SystemCall;
use gondwana_elf::loaded::{self, LoadedObject};
use gondwana_locks::lock;
use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A library.
#[derive(Clone)]
pub(super) struct Opened {
    /// Its file on node 0, with all links followed.
    pub path: PathBuf,
    /// Its base.
    pub base: usize,
    /// The program's handle on all nodes: an address in shared memory. 0 if it has none, as it has come with another one.
    pub handle: usize,
    /// The loader's handle on this node.
    pub real: usize,
    /// Another node does not have it.
    pub is_spoiled: bool,
    /// This node's loader can find all its symbols, and those of what it needs.
    pub is_whole: bool,
    /// The [system calls](crate::system_calls) that its code makes by the instruction itself.
    pub calls: Vec<SystemCall>,
    /// The loader's number for its thread-local variables on this node, and their distance from a thread's control block.
    pub locals: Option<(usize, u64)>,
}

static OPENED: Mutex<Vec<Opened>> = Mutex::new(vec![]);

/// Adds a library.
pub(super) fn add(library: Opened) {
    lock(&OPENED).push(library);
}

fn find(is_wanted: impl Fn(&Opened) -> bool) -> Option<Opened> {
    lock(&OPENED).iter().find(|library| is_wanted(library)).cloned()
}

/// The library with a handle.
pub(super) fn with_handle(handle: usize) -> Option<Opened> {
    find(|library| library.handle == handle)
}

/// The library in a file.
pub(super) fn in_file(path: &Path) -> Option<Opened> {
    find(|library| library.path == path)
}

/// The distance of the thread-local variables with this number.
pub(super) fn distance_of(module: usize) -> Option<u64> {
    find(|library| library.locals.is_some_and(|(number, _)| number == module))?
        .locals
        .map(|(_, distance)| distance)
}

/// True if one is called so.
pub(super) fn is_called(name: &CStr) -> bool {
    path_called(name).is_some()
}

/// The file of the one that is called so.
pub(super) fn path_called(name: &CStr) -> Option<PathBuf> {
    // SAFETY: what was opened is never unloaded.
    let named = unsafe { loaded::select(|object: &LoadedObject<'_>| object.is_called(name)) };
    find(|library| named.iter().any(|object| object.base() == library.base)).map(|library| library.path)
}

/// Another node does not have the library in a file: it can be opened no more.
pub(super) fn spoil(path: &Path) {
    change(path, |library| library.is_spoiled = true);
}

/// The library in a file, which had come with another one, has these handles now.
pub(super) fn name(path: &Path, (handle, real): (usize, usize)) {
    change(path, |library| (library.handle, library.real) = (handle, real));
}

fn change(path: &Path, change: impl Fn(&mut Opened)) {
    lock(&OPENED).iter_mut().filter(|library| library.path == path).for_each(change);
}
