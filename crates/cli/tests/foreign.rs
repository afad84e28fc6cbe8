//! Descriptors of one node used on another: they never refer to a different file.

mod common;

use common::folder::Folder;
use common::whole::{LIMIT, run, whole};

/// One call cannot use descriptors of two computers. Where programs expect that of other files, no sentence is said.
#[test]
fn descriptors_of_two_computers_in_one_call_are_refused() {
    let folder = Folder::new();
    folder.compile("foreign");
    // Threads go to the nodes in turn, beginning with the one after main's.
    let arguments = ["-n", "2", "--fabric", "tcp", "--", "./foreign"];
    let ran = run(&mut whole().run(&folder, &arguments), LIMIT);
    assert_eq!(ran.output, "4 ELF 0\n", "{}", ran.errors);
    assert!(ran.status.unwrap().success(), "{}", ran.errors);
    let sentence = "gondwana: node 1: dup2() on descriptor 3, which only node 0 has open: ";
    assert!(ran.errors.starts_with(sentence), "{}", ran.errors);
    assert!(ran.errors.contains("open it in the thread that uses it"), "{}", ran.errors);
    assert_eq!(ran.errors.matches('\n').count(), 1, "{}", ran.errors);
}

/// A child process of another node's thread has main's descriptors and thread-local variables on one computer only.
#[test]
fn children_of_other_nodes_have_what_their_computer_has() {
    let folder = Folder::new();
    folder.compile("forks");
    let forks =
        |fabric| run(&mut whole().run(&folder, &["-n", "2", "--fabric", fabric, "--", "./forks"]), LIMIT);
    let ran = forks("shm");
    assert_eq!((ran.output.as_str(), ran.errors.as_str()), ("written\n1 0 0\n", ""));
    let ran = forks("tcp");
    assert_eq!(ran.output, format!("Bad file descriptor1 {} 0\n", libc::SIGSEGV));
    let (pipe, memory) = ran.errors.split_once('\n').unwrap();
    assert!(
        pipe.starts_with("gondwana: write() on descriptor ") && pipe.contains(" in a child process: "),
        "{pipe}"
    );
    assert_eq!(
        memory,
        "gondwana: a child process of node 1 accesses thread-local variables or a mapped file of node 0, which is on another \
         computer: a child has copies of shared memory only\n"
    );
}

/// The C library's functions that fork: a run whose main becomes a daemon ends, and the daemon goes on.
#[test]
fn children_have_terminals_and_become_daemons() {
    let folder = Folder::new();
    folder.compile("forks");
    let native = run(std::process::Command::new(folder.join("forks")).arg("more"), LIMIT);
    assert_eq!(native.output, "5 hello 1 0\n0 1 5\n");
    for fabric in ["shm", "tcp"] {
        let options = ["-n", "2", "--fabric", fabric, "--", "./forks", "more"];
        let ran = run(&mut whole().run(&folder, &options), LIMIT);
        assert_eq!((ran.output, ran.errors.as_str()), (native.output.clone(), ""));
        assert!(ran.status.unwrap().success());
    }
}

/// Threads of all nodes and other processes use a semaphore by its name, or in a mapped file.
#[test]
fn named_semaphores_are_everyones() {
    let folder = Folder::new();
    folder.compile("named");
    let native = run(&mut std::process::Command::new(folder.join("named")), LIMIT);
    assert!(native.status.unwrap().success(), "{}", native.errors);
    for fabric in ["shm", "tcp"] {
        for (nodes, consistency) in [("2", "rc"), ("2", "sc"), ("4", "rc")] {
            let options = ["-n", nodes, "--fabric", fabric, "--consistency", consistency, "--", "./named"];
            let ran = run(&mut whole().run(&folder, &options), LIMIT);
            assert_eq!((ran.output.as_str(), ran.errors.as_str()), (native.output.as_str(), ""));
        }
    }
}

#[test]
fn code_in_place_of_calls_uses_streams_of_other_nodes() {
    let folder = Folder::new();
    folder.compile("inlined");
    let native = run(std::process::Command::new(folder.join("inlined")).current_dir(&*folder), LIMIT);
    assert!(native.status.unwrap().success(), "{}", native.errors);
    for fabric in ["shm", "tcp"] {
        let arguments = ["-n", "2", "--fabric", fabric, "--", "./inlined"];
        let ran = run(&mut whole().run(&folder, &arguments), LIMIT);
        assert_eq!((ran.output, ran.errors.as_str()), (native.output.clone(), ""));
    }
}

#[test]
fn standard_input_is_read_by_threads_of_other_nodes() {
    let folder = Folder::new();
    folder.compile("input");
    std::fs::write(folder.join("given"), [7; 100_000]).unwrap();
    let read = |fabric: &str, more: &[&str]| {
        let arguments = [&["-n", "2", "--fabric", fabric, "--", "./input"], more].concat();
        let command = whole().run(&folder, &arguments);
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" < given"]).arg(command.get_program()).args(command.get_args());
        run(shell.current_dir(&*folder), LIMIT)
    };
    for fabric in ["shm", "tcp"] {
        for more in [&[][..], &["stream"]] {
            let ran = read(fabric, more);
            assert_eq!((ran.output.as_str(), ran.errors.as_str()), ("100000\n", ""));
        }
    }
}

#[test]
fn descriptors_are_everyones() {
    let folder = Folder::new();
    folder.compile("everywhere");
    let native = run(std::process::Command::new(folder.join("everywhere")).current_dir(&*folder), LIMIT);
    assert!(
        native.status.unwrap().success() && native.output.contains("same number: 1"),
        "{}",
        native.output
    );
    for (nodes, fabric) in [("2", "shm"), ("3", "shm"), ("4", "shm"), ("2", "tcp"), ("3", "tcp")] {
        let arguments = ["-n", nodes, "--fabric", fabric, "--", "./everywhere"];
        let ran = run(&mut whole().run(&folder, &arguments), LIMIT);
        assert_eq!(ran.output, native.output, "{nodes} nodes over {fabric}: {}", ran.errors);
        assert!(ran.status.unwrap().success() && ran.errors.is_empty(), "{}", ran.errors);
    }
}
