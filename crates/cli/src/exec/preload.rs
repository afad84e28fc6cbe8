//! Preloads the library that applies policies inside the program.

use super::linkage::{self, Linkage};
use gondwana_console::failure::Failure;
use gondwana_host::UnmetRequest;
use gondwana_launcher::{capabilities, program};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;

/// The library.
const LIBRARY: &str = "libgondwana_affinity.so";

/// A program that the library can be loaded into.
pub(super) struct Loadable {
    /// Where it is.
    pub program: PathBuf,
    library: OsString,
}

impl Loadable {
    /// Finds the program and the library, or why the library cannot be preloaded.
    pub(super) fn find(name: &OsStr) -> Result<Result<Self, UnmetRequest>, Failure> {
        let program = program::locate(name)?;
        let why = match linkage::of(&program) {
            Linkage::Dynamic => None,
            Linkage::Static => Some("is statically linked"),
            Linkage::Privileged => Some("is a set-user-id or set-group-id program"),
        };
        if let Some(why) = why {
            let sentence = format!(
                "{} {why}: its threads cannot be bound one by one, and are anywhere in the set, and its allocations \
                 cannot be told apart",
                name.display()
            );
            return Ok(Err(UnmetRequest::Other(sentence)));
        }
        let library = capabilities::library(LIBRARY, "gondwana-affinity")?.into_os_string();
        Ok(Ok(Self { program, library }))
    }

    /// Preloads the library, and passes it a text.
    pub(super) fn tell(&self, command: &mut Command, variable: &str, text: String) {
        let others = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty());
        let preloaded = match others {
            Some(others) => [self.library.clone(), others].join(OsStr::new(":")),
            None => self.library.clone(),
        };
        command.env("LD_PRELOAD", preloaded).env(variable, text);
    }
}
