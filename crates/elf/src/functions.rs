//! Where functions are in executables and libraries, by their names.

use crate::file::ElfFile;
use object::{Object, ObjectSymbol, SymbolKind};
use std::io;
use std::ops::Range;
use std::path::Path;

/// The addresses of the functions with this name in a file, as the file counts them.
///
/// There can be several: files have functions of their own with equal names, and compilers make copies and parts of a
/// function, whose names have an end such as `.constprop.0` or `.cold`. A file that was stripped knows only the functions
/// that others may call.
///
/// # Errors
/// If the file cannot be read or is no 64-bit ELF file.
///
/// # Examples
/// ```
/// let own = std::env::current_exe()?;
/// assert_eq!(gondwana_elf::functions(&own, "main")?.len(), 1);
/// # std::io::Result::Ok(())
/// ```
pub fn functions(file: &Path, name: &str) -> io::Result<Vec<Range<u64>>> {
    let found = ElfFile::open(file)?.read(|elf| {
        let mut found = vec![];
        for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
            let is_meant = symbol.kind() == SymbolKind::Text && symbol.is_definition();
            if is_meant && symbol.name_bytes().is_ok_and(|full| is_named(full, name)) {
                let range = symbol.address()..symbol.address() + symbol.size().max(1);
                if !found.contains(&range) {
                    found.push(range);
                }
            }
        }
        found
    });
    Ok(found.unwrap_or_default())
}

/// True if this is the name, be it of a copy or a part of the function.
fn is_named(full: &[u8], name: &str) -> bool {
    full.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_name() {
        let own = std::env::current_exe().unwrap();
        let main = functions(&own, "main").unwrap();
        assert_eq!(main.len(), 1);
        assert!(!main[0].is_empty());
        assert_eq!(functions(&own, "no_such_function").unwrap(), []);
        assert!(functions(Path::new("/etc/passwd"), "main").is_err());
    }

    #[test]
    fn copies_of_a_function_have_its_name() {
        assert!(is_named(b"f", "f") && is_named(b"f.constprop.0", "f"));
        assert!(!is_named(b"fg", "f") && !is_named(b"e", "f"));
    }
}
