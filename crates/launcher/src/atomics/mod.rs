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
//!
//! Files are searched in the order in which the loader searches them for symbols, several at a time, until what is found decides. What a
//! long search found is kept for the next start.

mod cache;
mod search;
pub mod watch;

use crate::program::Program;
use cache::SearchCache;
use gondwana_atomics::{Finding, Plain, Way};
use gondwana_console::failure::Failure;
use gondwana_elf::is_runtime_library;
use search::{Searched, of_image};
use std::borrow::Cow;
use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The atomic instructions of a program and its own libraries, up to the file that decides which consistency they need.
#[derive(Debug, Default)]
pub struct Atomics {
    /// Nodes find plain loads and stores in order, whatever the consistency.
    in_order: bool,
    count: usize,
    first: Option<(Finding, Option<PathBuf>)>,
    /// Those of the program itself, if they all are reductions of OpenMP.
    reductions: Option<Vec<u64>>,
    /// Those of an OpenMP program, without its libraries, that can be executed under a lock.
    lockable: Vec<u64>,
    /// The program or a library of its own opens further ones.
    opens: bool,
    /// The first place where threads synchronise by plain loads and stores; one where they wait, if there is one.
    plain: Option<(Plain, Option<PathBuf>)>,
}

impl Atomics {
    /// True if the program needs sequential consistency.
    pub fn need_order(&self) -> bool {
        self.opens || self.plain_needs_order() || self.count != 0 && self.reductions().is_none()
    }

    /// True if plain loads and stores need sequential consistency: where they are in order, who waits by them gets on, but slowly.
    fn plain_needs_order(&self) -> bool {
        self.plain.as_ref().is_some_and(|(plain, _)| plain.way == Way::Wait || !self.in_order)
    }

    /// How many atomic instructions there are, up to those of the file that decides.
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

    /// Adds what was found in one file; `library` is its path unless it is the program itself, which comes first.
    fn add(&mut self, file: Searched, library: Option<&Path>) {
        let library_path = || library.map(Path::to_owned);
        self.opens |= file.opens_libraries;
        self.count += file.count;
        let waits = file.plain.as_ref().is_some_and(|plain| plain.way == Way::Wait);
        let plain = file.plain.map(|plain| (plain, library_path()));
        self.plain = if waits && !self.plain_needs_order() { plain } else { self.plain.take().or(plain) };
        self.first = self.first.take().or(file.first.map(|first| (first, library_path())));
        if library.is_none() {
            (self.lockable, self.reductions) = (file.lockable, file.reductions);
        }
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

/// Searches a program, and the libraries that it uses as far as they may change which consistency it needs. `in_order`: nodes find plain loads
/// and stores in order, whatever the consistency.
pub fn of_program(program: &Program, in_order: bool) -> Result<Atomics, Failure> {
    let shown = |path: &Path, error: &dyn fmt::Display| {
        Failure::cannot(format!(
            "{}: looking for atomic instructions: {error}; say --consistency rc or sc",
            path.display()
        ))
    };
    let cache = SearchCache::of_user();
    let mut atomics = Atomics { in_order, ..Atomics::default() };
    let own = search::file(&program.path, || Ok(Cow::Borrowed(&program.image)), &cache, of_image);
    atomics.add(own.map_err(|error| shown(&program.path, &error))?, None);
    if atomics.need_order() {
        return Ok(atomics);
    }
    let libraries = program.libraries().map_err(|error| shown(&program.path, &error))?;
    let libraries: Vec<&PathBuf> = libraries.iter().filter(|library| !is_runtime_library(library)).collect();
    let of_library = |place: usize| {
        let library = libraries[place];
        search::file(library, || std::fs::read(library).map(Cow::Owned), &cache, of_image)
    };
    search::in_order(libraries.len(), of_library, |place, found| {
        atomics.add(found.map_err(|error| shown(libraries[place], &error))?, Some(libraries[place]));
        Ok(if atomics.need_order() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(atomics)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a library with so many atomic instructions is like.
    fn searched(count: usize, reductions: Option<Vec<u64>>) -> Searched {
        let first = (count > 0).then_some(Finding { function: None, address: 1 });
        Searched { count, first, reductions, ..Searched::default() }
    }

    #[test]
    fn reductions_are_the_programs_own() {
        let library = Path::new("/opt/libx.so");
        let mut atomics = Atomics::default();
        atomics.add(searched(2, Some(vec![1, 2])), None);
        atomics.add(searched(0, None), Some(library));
        assert!(!atomics.need_order() && atomics.reductions() == Some(&[1, 2]));
        atomics.add(searched(1, Some(vec![3])), Some(library));
        assert!(atomics.need_order(), "they would need locks in the library");
        let mut atomics = Atomics::default();
        atomics.add(searched(0, None), None);
        atomics.add(searched(1, Some(vec![3])), Some(library));
        assert!(atomics.need_order() && atomics.reductions().is_none());
    }

    #[test]
    fn who_waits_needs_order_whatever_was_found_before() {
        let found = |way| {
            let place = Finding { function: Some("f".to_owned()), address: 0x1234 };
            Searched { plain: Some(Plain { way, place }), ..Searched::default() }
        };
        for (in_order, needs) in [(false, true), (true, false)] {
            let mut atomics = Atomics { in_order, ..Atomics::default() };
            atomics.add(found(Way::DoubleCheck), None);
            assert_eq!(atomics.need_order(), needs);
            atomics.add(found(Way::Wait), Some(Path::new("/opt/libx.so")));
            assert!(atomics.need_order());
            assert_eq!(atomics.to_string().contains("waits"), in_order, "{atomics}");
        }
    }

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
