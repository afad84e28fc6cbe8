//! Which atomic instructions the machine code of a program holds. Pure: bytes in, findings out.
//!
//! Plain loads and stores used for synchronisation leave no trace in the code.

#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)]

mod scan;

pub use gondwana_elf::Error;
pub use scan::{Finding, Findings, scan};
