//! Whether libraries can be loaded into a program, and what it tells of itself.

use object::elf::{FileHeader64, PT_INTERP, SHT_SYMTAB};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, ReadCache};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How a program comes to its libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linkage {
    /// It has a loader, which takes others as well. Scripts are what their interpreters are, hardly ever anything else.
    Dynamic,
    /// It has no loader.
    Static,
    /// It gets another user's rights: the loader takes no libraries from whoever starts it.
    Privileged,
}

/// How a program comes to its libraries.
pub fn of(program: &Path) -> Linkage {
    let mode = std::fs::metadata(program).map_or(0, |metadata| metadata.mode());
    if mode & (libc::S_ISUID | libc::S_ISGID) != 0 {
        Linkage::Privileged
    } else if has_interpreter(program).unwrap_or(true) {
        Linkage::Dynamic
    } else {
        Linkage::Static
    }
}

/// True if the program names a loader; `None` if it is no 64-bit ELF file, or cannot be read.
fn has_interpreter(program: &Path) -> Option<bool> {
    // Only the headers are read, however large the program is.
    let file = ReadCache::new(File::open(program).ok()?);
    let header = FileHeader64::<Endianness>::parse(&file).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, &file).ok()?;
    Some(segments.iter().any(|segment| segment.p_type(endian) == PT_INTERP))
}

/// True if the program does not know the names of all its functions.
pub fn is_stripped(program: &Path) -> bool {
    has_symbols(program) == Some(false)
}

fn has_symbols(program: &Path) -> Option<bool> {
    let file = ReadCache::new(File::open(program).ok()?);
    let header = FileHeader64::<Endianness>::parse(&file).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.section_headers(endian, &file).ok()?;
    Some(sections.iter().any(|section| section.sh_type(endian) == SHT_SYMTAB))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_go_into_programs_with_a_loader() {
        assert_eq!(of(&std::env::current_exe().unwrap()), Linkage::Dynamic);
        // The loader itself is the one program that surely has none.
        assert_eq!(of(Path::new("/lib64/ld-linux-x86-64.so.2")), Linkage::Static);
        assert_eq!(of(Path::new("/dev/null")), Linkage::Dynamic);
    }

    #[test]
    fn programs_of_a_compiler_have_symbols() {
        assert!(!is_stripped(&std::env::current_exe().unwrap()));
        assert!(!is_stripped(Path::new("/dev/null")));
    }
}
