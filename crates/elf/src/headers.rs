//! What the headers and the dynamic section of a file say, of which nothing else is read however large the file is.

use object::elf::{DT_AUDIT, DT_AUXILIARY, DT_DEPAUDIT, DT_FILTER, DT_NEEDED, DT_NULL, DT_RPATH};
use object::elf::{DT_RUNPATH, DT_STRSZ, DT_STRTAB, DynamicTag, FileHeader64};
use object::elf::{PT_DYNAMIC, PT_INTERP, PT_LOAD, ProgramHeader64, SHT_SYMTAB};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, ReadCache, ReadRef};
use std::fs::File;
use std::io;
use std::path::Path;

/// Tags that make a loader look for libraries elsewhere, or load more of them.
const REDIRECTING: [DynamicTag; 6] = [DT_AUDIT, DT_AUXILIARY, DT_DEPAUDIT, DT_FILTER, DT_RPATH, DT_RUNPATH];

/// The libraries that a file needs, as its dynamic section names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependencies {
    /// Their names.
    pub needed: Vec<String>,
    /// The section also tells the loader where to look for libraries, or names auditors and filters to load.
    pub redirects: bool,
    /// The folders in which the loader is to look for libraries, as they are written: `$ORIGIN` is the file's own.
    pub folders: Vec<String>,
}

impl Dependencies {
    /// Those of a file with these contents; `None` if it is no 64-bit ELF file with a dynamic section, or a damaged one.
    #[must_use]
    pub fn of(image: &[u8]) -> Option<Self> {
        Headers::parse(image).ok()?.dependencies()
    }
}

/// True if the file names a loader.
///
/// # Errors
/// If it cannot be read or is no 64-bit ELF file.
pub fn has_interpreter(path: &Path) -> io::Result<bool> {
    let file = ReadCache::new(File::open(path)?);
    let headers = Headers::parse(&file).map_err(io::Error::other)?;
    Ok(headers.segments.iter().any(|segment| segment.p_type(headers.endian) == PT_INTERP))
}

/// True if the file has names of functions and variables that other files cannot use: it was not stripped.
///
/// # Errors
/// If it cannot be read or is no 64-bit ELF file.
pub fn has_symbol_table(path: &Path) -> io::Result<bool> {
    let file = ReadCache::new(File::open(path)?);
    let Headers { header, endian, .. } = Headers::parse(&file).map_err(io::Error::other)?;
    let sections = header.section_headers(endian, &file).map_err(io::Error::other)?;
    Ok(sections.iter().any(|section| section.sh_type(endian) == SHT_SYMTAB))
}

/// The header of a 64-bit ELF file and its program headers.
pub(crate) struct Headers<'data, R> {
    pub header: &'data FileHeader64<Endianness>,
    pub endian: Endianness,
    pub segments: &'data [ProgramHeader64<Endianness>],
    data: R,
}

impl<'data, R: ReadRef<'data>> Headers<'data, R> {
    pub(crate) fn parse(data: R) -> Result<Self, object::Error> {
        let header = FileHeader64::<Endianness>::parse(data)?;
        let endian = header.endian()?;
        let segments = header.program_headers(endian, data)?;
        Ok(Self { header, endian, segments, data })
    }

    /// The segments that the loader maps.
    pub(crate) fn loads(&self) -> impl Iterator<Item = &'data ProgramHeader64<Endianness>> + use<'data, R> {
        let endian = self.endian;
        self.segments.iter().filter(move |segment| segment.p_type(endian) == PT_LOAD)
    }

    /// The libraries that the dynamic section names; `None` if there is no such section, or a damaged one.
    pub(crate) fn dependencies(&self) -> Option<Dependencies> {
        let (endian, data) = (self.endian, self.data);
        let section = self.segments.iter().find(|segment| segment.p_type(endian) == PT_DYNAMIC)?;
        let entries = section.dynamic(endian, data).ok()??;
        let entries = || entries.iter().take_while(|entry| entry.d_tag(endian) != DT_NULL);
        let value = |tag| entries().find(|entry| entry.d_tag(endian) == tag).map(|entry| entry.d_val(endian));
        let (table, length) = (value(DT_STRTAB)?, value(DT_STRSZ)?);
        let mut mapped = self.loads();
        let texts = mapped.find_map(|segment| segment.data_range(endian, data, table, length).ok()?)?;
        let text = |entry: &object::elf::Dyn64<Endianness>| {
            let text = texts.get(usize::try_from(entry.d_val(endian)).ok()?..)?;
            let end = text.iter().position(|&byte| byte == 0)?;
            Some(String::from_utf8_lossy(&text[..end]).into_owned())
        };
        let needed = entries().filter(|entry| entry.d_tag(endian) == DT_NEEDED).map(text);
        let lists =
            entries().filter(|entry| [DT_RPATH, DT_RUNPATH].contains(&entry.d_tag(endian))).filter_map(text);
        let folders = lists.flat_map(|list| list.split(':').map(str::to_owned).collect::<Vec<_>>());
        Some(Dependencies {
            folders: folders.filter(|folder| !folder.is_empty()).collect(),
            needed: needed.collect::<Option<_>>()?,
            redirects: entries().any(|entry| REDIRECTING.contains(&entry.d_tag(endian))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_a_compiler_have_a_loader_and_symbols() {
        let own = std::env::current_exe().unwrap();
        assert!(has_interpreter(&own).unwrap() && has_symbol_table(&own).unwrap());
        // The loader itself is the one program that surely has none.
        assert!(!has_interpreter(Path::new("/lib64/ld-linux-x86-64.so.2")).unwrap());
        assert!(has_interpreter(Path::new("/dev/null")).is_err());
        assert!(has_symbol_table(Path::new("/dev/null")).is_err());
    }
}
