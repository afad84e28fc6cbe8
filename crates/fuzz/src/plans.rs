//! Plans.

use gondwana_plan::{Homes, Plan};
use gondwana_rset::{Placement, RSet, Registry};
use gondwana_topology::{Bytes, Machine, NodeId};

/// A plan: what is understood of it is written so that it is understood again, and can be applied.
pub(crate) fn plan(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let machine = Machine::uniform(4, 1, Bytes(1 << 30));
    let names = Registry::default();
    let plan = match Plan::parse(text, &machine, &names) {
        Ok(plan) => plan,
        Err(error) => {
            assert!((1..=text.lines().count().max(1) + 1).contains(&error.line), "{error}");
            return;
        }
    };
    let written = plan.to_toml();
    let again = Plan::parse(&written, &machine, &names).unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert_eq!(again.to_toml(), written);
    let all = RSet::global(&machine);
    let homes = plan.variables.iter().map(|it| &it.homes).chain(plan.allocations.iter().map(|it| &it.homes));
    for homes in homes {
        let placement = match homes {
            Homes::Policy(policy) => Placement::new(*policy, &all, &machine),
            Homes::Parts(parts) => Placement::of_parts(parts, &all, &machine),
        };
        let placement = placement.expect("what was read can be applied");
        for pages in [1, 7, 1 << 20] {
            for page in [0, pages / 2, pages - 1] {
                let node = placement.node_of(page, pages, NodeId(3));
                assert!(node.is_none_or(|node| node.index() < 4), "page {page} of {pages}: {node:?}");
            }
        }
    }
}
