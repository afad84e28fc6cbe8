//! Places in the program.

use super::file_name;
use crate::names::{Code, Names};
use std::collections::HashMap;

/// Where the headers of compilers and libraries are: no code of the user's.
const OTHERS: [&str; 2] = ["/usr/include/", "/usr/lib/"];

/// The library that stands in for functions of the system in programs that run on several nodes.
const GONDWANA: &str = "libgondwana.so";

/// The places of instructions, each asked for once.
pub(crate) struct Codes<'a> {
    names: &'a dyn Names,
    known: HashMap<u64, Vec<Code>>,
}

impl<'a> Codes<'a> {
    /// Nothing is asked yet.
    pub(crate) fn new(names: &'a dyn Names) -> Self {
        Self { names, known: HashMap::new() }
    }

    /// The places of an instruction, the innermost first.
    fn at(&mut self, address: u64) -> &[Code] {
        self.known.entry(address).or_insert_with(|| self.names.code(address))
    }

    /// True if some place that was asked for has a line.
    pub(crate) fn have_lines(&self) -> bool {
        self.known.values().flatten().any(|code| code.line > 0)
    }

    /// True if any place was asked for.
    pub(crate) fn asked(&self) -> bool {
        !self.known.is_empty()
    }

    /// An instruction as `file:line`, `function+0x4f` or an address, and its function. Code that the compiler has put
    /// into the user's from a library counts as the line that wanted it, and what Gondwana does on behalf of a function of
    /// the system as that function.
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

    /// The function that begins at an address; empty if nobody knows.
    pub(crate) fn function(&mut self, address: u64) -> String {
        self.at(address).last().map(|code| code.function.clone()).unwrap_or_default()
    }

    /// The calls that return to these addresses, as lines for people, from the innermost to the outermost that is the
    /// program's if there is one: `make_grid, grid.c:41`.
    pub(crate) fn callers(&mut self, returns: &[u64]) -> Vec<String> {
        let mut lines = vec![];
        let mut users: Option<std::ops::RangeInclusive<usize>> = None;
        for &address in returns {
            // The call is before the place where it returns.
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

    /// The innermost call that is the program's as a plan names it, and the file name of its library; empty if there is
    /// none.
    pub(crate) fn site(&mut self, returns: &[u64]) -> (String, String) {
        let mut first = None;
        for &address in returns {
            // Symbol tables know nothing of functions that are in others: the outermost is the one that is there.
            let Some(code) = self.at(address.wrapping_sub(1)).last() else { continue };
            if code.function.is_empty() {
                continue;
            }
            let site =
                (format!("{}+{:#x}", code.function, code.offset.saturating_add(1)), code.library.clone());
            if code.library.is_empty() {
                return site;
            }
            first.get_or_insert(site);
        }
        first.unwrap_or_default()
    }
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
