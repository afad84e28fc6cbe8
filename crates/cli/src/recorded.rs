//! Recordings, as the commands need them that look at one after the run.

use crate::failure::Failure;
use gondwana_analysis::Analysis;
use gondwana_symbols::Symbols;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Reads a recording and understands it, with the names of the program's files as far as they are still there.
pub fn analysis(path: &Path) -> Result<Analysis, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::cannot(format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(|error| failed(&error))?;
    let recording = gondwana_recording::read(BufReader::new(file)).map_err(|error| failed(&error))?;
    let images = recording.started.first().map_or(&[][..], |(_, started)| &started.images);
    let (symbols, unnamed) = Symbols::open(images);
    let mut analysis = gondwana_analysis::analyse(&recording, &symbols);
    analysis.notes.extend(unnamed);
    Ok(analysis)
}
