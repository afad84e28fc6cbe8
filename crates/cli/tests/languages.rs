//! Programs in other languages than C and C++, with the libraries for threads that people use there.

mod common;

use common::folder::Folder;
use common::whole::{LIMIT, run, whole};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that cargo has built beside the command.
fn built(name: &str) -> PathBuf {
    whole().gondwana.with_file_name("examples").join(name)
}

/// Nodes and fabrics.
const WAYS: [(&str, &str); 4] = [("2", "shm"), ("3", "tcp"), ("4", "shm"), ("2", "tcp")];

/// Runs a program natively, and in several ways on nodes: it prints the same.
fn runs_as_natively(program: &Path, ways: &[(&str, &str)]) {
    let native = run(&mut Command::new(program), LIMIT);
    assert!(native.status.is_some_and(|status| status.success()), "{}", native.errors);
    for (nodes, fabric) in ways {
        let mut command = whole().run(&std::env::temp_dir(), &["-n", nodes, "--fabric", fabric, "--"]);
        let ran = run(command.arg(program), LIMIT);
        assert!(
            ran.status == native.status && ran.output == native.output,
            "{nodes} nodes over {fabric}: {:?}\n{}{}",
            ran.status,
            ran.output,
            ran.errors
        );
    }
}

#[test]
fn threads_of_rayon_steal_from_each_other() {
    runs_as_natively(&built("work_stealing"), &WAYS);
}

#[test]
fn threads_of_parking_lot_wake_each_other() {
    runs_as_natively(&built("parked_threads"), &WAYS);
}

#[test]
fn threads_of_crossbeam_steal_and_free_by_epochs() {
    runs_as_natively(&built("stolen_tasks"), &WAYS);
}

#[test]
fn tasks_of_tokio_are_done_by_threads_of_all_nodes() {
    runs_as_natively(&built("asynchronous_tasks"), &WAYS);
}

#[test]
fn fortran_has_regions_with_integers_of_any_kind() {
    let folder = Folder::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/regions.f90");
    for (name, options) in [("regions", &[][..]), ("regions8", &["-fdefault-integer-8"])] {
        let mut compiler = Command::new("gfortran");
        compiler.args(["-O2", "-fopenmp", "-o", name]).args(options).arg(&source).current_dir(&*folder);
        if !compiler.status().is_ok_and(|status| status.success()) {
            eprintln!("skipped: there is no gfortran here");
            return;
        }
        runs_as_natively(&folder.join(name), &WAYS);
    }
}

#[test]
fn cpp_computes_in_parallel_by_tbb() {
    let folder = Folder::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/parallel.cpp");
    let mut compiler = Command::new("g++");
    compiler.args(["-std=c++17", "-O2", "-o", "parallel"]).arg(&source).arg("-ltbb").current_dir(&*folder);
    let is_there = Command::new("g++")
        .args(["-std=c++17", "-fsyntax-only", "-include", "tbb/tbb.h", "-xc++", "/dev/null"])
        .status();
    if !is_there.is_ok_and(|status| status.success()) {
        assert_ne!(std::env::var("GONDWANA_TBB").as_deref(), Ok("required"), "there is no TBB here");
        eprintln!("skipped: there is no TBB here");
        return;
    }
    assert!(compiler.status().is_ok_and(|status| status.success()));
    runs_as_natively(&folder.join("parallel"), &WAYS);
}

/// Runs a Python program that needs a module natively and in some ways on nodes: it prints the same.
fn python_runs_as_natively(module: &str, program: &str, ways: &[(&str, &str)]) {
    let ask = |code: &str| run(Command::new("python3").args(["-c", code]), LIMIT);
    // What the shell finds may be a script that looks for Python.
    let python = ask(&format!("import sys, {module}; print(sys.executable)"));
    if !python.status.is_some_and(|status| status.success()) {
        eprintln!("skipped: python3 has no {module} here");
        return;
    }
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(program);
    let words = [python.output.trim(), program.to_str().unwrap()];
    let native = run(Command::new(words[0]).arg(words[1]), LIMIT);
    assert!(native.status.is_some_and(|status| status.success()), "{}", native.errors);
    for (nodes, fabric) in ways {
        let options = ["-n", nodes, "--fabric", fabric, "--", words[0], words[1]];
        let ran = run(&mut whole().run(&std::env::temp_dir(), &options), LIMIT);
        assert_eq!(
            (&ran.output, &ran.errors),
            (&native.output, &native.errors),
            "{nodes} nodes over {fabric}"
        );
        assert_eq!(ran.status, native.status);
    }
}

#[test]
fn numpy_computes_as_natively() {
    python_runs_as_natively("numpy", "numpy_threads.py", &[("2", "shm"), ("3", "shm"), ("2", "tcp")]);
}

#[test]
fn python_starts_processes_from_threads_of_all_nodes() {
    python_runs_as_natively("subprocess", "subprocesses.py", &[("2", "shm"), ("4", "shm"), ("2", "tcp")]);
}

#[test]
fn python_has_pools_queues_and_locks_of_processes() {
    python_runs_as_natively("multiprocessing", "processes.py", &[("2", "shm"), ("4", "shm")]);
}

#[test]
fn java_has_pools_monitors_garbage_sockets_and_files() {
    let folder = Folder::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/Threads.java");
    let compiled = Command::new("javac").arg("-d").arg(&*folder).arg(source).status();
    if !compiled.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no javac here");
        return;
    }
    for words in [&["java", "-version"][..], &["java", "-cp", ".", "Threads"]] {
        let native = run(Command::new(words[0]).args(&words[1..]).current_dir(&*folder), LIMIT);
        assert!(native.status.is_some_and(|status| status.success()), "{}", native.errors);
        for (nodes, fabric) in [("2", "shm"), ("2", "tcp"), ("4", "shm")] {
            let options = [&["-n", nodes, "--fabric", fabric, "--"], words].concat();
            let ran = run(&mut whole().run(&folder, &options), LIMIT);
            assert_eq!(
                (&ran.output, &ran.errors, ran.status),
                (&native.output, &native.errors, native.status),
                "{nodes} nodes over {fabric}: {words:?}"
            );
        }
    }
}
