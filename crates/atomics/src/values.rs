//! What a value depends on that code in a loop computes.

use crate::effects::{Call, Functions, Place, is_on_stack};
use crate::flow::Flow;
use crate::reductions::reads;
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};
use std::collections::{BTreeSet, HashMap};

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Location {
    Register(Register),
    Flags,
    /// On the stack, by register and distance.
    Slot(Register, u64),
}

/// What a value depends on, beside what is the same each time round a loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Value {
    /// Something that the loop itself changes.
    pub varies: bool,
    /// Places in memory that threads share, at the same address each time round, with the instructions that read them.
    pub read: BTreeSet<(usize, Place)>,
}

impl Value {
    fn varying() -> Self {
        Self { varies: true, read: BTreeSet::new() }
    }

    fn and(&mut self, other: &Self) {
        self.varies |= other.varies;
        self.read.extend(&other.read);
    }
}

/// Finds values in one loop.
pub(crate) struct Values<'a, 'b> {
    pub flow: &'a Flow,
    /// The loop's instructions, in ascending order.
    pub members: &'a [usize],
    pub functions: &'a mut Functions<'b>,
    /// Distances from the stack's registers whose addresses the function takes.
    pub taken: &'a [(Register, u64)],
    /// What is known of the results of instructions; nothing of those that are being looked at.
    known: HashMap<(usize, bool), Option<Value>>,
    /// How many results are being looked at.
    depth: usize,
    /// By instruction: it is one of the loop.
    inside: Vec<bool>,
}

/// How many results are followed back that are made of each other.
const DEEPEST: usize = 128;

/// How far behind an address on the stack that a function takes others may know it, in bytes.
const STACK_OBJECT: u64 = 64;

/// How many instructions back the address is looked for that a call gets.
const REACH: usize = 256;

/// Bytes of a `struct timespec`.
const TIME: u64 = 16;

impl<'a, 'b> Values<'a, 'b> {
    pub(crate) fn new(
        flow: &'a Flow,
        members: &'a [usize],
        functions: &'a mut Functions<'b>,
        taken: &'a [(Register, u64)],
    ) -> Self {
        let mut inside = vec![false; flow.instructions.len()];
        members.iter().for_each(|&member| inside[member] = true);
        Self { flow, members, functions, taken, known: HashMap::new(), depth: 0, inside }
    }

    /// What decides whether a conditional jump jumps.
    pub(crate) fn condition(&mut self, jump: usize) -> Value {
        let mut value = Value::default();
        let instruction = &self.flow.instructions[jump];
        if instruction.rflags_read() == 0 {
            value.and(&self.before(jump, Location::Register(Register::RCX)));
        } else {
            value.and(&self.before(jump, Location::Flags));
        }
        value
    }

    /// True if an instruction of the loop uses what one of its kind has computed the last time round. `entry` is where control comes
    /// into the loop.
    pub(crate) fn are_carried(&mut self, entry: usize) -> bool {
        let members = self.members;
        members.iter().any(|&index| {
            let used = self.used(index);
            used.into_iter().any(|location| self.comes_round(index, location, entry))
        })
    }

    /// True if a location may hold at an instruction what the loop has put there before control came to `entry` again.
    fn comes_round(&mut self, index: usize, location: Location, entry: usize) -> bool {
        let mut seen = BTreeSet::new();
        let mut next = vec![(index, index == entry)];
        while let Some((at, round)) = next.pop() {
            for &leader in self.flow.leaders(at) {
                if !self.is_member(leader) || !seen.insert((leader, round)) {
                    continue;
                }
                if !self.changes(leader, location) {
                    next.push((leader, round || leader == entry));
                } else if round {
                    return true;
                }
            }
        }
        false
    }

    /// What an instruction uses: registers, flags and places on the stack.
    fn used(&self, index: usize) -> Vec<Location> {
        let instruction = &self.flow.instructions[index];
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(instruction);
        let is_own = |register: &Register| {
            !matches!(register, Register::RSP | Register::RIP) && !register.is_segment_register()
        };
        let mut used: Vec<Location> = info
            .used_registers()
            .iter()
            .filter(|used| reads(used.access()))
            .map(|used| used.register().full_register())
            .filter(is_own)
            .map(Location::Register)
            .collect();
        if instruction.rflags_read() != 0 {
            used.push(Location::Flags);
        }
        if self.flow.usage(index).reads_memory && is_on_stack(self.flow, instruction) {
            used.push(Location::Slot(instruction.memory_base(), instruction.memory_displacement64()));
        }
        used
    }

    fn is_member(&self, index: usize) -> bool {
        self.inside[index]
    }

    /// What a location holds before an instruction is executed.
    fn before(&mut self, index: usize, location: Location) -> Value {
        let mut value = Value::default();
        let first = self.members[0];
        let mut seen = vec![false; self.members[self.members.len() - 1] + 1 - first];
        let mut next = vec![index];
        while let Some(at) = next.pop() {
            for &leader in self.flow.leaders(at) {
                if !self.is_member(leader) || std::mem::replace(&mut seen[leader - first], true) {
                    continue;
                }
                if self.changes(leader, location) {
                    let result = self.result(leader, location);
                    value.and(&result);
                } else {
                    next.push(leader);
                }
            }
        }
        value
    }

