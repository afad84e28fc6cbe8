//! Names of blocks by the variables that point to them.

use crate::areas::Blocks;
use crate::names::Names;
use gondwana_recording::Recording;
use std::collections::{BTreeMap, HashMap};

/// The pointers to blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pointers {
    /// By block: the address of a pointer to its first byte, and the pointer's name.
    objects: HashMap<usize, (u64, String)>,
    /// By group: the name of most of its blocks.
    groups: HashMap<usize, String>,
    /// By group: the address of a pointer to one of its blocks.
    some: HashMap<usize, u64>,
}

impl Pointers {
    /// Finds the named pointers to blocks. Of several to one block, that with the lowest address counts.
    pub(crate) fn of(recording: &Recording, names: &dyn Names, blocks: &Blocks) -> Self {
        let mut pointers = Self::default();
        let mut references: Vec<_> = recording.references.iter().map(|(_, reference)| *reference).collect();
        references.sort_unstable_by_key(|reference| (reference.address, reference.value));
        let mut counts: HashMap<usize, BTreeMap<String, u64>> = HashMap::new();
        for reference in references {
            let Some(object) = blocks.at(reference.value) else { continue };
            let (block, group) = &blocks.objects[object];
            if block.address != reference.value || pointers.objects.contains_key(&object) {
                continue;
            }
            let Some((name, _)) = names.pointer(reference.address) else { continue };
            *counts.entry(*group).or_default().entry(name.clone()).or_default() += 1;
            pointers.objects.insert(object, (reference.address, name));
            pointers.some.entry(*group).or_insert(reference.address);
        }
        for (group, names) in counts {
            pointers.groups.insert(group, together(&names));
        }
        pointers
    }

    /// The pointer to a block and its name.
    pub(crate) fn of_object(&self, object: usize) -> Option<&(u64, String)> {
        self.objects.get(&object)
    }

    /// The name of the blocks of a group.
    pub(crate) fn of_group(&self, group: usize) -> Option<&str> {
        self.groups.get(&group).map(String::as_str)
    }

    /// The address of a pointer to a block of the group, whose blocks all have the same layout.
    pub(crate) fn like(&self, group: usize) -> Option<u64> {
        self.some.get(&group).copied()
    }
}

/// One name for blocks with several: elements of an array have the name of the array; otherwise the most frequent
/// name counts.
fn together(names: &BTreeMap<String, u64>) -> String {
    let array = |name: &str| name.split_once('[').map_or(name, |(array, _)| array).to_owned();
    let mut arrays: BTreeMap<String, u64> = BTreeMap::new();
    for (name, count) in names {
        *arrays.entry(array(name)).or_default() += count;
    }
    let most =
        arrays.into_iter().rev().max_by_key(|(_, count)| *count).map(|(name, _)| name).unwrap_or_default();
    let mut of_it = names.keys().filter(|name| array(name) == most);
    match (of_it.next(), of_it.next()) {
        (Some(only), None) => only.clone(),
        _ => format!("{most}[]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_go_by_the_name_of_their_array() {
        let name = |names: &[(&str, u64)]| {
            together(&names.iter().map(|&(name, count)| (name.to_owned(), count)).collect())
        };
        assert_eq!(name(&[("bodies", 1)]), "bodies");
        assert_eq!(name(&[("rows[0]", 1), ("rows[1]", 1), ("first", 1)]), "rows[]");
        assert_eq!(name(&[("rows[3]", 1)]), "rows[3]");
        assert_eq!(name(&[("a", 2), ("b", 1)]), "a");
    }
}
