//! Finds the sites (functions) that a call comes from.

use gondwana_elf::loaded::{self, FoundObject};
use gondwana_locks::lock;
use gondwana_page::to_usize;
use gondwana_rset::AllocationSite;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most sites; the sites of a call are a set of this many bits.
pub(crate) const MOST: usize = 16;

/// Bits enough for a user-space address on x86-64: the others of a word are those of the sites.
const ADDRESS_BITS: u32 = 48;

/// The sites of rules, and their loaded addresses.
pub(crate) struct Sites {
    sites: Vec<AllocationSite>,
    objects: Mutex<Vec<ObjectSites>>,
}

/// The functions of sites in a loaded object.
struct ObjectSites {
    /// The loader's handle for it.
    handle: usize,
    /// Each with the number of its site.
    functions: Vec<(usize, Range<usize>)>,
}

/// How many calls can be known at a time.
const PLACES: usize = 4096;

/// A cache of calls by return address: the address, and above it the set of sites.
static KNOWN: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

impl Sites {
    pub(crate) fn new(sites: Vec<AllocationSite>) -> Self {
        Self { sites, objects: Mutex::default() }
    }

    /// The sites that a call is at which returns to this address, as bits.
    pub(crate) fn of(&self, caller: usize) -> u16 {
        // Adjacent addresses are rarely both return addresses.
        let place = &KNOWN[(caller ^ (caller >> 12)) % KNOWN.len()];
        let known = place.load(Ordering::Relaxed);
        if known & ((1 << ADDRESS_BITS) - 1) == caller as u64 {
            return u16::try_from(known >> ADDRESS_BITS).expect("16 bits are left");
        }
        let found = self.look_up(caller);
        place.store(u64::from(found) << ADDRESS_BITS | caller as u64, Ordering::Relaxed);
        found
    }

    #[cold]
    fn look_up(&self, caller: usize) -> u16 {
        // SAFETY: the object is in use: the caller's code is in it.
        let Some(object) = (unsafe { loaded::at(caller) }) else { return 0 };
        let mut objects = lock(&self.objects);
        let index =
            objects.iter().position(|known| known.handle == object.handle() as usize).unwrap_or_else(|| {
                objects.push(self.sites_in(&object));
                objects.len() - 1
            });
        let at = objects[index].functions.iter().filter(|(site, function)| match self.sites[*site].offset {
            // The return address of a last call that never returns is behind its function.
            None => function.start < caller && caller <= function.end,
            Some(offset) => caller == function.start + offset,
        });
        at.fold(0, |set, (site, _)| set | 1 << site)
    }

    fn sites_in(&self, object: &FoundObject) -> ObjectSites {
        let mut functions = vec![];
        for (number, site) in
            self.sites.iter().enumerate().filter(|(_, site)| is_meant(object, site.object.as_deref()))
        {
            let found = gondwana_elf::functions(path(object), &site.function).unwrap_or_default();
            let found = found.into_iter().map(|function| {
                (number, object.base + to_usize(function.start)..object.base + to_usize(function.end))
            });
            functions.extend(found);
        }
        ObjectSites { handle: object.handle() as usize, functions }
    }

    /// Clears the cache: another object may be loaded at the same address.
    pub(crate) fn forget(&self) {
        lock(&self.objects).clear();
        KNOWN.iter().for_each(|place| place.store(0, Ordering::Relaxed));
    }
}

/// The file of a loaded object.
fn path(object: &FoundObject) -> &Path {
    if object.path.as_os_str().is_empty() { Path::new("/proc/self/exe") } else { object.path }
}

/// True if this is the object that is meant, or the executable if none is.
fn is_meant(object: &FoundObject, name: Option<&str>) -> bool {
    let Some(name) = name else { return object.path.as_os_str().is_empty() };
    let rest = object.file_name().strip_prefix(name.as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
}
