//! Reads the text of a plan.

use crate::error::line_of;
use crate::{Allocation, CodeLocation, Homes, Plan, PlanError, ThreadGroup, Traffic, Variable};
use gondwana_rset::{MemoryPolicy, Placement, PlacementPart, RSet, Registry};
use gondwana_topology::{Machine, NodeId};
use serde::Deserialize;
use std::collections::HashMap;
use toml::Spanned;

/// The version of the format.
pub(crate) const VERSION: u32 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanText {
    version: Spanned<u32>,
    before: Option<Traffic>,
    expected: Option<Spanned<Traffic>>,
    #[serde(default)]
    variable: Vec<VariableText>,
    #[serde(default)]
    allocation: Vec<AllocationText>,
    #[serde(default)]
    thread: Vec<ThreadText>,
}

/// Entries about memory, with what all of them say: flattened fields would lose their places in the text.
macro_rules! entries_about_memory {
    ($($name:ident { $($fields:tt)* })*) => {$(
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct $name {
            $($fields)*
            library: Option<String>,
            policy: Option<Spanned<String>>,
            parts: Option<Spanned<Vec<PartText>>>,
            #[serde(default)]
            replicate: bool,
            #[serde(default)]
            reason: String,
        }
    )*};
}

entries_about_memory! {
    VariableText {
        name: Spanned<String>,
    }
    AllocationText {
        site: Spanned<String>,
        caller: Option<Spanned<String>>,
        #[serde(default)]
        min_bytes: u64,
        max_bytes: Option<Spanned<u64>>,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PartText {
    pages: Spanned<u64>,
    node: Spanned<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThreadText {
    threads: Spanned<Vec<Spanned<u32>>>,
    node: Option<Spanned<u64>>,
    #[serde(default)]
    together: bool,
    #[serde(default)]
    reason: String,
}

impl Plan {
    /// Reads a plan for a machine; policies may name the sets of a registry.
    ///
    /// # Errors
    /// If the text is no plan, or asks for what the machine does not have.
    ///
    /// # Examples
    /// ```
    /// use gondwana_plan::Plan;
    /// use gondwana_rset::Registry;
    /// use gondwana_topology::{Bytes, Machine};
    ///
    /// let text = "version = 1\n[[variable]]\nname = \"matrix\"\npolicy = \"block\"\n";
    /// let plan = Plan::parse(text, &Machine::uniform(2, 4, Bytes(1 << 30)), &Registry::default())?;
    /// assert_eq!(plan.variables[0].name, "matrix");
    /// # Ok::<(), gondwana_plan::PlanError>(())
    /// ```
    pub fn parse(text: &str, machine: &Machine, registry: &Registry) -> Result<Self, PlanError> {
        let plan: PlanText = toml::from_str(text).map_err(|error| {
            let byte = error.span().map_or(0, |span| span.start);
            PlanError::at(text, byte, error.message().trim().replace('\n', " "))
        })?;
        if *plan.version.get_ref() != VERSION {
            let what = format!("version {} is not known: this is version {VERSION}", plan.version.get_ref());
            return Err(PlanError::at(text, plan.version.span().start, what));
        }
        if let Some(expected) = plan.expected.as_ref().filter(|_| plan.before.is_none()) {
            let what = "expected: there is nothing to compare it with without a table before";
            return Err(PlanError::at(text, expected.span().start, what));
        }
        let reader = Reader { text, machine, registry };
        let variables: Result<_, _> = plan.variable.into_iter().map(|entry| reader.variable(entry)).collect();
        let allocations: Result<_, _> =
            plan.allocation.into_iter().map(|entry| reader.allocation(entry)).collect();
        Ok(Self {
            before: plan.before,
            expected: plan.expected.map(Spanned::into_inner),
            variables: variables?,
            allocations: allocations?,
            threads: reader.threads(plan.thread)?,
        })
    }
}

/// What entries are read with.
struct Reader<'a> {
    text: &'a str,
    machine: &'a Machine,
    registry: &'a Registry,
}

impl Reader<'_> {
    fn wrong(&self, byte: usize, what: impl ToString) -> PlanError {
        PlanError::at(self.text, byte, what)
    }

    fn variable(&self, entry: VariableText) -> Result<Variable, PlanError> {
        let byte = entry.name.span().start;
        if entry.name.get_ref().is_empty() {
            return Err(self.wrong(byte, "name: a variable has a name"));
        }
        Ok(Variable {
            line: line_of(self.text, byte),
            homes: self.homes(byte, entry.policy, entry.parts, entry.replicate)?,
            name: entry.name.into_inner(),
            library: entry.library,
            replicate: entry.replicate,
            reason: entry.reason,
            saving: None,
        })
    }

    fn allocation(&self, entry: AllocationText) -> Result<Allocation, PlanError> {
        let byte = entry.site.span().start;
        let site = self.site("site", &entry.site)?;
        let caller = entry.caller.as_ref().map(|caller| self.site("caller", caller)).transpose()?;
        let max_bytes = entry.max_bytes.as_ref().map_or(u64::MAX, |most| *most.get_ref());
        if let Some(most) = entry.max_bytes.as_ref().filter(|most| *most.get_ref() < entry.min_bytes) {
            let what = format!("max_bytes: {max_bytes} is less than min_bytes, {}", entry.min_bytes);
            return Err(self.wrong(most.span().start, what));
        }
        Ok(Allocation {
            line: line_of(self.text, byte),
            site,
            caller,
            homes: self.homes(byte, entry.policy, entry.parts, entry.replicate)?,
            library: entry.library,
            min_bytes: entry.min_bytes,
            max_bytes,
            replicate: entry.replicate,
            reason: entry.reason,
            saving: None,
        })
    }

    /// A place in the program that a field names.
    fn site(&self, field: &str, text: &Spanned<String>) -> Result<CodeLocation, PlanError> {
        text.get_ref().parse().map_err(|error| self.wrong(text.span().start, format!("{field}: {error}")))
    }

    /// Where the memory of an entry goes that begins at a byte of the text.
    fn homes(
        &self,
        byte: usize,
        policy: Option<Spanned<String>>,
        parts: Option<Spanned<Vec<PartText>>>,
        replicate: bool,
    ) -> Result<Homes, PlanError> {
        match (policy, parts) {
            (Some(policy), None) => {
                let read = read_policy(policy.get_ref(), self.machine, self.registry);
                read.map(Homes::Policy)
                    .map_err(|what| self.wrong(policy.span().start, format!("policy: {what}")))
            }
            (None, Some(parts)) => self.parts(parts),
            (None, None) if replicate => Ok(Homes::default()),
            (None, None) => {
                Err(self.wrong(byte, "the entry does not say where: add policy, parts or replicate = true"))
            }
            (Some(_), Some(parts)) => {
                Err(self.wrong(parts.span().start, "parts: the entry has a policy already; leave one out"))
            }
        }
    }

    fn parts(&self, parts: Spanned<Vec<PartText>>) -> Result<Homes, PlanError> {
        if parts.get_ref().is_empty() {
            return Err(self.wrong(parts.span().start, "parts: there must be at least one"));
        }
        let parts = parts.into_inner().into_iter().map(|part| {
            if *part.pages.get_ref() == 0 {
                return Err(self.wrong(part.pages.span().start, "pages: a part has at least one page"));
            }
            Ok(PlacementPart { pages: part.pages.into_inner(), node: self.node(&part.node)? })
        });
        Ok(Homes::Parts(parts.collect::<Result<_, _>>()?))
    }

    fn node(&self, node: &Spanned<u64>) -> Result<NodeId, PlanError> {
        let found = self.machine.nodes.iter().find(|known| u64::from(known.id.0) == *node.get_ref());
        found.map(|known| known.id).ok_or_else(|| {
            let (asked, nodes) = (node.get_ref(), self.machine.nodes.len());
            let nodes =
                if nodes == 1 { "only node 0".to_owned() } else { format!("nodes 0 to {}", nodes - 1) };
            self.wrong(node.span().start, format!("node: there is no node {asked}, {nodes}"))
        })
    }

    fn threads(&self, entries: Vec<ThreadText>) -> Result<Vec<ThreadGroup>, PlanError> {
        let mut seen: HashMap<u32, usize> = HashMap::new();
        let groups = entries.into_iter().map(|entry| {
            let byte = entry.threads.span().start;
            if entry.threads.get_ref().is_empty() {
                return Err(self.wrong(byte, "threads: there must be at least one"));
            }
            for thread in entry.threads.get_ref() {
                let (number, at) = (*thread.get_ref(), thread.span().start);
                if let Some(line) = seen.insert(number, line_of(self.text, at)) {
                    let what = format!("threads: thread {number} is listed in line {line} already");
                    return Err(self.wrong(at, what));
                }
            }
            let node = entry.node.as_ref().map(|node| self.node(node)).transpose()?;
            match (&entry.node, entry.together) {
                (Some(node), true) => {
                    return Err(
                        self.wrong(node.span().start, "node: threads on one node are together anyway")
                    );
                }
                (None, false) => {
                    return Err(self.wrong(byte, "threads: the entry needs node or together = true"));
                }
                _ => {}
            }
            let threads: Vec<u32> = entry.threads.into_inner().into_iter().map(Spanned::into_inner).collect();
            if node.is_some_and(|node| node != NodeId(0)) && threads.contains(&0) {
                return Err(self.wrong(byte, "threads: thread 0 runs main, which is always on node 0"));
            }
            let line = line_of(self.text, byte);
            Ok(ThreadGroup { line, threads, node, reason: entry.reason, saving: None })
        });
        groups.collect()
    }
}

fn read_policy(text: &str, machine: &Machine, registry: &Registry) -> Result<MemoryPolicy, String> {
    let policy = MemoryPolicy::parse(text, machine, registry).map_err(|error| error.to_string())?;
    Placement::new(policy, &RSet::global(machine), machine).map_err(|error| error.to_string())?;
    Ok(policy)
}
