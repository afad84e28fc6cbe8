//! Output of commands to terminals and files: results, messages, tables; and failures of commands.

pub mod clean;
pub mod columns;
pub mod create;
pub mod failure;
pub mod output;
pub mod rlimit;
pub mod terminal;
