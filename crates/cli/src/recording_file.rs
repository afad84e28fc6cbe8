//! Reads recordings for commands.

use gondwana_analysis::{Analysis, analyse};
use gondwana_console::failure::Failure;
use gondwana_recording::{ImageRecord, read};
use gondwana_symbols::Symbols;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Reads and analyses a recording, with names from the program's files as far as they still exist; problems are in
/// its notes.
pub(crate) fn analysis(path: &Path) -> Result<Analysis, Failure> {
    let shown = path.display();
    let file =
        File::open(path).map_err(|error| Failure::cannot(format!("{shown} cannot be read: {error}")))?;
    let recording =
        read(BufReader::new(file)).map_err(|error| Failure::cannot(format!("{shown}: {error}")))?;
    let first = recording.started.iter().flat_map(|(_, started)| &started.images);
    let later = recording.images.iter().map(|(_, image)| image);
    let images: Vec<ImageRecord> = first.chain(later).cloned().collect();
    let (symbols, unnamed) = Symbols::open(&images);
    let mut analysis = analyse(&recording, &symbols);
    analysis.notes.extend(unnamed.into_iter().map(|sentence| format!("{sentence}.")));
    Ok(analysis)
}
