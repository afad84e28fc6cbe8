//! Cargo, called by a test.

use std::process::Command;

/// Without what it tells the test of its package: a build script looks at that, so that half of the workspace would be built again, here
/// and in the next run of the tests.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars_os() {
        let begins_with = |of: &&str| name.as_encoded_bytes().starts_with(of.as_bytes());
        if ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(begins_with) {
            cargo.env_remove(name);
        }
    }
    cargo
}
