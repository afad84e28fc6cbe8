//! The machine behind the functions of this process.

use crate::backend::Backend;
use crate::host::Host;
use std::sync::OnceLock;

static INSTALLED: OnceLock<&'static dyn Backend> = OnceLock::new();

/// Makes this the backend of the process; must be called before the program's own code runs. False if there is one
/// already.
pub fn install(backend: &'static dyn Backend) -> bool {
    INSTALLED.set(backend).is_ok()
}

/// The backend: the computer itself if no other was installed.
pub(crate) fn backend() -> &'static dyn Backend {
    static HOST: Host = Host::new();
    INSTALLED.get().copied().unwrap_or(&HOST)
}
