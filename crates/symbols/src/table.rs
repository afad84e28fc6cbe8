//! The symbol tables.

use crate::demangle::readable;
use gondwana_elf::{ElfFile, SymbolKind};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;

/// Functions, or variables.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// In ascending order of the first address; of entries with equal addresses the preferred one is last.
    entries: Vec<Entry>,
    /// For each entry the highest end of it and all before it.
    reaches: Vec<u64>,
    by_name: OnceCell<HashMap<String, Vec<u32>>>,
}

/// One of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its link-time addresses.
    pub range: Range<u64>,
    /// Other files can name it.
    pub is_global: bool,
    /// Its mangled name.
    name: String,
}

impl Entry {
    /// Its demangled name.
    pub(crate) fn name(&self) -> String {
        readable(&self.name)
    }
}

/// The functions and the variables in the tables of some files, which describe the same program.
pub(crate) fn read(files: &[&ElfFile]) -> (Table, Table) {
    let (mut functions, mut variables) = (vec![], vec![]);
    for elf in files {
        elf.for_each_symbol(|symbol| {
            let of_its_kind = match symbol.kind {
                SymbolKind::Function => &mut functions,
                SymbolKind::Variable => &mut variables,
            };
            let name = symbol.name.to_owned();
            of_its_kind.push(Entry { range: symbol.range, is_global: symbol.is_global, name });
        });
    }
    (Table::new(functions), Table::new(variables))
}

impl Table {
    fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_unstable_by(|a, b| {
            let by_place = a.range.start.cmp(&b.range.start).then(a.is_global.cmp(&b.is_global));
            let by_size = by_place.then(a.range.end.cmp(&b.range.end));
            // Aliases for the use of libraries have underscores before the name.
            by_size.then(b.name.len().cmp(&a.name.len())).then(b.name.cmp(&a.name))
        });
        entries.dedup();
        let mut reach = 0;
        let grow = |entry: &Entry| {
            reach = entry.range.end.max(reach);
            reach
        };
        let reaches = entries.iter().map(grow).collect();
        Self { entries, reaches, by_name: OnceCell::new() }
    }

    /// The entry that contains an address.
    pub(crate) fn at(&self, address: u64) -> Option<&Entry> {
        let behind = self.entries.partition_point(|entry| entry.range.start <= address);
        let may_hold = (0..behind).rev().take_while(|&index| self.reaches[index] > address);
        may_hold.map(|index| &self.entries[index]).find(|entry| entry.range.end > address)
    }

    /// The entries of a name, in ascending order of addresses; several if source files have their own.
    pub(crate) fn named(&self, name: &str) -> impl Iterator<Item = &Entry> {
        let by_name = self.by_name.get_or_init(|| {
            let mut by_name = HashMap::<_, Vec<_>>::new();
            for (entry, index) in self.entries.iter().zip(0..) {
                by_name.entry(entry.name()).or_default().push(index);
            }
            by_name
        });
        by_name.get(name).into_iter().flatten().map(|&index| &self.entries[index as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(range: Range<u64>, is_global: bool, name: &str) -> Entry {
        Entry { range, is_global, name: name.to_owned() }
    }

    #[test]
    fn the_innermost_and_best_known_name_is_taken() {
        let table = Table::new(vec![
            entry(10..100, false, "outer"),
            entry(20..30, false, "inner"),
            entry(40..50, false, "local"),
            entry(40..50, true, "__alias"),
            entry(40..50, true, "alias"),
        ]);
        let name = |address| table.at(address).map(Entry::name);
        let expected = [(9, None), (10, Some("outer")), (25, Some("inner")), (30, Some("outer"))];
        for (address, name_there) in expected {
            assert_eq!(name(address).as_deref(), name_there);
        }
        assert_eq!(name(45).as_deref(), Some("alias"));
        assert_eq!(name(99).as_deref(), Some("outer"));
        assert_eq!(name(100), None);
        assert!(table.named("inner").map(|entry| &entry.range).eq([&(20..30)]));
    }
}
