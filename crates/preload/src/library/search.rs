//! Which file the program means by the name of a library.

use gondwana_elf::loaded::{self, LoadedObject};
use gondwana_elf::{find_in, is_of_program, loader_folders};
use std::ffi::{CStr, CString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
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

/// The file of a library that code at `caller` names, if it belongs to the program and was not loaded at the start.
pub(super) fn library_of_program(name: &CStr, caller: usize) -> Option<CString> {
    let file = if name.to_bytes().contains(&b'/') {
        fs::canonicalize(path_of(name)).ok()?
    } else if is_from_start(name) {
        return None;
    } else {
        find_in(&loader_folders(caller), path_of(name))?
    };
    let loaded = FROM_START.get()?.iter().any(|(_, other)| other.as_ref() == Some(&file));
    if loaded || !is_of_program(&file) {
        return None;
    }
    CString::new(file.into_os_string().into_vec()).ok()
}

/// The file of a library that the one at `path` needs.
pub(super) fn needed_by(path: &Path, name: &CStr) -> Option<PathBuf> {
    let mut folders = loader_folders(0);
    folders.splice(0..0, path.parent().map(Path::to_owned));
    find_in(&folders, path_of(name)).filter(|file| is_of_program(file))
}

fn path_of(name: &CStr) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()))
}
