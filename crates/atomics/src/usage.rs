//! What single instructions use and change, found once for all who ask.

use crate::reductions::{reads, writes};
use iced_x86::{Instruction, InstructionInfoFactory, OpKind, Register};

/// A set of registers, each with all of its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registers(u64);

impl Registers {
    pub(crate) fn of(registers: impl IntoIterator<Item = Register>) -> Self {
        Self(registers.into_iter().fold(0, |set, register| set | Self::bit(register)))
    }

    pub(crate) fn contains(self, register: Register) -> bool {
        self.0 & Self::bit(register) != 0
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// General and vector registers have a bit each; all others have one together.
    fn bit(register: Register) -> u64 {
        let register = register.full_register();
        let place = if register.is_gpr64() {
            register.number()
        } else if register.is_zmm() {
            16 + register.number()
        } else {
            63
        };
        1 << place
    }
}

/// What one instruction does, as far as it does not depend on others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// The registers that it may change.
    pub written: Registers,
    pub changes_flags: bool,
    /// It reads, or may write, the memory that its one operand with an address names.
    pub reads_memory: bool,
    pub writes_memory: bool,
    /// It writes to where a register points to, as string instructions do.
    pub by_pointer: bool,
}

impl Usage {
    pub(crate) fn of(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Self {
        let info = factory.info(instruction);
        let written = info.used_registers().iter().filter(|used| writes(used.access()));
        let mut usage = Self {
            written: Registers::of(written.map(|used| used.register())),
            changes_flags: instruction.rflags_modified() != 0,
            ..Self::default()
        };
        for operand in 0..instruction.op_count() {
            match instruction.op_kind(operand) {
                OpKind::Memory => {
                    usage.reads_memory |= reads(info.op_access(operand));
                    usage.writes_memory |= writes(info.op_access(operand));
                }
                OpKind::MemoryESDI | OpKind::MemoryESEDI | OpKind::MemoryESRDI => usage.by_pointer = true,
                _ => (),
            }
        }
        usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_register_are_the_register() {
        let set = Registers::of([Register::AL, Register::XMM3, Register::K1]);
        for register in [Register::RAX, Register::EAX, Register::AH, Register::ZMM3, Register::YMM3] {
            assert!(set.contains(register), "{register:?}");
        }
        for register in [Register::RCX, Register::RDX, Register::ZMM0, Register::ZMM19] {
            assert!(!set.contains(register), "{register:?}");
        }
    }
}
