//! Whether libraries can be loaded into a program.

use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache};
use std::fs::File;
use std::path::Path;

/// False for programs that are certainly statically linked. Scripts are what their interpreters are, hardly ever that.
pub fn takes_libraries(program: &Path) -> bool {
    has_interpreter(program).unwrap_or(true)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_go_into_programs_with_a_loader() {
        assert!(takes_libraries(&std::env::current_exe().unwrap()));
        // The loader itself is the one program that surely has none.
        assert!(!takes_libraries(Path::new("/lib64/ld-linux-x86-64.so.2")));
        assert!(takes_libraries(Path::new("/dev/null")));
    }
}
