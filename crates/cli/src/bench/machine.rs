//! The computer that the figures are from.

use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// Facts without which the figures say nothing. The date is in seconds since 1970.
pub fn facts() -> Value {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    json!({
        "date": SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
        "processor": model.map_or("unknown", |(_, name)| name),
        "processors": crate::doctor::probes::processors(),
        "kernel": kernel.trim_end(),
        "version": env!("CARGO_PKG_VERSION"),
    })
}
