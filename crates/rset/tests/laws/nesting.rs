//! Whatever is done to a registry, what it promises about its sets holds.

use crate::machines::parts_of;
use gondwana_rset::{Entry, RSet, Registry};
use gondwana_topology::{Bytes, Machine};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Change {
    Add(usize, Box<Entry>),
    Remove(usize),
    RemoveAll(usize),
}

const NAMES: [&str; 6] = ["a", "b", "c.d", "_e", "ö", "f1"];

fn changes() -> impl Strategy<Value = Change> {
    let machine = Machine::uniform(3, 3, Bytes(1 << 20));
    let parent = prop::option::of(0..NAMES.len());
    let entry = (parts_of(&machine), parent, any::<bool>()).prop_map(|(rset, parent, exclusive)| Entry {
        parent: parent.map(|index| NAMES[index].to_owned()),
        exclusive,
        written: Some(rset.to_string()),
        ..Entry::new(rset)
    });
    prop_oneof![
        6 => (0..NAMES.len(), entry).prop_map(|(name, entry)| Change::Add(name, Box::new(entry))),
        1 => (0..NAMES.len()).prop_map(Change::Remove),
        1 => (0..NAMES.len()).prop_map(Change::RemoveAll),
    ]
}

fn check(registry: &Registry) -> Result<(), TestCaseError> {
    for (name, entry) in registry.iter() {
        prop_assert!(!entry.rset.is_empty());
        if let Some(parent) = &entry.parent {
            prop_assert!(registry.get(parent).is_some_and(|outer| outer.rset.contains(&entry.rset)));
        }
        for (other, sibling) in registry.parts(entry.parent.as_deref()) {
            let clash = entry.exclusive && sibling.exclusive && sibling.rset.overlaps(&entry.rset);
            prop_assert!(name == other || !clash, "{} {}", name, other);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn rules_hold_after_any_change(changes in prop::collection::vec(changes(), 1..40)) {
        let mut registry = Registry::default();
        for change in changes {
            let before = registry.clone();
            let done = match &change {
                Change::Add(name, entry) => registry.add(NAMES[*name], Entry::clone(entry)).is_ok(),
                Change::Remove(name) => registry.remove(NAMES[*name]).is_ok(),
                Change::RemoveAll(name) => registry.remove_all(NAMES[*name]).is_ok(),
            };
            prop_assert_eq!(registry == before, !done, "{:?}", change);
            check(&registry)?;
        }
        prop_assert_eq!(Registry::from_toml(&registry.to_toml()).unwrap(), registry);
    }

    #[test]
    fn nothing_else_is_refused(inner in parts_of(&Machine::uniform(3, 3, Bytes(1 << 20)))) {
        let mut registry = Registry::default();
        registry.add("a", Entry::new(RSet::global(&Machine::uniform(3, 3, Bytes(1 << 20))))).unwrap();
        let part = Entry { parent: Some("a".to_owned()), exclusive: true, ..Entry::new(inner) };
        prop_assert_eq!(registry.add("b", part.clone()).is_ok(), !inner.is_empty());
        let again = Entry { exclusive: false, ..part };
        prop_assert_eq!(registry.add("f1", again).is_ok(), !inner.is_empty());
    }
}
