//! Standard streams that the program redirects while it runs.

mod common;

use common::folder::Folder;
use common::whole::{LIMIT, run, whole};
use std::process::Command;

#[test]
fn on_one_computer_a_redirection_is_for_all_threads() {
    let folder = Folder::new();
    folder.compile("redirect");
    let native = run(Command::new(folder.join("redirect")).current_dir(&*folder), LIMIT);
    assert!(native.status.unwrap().success() && native.output.contains("six: six by printf"));
    for nodes in ["2", "3", "4"] {
        let ran = run(&mut whole().run(&folder, &["-n", nodes, "--", "./redirect"]), LIMIT);
        assert_eq!(ran.output, native.output, "{nodes} nodes: {}", ran.errors);
        assert_eq!(ran.errors, native.errors, "{nodes} nodes");
        assert!(ran.status.unwrap().success());
    }
}

/// Runs threads that write to standard error, redirected to a file, on two nodes over TCP; returns the part that is
/// still visible.
fn errors_over_tcp(file: &str) -> String {
    let folder = Folder::new();
    folder.compile("silence");
    let arguments = ["-n", "2", "--fabric", "tcp", "--", "./silence", file];
    let ran = run(&mut whole().run(&folder, &arguments), LIMIT);
    assert!(ran.status.unwrap().success() && ran.output == "done\n", "{}", ran.errors);
    ran.errors
}

#[test]
fn the_null_device_is_on_all_computers() {
    assert_eq!(errors_over_tcp("/dev/null"), "");
}

#[test]
fn a_file_that_other_computers_may_not_have_is_refused() {
    let errors = errors_over_tcp("file");
    let sentence = "gondwana: node 0: standard error is redirected for the threads of this node only: ";
    assert_eq!(errors.matches(sentence).count(), 1, "{errors}");
    assert_eq!(errors.matches("complaint\n").count(), 2, "{errors}");
}
