//! Names with the namespaces, classes and functions that they are in.

use super::survey::Scope;
use super::{CHAIN, Debug, Id};
use gimli::UnitOffset;

impl Debug {
    /// The qualified name of an entry; none if it has no name itself.
    pub(super) fn qualified(&self, id: Id) -> Option<String> {
        let mut parts = vec![];
        let mut next = Some(id);
        while let Some(id) = next.filter(|_| parts.len() < CHAIN) {
            // The declaration is in its scope; the definition may be outside.
            let chain = self.chain(id);
            let (declared, _) = chain.last()?;
            let name = chain.iter().find_map(|(id, entry)| self.text(*id, entry, gimli::DW_AT_name));
            let is_namespace = chain[0].1.tag() == gimli::DW_TAG_namespace;
            match name {
                Some(name) => parts.push(name),
                None if is_namespace => parts.push("(anonymous namespace)".to_owned()),
                None if parts.is_empty() => return None,
                // A class without a name.
                None => {}
            }
            next = self.scope_of(*declared);
        }
        parts.reverse();
        Some(parts.join("::"))
    }

    /// The innermost scope that an entry is in.
    fn scope_of(&self, id: Id) -> Option<Id> {
        let known = self.survey().units.get(id.unit as usize)?;
        let scopes = known.scopes.get_or_init(|| self.scopes(id).unwrap_or_default());
        let mut index = scopes.partition_point(|scope| scope.start < id.entry).checked_sub(1);
        while let Some(scope) = index.map(|index| &scopes[index]) {
            if id.entry < scope.end {
                return Some(Id { entry: scope.start, ..id });
            }
            index = scope.parent;
        }
        None
    }

    /// The scopes of the unit that an entry is in, as far as it is undamaged.
    fn scopes(&self, id: Id) -> Option<Vec<Scope>> {
        let mut entries = self.unit(id)?.unit.entries_raw(None).ok()?;
        let mut scopes: Vec<Scope> = vec![];
        // Those that are open, with their depths.
        let mut open: Vec<(usize, isize)> = vec![];
        while !entries.is_empty() {
            let UnitOffset(start) = entries.next_offset();
            let depth = entries.next_depth();
            let Ok(kind) = entries.read_abbreviation() else { break };
            while let Some((index, _)) = open.pop_if(|(_, of)| *of >= depth) {
                scopes[index].end = start;
            }
            let Some(kind) = kind else { continue };
            if kind.has_children() && is_scope(kind.tag()) {
                let parent = open.last().map(|(index, _)| *index);
                open.push((scopes.len(), depth));
                scopes.push(Scope { start, end: usize::MAX, parent });
            }
            if entries.skip_attributes(kind.attributes()).is_err() {
                break;
            }
        }
        Some(scopes)
    }
}

fn is_scope(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_namespace
            | gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_module
            | gimli::DW_TAG_subprogram
    )
}
