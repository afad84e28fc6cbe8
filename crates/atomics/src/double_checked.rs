//! Memory that a thread looks at without a lock, and once more under one before it writes there: double-checked locking.
//!
//! A thread that finds the memory written at the first look goes on without having acquired anything. That is right where the first look
//! is an acquire load, which is a plain load, and there is no other sign of it. A program without atomics has no use for the first look:
//! what other threads write under a lock it may read under the lock only.
//!
//! The three accesses are in one function, with what the compiler has put into it, and their pointers come from the same place. What the
//! function writes without a lock, too, is its thread's own.

use crate::effects::{Call, Functions, Place, is_on_stack};
use crate::flow::Flow;
use crate::imports::Imports;
use crate::polling::taken_on_stack;
use crate::values::{Value, Values};
use gondwana_elf::Code;
use iced_x86::{FlowControl, Mnemonic, OpKind, Register};
use std::collections::{BTreeSet, HashMap};

/// The functions that lock.
const LOCKS: [&str; 10] = [
    "pthread_mutex_lock",
    "pthread_rwlock_wrlock",
    "pthread_spin_lock",
    "mtx_lock",
    "sem_wait",
    "omp_set_lock",
    "GOMP_critical_start",
    "GOMP_critical_name_start",
    "__kmpc_critical",
    "__kmpc_critical_with_hint",
];

/// Those that unlock.
const UNLOCKS: [&str; 9] = [
    "pthread_mutex_unlock",
    "pthread_rwlock_unlock",
    "pthread_spin_unlock",
    "mtx_unlock",
    "sem_post",
    "omp_unset_lock",
    "GOMP_critical_end",
    "GOMP_critical_name_end",
    "__kmpc_end_critical",
];

/// How many instructions are followed back that have made a pointer.
const STEPS: usize = 32;

/// A variable: an address, or one that a pointer has, and a distance from there.
type Variable = (Origin, u64);

/// Where a pointer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// It is an address in the file's own numbering, and the distance is from 0.
    Fixed,
    /// It has been in a register since the function began.
    Register(Register),
    /// It was read from the stack, so far from a register.
    Slot(Register, u64),
    /// It was read at a fixed address.
    Read(u64),
    /// An instruction made it.
    Made(usize),
}

/// The first such look: the address of the jump that it decides. `flows` are the functions of a file by ascending addresses.
pub(crate) fn first(flows: &[Flow], imports: &Imports<'_>, code: &Code<'_>) -> Option<u64> {
    let mut functions = Functions::new(flows, imports, &code.constants);
    flows.iter().find_map(|flow| Some(Search::of(flow, imports, &mut functions).all().first()?.jump))
}

/// All such looks, by the addresses of their instructions.
pub(crate) fn looks(flows: &[Flow], imports: &Imports<'_>, code: &Code<'_>) -> BTreeSet<u64> {
    let mut functions = Functions::new(flows, imports, &code.constants);
    let of_function = |flow| Search::of(flow, imports, &mut functions).all();
    flows.iter().flat_map(of_function).flat_map(|look| look.reads).collect()
}

/// A look without a lock.
struct Look {
    /// The address of the jump that it decides.
    jump: u64,
    /// Those of the instructions that read.
    reads: Vec<u64>,
}

/// A search of one function.
struct Search<'a, 'b> {
    flow: &'a Flow,
    imports: &'a Imports<'b>,
    functions: &'a mut Functions<'b>,
    /// By instruction: no lock need be held there. Found if the function locks.
    free: Vec<bool>,
    /// The variables that instructions name, of those that were asked for.
    names: HashMap<usize, Option<Variable>>,
}

impl<'a, 'b> Search<'a, 'b> {
    fn of(flow: &'a Flow, imports: &'a Imports<'b>, functions: &'a mut Functions<'b>) -> Self {
        Self { flow, imports, functions, free: vec![], names: HashMap::new() }
    }
}

