//! The queries of the analysis about the program's files.

use crate::layouts::Layouts;
use gondwana_plan::CodeLocation;

/// A place in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Code {
    /// The function, in C++ with its namespaces; empty if unknown.
    pub function: String,
    /// The offset into the function, in bytes; 0 in inlined functions. If the function is unknown, the offset into
    /// the addresses of the file.
    pub offset: u64,
    /// The file, as the compiler was given it; empty if unknown.
    pub file: String,
    /// The line, from 1; 0 if unknown.
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

/// Names of addresses in a program that has run. The default methods know no variables.
pub trait Names {
    /// The source places of an instruction, innermost first: more than one where functions were inlined. Empty if
    /// unknown.
    ///
    /// A call is the instruction before its return address: query the return address less 1.
    fn code(&self, address: u64) -> Vec<Code>;
    /// The call that returns to an address, as a plan names it, and the file name of the library that contains it,
    /// which is empty for the executable. `None` if the function is unknown.
    fn call(&self, return_address: u64) -> Option<(CodeLocation, String)> {
        let outermost = self.code(return_address.checked_sub(1)?).pop()?;
        let is_known = !outermost.function.is_empty();
        is_known.then(|| (CodeLocation::Call(outermost.function, outermost.offset + 1), outermost.library))
    }
    /// True if the access at an address of code is an atomic operation of the program: on a real computer an atomic instruction.
    fn is_atomic(&self, _address: u64) -> bool {
        false
    }
    /// The variable that holds an address.
    fn variable(&self, _address: u64) -> Option<Variable> {
        None
    }
    /// The part of a variable at an offset, as a suffix to its name: `.count`, `[3].x`; empty if unknown or if the
    /// variable has no parts.
    fn field(&self, _variable: &Variable, _offset: u64) -> String {
        String::new()
    }
    /// The variable that contains the pointer at an address, and the length of an element that it points to, in bytes
    /// (0 if unknown).
    fn pointer(&self, _address: u64) -> Option<(String, u64)> {
        None
    }
    /// As [`Names::field`], for the target of the pointer at `address`, where a block begins.
    fn target_field(&self, _address: u64, _offset: u64) -> String {
        String::new()
    }
    /// The number of a variable's layout, which this may add to the layouts; [`Layouts::PLAIN`] if unknown.
    fn layout(&self, _variable: &Variable, _layouts: &mut Layouts) -> u32 {
        Layouts::PLAIN
    }
    /// As [`Names::layout`], for a block that begins where the pointer at `address` points.
    fn target_layout(&self, _address: u64, _layouts: &mut Layouts) -> u32 {
        Layouts::PLAIN
    }
    /// True if a plan can name a variable of this name in a library, or in the executable if `library` is empty.
    fn has_variable(&self, _name: &str, _library: &str) -> bool {
        false
    }
    /// True if a plan can name this place; see [`Names::has_variable`].
    fn has_site(&self, _site: &CodeLocation, _library: &str) -> bool {
        false
    }
}

/// Has no names.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNames;

impl Names for NoNames {
    fn code(&self, _address: u64) -> Vec<Code> {
        vec![]
    }
}
