//! Plans as people might write them, made by the grammar of the format: all of them are read, written so that the same is read
//! again, and can be applied. With one mistake in them they are refused at a line that they have.

use gondwana_plan::{Homes, Plan, PlanError};
use gondwana_rset::{Placement, RSet, Registry};
use gondwana_topology::{Bytes, Machine, NodeId};
use proptest::prelude::*;
use proptest::sample::{Index, select};

const NODES: u16 = 4;

fn machine() -> Machine {
    Machine::uniform(NODES, 2, Bytes(1 << 30))
}

/// Sets of the user's.
fn names() -> Registry {
    let text = "[rset.left]\nprocessors = \"0-3\"\nmemory = \"0-1\"\n";
    Registry::from_toml(text).expect("the registry is right")
}

fn parse(text: &str) -> Result<Plan, PlanError> {
    Plan::parse(text, &machine(), &names())
}

/// A text in one of the ways that TOML has for one.
fn quoted(text: &str, way: u8) -> String {
    let is_plain = !text.chars().any(|letter| letter.is_control() && letter != '\t');
    match way {
        1 if is_plain && !text.contains('\'') => format!("'{text}'"),
        2 if is_plain && !text.contains('\'') => format!("'''\n{text}'''"),
        _ => {
            let mut escaped = String::new();
            for letter in text.chars() {
                match letter {
                    '"' | '\\' => escaped.extend(['\\', letter]),
                    '\n' => escaped.push_str("\\n"),
                    letter if letter.is_control() || way == 3 => {
                        escaped.push_str(&format!("\\U{:08x}", u32::from(letter)));
                    }
                    letter => escaped.push(letter),
                }
            }
            if way == 4 { format!("\"\"\"{escaped}\"\"\"") } else { format!("\"{escaped}\"") }
        }
    }
}

fn text(content: &'static str) -> impl Strategy<Value = String> {
    (content, 0..5_u8).prop_map(|(text, way)| quoted(&text, way))
}

/// A number in one of the ways that TOML has for one.
fn number(range: std::ops::RangeInclusive<i64>) -> impl Strategy<Value = String> {
    (range, 0..5_u8).prop_map(|(number, way)| match way {
        0 => format!("{number:#x}"),
        1 => format!("{number:#o}"),
        2 => format!("{number:#b}"),
        3 => format!("+{number}"),
        _ => number.to_string(),
    })
}

fn field(name: &'static str, value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (value, select(&["=", " = ", "=\t"][..]))
        .prop_map(move |(value, equals)| format!("{name}{equals}{value}"))
}

fn maybe(field: impl Strategy<Value = String>) -> impl Strategy<Value = Vec<String>> {
    proptest::option::of(field).prop_map(|field| field.into_iter().collect())
}

fn policy() -> impl Strategy<Value = String> {
    const WORDS: &[&str] = &[
        "float",
        "local",
        "remote",
        "block",
        "striped",
        "striped:3",
        "striped:18446744073709551615",
        " block ",
        "node:2",
        "mem:0-1,3",
        "node:0-1|node:3",
        "left",
        "all",
    ];
    (select(WORDS).prop_filter("it is known", |word| parse_policy(word)), 0..5_u8)
        .prop_map(|(word, way)| quoted(word, way))
}

/// Which words there are is the business of another crate.
fn parse_policy(word: &str) -> bool {
    parse(&format!("version = 1\n[[variable]]\nname = \"a\"\npolicy = \"{word}\"\n")).is_ok()
}

fn parts() -> impl Strategy<Value = String> {
    let part = (number(1..=i64::MAX), 0..NODES)
        .prop_map(|(pages, node)| format!("{{ pages = {pages}, node = {node} }}"));
    proptest::collection::vec(part, 1..5).prop_map(|parts| format!("[\n{},\n]", parts.join(",\n")))
}

