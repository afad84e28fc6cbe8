use crate::{RSet, Registry, TextError};
use gondwana_topology::{Machine, NodeSet, ProcessorSet};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU64;

/// Which of the nodes of a resource set the pages of a region are on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryPolicy {
    /// Wherever the system puts them.
    #[default]
    Float,
    /// On the node of the thread that touches the page first, or the nearest one in the set.
    Local,
    /// On another node than that of the thread that touches the page first: to find out what distance costs.
    Remote,
    /// So many pages on one node, as many on the next and so on, again and again.
    Striped(NonZeroU64),
    /// Contiguous parts of equal size, one for each node.
    Block,
    /// On these nodes; of several, the one nearest to the thread that touches the page first.
    Explicit(NodeSet),
}

/// What a person writes: `striped:4`, or the text of a resource set.
impl fmt::Display for MemoryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Float => f.write_str("float"),
            Self::Local => f.write_str("local"),
            Self::Remote => f.write_str("remote"),
            Self::Striped(stride) => write!(f, "striped:{stride}"),
            Self::Block => f.write_str("block"),
            Self::Explicit(nodes) => RSet::new(ProcessorSet::EMPTY, *nodes).fmt(f),
        }
    }
}

impl MemoryPolicy {
    /// Reads `float`, `local`, `remote`, `striped` (a page at a time), `striped:PAGES`, `block` or a resource set with
    /// memory.
    ///
    /// # Examples
    /// ```
    /// use gondwana_rset::{MemoryPolicy, Registry};
    /// use gondwana_topology::{Bytes, Machine};
    ///
    /// let machine = Machine::uniform(2, 4, Bytes(1 << 30));
    /// let policy = MemoryPolicy::parse("striped:4", &machine, &Registry::default())?;
    /// assert!(matches!(policy, MemoryPolicy::Striped(stride) if stride.get() == 4));
    /// # Ok::<(), gondwana_rset::TextError>(())
    /// ```
    pub fn parse(text: &str, machine: &Machine, registry: &Registry) -> Result<Self, TextError> {
        let word = text.trim();
        match word {
            "float" => return Ok(Self::Float),
            "local" => return Ok(Self::Local),
            "remote" => return Ok(Self::Remote),
            "striped" => return Ok(Self::Striped(NonZeroU64::MIN)),
            "block" => return Ok(Self::Block),
            _ => {}
        }
        if let Some(stride) = word.strip_prefix("striped:") {
            let at = text.len() - text.trim_start().len() + word.len() - stride.len();
            let digits = stride.bytes().all(|byte| byte.is_ascii_digit());
            return match stride.parse() {
                Ok(stride) if digits => Ok(Self::Striped(stride)),
                _ => Err(TextError::new(text, at, stride.len(), "a stride is a number of pages from 1 on")),
            };
        }
        let rset = RSet::parse(text, machine, registry)?;
        if rset.memory().is_empty() {
            return Err(TextError::new(text, 0, text.len(), "this set has no memory"));
        }
        Ok(Self::Explicit(*rset.memory()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_topology::Bytes;

    fn parse(text: &str) -> Result<MemoryPolicy, TextError> {
        MemoryPolicy::parse(text, &Machine::uniform(4, 2, Bytes(1 << 30)), &Registry::default())
    }

    #[test]
    fn policies_come_back_as_they_were_written() {
        for text in ["float", "local", "remote", "striped:1", "striped:512", "block", "mem:0-1,3"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        assert_eq!(parse("striped").unwrap().to_string(), "striped:1");
        assert_eq!(parse("node:1|cpu:0").unwrap().to_string(), "mem:0-1");
        assert_eq!(parse(" block ").unwrap(), MemoryPolicy::Block);
    }

    #[test]
    fn what_is_no_policy_is_refused() {
        for (text, column, message) in [
            ("striped:0", 9, "a stride is a number of pages from 1 on"),
            (" striped:x", 10, "a stride is a number of pages from 1 on"),
            ("striped:", 9, "a stride is a number of pages from 1 on"),
            ("striped:+1", 9, "a stride is a number of pages from 1 on"),
            ("striped:99999999999999999999", 9, "a stride is a number of pages from 1 on"),
            ("locale", 1, "there is no set named 'locale'"),
            ("proc:0", 1, "this set has no memory"),
            ("mem:4", 5, "the machine has no memory on node 4 (it has 0-3)"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!((error.column(), error.message()), (column, message), "{text}");
        }
    }
}
