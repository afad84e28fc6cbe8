//! Which system calls of a program are found, as compilers make them.

use gondwana_atomics::{SYSTEM_CALL, SystemCall, may_make_system_calls, system_calls};
use gondwana_elf::Code;
use std::path::Path;
use std::process::Command;

fn compiled(compiler: &str, options: &[&str]) -> Vec<u8> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/system_calls.c");
    let name = format!("gondwana-system-calls-{}-{compiler}{}", std::process::id(), options.concat());
    let output = std::env::temp_dir().join(name);
    let status = Command::new(compiler).args(options).arg(&source).arg("-o").arg(&output).status().unwrap();
    assert!(status.success());
    let image = std::fs::read(&output).unwrap();
    std::fs::remove_file(output).unwrap();
    image
}

/// How many bytes are there that look like one.
fn alike(code: &Code<'_>) -> usize {
    let pairs = |bytes: &[u8]| bytes.windows(2).filter(|pair| *pair == SYSTEM_CALL).count();
    code.sections.iter().map(|section| pairs(section.bytes)).sum()
}

#[test]
fn calls_are_found_and_data_is_not_taken_for_one() {
    let mut compilers = vec!["gcc"];
    if Command::new("clang").arg("--version").output().is_ok() {
        compilers.push("clang");
    }
    for compiler in compilers {
        for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
            for options in [vec![level], vec![level, "-s"], vec![level, "-s", "-no-pie"]] {
                let image = compiled(compiler, &options);
                let code = Code::parse(&image).unwrap();
                let found = system_calls(&image).unwrap();
                // The table and the distance are alike.
                assert_eq!(found.len(), alike(&code) - 2, "{compiler} {options:?}");
                assert!(found.is_sorted() && !found.is_empty());
                // Compilers load the number right before; without optimisation some do it from memory, which is not moved.
                let can_jump = |call: &SystemCall| (3..=18).contains(&call.before);
                assert!(level == "-O0" || found.iter().all(can_jump), "{compiler} {options:?} {found:x?}");
                assert!(code.sections.iter().any(|section| may_make_system_calls(section.bytes)));
            }
        }
    }
}
