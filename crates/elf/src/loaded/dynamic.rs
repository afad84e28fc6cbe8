//! The dynamic section of a loaded object: its names, symbols, relocations and initialisers.

use super::LoadedObject;
use gondwana_page::to_usize;
use libc::{Elf64_Rela, c_char, c_int};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Tags of the dynamic section.
pub mod tag {
    use object::elf;

    /// The name of a library that is needed.
    pub const NEEDED: i64 = elf::DT_NEEDED.0;
    /// The table of texts.
    pub const STRTAB: i64 = elf::DT_STRTAB.0;
    /// The table of symbols.
    pub const SYMTAB: i64 = elf::DT_SYMTAB.0;
    /// Bytes of the relocations of calls.
    pub const PLTRELSZ: i64 = elf::DT_PLTRELSZ.0;
    /// The relocations.
    pub const RELA: i64 = elf::DT_RELA.0;
    /// Bytes of the relocations.
    pub const RELASZ: i64 = elf::DT_RELASZ.0;
    /// The relocations of calls.
    pub const JMPREL: i64 = elf::DT_JMPREL.0;
    /// The initialiser.
    pub const INIT: i64 = elf::DT_INIT.0;
    /// The name of the library itself.
    pub const SONAME: i64 = elf::DT_SONAME.0;
    /// The constructors.
    pub const INIT_ARRAY: i64 = elf::DT_INIT_ARRAY.0;
    /// Bytes of the constructors' addresses.
    pub const INIT_ARRAYSZ: i64 = elf::DT_INIT_ARRAYSZ.0;
    /// Constructors of the executable that run before those of libraries.
    pub const PREINIT_ARRAY: i64 = elf::DT_PREINIT_ARRAY.0;
    /// Bytes of their addresses.
    pub const PREINIT_ARRAYSZ: i64 = elf::DT_PREINIT_ARRAYSZ.0;
    /// What runs at the end.
    pub const FINI: i64 = elf::DT_FINI.0;
    /// Bytes of the addresses of functions that run before it.
    pub const FINI_ARRAYSZ: i64 = elf::DT_FINI_ARRAYSZ.0;
    /// The hash table of symbols.
    pub const GNU_HASH: i64 = elf::DT_GNU_HASH.0;
    /// How many relocations, the first ones, only add the base.
    pub const RELACOUNT: i64 = elf::DT_RELACOUNT.0;
}

/// One entry of a dynamic section.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Dynamic {
    /// What it is, one of [`tag`].
    pub tag: i64,
    /// A number or an address, as the tag says.
    pub value: u64,
}

/// An initialiser of an object, with the arguments that the loader passes.
pub type Constructor = extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char);

impl<'a> LoadedObject<'a> {
    /// Where the entries of the dynamic section are.
    pub fn dynamic(&self) -> impl Iterator<Item = *mut Dynamic> + use<> {
        let range = self.segment(libc::PT_DYNAMIC).map_or(0..0, |header| self.range(header));
        range
            .step_by(size_of::<Dynamic>())
            .map(|address| address as *mut Dynamic)
            // SAFETY: the loader has mapped the section, which ends with an entry of tag 0.
            .take_while(|&entry| unsafe { (*entry).tag } != 0)
    }

    /// The entry of the dynamic section with a tag.
    #[must_use]
    pub fn entry(&self, tag: i64) -> Option<*mut Dynamic> {
        // SAFETY: the entries are there.
        self.dynamic().find(|&entry| unsafe { (*entry).tag } == tag)
    }

    /// The value of an entry of the dynamic section.
    #[must_use]
    pub fn value(&self, tag: i64) -> Option<usize> {
        // SAFETY: the entry is there.
        self.entry(tag).map(|entry| to_usize(unsafe { (*entry).value }))
    }

