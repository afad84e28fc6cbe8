//! Instructions with which the threads of a program synchronise, of which its nodes are to know under `c11` consistency.

use super::cache::{Kept, SearchCache};
use super::search;
use crate::program::Program;
use gondwana_atomics::{Synchronising, atomic_instructions, synchronising};
use gondwana_console::failure::Failure;
use gondwana_control::Watch;
use gondwana_elf::is_runtime_library;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

/// The instructions of one file, by ascending addresses.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct All(Vec<Synchronising>);

impl Kept for All {
    const NAME: &'static str = "all-";
}

/// The atomic ones of a library of the runtime: it waits by functions that the runtime knows.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Atomic(Vec<Synchronising>);

impl Kept for Atomic {
    const NAME: &'static str = "atomic-";
}

/// The instructions of a program and its libraries, that of C++ included.
pub fn of_program(program: &Program) -> Result<Vec<Watch>, Failure> {
    let shown = |path: &Path, error: &dyn std::fmt::Display| {
        Failure::cannot(format!(
            "{}: looking for instructions that synchronise: {error}; say --consistency rc or sc",
            path.display()
        ))
    };
    let cache = SearchCache::of_user();
    let libraries = program.all_libraries().map_err(|error| shown(&program.path, &error))?;
    let is_cpp = |path: &Path| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"libstdc++.so"))
    };
    let files: Vec<&Path> = std::iter::once(&program.path)
        .chain(libraries.iter().filter(|library| !is_runtime_library(library) || is_cpp(library)))
        .map(AsRef::as_ref)
        .collect();
    let of_file = |place: usize| -> io::Result<Vec<Synchronising>> {
        let file = files[place];
        let read = || std::fs::read(file).map(Cow::Owned);
        if place > 0 && is_cpp(file) {
            return search::file(file, read, &cache, |image| atomic_instructions(image).map(Atomic))
                .map(|Atomic(all)| all);
        }
        search::file(file, read, &cache, |image| synchronising(image).map(All)).map(|All(all)| all)
    };
    let mut watched = vec![];
    search::in_order(files.len(), of_file, |place, found| {
        let instructions = found.map_err(|error| shown(files[place], &error))?;
        if !instructions.is_empty() {
            let file = (place > 0).then(|| std::fs::canonicalize(files[place]).unwrap_or_default());
            watched.push(Watch { file, instructions });
        }
        Ok::<_, Failure>(ControlFlow::Continue(()))
    })?;
    Ok(watched)
}
