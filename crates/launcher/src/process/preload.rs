//! Which libraries the loader loads before those that a program needs, and in which order.

use gondwana_console::failure::Failure;
use gondwana_elf::{cached_library, functions};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The value of `LD_PRELOAD` that has the loader load the runtime library and what the variable names otherwise.
///
/// What these libraries put in place of functions of the C library is called before the runtime's, as natively before the C library's:
/// they come first. Only allocators come behind it, whose place its own has.
///
/// # Errors
/// If the loader cannot be told the library's path.
pub(crate) fn preloaded(library: &Path, others: Option<&OsString>) -> Result<OsString, Failure> {
    let is_end = |byte: &u8| matches!(byte, b' ' | b':');
    if library.as_os_str().as_bytes().iter().any(is_end) {
        return Err(Failure::cannot(format!(
            "the dynamic loader cannot load {}: install Gondwana in a folder without spaces and colons",
            library.display()
        )));
    }
    let others = others.map_or(&[][..], |others| others.as_bytes());
    let names = others.split(is_end).filter(|name| !name.is_empty()).map(OsStr::from_bytes);
    let (behind, before): (Vec<&OsStr>, Vec<&OsStr>) = names.partition(|name| is_allocator(name));
    Ok([before, vec![library.as_os_str()], behind].concat().join(OsStr::new(":")))
}

/// True for a library that defines `malloc`, by its path or by a name that the loader knows.
fn is_allocator(name: &OsStr) -> bool {
    let path = Path::new(name);
    let file = if name.as_bytes().contains(&b'/') { Some(PathBuf::from(path)) } else { cached_library(path) };
    file.and_then(|file| functions(&file, "malloc").ok()).is_some_and(|found| !found.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_comes_behind_wrappers_and_before_allocators() {
        let order = |others: Option<&str>| {
            preloaded(Path::new("/lib/own.so"), others.map(OsString::from).as_ref()).unwrap()
        };
        assert_eq!(order(None), "/lib/own.so");
        assert_eq!(order(Some("")), "/lib/own.so");
        // The C library is an allocator, too.
        assert_eq!(
            order(Some("libc.so.6 /no/file.so:libm.so.6")),
            "/no/file.so:libm.so.6:/lib/own.so:libc.so.6"
        );
        assert!(preloaded(Path::new("/a b/own.so"), None).is_err());
    }
}
