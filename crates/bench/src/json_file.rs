//! The figures as JSON, in a file that the user may name with `--json`.

use gondwana_console::create::Readers;
use gondwana_console::failure::Failure;
use gondwana_console::output::Output;
use serde_json::Value;
use std::path::Path;

/// The file, if there is to be one.
pub(crate) struct JsonFile(Option<Output>);

impl JsonFile {
    /// Finds out, before anything is measured, whether the file can be written.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        Ok(Self(path.map(|file| Output::open("--json", file, Readers::Usual)).transpose()?))
    }

    /// Replaces the contents by figures, which nobody needs without a file.
    pub(crate) fn write(self, figures: impl FnOnce() -> Value) -> Result<(), Failure> {
        self.0.map_or(Ok(()), |file| file.write(&format!("{:#}\n", figures())))
    }
}
