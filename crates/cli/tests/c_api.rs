//! The functions for C, as installed: examples and test programs on this computer. On one with several nodes they run
//! as part of the tests in an emulated computer (`numa`).

mod common;

use common::c_api::{compile, prefix, root, sources, succeed};
use common::folder::Folder;
use std::path::Path;
use std::process::Command;

/// Runs a program without named sets; returns its output.
fn output_of(program: &Path, state: &Path) -> String {
    let mut command = Command::new(program);
    command.env("XDG_STATE_HOME", state).env("ASAN_OPTIONS", "detect_leaks=1");
    String::from_utf8(succeed(&mut command).stdout).unwrap()
}

fn passes(name: &str, options: &[&str]) -> String {
    let folder = Folder::new();
    let program = folder.join(name);
    compile("gcc", &root().join("tests/capi").join(format!("{name}.c")), options, &program);
    output_of(&program, &folder)
}

#[test]
fn every_policy_has_its_pages_where_the_kernel_counts_them() {
    assert!(passes("policies", &[]).ends_with(" nodes\n"));
}

#[test]
fn bound_threads_are_where_the_kernel_reports_them() {
    assert!(passes("binding", &[]).ends_with(" nodes\n"));
}

#[test]
fn cpu_groups_are_the_nodes() {
    assert!(passes("groups", &[]).ends_with(" groups\n"));
}

#[test]
fn sets_are_combined_written_and_named() {
    assert_eq!(passes("sets", &[]), "sets\n");
}

#[test]
fn bad_input_is_refused_and_nothing_is_lost() {
    assert_eq!(passes("bad", &["-fsanitize=address"]), "refused\n");
}

#[test]
fn one_computer_has_nothing_to_monitor() {
    assert_eq!(passes("monitor", &["-fsanitize=address"]), "one computer\n");
}

#[test]
fn good_input_loses_nothing_either() {
    for name in ["policies", "binding", "groups", "sets"] {
        passes(name, &["-fsanitize=address"]);
    }
}

#[test]
fn examples_are_c_and_c_plus_plus_and_run() {
    let folder = Folder::new();
    for name in sources("examples") {
        let source = root().join("examples").join(format!("{name}.c"));
        let outputs = ["gcc", "g++"].map(|compiler| {
            let program = folder.join(format!("{name}-{compiler}"));
            compile(compiler, &source, &["-fsanitize=address"], &program);
            output_of(&program, &folder)
        });
        assert!(!outputs[0].is_empty() && outputs[0] == outputs[1], "{name}: {outputs:?}");
    }
}

#[test]
fn headers_need_no_others() {
    let folder = Folder::new();
    for (header, option) in [("gondwana.h", "-DPLAIN"), ("cg.h", "-D_XOPEN_SOURCE=700")] {
        let source = folder.join("header.c");
        std::fs::write(&source, format!("#include <{header}>\nint main(void) {{ return 0; }}\n")).unwrap();
        for compiler in ["gcc", "g++"] {
            compile(compiler, &source, &[option], &folder.join("header"));
        }
    }
}

#[test]
fn pkg_config_tells_how_to_link() {
    let folder = Folder::new();
    let mut ask = Command::new("pkg-config");
    ask.args(["--cflags", "--libs", "gondwana"]).env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
    let options = String::from_utf8(succeed(&mut ask).stdout).unwrap();
    let mut compiler = Command::new("gcc");
    compiler.arg(root().join("examples/striped.c")).args(options.split_whitespace());
    succeed(compiler.arg("-o").arg(folder.join("striped")));
    let mut program = Command::new(folder.join("striped"));
    program.env("LD_LIBRARY_PATH", prefix().join("lib"));
    let said = String::from_utf8(succeed(&mut program).stdout).unwrap();
    assert!(said.ends_with("12288 numbers, 0 pages elsewhere than asked for\n"), "{said}");
}

#[test]
fn an_installed_command_finds_its_libraries() {
    let folder = Folder::new();
    let program = folder.join("true");
    std::fs::write(folder.join("true.c"), "int main(void) { return 0; }\n").unwrap();
    succeed(Command::new("gcc").arg(folder.join("true.c")).arg("-o").arg(&program));
    let gondwana = prefix().join("bin/gondwana");
    succeed(Command::new(&gondwana).args(["run", "-n", "2", "--"]).arg(&program));
    succeed(Command::new(&gondwana).args(["exec", "--threads", "fill", "--"]).arg(&program));
}

/// Each function has a manual page, and each page is about existing functions.
#[test]
fn every_function_has_a_manual_page() {
    let pages = prefix().join("share/man/man3");
    let listed = succeed(
        Command::new("nm").args(["-D", "--defined-only"]).arg(prefix().join("lib/libgondwana_api.so")),
    );
    let symbols = String::from_utf8(listed.stdout).unwrap();
    let functions: Vec<&str> = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .filter(|name| name.starts_with("gw_") || name.starts_with("cg_"))
        .collect();
    assert!(functions.contains(&"gw_alloc") && functions.contains(&"cg_memloc"), "{functions:?}");
    for function in &functions {
        let page = pages.join(format!("{function}.3"));
        let text =
            std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        let text = match text.strip_prefix(".so ") {
            Some(other) => std::fs::read_to_string(prefix().join("share/man").join(other.trim())).unwrap(),
            None => text,
        };
        assert!(
            text.contains(&format!("{function} ")) || text.contains(&format!("{function},")),
            "{function}"
        );
    }
    for page in std::fs::read_dir(&pages).unwrap() {
        let name = page.unwrap().file_name().into_string().unwrap();
        let name = name.strip_suffix(".3").unwrap();
        assert!(functions.contains(&name), "there is a page for {name}, and no such function");
    }
}