    fn changes(&mut self, index: usize, location: Location) -> bool {
        let instruction = &self.flow.instructions[index];
        if let Some(call) = self.functions.call(instruction) {
            return match location {
                Location::Register(register) => self.functions.changes(call, register),
                Location::Flags => true,
                Location::Slot(base, distance) => self.writes_time(index, call, base, distance),
            };
        }
        match location {
            Location::Flags => self.flow.usage(index).changes_flags,
            Location::Register(register) => self.flow.usage(index).written.contains(register),
            Location::Slot(base, distance) => {
                self.flow.usage(index).writes_memory
                    && instruction.memory_base() == base
                    && instruction.memory_displacement64() == distance
            }
        }
    }

    /// True if a call of a function that tells the time puts it into a place on the stack.
    fn writes_time(&self, index: usize, call: Call, base: Register, distance: u64) -> bool {
        if call != Call::Clock {
            return false;
        }
        // Compilers take the address before the loop, or right before the call.
        let last_written = |register: Register, before: usize| {
            let earlier = before.saturating_sub(REACH)..before;
            earlier.rev().find(|&earlier| self.flow.usage(earlier).written.contains(register))
        };
        let (mut register, mut at) = (Register::RSI, index);
        while let Some(writer) = last_written(register, at) {
            let instruction = &self.flow.instructions[writer];
            let points_to =
                |register: Register, start: u64| register == base && distance.wrapping_sub(start) < TIME;
            match instruction.mnemonic() {
                Mnemonic::Lea => {
                    return points_to(instruction.memory_base(), instruction.memory_displacement64());
                }
                Mnemonic::Mov if instruction.op1_register() == Register::RSP => {
                    return points_to(Register::RSP, 0);
                }
                Mnemonic::Mov if instruction.op1_kind() == OpKind::Register => {
                    (register, at) = (instruction.op1_register(), writer);
                }
                _ => return false,
            }
        }
        false
    }

    /// What an instruction leaves in a location that it changes.
    fn result(&mut self, index: usize, location: Location) -> Value {
        let instruction = self.flow.instructions[index];
        let call = self.functions.call(&instruction);
        let is_result =
            matches!(location, Location::Register(Register::RAX | Register::RDX | Register::ZMM0));
        if call.is_some() && matches!(location, Location::Slot(..)) {
            return Value::varying();
        }
        let of_call = call.is_some() && is_result;
        if call.is_some() && !of_call {
            // Left over: no program uses it.
            return Value::default();
        }
        match self.known.get(&(index, of_call)) {
            Some(Some(known)) => return known.clone(),
            // It depends on itself: it counts, or runs over something.
            Some(None) => return Value::varying(),
            None => (),
        }
        if self.depth == DEEPEST {
            return Value::varying();
        }
        self.known.insert((index, of_call), None);
        self.depth += 1;
        let value = match call {
            Some(call) => self.result_of_call(index, call),
            None => self.inputs(index, &instruction),
        };
        self.depth -= 1;
        self.known.insert((index, of_call), Some(value.clone()));
        value
    }

    fn result_of_call(&mut self, index: usize, call: Call) -> Value {
        let Call::Own(address) = call else { return Value::varying() };
        let callee = self.functions.of_function(address);
        if !callee.is_pure() {
            return Value::varying();
        }
        let mut value = Value::default();
        for register in [Register::RDI, Register::RSI] {
            value.and(&self.before(index, Location::Register(register)));
        }
        value.read.extend(callee.loads.iter().map(|&place| (index, place)));
        value
    }

    /// What everything depends on that an instruction reads.
    fn inputs(&mut self, index: usize, instruction: &Instruction) -> Value {
        let mut value = Value::default();
        for location in self.used(index) {
            if !matches!(location, Location::Slot(..)) {
                value.and(&self.before(index, location));
            }
        }
        if !self.flow.usage(index).reads_memory || instruction.mnemonic() == Mnemonic::Lea {
            return value;
        }
        if let Some(place) = self.functions.shared_place(self.flow, instruction) {
            value.read.insert((index, place));
        } else if is_on_stack(self.flow, instruction) && instruction.memory_index() == Register::None {
            let (base, distance) = (instruction.memory_base(), instruction.memory_displacement64());
            let held = self.before(index, Location::Slot(base, distance));
            if held == Value::default() && self.is_known_to_others(base, distance) {
                value.read.insert((index, Place::Stack));
            }
            value.and(&held);
        } else {
            value.varies = true;
        }
        value
    }

    fn is_known_to_others(&self, base: Register, distance: u64) -> bool {
        self.taken
            .iter()
            .any(|&(register, start)| register == base && distance.wrapping_sub(start) < STACK_OBJECT)
    }
}
