//! Atomic instructions in the executable code of one ELF file.

use crate::double_checked;
use crate::flow::Flow;
use crate::imports::Imports;
use crate::polling;
use crate::redirected::uses;
use crate::reductions;
use crate::site;
use gondwana_elf::{Code, Error};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::ops::Range;

/// Functions of the compiler's runtime that may be linked into any program, and whose atomic instructions do not
/// touch data that threads of the program share: the unwinder's list of frame descriptions.
const RUNTIME: [&str; 4] =
    ["_Unwind_", "__register_frame", "__deregister_frame", "release_registered_frames"];

/// True for functions that clang's and Intel's compilers call where others have an atomic instruction or a fence: `flush`, for which a program
/// has a use only if threads wait for what others write, and `atomic`. The pair of functions with a lock for it is no instruction.
fn is_atomic_call(name: &str) -> bool {
    let atomic = || name.strip_prefix("__kmpc_atomic_").is_some_and(|name| !matches!(name, "start" | "end"));
    name == "__kmpc_flush" || atomic()
}

/// How the functions begin that start the threads and teams of OpenMP.
const OPENMP: [&str; 3] = ["GOMP_parallel", "GOMP_teams", "__kmpc_fork_"];

/// The functions by which programs open libraries.
const OPENS: [&str; 2] = ["dlmopen", "dlopen"];

/// What was found in a file.
#[derive(Debug, Default)]
pub struct Findings {
    /// Where the atomic instructions are, in the file's own numbering and ascending order.
    pub atomics: Vec<u64>,
    /// The first of them.
    pub first: Option<Finding>,
    /// Those of an OpenMP program that can be executed elsewhere, under a lock: they are in functions with names, change memory and are no
    /// fences. None of another program. With the locks, release consistency gives the right results of `atomic` and of all reductions,
    /// unless threads wait for what others write.
    pub lockable: Vec<u64>,
    /// The file calls functions by which programs open libraries.
    pub opens_libraries: bool,
    /// One is in no region of OpenMP, as in most programs that have some.
    outside_regions: bool,
}

impl Findings {
    /// Looks at how control and values flow through the functions of a file with these findings; not at all if it has atomic
    /// instructions outside the regions of OpenMP, which decide everything.
    ///
    /// # Errors
    /// As for [`scan`].
    pub fn analyse(&self, image: &[u8]) -> Result<Analysis, Error> {
        if self.outside_regions {
            return Ok(Analysis::default());
        }
        let mut code = Code::parse(image)?;
        let imports = Imports::of(&code);
        if code.functions.is_empty() {
            code.functions = called(&code);
        }
        let flows = flows(&code, &imports);
        let wait = polling::first(&flows, &imports, &code).map(|address| (Way::Wait, address));
        let plain =
            wait.or_else(|| Some((Way::DoubleCheck, double_checked::first(&flows, &imports, &code)?)));
        let plain = plain.map(|(way, address)| {
            let after = code.functions.partition_point(|(start, _)| *start <= address);
            let name = after.checked_sub(1).map(|last| code.functions[last].1);
            let function = name.filter(|name| !name.is_empty()).map(readable);
            Plain { way, place: Finding { function, address } }
        });
        let may_be = !self.atomics.is_empty() && plain.is_none();
        let reductions = may_be.then(|| reductions::find(&flows, &self.atomics, &imports)).flatten();
        Ok(Analysis { plain, reductions })
    }
}

/// What the flow through a file shows.
#[derive(Debug, Default)]
pub struct Analysis {
    /// The first place where threads may synchronise by plain loads and stores, without a call that the runtime sees.
    pub plain: Option<Plain>,
    /// The atomic instructions, if there are some, they all are reductions of OpenMP and there is no such place: they need a lock around
    /// each, and no sequential consistency.
    pub reductions: Option<Vec<u64>>,
}

/// Synchronisation by plain loads and stores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plain {
    /// How threads do it.
    pub way: Way,
    /// The jump that depends on such a load.
    pub place: Finding,
}