impl Search<'_, '_> {
    fn all(&mut self) -> Vec<Look> {
        let all: Vec<usize> = (0..self.flow.instructions.len()).collect();
        let locks: Vec<usize> =
            all.iter().copied().filter(|&index| self.calls_one_of(index, &LOCKS)).collect();
        if locks.is_empty() {
            return vec![];
        }
        self.free = self.find_free();
        let jumps: Vec<usize> = all.iter().copied().filter(|&index| self.is_jump(index)).collect();
        let regions: Vec<(usize, BTreeSet<usize>)> =
            locks.into_iter().map(|lock| (lock, self.under(lock))).collect();
        // Most functions without a look behind a lock end here.
        if !regions.iter().any(|(_, under)| jumps.iter().any(|jump| under.contains(jump))) {
            return vec![];
        }
        let taken = taken_on_stack(self.flow);
        let mut values = Values::new(self.flow, &all, self.functions, &taken);
        let looks: Vec<(usize, Value)> =
            jumps.into_iter().map(|jump| (jump, values.condition(jump))).collect();
        regions.into_iter().flat_map(|(lock, under)| self.all_before(lock, &under, &looks)).collect()
    }

    /// The jumps before a lock that depend on what is looked at again and written `under` it.
    fn all_before(&mut self, lock: usize, under: &BTreeSet<usize>, looks: &[(usize, Value)]) -> Vec<Look> {
        let again: Vec<usize> = looks
            .iter()
            .filter(|(jump, _)| under.contains(jump))
            .flat_map(|(_, look)| &look.read)
            .map(|&(index, _)| index)
            .filter(|index| under.contains(index))
            .collect();
        let again: BTreeSet<Variable> = again.into_iter().filter_map(|index| self.named(index)).collect();
        if again.is_empty() {
            return vec![];
        }
        let mut written: BTreeSet<Variable> = under.iter().filter_map(|&index| self.written(index)).collect();
        written.retain(|variable| again.contains(variable));
        if written.is_empty() {
            return vec![];
        }
        // What a thread also writes without a lock is its own.
        for index in 0..self.flow.instructions.len() {
            if let Some(variable) = self.written(index).filter(|variable| written.contains(variable))
                && self.free[index]
            {
                written.remove(&variable);
            }
        }
        let is_first = |search: &mut Self, index: usize| {
            search.free[index] && search.named(index).is_some_and(|variable| written.contains(&variable))
        };
        let mut found = vec![];
        for (jump, look) in looks {
            let read = look.read.iter().map(|&(index, _)| index);
            let reads: Vec<usize> = read.filter(|&index| is_first(self, index)).collect();
            if !reads.is_empty() && self.flow.reached(*jump).contains(&lock) {
                let address = |index: usize| self.flow.instructions[index].ip();
                found.push(Look { jump: address(*jump), reads: reads.into_iter().map(address).collect() });
            }
        }
        found
    }

    fn is_jump(&self, index: usize) -> bool {
        self.flow.instructions[index].flow_control() == FlowControl::ConditionalBranch
    }

    fn calls_one_of(&self, index: usize, names: &[&str]) -> bool {
        let callee = self.imports.callee(&self.flow.instructions[index]);
        callee.is_some_and(|name| names.contains(&name))
    }

    /// The instructions behind a lock where it is held, however control came there.
    fn under(&self, lock: usize) -> BTreeSet<usize> {
        let (mut under, mut next) = (BTreeSet::new(), vec![lock]);
        while let Some(at) = next.pop() {
            for &follower in self.flow.followers(at) {
                if !self.calls_one_of(follower, &UNLOCKS) && under.insert(follower) {
                    next.push(follower);
                }
            }
        }
        under.retain(|&index| !self.free[index]);
        under
    }

    /// For each instruction, whether control may come there from the function's beginning or an unlocking, without a lock or another call
    /// on the way after which the thread sees what others have released.
    fn find_free(&mut self) -> Vec<bool> {
        let all = 0..self.flow.instructions.len();
        let mut free: Vec<bool> = all.clone().map(|index| self.begins(index)).collect();
        for unlock in all.clone().filter(|&index| self.calls_one_of(index, &UNLOCKS)) {
            self.flow.followers(unlock).iter().for_each(|&follower| free[follower] = true);
        }
        let mut next: Vec<usize> = all.filter(|&index| free[index]).collect();
        while let Some(at) = next.pop() {
            let acquires = match self.functions.call(&self.flow.instructions[at]) {
                Some(Call::Acquires) => true,
                Some(Call::Own(address)) => self.functions.of_function(address).acquires,
                _ => false,
            };
            if !acquires {
                let new = |&follower: &usize| !std::mem::replace(&mut free[follower], true);
                next.extend(self.flow.followers(at).iter().copied().filter(new));
            }
        }
        free
    }

    /// True for the first instruction of a function. Without symbols, one that nobody calls is a part of the one before.
    fn begins(&self, index: usize) -> bool {
        index == 0 || self.flow.leaders(index).is_empty()
    }

