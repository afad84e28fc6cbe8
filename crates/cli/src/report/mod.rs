//! `gondwana report`: what a recording tells, for people and for programs.

mod csv;
mod page;
mod table;

use crate::advise::earlier;
use crate::clean;
use crate::create::Readers;
use crate::failure::Failure;
use crate::output::{self, Output, print, tell};
use crate::recorded;
use gondwana_analysis::{Advice, Analysis, advise};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The version of the JSON: one more whenever a name or a meaning changes.
const VERSION: u32 = 1;

/// Options of `gondwana report`.
#[derive(Debug, clap::Args)]
pub struct ReportOptions {
    /// The recording of a run with --monitor
    file: PathBuf,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print a line for each data area and node, with commas between numbers
    #[arg(long)]
    csv: bool,
    /// Write a page for browsers that needs nothing else, with pictures and advice, into FILE instead of printing; without
    /// =FILE beside the recording, as RECORDING.html
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        conflicts_with_all = ["json", "csv", "area", "top"]
    )]
    html: Option<Option<PathBuf>>,
    /// Tell of the data areas with this name only, or whose name has this in it, and everything about them
    #[arg(long, value_name = "NAME")]
    area: Option<String>,
    /// How many data areas, pages, locks and places are listed at most
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    top: u16,
}

/// The analysis and what follows from it as JSON.
#[derive(Serialize)]
struct Json<'a> {
    version: u32,
    #[serde(flatten)]
    analysis: &'a Analysis,
    advice: &'a [Advice],
}

/// Prints what a recording tells.
pub fn report(options: &ReportOptions) -> Result<ExitCode, Failure> {
    if let Some(file) = &options.html {
        return write_page(&options.file, file.as_deref());
    }
    let mut analysis = recorded::analysis(&options.file)?;
    // Also of a part, advice is about its weight in the whole.
    let mut advice = advise(&analysis);
    if let Some(name) = &options.area {
        keep(&mut analysis, name)?;
        advice.retain(|advice| analysis.areas.iter().any(|area| area.name == advice.area));
    }
    let text = if options.json {
        let json = Json { version: VERSION, analysis: &analysis, advice: &advice };
        output::json(&json)
    } else if options.csv {
        csv::lines(&analysis)
    } else {
        table::text(&analysis, &advice, usize::from(options.top), options.area.is_some())
    };
    print(&text)
}

/// Everything that is shown of a recording: the tables, the lines, the JSON and the page.
pub fn all(analysis: &Analysis, advice: &[Advice]) -> [String; 4] {
    let json = output::json(&Json { version: VERSION, analysis, advice });
    let page = page::render(analysis, advice, &gondwana_plan::Plan::default());
    [table::text(analysis, advice, usize::MAX, true), clean::text(&csv::lines(analysis)), json, page]
}

/// Writes the page of a recording into a file, or if none is named beside the recording; prints where.
fn write_page(recording: &Path, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let file = file.map_or_else(|| recording.with_extension("html"), Path::to_owned);
    let is_same =
        recording.canonicalize().is_ok_and(|path| file.canonicalize().is_ok_and(|file| path == file));
    if is_same {
        return Err(Failure::usage(
            "--html: the page would take the place of the recording: name another file",
        ));
    }
    let analysis = recorded::analysis(recording)?;
    let output = Output::open("--html", &file, Readers::User)?;
    let earlier = earlier::of(&analysis.run, &mut tell);
    output.write(&page::render(&analysis, &advise(&analysis), &earlier))?;
    print(&format!("{}\n", file.display()))
}

/// Leaves only the areas with this name, or if there is none those with a name that contains it.
fn keep(analysis: &mut Analysis, name: &str) -> Result<(), Failure> {
    let exact = analysis.areas.iter().any(|area| area.name == name);
    let is_meant = |known: &str| if exact { known == name } else { known.contains(name) };
    if !analysis.areas.iter().any(|area| is_meant(&area.name)) {
        let hottest: Vec<&str> = analysis.areas.iter().take(3).map(|area| &area.name[..]).collect();
        let known = match &hottest[..] {
            [] => "nothing crossed between the nodes".to_owned(),
            some => format!("the hottest are {}", some.join(", ")),
        };
        return Err(Failure::usage(format!("no data area has the name \"{name}\": {known}")));
    }
    let mut places = vec![];
    let mut kept = 0;
    for area in &analysis.areas {
        places.push(is_meant(&area.name).then_some(kept));
        kept += u32::from(is_meant(&area.name));
    }
    analysis.cells.retain_mut(|cell| match places.get(cell.area as usize) {
        Some(&Some(place)) => {
            cell.area = place;
            true
        }
        _ => false,
    });
    analysis.parts.retain_mut(|part| match places.get(part.area as usize) {
        Some(&Some(place)) => {
            part.area = place;
            true
        }
        _ => false,
    });
    analysis.areas.retain(|area| is_meant(&area.name));
    Ok(())
}
