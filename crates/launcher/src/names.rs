//! Named resource sets, and texts of options that may name them.

use gondwana_console::failure::Failure;
use gondwana_host::Names;
use gondwana_rset::{Registry, TextError};
use gondwana_topology::Machine;

/// The user's named sets; none if there is no folder for them.
///
/// # Errors
/// If the file of names cannot be read.
pub fn named_sets() -> Result<Registry, Failure> {
    Names::known().map_err(|error| Failure::cannot(error.to_string()))
}

/// Reads the text of an option.
///
/// # Errors
/// With the option's name in front, if `parse` refuses the text.
pub fn parsed<T>(
    option: &str,
    text: &str,
    parse: impl Fn(&str, &Machine, &Registry) -> Result<T, TextError>,
    machine: &Machine,
    registry: &Registry,
) -> Result<T, Failure> {
    parse(text, machine, registry).map_err(|error| Failure::usage(format!("{option}: {error}")))
}
