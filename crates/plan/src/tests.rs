use crate::{Allocation, CodeLocation, Homes, Plan, PlanError, ThreadGroup, Traffic, Variable};
use gondwana_rset::{MemoryPolicy, PlacementPart, Registry};
use gondwana_topology::{Bytes, Machine, NodeId};
use proptest::prelude::*;
use std::num::NonZeroU64;

fn parse(text: &str) -> Result<Plan, PlanError> {
    Plan::parse(text, &Machine::uniform(4, 1, Bytes(1 << 30)), &Registry::default())
}

const PLAN: &str = r#"version = 1

[before]
requests = 9000
bytes = 1000000

[expected]
requests = 900
bytes = 70000

[[variable]]
name = "matrix"
policy = "block"
reason = "each thread has rows of its own"

[[variable]]
name = "bodies"
parts = [
  { pages = 128, node = 1 },
  { pages = 64, node = 0 },
]
replicate = true

[[allocation]]
site = "make_grid+0x4f"
caller = "solve()"
library = "libgrid.so"
min_bytes = 65536
max_bytes = 1048576
policy = "striped:16"

[[thread]]
threads = [1, 3]
node = 1

[[thread]]
threads = [0, 2]
together = true
reason = "they exchange \"work\""
"#;

#[test]
fn a_plan_is_read_and_written() {
    let plan = parse(PLAN).unwrap();
    assert_eq!(plan.before, Some(Traffic { requests: 9000, bytes: 1_000_000 }));
    let [matrix, bodies] = &plan.variables[..] else { panic!("two variables: {plan:?}") };
    assert_eq!((matrix.line, &matrix.homes), (12, &Homes::Policy(MemoryPolicy::Block)));
    let parts = [(128, 1), (64, 0)].map(|(pages, node)| PlacementPart { pages, node: NodeId(node) });
    assert_eq!((&bodies.homes, bodies.replicate), (&Homes::Parts(parts.to_vec()), true));
    let allocation = &plan.allocations[0];
    assert_eq!((allocation.line, allocation.site.to_string()), (25, "make_grid+0x4f".to_owned()));
    assert_eq!(allocation.caller, Some(CodeLocation::Function("solve()".to_owned())));
    assert_eq!((allocation.min_bytes, allocation.max_bytes), (65536, 1 << 20));
    let groups: Vec<_> =
        plan.threads.iter().map(|group| (group.line, group.node, &group.threads[..])).collect();
    assert_eq!(groups, [(33, Some(NodeId(1)), &[1, 3][..]), (37, None, &[0, 2])]);
    assert_eq!(plan.to_toml(), PLAN);
}

#[test]
fn expected_savings_are_comments() {
    let mut plan = parse(PLAN).unwrap();
    plan.threads[1].saving = Some(Traffic { requests: 12, bytes: 3400 });
    let text = plan.to_toml();
    assert!(
        text.contains("# expected to save 12 requests and 3400 bytes\n[[thread]]\nthreads = [0, 2]"),
        "{text}"
    );
    assert_eq!(parse(&text).unwrap().to_toml(), PLAN);
}

#[test]
fn an_entry_may_do_without_homes_if_it_replicates() {
    let text = "version = 1\n[[variable]]\nname = \"tree\"\nreplicate = true\n";
    assert_eq!(parse(text).unwrap().variables[0].homes, Homes::Policy(MemoryPolicy::Float));
}

