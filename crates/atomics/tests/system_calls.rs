//! Which system calls of a program are found, as compilers make them.

mod compiled;

use compiled::{compiled, has_clang};
use gondwana_atomics::{SYSTEM_CALL, SystemCall, may_make_system_calls, system_calls};
use gondwana_elf::Code;

/// How many bytes are there that look like one.
fn alike(code: &Code<'_>) -> usize {
    let pairs = |bytes: &[u8]| bytes.windows(2).filter(|pair| *pair == SYSTEM_CALL).count();
    code.sections.iter().map(|section| pairs(section.bytes)).sum()
}

#[test]
fn calls_are_found_and_data_is_not_taken_for_one() {
    let mut compilers = vec!["gcc"];
    if has_clang() {
        compilers.push("clang");
    }
    for compiler in compilers {
        for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
            for options in [vec![level], vec![level, "-s"], vec![level, "-s", "-no-pie"]] {
                let image = compiled(compiler, "system_calls.c", &options);
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
