//! System calls that code makes by the instruction itself, without the C library.
//!
//! The two bytes of the instruction are also parts of others, and of data between functions. So a place counts only if control gets there
//! from where a function begins.

use crate::flow::{Flow, ways_on};
use crate::redirected::uses;
use crate::scan::{called, pieces};
use gondwana_elf::{Code, Error};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use memchr::memmem;
use std::collections::HashSet;

/// The instruction (`syscall`).
pub const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];

/// Decoding begins so many bytes before a place, and at so many of the places from there on.
const BEFORE: usize = 48;
const STARTS: usize = 16;

/// So many instructions of code follow.
const AFTER: usize = 8;

/// True if code seems to have such instructions: it is decoded from several places before each such pair of bytes, and an
/// instruction always begins there, with others behind it. It costs a look at the bytes, and decoding of few.
#[must_use]
pub fn may_make_system_calls(code: &[u8]) -> bool {
    memmem::find_iter(code, &SYSTEM_CALL).any(|place| {
        let first = place.saturating_sub(BEFORE);
        let mut starts = first..place.min(first + STARTS) + 1;
        let rest = Decoder::new(64, &code[place..], DecoderOptions::NONE).into_iter();
        starts.all(|start| begins_at(&code[start..], place - start))
            && !rest.take(AFTER).any(|instruction| instruction.is_invalid())
    })
}

/// True if an instruction begins so many bytes behind the first one's beginning.
fn begins_at(code: &[u8], place: usize) -> bool {
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.position() < place {
        decoder.decode_out(&mut instruction);
    }
    decoder.position() == place
}

/// One of the instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SystemCall {
    /// Where it is, in the file's own numbering.
    pub address: u64,
    /// So many bytes of instructions directly before it are always executed with it, and mean the same at any other address. With it they
    /// have room for a jump. 0 if there are none.
    pub before: u64,
}

/// Where functions are this long on the average, there seem to be more that are not described.
const MOST_OF_FUNCTION: usize = 4096;

/// Bytes of a jump.
pub(crate) const JUMP: u64 = 5;

/// The instructions in an ELF file, by ascending addresses.
///
/// # Errors
/// If it is none, or a damaged one.
pub fn system_calls(image: &[u8]) -> Result<Vec<SystemCall>, Error> {
    let code = Code::parse(image)?;
    let mut functions: Vec<_> = code.described().into_iter().map(|start| (start, "")).collect();
    let bytes: usize = code.sections.iter().map(|section| section.bytes.len()).sum();
    if !code.is_named() && functions.len() * MOST_OF_FUNCTION < bytes {
        functions.extend(called(&code));
    }
    functions.extend(&code.functions);
    functions.sort_unstable_by_key(|(start, _)| *start);
    functions.dedup_by_key(|(start, _)| *start);
    let mut calls = vec![];
    for section in &code.sections {
        for piece in pieces(section.address, section.bytes, &functions) {
            if memmem::find(piece.code, &SYSTEM_CALL).is_some() && may_reach_call(piece.address, piece.code) {
                let flow = Flow::of(piece.address, piece.code, |_| false);
                let reached = flow.reached(0).into_iter();
                calls.extend(reached.filter(|&index| is_call(&flow.instructions[index])).map(|index| {
                    SystemCall { address: flow.instructions[index].ip(), before: bytes_before(&flow, index) }
                }));
            }
        }
    }
    calls.sort_unstable();
    Ok(calls)
}

/// True if control may get from the first instruction to such a one, by what can be seen without knowing of all others. Where functions are
/// not described, most of what stands between two of them is not of the first.
fn may_reach_call(address: u64, code: &[u8]) -> bool {
    let (mut starts, mut seen) = (vec![address], HashSet::new());
    let mut instruction = Instruction::default();
    while let Some(start) = starts.pop() {
        let offset = start.checked_sub(address).and_then(|offset| usize::try_from(offset).ok());
        let Some(rest) = offset.and_then(|offset| code.get(offset..)) else { continue };
        let mut decoder = Decoder::with_ip(64, rest, start, DecoderOptions::NONE);
        let mut goes_on = true;
        while goes_on && decoder.can_decode() && seen.insert(decoder.ip()) {
            decoder.decode_out(&mut instruction);
            if is_call(&instruction) {
                return true;
            }
            let jumps;
            (goes_on, jumps) = ways_on(&instruction).unwrap_or_default();
            if jumps && instruction.op0_kind() == OpKind::NearBranch64 {
                starts.push(instruction.near_branch_target());
            }
        }
    }
    false
}

fn is_call(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Syscall && instruction.len() == SYSTEM_CALL.len()
}

/// As many instructions before one as a jump needs room for, if only the first of them can be jumped to. None where a computed jump may
/// lead anywhere.
pub(crate) fn bytes_before(flow: &Flow, call: usize) -> u64 {
    let end = flow.instructions[call].next_ip();
    let mut first = call;
    while flow.complete && first > 0 && flow.leaders(first) == [first - 1] {
        first -= 1;
        let instruction = &flow.instructions[first];
        let can_move = instruction.flow_control() == FlowControl::Next && !uses(instruction, OpKind::Memory);
        if !can_move {
            break;
        }
        if end - instruction.ip() >= JUMP {
            return flow.instructions[call].ip() - instruction.ip();
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `mov eax, 39; syscall; ret`, in the middle of instructions that use no memory.
    fn call() -> Vec<u8> {
        let around = [0x48, 0x01, 0xd8].repeat(30);
        [&around[..], &[0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3], &around[..]].concat()
    }

    #[test]
    fn a_call_is_reached_by_a_jump_and_not_behind_a_return() {
        // jz over a return; syscall; ret.
        let behind_jump = [0x74, 0x01, 0xc3, 0x0f, 0x05, 0xc3];
        assert!(may_reach_call(0x1000, &behind_jump));
        let behind_return = [0x31, 0xc0, 0xc3, 0x0f, 0x05, 0xc3];
        assert!(!may_reach_call(0x1000, &behind_return));
        // A loop that ends by no instruction of its own.
        assert!(!may_reach_call(0x1000, &[0xeb, 0xfe, 0x0f, 0x05]));
    }

    #[test]
    fn a_system_call_is_seen_and_its_bytes_in_other_instructions_are_not() {
        assert!(may_make_system_calls(&call()));
        assert!(may_make_system_calls(&SYSTEM_CALL));
        // mov eax, [rip + 0x5000f05]: the bytes are its distance.
        let other = [&[0x90; 60][..], &[0x8b, 0x05, 0x0f, 0x05, 0x00, 0x05], &[0x90; 60]].concat();
        assert!(!may_make_system_calls(&other));
        // The bytes are an instruction, and no code is behind it: data.
        let data = [&[0x90; 60][..], &SYSTEM_CALL, &[0x06; 60]].concat();
        assert!(!may_make_system_calls(&data));
        assert!(!may_make_system_calls(&[]));
    }
}
