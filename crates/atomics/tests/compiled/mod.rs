//! Programs of the tests, as compilers make them.

#![allow(dead_code, reason = "each file of tests uses a part of it")]

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// What a compiler makes of a file beside the tests.
pub(crate) fn compiled(compiler: &str, source: &str, options: &[&str]) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    // Tests that run side by side compile the same programs.
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Relaxed);
    let name = format!("gondwana-{source}-{}-{count}", std::process::id());
    let output = std::env::temp_dir().join(name);
    let mut command = Command::new(compiler);
    command.args(options).arg(folder.join(source)).arg("-o").arg(&output);
    assert!(command.status().unwrap().success(), "{command:?}");
    let image = std::fs::read(&output).unwrap();
    std::fs::remove_file(output).unwrap();
    image
}

/// True if there is a clang.
pub(crate) fn has_clang() -> bool {
    let is_there = Command::new("clang").arg("--version").output().is_ok();
    let required = std::env::var_os("GONDWANA_CLANG").is_some_and(|value| value == "required");
    assert!(is_there || !required, "there is no clang");
    is_there
}
