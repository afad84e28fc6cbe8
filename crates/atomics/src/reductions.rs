//! Reductions of OpenMP: atomic instructions that need no sequential consistency, because a lock around each does.
//!
//! Compiled by gcc, the threads of a region add their parts of a reduction's result by an atomic instruction each, at the end of
//! their part of the loop: an addition in one step, or a loop that compares and exchanges until no other thread came between. If a
//! lock is held around each such instruction, release consistency gives what sequential consistency gives, provided that
//!
//! - all atomic instructions of the program are like that: none stores, fences or takes a lock (for the one that gives it back needs
//!   none);
//! - no thread waits in a loop for what another one writes (`polling.rs`): it would not see it.
//!
//! What is not recognised for certain counts as something else.

use crate::flow::Flow;
use crate::imports::Imports;
use crate::redirected::uses;
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

/// How many instructions a loop has at most that compares and exchanges until no other thread came between.
const RETRY: usize = 16;

/// What is in the names of the functions that gcc and clang make of regions.
const REGIONS: [&str; 2] = ["._omp_fn.", ".omp_outlined."];

/// What all threads of a region must have come to before any goes on.
const MEETINGS: [&str; 5] =
    ["GOMP_barrier", "GOMP_loop_end", "GOMP_sections_end", "__kmpc_barrier", "__kmpc_end_reduce"];

/// True for the name of the function that a compiler has made of a region.
pub(crate) fn is_region(function: &str) -> bool {
    REGIONS.iter().any(|region| function.contains(region))
}

/// The addresses of the atomic instructions `atomics`, which are in regions, if all are reductions. `functions` are all of a program.
pub(crate) fn find(functions: &[Flow], atomics: &[u64], imports: &Imports<'_>) -> Option<Vec<u64>> {
    let mut found = vec![];
    for flow in functions {
        for (index, instruction) in flow.instructions.iter().enumerate() {
            if atomics.binary_search(&instruction.ip()).is_ok() {
                if !flow.complete || !is_reduction(flow, index, imports) {
                    return None;
                }
                found.push(instruction.ip());
            }
        }
    }
    (found.len() == atomics.len()).then_some(found)
}

fn is_reduction(flow: &Flow, index: usize, imports: &Imports<'_>) -> bool {
    let instruction = &flow.instructions[index];
    if instruction.segment_prefix() != Register::None {
        return false;
    }
    // Each time round, all threads meet.
    let meets =
        |instruction: &Instruction| imports.callee(instruction).is_some_and(|name| MEETINGS.contains(&name));
    let Some(cycle) = flow.cycle(index, usize::MAX, |instruction| !meets(instruction)) else { return false };
    match instruction.mnemonic() {
        Mnemonic::Add | Mnemonic::Sub | Mnemonic::Or | Mnemonic::And | Mnemonic::Xor => {
            cycle.is_empty() && instruction.memory_base() != Register::RSP
        }
        Mnemonic::Inc | Mnemonic::Dec => cycle.is_empty(),
        Mnemonic::Cmpxchg => cycle.is_empty() || is_retry(flow, index, &cycle),
        _ => false,
    }
}

/// True if a loop around a comparison and exchange does nothing but make the new value of the one that was found: a thread that fails
/// goes on with what another one has made.
fn is_retry(flow: &Flow, exchange: usize, cycle: &[usize]) -> bool {
    cycle.len() <= RETRY && Retry { flow, exchange, cycle }.comes_back(exchange, &[Register::RAX], RETRY)
}

/// The ways from a comparison and exchange back to it.
struct Retry<'a> {
    flow: &'a Flow,
    exchange: usize,
    cycle: &'a [usize],
}

impl Retry<'_> {
    /// True if every way from an instruction on, after which the registers `made` hold what was found or is made of it, comes back with
    /// such a value to compare with and one to store, in at most `most` steps and without a look at other memory.
    fn comes_back(&self, index: usize, made: &[Register], most: usize) -> bool {
        let mut followers =
            self.flow.followers(index).iter().filter(|follower| self.cycle.contains(follower));
        most > 0
            && followers.all(|&next| {
                let instruction = &self.flow.instructions[next];
                if next == self.exchange {
                    return made.contains(&Register::RAX)
                        && made.contains(&instruction.op1_register().full_register());
                }
                self.makes(instruction, made).is_some_and(|made| self.comes_back(next, &made, most - 1))
            })
    }

    /// What is made after an instruction. `None` if it looks at memory that others may write.
    fn makes(&self, instruction: &Instruction, made: &[Register]) -> Option<Vec<Register>> {
        let looks = uses(instruction, OpKind::Memory);
        if looks && !matches!(instruction.memory_base(), Register::RIP | Register::RSP) {
            return None;
        }
        let mut factory = InstructionInfoFactory::new();
        let used = factory.info(instruction).used_registers();
        let is_made =
            used.iter().any(|used| reads(used.access()) && made.contains(&used.register().full_register()));
        let written =
            used.iter().filter(|used| writes(used.access())).map(|used| used.register().full_register());
        let written: Vec<Register> = written.collect();
        let kept = made.iter().copied().filter(|register| !written.contains(register));
        Some(kept.chain(written.iter().copied().filter(|_| is_made)).collect())
    }
}

pub(crate) fn reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

pub(crate) fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}
