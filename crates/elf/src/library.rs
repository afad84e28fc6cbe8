//! What the file of a library tells before it is loaded.

use crate::folders::from_origin;
use crate::headers::{Dependencies, Headers};
use crate::program::has_go_runtime;
use gondwana_page::PAGE_SIZE;
use object::read::elf::ProgramHeader;
use object::{ReadCache, ReadRef};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The file of a library.
#[derive(Debug)]
pub struct LibraryFile {
    /// The names of the libraries that it needs.
    pub needed: Vec<String>,
    /// Bytes of addresses from its first to its last, in whole pages.
    pub length: usize,
    /// What its first address must be a multiple of.
    pub align: usize,
    /// The folders in which its own list has the loader look for these.
    pub folders: Vec<PathBuf>,
    /// It has a runtime of the language Go.
    pub has_go_runtime: bool,
}

impl LibraryFile {
    /// Reads a file; `None` if it is no 64-bit ELF file that can be loaded.
    #[must_use]
    pub fn read(path: &Path) -> Option<Self> {
        let mut library = Self::parse(&ReadCache::new(File::open(path).ok()?))?;
        for folder in &mut library.folders {
            *folder = from_origin(folder, path);
        }
        Some(library)
    }

    fn parse<'data>(file: impl ReadRef<'data>) -> Option<Self> {
        let headers = Headers::parse(file).ok()?;
        let endian = headers.endian;
        let start = headers.loads().map(|segment| segment.p_vaddr(endian)).min()?;
        let start = usize::try_from(start).ok()? / PAGE_SIZE * PAGE_SIZE;
        let end = headers
            .loads()
            .map(|segment| segment.p_vaddr(endian).saturating_add(segment.p_memsz(endian)))
            .max()?;
        let listed = headers.dependencies();
        let (needed, folders) =
            listed.map_or((vec![], vec![]), |Dependencies { needed, folders, .. }| (needed, folders));
        Some(Self {
            needed,
            has_go_runtime: has_go_runtime(file),
            folders: folders.into_iter().map(PathBuf::from).collect(),
            length: usize::try_from(end).ok()?.checked_sub(start)?.checked_next_multiple_of(PAGE_SIZE)?,
            align: usize::try_from(headers.loads().map(|segment| segment.p_align(endian)).max()?).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_tells_what_it_needs() {
        let path = std::env::current_exe().unwrap();
        let file = LibraryFile::read(&path).unwrap();
        assert!(file.needed.iter().any(|name| name.starts_with("libc.so")), "{:?}", file.needed);
        assert!(file.length > PAGE_SIZE && file.align.is_power_of_two());
        let executable = std::fs::read(path).unwrap();
        for length in [0, 4, 0x30, 0x60, 0x100] {
            assert!(LibraryFile::parse(&executable[..length]).is_none());
        }
    }
}
