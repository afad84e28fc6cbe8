//! Which atomic instructions the machine code of a program holds, and single instructions prepared to be executed elsewhere. Pure: bytes
//! in, findings out.
//!
//! Plain loads and stores used for synchronisation leave no trace in the code.

mod flow;
mod imports;
mod polling;
mod redirected;
mod reductions;
mod scan;
mod site;

pub use gondwana_elf::Error;
pub use redirected::{Action, LONGEST, MOST_BYTES, Redirected};
pub use scan::{Finding, Findings, scan};
pub use site::Site;
