//! Entries and their attributes.

use super::{CHAIN, Debug, Entry, Id, Value};
use gimli::{DwAt, Reader as _, UnitOffset, UnitRef};

impl Debug {
    /// Reads an entry, if there is one.
    pub(super) fn entry(&self, id: Id) -> Option<Entry> {
        self.unit(id)?.unit.entry(UnitOffset(id.entry)).ok()
    }

    /// The unit that an entry is in.
    pub(super) fn unit(&self, id: Id) -> Option<UnitRef<'_, super::Reader>> {
        let unit = self.survey().units.get(id.unit as usize)?.unit(&self.dwarf)?;
        Some(unit.unit_ref(&self.dwarf))
    }

    /// The entry that an attribute refers to.
    pub(super) fn target(&self, from: Id, value: Value) -> Option<Id> {
        match value {
            Value::UnitRef(UnitOffset(entry)) => Some(Id { entry, ..from }),
            Value::DebugInfoRef(place) => {
                let survey = self.survey();
                // Units of other sections come last.
                let begun = |unit: &super::survey::Known| unit.start().is_some_and(|start| start <= place.0);
                let number = survey.units.partition_point(begun).checked_sub(1)?;
                Some(Id { unit: u32::try_from(number).ok()?, entry: survey.units[number].entry(place.0)? })
            }
            Value::DebugTypesRef(signature) => self.survey().signatures.get(&signature).copied(),
            _ => None,
        }
    }

    /// The entry that the attribute of an entry means.
    pub(super) fn reference(&self, id: Id, entry: &Entry, name: DwAt) -> Option<Id> {
        self.target(id, entry.attr_value(name)?)
    }

    /// A text.
    pub(super) fn text(&self, id: Id, entry: &Entry, name: DwAt) -> Option<String> {
        let text = self.unit(id)?.attr_string(entry.attr_value(name)?).ok()?;
        Some(text.to_string_lossy().ok()?.into_owned())
    }

    /// An entry with its specification or abstract origin, and theirs: the more general ones later.
    pub(super) fn chain(&self, id: Id) -> Vec<(Id, Entry)> {
        let mut chain = vec![];
        let mut next = Some(id);
        while let Some(id) = next.filter(|_| chain.len() < CHAIN) {
            let Some(entry) = self.entry(id) else { break };
            next = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification]
                .into_iter()
                .find_map(|name| self.reference(id, &entry, name));
            chain.push((id, entry));
        }
        chain
    }
}
