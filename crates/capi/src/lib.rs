//! Resource sets, placement and the monitor for programs in C: `gondwana.h` (`gw_*`) and `cg.h` (the `cg_*` calls of UnixWare).
//!
//! The functions are the same everywhere; what differs between one computer and a cluster is behind [`Backend`]. A
//! program that was linked with `libgondwana_api.so` gets the computer itself; under `gondwana run`, the runtime
//! library has the same functions with a backend of its own, and is found first.

mod arguments;
mod backend;
mod bind;
mod cg;
mod error;
mod host;
mod installed;
mod memory;
mod monitor;
mod monitor_backend;
mod record;
mod sets;
mod system;

pub use backend::{Backend, Block, Extras, Kind, NewThread, Routine, Whom};
pub use bind::*;
pub use cg::*;
pub use error::Error;
pub use host::Host;
pub use installed::install;
pub use memory::*;
pub use monitor::*;
pub use monitor_backend::{Callback, Listener, Monitor};
pub use sets::*;
pub use system::*;
