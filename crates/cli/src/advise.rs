//! `gondwana advise`: advice from a recording, and a plan for the part that needs no change of the program.

use crate::earlier_plan;
use gondwana_console::create::{Readers, replace};
use gondwana_console::failure::Failure;
use gondwana_console::output::{self, print, tell};
use gondwana_report::plan_document::{document, to_json};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of `gondwana advise`.
#[derive(Debug, clap::Args)]
pub(crate) struct AdviseOptions {
    /// A recording by gondwana run --monitor, or gondwana sim --monitor
    #[arg(value_name = "FILE")]
    recording: PathBuf,
    /// Write the plan to a file, for the next run with --plan [default: print it, with the advice as comments]
    #[arg(short, long, value_name = "PLAN.toml")]
    output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long, requires = "output")]
    force: bool,
    /// Print the advice as JSON
    #[arg(long)]
    json: bool,
}

/// Gives advice.
pub(crate) fn advise(options: &AdviseOptions) -> Result<ExitCode, Failure> {
    let analysis = crate::recording_file::analysis(&options.recording)?;
    for note in &analysis.notes {
        tell(note);
    }
    let advice = gondwana_analysis::advise(&analysis);
    let earlier = earlier_plan::of(&analysis.run, &mut tell);
    let plan = gondwana_analysis::plan(&analysis, &advice).keeping(&earlier);
    if let Some(path) = options.output.as_ref().filter(|_| !plan.is_empty()) {
        write(path, &document(&analysis, &advice, &plan), options.force)?;
    }
    let shown = if options.json {
        output::json(&to_json(&analysis, &advice, &plan))
    } else if options.output.is_none() {
        document(&analysis, &advice, &plan)
    } else {
        gondwana_report::advice::text(&analysis, &advice)
    };
    let printed = print(&shown)?;
    if let Some(path) = options.output.as_ref().filter(|_| plan.is_empty()) {
        eprintln!("gondwana: there is nothing that a plan could do: {} was not written", path.display());
    }
    Ok(printed)
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
}
