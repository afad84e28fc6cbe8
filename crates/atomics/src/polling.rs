//! Loops in which a thread may wait for what another one writes: they read memory at the same address each time round, and do nothing
//! else that lasts.
//!
//! A compiler takes such a read out of a loop, unless the program says that others may write there. Code that was not optimised has
//! more such loops than wait; they count as if they did.

use crate::flow::Flow;
use crate::imports::Imports;
use crate::reductions::{reads, writes};
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};

/// How many instructions such a loop has at most.
const MOST: usize = 64;

/// Functions of libraries that a thread calls while it waits like that.
const PAUSES: [&str; 7] =
    ["sched_yield", "pthread_yield", "usleep", "nanosleep", "clock_nanosleep", "sleep", "thrd_yield"];

/// What calls do to a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    /// A function of a library, which does something.
    Library,
    /// A pause.
    Pause,
    /// A function of the program, which may do nothing but read.
    Own,
}

/// True if a function may have such a loop.
pub(crate) fn may_poll(flow: &Flow, imports: &Imports<'_>) -> bool {
    let search = Search { flow, imports, has_frame: has_frame(flow) };
    (0..flow.instructions.len()).any(|index| search.may_poll_at(index))
}

/// True if the frame pointer is one: then what it points to is the thread's own.
fn has_frame(flow: &Flow) -> bool {
    flow.instructions.iter().take(8).any(|instruction| {
        instruction.mnemonic() == Mnemonic::Mov
            && instruction.op0_register() == Register::RBP
            && instruction.op1_register() == Register::RSP
    })
}

struct Search<'a> {
    flow: &'a Flow,
    imports: &'a Imports<'a>,
    has_frame: bool,
}

impl Search<'_> {
    fn may_poll_at(&self, index: usize) -> bool {
        let instruction = &self.flow.instructions[index];
        let call = self.call(instruction);
        let load = self.is_load(instruction);
        if !load && !matches!(call, Some(Call::Pause | Call::Own)) {
            return false;
        }
        let passes = |instruction: &Instruction| {
            self.call(instruction) != Some(Call::Library) && !self.is_store(instruction)
        };
        let Some(cycle) = self.flow.cycle(index, MOST, passes) else { return false };
        if cycle.is_empty() {
            return false;
        }
        let instructions = || cycle.iter().map(|&index| &self.flow.instructions[index]);
        // A loop that counts and calls functions of the program runs over something.
        if instructions().any(|other| self.call(other) == Some(Call::Own)) && instructions().any(counts) {
            return false;
        }
        call.is_some() || self.is_same_each_time(instruction, &cycle, &mut vec![])
    }

    fn call(&self, instruction: &Instruction) -> Option<Call> {
        if !matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
            return None;
        }
        Some(match self.imports.callee(instruction) {
            None => Call::Own,
            Some(name) if PAUSES.contains(&name) => Call::Pause,
            Some(_) => Call::Library,
        })
    }

    /// True if it reads a number from memory that others may write.
    fn is_load(&self, instruction: &Instruction) -> bool {
        matches!(
            instruction.mnemonic(),
            Mnemonic::Mov
                | Mnemonic::Movzx
                | Mnemonic::Movsx
                | Mnemonic::Movsxd
                | Mnemonic::Cmp
                | Mnemonic::Test
        ) && self.memory(instruction, reads)
            && !self.is_own(instruction)
    }

    fn is_store(&self, instruction: &Instruction) -> bool {
        self.memory(instruction, writes) && !self.is_own(instruction)
    }

    /// True if it names memory that it uses in a way.
    fn memory(&self, instruction: &Instruction, uses: fn(iced_x86::OpAccess) -> bool) -> bool {
        let Some(operand) =
            (0..instruction.op_count()).find(|&operand| instruction.op_kind(operand) == OpKind::Memory)
        else {
            return false;
        };
        let mut factory = InstructionInfoFactory::new();
        uses(factory.info(instruction).op_access(operand))
    }

    /// True if the memory that it names is on the thread's stack.
    fn is_own(&self, instruction: &Instruction) -> bool {
        match instruction.memory_base() {
            Register::RSP => true,
            Register::RBP => self.has_frame,
            _ => false,
        }
    }

    /// True if the memory that it names is the same each time round a loop. `above` are the registers that this is asked for.
    fn is_same_each_time(
        &self,
        instruction: &Instruction,
        cycle: &[usize],
        above: &mut Vec<Register>,
    ) -> bool {
        if self.is_own(instruction) && self.is_stored_to(instruction, cycle) {
            return false;
        }
        let registers = [instruction.memory_base(), instruction.memory_index()];
        registers.into_iter().all(|register| {
            matches!(register, Register::None | Register::RIP | Register::RSP)
                || self.is_kept(register.full_register(), cycle, above)
        })
    }

    /// True if a register has the same value each time round.
    fn is_kept(&self, register: Register, cycle: &[usize], above: &mut Vec<Register>) -> bool {
        if above.contains(&register) {
            return false;
        }
        above.push(register);
        let mut factory = InstructionInfoFactory::new();
        let kept = cycle.iter().map(|&index| &self.flow.instructions[index]).all(|writer| {
            let is_written = factory
                .info(writer)
                .used_registers()
                .iter()
                .any(|used| writes(used.access()) && used.register().full_register() == register);
            if !is_written {
                return true;
            }
            writer.mnemonic() == Mnemonic::Mov
                && match writer.op1_kind() {
                    OpKind::Memory => self.is_same_each_time(writer, cycle, above),
                    OpKind::Register => self.is_kept(writer.op1_register().full_register(), cycle, above),
                    _ => true,
                }
        });
        above.pop();
        kept
    }

    /// True if a loop writes to the place on the stack that an instruction reads.
    fn is_stored_to(&self, load: &Instruction, cycle: &[usize]) -> bool {
        let place = |instruction: &Instruction| {
            (instruction.memory_base(), instruction.memory_index(), instruction.memory_displacement64())
        };
        cycle
            .iter()
            .map(|&index| &self.flow.instructions[index])
            .any(|other| self.memory(other, writes) && self.is_own(other) && place(other) == place(load))
    }
}

/// True if an instruction makes a number of itself.
fn counts(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Add | Mnemonic::Sub | Mnemonic::Inc | Mnemonic::Dec | Mnemonic::Lea | Mnemonic::Imul
    ) && instruction.op0_register() != Register::RSP
}
