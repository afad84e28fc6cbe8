//! `gondwana report`: the analysis of a recording as text, JSON, CSV or a page.

use crate::earlier_plan;
use crate::recording_file;
use gondwana_analysis::advise;
use gondwana_console::create::Readers;
use gondwana_console::failure::Failure;
use gondwana_console::output::{self, Output, print, tell};
use gondwana_report::recorded::Recorded;
use gondwana_report::{csv, page, selection, table};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of `gondwana report`.
#[derive(Debug, clap::Args)]
pub(crate) struct ReportOptions {
    /// The recording of a run with --monitor
    file: PathBuf,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print a line for each data area and node, with commas between numbers
    #[arg(long)]
    csv: bool,
    /// Write a self-contained HTML page with pictures and advice to FILE instead of printing; without =FILE to
    /// RECORDING.html, beside the recording
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        conflicts_with_all = ["json", "csv", "area", "top"]
    )]
    html: Option<Option<PathBuf>>,
    /// Show only the data areas with this name, or whose name contains it, with all details
    #[arg(long, value_name = "NAME")]
    area: Option<String>,
    /// How many data areas, pages, locks, atomic variables and places are listed at most
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    top: u16,
}

/// Prints what a recording tells.
pub(crate) fn report(options: &ReportOptions) -> Result<ExitCode, Failure> {
    if let Some(file) = &options.html {
        return write_page(&options.file, file.as_deref());
    }
    let mut analysis = recording_file::analysis(&options.file)?;
    // Advice is computed before the selection, because it depends on the share of the whole.
    let mut advice = advise(&analysis);
    if let Some(name) = &options.area {
        selection::keep(&mut analysis, name)?;
        advice.retain(|advice| analysis.areas.iter().any(|area| area.name == advice.area));
    }
    let text = if options.json {
        output::json(&Recorded::new(&analysis, &advice))
    } else if options.csv {
        csv::lines(&analysis)
    } else {
        table::text(&analysis, &advice, usize::from(options.top), options.area.is_some())
    };
    print(&text)
}

/// Writes the page of a recording into the named file, or beside the recording; prints its path.
fn write_page(recording: &Path, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let file = file.map_or_else(|| recording.with_extension("html"), Path::to_owned);
    let is_same =
        recording.canonicalize().is_ok_and(|path| file.canonicalize().is_ok_and(|file| path == file));
    if is_same {
        return Err(Failure::usage(
            "--html: the page would take the place of the recording: name another file",
        ));
    }
    let analysis = recording_file::analysis(recording)?;
    let output = Output::open("--html", &file, Readers::User)?;
    let earlier = earlier_plan::of(&analysis.run, &mut tell);
    output.write(&page::render(&analysis, &advise(&analysis), &earlier))?;
    print(&format!("{}\n", file.display()))
}
