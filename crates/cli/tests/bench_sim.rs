//! `gondwana bench sim` with few programs at their small sizes.

mod common;

use common::folder::Folder;
use common::whole::{Ran, run, whole};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A few runs of at most some seconds each, on a computer with ten times as many runnable threads as processors.
const LIMIT: Duration = Duration::from_secs(300);

fn bench(folder: &Folder, valgrind: &Path, options: &str) -> Ran {
    let apps = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../apps"));
    let mut command = Command::new(&whole().gondwana);
    command.args(["bench", "sim", "--small", "--json", "out.json", "--apps"]).arg(apps);
    command.arg("--valgrind").arg(valgrind).args(options.split_whitespace());
    run(command.current_dir(&**folder), LIMIT)
}

fn programs(folder: &Folder) -> Vec<Value> {
    let json: Value = serde_json::from_str(&fs::read_to_string(folder.join("out.json")).unwrap()).unwrap();
    json["programs"].as_array().unwrap().clone()
}

/// A command that answers like valgrind, and runs the program as it is.
fn stand_in(folder: &Folder, after: &str) -> std::path::PathBuf {
    let path = folder.join("valgrind");
    let script = format!(
        r#"#!/bin/sh
        if [ "$1" = --version ]; then echo valgrind-0; exit; fi
        while :; do
            case $1 in
                --cachegrind-out-file=*) file=${{1#*=}} ;;
                --tool=cachegrind | --cache-sim=yes) ;;
                *) break ;;
            esac
            shift
        done
        printf 'events: Ir Dr Dw\nsummary: 9 600 30\n' >"$file"
        "$@"
        {after}
        "#
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn the_simulator_stands_beside_cachegrind() {
    let folder = Folder::new();
    let ran = bench(&folder, &stand_in(&folder, ""), "--only chase --only lu --rounds 2");
    assert!(ran.status.is_some_and(|status| status.success()), "{}{}", ran.output, ran.errors);
    assert!(ran.output.contains("valgrind-0 --tool=cachegrind --cache-sim=yes"), "{}", ran.output);
    let programs = programs(&folder);
    let names: Vec<&str> = programs.iter().map(|program| program["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["chase", "lu-serial", "lu"]);
    // One load for each step of the chase, and a few thousand to make the lines.
    let accesses = programs[0]["accesses"].as_u64().unwrap();
    assert!((1_000_000..1_010_000).contains(&accesses), "{accesses}");
    for program in &programs {
        let time = |of: &str| program[of]["nanoseconds"]["min"].as_f64().unwrap();
        assert_eq!(program["cachegrind"]["references"], 630);
        assert_eq!(program["native"]["nanoseconds"]["samples"], 2);
        let accesses = program["accesses"].as_f64().unwrap();
        let ratio = (accesses / time("simulated")) / (630.0 / time("cachegrind"));
        assert!((program["ratio"].as_f64().unwrap() / ratio - 1.0).abs() < 1e-9, "{program}");
        let bound = accesses / time("native") * 1e9;
        assert!((program["bound_per_second"].as_f64().unwrap() / bound - 1.0).abs() < 1e-9, "{program}");
    }
}

#[test]
fn without_valgrind_the_simulators_figures_are_there() {
    let folder = Folder::new();
    let ran = bench(&folder, Path::new("/nowhere/valgrind"), "--only radix --rounds 1");
    assert!(ran.status.is_some_and(|status| status.success()), "{}{}", ran.output, ran.errors);
    let sentence = "radix  not measured under cachegrind: /nowhere/valgrind cannot be run: install valgrind";
    assert!(ran.output.contains(sentence), "{}", ran.output);
    let program = &programs(&folder)[0];
    assert!(program["simulated"]["accesses_per_second"].as_f64().unwrap() > 0.0, "{program}");
    assert!(
        program["cachegrind"]["not_measured"].as_str().unwrap().contains("install valgrind"),
        "{program}"
    );
}

#[test]
fn another_result_under_valgrind_is_an_error() {
    let folder = Folder::new();
    let ran = bench(&folder, &stand_in(&folder, "echo more"), "--only radix --rounds 1");
    assert_eq!(ran.status.and_then(|ended| ended.code()), Some(1), "{}{}", ran.output, ran.errors);
    assert!(ran.output.contains("radix  not measured under cachegrind: printed '"), "{}", ran.output);
}

/// Where there is a valgrind, its file is understood.
#[test]
fn cachegrind_itself() {
    let found = Command::new("valgrind").arg("--version").output();
    if !found.is_ok_and(|found| found.status.success()) {
        println!("skipped: there is no valgrind");
        return;
    }
    let folder = Folder::new();
    let ran = bench(&folder, Path::new("valgrind"), "--only chase --rounds 1");
    assert!(ran.status.is_some_and(|status| status.success()), "{}{}", ran.output, ran.errors);
    let references = programs(&folder)[0]["cachegrind"]["references"].as_u64().unwrap();
    assert!((1_000_000..1_200_000).contains(&references), "{references}");
}
