//! The text of a plan.

use crate::error::line_of;
use crate::{Allocation, Plan, PlanError, Variable};
use gondwana_rset::{MemoryPolicy, Placement, RSet, Registry};
use gondwana_topology::Machine;
use serde::{Deserialize, Serialize};
use toml::Spanned;

/// The version of the format.
const VERSION: u32 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanText {
    version: Spanned<u32>,
    #[serde(default)]
    variable: Vec<VariableText>,
    #[serde(default)]
    allocation: Vec<AllocationText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VariableText {
    name: Spanned<String>,
    library: Option<String>,
    policy: Spanned<String>,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AllocationText {
    site: Spanned<String>,
    library: Option<String>,
    #[serde(default)]
    min_bytes: u64,
    max_bytes: Option<Spanned<u64>>,
    policy: Spanned<String>,
    #[serde(default)]
    reason: String,
}

/// What is written, without places in a text.
#[derive(Serialize)]
struct Written<'a> {
    version: u32,
    variable: Vec<WrittenEntry<'a>>,
    allocation: Vec<WrittenEntry<'a>>,
}

#[derive(Default, Serialize)]
struct WrittenEntry<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    library: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_bytes: Option<u64>,
    policy: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
}

impl Plan {
    /// Reads a plan for a machine; policies may name the sets of a registry.
    ///
    /// # Errors
    /// If the text is no plan, or has a policy that the machine cannot follow.
    pub fn parse(text: &str, machine: &Machine, registry: &Registry) -> Result<Self, PlanError> {
        let plan: PlanText = toml::from_str(text).map_err(|error| {
            let byte = error.span().map_or(0, |span| span.start);
            PlanError::at(text, byte, error.message().trim().replace('\n', " "))
        })?;
        if *plan.version.get_ref() != VERSION {
            let what = format!("version {} is not known: this is version {VERSION}", plan.version.get_ref());
            return Err(PlanError::at(text, plan.version.span().start, what));
        }
        let policy = |policy: &Spanned<String>| {
            read_policy(policy.get_ref(), machine, registry)
                .map_err(|what| PlanError::at(text, policy.span().start, format!("policy: {what}")))
        };
        let variables = plan.variable.into_iter().map(|entry| {
            let byte = entry.name.span().start;
            if entry.name.get_ref().is_empty() {
                return Err(PlanError::at(text, byte, "name: a variable has a name"));
            }
            Ok(Variable {
                line: line_of(text, byte),
                policy: policy(&entry.policy)?,
                name: entry.name.into_inner(),
                library: entry.library,
                reason: entry.reason,
            })
        });
        let allocations = plan.allocation.into_iter().map(|entry| {
            let byte = entry.site.span().start;
            let site = entry.site.get_ref().parse();
            let site = site.map_err(|error| PlanError::at(text, byte, format!("site: {error}")))?;
            let max_bytes = entry.max_bytes.as_ref().map_or(u64::MAX, |most| *most.get_ref());
            if let Some(most) = entry.max_bytes.as_ref().filter(|most| *most.get_ref() < entry.min_bytes) {
                let what = format!("max_bytes: {max_bytes} is less than min_bytes, {}", entry.min_bytes);
                return Err(PlanError::at(text, most.span().start, what));
            }
            Ok(Allocation {
                line: line_of(text, byte),
                site,
                policy: policy(&entry.policy)?,
                library: entry.library,
                min_bytes: entry.min_bytes,
                max_bytes,
                reason: entry.reason,
            })
        });
        Ok(Self {
            variables: variables.collect::<Result<_, _>>()?,
            allocations: allocations.collect::<Result<_, _>>()?,
        })
    }

    /// The plan as a text that [`Plan::parse`] reads.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let variable = self.variables.iter().map(|entry| WrittenEntry {
            name: Some(&entry.name),
            library: entry.library.as_deref(),
            policy: entry.policy.to_string(),
            reason: &entry.reason,
            ..WrittenEntry::default()
        });
        let allocation = self.allocations.iter().map(|entry| WrittenEntry {
            site: Some(entry.site.to_string()),
            library: entry.library.as_deref(),
            min_bytes: (entry.min_bytes > 0).then_some(entry.min_bytes),
            max_bytes: (entry.max_bytes < u64::MAX).then_some(entry.max_bytes),
            policy: entry.policy.to_string(),
            reason: &entry.reason,
            ..WrittenEntry::default()
        });
        let written =
            Written { version: VERSION, variable: variable.collect(), allocation: allocation.collect() };
        toml::to_string(&written).expect("texts and numbers can be written")
    }
}

fn read_policy(text: &str, machine: &Machine, registry: &Registry) -> Result<MemoryPolicy, String> {
    let policy = MemoryPolicy::parse(text, machine, registry).map_err(|error| error.to_string())?;
    Placement::new(policy, &RSet::global(machine), machine).map_err(|error| error.to_string())?;
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_topology::Bytes;

    fn parse(text: &str) -> Result<Plan, PlanError> {
        Plan::parse(text, &Machine::uniform(4, 1, Bytes(1 << 30)), &Registry::default())
    }

    const PLAN: &str = r#"version = 1

[[variable]]
name = "matrix"
policy = "block"
reason = "each thread has rows of its own"

[[allocation]]
site = "make_grid+0x4f"
library = "libgrid.so"
min_bytes = 65536
max_bytes = 1048576
policy = "striped:16"
"#;

    #[test]
    fn a_plan_is_read_and_written() {
        let plan = parse(PLAN).unwrap();
        assert_eq!((plan.variables[0].line, plan.variables[0].policy), (4, MemoryPolicy::Block));
        let allocation = &plan.allocations[0];
        assert_eq!((allocation.line, allocation.site.to_string()), (9, "make_grid+0x4f".to_owned()));
        assert_eq!((allocation.min_bytes, allocation.max_bytes), (65536, 1 << 20));
        assert_eq!(plan.to_toml(), PLAN);
    }

    #[test]
    fn errors_name_line_and_field() {
        for (from, to, line, what) in [
            ("version = 1", "version = 2", 1, "version 2"),
            ("policy = \"block\"", "polcy = \"block\"", 5, "polcy"),
            ("policy = \"block\"", "policy = \"striped:0\"", 5, "policy: "),
            ("policy = \"block\"", "policy = \"node:7\"", 5, "policy: "),
            ("make_grid+0x4f", "make_grid+0x", 9, "site: "),
            ("1048576", "1", 12, "max_bytes: "),
            ("65536", "-1", 11, ""),
            ("name = \"matrix\"", "", 3, "name"),
            ("name = \"matrix\"", "name = \"\"", 4, "name: "),
        ] {
            let error = parse(&PLAN.replacen(from, to, 1)).unwrap_err();
            assert!(error.line == line && error.what.contains(what), "{to}: {error}");
        }
    }
}
