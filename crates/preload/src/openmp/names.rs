//! The names of the compiler's runtime: each is defined here, or it is decided that the runtime itself serves it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// What clang's library serves besides: tools, atomic instructions for which there is a function (programs that call them run under `sc`), what
/// its own modules call, and hints (how long threads poll, what they are bound to).
const OTHERS_OF_CLANG: [&str; 8] =
    ["ompt_", "omp_control_tool", "__kmpc_atomic_", "__kmp_", "___kmp_", "kmp_", "kmpc_", "_You_must_link"];

/// What it serves of clang's own entry points.
const SERVED_BY_CLANG: &str = "
    __kmpc_error __kmpc_get_parent_taskid __kmpc_get_taskid __kmpc_get_target_offload __kmpc_invoke_task_func
    __kmpc_pause_resource __kmpc_pop_num_threads
    omp_get_interop_int omp_get_interop_name omp_get_interop_ptr omp_get_interop_rc_desc omp_get_interop_str
    omp_get_interop_type_desc omp_get_num_interop_properties
";

/// The functions that clang's library adds to OpenMP, and that must be ours: blocks and stacks would else be another library's.
const EXTENSIONS: [&str; 6] =
    ["kmp_malloc", "kmp_calloc", "kmp_realloc", "kmp_aligned_malloc", "kmp_free", "kmp_set_stacksize"];

/// OpenACC, what plug-ins for devices call, and the versions of the interface.
const OTHERS: [&str; 8] =
    ["acc_", "GOACC_", "GOMP_PLUGIN_", "GOMP_offload_", "GOMP_1.", "GOMP_2.", "OMP_", "OACC_"];

/// What libgomp serves. It touches no other thread and knows nothing of teams: devices (there are none), the defaults of `teams`, and what
/// gcc before version 5 calls for `target`.
const SERVED: &str = "
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

/// The words of all files in a folder of the sources but this one.
fn words(folder: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() && !path.ends_with("names.rs") {
            let text = std::fs::read_to_string(path).unwrap();
            let separates = |letter: char| letter != '_' && !letter.is_ascii_alphanumeric();
            words.extend(text.split(separates).map(str::to_owned));
        }
    }
    words
}

/// The names that a compiler's library defines; `None` if there is no such compiler or library here.
fn names(compiler: &str, library: &str) -> Option<Vec<String>> {
    let found = output(Command::new(compiler).arg(format!("-print-file-name={library}")))?;
    let names = output(Command::new("nm").args(["-D", "--defined-only", found.trim()]))?;
    let name = |line: &str| {
        let last = line.split_whitespace().last().unwrap_or("");
        last.split('@').next().unwrap_or("").to_owned()
    };
    let all: Vec<String> = names.lines().map(name).collect();
    assert!(all.len() > 100, "{names}");
    Some(all)
}

/// True if it is among these; Fortran's forms are decided on with the function.
fn is_in(list: &str, name: &str) -> bool {
    let plain = name.trim_end_matches("_8_").trim_end_matches('_');
    list.split_whitespace().any(|other| other == plain)
}

#[test]
fn each_name_of_libgomp_is_defined_or_served_by_it() {
    let Some(all) = names("gcc", "libgomp.so") else {
        println!("skipped: there is no gcc with libgomp.so here");
        return;
    };
    let ours = words("src/openmp");
    let open = |name: &&String| {
        let other = OTHERS.iter().any(|start| name.starts_with(start));
        // Such as GOMP_4.0: the version is the symbol's name.
        let version = name.contains('.');
        !other && !version && !ours.contains(*name) && !is_in(SERVED, name)
    };
    let undecided: Vec<&String> = all.iter().filter(open).collect();
    assert!(undecided.is_empty(), "{undecided:?}");
}

#[test]
fn each_name_of_clangs_library_is_defined_or_served_by_it() {
    let Some(all) = names("clang", "libomp.so") else {
        println!("skipped: there is no clang with libomp.so here");
        return;
    };
    let ours: BTreeSet<String> = words("src/openmp").union(&words("src/openmp/kmpc")).cloned().collect();
    let open = |name: &&String| {
        let is_of_gcc = OTHERS.iter().any(|start| name.starts_with(start)) || name.starts_with("GOMP_");
        let other = is_of_gcc || OTHERS_OF_CLANG.iter().any(|start| name.starts_with(start));
        // Constants such as `omp_default_mem_alloc`.
        let constant = name.ends_with("_alloc") || name.ends_with("_space") || name.ends_with("_allocator");
        let served = is_in(SERVED, name) || is_in(SERVED_BY_CLANG, name);
        !other && !constant && name.contains("mp") && !ours.contains(*name) && !served
    };
    let undecided: Vec<&String> = all.iter().filter(open).collect();
    assert!(undecided.is_empty(), "{undecided:?}");
    assert!(EXTENSIONS.iter().all(|name| ours.contains(*name)));
}
