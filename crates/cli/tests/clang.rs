//! OpenMP as clang compiles it: the test programs and workloads run on nodes as they do natively.
//!
//! Without clang and its runtime the tests are skipped; `GONDWANA_CLANG=required` makes them fail instead.

mod common;

use common::c_api::root;
use common::folder::Folder;
use common::whole::{LIMIT, run, whole};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

/// Nodes, fabric and consistency.
const WAYS: [[&str; 3]; 5] =
    [["2", "shm", "auto"], ["3", "shm", "rc"], ["2", "tcp", "auto"], ["4", "shm", "sc"], ["4", "tcp", "rc"]];

/// Variables of the environment of all programs: without it nothing is cancelled.
const VARIABLES: [(&str, &str); 1] = [("OMP_CANCELLATION", "true")];

/// Programs of `tests/programs/openmp`.
const PROGRAMS: [&str; 14] = [
    "regions",
    "loops",
    "sums",
    "tasks",
    "cancel",
    "detach",
    "copyin",
    "places",
    "doacross",
    "league",
    "reductions",
    "task_sums",
    "floating",
    "allocators",
];

/// Workloads, at their small sizes.
const WORKLOADS: [&str; 6] = ["omp-adi", "omp-cg", "omp-fft3d", "omp-multigrid", "omp-sort", "omp-tasks"];

/// Compiles a program, with more options.
fn compile(options: &[&str], sources: &[&Path], to: &Path) -> Output {
    let mut clang = Command::new("clang");
    clang
        .args(["-std=c11", "-D_GNU_SOURCE", "-O2", "-g", "-fopenmp", "-pthread"])
        .args(options)
        .args(sources);
    clang.arg("-o").arg(to).arg("-lm").output().unwrap_or_else(|error| panic!("{clang:?}: {error}"))
}

/// True if there is a clang that compiles OpenMP; a line says so if there is none and none is required.
fn is_there() -> bool {
    let folder = Folder::new();
    let source = folder.join("empty.c");
    fs::write(&source, "#include <omp.h>\nint main(void) { return omp_in_parallel(); }").unwrap();
    let is_there = Command::new("clang").arg("--version").output().is_ok()
        && compile(&[], &[&source], &folder.join("empty")).status.success();
    if !is_there {
        let required = std::env::var_os("GONDWANA_CLANG").is_some_and(|value| value == "required");
        assert!(!required, "there is no clang with libomp");
        // Not through the macros, whose output the test harness hides when tests pass.
        let line = b"skipped: OpenMP by clang, because there is no clang with libomp (apt install clang libomp-dev)\n";
        let _ = std::io::stderr().write_all(line);
    }
    is_there
}

/// Compiles a program with more options, and runs it on nodes in all these ways as `native` runs, or as it does itself.
fn runs_as_natively(
    compiler_options: &[&str],
    sources: &[&Path],
    native: Option<&Path>,
    options: &[&str],
    ways: &[[&str; 3]],
) {
    let folder = Folder::new();
    let name = sources[0].file_stem().unwrap();
    let program = folder.join(name);
    let compiled = compile(compiler_options, sources, &program);
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let program = program.to_str().unwrap();
    let mut command = Command::new(native.unwrap_or(Path::new(program)));
    let native = run(command.args(options).envs(VARIABLES), LIMIT);
    assert!(
        native.status.is_some_and(|status| status.success()),
        "natively: {}{}",
        native.output,
        native.errors
    );
    for way in ways {
        let [nodes, fabric, consistency] = way;
        let on = ["-n", nodes, "--fabric", fabric, "--consistency", consistency, "--", program];
        let ran = run(whole().run(&folder, &[&on, options].concat()).envs(VARIABLES), LIMIT);
        assert_eq!((ran.status, &ran.output), (native.status, &native.output), "{way:?}: {}", ran.errors);
    }
}

/// What gcc has compiled is compared with: clang's own runtime loses a last value of a dynamic loop now and then.
#[test]
fn test_programs_run_as_natively() {
    for name in PROGRAMS.iter().filter(|_| is_there()) {
        let source = root().join("tests/programs/openmp").join(name).with_extension("c");
        let native = whole().programs.join("openmp").join(name);
        runs_as_natively(&[], &[&source], Some(&native), &["-p", "4"], &WAYS);
    }
}

#[test]
fn threadprivate_variables_need_not_be_thread_local() {
    if is_there() {
        let source = root().join("tests/programs/openmp/copyin.c");
        runs_as_natively(&["-fnoopenmp-use-tls"], &[&source], None, &["-p", "4"], &WAYS);
    }
}

/// What Intel's compilers call, called by hand.
#[test]
fn loops_over_teams_and_threads_at_once_run_as_natively() {
    if is_there() {
        let source = root().join("crates/cli/tests/programs/distributed.c");
        runs_as_natively(&[], &[&source], None, &[], &WAYS);
    }
}

/// Under `rc` its atomic instructions are not seen.
#[test]
fn what_only_clangs_library_has_runs_as_natively() {
    if is_there() {
        let source = root().join("crates/cli/tests/programs/clang_calls.c");
        runs_as_natively(&[], &[&source], None, &[], &WAYS.map(|[nodes, fabric, _]| [nodes, fabric, "auto"]));
    }
}

#[test]
fn workloads_run_as_natively() {
    let apps = root().join("apps");
    for name in WORKLOADS.iter().filter(|_| is_there()) {
        let source = apps.join(name).with_extension("c");
        runs_as_natively(&[], &[&source, &apps.join("common.c")], None, &["-p", "4"], &WAYS);
    }
}

/// It polls flags, between calls for a flush: `auto` must see that.
#[test]
fn flags_are_polled_under_sequential_consistency() {
    let apps = root().join("apps");
    if is_there() {
        let sources: [&Path; 2] = [&apps.join("omp-wavefront.c"), &apps.join("common.c")];
        runs_as_natively(&[], &sources, None, &["-p", "3"], &[["2", "shm", "auto"], ["3", "tcp", "auto"]]);
    }
}
