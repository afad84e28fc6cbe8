//! OpenMP as clang compiles it: the test programs and workloads run on nodes as they do natively.
//!
//! Without clang and its runtime the tests are skipped; `GONDWANA_CLANG=required` makes them fail instead.

mod common;

use common::c_api::root;
use common::folder::Folder;
use common::whole::{LIMIT, run, whole};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Nodes, fabric and consistency.
const WAYS: [[&str; 3]; 5] =
    [["2", "shm", "auto"], ["3", "shm", "rc"], ["2", "tcp", "auto"], ["4", "shm", "sc"], ["4", "tcp", "rc"]];

/// Programs of `tests/programs/openmp`. Under `rc` what is not only reductions must not run.
const PROGRAMS: [&str; 4] = ["regions", "loops", "sums", "tasks"];

/// Workloads, at their small sizes.
const WORKLOADS: [&str; 6] = ["omp-adi", "omp-cg", "omp-multigrid", "omp-fft3d", "omp-sort", "omp-tasks"];

/// Compiles a program; false if there is no clang that can.
fn compile(sources: &[&Path], to: &Path) -> bool {
    let mut clang = Command::new("clang");
    clang.args(["-std=c11", "-D_GNU_SOURCE", "-O2", "-g", "-fopenmp", "-pthread"]).args(sources);
    clang.arg("-o").arg(to).arg("-lm");
    let compiled = clang.output().is_ok_and(|output| output.status.success());
    if !compiled {
        let required = std::env::var_os("GONDWANA_CLANG").is_some_and(|value| value == "required");
        assert!(!required, "{clang:?} does not compile: clang and libomp are required");
        // Not through the macros, whose output the test harness hides when tests pass.
        let line = b"skipped: OpenMP by clang, because there is no clang with libomp (apt install clang libomp-dev)\n";
        let _ = std::io::stderr().write_all(line);
    }
    compiled
}

/// Runs a program on nodes in all ways.
fn equals_native(folder: &Folder, options: &[&str], ways: &[[&str; 3]]) {
    let native = run(Command::new("./program").args(options).current_dir(&**folder), LIMIT);
    assert!(
        native.status.is_some_and(|status| status.success()),
        "natively: {}{}",
        native.output,
        native.errors
    );
    for way in ways {
        let [nodes, fabric, consistency] = way;
        let on = ["-n", nodes, "--fabric", fabric, "--consistency", consistency, "--", "./program"];
        let ran = run(&mut whole().run(folder, &[&on, options].concat()), LIMIT);
        assert_eq!((ran.status, &ran.output), (native.status, &native.output), "{way:?}: {}", ran.errors);
    }
}

#[test]
fn test_programs_run_as_natively() {
    for name in PROGRAMS {
        let folder = Folder::new();
        let source = root().join("tests/programs/openmp").join(name).with_extension("c");
        if compile(&[&source], &folder.join("program")) {
            equals_native(&folder, &["-p", "4"], &WAYS);
        }
    }
}

#[test]
fn workloads_run_as_natively() {
    let apps = root().join("apps");
    for name in WORKLOADS {
        let folder = Folder::new();
        let source = apps.join(name).with_extension("c");
        if compile(&[&source, &apps.join("common.c")], &folder.join("program")) {
            equals_native(&folder, &["-p", "4"], &WAYS);
        }
    }
}

/// It polls flags, between calls for a flush: `auto` must see that.
#[test]
fn flags_are_polled_under_sequential_consistency() {
    let (folder, apps) = (Folder::new(), root().join("apps"));
    if compile(&[&apps.join("omp-wavefront.c"), &apps.join("common.c")], &folder.join("program")) {
        equals_native(&folder, &["-p", "3"], &[["2", "shm", "auto"], ["3", "tcp", "auto"]]);
    }
}
