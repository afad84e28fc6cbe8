//! The laws that sets obey.

use crate::machines::{large, parts_of};
use gondwana_rset::{RSet, Resource};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn three() -> impl Strategy<Value = (RSet, RSet, RSet)> {
    let part = || parts_of(&large());
    (part(), part(), part())
}

/// The members, in a set that somebody else has written.
fn members(set: &RSet) -> BTreeSet<(bool, u16)> {
    let pair = |resource| match resource {
        Resource::Processor(processor) => (false, processor.0),
        Resource::Memory(node) => (true, node.0),
    };
    set.resources().map(pair).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn operations_agree_with_sets_of_members((a, b, _) in three()) {
        let (ma, mb) = (members(&a), members(&b));
        prop_assert_eq!(members(&a.union(&b)), &ma | &mb);
        prop_assert_eq!(members(&a.intersection(&b)), &ma & &mb);
        prop_assert_eq!(members(&a.difference(&b)), &ma - &mb);
        prop_assert_eq!(a.contains(&b), ma.is_superset(&mb));
        prop_assert_eq!(a.overlaps(&b), !ma.is_disjoint(&mb));
        prop_assert_eq!(a.is_empty(), ma.is_empty());
        prop_assert_eq!(a == b, ma == mb);
        prop_assert_eq!(a.processors().len() + a.memory().len(), ma.len());
    }

    #[test]
    fn union_and_intersection_are_a_lattice((a, b, c) in three()) {
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.union(&b).union(&c), a.union(&b.union(&c)));
        prop_assert_eq!(a.intersection(&b).intersection(&c), a.intersection(&b.intersection(&c)));
        prop_assert_eq!(a.union(&a.intersection(&b)), a);
        prop_assert_eq!(a.intersection(&a.union(&b)), a);
        prop_assert_eq!(a.intersection(&b.union(&c)), a.intersection(&b).union(&a.intersection(&c)));
        prop_assert_eq!(a.union(&b.intersection(&c)), a.union(&b).intersection(&a.union(&c)));
    }

    #[test]
    fn the_global_set_and_the_empty_one_are_the_ends((a, b, _) in three()) {
        let all = RSet::global(&large());
        let without = |set: &RSet| all.difference(set);
        prop_assert_eq!(a.union(&RSet::EMPTY), a);
        prop_assert_eq!(a.intersection(&RSet::EMPTY), RSet::EMPTY);
        prop_assert_eq!(a.union(&all), all);
        prop_assert_eq!(a.intersection(&all), a);
        prop_assert_eq!(without(&without(&a)), a);
        prop_assert_eq!(without(&a.union(&b)), without(&a).intersection(&without(&b)));
        prop_assert_eq!(without(&a.intersection(&b)), without(&a).union(&without(&b)));
        prop_assert_eq!(a.difference(&b), a.intersection(&without(&b)));
        prop_assert!(all.contains(&a) && a.contains(&RSet::EMPTY));
    }

    #[test]
    fn one_thing_at_a_time_makes_the_same_set((a, b, _) in three()) {
        let mut set = a;
        for resource in b.resources() {
            prop_assert_eq!(set.add(resource), !a.has(resource));
            prop_assert!(set.has(resource) && !set.add(resource));
        }
        prop_assert_eq!(set, a.union(&b));
        for resource in b.resources() {
            prop_assert!(set.remove(resource) && !set.has(resource) && !set.remove(resource));
        }
        prop_assert_eq!(set, a.difference(&b));
    }
}
