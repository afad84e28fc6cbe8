use super::*;
use crate::RSet;

fn set(processors: &str, memory: &str) -> RSet {
    RSet::new(processors.parse().unwrap(), memory.parse().unwrap())
}

fn part(parent: &str, rset: RSet) -> Entry {
    Entry { parent: Some(parent.to_owned()), ..Entry::new(rset) }
}

fn exclusive(entry: Entry) -> Entry {
    Entry { exclusive: true, ..entry }
}

/// Two partitions, one with two parts.
fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.add("web", exclusive(Entry::new(set("0-7", "0-1")))).unwrap();
    registry.add("batch", exclusive(Entry::new(set("8-15", "2-3")))).unwrap();
    registry.add("a_front", exclusive(part("web", set("0-3", "0")))).unwrap();
    registry.add("back", part("web", set("2-7", "0-1"))).unwrap();
    registry
}

#[test]
fn a_part_is_contained_in_its_parent() {
    let mut registry = registry();
    let error = registry.add("x", part("web", set("7-8", "2"))).unwrap_err();
    assert_eq!(error.to_string(), "'web' doesn't contain proc:8|mem:2, so 'x' can't be a part of it");
    let error = registry.add("x", part("nobody", set("7-8", "2"))).unwrap_err();
    assert_eq!(error.to_string(), "there is no set named 'nobody'");
}

#[test]
fn exclusive_parts_of_one_parent_do_not_overlap() {
    let mut registry = registry();
    let error = registry.add("x", exclusive(part("web", set("3-4", "0-1")))).unwrap_err();
    assert_eq!(error.to_string(), "'x' and 'a_front' are exclusive and would share proc:3|mem:0");
    // 'back' overlaps too, and doesn't mind.
    registry.add("x", exclusive(part("web", set("4-5", "1")))).unwrap();
    // Parts of another parent are no siblings.
    registry.add("y", exclusive(part("back", set("2-3", "0")))).unwrap();
    registry.add("z", Entry::new(set("0-15", "0-3"))).unwrap();
    let error = registry.add("all_of_it", exclusive(Entry::new(set("0-15", "0-3")))).unwrap_err();
    assert_eq!(error.to_string(), "'all_of_it' and 'batch' are exclusive and would share proc:8-15|mem:2-3");
}

#[test]
fn only_sets_without_parts_are_forgotten_unless_asked() {
    let mut registry = registry();
    registry.add("deep", part("back", set("2", ""))).unwrap();
    let error = registry.remove("web").unwrap_err();
    assert_eq!(error.to_string(), "the set 'web' has parts ('a_front'): remove them first");
    assert_eq!(registry.remove("web2").unwrap_err().to_string(), "there is no set named 'web2'");
    assert_eq!(registry.remove_all("web"), Ok(4));
    assert_eq!(registry.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["batch"]);
    assert_eq!(registry.remove("batch").unwrap().rset, set("8-15", "2-3"));
    assert!(registry.is_empty());
}

#[test]
fn names_are_checked() {
    let mut registry = registry();
    for (name, error) in [
        ("web", "there is a set named 'web' already"),
        ("", "'' can't be the name of a set: a name has a character at least"),
        ("a-b", "'a-b' can't be the name of a set: '-' is neither a letter nor a digit, '_' or '.'"),
        ("a\n", "'a\\n' can't be the name of a set: '\\n' is neither a letter nor a digit, '_' or '.'"),
        ("1a", "'1a' can't be the name of a set: it begins neither with a letter nor with '_'"),
        ("local", "'local' can't be the name of a set: it has a meaning of its own"),
    ] {
        assert_eq!(registry.add(name, Entry::new(set("0", "0"))).unwrap_err().to_string(), error);
    }
    assert!(registry.add(&"x".repeat(65), Entry::new(set("0", "0"))).is_err());
    registry.add(&"x".repeat(64), Entry::new(set("0", "0"))).unwrap();
    let error = registry.add("hollow", Entry::new(RSet::EMPTY)).unwrap_err();
    assert_eq!(error.to_string(), "the set 'hollow' would be empty");
}

#[test]
fn texts_hold_everything() {
    let mut registry = registry();
    let written = Some("web & \"quoted\"".to_owned());
    registry.add("w.x", Entry { written, ..part("a_front", set("1", "")) }).unwrap();
    let text = registry.to_toml();
    assert_eq!(Registry::from_toml(&text).unwrap(), registry, "{text}");
    assert_eq!(Registry::from_toml("").unwrap(), Registry::default());
    assert_eq!(Registry::from_toml(&Registry::default().to_toml()).unwrap(), Registry::default());
}

#[test]
fn texts_that_break_the_rules_are_refused_with_line_and_name() {
    for (text, error) in [
        (
            "[rset.a]\nprocessors = \"0\"\n[rset.b]\nprocessors = \"0-1\"\nparent = \"a\"",
            "line 3: rset.b: 'a' doesn't contain proc:1, so 'b' can't be a part of it",
        ),
        ("[rset.a]\nprocessors = \"0\"\nparent = \"b\"", "line 1: rset.a: there is no set named 'b'"),
        (
            "[rset.a]\nprocessors = \"0\"\nparent = \"b\"\n[rset.b]\nprocessors = \"0\"\nparent = \"a\"",
            "line 1: rset.a: the set 'a' is a part of itself",
        ),
        ("[rset.a]\nprocessors = \"0\"\nparent = \"a\"", "line 1: rset.a: the set 'a' is a part of itself"),
        ("[rset.a]\nprocessors = \"x\"", "line 2: rset.a.processors: a processor number is missing"),
        ("[rset.a]", "line 1: rset.a: the set 'a' would be empty"),
        (
            "[rset.\"a-b\"]\nprocessors = \"0\"",
            "line 1: rset.a-b: 'a-b' can't be the name of a set: '-' is neither a letter nor a digit, '_' or '.'",
        ),
    ] {
        assert_eq!(Registry::from_toml(text).unwrap_err().to_string(), error);
    }
}
