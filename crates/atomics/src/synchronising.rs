//! Instructions with which threads may synchronise: those that change memory of all threads in one step, fences, and those that look at what
//! other threads write, in loops that wait and in double-checked locking.

use crate::double_checked;
use crate::flow::Flow;
use crate::imports::Imports;
use crate::polling;
use crate::scan::{Piece, called, flows, is_atomic, is_of_runtime, pieces};
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

/// The atomic instructions and fences in an ELF file, by ascending addresses.
///
/// # Errors
/// If it is none, or a damaged one.
pub fn atomic_instructions(image: &[u8]) -> Result<Vec<Synchronising>, Error> {
    let code = Code::parse(image)?;
    let mut found = vec![];
    for piece in functions_of(&code) {
        if is_of_runtime(&piece) || !has_some(piece.code) {
            continue;
        }
        let flow = Flow::of(piece.address, piece.code, |_| false);
        let atomic = |index: &usize| is_atomic(&flow.instructions[*index]);
        found.extend((0..flow.instructions.len()).filter(atomic).map(|index| at(&flow, index)));
    }
    found.sort_unstable();
    found.dedup();
    keep_from_jumps(&mut found, &code);
    Ok(found)
}

/// Gives up what comes before instructions where a jump of another function leads into it, as from a part of the same one that is elsewhere.
fn keep_from_jumps(found: &mut [Synchronising], code: &Code<'_>) {
    if !found.iter().any(|one| one.before.is_some_and(|bytes| bytes > 0)) {
        return;
    }
    let mut targets = vec![];
    let mut instruction = Instruction::default();
    for piece in functions_of(code) {
        let inside = piece.address..piece.address + piece.code.len() as u64;
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
        for Range { start, end } in &described {
            let place = |address: u64| usize::try_from(address.checked_sub(section.address)?).ok();
            if let Some(bytes) =
                place(*start).zip(place(*end)).and_then(|(from, to)| section.bytes.get(from..to))
            {
                all.push(Piece { name: named(*start), address: *start, code: bytes });
            }
        }
    }
    all
}

/// The instructions in an ELF file that look at what other threads write, by ascending addresses.
///
/// # Errors
/// If it is none, or a damaged one.
pub fn looks(image: &[u8]) -> Result<Vec<Synchronising>, Error> {
    let mut code = Code::parse(image)?;
    let imports = Imports::of(&code);
    if code.functions.is_empty() {
        code.functions = called(&code);
    }
    let flows = flows(&code, &imports);
    let mut looks = polling::looks(&flows, &imports, &code);
    looks.extend(double_checked::looks(&flows, &imports, &code));
    let functions = functions_of(&code);
    let is_code = |address: u64| {
        functions
            .iter()
            .any(|piece| (piece.address..piece.address + piece.code.len() as u64).contains(&address))
    };
    let place = |address: u64| {
        let flow = &flows[flows.partition_point(|flow| flow.address <= address).checked_sub(1)?];
        let index = flow.instructions.binary_search_by_key(&address, Instruction::ip).ok()?;
        Some(at(flow, index))
    };
    let mut found: Vec<_> = looks.into_iter().filter(|&address| is_code(address)).filter_map(place).collect();
    keep_from_jumps(&mut found, &code);
    Ok(found)
}

fn at(flow: &Flow, index: usize) -> Synchronising {
    let instruction = &flow.instructions[index];
    let is_long = instruction.len() as u64 >= JUMP;
    let before = if is_long { Some(0) } else { Some(bytes_before(flow, index)).filter(|&bytes| bytes > 0) };
    Synchronising { address: instruction.ip(), before }
}

/// True if the code, decoded from its first byte, has atomic instructions or fences.
fn has_some(code: &[u8]) -> bool {
    // Most functions hold none of the bytes that these instructions must have, and need no decoding.
    let may_have = code.iter().any(|byte| matches!(byte, 0xf0 | 0x86 | 0x87));
    let may_fence = || code.windows(3).any(|bytes| bytes == MFENCE);
    if !may_have && !may_fence() {
        return false;
    }
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        if is_atomic(&instruction) {
            return true;
        }
    }
    false
}

/// `mfence`.
const MFENCE: [u8; 3] = [0x0f, 0xae, 0xf0];
