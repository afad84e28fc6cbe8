//! The plan of a run: finds out which addresses its names mean in the program, before anything is started.

mod symbols;

use super::check::Program;
use crate::atomics::libraries;
use crate::failure::Failure;
use gondwana_node::placement::{Rule, Target};
use gondwana_plan::{Allocation, Plan, Site, Variable};
use gondwana_rset::Registry;
use gondwana_topology::Machine;
use std::ops::Range;
use std::path::Path;
use symbols::Symbols;

/// Reads a plan.
pub fn read(path: &Path, machine: &Machine, names: &Registry) -> Result<Plan, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::cannot(format!("--plan: {shown} cannot be read: {error}")))?;
    Plan::parse(&text, machine, names).map_err(|error| Failure::usage(format!("{shown}: {error}")))
}

/// What a plan means in a program, and a sentence for each entry that means nothing there.
pub fn resolve(plan: &Plan, path: &Path, program: &Program) -> (Vec<Rule>, Vec<String>) {
    let mut files = Files { program, executable: None, libraries: vec![] };
    let (mut rules, mut missing) = (vec![], vec![]);
    let mut note =
        |line: usize, library: &Option<String>, policy, target: Result<Target, String>| match target {
            Ok(target) => rules.push(Rule { library: library.clone(), target, policy }),
            Err(what) => missing.push(format!("{}: line {line}: {what}", path.display())),
        };
    for entry in &plan.variables {
        note(entry.line, &entry.library, entry.policy, variable(&mut files, entry));
    }
    for entry in &plan.allocations {
        note(entry.line, &entry.library, entry.policy, allocation(&mut files, entry));
    }
    (rules, missing)
}

fn variable(files: &mut Files<'_>, entry: &Variable) -> Result<Target, String> {
    let symbols = files.symbols(entry.library.as_deref())?;
    let range = symbols.variable(&entry.name);
    range
        .map(Target::Variable)
        .ok_or_else(|| format!("there is no variable {} in {}", entry.name, symbols.file))
}

fn allocation(files: &mut Files<'_>, entry: &Allocation) -> Result<Target, String> {
    let symbols = files.symbols(entry.library.as_deref())?;
    let calls = match &entry.site {
        Site::Function(name) => symbols.function(name),
        Site::Call(name, offset) => {
            // The call is before the address that it returns to.
            let inside = |range: &Range<u64>| (1..=range.end - range.start).contains(offset);
            let functions = symbols.function(name).into_iter().filter(inside);
            functions.map(|range| range.start + offset - 1..range.start + offset).collect()
        }
        Site::Line(file, line) => symbols.line(file, *line)?,
    };
    if calls.is_empty() {
        return Err(format!("there is no {} in {}", entry.site, symbols.file));
    }
    Ok(Target::Site { calls, bytes: (entry.min_bytes, entry.max_bytes) })
}

/// The executable and its libraries, each read when it is first asked for.
struct Files<'a> {
    program: &'a Program,
    executable: Option<Symbols>,
    libraries: Vec<(String, Symbols)>,
}

impl Files<'_> {
    fn symbols(&mut self, library: Option<&str>) -> Result<&Symbols, String> {
        let Some(name) = library else {
            let file = self.program.path.display().to_string();
            return Ok(self.executable.get_or_insert_with(|| Symbols::new(file, &self.program.image)));
        };
        if let Some(index) = self.libraries.iter().position(|(known, _)| known == name) {
            return Ok(&self.libraries[index].1);
        }
        let all = libraries::of(&self.program.path).unwrap_or_default();
        let path = all.iter().find(|path| path.file_name().is_some_and(|file| file == name));
        let path = path.ok_or_else(|| format!("the program does not load a library {name}"))?;
        let image =
            std::fs::read(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        self.libraries.push((name.to_owned(), Symbols::new(path.display().to_string(), &image)));
        Ok(&self.libraries[self.libraries.len() - 1].1)
    }
}
