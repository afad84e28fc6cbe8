//! The plan of a run: finds out which addresses its names mean in the program, before anything is started.

use gondwana_console::failure::Failure;
use gondwana_control::{PlacementRule, PlacementTarget, RuleMemory, ThreadGroup};
use gondwana_elf::Listing;
use gondwana_plan::{Allocation, Homes, Plan, Variable};
use gondwana_rset::{MemoryPolicy, Registry};
use gondwana_symbols::File;
use gondwana_topology::Machine;
use std::path::Path;

/// Reads a plan for a machine.
pub fn read(path: &Path, machine: &Machine, names: &Registry) -> Result<Plan, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::cannot(format!("--plan: {shown} cannot be read: {error}")))?;
    Plan::parse(&text, machine, names).map_err(|error| Failure::usage(format!("{shown}: {error}")))
}

/// Resolves a plan for a program, with a sentence for each entry that cannot be resolved.
pub fn resolve(plan: &Plan, path: &Path, program: &Path) -> (Vec<PlacementRule>, Vec<String>) {
    let mut files = Files { program, open: vec![] };
    let (mut rules, mut missing) = (vec![], vec![]);
    let mut note = |line: usize,
                    memory: Result<RuleMemory, String>,
                    rule: &dyn Fn(RuleMemory) -> PlacementRule| match memory {
        Ok(memory) => rules.push(rule(memory)),
        Err(what) => missing.push(format!("{}: line {line}: {what}", path.display())),
    };
    for entry in &plan.variables {
        note(entry.line, variable(&mut files, entry), &|memory| PlacementRule {
            library: entry.library.clone(),
            memory,
            target: target(&entry.homes, entry.replicate),
            replicate: entry.replicate,
        });
    }
    for entry in &plan.allocations {
        note(entry.line, allocation(&mut files, entry), &|memory| PlacementRule {
            library: entry.library.clone(),
            memory,
            target: target(&entry.homes, entry.replicate),
            replicate: entry.replicate,
        });
    }
    (rules, missing)
}

/// The groups of threads of a plan.
pub fn groups(plan: &Plan) -> Vec<ThreadGroup> {
    plan.threads
        .iter()
        .map(|group| ThreadGroup { threads: group.threads.clone(), node: group.node })
        .collect()
}

fn target(homes: &Homes, replicate: bool) -> Option<PlacementTarget> {
    match homes {
        // An entry that only replicates leaves the homes to `--memory`.
        Homes::Policy(MemoryPolicy::Float) if replicate => None,
        Homes::Policy(policy) => Some(PlacementTarget::Policy(*policy)),
        Homes::Parts(parts) => Some(PlacementTarget::Parts(parts.clone())),
    }
}

fn variable(files: &mut Files<'_>, entry: &Variable) -> Result<RuleMemory, String> {
    files.file(entry.library.as_deref())?.variable(&entry.name).map(RuleMemory::Variable)
}

fn allocation(files: &mut Files<'_>, entry: &Allocation) -> Result<RuleMemory, String> {
    let file = files.file(entry.library.as_deref())?;
    let calls = file.code_of(&entry.site)?;
    let callers = entry.caller.as_ref().map(|caller| file.code_of(caller)).transpose()?;
    Ok(RuleMemory::Site { calls, callers, bytes: (entry.min_bytes, entry.max_bytes) })
}

/// The executable (without a name) and its libraries, each opened when it is first asked for.
struct Files<'a> {
    program: &'a Path,
    open: Vec<(Option<String>, File)>,
}

impl Files<'_> {
    fn file(&mut self, library: Option<&str>) -> Result<&File, String> {
        if let Some(index) = self.open.iter().position(|(known, _)| known.as_deref() == library) {
            return Ok(&self.open[index].1);
        }
        let path = match library {
            None => self.program.to_owned(),
            Some(name) => {
                let all = Listing::ask(self.program).and_then(Listing::paths).unwrap_or_default();
                all.into_iter()
                    .find(|path| path.file_name().is_some_and(|file| file == name))
                    .ok_or_else(|| format!("the program does not load a library {name}"))?
            }
        };
        let file =
            File::open(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        self.open.push((library.map(str::to_owned), file));
        Ok(&self.open[self.open.len() - 1].1)
    }
}
