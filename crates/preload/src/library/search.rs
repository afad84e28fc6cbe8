//! Which file the program means by the name of a library.

use crate::object::{self, Object};
use gondwana_memory::is_of_program;
use libc::{c_char, c_int, c_uint, c_void};
use std::ffi::{CStr, CString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::OnceLock;

/// The libraries that were there from the start, and so are on every node.
static FROM_START: OnceLock<Vec<(Object, Option<PathBuf>)>> = OnceLock::new();

/// Takes down what is there now.
pub fn begin() {
    FROM_START.get_or_init(|| {
        let with_file = |object: Object| {
            let file = fs::canonicalize(&object.path).ok();
            (object, file)
        };
        object::loaded().into_iter().map(with_file).collect()
    });
}

/// True for a library that was there from the start.
pub fn is_from_start(name: &CStr) -> bool {
    FROM_START.get().is_some_and(|objects| objects.iter().any(|(object, _)| object.is_called(name)))
}

/// The file of the library that code at `caller` means, if it is one of the program's own that was not there from the
/// start.
pub fn library_of_program(name: &CStr, caller: usize) -> Option<CString> {
    let file = if name.to_bytes().contains(&b'/') {
        fs::canonicalize(path_of(name)).ok()?
    } else if is_from_start(name) {
        return None;
    } else {
        in_folders(name, &folders(caller))?
    };
    let loaded = FROM_START.get()?.iter().any(|(_, other)| other.as_ref() == Some(&file));
    if loaded || !is_of_program(&file) {
        return None;
    }
    CString::new(file.into_os_string().into_vec()).ok()
}

/// The file of a library that the one at `path` needs.
pub fn needed_by(path: &Path, name: &CStr) -> Option<PathBuf> {
    let mut folders = folders(0);
    folders.splice(0..0, path.parent().map(Path::to_owned));
    in_folders(name, &folders).filter(|file| is_of_program(file))
}

fn path_of(name: &CStr) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()))
}

fn in_folders(name: &CStr, folders: &[PathBuf]) -> Option<PathBuf> {
    folders.iter().find_map(|folder| fs::canonicalize(folder.join(path_of(name))).ok())
}

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
const RTLD_DL_LINKMAP: c_int = 2;

/// Where the loader looks for a library that code at `caller` names, but for its cache: the cache knows system
/// libraries.
fn folders(caller: usize) -> Vec<PathBuf> {
    unsafe extern "C" {
        fn dladdr1(
            address: *const c_void,
            info: *mut libc::Dl_info,
            extra: *mut *mut c_void,
            flags: c_int,
        ) -> c_int;
    }
    let dlinfo = crate::real!(dlinfo: fn(*mut c_void, c_int, *mut c_void) -> c_int);
    // SAFETY: all results go to variables of the right types; the list gets as much room as the loader asks for.
    unsafe {
        let (mut info, mut handle) = (std::mem::zeroed(), null_mut());
        if dladdr1(caller as *const c_void, &mut info, &mut handle, RTLD_DL_LINKMAP) == 0 {
            handle = crate::real!(dlopen: fn(*const c_char, c_int) -> *mut c_void)(
                std::ptr::null(),
                libc::RTLD_NOW,
            );
        }
        let mut size =
            SearchInfo { bytes: 0, count: 0, first: [SearchFolder { name: std::ptr::null(), flags: 0 }] };
        if dlinfo(handle, RTLD_DI_SERINFOSIZE, (&raw mut size).cast()) != 0 {
            return vec![];
        }
        let mut room = vec![0u64; size.bytes.div_ceil(8).max(size_of::<SearchInfo>() / 8)];
        let list = room.as_mut_ptr().cast::<SearchInfo>();
        (*list).bytes = size.bytes;
        (*list).count = size.count;
        if dlinfo(handle, RTLD_DI_SERINFO, list.cast()) != 0 {
            return vec![];
        }
        let first = (&raw const (*list).first).cast::<SearchFolder>();
        (0..(*list).count as usize)
            .map(|index| path_of(CStr::from_ptr((*first.add(index)).name)).to_owned())
            .collect()
    }
}
