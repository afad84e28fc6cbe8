//! Runs unmodified threaded programs on several nodes: starts the node processes here and on other hosts, supervises
//! and records them, and answers queries about a run.

pub mod atomics;
pub mod capabilities;
pub mod exit;
pub mod hosts;
pub mod launch;
pub mod limits;
pub mod names;
pub mod objects;
pub mod probes;
pub mod process;
pub mod program;
mod progress_line;
mod random;
pub mod run;
pub mod run_registry;
mod script;
pub mod stacks;
mod stats;
