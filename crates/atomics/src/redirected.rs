//! One instruction, prepared to be executed on other memory than the one that it names.

use crate::site::memory_of;
use iced_x86::{
    Code, Decoder, DecoderOptions, Encoder, FlowControl, Instruction, MemoryOperand, MemorySize, Mnemonic,
    OpKind, Register,
};

/// The longest instruction that the processor knows, in bytes.
pub const LONGEST: usize = 15;

/// The most bytes of memory that an instruction accesses here: a string instruction in some of its steps.
pub const MOST_BYTES: usize = 4096;

/// The most bytes of memory that one step, or any other instruction, may access.
const MOST_AT_ONCE: usize = 64;

/// The numbers of registers in the instruction set.
const RCX: usize = 1;
const RSI: usize = 6;
const RDI: usize = 7;
const R8: usize = 8;
const R9: usize = 9;

/// `push r9`.
const PUSH: [u8; 2] = [0x41, 0x51];

/// The zero flag and the direction flag, among the processor's flags.
const ZERO: u64 = 1 << 6;
const DOWN: u64 = 1 << 10;

/// An instruction whose memory operand is addressed by one register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirected {
    /// The instruction, wherever it is executed: it names no memory relative to itself. For a jump or a call through memory, what
    /// loads the target, and pushes the address of the next instruction.
    pub code: Vec<u8>,
    /// The number of the register that holds the address of the memory. The instruction does not use it otherwise, but for a string
    /// instruction, which moves it on.
    register: usize,
    /// The address of the memory that it accesses.
    pub memory: u64,
    /// Bytes of that.
    pub bytes: usize,
    /// What it does with them.
    pub action: Action,
    /// It may leave out the last of them, by a mask or because it ends before: they need not be there.
    pub may_access_less: bool,
    /// Whether others must see the memory either before or after it.
    pub is_atomic: bool,
    /// Where the next instruction is.
    next: u64,
    repeat: Option<Repeat>,
    through: Option<Through>,
}

/// What an instruction does with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It reads all of it and writes none.
    Reads,
    /// It writes all of it.
    Writes,
    /// Either, or both, or some.
    Any,
}

/// Where control goes through memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Through {
    Jump,
    Call,
}

/// How a string instruction is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Repeat {
    /// How many steps are executed at a time.
    steps: u64,
    /// What the zero flag must be for another step, if that matters.
    while_equal: Option<bool>,
}

impl Redirected {
    /// The instruction whose code begins with `code`, at an address, which has faulted at one. `registers` and `flags` are the thread's.
    /// `None` if it cannot be executed in this way.
    #[must_use]
    pub fn at(address: u64, code: &[u8], fault: u64, registers: &[u64; 16], flags: u64) -> Option<Self> {
        let mut instruction = Decoder::with_ip(64, code, address, DecoderOptions::NONE).decode();
        let bytes = instruction.memory_size().size();
        let is_near = instruction.memory_size() == MemorySize::QwordOffset;
        let through = match instruction.flow_control() {
            FlowControl::Next => None,
            FlowControl::IndirectBranch if is_near => Some(Through::Jump),
            FlowControl::IndirectCall if is_near => Some(Through::Call),
            _ => return None,
        };
        let is_plain = !instruction.is_invalid()
            && (instruction.is_string_instruction() || uses(&instruction, OpKind::Memory))
            && !instruction.is_vsib()
            && instruction.segment_prefix() == Register::None
            && !instruction.memory_base().is_gpr32()
            && !instruction.memory_index().is_gpr32()
            && (1..=MOST_AT_ONCE).contains(&bytes);
        if !is_plain {
            return None;
        }
        let next = instruction.next_ip();
        let is_atomic = instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg;
        let mut redirected = Self {
            code: vec![],
            register: 0,
            memory: 0,
            bytes,
            action: Action::Any,
            may_access_less: instruction.op_mask() != Register::None,
            is_atomic,
            next,
            repeat: None,
            through,
        };
        if instruction.is_string_instruction() {
            redirected.become_string(&instruction, fault, registers, flags)?;
        } else if through.is_some() {
            redirected.memory = memory_of(&instruction, |number| registers[number]);
            redirected.register = R8;
            redirected.action = Action::Reads;
            let target = MemoryOperand::with_base(Register::R8);
            instruction = Instruction::with2(Code::Mov_r64_rm64, Register::R8, target).ok()?;
        } else {
            let register = free_register(&instruction)?;
            redirected.memory = memory_of(&instruction, |number| registers[number]);
            instruction.set_memory_base(register);
            instruction.set_memory_index(Register::None);
            instruction.set_memory_index_scale(1);
            instruction.set_memory_displacement64(0);
            instruction.set_memory_displ_size(0);
            redirected.register = register.number();
        }
        redirected.may_access_less |= redirected.repeat.is_some_and(|repeat| repeat.while_equal.is_some());
        let mut encoder = Encoder::new(64);
        encoder.encode(&instruction, address).ok()?;
        redirected.code = encoder.take_buffer();
        if through == Some(Through::Call) {
            redirected.code.extend(PUSH);
        }
        (fault.wrapping_sub(redirected.memory) < bytes as u64).then_some(redirected)
    }

