//! ELF files and the loader.
//!
//! - `headers`, `program`, `library`, `code`, `file` and `stripped` read ELF files by the `object` crate. They trust nothing
//!   that a file says.
//! - `frames` reads the tables by which exceptions find their way.
//! - [`loaded`] reads what the loader of this process has mapped; all `unsafe` code of this crate is there and in `folders`.
//! - `file_version` tells versions of files apart.
//! - `folders`, `cache`, `listing` and `runtime` know where the loader looks for libraries, which ones it loads with a program,
//!   and which of them belong to the language runtimes.

mod cache;
mod code;
mod data_segments;
mod file;
mod file_version;
mod folders;
mod frames;
mod functions;
mod headers;
mod library;
mod listing;
pub mod loaded;
mod notes;
mod program;
mod runtime;
mod stripped;

pub use cache::cached_library;
pub use code::{Code, CodeSection};
pub use data_segments::{DataSegment, data_segments};
pub use file::{ElfFile, Symbol, SymbolKind};
pub use file_version::FileVersion;
pub use folders::{find_in, from_origin, loader_folders};
pub use frames::{DescribedFunction, described_functions};
pub use functions::functions;
pub use headers::{Dependencies, has_interpreter, has_symbol_table};
pub use library::LibraryFile;
pub use listing::{ListedObject, Listing, may_load_own_libraries};
pub use object::Error;
pub use program::{Unsuitable, check_program, is_library_in_go};
pub use runtime::{is_of_program, is_runtime_library};
pub use stripped::strip;
