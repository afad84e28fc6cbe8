//! Variables by address and by name.

use super::{Debug, Id};
use crate::layout;
use std::ops::Range;

/// A variable.
pub(crate) struct Described {
    /// Its name, qualified with namespaces, classes and functions.
    pub name: String,
    /// Its type.
    pub kind: Option<Id>,
}

impl Debug {
    /// The variable that begins at an address.
    pub(crate) fn variable(&self, address: u64) -> Option<Described> {
        let variables = &self.survey().variables;
        let first = variables.partition_point(|(start, _)| *start < address);
        let here = variables[first..].iter().take_while(|(start, _)| *start == address);
        // An entry without a description may be a copy of one with.
        here.copied().find_map(|(_, id)| self.describe(id))
    }

    /// Where the variable is that holds an address.
    pub(crate) fn extent(&self, address: u64) -> Option<Range<u64>> {
        let variables = &self.survey().variables;
        let behind = variables.partition_point(|(start, _)| *start <= address);
        let &(start, _) = variables[..behind].last()?;
        let range = start..start.checked_add(layout::size(self, self.variable(start)?.kind?)?)?;
        range.contains(&address).then_some(range)
    }

    /// The variables with a name.
    pub(crate) fn named(&self, name: &str) -> Vec<Range<u64>> {
        let mut found: Vec<Range<u64>> = vec![];
        for &(start, id) in &self.survey().variables {
            if found.last().is_some_and(|last| last.start == start) || !self.may_be_named(id, name) {
                continue;
            }
            if let Some(variable) = self.describe(id).filter(|variable| variable.name == name)
                && let Some(bytes) = variable.kind.and_then(|kind| layout::size(self, kind))
                && bytes > 0
            {
                found.push(start..start.saturating_add(bytes));
            }
        }
        found
    }

    /// True unless the name cannot be that of an entry, wherever that is: this is quick.
    fn may_be_named(&self, id: Id, name: &str) -> bool {
        let own = self.chain(id).iter().find_map(|(id, entry)| self.text(*id, entry, gimli::DW_AT_name));
        own.is_some_and(|own| name.ends_with(&own))
    }

    fn describe(&self, id: Id) -> Option<Described> {
        let name = self.qualified(id)?;
        let chain = self.chain(id);
        let kind = chain.iter().find_map(|(id, entry)| self.reference(*id, entry, gimli::DW_AT_type));
        Some(Described { name, kind })
    }
}
