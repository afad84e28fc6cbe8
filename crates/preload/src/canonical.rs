//! Functions of libraries whose addresses an executable has made its own.
//!
//! An executable with a fixed address that takes the address of a library's function gives all objects that of its own
//! stub instead, and the stub jumps through a variable of the executable, which is shared memory when it is a node.
//! The language runtimes must not depend on that: they call such functions where no fault can be served. So what the
//! loader has put into them is replaced by the functions themselves.

use crate::object::{self, Object, tag};
use gondwana_memory::{PAGE_SIZE, is_runtime_library};
use libc::{Elf64_Rela, Elf64_Sym, c_int, c_void, size_t};
use std::path::Path;

/// Kinds of relocations whose place holds the address of a symbol.
const ADDRESS: u64 = 1;
const GLOBAL: u64 = 6;
const JUMP_SLOT: u64 = 7;

/// A stub of the executable, and the function that it jumps to.
struct Stub {
    stub: usize,
    function: usize,
}

/// Has the language runtimes call functions themselves in place of the executable's stubs. All symbols are bound, and
/// no other thread runs yet.
pub fn replace_stubs() {
    let objects = object::loaded();
    let Some(executable) = objects.first() else { return };
    let stubs = stubs(executable);
    if stubs.is_empty() {
        return;
    }
    for object in objects.iter().filter(|object| is_runtime_library(Path::new(&object.path))) {
        // The loader itself keeps some addresses outside of all tables, among what it writes once.
        let constants = object.segment(libc::PT_GNU_RELRO).map_or(0..0, |header| object.range(header));
        let loader = object.path.contains("/ld-linux");
        let words = constants.start.next_multiple_of(size_of::<usize>())..constants.end;
        let words = words.step_by(size_of::<usize>()).filter(|_| loader);
        let places = relocations(object, tag::RELA, tag::RELASZ)
            .filter(|entry| matches!(entry.r_info & 0xffff_ffff, ADDRESS | GLOBAL) && entry.r_addend == 0)
            .map(|entry| object.base.wrapping_add(entry.r_offset as usize));
        for place in places.chain(words) {
            let place = place as *mut usize;
            // SAFETY: the loader has mapped the place and written to it.
            let now = unsafe { place.read() };
            if let Some(stub) = stubs.iter().find(|stub| stub.stub == now) {
                overwrite(place, stub.function, constants.contains(&(place as usize)));
            }
        }
    }
}

/// The stubs that stand for functions of other objects everywhere.
fn stubs(executable: &Object) -> Vec<Stub> {
    let Some(symbols) = executable.value(tag::SYMTAB) else { return vec![] };
    let stub = |entry: Elf64_Rela| {
        // SAFETY: the loader has mapped the table, and the entry names a symbol in it; the place holds the function.
        unsafe {
            let symbol = &*(symbols as *const Elf64_Sym).add((entry.r_info >> 32) as usize);
            let place = executable.base.wrapping_add(entry.r_offset as usize) as *const usize;
            (symbol.st_shndx == 0 && symbol.st_value != 0).then(|| Stub {
                stub: executable.base.wrapping_add(symbol.st_value as usize),
                function: place.read(),
            })
        }
    };
    let jumps = relocations(executable, tag::JMPREL, tag::PLTRELSZ);
    jumps.filter(|entry| entry.r_info & 0xffff_ffff == JUMP_SLOT).filter_map(stub).collect()
}

/// The entries of one of an object's tables of relocations.
fn relocations(object: &Object, table: i64, bytes: i64) -> impl Iterator<Item = Elf64_Rela> {
    let start = object.value(table).filter(|&start| start >= object.base);
    let count = start.and(object.value(bytes)).map_or(0, |bytes| bytes / size_of::<Elf64_Rela>());
    // SAFETY: the loader has mapped the table, which has so many entries.
    (0..count).map(move |index| unsafe { (start.unwrap_or(0) as *const Elf64_Rela).add(index).read() })
}

/// Writes a word that the loader may have made read-only.
fn overwrite(place: *mut usize, word: usize, read_only: bool) {
    let page = (place as usize & !(PAGE_SIZE - 1)) as *mut c_void;
    let protect = crate::real!(mprotect: fn(*mut c_void, size_t, c_int) -> c_int);
    // SAFETY: the page holds the word, which belongs to an object that is loaded.
    unsafe {
        if read_only {
            protect(page, PAGE_SIZE, libc::PROT_READ | libc::PROT_WRITE);
        }
        place.write(word);
        if read_only {
            protect(page, PAGE_SIZE, libc::PROT_READ);
        }
    }
}
