//! What the analysis asks of the program's files.

use crate::layouts::Layouts;
use gondwana_plan::Site;

/// A place in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Code {
    /// The function, in C++ with its namespaces; empty if nobody knows.
    pub function: String,
    /// How far into the function, in bytes; 0 in functions that were inlined. If nobody knows the function, how far into the
    /// addresses of the file.
    pub offset: u64,
    /// The file, as the compiler was told; empty if nobody knows.
    pub file: String,
    /// The line, from 1; 0 if nobody knows.
    pub line: u32,
    /// The file name of the library; empty for the executable.
    pub library: String,
}

/// A variable of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variable {
    /// Its name, in C++ with its namespaces.
    pub name: String,
    /// The file name of the library that defines it; empty for the executable.
    pub library: String,
    /// Its first address.
    pub start: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// Names of addresses in a program that has run. Who does not say otherwise knows of code only.
pub trait Names {
    /// The places of an instruction, the innermost first: more than one where functions were inlined. Empty if nobody knows.
    ///
    /// The call that returns to an address is the instruction before it: one asks for the address less 1.
    fn code(&self, address: u64) -> Vec<Code>;
    /// The call that returns to an address, as a plan names it, and the file name of the library that it is in, which is empty
    /// for the executable. None if nobody knows the function.
    fn call(&self, return_address: u64) -> Option<(Site, String)> {
        let outermost = self.code(return_address.checked_sub(1)?).pop()?;
        let is_known = !outermost.function.is_empty();
        is_known.then(|| (Site::Call(outermost.function, outermost.offset + 1), outermost.library))
    }
    /// The variable that holds an address.
    fn variable(&self, _address: u64) -> Option<Variable> {
        None
    }
    /// What is at an offset into a variable, as one writes it behind its name: `.count`, `[3].x`; empty if nobody knows or
    /// if the variable has no parts.
    fn field(&self, _variable: &Variable, _offset: u64) -> String {
        String::new()
    }
    /// The variable at the address of a pointer, and how long one of the things is that it points to, in bytes (0 if that is not known).
    fn pointer(&self, _address: u64) -> Option<(String, u64)> {
        None
    }
    /// As [`Names::field`], for what the pointer at `address` points to: its block begins where the pointer points.
    fn target_field(&self, _address: u64, _offset: u64) -> String {
        String::new()
    }
    /// What a variable is made of: its number among the layouts, which may get more; [`Layouts::PLAIN`] if nobody knows.
    fn layout(&self, _variable: &Variable, _layouts: &mut Layouts) -> u32 {
        Layouts::PLAIN
    }
    /// As [`Names::layout`], for a block that begins where the pointer at `address` points.
    fn target_layout(&self, _address: u64, _layouts: &mut Layouts) -> u32 {
        Layouts::PLAIN
    }
    /// Whether a plan would find a variable of this name in a library, or in the executable if `library` is empty.
    fn has_variable(&self, _name: &str, _library: &str) -> bool {
        false
    }
    /// Whether a plan would find this place, as [`Names::has_variable`].
    fn has_site(&self, _site: &Site, _library: &str) -> bool {
        false
    }
}

/// Knows no names.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNames;

impl Names for NoNames {
    fn code(&self, _address: u64) -> Vec<Code> {
        vec![]
    }
}
