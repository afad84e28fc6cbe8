//! Which atomic instructions the machine code of a program holds. Pure: bytes in, findings out.
//!
//! Plain loads and stores used for synchronisation leave no trace in the code.

mod scan;

pub use gondwana_elf::Error;
pub use scan::{Finding, Findings, scan};
