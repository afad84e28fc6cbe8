//! Sets as text and as JSON.

use gondwana_console::columns::{Side, amount, columns};
use gondwana_console::output;
use gondwana_rset::{Entry, RSet, Registry};
use gondwana_topology::{Machine, NodeSet, ProcessorSet};
use serde::Serialize;

/// All named sets, parts below the set that they are parts of.
pub(super) fn list(names: &Registry) -> String {
    if names.is_empty() {
        return "no set has a name yet (gondwana rset make --help says how to make one)\n".to_owned();
    }
    let mut lines =
        vec![["set", "processors", "memory of nodes", "exclusive", "made from"].map(str::to_owned).to_vec()];
    add_parts(names, None, 0, &mut lines);
    columns(&[Side::Left; 5], &lines)
}

fn add_parts(names: &Registry, parent: Option<&str>, depth: usize, lines: &mut Vec<Vec<String>>) {
    for (name, entry) in names.parts(parent) {
        lines.push(vec![
            format!("{:indent$}{name}", "", indent = 2 * depth),
            entry.rset.processors().to_string(),
            entry.rset.memory().to_string(),
            if entry.exclusive { "yes" } else { "" }.to_owned(),
            entry.written.clone().unwrap_or_default(),
        ]);
        add_parts(names, Some(name), depth + 1, lines);
    }
}

/// A named set in JSON.
#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
    processors: &'a ProcessorSet,
    memory: &'a NodeSet,
    parent: Option<&'a str>,
    exclusive: bool,
    written: Option<&'a str>,
}

impl<'a> Named<'a> {
    fn new(name: &'a str, entry: &'a Entry) -> Self {
        Self {
            name,
            processors: entry.rset.processors(),
            memory: entry.rset.memory(),
            parent: entry.parent.as_deref(),
            exclusive: entry.exclusive,
            written: entry.written.as_deref(),
        }
    }
}

/// All named sets as a JSON array.
pub(super) fn list_json(names: &Registry) -> String {
    json(&names.iter().map(|(name, entry)| Named::new(name, entry)).collect::<Vec<_>>())
}

fn json(value: &impl Serialize) -> String {
    output::json(value)
}

/// The description of one set.
#[derive(Serialize)]
pub(super) struct Description<'a> {
    /// The canonical text.
    set: String,
    processors: ProcessorSet,
    processor_count: usize,
    /// The nodes that the processors are in.
    nodes: NodeSet,
    /// The nodes whose memory is in the set.
    memory: NodeSet,
    memory_bytes: u64,
    /// The part of the set that this process may not use.
    forbidden: Option<String>,
    /// The registry's entry, if the set was given by name.
    named: Option<Named<'a>>,
    parts: Vec<&'a str>,
}

impl<'a> Description<'a> {
    /// The description of a set that was given as `text`.
    pub(super) fn new(text: &'a str, rset: &RSet, machine: &Machine, names: &'a Registry) -> Self {
        let text = text.trim();
        let named = names.get(text).map(|entry| Named::new(text, entry));
        let forbidden = rset.difference(&RSet::allowed(machine));
        Self {
            set: rset.to_string(),
            processors: *rset.processors(),
            processor_count: rset.processors().len(),
            nodes: machine.nodes_of(rset.processors()),
            memory: *rset.memory(),
            memory_bytes: rset.memory_total(machine).0,
            forbidden: (!forbidden.is_empty()).then(|| forbidden.to_string()),
            parts: if named.is_some() {
                names.parts(Some(text)).map(|(part, _)| part).collect()
            } else {
                Vec::new()
            },
            named,
        }
    }

    pub(super) fn json(&self) -> String {
        json(self)
    }

    pub(super) fn text(&self) -> String {
        let mut lines = vec![("set", self.set.clone())];
        let processors = match self.processor_count {
            0 => "none".to_owned(),
            count => format!("{} ({count} on {})", self.processors, nodes(&self.nodes)),
        };
        lines.push(("processors", processors));
        let memory = match self.memory.is_empty() {
            true => "none".to_owned(),
            false => format!("{} of {}", amount(self.memory_bytes), nodes(&self.memory)),
        };
        lines.push(("memory", memory));
        if let Some(named) = &self.named {
            lines.extend(named.written.map(|written| ("made from", written.to_owned())));
            lines.extend(named.parent.map(|parent| ("part of", parent.to_owned())));
            lines.extend(named.exclusive.then(|| ("exclusive", "yes".to_owned())));
        }
        if !self.parts.is_empty() {
            lines.push(("parts", self.parts.join(", ")));
        }
        lines.extend(self.forbidden.clone().map(|forbidden| ("forbidden here", forbidden)));
        let lines: Vec<_> = lines.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
        columns(&[Side::Left; 2], &lines)
    }
}

fn nodes(nodes: &NodeSet) -> String {
    format!("node{} {nodes}", if nodes.len() == 1 { "" } else { "s" })
}
