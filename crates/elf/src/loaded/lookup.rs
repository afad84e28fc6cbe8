//! Which object holds an address.

use libc::{c_char, c_int, c_void};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What the loader tells about the object at an address (glibc's `struct dl_find_object`).
#[repr(C)]
struct Description {
    flags: u64,
    start: *mut c_void,
    end: *mut c_void,
    map: *const LinkMap,
    frames: *mut c_void,
    reserved: [u64; 7],
}

/// The beginning of the loader's record of an object.
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
}

unsafe extern "C" {
    /// Takes no lock of the loader's, which may itself be what allocates.
    fn _dl_find_object(address: *mut c_void, result: *mut Description) -> c_int;
}

/// The object that holds an address.
#[derive(Clone, Copy)]
pub struct FoundObject {
    map: *const LinkMap,
    /// What is added to the addresses in its file.
    pub base: usize,
    /// Where it was loaded from; empty for the executable.
    pub path: &'static Path,
}

impl FoundObject {
    /// The loader's handle for it, as `dlsym` and `dlinfo` take it.
    #[must_use]
    pub fn handle(&self) -> *mut c_void {
        self.map.cast_mut().cast()
    }

    /// From now on the loader says that the object was loaded from here.
    ///
    /// # Safety
    /// The object is never unloaded, and no other thread asks for its name now.
    pub unsafe fn rename(&self, path: &'static CStr) {
        // SAFETY: the record is the loader's own, which writes to this field only when it makes and frees it.
        unsafe { (*self.map.cast_mut()).name = path.as_ptr() };
    }

    /// The last part of the path; empty for the executable.
    #[must_use]
    pub fn file_name(&self) -> &'static [u8] {
        self.path.file_name().map(OsStr::as_bytes).unwrap_or_default()
    }
}

/// The object that holds an address; `None` if there is none. Takes no lock and allocates nothing.
///
/// # Safety
/// The object stays loaded as long as the result is used, as it does where its code is a caller.
#[must_use]
pub unsafe fn at(address: usize) -> Option<FoundObject> {
    let mut found = std::mem::MaybeUninit::<Description>::uninit();
    // SAFETY: the loader fills in the record if it returns 0. Names live as long as their objects.
    unsafe {
        if _dl_find_object(address as *mut c_void, found.as_mut_ptr()) != 0 {
            return None;
        }
        let map = found.assume_init_ref().map;
        let path = Path::new(OsStr::from_bytes(CStr::from_ptr((*map).name).to_bytes()));
        Some(FoundObject { map, base: (*map).base, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_is_found_by_a_function_of_it() {
        // SAFETY: neither the C library nor the executable is ever unloaded.
        let (library, own) =
            unsafe { (at(libc::getpid as *const () as usize), at(at as *const () as usize)) };
        assert_eq!(library.unwrap().file_name(), b"libc.so.6");
        assert!(own.unwrap().path.as_os_str().is_empty());
        // SAFETY: there is no object.
        assert!(unsafe { at(16) }.is_none());
    }
}