    /// What an instruction writes of memory that threads share.
    fn written(&mut self, index: usize) -> Option<Variable> {
        if self.flow.usage(index).writes_memory { self.named(index) } else { None }
    }

    /// The variable that an instruction names.
    fn named(&mut self, index: usize) -> Option<Variable> {
        if let Some(&known) = self.names.get(&index) {
            return known;
        }
        let named = self.find_name(index);
        self.names.insert(index, named);
        named
    }

    fn find_name(&mut self, index: usize) -> Option<Variable> {
        let instruction = &self.flow.instructions[index];
        match self.functions.shared_place(self.flow, instruction)? {
            Place::Fixed(address) => Some((Origin::Fixed, address)),
            Place::Behind(distance) => {
                let (origin, further) = self.origin(index, instruction.memory_base())?;
                Some((origin, distance.wrapping_add(further)))
            }
            Place::Element(_) | Place::Stack => None,
        }
    }

    /// Where a register's value comes from that an instruction uses, and what was added since; `None` if there are several such places.
    fn origin(&mut self, index: usize, register: Register) -> Option<Variable> {
        let (mut register, mut at, mut added) = (register.full_register(), index, 0_u64);
        // What goes round would have no end.
        for _ in 0..STEPS {
            let Some(writer) = self.writer(at, |search, index| search.changes(index, register))? else {
                return Some((Origin::Register(register), added));
            };
            let instruction = &self.flow.instructions[writer];
            let (base, distance) = (instruction.memory_base(), instruction.memory_displacement64());
            let is_fixed = instruction.is_ip_rel_memory_operand();
            at = writer;
            match (instruction.mnemonic(), instruction.op1_kind()) {
                (Mnemonic::Mov, OpKind::Register) => register = instruction.op1_register().full_register(),
                (Mnemonic::Mov, OpKind::Memory) if is_fixed => return Some((Origin::Read(distance), added)),
                (Mnemonic::Mov, OpKind::Memory) if is_on_stack(self.flow, instruction) => {
                    let is_stored = |search: &mut Self, index: usize| {
                        let other = &search.flow.instructions[index];
                        search.flow.usage(index).writes_memory
                            && (other.memory_base(), other.memory_displacement64()) == (base, distance)
                    };
                    match self.writer(writer, is_stored)? {
                        Some(store) if self.flow.instructions[store].op1_kind() == OpKind::Register => {
                            register = self.flow.instructions[store].op1_register().full_register();
                            at = store;
                        }
                        _ => return Some((Origin::Slot(base, distance), added)),
                    }
                }
                (Mnemonic::Lea, _) if is_fixed => return Some((Origin::Fixed, added.wrapping_add(distance))),
                (Mnemonic::Lea, _) if base.is_gpr64() && instruction.memory_index() == Register::None => {
                    register = base;
                    added = added.wrapping_add(distance);
                }
                (Mnemonic::Add, OpKind::Immediate8to64 | OpKind::Immediate32to64) => {
                    added = added.wrapping_add(instruction.immediate(1));
                }
                _ => return Some((Origin::Made(writer), added)),
            }
        }
        None
    }

    fn changes(&mut self, index: usize, register: Register) -> bool {
        let called = self.functions.call(&self.flow.instructions[index]);
        called.is_some_and(|call| self.functions.changes(call, register))
            || self.flow.usage(index).written.contains(register)
    }

    /// The one instruction that has written something last when another one is executed. `Some(None)` if there is none, `None` if there are
    /// several, or none on some way.
    fn writer(
        &mut self,
        index: usize,
        mut writes: impl FnMut(&mut Self, usize) -> bool,
    ) -> Option<Option<usize>> {
        let (mut writers, mut may_be_older) = (BTreeSet::new(), false);
        let (mut seen, mut next) = (BTreeSet::new(), vec![index]);
        while let Some(at) = next.pop() {
            may_be_older |= self.begins(at);
            for &leader in self.flow.leaders(at) {
                if !seen.insert(leader) {
                    continue;
                }
                if writes(self, leader) {
                    writers.insert(leader);
                } else {
                    next.push(leader);
                }
            }
        }
        match (writers.pop_first(), writers.is_empty()) {
            (None, _) => Some(None),
            (writer, true) if !may_be_older => Some(writer),
            _ => None,
        }
    }
}
