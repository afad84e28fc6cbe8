//! Texts that people write, and may have got from others.

use gondwana_console::clean;
use gondwana_report::machine;
use gondwana_rset::{AllocationRule, MemoryPolicy, RSet, Registry, ThreadPolicy};
use gondwana_topology::{Bytes, Machine};

/// A machine file.
pub(crate) fn machine(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Machine::from_toml(text) {
        Ok(machine) => {
            let written = machine.to_toml();
            let again = Machine::from_toml(&written);
            assert_eq!(again.as_ref(), Ok(&machine), "{written}");
            let _ = RSet::global(&machine).memory_total(&machine);
            shown(&machine);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// What is shown of a machine.
fn shown(machine: &Machine) {
    for columns in [40, 100] {
        let text = clean::text(&machine::text(machine, columns));
        assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text:?}");
    }
}

/// Sets, policies, rules, and the file of named sets.
pub(crate) fn sets(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let machine = Machine::uniform(4, 4, Bytes(1 << 30));
    let mut names = Registry::default();
    if let Ok(registry) = Registry::from_toml(text) {
        let written = registry.to_toml();
        assert_eq!(Registry::from_toml(&written).as_ref(), Ok(&registry), "{written}");
        names = registry;
    }
    for line in text.lines() {
        if let Ok(set) = RSet::parse(line, &machine, &names) {
            assert!(RSet::global(&machine).contains(&set), "{line}: {set}");
            let written = set.to_string();
            assert_eq!(RSet::parse(&written, &machine, &names).as_ref(), Ok(&set), "{line}: {written}");
        }
        if let Ok(policy) = MemoryPolicy::parse(line, &machine, &names) {
            let written = policy.to_string();
            assert_eq!(MemoryPolicy::parse(&written, &machine, &names).as_ref(), Ok(&policy), "{written}");
        }
        let _ = ThreadPolicy::parse(line, &machine, &names);
        if let Err(error) = AllocationRule::parse(line, &machine, &names) {
            assert!(!error.picture().is_empty() && error.column() > 0);
        }
    }
}
