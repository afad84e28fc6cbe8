//! The objects that the loader has put into this process, as it describes them.

use gondwana_memory::is_of_program;
use libc::{Elf64_Phdr, c_int, c_void, dl_phdr_info, size_t};
use std::ffi::CStr;
use std::ops::Range;
use std::path::Path;

/// Tags of the dynamic section.
pub mod tag {
    pub const NEEDED: i64 = 1;
    pub const STRTAB: i64 = 5;
    pub const SYMTAB: i64 = 6;
    pub const PLTRELSZ: i64 = 2;
    pub const RELA: i64 = 7;
    pub const RELASZ: i64 = 8;
    pub const JMPREL: i64 = 23;
    pub const INIT: i64 = 12;
    pub const SONAME: i64 = 14;
    pub const INIT_ARRAY: i64 = 25;
    pub const INIT_ARRAYSZ: i64 = 27;
    pub const PREINIT_ARRAY: i64 = 32;
    pub const PREINIT_ARRAYSZ: i64 = 33;
    pub const GNU_HASH: i64 = 0x6fff_fef5;
}

/// One entry of a dynamic section.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Dynamic {
    pub tag: i64,
    pub value: u64,
}

/// One object: the executable or a library.
pub struct Object {
    /// What is added to the addresses in the file.
    pub base: usize,
    /// Where it was loaded from; empty for the executable.
    pub path: String,
    pub headers: &'static [Elf64_Phdr],
}

/// All objects, the executable first, in the order in which the loader came upon them.
pub fn loaded() -> Vec<Object> {
    let mut found: Vec<Object> = vec![];
    // SAFETY: the callback gets the pointer to `found` that is given here, and only during this call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
    found
}

unsafe extern "C" fn visit(info: *mut dl_phdr_info, _size: size_t, found: *mut c_void) -> c_int {
    // SAFETY: `loaded` passes its list, which nobody else uses during the walk; the loader hands out a valid
    // description of an object, whose headers stay as long as the object: objects that are unloaded meanwhile are
    // the business of whoever keeps an `Object`.
    unsafe {
        let info = &*info;
        (*found.cast::<Vec<Object>>()).push(Object {
            base: info.dlpi_addr as usize,
            path: CStr::from_ptr(info.dlpi_name).to_string_lossy().into_owned(),
            headers: std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)),
        });
    }
    0
}

impl Object {
    /// True for a library that came with the program: neither the system's nor this one.
    pub fn is_library_of_program(&self) -> bool {
        is_of_program(Path::new(&self.path)) && !self.holds(loaded as *const () as usize)
    }

    fn holds(&self, address: usize) -> bool {
        let mut segments = self.headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        segments.any(|header| self.range(header).contains(&address))
    }

    /// True if all of it is among these addresses.
    pub fn is_in(&self, addresses: &Range<usize>) -> bool {
        self.headers.iter().filter(|header| header.p_type == libc::PT_LOAD).all(|header| {
            let range = self.range(header);
            addresses.start <= range.start && range.end <= addresses.end
        })
    }

    /// The addresses of a segment.
    pub fn range(&self, header: &Elf64_Phdr) -> Range<usize> {
        let start = self.base.wrapping_add(header.p_vaddr as usize);
        start..start + header.p_memsz as usize
    }

    /// The segment of a kind of which there is at most one.
    pub fn segment(&self, kind: u32) -> Option<&Elf64_Phdr> {
        self.headers.iter().find(|header| header.p_type == kind)
    }

    /// Where the entries of the dynamic section are.
    pub fn dynamic(&self) -> impl Iterator<Item = *mut Dynamic> {
        let range = self.segment(libc::PT_DYNAMIC).map_or(0..0, |header| self.range(header));
        range
            .step_by(size_of::<Dynamic>())
            .map(|address| address as *mut Dynamic)
            // SAFETY: the loader has mapped the section, which ends with an entry of tag 0.
            .take_while(|&entry| unsafe { (*entry).tag } != 0)
    }

    /// The value of an entry of the dynamic section.
    pub fn value(&self, tag: i64) -> Option<usize> {
        // SAFETY: the entries are there.
        self.dynamic()
            .map(|entry| unsafe { *entry })
            .find(|entry| entry.tag == tag)
            .map(|entry| entry.value as usize)
    }

    /// The texts that entries with a tag name.
    pub fn texts(&self, tag: i64) -> Vec<&CStr> {
        let Some(table) = self.value(tag::STRTAB) else { return vec![] };
        // The loader makes the address absolute, except where it cannot write: in the kernel's own object.
        let table = if table < self.base { self.base + table } else { table };
        // SAFETY: the entries hold offsets of strings in the table.
        unsafe {
            let entries = self.dynamic().map(|entry| *entry).filter(|entry| entry.tag == tag);
            entries.map(|entry| CStr::from_ptr((table + entry.value as usize) as *const _)).collect()
        }
    }

    /// True if it takes a symbol from elsewhere whose name is `wanted`.
    pub fn needs(&self, wanted: impl Fn(&str) -> bool) -> bool {
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
    pub fn is_called(&self, name: &CStr) -> bool {
        let file = |path: &str| path.rsplit('/').next().unwrap_or("").to_owned();
        self.texts(tag::SONAME).first() == Some(&name)
            || (!self.path.is_empty() && file(&self.path) == file(&name.to_string_lossy()))
    }
}
