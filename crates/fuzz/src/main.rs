//! Runs one target under libFuzzer: the variable GONDWANA_FUZZ names it.

#![no_main]

use gondwana_fuzz::{TARGETS, Target, target};
use std::sync::LazyLock;

static CHOSEN: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("GONDWANA_FUZZ").unwrap_or_default();
    target(&name).unwrap_or_else(|| {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        panic!("GONDWANA_FUZZ names no target: use one of {}", names.join(", "))
    })
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (CHOSEN.run)(bytes));
