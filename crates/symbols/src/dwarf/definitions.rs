//! Definitions of types that a unit only declares: `struct grid;`.

use super::{Debug, Entry, Id};
use crate::layout;
use gimli::{DwTag, EndianSlice, LittleEndian, Unit, UnitOffset};
use std::hash::{DefaultHasher, Hash, Hasher};

type Slice<'a> = EndianSlice<'a, LittleEndian>;

impl Debug {
    /// The definition of a type that is only declared here: the one of that name in another unit, unless there are
    /// several that differ.
    pub(super) fn definition(&self, id: Id, entry: &Entry) -> Option<Id> {
        let own = self.text(id, entry, gimli::DW_AT_name)?;
        let name = self.qualified(id)?;
        let definitions = self.definitions.get_or_init(|| self.all_definitions());
        let hash = hash(own.as_bytes());
        let first = definitions.partition_point(|(of, _)| *of < hash);
        let alike = definitions[first..].iter().take_while(|(of, _)| *of == hash).map(|(_, id)| *id);
        let is_meant = |other: &Id| {
            let entry = self.entry(*other);
            entry.is_some_and(|entry| !entry.has_attr(gimli::DW_AT_declaration))
                && self.qualified(*other).as_ref() == Some(&name)
        };
        let mut alike = alike.filter(is_meant);
        let found = alike.next()?;
        let bytes = layout::size(self, found);
        alike.all(|other| layout::size(self, other) == bytes).then_some(found)
    }

    /// All definitions of types that can have declarations elsewhere, by hashes of their own names, in ascending order.
    fn all_definitions(&self) -> Vec<(u64, Id)> {
        let dwarf = self.borrowed();
        let mut found = vec![];
        let mut number = 0;
        let mut add = |header| {
            if let Ok(unit) = dwarf.unit(header) {
                // Data before a damaged place is used.
                let _ = look_through(&dwarf, &unit, number, &mut found);
            }
            number += 1;
        };
        // In the order of the survey.
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            add(header);
        }
        let mut headers = dwarf.type_units();
        while let Ok(Some(header)) = headers.next() {
            add(header);
        }
        found.sort_unstable();
        found
    }
}

fn look_through(
    dwarf: &gimli::Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    number: u32,
    found: &mut Vec<(u64, Id)>,
) -> gimli::Result<()> {
    let mut entries = unit.entries_raw(None)?;
    while !entries.is_empty() {
        let UnitOffset(entry) = entries.next_offset();
        let Some(kind) = entries.read_abbreviation()? else { continue };
        // Definitions have members, as a rule, and then they have children.
        if !can_be_declared(kind.tag()) || !kind.has_children() {
            entries.skip_attributes(kind.attributes())?;
            continue;
        }
        for &attribute in kind.attributes() {
            let attribute = entries.read_attribute(attribute)?;
            if attribute.name() == gimli::DW_AT_name
                && let Ok(name) = dwarf.attr_string(unit, attribute.value())
            {
                found.push((hash(name.slice()), Id { unit: number, entry }));
            }
        }
    }
    Ok(())
}

fn hash(name: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

fn can_be_declared(tag: DwTag) -> bool {
    matches!(tag, gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type)
}
