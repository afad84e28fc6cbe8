//! The names in one executable or library.

use crate::call;
use crate::dwarf::{Debug, Frame};
use crate::separate;
use crate::table::{self, Table};
use crate::{flat, layout};
use gondwana_analysis::Layouts;
use gondwana_elf::ElfFile;
use gondwana_plan::CodeLocation;
use std::cell::OnceCell;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// An executable or library. Addresses are link-time addresses of the file; its data is read on demand.
pub struct File {
    path: PathBuf,
    elf: ElfFile,
    /// The separate file with the debug information, if there is one.
    separate: OnceCell<Option<ElfFile>>,
    tables: OnceCell<(Table, Table)>,
    debug: OnceCell<Option<Debug>>,
    simulated: OnceCell<Vec<u64>>,
}

impl File {
    /// Opens a file.
    ///
    /// # Errors
    /// If it cannot be read or is no ELF file for 64-bit computers.
    ///
    /// # Examples
    /// ```
    /// let own = gondwana_symbols::File::open(&std::env::current_exe()?)?;
    /// assert!(!own.is_stripped());
    /// # std::io::Result::Ok(())
    /// ```
    pub fn open(path: &Path) -> io::Result<Self> {
        let elf = ElfFile::open(path)?;
        Ok(Self {
            path: path.to_owned(),
            elf,
            separate: OnceCell::new(),
            tables: OnceCell::new(),
            debug: OnceCell::new(),
            simulated: OnceCell::new(),
        })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its build ID; empty if it has none.
    #[must_use]
    pub fn build_id(&self) -> &[u8] {
        &self.elf.build_id
    }

    /// True if the names of local functions and variables were stripped, and no separate file has them.
    #[must_use]
    pub fn is_stripped(&self) -> bool {
        !self.elf.has_symbols && !self.separate().is_some_and(|elf| elf.has_symbols)
    }

    /// True if it has debug information, in itself or in a separate file.
    #[must_use]
    pub fn has_debug(&self) -> bool {
        self.elf.has_debug || self.separate().is_some_and(|elf| elf.has_debug)
    }

    /// The address range of a variable, by its name in the source: in C++ with its namespaces, a static variable of a
    /// function with the function's name, as `work::count`.
    ///
    /// # Errors
    /// A sentence, if there is no such variable, or more than one.
    pub fn variable(&self, name: &str) -> Result<Range<u64>, String> {
        let entries: Vec<_> = self.tables().1.named(name).collect();
        let global = entries.iter().find(|entry| entry.is_global);
        let mut found: Vec<_> = match global {
            Some(global) => vec![global.range.clone()],
            None => entries.into_iter().map(|entry| entry.range.clone()).collect(),
        };
        if found.is_empty() {
            found = self.debug().map(|debug| debug.named(name)).unwrap_or_default();
        }
        found.dedup_by_key(|range| range.start);
        let file = self.path.display();
        match &found[..] {
            [] => Err(format!("there is no variable {name} in {file}")),
            [range] => Ok(range.clone()),
            several => Err(format!(
                "there are {} variables {name} in {file}, and no telling them apart: give them different names",
                several.len()
            )),
        }
    }

    /// The code of a site: functions, lines, or for calls the last byte of each matching call. There may be several,
    /// since functions in several source files may share a name.
    ///
    /// # Errors
    /// A sentence, if there is no such place.
    pub fn code_of(&self, site: &CodeLocation) -> Result<Vec<Range<u64>>, String> {
        let found = match site {
            CodeLocation::Function(name) => self.functions(name),
            CodeLocation::Call(name, offset) => {
                // The call is before its return address.
                let inside = |range: &Range<u64>| (1..=range.end - range.start).contains(offset);
                let functions = self.functions(name).into_iter().filter(inside);
                let found: Vec<_> =
                    functions.map(|range| range.start + offset - 1..range.start + offset).collect();
                if !found.is_empty() && !found.iter().any(|last| self.returns_to(last.end)) {
                    let own = self.path.display();
                    return Err(format!("there is no call before {site} in {own}: is it another version?"));
                }
                found
            }
            CodeLocation::Line(file, line) => match self.debug().filter(|debug| debug.has_lines()) {
                Some(debug) => debug.code_of_line(file, *line),
                None => {
                    let own = self.path.display();
                    return Err(format!("{own} has no debugging information (compile with -g): {site}"));
                }
            },
        };
        if found.is_empty() {
            return Err(format!("there is no {site} in {}", self.path.display()));
        }
        Ok(found)
    }

    /// True if there is a call before an address, or if that is unknown.
    fn returns_to(&self, address: u64) -> bool {
        self.elf.bytes_before(address, call::LONGEST).is_none_or(|code| call::ends_with_call(&code))
    }

    /// Where the functions with a name are.
    fn functions(&self, name: &str) -> Vec<Range<u64>> {
        let mut found: Vec<_> = self.tables().0.named(name).map(|entry| entry.range.clone()).collect();
        found.dedup_by_key(|range| range.start);
        found
    }

    /// The source positions of an instruction, the innermost first, and its offset in the outermost function, or in
    /// the file if the function is unknown.
    pub(crate) fn code(&self, address: u64) -> (Vec<Frame>, u64) {
        let mut frames = self.debug().map(|debug| debug.frames(address)).unwrap_or_default();
        if frames.is_empty() {
            frames.push(Frame::default());
        }
        let offset = match (self.tables().0.at(address), frames.last_mut()) {
            // The name by which a plan finds it.
            (Some(entry), Some(outermost)) => {
                outermost.function = entry.name();
                address - entry.range.start
            }
            (None, Some(outermost)) if outermost.function.is_empty() => address,
            _ => 0,
        };
        (frames, offset)
    }

    /// The function that holds an address, by the symbol tables.
    pub(crate) fn function(&self, address: u64) -> Option<String> {
        self.tables().0.at(address).map(|entry| entry.name())
    }

    /// True if an atomic instruction is at an address, or if a program for the simulator has the end of a call of an atomic operation there.
    pub(crate) fn is_atomic(&self, address: u64) -> bool {
        let code = self.elf.bytes_at(address, gondwana_atomics::LONGEST as u64).unwrap_or_default();
        // Only behind a call is the whole file worth a look.
        gondwana_atomics::is_atomic(address, &code)
            || self.returns_to(address.wrapping_add(1)) && self.simulated().binary_search(&address).is_ok()
    }

    /// The ends of calls of atomic operations of a program for the simulator.
    fn simulated(&self) -> &[u64] {
        let find = || {
            let image = std::fs::read(&self.path).unwrap_or_default();
            gondwana_atomics::simulated_operations(&image).unwrap_or_default()
        };
        self.simulated.get_or_init(find)
    }

    /// The variable that contains an address: its name and its range.
    pub(crate) fn variable_at(&self, address: u64) -> Option<(String, Range<u64>)> {
        if let Some(entry) = self.tables().1.at(address) {
            let described = self.debug().and_then(|debug| debug.variable(entry.range.start));
            let name = described.map_or_else(|| entry.name(), |described| described.name);
            return Some((name, entry.range.clone()));
        }
        let debug = self.debug()?;
        let range = debug.extent(address)?;
        Some((debug.variable(range.start)?.name, range))
    }

    /// The field at an offset into the variable that begins at an address.
    pub(crate) fn field(&self, start: u64, offset: u64) -> Option<String> {
        let debug = self.debug()?;
        Some(layout::part(debug, debug.variable(start)?.kind?, offset).text)
    }

    /// The layout of the variable at an address, by its number.
    pub(crate) fn layout(&self, start: u64, layouts: &mut Layouts) -> Option<u32> {
        let debug = self.debug()?;
        Some(flat::thing(debug, debug.variable(start)?.kind?, layouts))
    }

    /// The same for a block that the pointer at an address points to.
    pub(crate) fn target_layout(&self, address: u64, layouts: &mut Layouts) -> Option<u32> {
        let (_, range) = self.variable_at(address)?;
        let debug = self.debug()?;
        let part = layout::part(debug, debug.variable(range.start)?.kind?, address - range.start);
        let (to, _) = layout::pointee(debug, part.of).filter(|_| part.rest == 0)?;
        Some(flat::block(debug, to?, layouts))
    }

    /// A pointer: its name, the size of its target type, and the field at an offset of its target.
    pub(crate) fn pointer(&self, address: u64, offset: u64) -> Option<(String, u64, String)> {
        let (name, range) = self.variable_at(address)?;
        let debug = self.debug()?;
        let part = layout::part(debug, debug.variable(range.start)?.kind?, address - range.start);
        let (to, bytes) = layout::pointee(debug, part.of).filter(|_| part.rest == 0)?;
        let text = to.map(|to| layout::element(debug, to, offset)).unwrap_or_default();
        Some((name + &part.text, bytes, text))
    }

    fn separate(&self) -> Option<&ElfFile> {
        let find = || {
            let is_complete = self.elf.has_symbols && self.elf.has_debug;
            (!is_complete)
                .then(|| separate::find(&self.path, &self.elf, Path::new(separate::SYSTEM)))
                .flatten()
        };
        self.separate.get_or_init(find).as_ref()
    }

    fn tables(&self) -> &(Table, Table) {
        self.tables.get_or_init(|| {
            let files: Vec<_> = [Some(&self.elf), self.separate()].into_iter().flatten().collect();
            table::read(&files)
        })
    }

    fn debug(&self) -> Option<&Debug> {
        let make = || {
            let own = Some(&self.elf).filter(|elf| elf.has_debug);
            own.or_else(|| self.separate().filter(|elf| elf.has_debug)).map(Debug::new)
        };
        self.debug.get_or_init(make).as_ref()
    }
}