/// Where memory goes, with what may be said besides.
fn homes() -> impl Strategy<Value = Vec<String>> {
    let replicate = || {
        proptest::option::of(any::<bool>())
            .prop_map(|on| on.map(|on| format!("replicate = {on}")).into_iter().collect::<Vec<_>>())
    };
    let place = prop_oneof![field("policy", policy()), field("parts", parts())];
    prop_oneof![
        4 => (place, replicate()).prop_map(|(place, mut all)| { all.push(place); all }),
        1 => Just(vec!["replicate=true".to_owned()]),
    ]
}

fn site() -> impl Strategy<Value = String> {
    let site = prop_oneof![
        "[a-zA-Z_~][a-z:<>(), +é]{0,9}[a-z)>]",
        ("[a-z:]{1,5}", 0..=u64::MAX).prop_map(|(name, offset)| format!("{name}+{offset:#x}")),
        ("[a-z/.][a-z/. ]{0,5}[a-z]", 1..=u32::MAX).prop_map(|(file, line)| format!("{file}:{line}")),
    ];
    (site, 0..5_u8).prop_map(|(site, way)| quoted(&site, way))
}

fn entry(
    table: &'static str,
    parts: impl Strategy<Value = Vec<Vec<String>>>,
) -> impl Strategy<Value = String> {
    let comment = select(&["", "# about this\n", "\n\t# \"quoted\" [[not a table]]\n"][..]);
    (comment, parts.prop_map(|parts| parts.concat()).prop_shuffle())
        .prop_map(move |(comment, fields)| format!("{comment}[[{table}]]\n{}\n", fields.join(" # why\n")))
}

const ANY: &str = "[a-zé'\"\\\\\n\t\u{1}\u{1b}\u{7f}\u{85}#=\\[\\]]{0,12}";

fn variable() -> impl Strategy<Value = String> {
    let name = field("name", text("[a-z\u{1b}\"'][a-z: <>é\u{9b}]{0,9}"));
    let fields = (name, maybe(field("library", text(ANY))), maybe(field("reason", text(ANY))), homes());
    entry(
        "variable",
        fields.prop_map(|(name, library, reason, homes)| vec![vec![name], library, reason, homes]),
    )
}

fn allocation() -> impl Strategy<Value = String> {
    let sizes = prop_oneof![
        Just(vec![]),
        field("min_bytes", number(0..=i64::MAX)).prop_map(|least| vec![least]),
        field("max_bytes", number(0..=i64::MAX)).prop_map(|most| vec![most]),
        (field("min_bytes", number(0..=1 << 20)), field("max_bytes", number(1 << 20..=i64::MAX)))
            .prop_map(|(least, most)| vec![least, most]),
    ];
    let fields = (
        field("site", site()),
        maybe(field("caller", site())),
        maybe(field("library", text(ANY))),
        sizes,
        homes(),
    );
    entry(
        "allocation",
        fields.prop_map(|(site, caller, library, sizes, homes)| {
            vec![vec![site], caller, library, sizes, homes]
        }),
    )
}

/// Groups of threads that are all different.
fn groups() -> impl Strategy<Value = Vec<String>> {
    let lengths = proptest::collection::vec((1..4_usize, proptest::option::of(0..NODES)), 0..4);
    let numbers = proptest::collection::hash_set(1..=u32::MAX, 12).prop_map(Vec::from_iter);
    (lengths, numbers, any::<bool>()).prop_map(|(groups, numbers, together)| {
        let mut numbers = numbers.into_iter();
        let group = |(length, node): (usize, Option<u16>)| {
            let threads: Vec<String> = numbers.by_ref().take(length).map(|it| it.to_string()).collect();
            let place = match node {
                Some(node) if together => format!("node = {node}"),
                Some(node) => format!("node = {node}\ntogether = false"),
                None => "together = true".to_owned(),
            };
            format!("[[thread]]\nthreads = [ {} ]\n{place}\n", threads.join(" ,\n"))
        };
        groups.into_iter().map(group).collect()
    })
}

