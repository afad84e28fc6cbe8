//! Which atomic instructions the machine code of a program holds, and single instructions prepared to be executed elsewhere. Pure: bytes
//! in, findings out.
//!
//! Plain loads and stores used for synchronisation show where threads wait in a loop for what others write, and in double-checked locking.

mod double_checked;
mod effects;
mod flow;
mod guarded;
mod imports;
mod loops;
mod operations;
mod polling;
mod redirected;
mod reductions;
mod scan;
mod site;
mod synchronising;
mod system_calls;
mod usage;
mod values;

pub use gondwana_elf::Error;
pub use guarded::{Guarded, KNOWN_PAGES, MOST_GUARDED};
pub use operations::{is_atomic, simulated_operations};
pub use redirected::{Action, LONGEST, MOST_BYTES, Redirected};
pub use scan::{Analysis, Finding, Findings, Plain, Way, scan};
pub use site::Site;
pub use synchronising::{Synchronising, atomic_instructions, synchronising};
pub use system_calls::{SYSTEM_CALL, SystemCall, may_make_system_calls, system_calls};
