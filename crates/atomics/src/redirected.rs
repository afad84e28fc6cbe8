//! One instruction, prepared to be executed on other memory than the one that it names.

use iced_x86::{Decoder, DecoderOptions, Encoder, FlowControl, Instruction, Mnemonic, OpKind, Register};

/// The longest instruction that the processor knows, in bytes.
pub const LONGEST: usize = 15;

/// The most bytes of memory that an instruction may access here.
const MOST_BYTES: usize = 64;

/// The numbers of registers in the instruction set.
const RCX: usize = 1;
const RSI: usize = 6;
const RDI: usize = 7;

/// The zero flag, among the processor's flags.
const ZERO: u64 = 1 << 6;

/// An instruction whose memory operand is addressed by one register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirected {
    /// The instruction, wherever it is executed: it names no memory relative to itself.
    pub code: Vec<u8>,
    /// The number of the register that holds the address of the memory. The instruction does not use it otherwise, but for a string
    /// instruction, which moves it on.
    pub register: usize,
    /// Bytes of memory that it accesses.
    pub bytes: usize,
    /// Whether others must see the memory either before or after it.
    pub is_atomic: bool,
    /// Where the next instruction is.
    pub next: u64,
    string: Option<Repeat>,
}

/// When a string instruction, of which one step is executed, goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    /// Not at all.
    Once,
    /// While the count in `rcx` is not 0.
    Count,
    /// And the flag of equality is this one.
    While(bool),
}

impl Redirected {
    /// The instruction whose code begins with `code`, at an address, which accesses `memory`. `registers` are the thread's. `None` if it
    /// cannot be executed in this way.
    #[must_use]
    pub fn at(address: u64, code: &[u8], memory: u64, registers: &[u64; 16]) -> Option<Self> {
        let mut instruction = Decoder::with_ip(64, code, address, DecoderOptions::NONE).decode();
        let bytes = instruction.memory_size().size();
        let is_plain = !instruction.is_invalid()
            && instruction.flow_control() == FlowControl::Next
            && !instruction.is_vsib()
            && instruction.segment_prefix() == Register::None
            && (1..=MOST_BYTES).contains(&bytes);
        if !is_plain {
            return None;
        }
        let next = instruction.next_ip();
        let (register, string) = if instruction.is_string_instruction() {
            let sides = [(RDI, OpKind::MemoryESRDI), (RSI, OpKind::MemorySegRSI)];
            let uses = |kind| (0..instruction.op_count()).any(|index| instruction.op_kind(index) == kind);
            let names = |&(number, kind): &(usize, OpKind)| {
                uses(kind) && memory.wrapping_sub(registers[number]) < bytes as u64
            };
            (sides.into_iter().find(names)?.0, Some(step_of(&mut instruction)))
        } else {
            let register = free_register(&instruction)?;
            instruction.set_memory_base(register);
            instruction.set_memory_index(Register::None);
            instruction.set_memory_index_scale(1);
            instruction.set_memory_displacement64(0);
            instruction.set_memory_displ_size(0);
            (register.number(), None)
        };
        let mut encoder = Encoder::new(64);
        encoder.encode(&instruction, address).ok()?;
        let is_atomic = instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg;
        Some(Self { code: encoder.take_buffer(), register, bytes, is_atomic, next, string })
    }

    /// Puts the registers right after the instruction has been executed with `at` in its register, which held `before`. Gives the address of
    /// what the thread executes next: of a string instruction perhaps the same again, which is at `address`.
    #[must_use]
    pub fn finish(&self, address: u64, registers: &mut [u64; 16], flags: u64, at: u64, before: u64) -> u64 {
        let register = &mut registers[self.register];
        let Some(repeat) = self.string else {
            *register = before;
            return self.next;
        };
        *register = register.wrapping_sub(at).wrapping_add(before);
        if repeat == Repeat::Once {
            return self.next;
        }
        registers[RCX] = registers[RCX].wrapping_sub(1);
        let goes_on = match repeat {
            Repeat::While(equal) => (flags & ZERO != 0) == equal,
            Repeat::Once | Repeat::Count => true,
        };
        if goes_on && registers[RCX] != 0 { address } else { self.next }
    }
}

/// Makes a string instruction one step of it.
fn step_of(instruction: &mut Instruction) -> Repeat {
    let (equal, unequal) = (instruction.has_repe_prefix(), instruction.has_repne_prefix());
    instruction.set_has_repe_prefix(false);
    instruction.set_has_repne_prefix(false);
    let compares = instruction.rflags_written() != 0;
    match (equal || unequal, compares) {
        (false, _) => Repeat::Once,
        (true, false) => Repeat::Count,
        (true, true) => Repeat::While(equal),
    }
}

