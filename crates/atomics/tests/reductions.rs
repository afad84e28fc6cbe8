//! Which programs' atomic instructions are taken for reductions of OpenMP, as gcc compiles them.

mod compiled;

use compiled::compiled;
use gondwana_atomics::{Findings, scan};

/// A program, and its atomic instructions.
fn findings(which: &str, options: &[&str]) -> (Vec<u8>, Findings) {
    let defined = format!("-D{which}");
    let image = compiled("gcc", "reductions.c", &[&["-fopenmp", &defined], options].concat());
    let findings = scan(&image).unwrap();
    assert!(!findings.atomics.is_empty(), "{which}");
    (image, findings)
}

/// True if all atomic instructions are taken for reductions.
fn are_reductions(which: &str, options: &[&str]) -> bool {
    let (image, findings) = findings(which, options);
    findings.analyse(&image).unwrap().reductions.is_some_and(|all| all == findings.atomics)
}

#[test]
fn reductions_are_recognised() {
    for which in ["ALONE", "LARGEST", "LOCAL", "AGAIN"] {
        for level in ["-O2", "-O3"] {
            assert!(are_reductions(which, &[level]), "{which} {level}");
        }
    }
}

#[test]
fn without_names_of_functions_nothing_is_recognised() {
    assert!(!are_reductions("ALONE", &["-O2", "-s"]));
}

#[test]
fn other_atomic_instructions_are_none() {
    for which in ["ATOMIC_UPDATES", "SPIN_LOCK", "SWAPPING_LOCK", "FLUSH", "STORE", "OUTSIDE", "STACK"] {
        for level in ["-O0", "-O1", "-O2", "-O3"] {
            assert!(!are_reductions(which, &[level]), "{which} {level}");
        }
    }
}

#[test]
fn the_atomic_instructions_of_openmp_programs_can_be_locked() {
    for (which, all) in
        [("ALONE", true), ("ATOMIC_UPDATES", true), ("OUTSIDE", true), ("STORE", true), ("FLUSH", false)]
    {
        let (_, findings) = findings(which, &["-O2"]);
        let lockable = &findings.lockable;
        assert!(lockable.iter().all(|place| findings.atomics.binary_search(place).is_ok()));
        assert!(!lockable.is_empty(), "{which}");
        assert_eq!(*lockable == findings.atomics, all, "{which}");
    }
    let (_, stripped) = findings("ATOMIC_UPDATES", &["-O2", "-s"]);
    assert!(stripped.lockable.is_empty(), "where functions begin is unknown");
    let (_, other) = findings("OUTSIDE", &["-O2", "-fno-openmp"]);
    assert!(!other.atomics.is_empty() && other.lockable.is_empty(), "no OpenMP");
}

#[test]
fn where_threads_may_poll_reductions_are_not_enough() {
    for which in ["POLL", "POLL_COUNTING", "POLL_YIELDING", "POLL_CALLING", "POLL_POINTER"] {
        for level in ["-O0", "-O1", "-O2", "-O3"] {
            assert!(!are_reductions(which, &[level]), "{which} {level}");
        }
    }
}
