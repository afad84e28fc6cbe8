//! Which functions a call comes from.

use gondwana_host::symbols;
use gondwana_rset::Site;
use libc::{c_char, c_int, c_void};
use std::ffi::{CStr, OsStr};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Sites that can be told apart: those that a call is at are a set of so many bits.
pub const MOST: usize = 16;

/// User-space addresses on x86-64 have so many bits.
const ADDRESS_BITS: u32 = 47;

/// Sites of rules, and what is known of them so far.
pub struct Sites {
    sites: Vec<Site>,
    objects: Mutex<Vec<Object>>,
}

/// The functions of sites in a loaded object.
struct Object {
    /// What the loader knows it by.
    map: usize,
    /// Each with the number of its site.
    functions: Vec<(usize, Range<usize>)>,
}

/// Calls whose sites are known, by the address that they return to: the address, and above it the set of sites.
static KNOWN: [AtomicU64; 4096] = [const { AtomicU64::new(0) }; 4096];

impl Sites {
    pub fn new(sites: Vec<Site>) -> Self {
        Self { sites, objects: Mutex::default() }
    }

    /// The sites that a call is at which returns to this address, as bits.
    pub fn of(&self, caller: usize) -> u16 {
        // Addresses next to each other are seldom both of calls.
        let place = &KNOWN[(caller ^ (caller >> 12)) % KNOWN.len()];
        let known = place.load(Ordering::Relaxed);
        if known & ((1 << ADDRESS_BITS) - 1) == caller as u64 {
            return (known >> ADDRESS_BITS) as u16;
        }
        let found = self.look_up(caller);
        place.store((found as u64) << ADDRESS_BITS | caller as u64, Ordering::Relaxed);
        found
    }

    #[cold]
    fn look_up(&self, caller: usize) -> u16 {
        let Some(loaded) = loaded(caller) else { return 0 };
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let index = objects.iter().position(|object| object.map == loaded.map).unwrap_or_else(|| {
            objects.push(self.object(&loaded));
            objects.len() - 1
        });
        let at = objects[index].functions.iter().filter(|(site, function)| match self.sites[*site].offset {
            // The last call of a function that never returns returns to what follows it.
            None => function.start < caller && caller <= function.end,
            Some(offset) => caller == function.start + offset,
        });
        at.fold(0, |set, (site, _)| set | 1 << site)
    }

    fn object(&self, loaded: &Loaded) -> Object {
        let mut functions = vec![];
        for (number, site) in
            self.sites.iter().enumerate().filter(|(_, site)| loaded.is(site.object.as_deref()))
        {
            let found = symbols::functions(loaded.path(), &site.function).unwrap_or_default();
            let found = found.into_iter().map(|function| {
                (number, loaded.base + function.start as usize..loaded.base + function.end as usize)
            });
            functions.extend(found);
        }
        Object { map: loaded.map, functions }
    }

    /// Forgets everything: another object may come to where one was.
    pub fn forget(&self) {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).clear();
        KNOWN.iter().for_each(|place| place.store(0, Ordering::Relaxed));
    }
}

/// An object that the loader has loaded.
struct Loaded {
    map: usize,
    base: usize,
    /// Empty for the executable.
    name: &'static OsStr,
}

impl Loaded {
    fn path(&self) -> &Path {
        if self.name.is_empty() { Path::new("/proc/self/exe") } else { Path::new(self.name) }
    }

    /// True if this is the object that is meant, or the executable if none is.
    fn is(&self, object: Option<&str>) -> bool {
        let Some(object) = object else { return self.name.is_empty() };
        let file = Path::new(self.name).file_name().map(OsStr::as_bytes).unwrap_or_default();
        file.strip_prefix(object.as_bytes()).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
    }
}

/// What the loader tells about the object at an address (glibc's `struct dl_find_object`).
#[repr(C)]
struct FoundObject {
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
    fn _dl_find_object(address: *mut c_void, result: *mut FoundObject) -> c_int;
}

fn loaded(address: usize) -> Option<Loaded> {
    let mut found = std::mem::MaybeUninit::<FoundObject>::uninit();
    // SAFETY: the loader fills in the record if it returns 0. The object is in use: the caller's code is in it.
    unsafe {
        if _dl_find_object(address as *mut c_void, found.as_mut_ptr()) != 0 {
            return None;
        }
        let map = found.assume_init_ref().map;
        let name = OsStr::from_bytes(CStr::from_ptr((*map).name).to_bytes());
        Some(Loaded { map: map as usize, base: (*map).base, name })
    }
}