    /// One of the memory operands of a string instruction has faulted: a register holds its address already.
    fn become_string(
        &mut self,
        instruction: &Instruction,
        fault: u64,
        registers: &[u64; 16],
        flags: u64,
    ) -> Option<()> {
        let sides = [(RDI, OpKind::MemoryESRDI), (RSI, OpKind::MemorySegRSI)];
        let names = |&(number, kind): &(usize, OpKind)| {
            uses(instruction, kind) && fault.wrapping_sub(registers[number]) < self.bytes as u64
        };
        self.register = sides.into_iter().find(names)?.0;
        self.memory = registers[self.register];
        let compares = instruction.rflags_written() != 0;
        self.action = if self.register == RDI && !compares { Action::Writes } else { Action::Reads };
        let (equal, unequal) = (instruction.has_repe_prefix(), instruction.has_repne_prefix());
        if equal || unequal {
            let most = if flags & DOWN == 0 { (MOST_BYTES / self.bytes) as u64 } else { 1 };
            let steps = registers[RCX].min(most);
            self.bytes *= usize::try_from(steps).ok()?;
            self.repeat = Some(Repeat { steps, while_equal: compares.then_some(equal) });
        }
        Some(())
    }

    /// The registers with which the instruction is executed: `at` is where its memory is.
    #[must_use]
    pub fn begin(&self, mut registers: [u64; 16], at: u64) -> [u64; 16] {
        registers[self.register] = at;
        if let Some(repeat) = self.repeat {
            registers[RCX] = repeat.steps;
        }
        if self.through == Some(Through::Call) {
            registers[R9] = self.next;
        }
        registers
    }

    /// Puts the registers right after that. `before` are those before it. Gives the address of what the thread executes next: of a string
    /// instruction perhaps the same again, which is at `address`.
    #[must_use]
    pub fn finish(
        &self,
        address: u64,
        registers: &mut [u64; 16],
        flags: u64,
        at: u64,
        before: &[u64; 16],
    ) -> u64 {
        if self.through.is_some() {
            let target = registers[R8];
            (registers[R8], registers[R9]) = (before[R8], before[R9]);
            return target;
        }
        // Only a string instruction has moved its register on.
        let register = &mut registers[self.register];
        *register = register.wrapping_sub(at).wrapping_add(before[self.register]);
        let Some(Repeat { steps, while_equal }) = self.repeat else { return self.next };
        let all = registers[RCX] == 0;
        registers[RCX] = before[RCX] - (steps - registers[RCX]);
        let goes_on = all && while_equal.is_none_or(|equal| (flags & ZERO != 0) == equal);
        if goes_on && registers[RCX] != 0 { address } else { self.next }
    }
}

/// True if an operand of an instruction is of this kind.
pub(crate) fn uses(instruction: &Instruction, kind: OpKind) -> bool {
    (0..instruction.op_count()).any(|index| instruction.op_kind(index) == kind)
}

