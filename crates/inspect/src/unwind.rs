//! From a frame to its caller, by the tables that compilers make for exceptions.

use crate::memory::Memory;
use crate::objects::Objects;
use crate::stopped::Registers;
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianArcSlice, EvaluationResult, FrameDescriptionEntry,
    Location, ParsedEhFrameHdr, Register, RegisterRule, RunTimeEndian, UnwindContext, UnwindExpression,
    UnwindSection, Value,
};
use gondwana_elf::ElfFile;
use std::ops::Range;

type Slice = EndianArcSlice<RunTimeEndian>;

/// How many registers the tables speak of: those of integers, and the return address.
const COUNT: usize = 17;
const RBP: usize = 6;
const RSP: usize = 7;
const RETURN: usize = 16;

/// The library of the runtime, which runs functions on other stacks.
const CHANGES_STACKS: &str = "/libgondwana.so";

/// A call on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Where it goes on; for all but the innermost and interrupted ones the return address.
    pub address: u64,
    /// The instruction is the one at `address`, which a signal has interrupted or which is being executed; otherwise the
    /// one before.
    pub exact: bool,
}

impl Frame {
    /// An address inside the instruction.
    #[must_use]
    pub fn inside(self) -> u64 {
        if self.exact { self.address } else { self.address.wrapping_sub(1) }
    }
}

/// The unwinding tables of an object. Their addresses are those of the file.
pub(crate) struct Tables {
    frames: EhFrame<Slice>,
    index: Option<ParsedEhFrameHdr<Slice>>,
    bases: BaseAddresses,
}

impl Tables {
    /// Reads them; `None` if there are none.
    pub(crate) fn read(file: &ElfFile) -> Option<Self> {
        let slice = |name| Slice::new(file.section(name), RunTimeEndian::Little);
        let frames = file.section_address(".eh_frame")?;
        let mut bases = BaseAddresses::default().set_eh_frame(frames);
        for (name, set) in [
            (".text", BaseAddresses::set_text as fn(BaseAddresses, u64) -> BaseAddresses),
            (".got", BaseAddresses::set_got),
            (".eh_frame_hdr", BaseAddresses::set_eh_frame_hdr),
        ] {
            if let Some(address) = file.section_address(name) {
                bases = set(bases, address);
            }
        }
        let index = EhFrameHdr::from(slice(".eh_frame_hdr")).parse(&bases, 8).ok();
        Some(Self { frames: EhFrame::from(slice(".eh_frame")), index, bases })
    }

    /// The entry for the function that holds an address of the file.
    fn entry(&self, address: u64) -> Option<FrameDescriptionEntry<Slice>> {
        let cie = EhFrame::cie_from_offset;
        match self.index.as_ref().and_then(ParsedEhFrameHdr::table) {
            Some(table) => table.fde_for_address(&self.frames, &self.bases, address, cie).ok(),
            None => self.frames.fde_for_address(&self.bases, address, cie).ok(),
        }
    }
}

/// The registers of a frame, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State([Option<u64>; COUNT]);

impl From<Registers> for State {
    fn from(r: Registers) -> Self {
        // In the numbering of DWARF for x86-64.
        Self(
            [
                r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12,
                r.r13, r.r14, r.r15, r.rip,
            ]
            .map(Some),
        )
    }
}

impl State {
    fn get(&self, register: Register) -> Option<u64> {
        self.0.get(usize::from(register.0)).copied().flatten()
    }
}

/// Walks stacks.
pub(crate) struct Unwinder<'a> {
    objects: &'a Objects,
    memory: &'a Memory<'a>,
}

impl<'a> Unwinder<'a> {
    pub(crate) fn new(objects: &'a Objects, memory: &'a Memory<'a>) -> Self {
        Self { objects, memory }
    }

    /// The frames of a stopped thread, the innermost first; at most `most`.
    pub(crate) fn walk(&self, registers: Registers, most: usize) -> Vec<Frame> {
        let mut state = State::from(registers);
        let mut context = UnwindContext::new();
        let mut frames = vec![];
        let mut exact = true;
        while let Some(address) = state.0[RETURN].filter(|address| *address != 0 || frames.is_empty()) {
            let frame = Frame { address, exact };
            frames.push(frame);
            let is_first = frames.len() == 1;
            let Some((next, interrupted)) = self.caller(&state, frame, is_first, &mut context) else { break };
            // A stack that does not come to an end, or is damaged. (A caller may well have a stack of its own, above or below.)
            if frames.len() == most || next == state {
                break;
            }
            (state, exact) = (next, interrupted);
        }
        frames
    }

