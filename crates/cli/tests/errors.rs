//! What the user reads when a program cannot be run: one line, and an exit status as other launchers use it.

mod common;

use common::installation::{Installation, errors};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Runs the command, which must fail with this status and one line that contains the text.
fn fails(installation: &Installation, arguments: &[&str], status: i32, text: &str) {
    let output = installation.run(&[&["run"], arguments].concat());
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
    assert!(said.starts_with("gondwana: ") && said.contains(text), "{arguments:?}: {said}");
    assert_eq!(said.matches('\n').count(), 1, "{arguments:?}: {said}");
    assert!(output.stdout.is_empty());
}

fn patched(installation: &Installation, name: &str, offset: usize, bytes: &[u8]) {
    let mut image = fs::read(installation.program("original", &[])).unwrap();
    image[offset..offset + bytes.len()].copy_from_slice(bytes);
    write_program(installation, name, &image, 0o755);
}

fn write_program(installation: &Installation, name: &str, contents: &[u8], mode: u32) {
    fs::write(installation.path(name), contents).unwrap();
    fs::set_permissions(installation.path(name), fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn programs_that_cannot_run_are_named_with_the_reason() {
    let here = Installation::new();
    here.program("static", &["-static"]);
    patched(&here, "aarch64", 18, &183u16.to_le_bytes());
    patched(&here, "narrow", 4, &[1]);
    write_program(&here, "script", b"#!/bin/sh\necho no\n", 0o755);
    write_program(&here, "text", b"hello", 0o755);
    write_program(&here, "plain", &fs::read(here.path("original")).unwrap(), 0o644);
    write_program(&here, "setuid", &fs::read(here.path("original")).unwrap(), 0o4755);
    here.program("sanitized", &["-fsanitize=address"]);
    fails(&here, &["./static"], 126, "statically linked");
    fails(&here, &["./sanitized"], 126, "built with -fsanitize=address");
    fails(&here, &["./aarch64"], 126, "architecture (Aarch64)");
    fails(&here, &["./narrow"], 126, "32-bit");
    fails(&here, &["./script"], 126, "is a script");
    fails(&here, &["./text"], 126, "no ELF file");
    fails(&here, &["./setuid"], 126, "set-user-id");
    fails(&here, &["/"], 126, "folder");
    fails(&here, &["./plain"], 126, "chmod +x");
    fails(&here, &["./missing"], 127, "no such program");
    fails(&here, &["gondwana-missing"], 127, "PATH");
    // A run of one node is no exception.
    fails(&here, &["-n", "1", "./static"], 126, "statically linked");
}

/// Its runtime does without the C library, however it is linked. The sections tell, so that no compiler of Go is needed here.
#[test]
fn programs_in_go_are_refused() {
    let here = Installation::new();
    let section =
        "__asm__(\".section .go.buildinfo, \\\"a\\\"\\n.byte 1\\n.text\");\nint main(void) { return 0; }\n";
    fs::write(here.path("go.c"), section).unwrap();
    for (name, options) in [("dynamic", &[][..]), ("static", &["-static"]), ("stripped", &["-s"])] {
        here.gcc(&[&["go.c", "-o", name], options].concat());
        fails(&here, &[&format!("./{name}")], 126, "is a program in Go");
    }
}

#[test]
fn programs_that_are_linked_with_a_library_in_go_are_refused() {
    let here = Installation::new();
    let library = "__asm__(\".section .note.go.buildid, \\\"a\\\"\\n.byte 1\\n.text\");\nint of_go(void) { return 0; }\n";
    fs::write(here.path("library.c"), library).unwrap();
    here.gcc(&["library.c", "-o", "liblibrary.so", "-shared", "-fPIC"]);
    let program = "int of_go(void);\nint main(void) { return of_go(); }\n";
    fs::write(here.path("linked.c"), program).unwrap();
    here.gcc(&["linked.c", "-o", "linked", "-L.", "-llibrary", "-Wl,-rpath,$ORIGIN"]);
    for options in [&["-n", "2"][..], &["-n", "2", "--consistency", "sc"], &["-n", "1"]] {
        let words = [options, &["./linked"]].concat();
        fails(&here, &words, 126, "is linked with a library in Go (");
    }
}

#[test]
fn programs_without_any_library_are_refused() {
    let here = Installation::new();
    fs::write(here.path("bare.c"), "void _start(void) { __builtin_trap(); }\n").unwrap();
    here.gcc(&[
        "bare.c",
        "-o",
        "bare",
        "-pie",
        "-nostdlib",
        "-Wl,--dynamic-linker=/lib64/ld-linux-x86-64.so.2",
    ]);
    fails(&here, &["./bare"], 126, "linked with no library");
}

#[test]
fn another_c_library_is_refused() {
    let here = Installation::new();
    here.program("musl", &["-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"]);
    fails(&here, &["./musl"], 126, "another C library");
}

#[test]
fn options_out_of_range_are_named() {
    let here = Installation::new();
    here.program("program", &[]);
    fails(&here, &["-n", "0", "./program"], 2, "at least one node");
    fails(&here, &["-n", "257", "./program"], 2, "limit is 256");
    fails(&here, &["--span", "1K", "./program"], 2, "out of range");
    fails(&here, &["--span", "big", "./program"], 2, "not a size");
    fails(&here, &["--hosts", "a", "--fabric", "shm", "./program"], 2, "share no memory");
    fails(&here, &["-t", "0", "./program"], 2, "-t takes 1 to 4096");
    for number in ["abc", "-1", "2.5", ""] {
        fails(&here, &["-n", number, "./program"], 2, "a whole number is expected");
        fails(&here, &["-t", number, "./program"], 2, "a whole number is expected");
    }
    for size in ["-5", "abc", ""] {
        fails(&here, &["--span", size, "./program"], 2, "is not a size");
    }
    for size in ["0", "63M", "200T"] {
        fails(&here, &["--span", size, "./program"], 2, "64M to 8T");
    }
}

#[test]
fn unknown_options_and_values_are_named() {
    let here = Installation::new();
    here.program("program", &[]);
    fails(&here, &[], 2, "<PROGRAM>");
    fails(&here, &["--fabric", "x", "./program"], 2, "[possible values: shm, tcp]");
    fails(&here, &["--consistency", "x", "./program"], 2, "[possible values: auto, rc, c11, sc]");
    fails(
        &here,
        &["--protocol", "x", "./program"],
        2,
        "[possible values: csm, csm-invalidate, csm-ordered, sc, erc, c11]",
    );
    let both = ["--protocol", "erc", "--consistency", "sc", "./program"];
    fails(&here, &both, 2, "--protocol erc gives rc, but --consistency asks for sc; leave one of them out");
    fails(&here, &["--frobnicate", "./program"], 2, "no option --frobnicate");
    fails(&here, &["--stats=", "./program"], 2, "a value is required");
    fails(&here, &["--", ""], 2, "the name of the program is empty");
    let output = here.run(&[]);
    assert_eq!((output.status.code(), errors(&output).matches('\n').count()), (Some(2), 1));
    let output = here.run(&["run", "--help"]);
    assert!(
        output.status.success() && String::from_utf8(output.stdout).unwrap().contains("PROGRAM [ARGUMENTS]")
    );
}

#[test]
fn options_of_hosts_are_checked() {
    let here = Installation::new();
    here.program("program", &[]);
    let one = ["--hosts", "a"];
    fails(&here, &["--launcher", "x", "./program"], 2, "--hosts");
    fails(&here, &["--host-timeout", "5", "./program"], 2, "--hosts");
    fails(&here, &[&one[..], &["--launcher", "x", "./program"]].concat(), 2, "where {command} goes");
    fails(&here, &[&one[..], &["--launcher", "'{command}", "./program"]].concat(), 2, "quotation mark");
    fails(
        &here,
        &[&one[..], &["--launcher", "./gone {command}", "./program"]].concat(),
        125,
        "cannot be started",
    );
    fails(&here, &[&one[..], &["--host-timeout", "0", "./program"]].concat(), 2, "1..=86400");
    fails(&here, &["--hosts", "a,a", "./program"], 2, "names a twice");
    fails(&here, &["--hosts", "a,,b", "./program"], 2, "not the name of a host");
    fails(&here, &["--hosts", "a=b", "./program"], 2, "not an address");
}

#[test]
fn a_file_that_cannot_be_written_is_named_before_the_run() {
    let here = Installation::new();
    let touched = ["sh", "-c", "touch touched"];
    for file in ["--stats=absent/x.json", "--stats=/"] {
        fails(&here, &[&[file][..], &touched].concat(), 125, "cannot be written");
    }
    assert!(!here.path("touched").exists());
    fails(&here, &["--stats=new.json", "-n", "2", "--hosts", "a,b", "--launcher", "x", "sh"], 2, "{command}");
    assert!(!here.path("new.json").exists(), "nothing was to be written");
}

#[test]
fn a_span_that_does_not_fit_names_the_limit() {
    let here = Installation::new();
    here.program("program", &[]);
    let limited = |arguments: &str| {
        let script = format!("ulimit -v 16000000; exec ./gondwana run {arguments} ./program");
        std::process::Command::new("sh").args(["-c", &script]).current_dir(here.path("")).output().unwrap()
    };
    let output = limited("--span 64G");
    assert_eq!(output.status.code(), Some(125));
    assert!(errors(&output).contains("the span does not fit"), "{}", errors(&output));
    let output = limited("");
    assert_eq!(output.status.code(), Some(0), "what fits is taken: {}", errors(&output));
}

#[test]
fn a_runtime_library_that_is_missing_or_useless_is_noticed() {
    let here = Installation::new();
    here.program("program", &[]);
    fs::write(here.path("libgondwana.so"), "no library").unwrap();
    let output = here.run(&["run", "./program"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(errors(&output).contains("before it had joined the others"), "{}", errors(&output));
    fs::remove_file(here.path("libgondwana.so")).unwrap();
    fails(&here, &["./program"], 125, "libgondwana.so is missing");
}

#[test]
fn the_doctor_gives_json() {
    let here = Installation::new();
    let output = here.run(&["doctor", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["runs_work"], output.status.success());
    let library =
        report["findings"].as_array().unwrap().iter().find(|f| f["name"] == "runtime library").unwrap();
    assert_eq!(library["verdict"], "ok");
}
