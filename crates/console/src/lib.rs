//! What commands write to terminals and files: results, sentences for the user, tables; and how a command fails.

pub mod clean;
pub mod columns;
pub mod create;
pub mod failure;
pub mod output;
pub mod rlimit;
pub mod terminal;
