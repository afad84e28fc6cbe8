//! What the threads of a run are doing: their stacks, what they wait for, and who could end that.
//!
//! [`look`] reads stacks on the computer of a node, [`report`] says what is told to people and programs, and [`findings`]
//! concludes from what all nodes have told who waits for whom.

pub mod findings;
pub mod look;
pub mod report;
mod shown;

pub use look::{LookRequest, LookResult, NodeStacks, StackFrame, TaskStack};
pub use report::StackReport;
