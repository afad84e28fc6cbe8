//! Which file the program means by the name of a library.

use super::opened;
use gondwana_elf::loaded::{self, LoadedObject};
use gondwana_elf::{cached_library, find_in, from_origin, loader_folders};
use std::ffi::{CStr, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The libraries that were there from the start, and so are on every node.
static FROM_START: OnceLock<Vec<(LoadedObject<'static>, Option<PathBuf>)>> = OnceLock::new();

/// Records the libraries that are loaded now.
pub(super) fn begin() {
    FROM_START.get_or_init(|| {
        // SAFETY: what is there from the start is never unloaded.
        let objects = unsafe { loaded::select(|_| true) };
        objects.into_iter().map(|object| (object, fs::canonicalize(object.path()).ok())).collect()
    });
}

/// True for a library that was there from the start.
pub(super) fn is_from_start(name: &CStr) -> bool {
    FROM_START.get().is_some_and(|objects| objects.iter().any(|(object, _)| object.is_called(name)))
}

/// The greatest number of an object with thread-local variables that was there from the start; 0 if there is none.
pub(super) fn last_module_from_start() -> usize {
    FROM_START.get().into_iter().flatten().map(|(object, _)| object.thread_module()).max().unwrap_or(0)
}

/// True for a library that all nodes have.
pub(super) fn is_everywhere(name: &CStr) -> bool {
    is_from_start(name) || opened::is_called(name)
}

/// The file of a library that code at `caller` names, if it was not there from the start.
pub(super) fn library_of(name: &CStr, caller: usize) -> Option<PathBuf> {
    let file = if name.to_bytes().contains(&b'/') {
        fs::canonicalize(expanded(path_of(name), caller)).ok()?
    } else if name.is_empty() || is_from_start(name) {
        return None;
    } else if let Some(path) = opened::path_called(name) {
        path
    } else {
        find(&loader_folders(caller), name)?
    };
    let is_loaded = FROM_START.get()?.iter().any(|(_, other)| other.as_ref() == Some(&file));
    (!is_loaded).then_some(file)
}

/// The file of this name, in the first of some folders or where the loader's own list has it.
pub(super) fn find(folders: &[PathBuf], name: &CStr) -> Option<PathBuf> {
    find_in(folders, path_of(name)).or_else(|| cached_library(path_of(name)))
}

/// A path that code at `caller` names, as the loader takes it.
fn expanded(path: &Path, caller: usize) -> PathBuf {
    // SAFETY: it is the caller's.
    let object = unsafe { loaded::at(caller) }.map(|object| object.path.to_owned());
    let file = object.filter(|file| !file.as_os_str().is_empty()).or_else(|| std::env::current_exe().ok());
    from_origin(path, &file.unwrap_or_default())
}

fn path_of(name: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(name.to_bytes()))
}