#[test]
fn errors_name_line_and_field() {
    for (from, to, line, what) in [
        ("version = 1", "version = 2", 1, "version 2"),
        ("[before]\nrequests = 9000\nbytes = 1000000\n", "", 4, "expected: "),
        ("policy = \"block\"", "polcy = \"block\"", 13, "polcy"),
        ("policy = \"block\"", "policy = \"striped:0\"", 13, "policy: "),
        ("policy = \"block\"", "policy = \"node:7\"", 13, "policy: "),
        ("policy = \"block\"", "", 12, "add policy, parts or replicate"),
        ("policy = \"block\"", "policy = \"block\"\nparts = [{ pages = 1, node = 0 }]", 14, "parts: "),
        ("policy = \"block\"", "parts = []", 13, "parts: "),
        ("pages = 128", "pages = 0", 19, "pages: "),
        ("pages = 128, node = 1", "pages = 128, node = 4", 19, "no node 4, nodes 0 to 3"),
        ("make_grid+0x4f", "make_grid+0x", 25, "site: "),
        ("1048576", "1", 29, "max_bytes: "),
        ("65536", "-1", 28, ""),
        ("name = \"matrix\"", "", 11, "name"),
        ("name = \"matrix\"", "name = \"\"", 12, "name: "),
        ("threads = [1, 3]", "threads = []", 33, "threads: "),
        ("threads = [0, 2]", "threads = [0, 3]", 37, "thread 3 is listed in line 33 already"),
        ("threads = [1, 3]", "threads = [1, 1]", 33, "thread 1 is listed in line 33 already"),
        ("node = 1\n\n", "node = 9\n\n", 34, "no node 9"),
        ("node = 1\n\n", "node = 1\ntogether = true\n\n", 34, "node: "),
        ("node = 1\n\n", "\n\n", 33, "needs node or together"),
        ("together = true", "node = 2", 37, "thread 0 runs main"),
    ] {
        let error = parse(&PLAN.replacen(from, to, 1)).unwrap_err();
        assert!(error.line == line && error.what.contains(what), "{to}: {error}");
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-zé\"\\\\\n\t\u{7f}#=\\[\\]]{1,12}", "[a-z_]{1,8}"]
}

fn number() -> impl Strategy<Value = u64> {
    // TOML's integers have a sign.
    0..=i64::MAX.cast_unsigned()
}

fn homes() -> impl Strategy<Value = Homes> {
    let part = (1..1000u64, 0..4u16).prop_map(|(pages, node)| PlacementPart { pages, node: NodeId(node) });
    prop_oneof![
        Just(Homes::Policy(MemoryPolicy::Block)),
        Just(Homes::Policy(MemoryPolicy::Float)),
        (1..100u64).prop_map(|stride| {
            Homes::Policy(MemoryPolicy::Striped(NonZeroU64::new(stride).expect("is positive")))
        }),
        proptest::collection::vec(part, 1..5).prop_map(Homes::Parts),
    ]
}

fn traffic() -> impl Strategy<Value = Traffic> {
    (number(), number()).prop_map(|(requests, bytes)| Traffic { requests, bytes })
}

prop_compose! {
    fn variable()(
        (name, library, reason) in (text(), proptest::option::of(text()), text()),
        homes in homes(),
        replicate: bool,
    ) -> Variable {
        Variable { line: 0, name, library, homes, replicate, reason, saving: None }
    }
}

prop_compose! {
    fn allocation()(
        (function, offset) in ("[a-z]{1,9}", number()),
        (caller, library, reason) in (proptest::option::of("[a-z]{1,9}"), proptest::option::of(text()), text()),
        (min_bytes, more) in (0..1u64 << 40, proptest::option::of(0..1u64 << 40)),
        homes in homes(),
        replicate: bool,
    ) -> Allocation {
        let max_bytes = more.map_or(u64::MAX, |more| min_bytes + more);
        let (site, caller) = (CodeLocation::Call(function, offset), caller.map(CodeLocation::Function));
        Allocation { line: 0, site, caller, library, min_bytes, max_bytes, homes, replicate, reason, saving: None }
    }
}

prop_compose! {
    fn plan()(
        before in traffic(),
        expected in proptest::option::of(traffic()),
        variables in proptest::collection::vec(variable(), 0..3),
        allocations in proptest::collection::vec(allocation(), 0..3),
        nodes in proptest::collection::vec(proptest::option::of(0..4u16), 0..3),
        reason in text(),
    ) -> Plan {
        let group = |(index, node): (u32, &Option<u16>)| ThreadGroup {
            line: 0,
            threads: vec![2 * index + 1, 2 * index + 2],
            node: node.map(NodeId),
            reason: reason.clone(),
            saving: None,
        };
        let threads = (0..).zip(&nodes).map(group).collect();
        Plan { before: Some(before), expected, variables, allocations, threads }
    }
}

/// Lines are where the entries happen to be.
fn without_lines(mut plan: Plan) -> Plan {
    plan.variables.iter_mut().for_each(|entry| entry.line = 0);
    plan.allocations.iter_mut().for_each(|entry| entry.line = 0);
    plan.threads.iter_mut().for_each(|entry| entry.line = 0);
    plan
}

proptest! {
    #[test]
    fn what_is_written_is_read(plan in plan()) {
        let read = parse(&plan.to_toml());
        prop_assert_eq!(read.map(without_lines), Ok(plan.clone()), "{}", plan.to_toml());
    }
}
