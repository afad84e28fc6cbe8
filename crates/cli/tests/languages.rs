//! Programs in other languages than C and C++, with the libraries for threads that people use there.

mod common;

use common::whole::{LIMIT, run, whole};
use std::path::PathBuf;
use std::process::Command;

/// A program that cargo has built beside the command.
fn built(name: &str) -> PathBuf {
    whole().gondwana.with_file_name("examples").join(name)
}

/// Runs a program natively, and in several ways on nodes: it prints the same.
fn runs_as_natively(program: &str) {
    let program = built(program);
    let native = run(&mut Command::new(&program), LIMIT);
    assert!(native.status.is_some_and(|status| status.success()), "{}", native.errors);
    for (nodes, fabric) in [("2", "shm"), ("3", "tcp"), ("4", "shm"), ("2", "tcp")] {
        let mut command = whole().run(&std::env::temp_dir(), &["-n", nodes, "--fabric", fabric, "--"]);
        let ran = run(command.arg(&program), LIMIT);
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
    runs_as_natively("work_stealing");
}

#[test]
fn threads_of_parking_lot_wake_each_other() {
    runs_as_natively("parked_threads");
}
