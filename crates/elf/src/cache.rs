//! The loader's list of libraries in the system's folders (`/etc/ld.so.cache`).

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const FILE: &str = "/etc/ld.so.cache";

/// How the list begins since glibc 2.2; an older one may come before it.
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";

/// Bytes of the list's head.
const HEAD: usize = 48;

/// Bytes of an entry: kind, name, path, a number, and what the processor must have.
const ENTRY: usize = 24;

/// The kind of a library of glibc for x86-64.
const KIND: u32 = 0x0303;

/// The file of a library of this name that the loader knows.
#[must_use]
pub fn cached_library(name: &Path) -> Option<PathBuf> {
    find(&fs::read(FILE).ok()?, name.as_os_str().as_bytes())
}

fn find(file: &[u8], name: &[u8]) -> Option<PathBuf> {
    let list = &file[file.windows(MAGIC.len()).position(|window| window == MAGIC)?..];
    let number = |at: usize| Some(u32::from_ne_bytes(list.get(at..at + 4)?.try_into().ok()?));
    let text = |at: u32| list.get(at as usize..)?.split(|&byte| byte == 0).next();
    let count = number(MAGIC.len())? as usize;
    let mut entries = (0..count).map(|index| HEAD + index * ENTRY);
    entries.find_map(|at| {
        let anywhere = number(at + 16)? == 0 && number(at + 20)? == 0;
        let is_wanted = number(at)? == KIND && anywhere && text(number(at + 4)?)? == name;
        is_wanted.then(|| fs::canonicalize(OsStr::from_bytes(text(number(at + 8)?)?)).ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(u32, u64, &str, &str)]) -> Vec<u8> {
        let mut file = b"an older list".to_vec();
        let mut list = MAGIC.to_vec();
        list.extend(u32::try_from(entries.len()).unwrap().to_ne_bytes());
        list.resize(HEAD, 0);
        let mut texts = vec![];
        let end = HEAD + entries.len() * ENTRY;
        for (kind, needs, name, path) in entries {
            let mut place = |text: &str| {
                let at = u32::try_from(end + texts.len()).unwrap();
                texts.extend(text.bytes().chain([0]));
                at
            };
            for word in [*kind, place(name), place(path), 0] {
                list.extend(word.to_ne_bytes());
            }
            list.extend(needs.to_ne_bytes());
        }
        file.extend(list);
        file.extend(texts);
        file
    }

    #[test]
    fn libraries_for_this_computer_are_found_by_their_names() {
        let own = std::env::current_exe().unwrap();
        let path = own.to_str().unwrap();
        let file = list(&[
            (KIND, 0, "libother.so.1", "/nowhere"),
            (3, 0, "libmine.so.1", "/nowhere"),
            (KIND, 7, "libmine.so.1", "/nowhere"),
            (KIND, 0, "libmine.so.1", path),
        ]);
        assert_eq!(find(&file, b"libmine.so.1"), Some(fs::canonicalize(&own).unwrap()));
        assert_eq!(find(&file, b"libmine.so"), None);
        assert!(
            (0..file.len() - path.len() - 1).all(|length| find(&file[..length], b"libmine.so.1").is_none())
        );
    }
}
