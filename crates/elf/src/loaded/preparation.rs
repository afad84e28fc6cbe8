//! What is changed in a library while the loader loads it, between mapping and relocation.
//!
//! Its initialisers are put aside, so that others can run them later. One relocation is added that asks for the library's
//! thread-local variables to be at one distance from each thread's control block: the loader then makes room for them in all
//! threads, and never allocates them.

use super::{Constructor, Dynamic, LoadedObject, tag};
use gondwana_page::to_usize;
use libc::{Elf64_Rela, c_char, c_int};
use object::elf;

/// An object that is being loaded, and what its dynamic section has said before.
#[derive(Debug)]
pub struct Preparation {
    /// Its base.
    base: usize,
    before: Vec<(*mut Dynamic, u64)>,
    /// The table of relocations that the loader sees.
    relocations: Vec<Elf64_Rela>,
    /// Where the added relocation puts its result.
    distance: Box<u64>,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// What is added to the address of a thread's control block to get that of its variables of the object; `None` if it has none, or
    /// the loader could not be asked.
    pub distance: Option<u64>,
    /// The addresses of its initialisers that the loader has not run, in their order.
    pub initialisers: Vec<usize>,
}

extern "C" fn nothing(_argc: c_int, _argv: *mut *mut c_char, _environment: *mut *mut c_char) {}

impl LoadedObject<'_> {
    /// Changes what the loader is about to do with this object; `holds` says that its initialisers do not run.
    ///
    /// # Safety
    /// The loader has mapped the object on this thread and not relocated it. It gets no further than that before the result is kept, which
    /// lives until [`LoadedObject::finish`].
    #[must_use]
    pub unsafe fn prepare(&self, holds: bool) -> Preparation {
        let mut preparation =
            Preparation { base: self.base(), before: vec![], relocations: vec![], distance: Box::new(0) };
        let mut change = |tag, value: u64| {
            if let Some(entry) = self.entry(tag) {
                // SAFETY: the section is writable until the loader has relocated the object; nobody else uses it.
                unsafe {
                    preparation.before.push((entry, (*entry).value));
                    (*entry).value = value;
                }
            }
        };
        if holds {
            change(tag::INIT, (nothing as Constructor as usize).wrapping_sub(self.base()) as u64);
            change(tag::INIT_ARRAYSZ, 0);
            // As long as they have not run, the loader is not to run what undoes their work.
            change(tag::FINI, (nothing as Constructor as usize).wrapping_sub(self.base()) as u64);
            change(tag::FINI_ARRAYSZ, 0);
        }
        if self.has_thread_locals() && self.entry(tag::RELA).is_some() && self.entry(tag::RELASZ).is_some() {
            let mut relocations: Vec<_> = self.relocations(tag::RELA, tag::RELASZ).collect();
            let place = (&raw mut *preparation.distance) as u64;
            // Those that only add the base come first. The symbol 0 means the object itself.
            let first = self.value(tag::RELACOUNT).unwrap_or(0).min(relocations.len());
            relocations.insert(
                first,
                Elf64_Rela {
                    r_offset: place.wrapping_sub(self.base() as u64),
                    r_info: u64::from(elf::R_X86_64_TPOFF64.0),
                    r_addend: 0,
                },
            );
            change(tag::RELA, relocations.as_ptr() as u64);
            change(tag::RELASZ, size_of_val(&relocations[..]) as u64);
            preparation.relocations = relocations;
        }
        preparation
    }

    /// True if it has variables of which each thread has its own.
    #[must_use]
    pub fn has_thread_locals(&self) -> bool {
        self.segment(libc::PT_TLS).is_some_and(|segment| segment.p_memsz > 0)
    }

    /// Restores what [`LoadedObject::prepare`] has changed.
    ///
    /// # Safety
    /// The loader has loaded this object, and no other thread uses it.
    #[must_use]
    pub unsafe fn finish(&self, preparation: Preparation) -> Prepared {
        let holds = preparation.before.iter().any(|(entry, _)| {
            // SAFETY: the entries are there.
            [tag::INIT, tag::INIT_ARRAYSZ].contains(&unsafe { (**entry).tag })
        });
        for &(entry, value) in &preparation.before {
            // SAFETY: entries of this object, which nobody else uses yet.
            unsafe { self.overwrite(&raw mut (*entry).value, value) };
        }
        let initialisers = if holds { self.initialisers() } else { vec![] };
        let distance = (!preparation.relocations.is_empty()).then_some(*preparation.distance);
        Prepared { distance, initialisers }
    }

    /// The addresses of its initialisers, in their order.
    fn initialisers(&self) -> Vec<usize> {
        let absolute = |address: usize| self.base().wrapping_add(address);
        let first = self.value(tag::INIT).map(absolute);
        let array = self.value(tag::INIT_ARRAY).map(absolute).unwrap_or(0);
        let count = self.value(tag::INIT_ARRAYSZ).filter(|_| array != 0).unwrap_or(0) / size_of::<usize>();
        // SAFETY: the loader has mapped and relocated the array.
        let rest = (0..count).map(|index| unsafe { (array as *const usize).add(index).read() });
        // 0 and -1 are no functions, but old tools put them there.
        first.into_iter().chain(rest.filter(|&address| address != 0 && address != usize::MAX)).collect()
    }

    /// Where the loader has put numbers of objects with thread-local variables, each with the distance of a variable from the beginning
    /// of its object's behind it.
    pub fn thread_references(&self) -> impl Iterator<Item = *mut [u64; 2]> + use<> {
        let base = self.base();
        let all =
            self.relocations(tag::RELA, tag::RELASZ).chain(self.relocations(tag::JMPREL, tag::PLTRELSZ));
        all.filter(|entry| entry.r_info & 0xffff_ffff == u64::from(elf::R_X86_64_DTPMOD64.0))
            .map(move |entry| base.wrapping_add(to_usize(entry.r_offset)) as *mut [u64; 2])
    }
}

impl Preparation {
    /// True if it is that of an object.
    #[must_use]
    pub fn is_of(&self, object: &LoadedObject<'_>) -> bool {
        self.base == object.base()
    }
}