    /// The texts that entries with a tag name.
    #[must_use]
    pub fn texts(&self, tag: i64) -> Vec<&'a CStr> {
        let Some(table) = self.value(tag::STRTAB) else { return vec![] };
        // The loader makes the address absolute, except where it cannot write: in the kernel's own object.
        let table = if table < self.base { self.base + table } else { table };
        // SAFETY: the entries hold offsets of strings in the table.
        unsafe {
            let entries = self.dynamic().map(|entry| *entry).filter(|entry| entry.tag == tag);
            entries.map(|entry| CStr::from_ptr((table + to_usize(entry.value)) as *const _)).collect()
        }
    }

    /// True if it takes a symbol from elsewhere whose name is `wanted`.
    pub fn needs_symbol(&self, wanted: impl Fn(&str) -> bool) -> bool {
        let table = |tag| self.value(tag).filter(|&address| address >= self.base);
        let (Some(hash), Some(symbols), Some(texts)) =
            (table(tag::GNU_HASH), table(tag::SYMTAB), table(tag::STRTAB))
        else {
            return false;
        };
        // SAFETY: the loader has mapped the tables. Symbols that the object does not define itself come before the
        // first one that can be found by its hash, whose number is the second word of that table.
        unsafe {
            let first_defined = *(hash as *const u32).add(1) as usize;
            let needed = std::slice::from_raw_parts(symbols as *const libc::Elf64_Sym, first_defined);
            let undefined = needed.iter().filter(|symbol| symbol.st_shndx == 0);
            let name =
                |symbol: &libc::Elf64_Sym| CStr::from_ptr((texts + symbol.st_name as usize) as *const _);
            undefined.map(name).any(|name| name.to_str().is_ok_and(&wanted))
        }
    }

    /// True if a library's list of what it needs means this object by that name.
    #[must_use]
    pub fn is_called(&self, name: &CStr) -> bool {
        let file = Path::new(OsStr::from_bytes(name.to_bytes())).file_name().map(OsStr::as_bytes);
        self.texts(tag::SONAME).first() == Some(&name)
            || (!self.file_name().is_empty() && file == Some(self.file_name()))
    }

    /// The entries of one of its tables of relocations, by the tags of the table and of its length.
    pub fn relocations(&self, table: i64, bytes: i64) -> impl Iterator<Item = Elf64_Rela> + use<> {
        let start = self.value(table).filter(|&start| start >= self.base);
        let count = start.and(self.value(bytes)).map_or(0, |bytes| bytes / size_of::<Elf64_Rela>());
        // SAFETY: the loader has mapped the table, which has so many entries.
        (0..count).map(move |index| unsafe { (start.unwrap_or(0) as *const Elf64_Rela).add(index).read() })
    }

    /// Takes its initialiser out of the loader's hands: puts `instead` in its place, and returns it.
    ///
    /// # Safety
    /// The loader has not called it yet, and no other thread runs.
    pub unsafe fn take_initialiser(&self, instead: Constructor) -> Option<Constructor> {
        let entry = self.entry(tag::INIT)?;
        // SAFETY: as above; the entry holds the distance of a function with this signature from the object's base.
        unsafe {
            let address = self.base.wrapping_add(to_usize((*entry).value));
            let value = (instead as usize).wrapping_sub(self.base);
            self.overwrite(&raw mut (*entry).value, value as u64);
            Some(std::mem::transmute::<usize, Constructor>(address))
        }
    }

    /// As [`LoadedObject::take_initialiser`], for all functions in the array that two tags describe.
    ///
    /// # Safety
    /// The loader has relocated the array and not called its functions yet, and no other thread runs.
    #[must_use]
    pub unsafe fn take_initialisers(&self, array: i64, bytes: i64, instead: Constructor) -> Vec<Constructor> {
        let (Some(array), Some(bytes)) = (self.value(array), self.value(bytes)) else { return vec![] };
        let array = self.base.wrapping_add(array) as *mut u64;
        let mut taken = vec![];
        for index in 0..bytes / size_of::<u64>() {
            // SAFETY: the loader has relocated the array, which holds functions with this signature.
            unsafe {
                let entry = array.add(index);
                let address = to_usize(entry.read());
                // The loader calls the others; 0 and -1 are no functions, but old tools put them there.
                if address != 0 && address != usize::MAX {
                    taken.push(std::mem::transmute::<usize, Constructor>(address));
                    self.overwrite(entry, instead as usize as u64);
                }
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use crate::loaded::visit;
    use std::ops::ControlFlow;

    #[test]
    fn the_executable_needs_the_c_library_and_its_functions() {
        visit(|executable| {
            let needed = executable.texts(super::tag::NEEDED);
            assert!(needed.contains(&c"libc.so.6"), "{needed:?}");
            assert!(executable.needs_symbol(|name| name == "dl_iterate_phdr"));
            assert!(!executable.needs_symbol(|name| name == "no_such_function"));
            ControlFlow::Break(())
        });
        let names = visit(|object| match object.is_called(c"libc.so.6") {
            true => ControlFlow::Break(object.path().to_owned()),
            false => ControlFlow::Continue(()),
        });
        assert!(names.unwrap().ends_with("libc.so.6"));
    }
}
