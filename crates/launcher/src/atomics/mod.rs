//! Detects from its machine code which consistency a program needs.
//!
//! A program that synchronises through pthread calls alone can run under release consistency: the runtime sees the
//! calls. One that synchronises through inline atomic instructions cannot: the runtime does not see them. So the
//! executable code of the program and of its libraries is disassembled and searched for instructions that lock
//! memory, for loops in which a thread waits for what another one writes, and for double-checked locking. Other plain loads and stores
//! used for synchronisation leave no trace in the code; their authors must ask for `--consistency sc`.
//!
//! A program that opens libraries by `dlopen` runs code that nobody has seen at the start, so that it needs sequential consistency, too.
//!
//! Instructions that only add up the results of OpenMP's reductions are an exception: see [`Atomics::reductions`].

use crate::program::Program;
use gondwana_atomics::{Finding, Plain, scan};
use gondwana_console::failure::Failure;
use gondwana_elf::is_runtime_library;
use std::fmt;
use std::path::{Path, PathBuf};

/// The atomic instructions of a program and its own libraries.
#[derive(Debug, Default)]
pub struct Atomics {
    count: usize,
    first: Option<(Finding, Option<PathBuf>)>,
    /// Those of the program itself, if they all are reductions of OpenMP.
    reductions: Option<Vec<u64>>,
    /// Those of an OpenMP program, without its libraries, that can be executed under a lock.
    lockable: Vec<u64>,
    /// The program or a library of its own opens further ones.
    opens: bool,
    /// The first place where threads synchronise by plain loads and stores, unless something else has decided before.
    plain: Option<(Plain, Option<PathBuf>)>,
}

impl Atomics {
    /// True if the program needs sequential consistency.
    pub fn need_order(&self) -> bool {
        self.opens || self.plain.is_some() || self.count != 0 && self.reductions().is_none()
    }

    /// How many atomic instructions there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Where the instructions are in the program's file, if all are reductions of OpenMP: under release consistency a lock around each
    /// is enough.
    pub fn reductions(&self) -> Option<&[u64]> {
        self.reductions.as_deref().filter(|reductions| reductions.len() == self.count)
    }

    /// Where the instructions are in the file of an OpenMP program that is to run release consistent whatever they are: a lock around each
    /// keeps reductions and `atomic` right. None of other programs.
    pub fn of_openmp(&self) -> &[u64] {
        &self.lockable
    }

    /// Adds the instructions of one file; `library` is its path unless it is the program itself.
    fn add(&mut self, image: &[u8], library: Option<&Path>) -> Result<(), gondwana_atomics::Error> {
        let findings = scan(image)?;
        self.opens |= findings.opens_libraries;
        self.count += findings.atomics.len();
        let library_path = || library.map(Path::to_owned);
        if library.is_none() {
            self.lockable.clone_from(&findings.lockable);
        }
        let is_decided = self.need_order() && (library.is_some() || self.opens);
        if !is_decided {
            let analysis = findings.analyse(image)?;
            self.plain = analysis.plain.map(|plain| (plain, library_path()));
            self.reductions = self.reductions.take().or(analysis.reductions);
        }
        if self.first.is_none() {
            self.first = findings.first.map(|first| (first, library_path()));
        }
        Ok(())
    }
}

impl fmt::Display for Atomics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.first {
            None => f.write_str("no inline atomic instruction")?,
            Some(first) => {
                let (plural, which) = if self.count == 1 { ("", "") } else { ("s", "first ") };
                write!(f, "{} inline atomic instruction{plural}, {which}", self.count)?;
                let (finding, library) = first;
                write_place(f, finding, library.as_deref())?;
            }
        }
        if self.reductions().is_some() {
            f.write_str(if self.count == 1 { ", a reduction" } else { ", all of reductions" })?;
            f.write_str(" of OpenMP: executed under a lock")?;
        }
        match &self.plain {
            Some((plain, library)) if self.first.is_none() => {
                write!(f, ", but {}, ", plain.way)?;
                write_place(f, &plain.place, library.as_deref())
            }
            None if self.first.is_none() && self.opens => {
                f.write_str(", but it opens libraries, which may have some")
            }
            _ => Ok(()),
        }
    }
}

/// Writes where something was found.
fn write_place(f: &mut fmt::Formatter<'_>, found: &Finding, library: Option<&Path>) -> fmt::Result {
    let Finding { function, address } = found;
    if let Some(function) = function {
        write!(f, "in function {function} ")?;
    }
    write!(f, "at {address:#x}")?;
    library.map_or(Ok(()), |library| write!(f, " of {}", library.display()))
}

/// Searches a program and the libraries that it uses.
pub fn of_program(program: &Program) -> Result<Atomics, Failure> {
    let shown = |path: &Path, error: &dyn fmt::Display| {
        Failure::cannot(format!(
            "{}: looking for atomic instructions: {error}; say --consistency rc or sc",
            path.display()
        ))
    };
    let mut atomics = Atomics::default();
    atomics.add(&program.image, None).map_err(|error| shown(&program.path, &error))?;
    for library in program.libraries().map_err(|error| shown(&program.path, &error))? {
        if is_runtime_library(library) {
            continue;
        }
        let image = std::fs::read(library).map_err(|error| shown(library, &error))?;
        atomics.add(&image, Some(library)).map_err(|error| shown(library, &error))?;
    }
    Ok(atomics)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_atomics::Way;

    #[test]
    fn the_reason_names_count_function_and_place() {
        let finding =
            |function: Option<&str>| Finding { function: function.map(str::to_owned), address: 0x1234 };
        let first = Some((finding(Some("foo")), None));
        let mut atomics = Atomics { count: 5, first, ..Atomics::default() };
        assert_eq!(atomics.to_string(), "5 inline atomic instructions, first in function foo at 0x1234");
        atomics.reductions = Some(vec![1, 2, 3, 4]);
        assert!(atomics.reductions().is_none(), "one is elsewhere");
        atomics.reductions = Some(vec![1, 2, 3, 4, 5]);
        assert!(
            atomics.to_string().ends_with("at 0x1234, all of reductions of OpenMP: executed under a lock")
        );
        let first = Some((finding(None), Some("/opt/libx.so".into())));
        atomics = Atomics { count: 1, first, ..Atomics::default() };
        assert_eq!(atomics.to_string(), "1 inline atomic instruction, at 0x1234 of /opt/libx.so");
        assert_eq!(Atomics::default().to_string(), "no inline atomic instruction");
        assert!(!Atomics::default().need_order());
        let atomics = Atomics { opens: true, ..Atomics::default() };
        assert_eq!(
            atomics.to_string(),
            "no inline atomic instruction, but it opens libraries, which may have some"
        );
        assert!(atomics.need_order());
        let plain = Plain { way: Way::Wait, place: finding(Some("wait")) };
        let atomics = Atomics { plain: Some((plain, Some("/opt/libx.so".into()))), ..Atomics::default() };
        assert_eq!(
            atomics.to_string(),
            "no inline atomic instruction, but a loop that waits for what other threads write, in function wait at 0x1234 of /opt/libx.so"
        );
        assert!(atomics.need_order());
    }
}