/// Ways in which threads synchronise by plain loads and stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// In a loop, one waits for what another one writes.
    Wait,
    /// One looks at memory without a lock, and once more under one before it writes there.
    DoubleCheck,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wait => "a loop that waits for what other threads write",
            Self::DoubleCheck => {
                "memory that is looked at before it is locked, and again before it is written"
            }
        })
    }
}

/// Functions of libraries that do not return.
const ENDS: [&str; 12] = [
    "abort",
    "exit",
    "_exit",
    "_Exit",
    "quick_exit",
    "__assert_fail",
    "__stack_chk_fail",
    "__cxa_throw",
    "__cxa_rethrow",
    "_Unwind_Resume",
    "longjmp",
    "_ZSt9terminatev",
];

/// Where the functions of a file without names begin that others call. Those that nobody calls count as parts of the ones before.
pub(crate) fn called(code: &Code<'_>) -> Vec<(u64, &'static str)> {
    let mut starts = BTreeSet::new();
    for section in &code.sections {
        let inside = section.address..section.address + section.bytes.len() as u64;
        let decoder = Decoder::with_ip(64, section.bytes, section.address, DecoderOptions::NONE);
        let calls = decoder.into_iter().filter(|one| one.flow_control() == FlowControl::Call);
        let near = calls.filter(|call| call.op0_kind() == OpKind::NearBranch64);
        starts.extend(near.map(|call| call.near_branch_target()).filter(|target| inside.contains(target)));
    }
    starts.into_iter().map(|start| (start, "")).collect()
}

/// The functions of a file, by ascending addresses.
pub(crate) fn flows(code: &Code<'_>, imports: &Imports<'_>) -> Vec<Flow> {
    let start = |place: &u64| code.functions.binary_search_by_key(place, |(start, _)| *start);
    let of_library = |call: &Instruction| imports.callee(call).is_some_and(|name| ENDS.contains(&name));
    let mut pieces: Vec<Piece<'_>> = code
        .sections
        .iter()
        .flat_map(|section| pieces(section.address, section.bytes, &code.functions))
        .filter(|piece| !is_of_runtime(piece))
        .collect();
    pieces.sort_unstable_by_key(|piece| piece.address);
    let mut flows: Vec<Flow> =
        pieces.iter().map(|piece| Flow::of(piece.address, piece.code, of_library)).collect();
    // Functions of the program that end it, such as those that report an error.
    let ending: HashSet<u64> = flows
        .iter()
        .filter(|flow| flow.returning().first() != Some(&true))
        .map(|flow| flow.address)
        .collect();
    for (flow, piece) in flows.iter_mut().zip(&pieces) {
        let calls_ending = |call: &Instruction| {
            call.flow_control() == FlowControl::Call
                && call.op0_kind() == OpKind::NearBranch64
                && ending.contains(&call.near_branch_target())
        };
        if flow.instructions.iter().any(calls_ending) {
            *flow = Flow::of(piece.address, piece.code, |call| of_library(call) || calls_ending(call));
        }
        // A jump to where another function begins is a call; the rest of a function may be elsewhere, too.
        flow.complete &= flow
            .exits
            .iter()
            .all(|place| start(place).is_ok_and(|index| !code.functions[index].1.ends_with(".cold")));
    }
    flows
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The function that it is in, if the file has symbols.
    pub function: Option<String>,
    /// Its address in the file's own numbering.
    pub address: u64,
}

/// A piece of code to be decoded from its first byte.
pub(crate) struct Piece<'a> {
    pub name: Option<&'a str>,
    pub address: u64,
    pub code: &'a [u8],
}

impl Piece<'_> {
    /// The addresses of its bytes.
    pub(crate) fn range(&self) -> Range<u64> {
        self.address..self.address + self.code.len() as u64
    }
}

/// Finds the atomic instructions of an ELF file.
///
/// # Errors
/// If it is none, or a damaged one.
pub fn scan(image: &[u8]) -> Result<Findings, Error> {
    let code = Code::parse(image)?;
    // Mostly the program calls no such function, and its calls need no look.
    let calls = code.uses_any(is_atomic_call).then(|| Imports::of(&code));
    let mut findings = Findings::default();
    for section in &code.sections {
        for piece in pieces(section.address, section.bytes, &code.functions) {
            scan_piece(&piece, calls.as_ref(), &mut findings);
        }
    }
    findings.atomics.sort_unstable();
    findings.lockable.sort_unstable();
    findings.opens_libraries = code.uses_any(|name| OPENS.contains(&name));
    if !code.uses_any(|name| OPENMP.iter().any(|prefix| name.starts_with(prefix))) {
        findings.lockable.clear();
    }
    Ok(findings)
}