/// A register that the instruction does not use.
fn free_register(instruction: &Instruction) -> Option<Register> {
    let named: Vec<Register> = (0..instruction.op_count())
        .filter(|&index| instruction.op_kind(index) == OpKind::Register)
        .map(|index| instruction.op_register(index))
        .collect();
    let is_free = |register: &Register| named.iter().all(|used| used.full_register() != *register);
    // The second byte of a register has no encoding beside the registers that came with 64 bits.
    if named.iter().any(|used| matches!(used, Register::AH | Register::BH | Register::CH | Register::DH)) {
        return Some(Register::RSI);
    }
    // No instruction uses these without naming them.
    [Register::R8, Register::R9, Register::R10, Register::R12, Register::R13].into_iter().find(is_free)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 0x40_0000;

    /// Registers that hold their numbers, times 16.
    fn registers() -> [u64; 16] {
        std::array::from_fn(|number| number as u64 * 16)
    }

    fn redirected(code: &[u8], memory: u64) -> Option<Redirected> {
        Redirected::at(AT, code, memory, &registers())
    }

    #[test]
    fn each_form_of_memory_becomes_a_register() {
        // mov eax,[rip+0x1000]; mov [rbx+rcx*8+8],r8; lock add dword [rdi],1; lock cmpxchg [rsi],r8; mov [rdi],ah;
        // movups [rax+16],xmm1; vmovdqu ymm2,[rdi-32]; xchg [r8],r9.
        let forms: [(&[u8], &[u8], usize, usize, bool); 8] = [
            (&[0x8b, 0x05, 0x00, 0x10, 0, 0], &[0x41, 0x8b, 0x00], 8, 4, false),
            (&[0x4c, 0x89, 0x44, 0xcb, 0x08], &[0x4d, 0x89, 0x01], 9, 8, false),
            (&[0xf0, 0x83, 0x07, 0x01], &[0xf0, 0x41, 0x83, 0x00, 0x01], 8, 4, true),
            (&[0xf0, 0x4c, 0x0f, 0xb1, 0x06], &[0xf0, 0x4d, 0x0f, 0xb1, 0x01], 9, 8, true),
            (&[0x88, 0x27], &[0x88, 0x26], RSI, 1, false),
            (&[0x0f, 0x11, 0x48, 0x10], &[0x41, 0x0f, 0x11, 0x08], 8, 16, false),
            (&[0xc5, 0xfe, 0x6f, 0x57, 0xe0], &[0xc4, 0xc1, 0x7e, 0x6f, 0x10], 8, 32, false),
            (&[0x4d, 0x87, 0x08], &[0x4d, 0x87, 0x08], 8, 8, true),
        ];
        for (code, expected, register, bytes, is_atomic) in forms {
            let found = redirected(code, 0).unwrap_or_else(|| panic!("{code:x?}"));
            assert_eq!(
                (&found.code[..], found.register, found.bytes, found.is_atomic, found.next),
                (expected, register, bytes, is_atomic, AT + code.len() as u64),
                "{code:x?}"
            );
        }
    }

    #[test]
    fn a_string_instruction_is_a_step_that_goes_on() {
        // rep movsb, of which the target is elsewhere; then the source.
        for (register, memory) in [(RDI, 7 * 16), (RSI, 6 * 16)] {
            let step = redirected(&[0xf3, 0xa4], memory).unwrap();
            assert_eq!((&step.code[..], step.register, step.bytes), (&[0xa4_u8][..], register, 1));
            let mut after = registers();
            after[register] = 0x9001;
            after[RCX] = 2;
            assert_eq!(step.finish(AT, &mut after, 0, 0x9000, memory), AT);
            assert_eq!((after[register], after[RCX]), (memory + 1, 1));
            after[register] = 0x9001;
            assert_eq!(step.finish(AT, &mut after, 0, 0x9000, memory), AT + 2);
        }
        // repe cmpsb ends at a difference.
        let step = redirected(&[0xf3, 0xa6], 7 * 16).unwrap();
        for (flags, next) in [(ZERO, AT), (0, AT + 2)] {
            assert_eq!(step.finish(AT, &mut [9; 16], flags, 0, 0), next);
        }
        // stosq once.
        let step = redirected(&[0x48, 0xab], 7 * 16).unwrap();
        assert_eq!((step.bytes, step.finish(AT, &mut registers(), 0, 0, 0)), (8, AT + 2));
    }

    #[test]
    fn the_register_is_as_before() {
        let load = redirected(&[0x8b, 0x00], 0).unwrap();
        let mut after = registers();
        after[load.register] = 0x9000;
        assert_eq!(load.finish(AT, &mut after, 0, 0x9000, 128), AT + 2);
        assert_eq!(after, registers());
    }

    #[test]
    fn what_cannot_be_executed_elsewhere_is_refused() {
        // call [rax]; jmp [rax]; mov eax,fs:[0]; fxsave [rax]; vpgatherdd xmm1,[rax+xmm2],xmm3; mov rax,rbx; nothing.
        let others: [&[u8]; 7] = [
            &[0xff, 0x10],
            &[0xff, 0x20],
            &[0x64, 0x8b, 0x04, 0x25, 0, 0, 0, 0],
            &[0x0f, 0xae, 0x00],
            &[0xc4, 0xe2, 0x61, 0x90, 0x0c, 0x10],
            &[0x48, 0x89, 0xd8],
            &[],
        ];
        for code in others {
            assert_eq!(redirected(code, 0), None, "{code:x?}");
        }
    }
}
