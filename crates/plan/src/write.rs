//! Writes the text of a plan.

use crate::read::VERSION;
use crate::{Homes, Plan, Traffic};
use gondwana_rset::{MemoryPolicy, PlacementPart};
use std::fmt::{self, Display, Write};

/// The largest number that TOML has. No more is in any memory.
const LARGEST: u64 = i64::MAX.cast_unsigned();

impl Plan {
    /// The plan as a text that [`Plan::parse`] reads.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("writing to a text does not fail");
        text
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "version = {VERSION}")?;
        for (name, traffic) in [("before", &self.before), ("expected", &self.expected)] {
            if let Some(Traffic { requests, bytes }) = traffic {
                let [requests, bytes] = [requests, bytes].map(|number| *number.min(&LARGEST));
                write!(out, "\n[{name}]\nrequests = {requests}\nbytes = {bytes}\n")?;
            }
        }
        for entry in &self.variables {
            begin(out, "variable", entry.saving)?;
            field(out, "name", quoted(&entry.name))?;
            optional(out, "library", entry.library.as_deref())?;
            homes(out, &entry.homes, entry.replicate)?;
            reason(out, &entry.reason)?;
        }
        for entry in &self.allocations {
            begin(out, "allocation", entry.saving)?;
            field(out, "site", quoted(&entry.site.to_string()))?;
            let caller = entry.caller.as_ref().map(ToString::to_string);
            optional(out, "caller", caller.as_deref())?;
            optional(out, "library", entry.library.as_deref())?;
            if entry.min_bytes > 0 {
                field(out, "min_bytes", entry.min_bytes.min(LARGEST))?;
            }
            if entry.max_bytes <= LARGEST {
                field(out, "max_bytes", entry.max_bytes)?;
            }
            homes(out, &entry.homes, entry.replicate)?;
            reason(out, &entry.reason)?;
        }
        for entry in &self.threads {
            begin(out, "thread", entry.saving)?;
            let threads: Vec<String> = entry.threads.iter().map(u32::to_string).collect();
            field(out, "threads", format_args!("[{}]", threads.join(", ")))?;
            match entry.node {
                Some(node) => field(out, "node", node)?,
                None => field(out, "together", true)?,
            }
            reason(out, &entry.reason)?;
        }
        Ok(())
    }
}

fn begin(out: &mut String, table: &str, saving: Option<Traffic>) -> fmt::Result {
    out.push('\n');
    if let Some(Traffic { requests, bytes }) = saving {
        writeln!(out, "# expected to save {requests} requests and {bytes} bytes")?;
    }
    writeln!(out, "[[{table}]]")
}

fn field(out: &mut String, name: &str, value: impl Display) -> fmt::Result {
    writeln!(out, "{name} = {value}")
}

fn optional(out: &mut String, name: &str, value: Option<&str>) -> fmt::Result {
    value.map_or(Ok(()), |value| field(out, name, quoted(value)))
}

fn reason(out: &mut String, text: &str) -> fmt::Result {
    if text.is_empty() { Ok(()) } else { field(out, "reason", quoted(text)) }
}

fn homes(out: &mut String, homes: &Homes, replicate: bool) -> fmt::Result {
    match homes {
        // What says nothing is only written where something must stand.
        Homes::Policy(MemoryPolicy::Float) if replicate => {}
        Homes::Policy(policy) => field(out, "policy", quoted(&policy.to_string()))?,
        Homes::Parts(parts) => {
            out.push_str("parts = [\n");
            for PlacementPart { pages, node } in parts {
                writeln!(out, "  {{ pages = {}, node = {node} }},", pages.min(&LARGEST))?;
            }
            out.push_str("]\n");
        }
    }
    if replicate { field(out, "replicate", true) } else { Ok(()) }
}

/// The text with quotation marks, as TOML wants it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
