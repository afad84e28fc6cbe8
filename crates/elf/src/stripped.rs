//! The file of a library from which a loader maps it at once where it is told to, and does nothing else: it relocates nothing, runs
//! nothing and looks for no other library.

use crate::headers::Headers;
use gondwana_page::PAGE_SIZE;
use object::elf::{DT_GNU_HASH, DT_HASH, DT_NULL, DT_RELA, DT_RELAENT, DT_RELASZ, DT_SONAME, DT_STRSZ};
use object::elf::{DT_STRTAB, DT_SYMENT, DT_SYMTAB, DT_VERDEF, DT_VERDEFNUM, DT_VERSYM, DynamicTag};
use object::elf::{Dyn64, PT_DYNAMIC, PT_LOAD, ProgramHeader64};
use object::pod::slice_from_bytes_mut;
use object::read::elf::ProgramHeader;
use object::{Endianness, I64, U64};

/// What a loader is told of symbols and names. The table of relocations is kept, but has no entry.
const KEPT: [DynamicTag; 13] = [
    DT_GNU_HASH,
    DT_HASH,
    DT_RELA,
    DT_RELAENT,
    DT_RELASZ,
    DT_SONAME,
    DT_STRSZ,
    DT_STRTAB,
    DT_SYMENT,
    DT_SYMTAB,
    DT_VERDEF,
    DT_VERDEFNUM,
    DT_VERSYM,
];

/// A tag that no loader knows: the first one that systems are free to use.
const UNKNOWN: DynamicTag = DynamicTag(0x6000_000d);

/// Changes the contents of a library's file so that a loader relocates nothing, runs nothing and needs nothing. Its dynamic section keeps
/// its entries in their places; those that the loader shall not see get another tag. `None` if it is no library.
pub fn strip(file: &mut [u8]) -> Option<()> {
    let headers = Headers::parse(&*file).ok()?;
    let endian = headers.endian;
    let usize_of = |value: u64| usize::try_from(value).ok();
    let (table, count) = (usize_of(headers.header.e_phoff.get(endian))?, headers.segments.len());
    let dynamic = headers.segments.iter().find(|segment| segment.p_type(endian) == PT_DYNAMIC)?;
    let (start, bytes) = (usize_of(dynamic.p_offset(endian))?, usize_of(dynamic.p_filesz(endian))?);

    let segments = file.get_mut(table..)?;
    let (segments, _) = slice_from_bytes_mut::<ProgramHeader64<Endianness>>(segments, count).ok()?;
    for segment in segments.iter_mut().filter(|segment| segment.p_type(endian) == PT_LOAD) {
        // It has a place already, for which more would have to be free otherwise.
        segment.p_align = U64::new(endian, PAGE_SIZE as u64);
    }

    let section = file.get_mut(start..start.checked_add(bytes)?)?;
    let count = bytes / size_of::<Dyn64<Endianness>>();
    let (entries, _) = slice_from_bytes_mut::<Dyn64<Endianness>>(section, count).ok()?;
    for entry in entries.iter_mut() {
        let tag = entry.d_tag.get(endian);
        if tag == DT_NULL {
            break;
        }
        if tag == DT_RELASZ {
            entry.d_val = U64::new(endian, 0);
        } else if !KEPT.contains(&tag) {
            entry.d_tag = I64::new(endian, UNKNOWN);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dependencies;

    #[test]
    fn a_stripped_file_needs_nothing_and_has_its_symbols() {
        let path = std::env::current_exe().unwrap();
        let mut file = std::fs::read(&path).unwrap();
        assert!(!Dependencies::of(&file).unwrap().needed.is_empty());
        strip(&mut file).unwrap();
        assert!(Dependencies::of(&file).unwrap().needed.is_empty());
        let headers = Headers::parse(&file[..]).unwrap();
        assert!(headers.loads().all(|segment| segment.p_align(headers.endian) == PAGE_SIZE as u64));
        for length in [0, 0x40, 0x100] {
            assert!(strip(&mut file[..length]).is_none());
        }
    }
}