/// Cuts a section at the functions that begin in it, so that data between functions cannot lead the decoder astray
/// for long.
pub(crate) fn pieces<'a>(address: u64, code: &'a [u8], functions: &[(u64, &'a str)]) -> Vec<Piece<'a>> {
    let end = address + code.len() as u64;
    let from = functions.partition_point(|(start, _)| *start < address);
    let to = functions.partition_point(|(start, _)| *start < end);
    let inside = &functions[from..to];
    let mut starts = vec![];
    if inside.first().is_none_or(|(start, _)| *start > address) {
        starts.push((address, None));
    }
    starts.extend(inside.iter().map(|(start, name)| (*start, Some(*name))));
    let ends = starts.iter().skip(1).map(|(start, _)| *start).chain([end]).collect::<Vec<_>>();
    let at = |place: u64| usize::try_from(place - address).expect("the code is in memory");
    let cut = |from: u64, to: u64| &code[at(from)..at(to)];
    starts
        .into_iter()
        .zip(ends)
        .map(|((start, name), end)| Piece { name, address: start, code: cut(start, end) })
        .collect()
}

/// True for a function of the compiler's runtime.
pub(crate) fn is_of_runtime(piece: &Piece<'_>) -> bool {
    piece.name.is_some_and(|name| RUNTIME.iter().any(|prefix| name.starts_with(prefix)))
}

fn scan_piece(piece: &Piece<'_>, calls: Option<&Imports<'_>>, findings: &mut Findings) {
    if calls.is_none() && !may_have_atomics(piece.code) {
        return;
    }
    if is_of_runtime(piece) {
        return;
    }
    let mut decoder = Decoder::with_ip(64, piece.code, piece.address, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let is_call = || calls.and_then(|imports| imports.callee(&instruction)).is_some_and(is_atomic_call);
        if is_atomic(&instruction) || is_call() {
            findings.atomics.push(instruction.ip());
            if piece.name.is_some() && is_lockable(&instruction) {
                findings.lockable.push(instruction.ip());
            }
            findings.outside_regions |= !piece.name.is_some_and(reductions::is_region);
            if findings.first.is_none() {
                let function = piece.name.map(readable);
                findings.first = Some(Finding { function, address: instruction.ip() });
            }
        }
    }
}

/// True if code holds a byte that each atomic instruction and fence must have. Most functions hold none, and need no decoding.
pub(crate) fn may_have_atomics(code: &[u8]) -> bool {
    code.iter().any(|byte| matches!(byte, 0xf0 | 0x86 | 0x87))
}

/// True for instructions that other processors see as one step, and for full fences, which only code without locks
/// has a use for.
pub(crate) fn is_atomic(instruction: &Instruction) -> bool {
    if instruction.code() == iced_x86::Code::INVALID {
        return false;
    }
    instruction.has_lock_prefix()
        || instruction.mnemonic() == Mnemonic::Xchg && uses(instruction, OpKind::Memory)
        || instruction.mnemonic() == Mnemonic::Mfence
}

/// True for atomic instructions that can be executed elsewhere, under a lock. Those on the thread's stack are fences.
pub(crate) fn is_lockable(instruction: &Instruction) -> bool {
    site::is_usable(instruction) && instruction.memory_base() != Register::RSP
}

/// A function's name as its author wrote it.
fn readable(name: &str) -> String {
    let demangled = cpp_demangle::Symbol::new(name).ok().and_then(|symbol| symbol.demangle().ok());
    demangled.unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::process::Command;
    use std::time::{Duration, Instant};

    /// A folder that goes away with this value.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("gondwana-scan-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn compile(name: &str, compiler: &str, source: &str, options: &[&str]) -> Vec<u8> {
        let folder = Folder::new(name);
        let input = folder.0.join(if compiler == "g++" { "a.cc" } else { "a.c" });
        let output = folder.0.join("a.out");
        std::fs::write(&input, source).unwrap();
        let status =
            Command::new(compiler).arg(&input).arg("-o").arg(&output).args(options).status().unwrap();
        assert!(status.success());
        std::fs::read(&output).unwrap()
    }

    const COUNTER: &str = "int n; void bump(void) { __sync_fetch_and_add(&n, 1); } \
        int main(void) { bump(); return n - 1; }";

    #[test]
    fn a_program_without_atomics_has_none() {
        let source = "#include <stdio.h>\n#include <pthread.h>\nstatic pthread_mutex_t m;\n\
            int main(int c, char **v) { pthread_mutex_lock(&m); printf(\"%d\\n\", c); return 0; }";
        let findings = scan(&compile("none", "gcc", source, &["-O2"])).unwrap();
        assert_eq!((findings.atomics.len(), findings.first), (0, None));
    }

    #[test]
    fn a_locked_addition_is_found_in_its_function() {
        let findings = scan(&compile("lock", "gcc", COUNTER, &["-O0"])).unwrap();
        assert_eq!(findings.atomics.len(), 1);
        assert_eq!(findings.first.unwrap().function.as_deref(), Some("bump"));
    }

    #[test]
    fn a_stripped_program_is_searched_too() {
        let findings = scan(&compile("strip", "gcc", COUNTER, &["-O0", "-s"])).unwrap();
        assert_eq!(findings.atomics.len(), 1);
        assert_eq!(findings.first.unwrap().function, None);
    }

    #[test]
    fn an_atomic_store_is_found_and_an_exchange_of_registers_is_not() {
        let source = "#include <stdatomic.h>\n_Atomic int n;\n\
            int main(void) { long a = 1, b = 2; __asm__ volatile(\"xchg %0, %1\" : \"+r\"(a), \"+r\"(b));\n\
            atomic_store(&n, 3); return a + b - 3; }";
        assert_eq!(scan(&compile("xchg", "gcc", source, &["-O2"])).unwrap().atomics.len(), 1);
    }

    #[test]
    fn names_of_cpp_functions_are_readable() {
        let source = "#include <atomic>\nnamespace a { std::atomic<int> n; \
            __attribute__((noinline)) void bump(int by) { n += by; } }\nint main() { a::bump(1); }";
        let findings = scan(&compile("cpp", "g++", source, &["-O2"])).unwrap();
        assert_eq!(findings.first.unwrap().function.as_deref(), Some("a::bump(int)"));
    }

    #[test]
    fn code_that_makes_no_sense_is_analysed_too() {
        let source =
            "void room(void) { __asm__(\".fill 2000, 1, 0x90\"); } int main(void) { room(); return 0; }";
        let image = compile("noise", "gcc", source, &["-O2", "-nostartfiles", "-Wl,-e,main"]);
        let text = Code::parse(&image).unwrap().sections[0].bytes.to_vec();
        let place = image.windows(text.len()).position(|window| window == text).unwrap();
        let mut state = 1_u64;
        for _ in 0..200 {
            let mut noise = image.clone();
            for byte in &mut noise[place..place + text.len()] {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *byte = (state >> 56) as u8;
            }
            let findings = scan(&noise).unwrap();
            let _ = findings.analyse(&noise).unwrap();
            // Without names, what calls and jumps lead to is all that is known.
            let _ = Findings::default().analyse(&noise).unwrap();
        }
    }

    #[test]
    fn a_megabyte_of_code_takes_milliseconds() {
        // mov rax, [rax+0x86]: holds a byte that asks for decoding.
        let code = [0x48, 0x8b, 0x80, 0x86, 0, 0, 0].repeat((1 << 20) / 7);
        let piece = Piece { name: None, address: 0, code: &code };
        let mut findings = Findings::default();
        // The best of many: most may have waited for a processor.
        let best = (0..20)
            .map(|_| {
                let start = Instant::now();
                scan_piece(&piece, None, &mut findings);
                start.elapsed()
            })
            .min();
        assert_eq!(findings.atomics.len(), 0);
        assert!(best.unwrap() < Duration::from_millis(300), "{best:?}");
    }
}
