//! `gondwana bench apps` with few programs at their small sizes.

mod common;

use common::folder::Folder;
use common::whole::{Ran, run, whole};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A few runs of at most a second each, on a computer with ten times as many runnable threads as processors.
const LIMIT: Duration = Duration::from_secs(300);

fn bench(folder: &Folder, apps: &Path, options: &str) -> Ran {
    let mut command = Command::new(&whole().gondwana);
    command.args(["bench", "apps", "--small", "--apps"]).arg(apps).args(options.split_whitespace());
    run(command.current_dir(&**folder), LIMIT)
}

fn sources() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../apps"))
}

/// Fills the folder with workloads that all run this script on nodes, and print `result: 2` natively.
fn workloads_that(folder: &Folder, on_nodes: &str) {
    let program = format!(
        r#"
        #include <stdio.h>
        #include <string.h>
        #include <unistd.h>
        int main(void)
        {{
            char line[4096];
            FILE *maps = fopen("/proc/self/maps", "r");
            const char *result = "result: 2";
            while (fgets(line, sizeof line, maps))
                if (strstr(line, "libgondwana.so")) {{
                    {on_nodes};
                    break;
                }}
            puts(result);
            fputs("time: 0.1\n", stderr);
        }}"#
    );
    fs::write(folder.join("program.c"), program).unwrap();
    fs::write(folder.join("Makefile"), "$(OUT)/%: program.c\n\tgcc -o $@ $<\n").unwrap();
}

#[test]
fn runs_on_nodes_are_compared_with_native_ones() {
    let folder = Folder::new();
    let ran =
        bench(&folder, sources(), "--only volrend --only ocean --only lu-plain --rounds 2 --json out.json");
    assert!(ran.status.is_some_and(|status| status.success()), "{}{}", ran.output, ran.errors);
    assert!(ran.output.starts_with("2 nodes, natively "), "{}", ran.output);
    let json: Value = serde_json::from_str(&fs::read_to_string(folder.join("out.json")).unwrap()).unwrap();
    let programs = json["programs"].as_array().unwrap();
    let names: Vec<&str> = programs.iter().map(|program| program["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["volrend", "lu-plain", "ocean-plain", "ocean-parts"]);
    for program in programs {
        for fabric in ["shm", "tcp"] {
            let on = &program[fabric];
            for part in ["whole", "own"] {
                let [native, on_nodes] = [&program["native_nanoseconds"], &on["nanoseconds"]]
                    .map(|times| times[part]["min"].as_f64().unwrap());
                assert!((on["ratio"][part].as_f64().unwrap() - on_nodes / native).abs() < 1e-9, "{program}");
            }
            assert_eq!(on["nanoseconds"]["whole"]["samples"], 2, "{program}");
            assert_eq!(on["consistency"], "rc", "{program}");
            assert_eq!(on["counters"]["threads"]["started"], 2, "{program}");
        }
    }
    let mean = json["geometric_means"]["all"]["shm"]["whole"].as_f64().unwrap();
    let product: f64 = programs.iter().map(|it| it["shm"]["ratio"]["whole"].as_f64().unwrap()).product();
    assert!((mean - product.powf(0.25)).abs() < 1e-9 * mean, "{json}");
}

#[test]
fn another_result_than_the_native_one_is_an_error_that_names_the_program() {
    let folder = Folder::new();
    workloads_that(&folder, "result = \"result: 1\"");
    let ran = bench(&folder, &folder, "--only radix --rounds 1 --fabric shm");
    assert_eq!(ran.status.and_then(|ended| ended.code()), Some(1), "{}{}", ran.output, ran.errors);
    let sentence = "radix  FAILED on 2 nodes over shm: printed 'result: 1', natively 'result: 2'";
    assert!(ran.output.contains(sentence), "{}{}", ran.output, ran.errors);
}

#[test]
fn what_takes_too_long_is_ended_and_is_no_error() {
    let folder = Folder::new();
    workloads_that(&folder, "for (;;) pause()");
    let ran = bench(&folder, &folder, "--only radix --rounds 1 --fabric shm --limit 2");
    assert!(ran.status.is_some_and(|status| status.success()), "{}{}", ran.output, ran.errors);
    let line = ran.output.lines().find(|line| line.starts_with("radix ")).unwrap();
    assert!(line.contains("> 5.00 s"), "{}", ran.output);
}

#[test]
fn what_makes_no_sense_is_refused_in_one_line_and_leaves_no_file() {
    for (options, status, sentence) in [
        ("-n 1", 2, "invalid value '1' for '--nodes <NODES>'"),
        ("--rounds 0", 2, "invalid value '0' for '--rounds <ROUNDS>'"),
        ("--limit 1", 2, "invalid value '1' for '--limit <TIMES>'"),
        ("--fabric rdma", 2, "invalid value 'rdma' for '--fabric <FABRIC>'"),
        ("--only speed", 2, "no figure begins with speed; there are sor, jacobi"),
        ("--only radix", 125, "is not the folder of the workloads: name it with --apps"),
    ] {
        let folder = Folder::new();
        let ran = bench(&folder, &folder, &format!("{options} --json out.json"));
        assert_eq!(ran.status.and_then(|ended| ended.code()), Some(status), "{options}: {}", ran.errors);
        let one_line = ran.errors.lines().count() == 1;
        assert!(ran.errors.contains(sentence) && one_line, "{options}: {}", ran.errors);
        assert!(ran.output.is_empty(), "{options}: {}", ran.output);
        assert!(fs::read(folder.join("out.json")).is_err(), "{options}");
    }
}

#[test]
fn constructs_of_openmp_stand_beside_the_native_ones() {
    let folder = Folder::new();
    let mut command = Command::new(&whole().gondwana);
    command.args(["bench", "openmp", "--rounds", "1", "--fabric", "shm", "--json", "out.json"]);
    let ran = run(command.current_dir(&*folder), LIMIT);
    assert!(ran.status.is_some_and(|status| status.success()), "{}{}", ran.output, ran.errors);
    let json: Value = serde_json::from_str(&fs::read_to_string(folder.join("out.json")).unwrap()).unwrap();
    for way in ["native", "shm"] {
        let figures = json["constructs_ns"][way].as_object().unwrap();
        assert!(figures.len() == 12 && figures.values().all(|figure| figure["samples"] == 9), "{figures:?}");
    }
    assert_eq!(ran.output.lines().filter(|line| line.contains(" x ")).count(), 12, "{}", ran.output);
}