fn traffic(name: &'static str) -> impl Strategy<Value = String> {
    (number(0..=i64::MAX), number(0..=i64::MAX), any::<bool>()).prop_map(move |(requests, bytes, inline)| {
        if inline {
            format!("{name} = {{ bytes = {bytes}, requests = {requests} }}\n")
        } else {
            format!("{name}.requests = {requests}\n{name}.bytes = {bytes}\n")
        }
    })
}

/// The text of a plan: its entries in any order.
fn plan() -> impl Strategy<Value = String> {
    let before = prop_oneof![
        Just(String::new()),
        traffic("before"),
        (traffic("before"), traffic("expected")).prop_map(|(before, expected)| expected + &before),
    ];
    let entry = prop_oneof![variable(), allocation()];
    let entries = (proptest::collection::vec(entry, 0..6), groups())
        .prop_map(|(entries, groups)| [entries, groups].concat())
        .prop_shuffle();
    (before, entries).prop_map(|(before, entries)| format!("version = 1\n{before}{}", entries.concat()))
}

/// Lines are where the entries happen to be.
fn without_lines(mut plan: Plan) -> Plan {
    plan.variables.iter_mut().for_each(|entry| entry.line = 0);
    plan.allocations.iter_mut().for_each(|entry| entry.line = 0);
    plan.threads.iter_mut().for_each(|entry| entry.line = 0);
    plan
}

fn apply(homes: &Homes, pages: u64) {
    let (machine, all) = (machine(), RSet::global(&machine()));
    let placement = match homes {
        Homes::Policy(policy) => Placement::new(*policy, &all, &machine),
        Homes::Parts(parts) => Placement::of_parts(parts, &all, &machine),
    };
    let placement = placement.expect("what is read can be applied");
    let mut next = 0;
    for run in placement.runs(pages, NodeId(1)).take(100) {
        assert!(run.first == next && run.count > 0, "{homes:?} of {pages} pages: {run:?}");
        assert!(run.node.is_none_or(|node| node.0 < NODES), "{run:?}");
        assert_eq!(placement.node_of(run.first + run.count - 1, pages, NodeId(1)), run.node);
        next += run.count;
    }
}

proptest! {
    #[test]
    fn all_plans_are_read_written_and_applied(text in plan(), pages in prop_oneof![0..5_u64, any::<u64>()]) {
        let read = parse(&text);
        prop_assert!(read.is_ok(), "{}\n{text}", read.unwrap_err());
        let plan = read.unwrap();
        let written = plan.to_toml();
        let again = parse(&written);
        prop_assert_eq!(again.map(without_lines), Ok(without_lines(plan.clone())), "{}\n{}", text, written);
        let lines: Vec<&str> = text.lines().collect();
        prop_assert!(plan.variables.iter().all(|it| lines[it.line - 1].contains("name")));
        prop_assert!(plan.allocations.iter().all(|it| lines[it.line - 1].contains("site")));
        for homes in plan.variables.iter().map(|it| &it.homes).chain(plan.allocations.iter().map(|it| &it.homes)) {
            apply(homes, pages);
        }
        prop_assert!(plan.clone().keeping(&plan).variables.len() == plan.variables.len());
    }

    #[test]
    fn a_mistake_is_named_at_a_line_of_the_text(
        text in plan(),
        at: Index,
        length in 0..4_usize,
        instead in select(&["", "0", "-1", "99999999999999999999", "\"", "[", "]]", "=", "\n", "\u{1b}", "node = 9\n", "é"][..]),
    ) {
        let mut letters: Vec<char> = text.chars().collect();
        let at = at.index(letters.len());
        letters.splice(at..(at + length).min(letters.len()), instead.chars());
        let changed: String = letters.into_iter().collect();
        match parse(&changed) {
            Ok(plan) => prop_assert!(parse(&plan.to_toml()).is_ok(), "{changed}\n{}", plan.to_toml()),
            Err(error) => {
                prop_assert!((1..=changed.split('\n').count()).contains(&error.line), "{error}\n{changed}");
                prop_assert!(!error.what.is_empty(), "{error}");
            }
        }
    }
}
