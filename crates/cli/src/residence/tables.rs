//! Pages by node as tables.

use gondwana_console::columns::{Side, amount, columns};
use gondwana_host::pages::Found;
use gondwana_host::process::Mapping;
use gondwana_topology::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// Memory by kind of mapping, and in all.
pub(super) fn kinds(mappings: &[Mapping]) -> String {
    let nodes = nodes(mappings);
    let sums = sums(mappings, |mapping| Some(mapping.kind));
    let total = sums_of_all(mappings);
    let named = sums.iter().map(|(kind, sum)| (kind.name(), sum)).chain([("total", &total)]);
    summed("memory", &nodes, named)
}

/// Memory by heap: the brk heap, those of the C library's arenas, and those of rules for allocations.
pub(super) fn heaps(mappings: &[Mapping]) -> String {
    let sums = sums(mappings, |mapping| mapping.heap.as_deref());
    if sums.is_empty() {
        return String::new();
    }
    summed("heap", &nodes(mappings), sums.iter().map(|(heap, sum)| (*heap, sum)))
}

/// The bytes on each node of all mappings that are the same in some way.
fn sums<'a, K: Ord>(
    mappings: &'a [Mapping],
    key: impl Fn(&'a Mapping) -> Option<K>,
) -> BTreeMap<K, BTreeMap<NodeId, u64>> {
    let mut sums: BTreeMap<K, BTreeMap<NodeId, u64>> = BTreeMap::new();
    for mapping in mappings {
        let Some(key) = key(mapping) else { continue };
        let sum = sums.entry(key).or_default();
        mapping.bytes.iter().for_each(|(&node, bytes)| *sum.entry(node).or_default() += bytes);
    }
    sums
}

fn sums_of_all(mappings: &[Mapping]) -> BTreeMap<NodeId, u64> {
    sums(mappings, |_| Some(())).remove(&()).unwrap_or_default()
}

/// A line for each name with the bytes on each node and in all.
fn summed<'a>(
    what: &str,
    nodes: &[NodeId],
    named: impl Iterator<Item = (&'a str, &'a BTreeMap<NodeId, u64>)>,
) -> String {
    let mut lines = vec![heading(&[what], nodes, &["in all"])];
    lines.extend(named.map(|(name, bytes)| {
        let all = amount(bytes.values().sum());
        [name.to_owned()].into_iter().chain(amounts(nodes, bytes)).chain([all]).collect()
    }));
    columns(&sides(1, nodes.len() + 1, 0), &lines)
}

/// Each mapping with its picture.
pub(super) fn mappings(mappings: &[Mapping], strips: &[String]) -> String {
    let nodes = nodes(mappings);
    let mut lines = vec![heading(&["addresses", "kind"], &nodes, &["where", "policy", "name"])];
    lines.extend(mappings.iter().zip(strips).map(|(mapping, strip)| {
        let range = format!("{:x}-{:x}", mapping.addresses.start, mapping.addresses.end);
        let first = [range, mapping.kind.name().to_owned()].into_iter();
        let name = mapping.heap.as_ref().unwrap_or(&mapping.name);
        let last = [strip.clone(), mapping.policy.clone(), name.clone()];
        first.chain(amounts(&nodes, &mapping.bytes)).chain(last).collect()
    }));
    columns(&sides(2, nodes.len(), 3), &lines)
}

/// Pages of some addresses.
pub(super) fn pages(found: &Found) -> String {
    let mut lines = vec![vec!["node".to_owned(), "pages".to_owned()]];
    lines.extend(found.pages.iter().map(|(node, pages)| vec![node.to_string(), pages.to_string()]));
    lines.push(vec!["absent".to_owned(), found.absent.to_string()]);
    columns(&[Side::Left, Side::Right], &lines)
}

fn nodes(mappings: &[Mapping]) -> Vec<NodeId> {
    let nodes: BTreeSet<NodeId> = mappings.iter().flat_map(|mapping| mapping.bytes.keys().copied()).collect();
    nodes.into_iter().collect()
}

fn heading(before: &[&str], nodes: &[NodeId], after: &[&str]) -> Vec<String> {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let nodes = nodes.iter().map(|node| format!("node {node}")).collect();
    [owned(before), nodes, owned(after)].concat()
}

fn amounts(nodes: &[NodeId], bytes: &BTreeMap<NodeId, u64>) -> Vec<String> {
    nodes.iter().map(|node| bytes.get(node).map(|bytes| amount(*bytes)).unwrap_or_default()).collect()
}

fn sides(before: usize, numbers: usize, after: usize) -> Vec<Side> {
    let repeat = |side, times| std::iter::repeat_n(side, times);
    repeat(Side::Left, before).chain(repeat(Side::Right, numbers)).chain(repeat(Side::Left, after)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_host::process::Kind;

    fn mapping(start: usize, kind: Kind, bytes: &[(u16, u64)]) -> Mapping {
        let bytes = bytes.iter().map(|&(node, bytes)| (NodeId(node), bytes)).collect();
        let name = if kind == Kind::Heap { "[heap]" } else { "" };
        let heap = (kind == Kind::Heap).then(|| name.to_owned());
        let (name, policy) = (name.to_owned(), "default".to_owned());
        Mapping { addresses: start..start + 0x3000, kind, name, policy, heap, bytes }
    }

    #[test]
    fn kinds_are_summed_up() {
        let anonymous = |start, node| mapping(start, Kind::Anonymous, &[(node, 8192)]);
        let some = [
            mapping(0x1000, Kind::Heap, &[(0, 4096), (2, 4096)]),
            anonymous(0x4000, 0),
            anonymous(0x8000, 0),
        ];
        let expected = "\
memory     node 0  node 2  in all
heap        4 KiB   4 KiB   8 KiB
anonymous  16 KiB          16 KiB
total      20 KiB   4 KiB  24 KiB
";
        assert_eq!(kinds(&some), expected);
    }

    #[test]
    fn heaps_are_told_apart() {
        let of_rule = |start| Mapping {
            heap: Some(">=1M=block".to_owned()),
            ..mapping(start, Kind::Heap, &[(1, 8192)])
        };
        let some = [mapping(0x1000, Kind::Heap, &[(0, 4096)]), of_rule(0x10000), of_rule(0x20000)];
        let expected = "\
heap        node 0  node 1  in all
>=1M=block          16 KiB  16 KiB
[heap]       4 KiB           4 KiB
";
        assert_eq!(heaps(&some), expected);
        assert_eq!(heaps(&[mapping(0x1000, Kind::Stack, &[(0, 4096)])]), "");
    }

    #[test]
    fn mappings_are_shown_with_their_pictures() {
        let some = [
            mapping(0x1000, Kind::Heap, &[(0, 4096), (1, 8192)]),
            mapping(0x4000, Kind::Stack, &[(1, 4096)]),
        ];
        let expected = "\
addresses  kind   node 0  node 1  where  policy   name
1000-4000  heap    4 KiB   8 KiB  011    default  [heap]
4000-7000  stack           4 KiB  ..1    default
";
        assert_eq!(mappings(&some, &["011".to_owned(), "..1".to_owned()]), expected);
    }
}
