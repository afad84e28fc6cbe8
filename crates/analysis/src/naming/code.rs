//! Names of places in the program's code.

use super::file_name;
use crate::names::{Code, Names};
use std::collections::HashMap;

/// The folders of headers of compilers and libraries, which are not the user's code.
const OTHERS: [&str; 2] = ["/usr/include/", "/usr/lib/"];

/// What is in the names of the functions that gcc and clang make of OpenMP's regions.
pub(crate) const REGIONS: [&str; 2] = ["._omp_fn", ".omp_outlined"];

/// The library that replaces functions of the system in programs on several nodes.
const GONDWANA: &str = "libgondwana.so";

/// The places of instructions, each queried once.
pub(crate) struct Codes<'a> {
    names: &'a dyn Names,
    known: HashMap<u64, Vec<Code>>,
    atomic: HashMap<u64, bool>,
}

impl<'a> Codes<'a> {
    /// Without queried places.
    pub(crate) fn new(names: &'a dyn Names) -> Self {
        Self { names, known: HashMap::new(), atomic: HashMap::new() }
    }

    /// The places of an instruction, innermost first.
    fn at(&mut self, address: u64) -> &[Code] {
        self.known.entry(address).or_insert_with(|| self.names.code(address))
    }

    /// True if a queried place has a line.
    pub(crate) fn have_lines(&self) -> bool {
        self.known.values().flatten().any(|code| code.line > 0)
    }

    /// True if any place was queried.
    pub(crate) fn asked(&self) -> bool {
        !self.known.is_empty()
    }

    /// An instruction as `file:line`, `function+0x4f` or an address, and its function. Library code that is inlined
    /// into the user's counts as the line that uses it; code of Gondwana for a function of the system counts as that
    /// function.
    pub(crate) fn place(&mut self, address: u64) -> (String, String) {
        let codes = self.at(address);
        if let Some(code) = codes.last().filter(|code| code.library == GONDWANA && !code.function.is_empty())
        {
            return (code.function.clone(), code.function.clone());
        }
        match codes.iter().find(|code| is_users(code)).or(codes.first()) {
            Some(code) => (text(code, code.offset, address), code.function.clone()),
            None => (format!("{address:#x}"), String::new()),
        }
    }

    /// As [`Codes::place`], in the function of the OpenMP region that an instruction is in, or else in the outermost one: a compiler may give
    /// the call at the end of a loop the line of what the loop calls last, inlined. (clang inlines a region's function into one of its own.)
    pub(crate) fn in_region(&mut self, address: u64) -> (String, String) {
        let codes = self.at(address);
        let is_region = |code: &&Code| REGIONS.iter().any(|region| code.function.contains(region));
        match codes.iter().find(is_region).or(codes.last()) {
            Some(code) => (text(code, code.offset, address), code.function.clone()),
            None => (format!("{address:#x}"), String::new()),
        }
    }

    /// True if an instruction makes an atomic operation, but for those by which Gondwana makes functions of the system.
    pub(crate) fn is_atomic(&mut self, address: u64) -> bool {
        if let Some(&known) = self.atomic.get(&address) {
            return known;
        }
        let is_own = |codes: &[Code]| codes.last().is_some_and(|code| code.library == GONDWANA);
        let is_atomic = self.names.is_atomic(address) && !is_own(self.at(address));
        self.atomic.insert(address, is_atomic);
        is_atomic
    }

    /// The function that begins at an address; empty if unknown.
    pub(crate) fn function(&mut self, address: u64) -> String {
        self.at(address).last().map(|code| code.function.clone()).unwrap_or_default()
    }

    /// The calls that return to these addresses, as lines of text, from the innermost to the outermost of the
    /// program, if there is one: `make_grid, grid.c:41`.
    pub(crate) fn callers(&mut self, returns: &[u64]) -> Vec<String> {
        let mut lines = vec![];
        let mut users: Option<std::ops::RangeInclusive<usize>> = None;
        for &address in returns {
            // The call is before its return address.
            let codes = self.at(address.wrapping_sub(1));
            if codes.is_empty() {
                lines.push(format!("{address:#x}"));
            }
            for code in codes {
                if is_users(code) {
                    let first = users.as_ref().map_or(lines.len(), |users| *users.start());
                    users = Some(first..=lines.len());
                }
                let place = text(code, code.offset.saturating_add(1), address);
                let known = !code.function.is_empty() && code.line > 0;
                lines.push(if known { format!("{}, {place}", code.function) } else { place });
            }
        }
        match users {
            Some(users) => lines.drain(users).collect(),
            None => lines,
        }
    }

    /// The innermost call of the program. Calls in `recursive` are not always called by the next one.
    pub(crate) fn site(&mut self, returns: &[u64], recursive: &[usize]) -> CallSite {
        let calls: Vec<Option<(String, String)>> =
            returns.iter().map(|&address| self.call(address)).collect();
        let is_programs =
            |call: &Option<(String, String)>| call.as_ref().is_some_and(|(_, library)| library.is_empty());
        let innermost = calls.iter().position(is_programs).or_else(|| calls.iter().position(Option::is_some));
        let Some(at) = innermost else { return CallSite::default() };
        let (call, library) = calls[at].clone().unwrap_or_default();
        let around = calls.get(at + 1).filter(|_| !recursive.contains(&at)).cloned().flatten();
        let around = around.filter(|(_, other)| *other == library);
        CallSite { call, caller: around.map(|(caller, _)| caller).unwrap_or_default(), library }
    }

    /// The call that returns to an address as a plan names it, and the file name of its library.
    fn call(&mut self, returns_to: u64) -> Option<(String, String)> {
        // Symbol tables have no inlined functions: the outermost is the one with a symbol.
        let code = self.at(returns_to.wrapping_sub(1)).last().filter(|code| !code.function.is_empty())?;
        Some((format!("{}+{:#x}", code.function, code.offset.saturating_add(1)), code.library.clone()))
    }
}

/// A call that allocates, as a plan names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallSite {
    /// The call; empty if there is none.
    pub(crate) call: String,
    /// The call of the function that this is in, if it is in the same file.
    pub(crate) caller: String,
    /// The file name of the library; empty for the executable.
    pub(crate) library: String,
}

/// True for code of the program itself.
fn is_users(code: &Code) -> bool {
    code.library.is_empty() && !OTHERS.iter().any(|folder| code.file.starts_with(folder))
}

fn text(code: &Code, offset: u64, address: u64) -> String {
    let library = if code.library.is_empty() { String::new() } else { format!(" ({})", code.library) };
    if code.line > 0 && !code.file.is_empty() {
        format!("{}:{}", file_name(&code.file), code.line)
    } else if !code.function.is_empty() {
        format!("{}+{offset:#x}{library}", code.function)
    } else {
        format!("{address:#x}{library}")
    }
}
