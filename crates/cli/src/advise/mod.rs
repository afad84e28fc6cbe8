//! `gondwana advise`: what a recording tells to change, and a plan that does what needs no change of the program.

pub mod earlier;
pub mod text;

use crate::create::{Readers, replace};
use crate::failure::Failure;
use crate::output::{self, print, tell};
use gondwana_analysis::{Advice, Analysis};
use gondwana_plan::Plan;
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The version of the JSON: one more whenever a name or a meaning changes.
const VERSION: u32 = 1;

/// Options of `gondwana advise`.
#[derive(Debug, clap::Args)]
pub struct AdviseOptions {
    /// A recording by gondwana run --monitor
    #[arg(value_name = "FILE")]
    recording: PathBuf,
    /// Write the plan to a file, for gondwana run --plan [default: print it, with the advice as comments]
    #[arg(short, long, value_name = "PLAN.toml")]
    output: Option<PathBuf>,
    /// Replace the file if there is one
    #[arg(long, requires = "output")]
    force: bool,
    /// Print the advice as JSON
    #[arg(long)]
    json: bool,
}

/// Gives advice.
pub fn advise(options: &AdviseOptions) -> Result<ExitCode, Failure> {
    let analysis = crate::recorded::analysis(&options.recording)?;
    for note in &analysis.notes {
        tell(note);
    }
    let advice = gondwana_analysis::advise(&analysis);
    let earlier = earlier::of(&analysis.run, &mut tell);
    let plan = gondwana_analysis::plan(&analysis, &advice).keeping(&earlier);
    if let Some(path) = options.output.as_ref().filter(|_| !plan.is_empty()) {
        write(path, &document(&analysis, &advice, &plan), options.force)?;
    }
    let shown = if options.json {
        output::json(&to_json(&analysis, &advice, &plan))
    } else if options.output.is_none() {
        document(&analysis, &advice, &plan)
    } else {
        text::of(&analysis, &advice)
    };
    let printed = print(&shown)?;
    if let Some(path) = options.output.as_ref().filter(|_| plan.is_empty()) {
        eprintln!("gondwana: there is nothing that a plan could do: {} was not written", path.display());
    }
    Ok(printed)
}

/// The plan as a file, with the advice in front of it for those who read it.
pub fn document(analysis: &Analysis, advice: &[Advice], plan: &Plan) -> String {
    let comment = |line: &str| format!("# {line}").trim_end().to_owned() + "\n";
    let advice: String = text::of(analysis, advice).lines().map(comment).collect();
    format!("{advice}\n{}", plan.to_toml())
}

fn to_json(analysis: &Analysis, advice: &[Advice], plan: &Plan) -> Value {
    json!({
        "version": VERSION,
        "command": analysis.run.command,
        "nodes": analysis.run.nodes,
        "before": plan.before,
        "expected": plan.expected,
        "advice": advice,
        "plan": plan.to_toml(),
    })
}

/// Writes a file that is not there yet, or may be replaced.
fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let written = if force {
        replace(path, text.as_bytes(), Readers::Usual)
    } else {
        // No link is followed to a file that is not there.
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
    };
    written.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Failure::cannot(format!("{} is there already: add --force to replace it", path.display()))
        }
        _ => Failure::system(&path.display().to_string(), &error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_only_on_demand() {
        let folder = std::env::temp_dir().join(format!("gondwana-advise-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("plan.toml");
        write(&path, "one, and more", false).unwrap();
        let refused = write(&path, "two", false).unwrap_err();
        assert!(refused.message.contains("plan.toml is there already: add --force"), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one, and more");
        write(&path, "two", true).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        assert!(write(&folder.join("no/plan.toml"), "", false).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_document_is_a_plan() {
        let (analysis, advice) = text::tests::sample();
        let plan = gondwana_analysis::plan(&analysis, &advice);
        let document = document(&analysis, &advice, &plan);
        assert!(document.starts_with("# "), "{document}");
        let machine = gondwana_control::machine(2, 1, 1 << 30);
        let read = Plan::parse(&document, &machine, &gondwana_rset::Registry::default()).unwrap();
        assert_eq!((read.variables[0].name.as_str(), read.before), ("grid", plan.before));
        let json = to_json(&analysis, &advice, &plan);
        assert_eq!((&json["version"], &json["advice"][0]["kind"]), (&json!(1), &json!("block")));
    }
}