/// A register that the instruction does not use.
fn free_register(instruction: &Instruction) -> Option<Register> {
    let named = (0..instruction.op_count())
        .filter(|&index| instruction.op_kind(index) == OpKind::Register)
        .map(|index| instruction.op_register(index));
    // The second byte of a register has no encoding beside the registers that came with 64 bits.
    let second = [Register::AH, Register::BH, Register::CH, Register::DH];
    if named.clone().any(|used| second.contains(&used)) {
        return Some(Register::RSI);
    }
    let is_free = |register: &Register| named.clone().all(|used| used.full_register() != *register);
    // No instruction uses these without naming them.
    [Register::R8, Register::R9, Register::R10, Register::R12, Register::R13].into_iter().find(is_free)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 0x40_0000;

    /// Code, the memory that it names, the code that is executed, its register, bytes, and whether it is atomic.
    type Form = (&'static [u8], u64, &'static [u8], usize, usize, bool);

    /// Registers that hold their numbers, times 16.
    fn registers() -> [u64; 16] {
        std::array::from_fn(|number| number as u64 * 16)
    }

    fn redirected(code: &[u8], memory: u64) -> Option<Redirected> {
        Redirected::at(AT, code, memory, &registers(), 0)
    }

    #[test]
    fn each_form_of_memory_becomes_a_register() {
        // mov eax,[rip+0x1000]; mov [rbx+rcx*8+8],r8; lock add dword [rdi],1; lock cmpxchg [rsi],r8; mov [rdi],ah;
        // movups [rax+16],xmm1; vmovdqu ymm2,[rdi-32]; xchg [r8],r9.
        let forms: [Form; 8] = [
            (&[0x8b, 0x05, 0x00, 0x10, 0, 0], AT + 0x1006, &[0x41, 0x8b, 0x00], 8, 4, false),
            (&[0x4c, 0x89, 0x44, 0xcb, 0x08], 3 * 16 + 8 * 16 + 8, &[0x4d, 0x89, 0x01], 9, 8, false),
            (&[0xf0, 0x83, 0x07, 0x01], 7 * 16, &[0xf0, 0x41, 0x83, 0x00, 0x01], 8, 4, true),
            (&[0xf0, 0x4c, 0x0f, 0xb1, 0x06], 6 * 16, &[0xf0, 0x4d, 0x0f, 0xb1, 0x01], 9, 8, true),
            (&[0x88, 0x27], 7 * 16, &[0x88, 0x26], RSI, 1, false),
            (&[0x0f, 0x11, 0x48, 0x10], 16, &[0x41, 0x0f, 0x11, 0x08], 8, 16, false),
            (&[0xc5, 0xfe, 0x6f, 0x57, 0xe0], 7 * 16 - 32, &[0xc4, 0xc1, 0x7e, 0x6f, 0x10], 8, 32, false),
            (&[0x4d, 0x87, 0x08], 8 * 16, &[0x4d, 0x87, 0x08], 8, 8, true),
        ];
        for (code, memory, expected, register, bytes, is_atomic) in forms {
            // Wherever in its memory it faults.
            let found = redirected(code, memory + bytes as u64 - 1).unwrap_or_else(|| panic!("{code:x?}"));
            assert_eq!(found.memory, memory);
            assert_eq!(
                (&found.code[..], found.register, found.bytes, found.is_atomic, found.next),
                (expected, register, bytes, is_atomic, AT + code.len() as u64),
                "{code:x?}"
            );
        }
    }

    #[test]
    fn a_string_instruction_goes_on_after_some_steps() {
        // rep movsb, of which the target is elsewhere; then the source.
        let mut before = registers();
        before[RCX] = MOST_BYTES as u64 + 3;
        for (register, action) in [(RDI, Action::Writes), (RSI, Action::Reads)] {
            let code = [0xf3, 0xa4];
            let some = Redirected::at(AT, &code, before[register], &before, 0).unwrap();
            assert_eq!((&some.code[..], some.register, some.bytes), (&code[..], register, MOST_BYTES));
            assert_eq!(some.action, action);
            let mut after = some.begin(before, 0x9000);
            assert_eq!((after[register], after[RCX]), (0x9000, MOST_BYTES as u64));
            (after[register], after[RCX]) = (0x9000 + MOST_BYTES as u64, 0);
            assert_eq!(some.finish(AT, &mut after, 0, 0x9000, &before), AT);
            assert_eq!((after[register], after[RCX]), (before[register] + MOST_BYTES as u64, 3));
            let rest = Redirected::at(AT, &code, after[register], &after, 0).unwrap();
            let mut end = rest.begin(after, 0x9000);
            (end[register], end[RCX]) = (0x9003, 0);
            assert_eq!((rest.bytes, rest.finish(AT, &mut end, 0, 0x9000, &after)), (3, AT + 2));
            // Downwards, one step at a time.
            let step = Redirected::at(AT, &code, before[register], &before, DOWN).unwrap();
            assert_eq!(step.bytes, 1);
        }
    }

    #[test]
    fn a_comparison_ends_at_a_difference() {
        // repe cmpsb.
        let mut before = registers();
        before[RCX] = 5000;
        let some = Redirected::at(AT, &[0xf3, 0xa6], before[RDI], &before, 0).unwrap();
        for (left, flags, next, count) in
            [(0, ZERO, AT, 904), (0, 0, AT + 2, 904), (4000, 0, AT + 2, 4904), (0, ZERO, AT, 904)]
        {
            let mut after = some.begin(before, 0x9000);
            after[RCX] = left;
            assert_eq!(some.finish(AT, &mut after, flags, 0x9000, &before), next);
            assert_eq!(after[RCX], count);
        }
        // stosq once.
        let once = redirected(&[0x48, 0xab], 7 * 16).unwrap();
        assert_eq!((once.bytes, once.action, once.repeat), (8, Action::Writes, None));
    }

    #[test]
    fn what_a_mask_leaves_out_need_not_be_there() {
        // vmovdqu8 ymm2{k2}{z},[rsi]; vmovdqu8 ymm2,[rsi]; repe cmpsb; rep movsb.
        let forms: [(&[u8], bool); 4] = [
            (&[0x62, 0xf1, 0x7f, 0xaa, 0x6f, 0x16], true),
            (&[0x62, 0xf1, 0x7f, 0x28, 0x6f, 0x16], false),
            (&[0xf3, 0xa6], true),
            (&[0xf3, 0xa4], false),
        ];
        for (code, less) in forms {
            assert_eq!(redirected(code, 6 * 16).unwrap().may_access_less, less, "{code:x?}");
        }
    }

    #[test]
    fn the_register_is_as_before() {
        let load = redirected(&[0x8b, 0x00], 0).unwrap();
        let mut after = load.begin(registers(), 0x9000);
        assert_eq!(load.finish(AT, &mut after, 0, 0x9000, &registers()), AT + 2);
        assert_eq!(after, registers());
    }

    #[test]
    fn control_goes_where_memory_says() {
        // jmp [rsi+8]; call [rsp+16]: what is pushed is the address behind it.
        let forms: [(&[u8], u64, &[u8]); 2] = [
            (&[0xff, 0x66, 0x08], 6 * 16 + 8, &[0x4d, 0x8b, 0x00]),
            (&[0xff, 0x54, 0x24, 0x10], 4 * 16 + 16, &[0x4d, 0x8b, 0x00, 0x41, 0x51]),
        ];
        for (code, memory, executed) in forms {
            let found = redirected(code, memory).unwrap_or_else(|| panic!("{code:x?}"));
            assert_eq!((found.memory, found.bytes, found.action), (memory, 8, Action::Reads));
            assert_eq!(found.code, executed);
            let mut after = found.begin(registers(), 0x9000);
            assert_eq!(after[R8], 0x9000);
            if executed.ends_with(&PUSH) {
                assert_eq!(after[R9], AT + code.len() as u64);
                after[4] -= 8;
            }
            after[R8] = 0x1234;
            let pushed = after[4];
            assert_eq!(found.finish(AT, &mut after, 0, 0x9000, &registers()), 0x1234);
            let mut expected = registers();
            expected[4] = pushed;
            assert_eq!(after, expected);
        }
    }

    #[test]
    fn what_cannot_be_executed_elsewhere_is_refused() {
        // far call [rax]; jmp rax; mov eax,fs:[0]; fxsave [rax]; vpgatherdd xmm1,[rax+xmm2],xmm3; mov rax,rbx; nothing.
        let others: [&[u8]; 7] = [
            &[0xff, 0x18],
            &[0xff, 0xe0],
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
