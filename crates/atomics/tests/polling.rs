//! Which programs are taken to wait for what other threads write, as gcc and clang compile them.

mod compiled;

use compiled::{compiled, has_clang};
use gondwana_atomics::{scan, synchronising};

/// Ways to wait by plain loads.
const POLLS: [&str; 26] = [
    "FIRST_IN_LOOP",
    "TIGHT",
    "RELAXED",
    "VOLATILE",
    "DO_WHILE",
    "PAUSING",
    "YIELDING",
    "SLEEPING",
    "CALLING",
    "INLINED",
    "BY_POINTER",
    "BY_TWO_POINTERS",
    "SEVERAL",
    "EITHER",
    "ELEMENT",
    "ALL_ELEMENTS",
    "TIMEOUT",
    "DEADLINE",
    "BACKING_OFF",
    "BETWEEN_WORK",
    "BETWEEN_STORES",
    "BETWEEN_LOCKS",
    "BETWEEN_PRINTS",
    "PRODUCER",
    "ON_STACK",
    "SEQUENCE",
];

/// Double-checked locking.
const LOOKS: [&str; 3] = ["LOOKED_AT_TWICE", "MADE_ONCE", "FIELD_LOOKED_AT_TWICE"];

/// Loops that end by themselves, or see what they wait for by locks and barriers, and accesses under locks.
const OTHERS: [&str; 15] = [
    "LIMITED",
    "OWN_BEFORE",
    "LOCKED_TWICE",
    "COUNTING",
    "LISTED",
    "UNDER_LOCK",
    "WITH_CONDITION",
    "WITH_BARRIER",
    "BARRIER_ELSEWHERE",
    "JOBS",
    "DRAINING",
    "DRAINING_INLINE",
    "READING",
    "SEARCHING",
    "NEXT_TICK",
];

/// How the programs are compiled in every run of the tests, and by `make nightly`.
const FEW: [&[&str]; 2] = [&["-O0"], &["-O2", "-s"]];
const MORE: [&[&str]; 4] = [&["-O1"], &["-O2"], &["-O3"], &["-Os"]];

/// True if the program is taken to wait for what other threads write.
fn polls(compiler: &str, which: &str, options: &[&str]) -> bool {
    let which = format!("-D{which}");
    let image = compiled(compiler, "polling.c", &[&["-w", "-pthread", &which], options].concat());
    let findings = scan(&image).unwrap();
    assert!(findings.atomics.is_empty(), "{which} {options:?}");
    let polls = findings.analyse(&image).unwrap().plain.is_some();
    // What threads look at is found with the loops, and nothing else.
    assert_eq!(synchronising(&image).unwrap().is_empty(), !polls, "{compiler} {which} {options:?}");
    polls
}

fn all_are_told_apart(compiler: &str, levels: &[&[&str]]) {
    for options in levels {
        let wrong: Vec<&str> = POLLS
            .iter()
            .chain(&LOOKS)
            .map(|which| (*which, true))
            .chain(OTHERS.map(|which| (which, false)))
            .filter(|&(which, right)| polls(compiler, which, options) != right)
            .map(|(which, _)| which)
            .collect();
        assert!(wrong.is_empty(), "{compiler} {options:?}: {wrong:?}");
    }
}

#[test]
fn loops_that_wait_are_recognised_as_gcc_compiles_them() {
    all_are_told_apart("gcc", &FEW);
}

#[test]
fn loops_that_wait_are_recognised_as_clang_compiles_them() {
    if has_clang() {
        all_are_told_apart("clang", &FEW[1..]);
    }
}

#[test]
#[ignore = "half a minute: make nightly"]
fn loops_that_wait_are_recognised_at_all_levels() {
    all_are_told_apart("gcc", &MORE);
    if has_clang() {
        all_are_told_apart("clang", &MORE);
    }
}

/// Where a compiler compares the state in memory and then reads it again, no other thread writes it. Otherwise such a program may wait.
#[test]
fn a_machine_of_states_that_are_read_twice_does_not_wait() {
    for level in ["-O2", "-O3"] {
        assert!(!polls("gcc", "STATES", &[level]));
    }
    assert!(polls("gcc", "STATES", &["-O0"]));
}
