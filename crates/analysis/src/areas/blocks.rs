//! Allocated blocks of memory, by allocation site.

use super::layer::Layer;
use super::recursion::without_recursion;
use crate::names::Names;
use gondwana_recording::{BlockRecord, Recording};
use std::collections::HashMap;

/// Blocks of one chain of calls, on all nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    /// Return addresses, innermost first, without recursion; empty if unknown.
    pub(crate) stack: Vec<u64>,
    /// The indices, in ascending order, of calls in functions that have called themselves: the next call is not
    /// always their caller.
    pub(crate) recursive: Vec<usize>,
    /// The number of blocks.
    pub(crate) objects: u64,
    /// The sum of their bytes.
    pub(crate) bytes: u64,
    /// The threads that allocated, in ascending order.
    pub(crate) threads: Vec<u32>,
}

/// All blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocks {
    /// The addresses of blocks, by index into `objects`.
    pub(crate) layer: Layer<usize>,
    /// The records, each with its group.
    pub(crate) objects: Vec<(BlockRecord, usize)>,
    /// The chains of calls.
    pub(crate) groups: Vec<Group>,
}

impl Blocks {
    /// Collects the blocks. Of records about the same addresses the latest counts; a block that later ones cover
    /// completely is dropped.
    pub(crate) fn of(recording: &Recording, names: &dyn Names) -> Self {
        let sites: HashMap<(u16, u32), &[u64]> =
            recording.sites.iter().map(|(node, site)| ((*node, site.number), &site.stack[..])).collect();
        let stack_of =
            |node: u16, object: &BlockRecord| sites.get(&(node, object.site)).copied().unwrap_or_default();
        let mut chains =
            without_recursion(recording.objects.iter().map(|(node, object)| stack_of(*node, object)), names);
        let mut blocks = Self::default();
        let mut known: HashMap<&[u64], usize> = HashMap::new();
        let mut groups: HashMap<Vec<u64>, usize> = HashMap::new();
        for (node, object) in &recording.objects {
            let stack = stack_of(*node, object);
            let group = *known.entry(stack).or_insert_with(|| {
                let chain = chains.remove(stack).unwrap_or_default();
                let group = *groups.entry(chain.calls).or_insert_with_key(|calls| {
                    blocks.groups.push(Group { stack: calls.clone(), ..Group::default() });
                    blocks.groups.len() - 1
                });
                blocks.groups[group].recursive.extend(chain.recursive);
                group
            });
            // A block of length 0 has an address of its own.
            let end = object.address.saturating_add(object.bytes.max(1));
            blocks.layer.put(object.address..end, blocks.objects.len());
            blocks.objects.push((*object, group));
        }
        let mut seen: Vec<usize> = blocks.layer.iter().map(|(_, object)| object).collect();
        seen.sort_unstable();
        seen.dedup();
        for object in seen {
            let (object, group) = &blocks.objects[object];
            let group = &mut blocks.groups[*group];
            group.objects += 1;
            group.bytes = group.bytes.saturating_add(object.bytes);
            group.threads.push(object.thread);
        }
        for group in &mut blocks.groups {
            group.threads.sort_unstable();
            group.threads.dedup();
            group.recursive.sort_unstable();
            group.recursive.dedup();
        }
        blocks
    }

    /// The block at an address.
    pub(crate) fn at(&self, address: u64) -> Option<usize> {
        self.layer.at(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::NoNames;
    use gondwana_recording::SiteRecord;

    #[test]
    fn the_same_calls_on_two_nodes_are_one_group_and_the_latest_block_counts() {
        let object = |address, bytes, site, thread| BlockRecord { address, bytes, site, thread };
        let recording = Recording {
            sites: vec![
                (0, SiteRecord { number: 1, stack: vec![10, 20] }),
                (0, SiteRecord { number: 2, stack: vec![11, 20] }),
                (1, SiteRecord { number: 7, stack: vec![10, 20] }),
            ],
            objects: vec![
                (0, object(0x1000, 0x100, 2, 0)),
                (0, object(0x1000, 0x100, 1, 3)),
                (1, object(0x9000, 0x10, 7, 1)),
                (1, object(0xa000, 0, 9, 1)),
            ],
            ..Recording::default()
        };
        let blocks = Blocks::of(&recording, &NoNames);
        let group = |stack: &[u64], objects, bytes, threads: &[u32]| Group {
            stack: stack.to_vec(),
            recursive: vec![],
            objects,
            bytes,
            threads: threads.to_vec(),
        };
        assert_eq!(
            blocks.groups,
            [group(&[11, 20], 0, 0, &[]), group(&[10, 20], 2, 0x110, &[1, 3]), group(&[], 1, 0, &[1])]
        );
        assert_eq!(blocks.at(0x10ff).map(|object| blocks.objects[object].0.site), Some(1));
        assert_eq!(blocks.at(0x1100), None);
        assert!(blocks.at(0xa000).is_some());
    }
}
