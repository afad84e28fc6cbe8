//! What is printed is read as the same again, and nothing that is read brings the reader down.

use crate::machines::{large, machines_with_part, parse, parts_of};
use gondwana_rset::{Entry, MemoryPolicy, RSet, Registry, ThreadPolicy};
use gondwana_topology::Machine;
use proptest::prelude::*;

/// An expression, as a tree.
#[derive(Clone, Debug)]
enum Tree {
    Set(Box<RSet>),
    Union(Box<Tree>, Box<Tree>),
    Intersection(Box<Tree>, Box<Tree>),
    Difference(Box<Tree>, Box<Tree>),
}

impl Tree {
    fn value(&self) -> RSet {
        match self {
            Self::Set(set) => **set,
            Self::Union(a, b) => a.value().union(&b.value()),
            Self::Intersection(a, b) => a.value().intersection(&b.value()),
            Self::Difference(a, b) => a.value().difference(&b.value()),
        }
    }

    /// The text, with no more parentheses than the rules of precedence ask for.
    fn text(&self) -> String {
        match self {
            // The text of a set may be a union itself.
            Self::Set(set) if set.to_string().contains('|') => format!("({set})"),
            Self::Set(set) => set.to_string(),
            Self::Union(a, b) => format!("{} | {}", a.text(), b.bracketed(true)),
            Self::Difference(a, b) => format!("{}-{}", a.text(), b.bracketed(true)),
            Self::Intersection(a, b) => format!("{}&{}", a.bracketed(true), b.bracketed(false)),
        }
    }

    /// The text as the right side of `|` and `-` or the left one of `&` (where `&` needs no parentheses), or as the
    /// right side of `&`.
    fn bracketed(&self, intersection_is_free: bool) -> String {
        match self {
            Self::Set(_) => self.text(),
            Self::Intersection(..) if intersection_is_free => self.text(),
            _ => format!("( {} )", self.text()),
        }
    }
}

fn trees() -> impl Strategy<Value = Tree> {
    let pair = |inner: BoxedStrategy<Tree>| (inner.clone().prop_map(Box::new), inner.prop_map(Box::new));
    let small = Machine::uniform(3, 3, gondwana_topology::Bytes(1 << 20));
    parts_of(&small).prop_map(|set| Tree::Set(Box::new(set))).prop_recursive(4, 24, 2, move |inner| {
        prop_oneof![
            pair(inner.clone().boxed()).prop_map(|(a, b)| Tree::Union(a, b)),
            pair(inner.clone().boxed()).prop_map(|(a, b)| Tree::Intersection(a, b)),
            pair(inner.boxed()).prop_map(|(a, b)| Tree::Difference(a, b)),
        ]
    })
}

proptest! {
    #[test]
    fn sets_come_back_from_their_text((machine, set) in machines_with_part()) {
        prop_assert_eq!(parse(&set.to_string(), &machine), set);
    }

    #[test]
    fn expressions_mean_what_their_tree_means(tree in trees()) {
        prop_assert_eq!(parse(&tree.text(), &large()), tree.value(), "{}", tree.text());
    }

    #[test]
    fn sets_come_back_from_data_formats((_, set) in machines_with_part()) {
        let json = serde_json::to_string(&set).unwrap();
        prop_assert_eq!(serde_json::from_str::<RSet>(&json).unwrap(), set);
        let binary = postcard::to_allocvec(&set).unwrap();
        prop_assert_eq!(postcard::from_bytes::<RSet>(&binary).unwrap(), set);
    }

    #[test]
    fn policies_come_back_from_their_text((machine, set) in machines_with_part()) {
        let names = Registry::default();
        if !set.memory().is_empty() {
            let policy = MemoryPolicy::Explicit(*set.memory());
            prop_assert_eq!(MemoryPolicy::parse(&policy.to_string(), &machine, &names).unwrap(), policy);
        }
        if !set.processors().is_empty() {
            let policy = ThreadPolicy::Explicit(vec![set, RSet::global(&machine)]);
            prop_assert_eq!(ThreadPolicy::parse(&policy.to_string(), &machine, &names).unwrap(), policy);
        }
    }

    /// Pieces of the language in any order are either a set or an error that points into the text.
    #[test]
    fn no_text_is_too_strange(pieces in prop::collection::vec(
        prop_oneof![
            Just("node:"), Just("cpu:"), Just("proc:"), Just("mem:"), Just("0"), Just("3"), Just("4095"), Just("-"),
            Just(","), Just("|"), Just("&"), Just("("), Just(")"), Just("all"), Just("none"), Just("web"), Just(" "),
            Just("\t"), Just("ß"), Just("€"), Just(":"), Just("99999999999999999999999"), Just(";"), Just("striped:"),
        ], 0..12)) {
        let text = pieces.concat();
        let mut names = Registry::default();
        names.add("web", Entry::new(RSet::global(&large()))).unwrap();
        let errors = [
            RSet::parse(&text, &large(), &names).err(),
            MemoryPolicy::parse(&text, &large(), &names).err(),
            ThreadPolicy::parse(&text, &large(), &names).err(),
        ];
        for error in errors.into_iter().flatten() {
            prop_assert!((1..=text.chars().count() + 1).contains(&error.column()), "{error}");
            prop_assert_eq!(error.picture().lines().count(), 2);
        }
    }
}