    /// The state of the caller of a frame, and whether the frame is that of a signal, which has no caller but what it has
    /// interrupted.
    fn caller(
        &self,
        state: &State,
        frame: Frame,
        is_first: bool,
        context: &mut UnwindContext<usize>,
    ) -> Option<(State, bool)> {
        // The frame of a signal's return is entered at its first instruction, without a call before it.
        let found = [frame.inside(), frame.address].into_iter().find_map(|address| {
            let object = self.objects.at(address)?;
            let tables = object.tables()?;
            let entry = tables.entry(address.wrapping_sub(object.base))?;
            let usable = address == frame.inside() || entry.is_signal_trampoline();
            usable.then_some((object, tables, entry, address))
        });
        let Some((object, tables, entry, address)) = found else {
            return self.guess(state, is_first).map(|state| (state, false));
        };
        let is_signal = entry.is_signal_trampoline();
        let address = address.wrapping_sub(object.base);
        let row = entry.unwind_info_for_address(&tables.frames, &tables.bases, context, address).ok()?;
        let base = self.canonical(state, row.cfa(), tables, object.base)?;
        let mut caller = state.clone();
        for (number, value) in caller.0.iter_mut().enumerate() {
            let register = Register(u16::try_from(number).ok()?);
            *value = match row.register(register) {
                // What has no return address is the outermost frame.
                None if number == RETURN => None,
                None if number == RSP => Some(base),
                // Nothing is said of it: a callee leaves it as it was.
                None | Some(RegisterRule::SameValue) => *value,
                Some(rule) => self.value(state, rule, tables, object.base, base),
            };
        }
        if caller.0[RETURN].is_none() {
            let changes_stacks = object.path.ends_with(CHANGES_STACKS);
            return self.other_stack(state).filter(|_| changes_stacks).map(|state| (state, false));
        }
        Some((caller, is_signal))
    }

    /// The caller of the runtime's function that changes to another stack: it keeps exceptions from going further by saying that
    /// it has no caller, and keeps the stack that it came from in the frame pointer.
    fn other_stack(&self, state: &State) -> Option<State> {
        let frame = state.0[RBP]?;
        let mut caller = state.clone();
        caller.0[RBP] = self.memory.word(frame);
        caller.0[RETURN] = self.memory.word(frame.checked_add(8)?);
        caller.0[RSP] = frame.checked_add(16);
        caller.0[RETURN].is_some_and(|address| self.objects.at(address).is_some()).then_some(caller)
    }

    /// What a register was in the caller of a frame whose canonical frame address is `frame`, by a rule.
    fn value(
        &self,
        state: &State,
        rule: RegisterRule<usize>,
        tables: &Tables,
        base: u64,
        frame: u64,
    ) -> Option<u64> {
        match rule {
            RegisterRule::Offset(offset) => self.memory.word(frame.wrapping_add_signed(offset)),
            RegisterRule::ValOffset(offset) => Some(frame.wrapping_add_signed(offset)),
            RegisterRule::Register(other) => state.get(other),
            RegisterRule::Expression(expression) => {
                self.memory.word(self.evaluate(state, &expression, tables, base, Some(frame))?)
            }
            RegisterRule::ValExpression(expression) => {
                self.evaluate(state, &expression, tables, base, Some(frame))
            }
            _ => None,
        }
    }

    /// The canonical frame address: what the stack pointer was before the call.
    fn canonical(&self, state: &State, rule: &CfaRule<usize>, tables: &Tables, base: u64) -> Option<u64> {
        match rule {
            CfaRule::RegisterAndOffset { register, offset } => {
                Some(state.get(*register)?.wrapping_add_signed(*offset))
            }
            CfaRule::Expression(expression) => self.evaluate(state, expression, tables, base, None),
        }
    }

    fn evaluate(
        &self,
        state: &State,
        expression: &UnwindExpression<usize>,
        tables: &Tables,
        base: u64,
        initial: Option<u64>,
    ) -> Option<u64> {
        let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
        let mut evaluation = expression.get(&tables.frames).ok()?.evaluation(encoding);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    evaluation.resume_with_register(Value::Generic(state.get(register)?)).ok()?
                }
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let word = self.memory.word(address)?;
                    let kept = u32::from(size).min(8) * 8;
                    let word = if kept == 64 { word } else { word & ((1 << kept) - 1) };
                    evaluation.resume_with_memory(Value::Generic(word)).ok()?
                }
                EvaluationResult::RequiresRelocatedAddress(address) => {
                    evaluation.resume_with_relocated_address(address.wrapping_add(base)).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.result().first()?.location {
            Location::Address { address } => Some(address),
            Location::Value { value } => value.to_u64(u64::MAX).ok(),
            _ => None,
        }
    }

    /// The caller of code without tables, such as what a program has generated itself, or of no code at all: a jump to a
    /// null pointer. Code that keeps frame pointers is assumed; before it has set one up, the return address is on top.
    fn guess(&self, state: &State, is_first: bool) -> Option<State> {
        let mut caller = state.clone();
        let (stack, frame) = (state.0[RSP]?, state.0[RBP]?);
        let nowhere = self.objects.at(state.0[RETURN]?).is_none();
        if is_first && nowhere {
            let above = self.memory.word(stack).filter(|address| self.objects.at(*address).is_some());
            if let Some(address) = above {
                caller.0[RETURN] = Some(address);
                caller.0[RSP] = Some(stack + 8);
                return Some(caller);
            }
        }
        /// Frames are no larger, or it is no frame pointer.
        const LARGEST: u64 = 1 << 20;
        let plausible: Range<u64> = stack..stack.saturating_add(LARGEST);
        plausible.contains(&frame).then_some(())?;
        caller.0[RBP] = self.memory.word(frame);
        caller.0[RETURN] = self.memory.word(frame.checked_add(8)?);
        caller.0[RSP] = frame.checked_add(16);
        Some(caller)
    }
}
