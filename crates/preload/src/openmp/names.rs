//! The names of the compiler's runtime: each is defined here, or it is decided that the runtime itself serves it.

use std::path::Path;
use std::process::Command;

/// OpenACC, what plug-ins for devices call, and the versions of the interface.
const OTHERS: [&str; 8] =
    ["acc_", "GOACC_", "GOMP_PLUGIN_", "GOMP_offload_", "GOMP_1.", "GOMP_2.", "OMP_", "OACC_"];

/// What libgomp serves. It touches no other thread and knows nothing of teams: allocators, devices (there are none), the
/// defaults of `teams`, and what gcc before version 5 calls for `target`.
const SERVED: &str = "
    GOMP_free omp_free omp_init_allocator omp_destroy_allocator
    omp_get_default_device omp_set_default_device omp_get_device_num omp_get_initial_device omp_get_num_devices
    omp_is_initial_device omp_pause_resource omp_pause_resource_all omp_target_alloc omp_target_associate_ptr
    omp_target_disassociate_ptr omp_target_free omp_target_is_present omp_target_memcpy omp_target_memcpy_rect
    omp_get_max_teams omp_set_num_teams omp_get_teams_thread_limit omp_set_teams_thread_limit
    GOMP_error GOMP_warning GOMP_target GOMP_target_data GOMP_target_data_ext GOMP_target_end_data
    GOMP_target_update GOMP_teams
";

/// What a command prints; `None` where there is no such command.
fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

/// The words of all files here but this one.
fn words() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/openmp");
    let mut words = vec![];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() && !path.ends_with("names.rs") {
            let text = std::fs::read_to_string(path).unwrap();
            let separates = |letter: char| letter != '_' && !letter.is_ascii_alphanumeric();
            words.extend(text.split(separates).map(str::to_owned));
        }
    }
    words.sort_unstable();
    words.dedup();
    words
}

#[test]
fn each_name_of_libgomp_is_defined_or_served_by_it() {
    let found = output(Command::new("gcc").arg("-print-file-name=libgomp.so"));
    let path = found.as_deref().map_or("", str::trim);
    let Some(names) = output(Command::new("nm").args(["-D", "--defined-only", path])) else {
        println!("skipped: there is no gcc with libgomp.so here");
        return;
    };
    let words = words();
    let ours = |name: &str| words.binary_search_by(|word| word.as_str().cmp(name)).is_ok();
    // Fortran's forms are decided on with the function.
    let served = |name: &str| {
        let plain = name.trim_end_matches("_8_").trim_end_matches('_');
        SERVED.split_whitespace().any(|other| other == plain)
    };
    let name = |line: &str| {
        let last = line.split_whitespace().last().unwrap_or("");
        last.split('@').next().unwrap_or("").to_owned()
    };
    let all: Vec<String> = names.lines().map(name).collect();
    assert!(all.len() > 100, "{names}");
    let open = |name: &&String| {
        let other = OTHERS.iter().any(|start| name.starts_with(start));
        // Such as GOMP_4.0: the version is the symbol's name.
        let version = name.contains('.');
        !other && !version && !ours(name) && !served(name)
    };
    let undecided: Vec<&String> = all.iter().filter(open).collect();
    assert!(undecided.is_empty(), "{undecided:?}");
}
