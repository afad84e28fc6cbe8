//! What every placement of pages and threads obeys, on any machine.

use crate::machines::machines_with_part;
use gondwana_rset::{MemoryPolicy, Placement, PlacementError, RSet, ThreadPlan, ThreadPolicy};
use gondwana_topology::{Machine, NodeId, ProcessorSet};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::num::NonZeroU64;

/// Machines with a part that has processors and memory.
fn usable() -> impl Strategy<Value = (Machine, RSet)> {
    machines_with_part()
        .prop_filter("threads need both", |(_, set)| !set.processors().is_empty() && !set.memory().is_empty())
}

fn policies() -> impl Strategy<Value = MemoryPolicy> {
    prop_oneof![
        Just(MemoryPolicy::Float),
        Just(MemoryPolicy::Local),
        Just(MemoryPolicy::Remote),
        (1..9u64).prop_map(|stride| MemoryPolicy::Striped(NonZeroU64::new(stride).unwrap())),
        Just(MemoryPolicy::Block),
    ]
}

/// The nodes of all pages of a region.
fn nodes(placement: &Placement, pages: u64, touching: NodeId) -> Vec<Option<NodeId>> {
    (0..pages).map(|page| placement.node_of(page, pages, touching)).collect()
}

proptest! {
    #[test]
    fn each_page_is_on_a_node_of_the_set(
        (machine, set) in usable(), policy in policies(), pages in 0..200u64, thread in 0..64usize,
    ) {
        let touching = ThreadPlan::new(ThreadPolicy::Fill, &set, &machine).unwrap().place_of(thread).node;
        let placement = match Placement::new(policy, &set, &machine) {
            Ok(placement) => placement,
            Err(error) => {
                prop_assert_eq!(policy, MemoryPolicy::Remote);
                prop_assert_eq!(error, PlacementError::NothingRemote(Box::new(set)));
                prop_assert_eq!(set.memory().len(), 1);
                return Ok(());
            }
        };
        for node in nodes(&placement, pages, touching) {
            prop_assert_eq!(node.is_none(), policy == MemoryPolicy::Float);
            prop_assert!(node.is_none_or(|node| set.memory().contains(node)));
            prop_assert!(policy != MemoryPolicy::Remote || node != Some(touching));
            prop_assert!(policy != MemoryPolicy::Local || node == machine.nearest(touching, set.memory()));
        }
        let runs = placement.runs(pages, touching);
        let by_runs: Vec<_> =
            runs.flat_map(|run| std::iter::repeat_n(run.node, usize::try_from(run.count).unwrap())).collect();
        prop_assert_eq!(by_runs, nodes(&placement, pages, touching));
    }

    #[test]
    fn stripes_cycle_through_all_nodes((machine, set) in usable(), stride in 1..6usize, pages in 1..200u64) {
        let policy = MemoryPolicy::Striped(NonZeroU64::new(stride as u64).unwrap());
        let placement = Placement::new(policy, &set, &machine).unwrap();
        let order: Vec<Option<NodeId>> = set.memory().iter().map(Some).collect();
        for (page, node) in nodes(&placement, pages, NodeId(0)).into_iter().enumerate() {
            prop_assert_eq!(node, order[page / stride % order.len()]);
        }
    }

    #[test]
    fn blocks_are_contiguous_and_equal((machine, set) in usable(), pages in 1..300u64) {
        let placement = Placement::new(MemoryPolicy::Block, &set, &machine).unwrap();
        let nodes = nodes(&placement, pages, NodeId(0));
        prop_assert!(nodes.is_sorted());
        let mut counts = BTreeMap::new();
        for node in nodes {
            *counts.entry(node).or_insert(0u64) += 1;
        }
        let fair = pages / set.memory().len() as u64;
        prop_assert!(counts.values().all(|count| (fair..=fair + 1).contains(count)), "{:?}", counts);
        prop_assert!(fair == 0 || counts.len() == set.memory().len());
    }

    #[test]
    fn explicit_pages_are_on_the_nearest_of_their_nodes((machine, set) in usable(), touching in 0..250u16) {
        let first = set.memory().iter().take(2).collect();
        let placement = Placement::new(MemoryPolicy::Explicit(first), &set, &machine).unwrap();
        let node = placement.node_of(0, 1, NodeId(touching)).unwrap();
        prop_assert_eq!(machine.nearest(NodeId(touching), &first), Some(node));
    }

    #[test]
    fn as_many_threads_as_processors_have_one_each((machine, set) in usable(), round in 0..3usize) {
        let count = set.processors().len();
        let plan = ThreadPlan::new(ThreadPolicy::Fill, &set, &machine).unwrap();
        prop_assert_eq!(plan.processors(), count);
        let places: Vec<_> = (round * count..(round + 1) * count).map(|thread| plan.place_of(thread)).collect();
        prop_assert_eq!(places.iter().map(|place| place.processor).collect::<ProcessorSet>(), *set.processors());
        prop_assert!(places.iter().is_sorted_by_key(|place| place.node));
        prop_assert!(places.iter().all(|place| machine.node_of(place.processor) == Some(place.node)));
    }

    #[test]
    fn round_robin_visits_every_node_before_one_twice((machine, set) in usable(), round in 0..9usize) {
        let plan = ThreadPlan::new(ThreadPolicy::RoundRobin, &set, &machine).unwrap();
        let all = machine.nodes_of(set.processors());
        let threads = round * all.len()..(round + 1) * all.len();
        let places: Vec<_> = threads.map(|thread| plan.place_of(thread)).collect();
        prop_assert!(places.iter().map(|place| place.node).eq(all.iter()));
        prop_assert!(places.iter().all(|place| set.processors().contains(place.processor)));
    }
}
