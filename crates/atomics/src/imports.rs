//! Which functions of libraries calls go to.

use gondwana_elf::{Code, CodeSection};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use std::collections::HashMap;

/// Names of functions of libraries, by the linker's stub or by the place of their address.
pub(crate) struct Imports<'a> {
    stubs: HashMap<u64, &'a str>,
    places: HashMap<u64, &'a str>,
}

impl<'a> Imports<'a> {
    /// Those that a file uses.
    pub(crate) fn of(code: &Code<'a>) -> Self {
        let (places, mut stubs) = (code.imports(), HashMap::new());
        for section in &code.stubs {
            find_stubs(section, &places, &mut stubs);
        }
        Self { stubs, places }
    }

    /// The name of the function of a library whose stub is at an address.
    pub(crate) fn name_at(&self, stub: u64) -> Option<&'a str> {
        self.stubs.get(&stub).copied()
    }

    /// The name of the function of a library that an instruction calls.
    pub(crate) fn callee(&self, call: &Instruction) -> Option<&'a str> {
        match call.op0_kind() {
            OpKind::NearBranch64 => self.name_at(call.near_branch_target()),
            OpKind::Memory => place(call).and_then(|place| self.places.get(&place).copied()),
            _ => None,
        }
    }
}

/// The address that an instruction names relative to itself.
fn place(instruction: &Instruction) -> Option<u64> {
    (instruction.memory_base() == Register::RIP).then(|| instruction.memory_displacement64())
}

/// A stub is a jump by way of a place, perhaps behind a mark for indirect branches. Some begin with other instructions, which
/// nobody calls.
fn find_stubs<'a>(
    section: &CodeSection<'_>,
    places: &HashMap<u64, &'a str>,
    stubs: &mut HashMap<u64, &'a str>,
) {
    let mut decoder = Decoder::with_ip(64, section.bytes, section.address, DecoderOptions::NONE);
    let mut mark = None;
    for instruction in &mut decoder {
        if instruction.mnemonic() == Mnemonic::Jmp
            && let Some(name) = place(&instruction).and_then(|place| places.get(&place))
        {
            stubs.insert(mark.unwrap_or(instruction.ip()), name);
            stubs.insert(instruction.ip(), name);
        }
        mark = (instruction.mnemonic() == Mnemonic::Endbr64).then(|| instruction.ip());
    }
}
