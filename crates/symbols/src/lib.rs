//! Names of addresses of a program that has run, from the symbol tables and the debugging information of its files; and
//! the addresses of what people name in plans.
//!
//! [`Symbols`] goes from addresses to names, for all files of a program; [`File`] goes from names to addresses in one of
//! them. Both call things by the same names.

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
