//! Names of addresses of a program that has run, from the symbol tables and debug information of its files; and
//! addresses of the names in plans. The design note is `design/names.md` beside this code.
//!
//! [`Symbols`] goes from addresses to names, for all files of a program; [`File`] goes from names to addresses in one
//! of them. Both use the same names.

#![forbid(unsafe_code)]

mod call;
mod demangle;
mod dwarf;
mod file;
mod flat;
mod layout;
mod separate;
mod symbols;
mod table;

pub use demangle::readable;
pub use file::File;
pub use symbols::Symbols;
