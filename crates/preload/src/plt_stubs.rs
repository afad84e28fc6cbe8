//! PLT stubs of an executable that serve as the addresses of library functions.
//!
//! If an executable at a fixed address takes the address of a library's function, the linker makes its PLT stub the
//! address of that function in all objects. The stub jumps through a variable of the executable, which is shared
//! memory on a node. The language runtimes call such functions where no fault can be resolved, so their references to
//! stubs are replaced by the functions themselves.

use gondwana_elf::is_runtime_library;
use gondwana_elf::loaded::{self, LoadedObject, tag};
use gondwana_page::to_usize;
use libc::{Elf64_Rela, Elf64_Sym};

/// Kinds of relocations that store the address of a symbol.
const ADDRESS: u64 = 1;
const GLOBAL: u64 = 6;
const JUMP_SLOT: u64 = 7;

/// A stub of the executable, and the function that it jumps to.
struct Stub {
    stub: usize,
    function: usize,
}

/// Replaces the language runtimes' references to stubs by the functions. All symbols must be bound, and no other
/// thread may run yet.
pub(crate) fn replace() {
    // SAFETY: nothing is unloaded during the start.
    let objects = unsafe { loaded::select(|_| true) };
    let Some(executable) = objects.first() else { return };
    let stubs = stubs(executable);
    if stubs.is_empty() {
        return;
    }
    for object in objects.iter().filter(|object| is_runtime_library(object.path())) {
        // The loader keeps some addresses outside of relocation tables, in its RELRO data.
        let constants = object.relocated_once();
        let loader = object.file_name().starts_with(b"ld-linux");
        let words = constants.start.next_multiple_of(size_of::<usize>())..constants.end;
        let words = words.step_by(size_of::<usize>()).filter(|_| loader);
        let places = object
            .relocations(tag::RELA, tag::RELASZ)
            .filter(|entry| matches!(entry.r_info & 0xffff_ffff, ADDRESS | GLOBAL) && entry.r_addend == 0)
            .map(|entry| object.base().wrapping_add(to_usize(entry.r_offset)));
        for place in places.chain(words) {
            let place = place as *mut u64;
            // SAFETY: the loader has mapped the place and written to it.
            let now = to_usize(unsafe { place.read() });
            if let Some(stub) = stubs.iter().find(|stub| stub.stub == now) {
                // SAFETY: as above; no other thread runs.
                unsafe { object.overwrite(place, stub.function as u64) };
            }
        }
    }
}

/// The stubs that are the addresses of functions of other objects.
fn stubs(executable: &LoadedObject<'_>) -> Vec<Stub> {
    let Some(symbols) = executable.value(tag::SYMTAB) else { return vec![] };
    let stub = |entry: Elf64_Rela| {
        // SAFETY: the loader has mapped the table, and the entry names a symbol in it; the place holds the function.
        unsafe {
            let symbol = &*(symbols as *const Elf64_Sym).add((entry.r_info >> 32) as usize);
            let place = executable.base().wrapping_add(to_usize(entry.r_offset)) as *const usize;
            (symbol.st_shndx == 0 && symbol.st_value != 0).then(|| Stub {
                stub: executable.base().wrapping_add(to_usize(symbol.st_value)),
                function: place.read(),
            })
        }
    };
    let jumps = executable.relocations(tag::JMPREL, tag::PLTRELSZ);
    jumps.filter(|entry| entry.r_info & 0xffff_ffff == JUMP_SLOT).filter_map(stub).collect()
}
