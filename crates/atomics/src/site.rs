//! One atomic instruction, prepared to be executed elsewhere.

use crate::redirected::uses;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

/// An atomic instruction of a program in memory.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    instruction: Instruction,
    /// Where the instruction has the distance of memory that it names relative to itself.
    distance: Option<usize>,
}

impl Site {
    /// The instruction whose code begins with `code`, at an address. `None` if it does not lock memory of the thread's own segment, as
    /// where the code is not the one that was searched.
    #[must_use]
    pub fn at(address: u64, code: &[u8]) -> Option<Self> {
        Self::decode(address, code).filter(|site| is_usable(&site.instruction))
    }

    /// The same for an instruction with which threads may synchronise: one that locks memory, reads it, or is a fence.
    #[must_use]
    pub fn synchronising(address: u64, code: &[u8]) -> Option<Self> {
        Self::decode(address, code).filter(|site| {
            let Self { instruction, .. } = site;
            let names_memory =
                uses(instruction, OpKind::Memory) && instruction.segment_prefix() == Register::None;
            instruction.flow_control() == FlowControl::Next && (site.is_fence() || names_memory)
        })
    }

    /// `None` if it names memory relative to itself in a way that cannot be moved.
    fn decode(address: u64, code: &[u8]) -> Option<Self> {
        let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
        let instruction = decoder.decode();
        let offsets = decoder.get_constant_offsets(&instruction);
        let is_relative = instruction.memory_base() == Register::RIP;
        let distance =
            (is_relative && offsets.displacement_size() == 4).then(|| offsets.displacement_offset());
        (is_relative == distance.is_some()).then_some(Self { instruction, distance })
    }

    pub(crate) fn instruction(&self) -> &Instruction {
        &self.instruction
    }

    /// True if it orders accesses to memory, and what it changes itself is nothing.
    #[must_use]
    pub fn is_fence(&self) -> bool {
        let on_stack = self.instruction.has_lock_prefix() && self.instruction.memory_base() == Register::RSP;
        on_stack || self.instruction.mnemonic() == Mnemonic::Mfence
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.instruction.ip()
    }

    /// Where the next instruction is.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.instruction.next_ip()
    }

    /// The address of the memory that it changes. `register` gives the contents of a general register by its number in the instruction set: 0 for
    /// `rax`, 1 for `rcx`, up to 15 for `r15`.
    #[must_use]
    pub fn memory(&self, register: impl Fn(usize) -> u64) -> u64 {
        memory_of(&self.instruction, register)
    }

    /// How many bytes of memory it accesses: at least 1, at most 64.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        u32::try_from(self.instruction.memory_size().size()).map_or(1, |bytes| bytes.clamp(1, 64))
    }

    /// Its code for another address. `None` if that is too far from the memory that it names relative to itself. `code` is as for
    /// [`Site::at`].
    #[must_use]
    pub fn moved(&self, code: &[u8], to: u64) -> Option<Vec<u8>> {
        let mut code = code.get(..self.instruction.len())?.to_vec();
        if let Some(place) = self.distance {
            let end = to.wrapping_add(code.len() as u64);
            let distance = self.instruction.memory_displacement64().wrapping_sub(end).cast_signed();
            let distance = i32::try_from(distance).ok()?;
            code.get_mut(place..place + 4)?.copy_from_slice(&distance.to_le_bytes());
        }
        Some(code)
    }
}

/// The address of an instruction's memory operand, by what the general registers hold.
pub(crate) fn memory_of(instruction: &Instruction, register: impl Fn(usize) -> u64) -> u64 {
    let value = |name: Register| match name {
        // The displacement is the address then.
        Register::None | Register::RIP => 0,
        name => register(name.number()),
    };
    let index = value(instruction.memory_index());
    value(instruction.memory_base())
        .wrapping_add(index.wrapping_mul(instruction.memory_index_scale().into()))
        .wrapping_add(instruction.memory_displacement64())
}

/// True if an instruction changes memory of all threads in one step.
pub(crate) fn is_usable(instruction: &Instruction) -> bool {
    (instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg)
        && instruction.op0_kind() == OpKind::Memory
        && instruction.segment_prefix() == Register::None
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 0x40_0000;

    /// Registers whose contents are their numbers, times 16.
    fn register(number: usize) -> u64 {
        number as u64 * 16
    }

    #[test]
    fn the_memory_of_each_form_is_known() {
        // lock add [rdi], eax; lock cmpxchg [r12], rcx; lock add [rbx+0x18], ecx; lock add [rax+rdx*8-8], rcx; xchg [rdi], eax.
        let forms: [(&[u8], u64); 5] = [
            (&[0x87, 0x07], 7 * 16),
            (&[0xf0, 0x01, 0x07], 7 * 16),
            (&[0xf0, 0x49, 0x0f, 0xb1, 0x0c, 0x24], 12 * 16),
            (&[0xf0, 0x01, 0x4b, 0x18], 3 * 16 + 0x18),
            (&[0xf0, 0x48, 0x01, 0x4c, 0xd0, 0xf8], 2 * 16 * 8 - 8),
        ];
        for (code, memory) in forms {
            let site = Site::at(AT, code).unwrap();
            assert_eq!((site.memory(register), site.next()), (memory, AT + code.len() as u64), "{code:x?}");
            assert_eq!(site.moved(code, 0x7000_0000_0000).unwrap(), code);
        }
    }

    #[test]
    fn memory_near_the_instruction_stays_where_it_is() {
        // lock add dword [rip+0x1000], 1
        let code = [0xf0, 0x83, 0x05, 0x00, 0x10, 0, 0, 1];
        let site = Site::at(AT, &code).unwrap();
        assert_eq!(site.memory(register), AT + 8 + 0x1000);
        let moved = site.moved(&code, AT - 0x10_0000).unwrap();
        assert_eq!(Site::at(AT - 0x10_0000, &moved).unwrap().memory(register), AT + 8 + 0x1000);
        assert!(site.moved(&code, AT + (1 << 32)).is_none());
    }

    #[test]
    fn what_locks_no_memory_of_threads_is_refused() {
        // add [rdi], eax; lock add fs:[rdi], eax; mov rax, rbx; xchg ax, ax; nothing.
        let others: [&[u8]; 5] =
            [&[0x01, 0x07], &[0x64, 0xf0, 0x01, 0x07], &[0x48, 0x89, 0xd8], &[0x66, 0x90], &[]];
        assert!(others.iter().all(|code| Site::at(AT, code).is_none()));
    }
}
