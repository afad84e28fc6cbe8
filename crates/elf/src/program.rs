//! Whether a library can be loaded into a program, told from the program's file.

use crate::headers::{Dependencies, Headers};
use object::elf::{EM_X86_64, ET_DYN, ET_EXEC, FileHeader64};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, FileKind, Object, ObjectSymbol, ReadCache, ReadRef};
use std::fs::File;
use std::path::Path;

/// Why no library can be loaded into a program.
#[derive(Debug)]
pub enum Unsuitable {
    /// It is no ELF file.
    NotElf,
    /// It is a program for 32-bit computers.
    Elf32,
    /// It is an ELF file with something wrong in it.
    Damaged(object::Error),
    /// It is a program for another architecture, which has this name.
    Architecture(String),
    /// It is an object file or a core dump.
    NoProgram,
    /// It names no loader: it is statically linked.
    Static,
    /// It names this loader, which is not the one of the GNU C library.
    OtherLoader(String),
    /// It has a runtime of the language Go, which calls the kernel without the C library.
    Go,
    /// It is built with a sanitizer of this name that has a memory map and an allocator of its own.
    Sanitized(&'static str),
    /// It names a loader, but no library.
    Bare,
}

/// Sanitizers with the compiler's option for each, how the names of their libraries begin, and a function of each: gcc links with the
/// library, clang into the program.
const SANITIZERS: [(&str, &str, &[u8]); 5] = [
    ("address", "libasan.so", b"__asan_init"),
    ("hwaddress", "libhwasan.so", b"__hwasan_init"),
    ("leak", "liblsan.so", b"__lsan_init"),
    ("memory", "libmsan.so", b"__msan_init"),
    ("thread", "libtsan.so", b"__tsan_init"),
];

/// Checks the contents of a program's file.
///
/// # Errors
/// What keeps the loader of the GNU C library for x86-64 from loading a library into the program.
pub fn check_program(image: &[u8]) -> Result<(), Unsuitable> {
    match FileKind::parse(image) {
        Ok(FileKind::Elf64) => {}
        Ok(FileKind::Elf32) => return Err(Unsuitable::Elf32),
        _ => return Err(Unsuitable::NotElf),
    }
    // All tables, so that no later reader finds damage.
    let elf = ElfFile64::<Endianness>::parse(image).map_err(Unsuitable::Damaged)?;
    let Headers { header, endian, segments, .. } = Headers::parse(image).map_err(Unsuitable::Damaged)?;
    if header.e_machine(endian) != EM_X86_64 {
        return Err(Unsuitable::Architecture(format!("{:?}", elf.architecture())));
    }
    if ![ET_EXEC, ET_DYN].contains(&header.e_type(endian)) {
        return Err(Unsuitable::NoProgram);
    }
    let interpreter = segments.iter().find_map(|segment| segment.interpreter(endian, image).ok().flatten());
    // First, since linking such a program in another way is of no use.
    if has_go_runtime(image) {
        return Err(Unsuitable::Go);
    }
    match interpreter {
        None => Err(Unsuitable::Static),
        Some(path) if path.ends_with(b"/ld-linux-x86-64.so.2") => {
            let dependencies = Dependencies::of(image);
            let needed = dependencies.map_or(vec![], |Dependencies { needed, .. }| needed);
            match sanitizer(&elf, &needed) {
                Some(option) => Err(Unsuitable::Sanitized(option)),
                None if needed.is_empty() => Err(Unsuitable::Bare),
                None => Ok(()),
            }
        }
        Some(path) => Err(Unsuitable::OtherLoader(String::from_utf8_lossy(path).into_owned())),
    }
}

/// The compiler's option of the sanitizer with which a program is built, if it is one of [`SANITIZERS`].
fn sanitizer(elf: &ElfFile64<'_, Endianness>, needed: &[String]) -> Option<&'static str> {
    let of_library = |name: &String| SANITIZERS.iter().find(|(_, library, _)| name.starts_with(library));
    let of_function = |name: &[u8]| SANITIZERS.iter().find(|(.., function)| *function == name);
    let mut defined = elf.dynamic_symbols().filter(ObjectSymbol::is_definition);
    let found = needed.iter().find_map(of_library);
    found
        .or_else(|| defined.find_map(|symbol| of_function(symbol.name_bytes().ok()?)))
        .map(|(option, ..)| *option)
}

/// True if a file has a runtime of the language Go. That maps memory, and sleeps and wakes threads, by system calls of its own, which
/// no library can stand in front of: what it maps would not be shared.
#[must_use]
pub(crate) fn has_go_runtime<'data>(file: impl ReadRef<'data>) -> bool {
    // The linker of Go writes the first one since version 1.13; the note is left out on demand.
    let of_go = |name: &[u8]| name == b".go.buildinfo" || name == b".note.go.buildid";
    let look = || {
        let header = FileHeader64::<Endianness>::parse(file).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, file).ok()?;
        Some(sections.iter().any(|section| sections.section_name(endian, section).is_ok_and(of_go)))
    };
    look().unwrap_or(false)
}

/// True if the file of a library has a runtime of the language Go.
#[must_use]
pub fn is_library_in_go(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| has_go_runtime(&ReadCache::new(file)))
}
