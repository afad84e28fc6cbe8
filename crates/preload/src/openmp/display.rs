//! `OMP_DISPLAY_ENV`: the settings of the run, as libgomp shows its own. libgomp itself is kept from it by the launcher, on every node.

use super::affinity;
use super::places;
use super::settings::{self, Settings};
use crate::report;
use gondwana_node::Node;
use libc::c_int;
use std::fmt::Write;

/// The version of OpenMP that gcc 12 and its library implement: `_OPENMP`.
const VERSION: u32 = 201_511;

/// What is shown.
fn described(settings: &Settings, places: &str, verbose: bool) -> String {
    let Settings { threads, dynamic, levels, schedule, limit, priority, cancellation, .. } = settings;
    let truth = |value: bool| if value { "TRUE" } else { "FALSE" }.to_owned();
    let said = |name: &str, otherwise: &str| {
        std::env::var(name).ok().filter(|value| !value.is_empty()).unwrap_or_else(|| otherwise.to_owned())
    };
    let list = threads.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let stack = settings.stack.unwrap_or(0).to_string();
    let mut entries = vec![
        ("_OPENMP", VERSION.to_string()),
        ("OMP_DYNAMIC", truth(*dynamic)),
        ("OMP_NESTED", truth(*levels > 1)),
        ("OMP_NUM_THREADS", list),
        ("OMP_SCHEDULE", schedule.to_string()),
        ("OMP_PROC_BIND", settings.bind.name().to_owned()),
        ("OMP_PLACES", places.to_owned()),
        ("OMP_STACKSIZE", stack.clone()),
        ("OMP_WAIT_POLICY", said("OMP_WAIT_POLICY", "PASSIVE").to_ascii_uppercase()),
        ("OMP_THREAD_LIMIT", limit.to_string()),
        ("OMP_MAX_ACTIVE_LEVELS", levels.to_string()),
        ("OMP_NUM_TEAMS", said("OMP_NUM_TEAMS", "0")),
        ("OMP_TEAMS_THREAD_LIMIT", said("OMP_TEAMS_THREAD_LIMIT", "0")),
        ("OMP_CANCELLATION", truth(*cancellation)),
        ("OMP_DEFAULT_DEVICE", said("OMP_DEFAULT_DEVICE", "0")),
        ("OMP_MAX_TASK_PRIORITY", priority.to_string()),
        ("OMP_DISPLAY_AFFINITY", truth(settings.display_affinity)),
        ("OMP_AFFINITY_FORMAT", affinity::present()),
        ("OMP_ALLOCATOR", said("OMP_ALLOCATOR", "omp_default_mem_alloc")),
        ("OMP_TARGET_OFFLOAD", said("OMP_TARGET_OFFLOAD", "DEFAULT").to_ascii_uppercase()),
    ];
    if verbose {
        entries.push(("GOMP_STACKSIZE", stack));
    }
    let mut text = "\nOPENMP DISPLAY ENVIRONMENT BEGIN".to_owned();
    for (name, value) in entries {
        // Writing to a string does not fail.
        let _ = write!(text, "\n  {name} = '{value}'");
    }
    text + "\nOPENMP DISPLAY ENVIRONMENT END"
}

fn display(verbose: bool) {
    report::plain(&described(settings::get(), &places::described(), verbose));
}

/// Before the program begins: shows the settings if the user wants that and the program uses OpenMP.
pub(super) fn begin(node: &Node) {
    // Another node cannot read the environment before it serves: `environ` may be in shared memory.
    if node.id().index() != 0 {
        return;
    }
    let Ok(wish) = std::env::var("OMP_DISPLAY_ENV") else { return };
    let wish = wish.trim().to_ascii_lowercase();
    let (shows, verbose) = (matches!(wish.as_str(), "true" | "1" | "verbose"), wish == "verbose");
    if shows && settings::library().is_some() {
        display(verbose);
    }
}

/// # Safety
/// As OpenMP says.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn omp_display_env(verbose: c_int) {
    display(verbose != 0);
}

/// # Safety
/// As OpenMP says.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn omp_display_env_(verbose: *const c_int) {
    // SAFETY: Fortran passes the address of its argument.
    display(unsafe { *verbose } != 0);
}

/// # Safety
/// As OpenMP says.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn omp_display_env_8_(verbose: *const i64) {
    // SAFETY: Fortran passes the address of its argument.
    display(unsafe { *verbose } != 0);
}
