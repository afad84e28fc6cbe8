//! Placement of some of a program's allocations.

use crate::{MemoryPolicy, RSet, Registry, Selector, TextError};
use gondwana_topology::Machine;
use std::fmt;

/// Some allocations of a program, and where their memory is to be.
///
/// Written as `WHICH=POLICY` or `WHICH=POLICY@SET`: `>=1M=striped:4`, `read_table=node:1`, `<64K=local@node:0-1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocationRule {
    /// Which allocations are meant.
    pub selector: Selector,
    /// Where their memory is to be.
    pub memory: MemoryPolicy,
    /// Inside which set; whatever the program has if there is none.
    pub rset: Option<RSet>,
}

impl AllocationRule {
    /// Reads a rule as a person writes it. Errors point at the character.
    pub fn parse(text: &str, machine: &Machine, registry: &Registry) -> Result<Self, TextError> {
        let (selector, length) = Selector::parse_prefix(text)?;
        if length == text.len() {
            return Err(TextError::new(
                text,
                length,
                0,
                "= and a policy are missing, such as =striped:4 or =node:1",
            ));
        }
        let policy = length + 1;
        let at = text[policy..].find('@').map_or(text.len(), |at| policy + at);
        let memory = MemoryPolicy::parse(&text[policy..at], machine, registry)
            .map_err(|error| error.within(text, policy))?;
        let rset = match text.get(at + 1..) {
            Some(set) => {
                Some(RSet::parse(set, machine, registry).map_err(|error| error.within(text, at + 1))?)
            }
            None => None,
        };
        Ok(Self { selector, memory, rset })
    }
}

/// What [`AllocationRule::parse`] reads, also without a registry.
impl fmt::Display for AllocationRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.selector, self.memory)?;
        self.rset.map_or(Ok(()), |rset| write!(f, "@{rset}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_topology::Bytes;

    fn parse(text: &str) -> Result<AllocationRule, TextError> {
        AllocationRule::parse(text, &Machine::uniform(4, 2, Bytes(1 << 30)), &Registry::default())
    }

    #[test]
    fn rules_come_back_as_they_were_written() {
        for text in [">=1M=striped:4", "f+0x1a=mem:1", "all=local@mem:0-1", "lib.so!f=block@proc:0-3|mem:2"] {
            let rule = parse(text).unwrap();
            assert_eq!(parse(&rule.to_string()).unwrap(), rule, "{text}: {rule}");
        }
        assert_eq!(parse(">=1M=striped:4@node:0").unwrap().rset.unwrap().memory().to_string(), "0");
    }

    #[test]
    fn mistakes_are_pointed_at_in_the_whole_rule() {
        for (text, column, message) in [
            (">=1M", 5, "= and a policy are missing, such as =striped:4 or =node:1"),
            (">=1M=striped:0", 14, "a stride is a number of pages from 1 on"),
            (">=1M=", 6, "a set is missing, such as node:0, cpu:0-3, a name or all"),
            ("f=local@node:9", 14, "the machine has no node 9 (it has 0-3)"),
            ("f=local@", 9, "a set is missing, such as node:0, cpu:0-3, a name or all"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!((error.column(), error.message()), (column, message), "{text}");
        }
    }
}
