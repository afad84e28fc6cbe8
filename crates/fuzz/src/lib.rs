//! Fuzz targets: each gives bytes to something that reads what others have written, and panics if that panics, or says of
//! something made up what cannot be. `scripts/fuzz` runs them with bytes that libFuzzer makes out of those in the folder
//! `corpus`; the tests run them with those.

mod commands;
mod kernel;
mod plans;
mod recordings;
mod texts;

use gondwana_control::{Order, Report};

/// What gets bytes.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, and that of the folder of its corpus.
    pub name: &'static str,
    /// Takes the bytes.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: &[Target] = &[
    // What strangers and other nodes send over TCP.
    Target { name: "handshake", run: gondwana_fabric::fuzzing::handshake },
    Target { name: "frames", run: gondwana_fabric::fuzzing::frames },
    Target { name: "messages", run: gondwana_node::fuzzing::message },
    // What processes of the run say to each other, and what others ask of it.
    Target { name: "control", run: control },
    Target { name: "agent", run: commands::agent },
    Target { name: "asking", run: commands::asking },
    // Files.
    Target { name: "recording", run: recordings::recording },
    Target { name: "plan", run: plans::plan },
    Target { name: "machine", run: texts::machine },
    Target { name: "sets", run: texts::sets },
    // What the kernel tells.
    Target { name: "sysfs", run: kernel::computer },
    Target { name: "proc", run: kernel::process },
];

/// The target of a name.
#[must_use]
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().find(|target| target.name == name).copied()
}

/// What a node and the launcher say to each other.
fn control(bytes: &[u8]) {
    if let Ok(report) = serde_json::from_slice::<Report>(bytes) {
        let sent = serde_json::to_vec(&report).expect("reports are JSON");
        assert_eq!(serde_json::from_slice::<Report>(&sent).ok(), Some(report));
    }
    let _ = serde_json::from_slice::<Order>(bytes);
}
