//! The folders in which the loader of this process looks for libraries.

use crate::loaded;
use libc::{RTLD_NOW, c_char, c_int, c_uint, c_void};
use std::ffi::{CStr, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The loader's description of a list of folders.
#[repr(C)]
struct SearchInfo {
    bytes: usize,
    count: c_uint,
    /// As many as the count says.
    first: [SearchFolder; 1],
}

#[repr(C)]
struct SearchFolder {
    name: *const c_char,
    flags: c_uint,
}

const RTLD_DI_SERINFO: c_int = 4;
const RTLD_DI_SERINFOSIZE: c_int = 5;

/// Where the loader looks for a library that code at `caller` names, but for its cache: the cache knows system
/// libraries. A caller that is in no object counts as the executable.
#[must_use]
pub fn loader_folders(caller: usize) -> Vec<PathBuf> {
    let path = |name: &CStr| Path::new(OsStr::from_bytes(name.to_bytes())).to_owned();
    // SAFETY: all results go to variables of the right types; the list gets as much room as the loader asks for. A caller's
    // object stays loaded during the call.
    unsafe {
        let handle = match loaded::at(caller) {
            Some(object) => object.handle(),
            None => libc::dlopen(std::ptr::null(), RTLD_NOW),
        };
        let mut size =
            SearchInfo { bytes: 0, count: 0, first: [SearchFolder { name: std::ptr::null(), flags: 0 }] };
        if libc::dlinfo(handle, RTLD_DI_SERINFOSIZE, (&raw mut size).cast::<c_void>()) != 0 {
            return vec![];
        }
        let mut room = vec![0u64; size.bytes.div_ceil(8).max(size_of::<SearchInfo>() / 8)];
        let list = room.as_mut_ptr().cast::<SearchInfo>();
        (*list).bytes = size.bytes;
        (*list).count = size.count;
        if libc::dlinfo(handle, RTLD_DI_SERINFO, list.cast()) != 0 {
            return vec![];
        }
        let first = (&raw const (*list).first).cast::<SearchFolder>();
        (0..(*list).count as usize).map(|index| path(CStr::from_ptr((*first.add(index)).name))).collect()
    }
}

/// A path as the loader takes it that stands in an object, or is named by one: `$ORIGIN` is the folder of the object's file.
#[must_use]
pub fn from_origin(path: &Path, object: &Path) -> PathBuf {
    let text = path.display().to_string();
    if !text.contains('$') {
        return path.into();
    }
    let own = object.parent().map_or(String::new(), |folder| folder.display().to_string());
    text.replace("${ORIGIN}", &own).replace("$ORIGIN", &own).into()
}

/// The file of this name in the first of the folders that has one, with all links followed.
#[must_use]
pub fn find_in(folders: &[PathBuf], name: &Path) -> Option<PathBuf> {
    folders.iter().find_map(|folder| fs::canonicalize(folder.join(name)).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_folders_are_searched_for_the_executable() {
        for caller in [loader_folders as *const () as usize, 0] {
            let folders = loader_folders(caller);
            assert!(folders.iter().all(|folder| folder.is_absolute()) && !folders.is_empty());
            assert!(find_in(&folders, Path::new("libc.so.6")).is_some(), "{folders:?}");
            assert_eq!(find_in(&folders, Path::new("libnone.so.0")), None);
        }
    }
}
