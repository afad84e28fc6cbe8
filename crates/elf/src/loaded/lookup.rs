//! Which object holds an address.

use super::{Dynamic, tag};
use gondwana_page::to_usize;
use libc::{Elf64_Sym, c_char, c_int, c_void};
use std::ffi::{CStr, OsStr};
use std::ops::Range;
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
    dynamic: *const Dynamic,
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

    /// The address of a function that this object itself defines, whatever other objects define. Takes no lock and allocates nothing.
    #[must_use]
    pub fn function(&self, name: &CStr) -> Option<usize> {
        Some(self.code_of(name)?.start)
    }

    /// The addresses that such a function takes, as far as the file tells.
    #[must_use]
    pub fn code_of(&self, name: &CStr) -> Option<Range<usize>> {
        // The loader makes the addresses absolute, except where it cannot write: in the kernel's own object.
        let table = |tag| self.value(tag).filter(|&address| address >= self.base);
        let hash = table(tag::GNU_HASH)? as *const u32;
        let (symbols, texts) = (table(tag::SYMTAB)? as *const Elf64_Sym, table(tag::STRTAB)?);
        let wanted = name
            .to_bytes()
            .iter()
            .fold(5381_u32, |hash, &byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)));
        // SAFETY: the loader has mapped the tables. That of hashes is four numbers (buckets, the first symbol in it, words of the
        // filter, a shift), the filter, the first symbol of each bucket, and the hash of each symbol, odd for the last of a bucket.
        unsafe {
            let number = |at: usize| *hash.add(at);
            let (buckets, first, filter) = (number(0), number(1), number(2) as usize);
            let bucket = 4 + 2 * filter + (wanted % buckets) as usize;
            let chain = 4 + 2 * filter + buckets as usize;
            let mut symbol = number(bucket);
            while symbol >= first {
                let found = number(chain + (symbol - first) as usize);
                let entry = &*symbols.add(symbol as usize);
                let is_same = || CStr::from_ptr((texts + entry.st_name as usize) as *const c_char) == name;
                if found | 1 == wanted | 1 && is_same() {
                    let start = self.base + to_usize(entry.st_value);
                    return Some(start..start + to_usize(entry.st_size));
                }
                if found & 1 == 1 {
                    break;
                }
                symbol += 1;
            }
        }
        None
    }

    /// The value of an entry of the dynamic section that is an address.
    fn value(&self, tag: i64) -> Option<usize> {
        // SAFETY: the loader has mapped the section, which ends with an entry of tag 0, and made its addresses absolute.
        unsafe {
            let mut entry = (*self.map).dynamic;
            while (*entry).tag != 0 {
                if (*entry).tag == tag {
                    return Some(to_usize((*entry).value));
                }
                entry = entry.add(1);
            }
        }
        None
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

    #[test]
    fn functions_of_the_c_library_are_where_the_loader_finds_them() {
        // SAFETY: the C library is never unloaded.
        let library = unsafe { at(libc::getpid as *const () as usize) }.unwrap();
        for name in [c"getpid", c"qsort", c"strerror", c"__libc_malloc", c"pthread_create"] {
            // SAFETY: the names are C strings, and the library is loaded.
            let expected = unsafe {
                let handle = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_NOW);
                libc::dlsym(handle, name.as_ptr()) as usize
            };
            assert_eq!(library.function(name), Some(expected), "{name:?}");
        }
        assert_eq!(library.function(c"no_such_function"), None);
    }
}
