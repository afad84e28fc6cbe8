//! The ELF files that a process has mapped.

use crate::mappings::Mapping;
use crate::unwind::Tables;
use gondwana_elf::ElfFile;
use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

/// A file that is mapped.
pub struct Object {
    /// Its path.
    pub path: String,
    /// What was added to the addresses in the file.
    pub base: u64,
    /// The addresses from its first to its last, variables included.
    pub addresses: Range<u64>,
    /// Its build ID; empty if it has none.
    pub build_id: Vec<u8>,
    file: ElfFile,
    tables: OnceLock<Option<Tables>>,
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Object").field("path", &self.path).field("base", &self.base).finish_non_exhaustive()
    }
}

impl Object {
    /// Its tables for unwinding, if it has some.
    pub(crate) fn tables(&self) -> Option<&Tables> {
        self.tables.get_or_init(|| Tables::read(&self.file)).as_ref()
    }
}

/// All of them.
pub(crate) struct Objects(Vec<Object>);

impl Objects {
    pub(crate) fn of(mappings: &[Mapping]) -> Self {
        let starts = |mapping: &&Mapping| mapping.offset == 0 && mapping.path.starts_with('/');
        let mut objects: Vec<Object> = vec![];
        for mapping in mappings.iter().filter(starts) {
            if objects.iter().any(|object| object.path == mapping.path) {
                continue;
            }
            // Data files and what is deleted have no code that could be unwound.
            let Ok(file) = ElfFile::open(Path::new(&mapping.path)) else { continue };
            let Some(own) = file.addresses() else { continue };
            let base = mapping.addresses.start.wrapping_sub(own.start);
            objects.push(Object {
                path: mapping.path.clone(),
                base,
                addresses: mapping.addresses.start..own.end.wrapping_add(base),
                build_id: file.build_id.clone(),
                file,
                tables: OnceLock::new(),
            });
        }
        Self(objects)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Object> {
        self.0.iter()
    }

    /// The object that an address is in.
    pub(crate) fn at(&self, address: u64) -> Option<&Object> {
        self.0.iter().find(|object| object.addresses.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mappings;

    #[test]
    fn this_program_is_found_where_it_is() {
        let objects = Objects::of(&mappings::of(std::process::id()).unwrap());
        let own = objects.at(this_program_is_found_where_it_is as *const () as u64).unwrap();
        assert_eq!(Path::new(&own.path), std::env::current_exe().unwrap());
        assert!(own.tables().is_some());
        static mut VARIABLE: u64 = 7;
        assert!(own.addresses.contains(&((&raw const VARIABLE) as u64)));
        assert!(objects.iter().any(|object| object.path.contains("libc.so")));
        assert!(objects.at(16).is_none());
    }
}
