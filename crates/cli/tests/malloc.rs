//! `gondwana exec --malloc` on this computer: programs behave as ever.

mod common;

use common::folder::Folder;
use common::whole::{LIMIT, Ran, run, whole};
use std::process::Command;
use std::time::{Duration, Instant};

/// Rules under which every allocation is placed.
const ALL: [&str; 4] = ["--malloc", ">=128K=striped:2", "--malloc", "all=local"];

fn exec(options: &[&str], program: &[&str]) -> Ran {
    let mut command = Command::new(&whole().gondwana);
    run(command.arg("exec").args(options).arg("--").args(program), LIMIT)
}

fn native(program: &[&str]) -> Ran {
    run(Command::new(program[0]).args(&program[1..]), LIMIT)
}

#[test]
fn allocations_of_threads_and_forked_processes_are_as_ever() {
    let folder = Folder::new();
    folder.compile("allocates");
    let program = folder.join("allocates");
    for rules in [&ALL[..], &["--malloc", ">=64K&<=200K=block"], &["--prefault", "--malloc", "<2K=local"]] {
        let ran = exec(rules, &[program.to_str().unwrap()]);
        assert_eq!((ran.output.as_str(), ran.errors.as_str()), ("as it should be\n", ""), "{rules:?}");
        assert_eq!(ran.status.unwrap().code(), Some(0), "{rules:?}");
    }
}

#[test]
fn real_programs_print_what_they_always_do() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/allocates.c");
    let python =
        "print(sum(len(str(i)) for i in range(30000)), sorted({i * 7 % 1000 for i in range(5000)})[:9])";
    for program in
        [&["sort", "-r", source][..], &["gcc", "-O1", "-S", "-o", "-", source], &["python3", "-c", python]]
    {
        let (expected, found) = (native(program), exec(&ALL, program));
        assert_eq!(found.status, expected.status, "{program:?}: {}", found.errors);
        assert!(
            found.output == expected.output && found.errors == expected.errors,
            "{program:?}: {}",
            found.errors
        );
    }
}

/// The rule of a report, its allocations, and the rest of its line.
fn report<'a>(errors: &'a str, program: &str) -> Vec<&'a str> {
    let start = format!("gondwana: {program}: ");
    errors.lines().filter_map(|line| line.strip_prefix(start.as_str())).collect()
}

#[test]
fn the_report_says_what_each_rule_was_asked_for() {
    let folder = Folder::new();
    folder.compile("allocates");
    let program = folder.join("allocates");
    let rules =
        ["--report", "--malloc", "work&>=1G=local", "--malloc", "work=local", "--malloc", "fail=local"];
    let ran = exec(&rules, &[program.to_str().unwrap()]);
    let lines = report(&ran.errors, "allocates");
    assert_eq!(lines.len(), 3, "{}", ran.errors);
    assert!(
        lines[0].starts_with(">=1G&work=local@") && lines[0].contains(": 0 allocations of 0 bytes; "),
        "{lines:?}"
    );
    // Half of the rounds of each thread allocate at least; some only resize.
    let calls = lines[1].split(": ").nth(1).unwrap().split(' ').next().unwrap().parse::<usize>().unwrap();
    assert!((10_000..=20_000).contains(&calls), "{lines:?}");
    assert!(
        lines[2].starts_with("fail=local@") && lines[2].ends_with("asked for pages: none; found: none"),
        "{lines:?}"
    );
}

#[test]
fn rules_reach_the_functions_of_libraries() {
    let input = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    // Streams have their buffers from there.
    let ran = exec(&["--report", "--malloc", "libc.so!_IO_file_doallocate=local"], &["sort", input]);
    assert_eq!(report(&ran.errors, "sort").len(), 1, "{}", ran.errors);
    assert!(!ran.errors.contains(": 0 allocations"), "{}", ran.errors);
    let none = exec(&["--report", "--malloc", "libnothing.so!f=local"], &["sort", input]);
    assert!(none.errors.contains(": 0 allocations of 0 bytes"), "{}", none.errors);
    assert_eq!(ran.output, none.output);
}

/// The number of allocations of each line of a report.
fn calls(errors: &str, program: &str) -> Vec<usize> {
    let calls = |line: &str| line.split(": ").nth(1)?.split(' ').next()?.parse().ok();
    report(errors, program).into_iter().map(|line| calls(line).expect(line)).collect()
}

#[test]
fn each_new_of_cpp_is_known_by_the_function_that_has_it() {
    let folder = Folder::new();
    folder.compile("news");
    let program = folder.join("news");
    let placed = |rules: &[&str]| {
        let options: Vec<&str> =
            ["--report"].into_iter().chain(rules.iter().flat_map(|rule| ["--malloc", rule])).collect();
        let ran = exec(&options, &[program.to_str().unwrap()]);
        assert_eq!((ran.output.as_str(), ran.status.unwrap().code()), ("as it should be\n", Some(0)));
        calls(&ran.errors, "news")
    };
    assert_eq!(placed(&["make_list=local", "make_table&>=1K=striped:2"]), [700, 3]);
    // The operator itself still is a function that allocates, and the first rule that fits counts.
    assert_eq!(placed(&["make_table=local", "libstdc++.so!_Znwm=local"])[0], 3);
    let [of_operator, of_list] = placed(&["libstdc++.so!_Znwm=local", "make_list=local"])[..] else {
        panic!()
    };
    assert!(of_operator >= 350 && of_list == 350, "{of_operator} {of_list}");
}

fn fails(options: &[&str], text: &str) {
    let ran = exec(options, &["true"]);
    assert_eq!(ran.status.unwrap().code(), Some(2), "{options:?}: {}", ran.errors);
    assert!(
        ran.errors.starts_with("gondwana: --") && ran.errors.contains(text),
        "{options:?}: {}",
        ran.errors
    );
}

#[test]
fn rules_that_make_no_sense_are_pointed_at() {
    fails(
        &["--malloc", ">=1X=local"],
        "a size is missing, such as 4096, 64K, 1M or 2G\n  >=1X=local\n    ^^\n",
    );
    fails(&["--malloc", ">=1M"], "= and a policy are missing");
    fails(
        &["--malloc", "all=striped:0"],
        "a stride is a number of pages from 1 on\n  all=striped:0\n              ^\n",
    );
    fails(&["--malloc", "all=local@node:250"], "the machine has no node 250");
    fails(&["--malloc", "no_such_function=local"], "has no function 'no_such_function'");
    fails(&["--rset", "cpu:0", "--malloc", "all=local@none"], "has no memory");
    fails(&["--prefault"], "--prefault and --colours are for the memory of --malloc, which is missing");
    let many: Vec<String> = (0..17).map(|number| format!("libx.so!f{number}=local")).collect();
    let options: Vec<&str> = many.iter().flat_map(|rule| ["--malloc", rule.as_str()]).collect();
    fails(&options, "at most 16 rules can name functions");
}

/// The shortest time of some starts of `true`.
fn shortest(options: &[&str]) -> Duration {
    let start = |_| {
        let begin = Instant::now();
        assert!(exec(options, &["true"]).status.unwrap().success());
        begin.elapsed()
    };
    (0..30).map(start).min().unwrap()
}

#[test]
fn starting_under_rules_takes_little_longer() {
    let (plain, placed) = (shortest(&[]), shortest(&ALL));
    // Two milliseconds are what it takes as a rule; tests are not optimised and run side by side.
    assert!(placed < plain + Duration::from_millis(20), "{plain:?} without rules, {placed:?} with");
}
