//! Whether libraries can be preloaded into a program.

use gondwana_elf::{has_interpreter, has_symbol_table};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How a program is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Linkage {
    /// It has a loader, which preloads libraries. Scripts count as this: interpreters are nearly always dynamic.
    Dynamic,
    /// It has no loader.
    Static,
    /// It gets another user's rights: the loader preloads no libraries.
    Privileged,
}

/// How a program is linked.
pub(super) fn of(program: &Path) -> Linkage {
    let mode = std::fs::metadata(program).map_or(0, |metadata| metadata.mode());
    if mode & (libc::S_ISUID | libc::S_ISGID) != 0 {
        Linkage::Privileged
    } else if has_interpreter(program).unwrap_or(true) {
        Linkage::Dynamic
    } else {
        Linkage::Static
    }
}

/// True if the program does not know the names of all its functions.
pub(super) fn is_stripped(program: &Path) -> bool {
    has_symbol_table(program).is_ok_and(|has| !has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_go_into_programs_with_a_loader() {
        assert_eq!(of(&std::env::current_exe().unwrap()), Linkage::Dynamic);
        // The loader itself is a program without a loader on every system.
        assert_eq!(of(Path::new("/lib64/ld-linux-x86-64.so.2")), Linkage::Static);
        assert_eq!(of(Path::new("/dev/null")), Linkage::Dynamic);
    }

    #[test]
    fn programs_of_a_compiler_have_symbols() {
        assert!(!is_stripped(&std::env::current_exe().unwrap()));
        assert!(!is_stripped(Path::new("/dev/null")));
    }
}
