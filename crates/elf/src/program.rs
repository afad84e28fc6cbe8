//! Whether a library can be loaded into a program, told from the program's file.

use crate::headers::Headers;
use object::elf::{EM_X86_64, ET_DYN, ET_EXEC};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, FileKind, Object};

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
}

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
    match interpreter {
        None => Err(Unsuitable::Static),
        Some(path) if path.ends_with(b"/ld-linux-x86-64.so.2") => Ok(()),
        Some(path) => Err(Unsuitable::OtherLoader(String::from_utf8_lossy(path).into_owned())),
    }
}
