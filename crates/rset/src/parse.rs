//! Resource sets as people write them.
//!
//! ```text
//! set    = term  { ("|" | "-") term }      union, difference: from left to right
//! term   = factor { "&" factor }           intersection, before the others
//! factor = "(" set ")" | kind ":" list | "all" | "none" | name
//! kind   = "node" | "cpu" | "proc" | "mem"
//! ```

use crate::entry::is_of_name;
use crate::{RSet, Registry, TextError};
use gondwana_topology::{Id, IdSet, Machine, NodeSet, ProcessorSet};

/// How deep parentheses may be: far deeper than anybody reads, and far from the end of the stack.
const DEEPEST: usize = 64;

impl RSet {
    /// Reads a set as a person writes it.
    ///
    /// - `node:0-1`: the processors and the memory of nodes
    /// - `cpu:0-7`: processors, and the memory nearest to them
    /// - `proc:0-7`, `mem:0`: processors or memory alone
    /// - `all`, `none`, and the names of a registry
    /// - `|` union, `&` intersection (binds tighter), `-` difference, `( )`
    ///
    /// Errors point at the character. What isn't in the machine is an error, also under a name.
    ///
    /// # Examples
    /// ```
    /// use gondwana_rset::{RSet, Registry};
    /// use gondwana_topology::{Bytes, Machine};
    ///
    /// let machine = Machine::uniform(2, 4, Bytes(1 << 30));
    /// let set = RSet::parse("node:0 | cpu:4", &machine, &Registry::default())?;
    /// assert_eq!(set.processors().to_string(), "0-4");
    /// assert_eq!(set.memory().to_string(), "0-1");
    /// # Ok::<(), gondwana_rset::TextError>(())
    /// ```
    pub fn parse(text: &str, machine: &Machine, registry: &Registry) -> Result<Self, TextError> {
        let mut parser = Parser { text, at: 0, depth: 0, machine, registry };
        let set = parser.set()?;
        match parser.next() {
            None => Ok(set),
            Some(')') => Err(parser.error(1, "this parenthesis closes none")),
            Some(strange) => Err(parser.error(
                strange.len_utf8(),
                "one of | (union), & (intersection) or - (difference) is missing",
            )),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    machine: &'a Machine,
    registry: &'a Registry,
}

impl<'a> Parser<'a> {
    fn set(&mut self) -> Result<RSet, TextError> {
        let mut set = self.term()?;
        loop {
            if self.takes('|') {
                set = set.union(&self.term()?);
            } else if self.takes('-') {
                set = set.difference(&self.term()?);
            } else {
                return Ok(set);
            }
        }
    }

    fn term(&mut self) -> Result<RSet, TextError> {
        let mut set = self.factor()?;
        while self.takes('&') {
            set = set.intersection(&self.factor()?);
        }
        Ok(set)
    }

    fn factor(&mut self) -> Result<RSet, TextError> {
        let opening = self.next().map(|_| self.at);
        if let Some(opening) = opening
            && self.takes('(')
        {
            return self.parenthesis(opening);
        }
        let word = self.word();
        if word.is_empty() {
            let length = self.next().map_or(0, char::len_utf8);
            return Err(self.error(length, "a set is missing, such as node:0, cpu:0-3, a name or all"));
        }
        self.at += word.len();
        if self.text[self.at..].starts_with(':') {
            self.at += 1;
            return self.list(word);
        }
        match word {
            "all" => Ok(RSet::global(self.machine)),
            "none" => Ok(RSet::EMPTY),
            name => self.named(name),
        }
    }

    fn parenthesis(&mut self, opening: usize) -> Result<RSet, TextError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(TextError::new(self.text, opening, 1, "parentheses are too deep"));
        }
        let set = self.set()?;
        self.depth -= 1;
        if self.takes(')') {
            return Ok(set);
        }
        match self.next() {
            None => Err(TextError::new(self.text, opening, 1, "this parenthesis is never closed")),
            Some(strange) => Err(self.error(strange.len_utf8(), "one of |, &, - or ) is missing")),
        }
    }

    /// What follows `kind:`.
    fn list(&mut self, kind: &'a str) -> Result<RSet, TextError> {
        let machine = self.machine;
        match kind {
            "node" => {
                let nodes = self.members(&machine.node_ids(), "the machine has no node")?;
                Ok(RSet::of_nodes(machine, &nodes))
            }
            "mem" => {
                let nodes = self.members(&machine.memory_nodes(), "the machine has no memory on node")?;
                Ok(RSet::new(ProcessorSet::EMPTY, nodes))
            }
            "cpu" => Ok(RSet::of_processors(machine, &self.processors()?)),
            "proc" => Ok(RSet::new(self.processors()?, NodeSet::EMPTY)),
            _ => {
                let at = self.at - 1 - kind.len();
                let message = format!("'{kind}:' is none of node:, cpu:, proc: and mem:");
                Err(TextError::new(self.text, at, kind.len() + 1, message))
            }
        }
    }

    fn processors(&mut self) -> Result<ProcessorSet, TextError> {
        self.members(&self.machine.processors(), "the machine has no processor")
    }

    /// A list of what is all in `existing`.
    fn members<I: Id, const W: usize>(
        &mut self,
        existing: &IdSet<I, W>,
        none: &str,
    ) -> Result<IdSet<I, W>, TextError> {
        let start = self.at;
        let (members, length) = IdSet::<I, W>::parse_prefix(&self.text[start..])
            .map_err(|error| TextError::new(self.text, start + error.at, error.length, error.message))?;
        self.at += length;
        let missing = members.difference(existing);
        if missing.is_empty() {
            return Ok(members);
        }
        Err(TextError::new(self.text, start, length, format!("{none} {missing} (it has {existing})")))
    }

    fn named(&self, name: &'a str) -> Result<RSet, TextError> {
        let error = |message| Err(TextError::new(self.text, self.at - name.len(), name.len(), message));
        let Some(entry) = self.registry.get(name) else {
            return error(format!("there is no set named '{name}'"));
        };
        let missing = entry.rset.difference(&RSet::global(self.machine));
        if missing.is_empty() {
            Ok(entry.rset)
        } else {
            error(format!("'{name}' has {missing}, which the machine lacks"))
        }
    }

    /// The next character that is no space, without taking it.
    fn next(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn takes(&mut self, wanted: char) -> bool {
        let there = self.next() == Some(wanted);
        if there {
            self.at += wanted.len_utf8();
        }
        there
    }

    /// The letters, digits and the like that come next.
    fn word(&self) -> &'a str {
        let rest = &self.text[self.at..];
        &rest[..rest.find(|c| !is_of_name(c)).unwrap_or(rest.len())]
    }

    fn error(&self, length: usize, message: &str) -> TextError {
        TextError::new(self.text, self.at, length, message)
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
