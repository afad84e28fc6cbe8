//! The capabilities of this computer for a run.

use crate::limits;
use crate::probes;
use gondwana_console::failure::Failure;
use gondwana_memory::Mechanism;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// File name of the runtime library.
const LIBRARY: &str = "libgondwana.so";

/// The default span, in bytes. Unused addresses cost nothing, and each node allocates from its own part only: each of
/// eight nodes has hundreds of gigabytes.
pub const DEFAULT_SPAN: u64 = 4 << 40;

/// The shortest span that is chosen without `--span`, in bytes.
pub const LEAST_SPAN: u64 = 1 << 30;

/// The capabilities of this computer for a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Capabilities {
    /// How faults are raised.
    pub mechanism: Mechanism,
    /// Why it is not userfaultfd, in words.
    pub degraded: Option<String>,
    /// Length of the span in bytes.
    pub span: u64,
    /// The runtime library.
    pub library: PathBuf,
    /// How many processors there are.
    pub processors: usize,
}

/// Determines the capabilities. `span` is the user's; each node needs `beside` more bytes of addresses.
pub fn find(span: Option<u64>, beside: u64) -> Result<Capabilities, Failure> {
    probes::fixed_addresses().map_err(|error| {
        Failure::cannot(format!(
            "address space randomisation cannot be turned off ({error}): gondwana doctor says what to do"
        ))
    })?;
    let (mechanism, degraded) = match probes::userfaultfd() {
        Ok(()) => (Mechanism::Userfaultfd, None),
        Err(why) => (Mechanism::Mprotect, Some(why)),
    };
    Ok(Capabilities {
        mechanism,
        degraded,
        span: choose_span(span, beside)?,
        library: runtime_library()?,
        processors: probes::processors(),
    })
}

/// The span that the user requested, or else the longest that fits, in bytes, with `beside` more bytes of addresses.
pub fn choose_span(asked: Option<u64>, beside: u64) -> Result<u64, Failure> {
    let fits = |bytes| limits::lacks_addresses(bytes, beside).map_or_else(|| probes::span(bytes), Err);
    if let Some(bytes) = asked {
        return match fits(bytes) {
            Ok(()) => Ok(bytes),
            Err(why) => Err(Failure::cannot(format!(
                "the span does not fit: {why}; ask for less (--span) or raise the limit (ulimit -v unlimited)"
            ))),
        };
    }
    let mut bytes = DEFAULT_SPAN;
    loop {
        match fits(bytes) {
            Ok(()) => return Ok(bytes),
            Err(_) if bytes > LEAST_SPAN => bytes /= 2,
            Err(why) => {
                return Err(Failure::cannot(format!(
                    "no span fits: {why}; raise the limits (ulimit -v unlimited; ulimit -f unlimited)"
                )));
            }
        }
    }
}

/// Where the runtime library is.
pub fn runtime_library() -> Result<PathBuf, Failure> {
    library(LIBRARY, "gondwana-preload")
}

/// The path of a library that cargo builds from `package`: beside this executable, or where it is installed.
pub fn library(name: &str, package: &str) -> Result<PathBuf, Failure> {
    let exe = std::env::current_exe().map_err(|error| Failure::system("finding this executable", &error))?;
    let folder = exe.parent().unwrap_or(&exe);
    let places = [folder.join(name), folder.join("../lib/gondwana").join(name)];
    places.iter().find_map(|place| place.canonicalize().ok()).ok_or_else(|| {
        Failure::cannot(format!(
            "{name} is missing: it belongs to {} (build it with cargo build -p {package})",
            folder.display()
        ))
    })
}

/// The name of a mechanism that the user knows.
pub fn mechanism_name(mechanism: Mechanism) -> &'static str {
    match mechanism {
        Mechanism::Userfaultfd => "userfaultfd",
        Mechanism::Mprotect => "mprotect",
    }
}

/// Warns on standard error that faults will be slow.
pub fn say_degraded(place: &str, why: &str) {
    eprintln!("gondwana: {place}{why}: using mprotect, which is slower (gondwana doctor says more)");
}
