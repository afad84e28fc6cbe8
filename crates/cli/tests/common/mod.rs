//! Common code of tests of whole runs.
#![allow(dead_code, reason = "each test binary uses a part")]

pub(crate) mod c_api;
pub(crate) mod cargo;
pub(crate) mod endless;
pub(crate) mod exchange;
pub(crate) mod folder;
pub(crate) mod installation;
pub(crate) mod manifest;
pub(crate) mod process;
pub(crate) mod screen;
pub(crate) mod simulated;
pub(crate) mod user;
pub(crate) mod waiting;
pub(crate) mod whole;
