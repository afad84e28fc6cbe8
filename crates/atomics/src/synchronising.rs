//! Instructions with which threads may synchronise: those that change memory of all threads in one step, fences, and those that look at what
//! other threads write, in loops that wait and in double-checked locking.

use crate::double_checked;
use crate::flow::Flow;
use crate::imports::Imports;
use crate::polling;
use crate::scan::{Piece, called, flows, is_atomic, is_of_runtime, may_have_atomics, pieces};
use crate::system_calls::{JUMP, bytes_before};
use gondwana_elf::{Code, Error};
use iced_x86::{Decoder, DecoderOptions, Instruction};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// One of the instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Synchronising {
    /// Where it is, in the file's own numbering.
    pub address: u64,
    /// So many bytes of instructions directly before it are always executed with it, and mean the same at any other address. With it they
    /// have room for a jump. `None` if there is no such room; 0 if the instruction is long enough.
    pub before: Option<u64>,
}

/// The instructions in an ELF file, by ascending addresses.
///
/// # Errors
/// If it is none, or a damaged one.
pub fn synchronising(image: &[u8]) -> Result<Vec<Synchronising>, Error> {
    find(image, |code, functions, found| found.extend(looks(code, functions)))
}

/// The atomic instructions and fences among them.
///
/// # Errors
/// As for [`synchronising`].
pub fn atomic_instructions(image: &[u8]) -> Result<Vec<Synchronising>, Error> {
    find(image, |_, _, _| ())
}

/// Those of [`atomic_instructions`], and what `add` adds for the code and its functions.
fn find(
    image: &[u8],
    add: impl FnOnce(&mut Code<'_>, &[Piece<'_>], &mut Vec<Synchronising>),
) -> Result<Vec<Synchronising>, Error> {
    let mut code = Code::parse(image)?;
    let functions = functions_of(&code);
    let mut found = atomics(&functions);
    add(&mut code, &functions, &mut found);
    found.sort_unstable();
    found.dedup_by_key(|one| one.address);
    keep_from_jumps(&mut found, &functions);
    Ok(found)
}

fn atomics(functions: &[Piece<'_>]) -> Vec<Synchronising> {
    let mut found = vec![];
    for piece in functions.iter().filter(|piece| !is_of_runtime(piece) && has_atomics(piece.code)) {
        let flow = Flow::of(piece.address, piece.code, |_| false);
        let atomic = |index: &usize| is_atomic(&flow.instructions[*index]);
        found.extend((0..flow.instructions.len()).filter(atomic).map(|index| at(&flow, index)));
    }
    found
}

/// The instructions that look at what other threads write.
fn looks(code: &mut Code<'_>, functions: &[Piece<'_>]) -> Vec<Synchronising> {
    let imports = Imports::of(code);
    if code.functions.is_empty() {
        code.functions = called(code);
    }
    let flows = flows(code, &imports);
    let mut looks = polling::looks(&flows, &imports, code);
    looks.extend(double_checked::looks(&flows, &imports, code));
    looks.retain(|address| functions.iter().any(|piece| piece.range().contains(address)));
    let place = |address: u64| {
        let flow = &flows[flows.partition_point(|flow| flow.address <= address).checked_sub(1)?];
        let index = flow.instructions.binary_search_by_key(&address, Instruction::ip).ok()?;
        Some(at(flow, index))
    };
    looks.into_iter().filter_map(place).collect()
}

/// Gives up what comes before instructions where a jump of another function leads into it, as from a part of the same one that is elsewhere.
fn keep_from_jumps(found: &mut [Synchronising], functions: &[Piece<'_>]) {
    if !found.iter().any(|one| one.before.is_some_and(|bytes| bytes > 0)) {
        return;
    }
    let mut targets = vec![];
    let mut instruction = Instruction::default();
    for piece in functions {
        let inside = piece.range();
        let mut decoder = Decoder::with_ip(64, piece.code, piece.address, DecoderOptions::NONE);
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            let target = instruction.near_branch_target();
            if target != 0 && !inside.contains(&target) {
                targets.push(target);
            }
        }
    }
    targets.sort_unstable();
    for one in found {
        let first = one.address - one.before.unwrap_or(0);
        let next = targets.partition_point(|&target| target <= first);
        if targets.get(next).is_some_and(|&target| target <= one.address) {
            one.before = None;
        }
    }
}

/// The functions of a file, without the data between them where the file tells.
fn functions_of<'a>(code: &Code<'a>) -> Vec<Piece<'a>> {
    let described = code.described_code();
    let named = |start: u64| {
        let place = code.functions.binary_search_by_key(&start, |(start, _)| *start).ok()?;
        Some(code.functions[place].1)
    };
    let mut all = vec![];
    for section in &code.sections {
        if described.is_empty() {
            all.extend(pieces(section.address, section.bytes, &code.functions));
        }
        for &Range { start, end } in &described {
            let place = |address: u64| usize::try_from(address.checked_sub(section.address)?).ok();
            let inside = place(start).zip(place(end)).and_then(|(from, to)| section.bytes.get(from..to));
            all.extend(inside.map(|code| Piece { name: named(start), address: start, code }));
        }
    }
    all
}

fn at(flow: &Flow, index: usize) -> Synchronising {
    let instruction = &flow.instructions[index];
    let is_long = instruction.len() as u64 >= JUMP;
    let before = if is_long { Some(0) } else { Some(bytes_before(flow, index)).filter(|&bytes| bytes > 0) };
    Synchronising { address: instruction.ip(), before }
}

/// True if the code, decoded from its first byte, has atomic instructions or fences.
fn has_atomics(code: &[u8]) -> bool {
    may_have_atomics(code)
        && Decoder::new(64, code, DecoderOptions::NONE).into_iter().any(|one| is_atomic(&one))
}
