//! Common code of tests of whole runs.
#![allow(dead_code, reason = "each test binary uses a part")]

pub mod c_api;
pub mod endless;
pub mod exchange;
pub mod folder;
pub mod installation;
pub mod manifest;
pub mod process;
pub mod screen;
pub mod user;
pub mod waiting;
pub mod whole;
