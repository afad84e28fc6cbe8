//! The names in a program or library, and its lines if it has debugging information.

use gimli::{Dwarf, EndianSlice, LittleEndian, SectionId};
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SymbolKind};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

/// What has a name.
pub struct Symbols {
    /// Where the file is, for messages.
    pub file: String,
    named: Vec<(String, SymbolKind, Range<u64>)>,
    image: Vec<u8>,
}

impl Symbols {
    /// Reads the names; none if this is no file that has any.
    pub fn new(file: String, image: &[u8]) -> Self {
        let mut named = vec![];
        if let Ok(elf) = ElfFile64::<Endianness>::parse(image) {
            for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
                let range = symbol.address()..symbol.address() + symbol.size();
                if let Ok(name) = symbol.name()
                    && !symbol.is_undefined()
                    && !range.is_empty()
                {
                    named.push((plain(name), symbol.kind(), range));
                }
            }
        }
        Self { file, named, image: image.to_vec() }
    }

    /// Where a global variable is.
    pub fn variable(&self, name: &str) -> Option<Range<u64>> {
        let found = self.named.iter().find(|(known, kind, _)| known == name && *kind == SymbolKind::Data);
        found.map(|(_, _, range)| range.clone())
    }

    /// Where the functions with a name are; static ones may have the same.
    pub fn function(&self, name: &str) -> Vec<Range<u64>> {
        let mut found: Vec<_> = self
            .named
            .iter()
            .filter(|(known, kind, _)| known == name && *kind == SymbolKind::Text)
            .map(|(_, _, range)| range.clone())
            .collect();
        found.sort_unstable_by_key(|range| range.start);
        found.dedup();
        found
    }

    /// Where the code of a line is. The file may be named without its folders.
    pub fn line(&self, file: &str, line: u32) -> Result<Vec<Range<u64>>, String> {
        let sections = sections(&self.image);
        if !sections.contains_key(SectionId::DebugLine.name()) {
            return Err(format!(
                "{} has no debugging information (compile with -g): {file}:{line}",
                self.file
            ));
        }
        code_of_line(&sections, file, line).map_err(|error| format!("{}: {error}", self.file))
    }
}

/// The name as it is in the source.
fn plain(name: &str) -> String {
    match cpp_demangle::Symbol::new(name) {
        Ok(symbol) if name.starts_with("_Z") => symbol.demangle().unwrap_or_else(|_| name.to_owned()),
        _ => name.to_owned(),
    }
}

type Sections<'a> = HashMap<String, Cow<'a, [u8]>>;

fn sections(image: &[u8]) -> Sections<'_> {
    let Ok(elf) = ElfFile64::<Endianness>::parse(image) else { return HashMap::new() };
    let named = |section: object::read::elf::ElfSection64<'_, '_, Endianness>| {
        // Compressed sections count as missing.
        Some((section.name().ok()?.to_owned(), Cow::Owned(section.data().ok()?.to_vec())))
    };
    elf.sections().filter_map(named).collect()
}

fn code_of_line(sections: &Sections<'_>, file: &str, line: u32) -> Result<Vec<Range<u64>>, gimli::Error> {
    let load = |id: SectionId| -> Result<_, gimli::Error> {
        let bytes = sections.get(id.name()).map_or(&[][..], |bytes| bytes);
        Ok(EndianSlice::new(bytes, LittleEndian))
    };
    let dwarf = Dwarf::load(load)?;
    let mut found = vec![];
    let mut headers = dwarf.units();
    while let Some(header) = headers.next()? {
        let unit = dwarf.unit(header)?;
        let Some(program) = unit.line_program.clone() else { continue };
        let mut rows = program.rows();
        let mut begun: Option<u64> = None;
        while let Some((header, row)) = rows.next_row()? {
            if let Some(start) = begun.take()
                && start < row.address()
            {
                found.push(start..row.address());
            }
            let named = row.file(header).and_then(|entry| dwarf.attr_string(&unit, entry.path_name()).ok());
            let meant = named.is_some_and(|name| is_file(&name.to_string_lossy(), file));
            if meant
                && row.line().is_some_and(|number| number.get() == u64::from(line))
                && !row.end_sequence()
            {
                begun = Some(row.address());
            }
        }
    }
    Ok(found)
}

/// True if a path is the file that somebody has named, perhaps with fewer folders.
fn is_file(path: &str, named: &str) -> bool {
    let mut path = path.rsplit('/');
    let mut named = named.rsplit('/');
    path.next() == named.next() && path.zip(named).all(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_may_be_named_without_folders() {
        assert!(is_file("src/grid.c", "grid.c") && is_file("grid.c", "src/grid.c"));
        assert!(!is_file("src/grid.c", "rid.c") && !is_file("a/grid.c", "b/grid.c"));
    }
}
