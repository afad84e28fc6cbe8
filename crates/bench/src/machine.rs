//! The computer that the figures are from.

use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// How many threads wanted to run in the last minute: figures from a busy computer are worth little.
pub(crate) fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// Facts without which the figures say nothing. `load_before` is what [`load`] said before the measurement; the date is
/// in seconds since 1970.
pub(crate) fn facts(load_before: Option<f64>) -> Value {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    json!({
        "date": SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
        "processor": model.map_or("unknown", |(_, name)| name),
        "processors": gondwana_launcher::probes::processors(),
        "load_before": load_before,
        "kernel": kernel.trim_end(),
        "version": env!("CARGO_PKG_VERSION"),
    })
}
