//! What code does to memory and to other threads, as far as its instructions tell.

use crate::flow::Flow;
use crate::imports::Imports;
use crate::usage::Registers;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::rc::Rc;

/// Functions of libraries that change no memory of the program and let nothing of other threads be seen.
const HARMLESS: [&str; 15] = [
    "omp_get_thread_num",
    "omp_get_num_threads",
    "pthread_self",
    "pthread_equal",
    "getpid",
    "gettid",
    "rand",
    "random",
    "free",
    "malloc",
    "calloc",
    "puts",
    "putchar",
    "printf",
    "__printf_chk",
];

/// Those among them that a thread calls while it waits for what others write.
const PAUSES: [&str; 14] = [
    "sched_yield",
    "pthread_yield",
    "thrd_yield",
    "usleep",
    "nanosleep",
    "clock_nanosleep",
    "sleep",
    "thrd_sleep",
    "gettimeofday",
    "time",
    "clock",
    "omp_get_wtime",
    "_ZNSt6chrono3_V212steady_clock3nowEv",
    "_ZNSt6chrono3_V212system_clock3nowEv",
];

/// How the names of functions begin after whose calls a thread sees what others have released.
const ACQUIRES: [&str; 11] = [
    "pthread_",
    "sem_",
    "mtx_",
    "cnd_",
    "thrd_join",
    "call_once",
    "GOMP_",
    "omp_",
    "__kmpc_",
    "_ZNSt18condition_variable",
    "_ZNSt6thread4joinEv",
];

/// Those among them that only let others see something.
const RELEASES: [&str; 14] = [
    "pthread_mutex_unlock",
    "pthread_rwlock_unlock",
    "pthread_spin_unlock",
    "pthread_cond_signal",
    "pthread_cond_broadcast",
    "sem_post",
    "mtx_unlock",
    "cnd_signal",
    "cnd_broadcast",
    "GOMP_critical_end",
    "GOMP_atomic_end",
    "omp_unset_lock",
    "__kmpc_end_critical",
    "_ZNSt18condition_variable10notify_allEv",
];

/// How far behind an address that code hands on, in bytes, others may change memory, where no variable of a name is.
const OBJECT: u64 = 256;

/// A place in memory that threads may share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// At a fixed address, as far as the instruction tells.
    Fixed(u64),
    /// So many bytes behind where a pointer points to.
    Behind(u64),
    /// An element of an array that begins so many bytes behind where a pointer points to.
    Element(u64),
    /// On the stack of the thread, where others know the address.
    Stack,
}

/// What a call means for the memory that threads share.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// Of a function of a library that does nothing to it.
    Harmless,
    /// Of one that passes time, or tells it.
    Pause,
    /// Of one that tells it to where its second argument points.
    Clock,
    /// The thread sees what others have released.
    Acquires,
    /// Others see what it has written.
    Releases,
    /// Of another function of a library, which may change what it has the address of.
    Library,
    /// Of a function of the program, at an address.
    Own(u64),
    /// Of nobody knows what.
    Unknown,
}

/// What a piece of code may do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    /// What it reads of memory that threads share, if it is [`pure`](Effects::is_pure).
    pub loads: BTreeSet<Place>,
    /// What it writes there, unless it may do anything.
    pub stores: BTreeSet<Place>,
    /// Fixed addresses that it takes.
    pub taken: BTreeSet<u64>,
    /// It calls functions of libraries that may write by a pointer.
    by_pointer: bool,
    /// It calls something else than the functions that do nothing, or stores to the stack by a pointer.
    calls: bool,
    /// It may do anything.
    unknown: bool,
    /// It calls functions that do something that lasts, though not to memory of the program.
    acts: bool,
    /// The registers that it changes.
    pub changed: Registers,
    /// It calls functions after which a thread sees what others have released.
    pub acquires: bool,
}

impl Effects {
    /// True if it does nothing but compute and read.
    pub(crate) fn is_pure(&self) -> bool {
        self.stores.is_empty() && !self.by_pointer && !self.unknown && !self.acquires
    }

    /// True if nothing of it lasts: executed again it does the same, unless others write what it reads.
    pub(crate) fn leaves_nothing(&self) -> bool {
        self.is_pure() && !self.acts
    }

    /// True if it may change what is at a place.
    pub(crate) fn may_change(&self, place: Place, variables: &[Range<u64>]) -> bool {
        self.unknown
            || self.stores.contains(&place)
            || match place {
                Place::Fixed(address) => {
                    let after = variables.partition_point(|variable| variable.start <= address);
                    let variable = after.checked_sub(1).map(|last| &variables[last]);
                    let from = variable
                        .filter(|variable| variable.contains(&address))
                        .map_or(address.saturating_sub(OBJECT), |variable| variable.start);
                    self.calls && self.taken.range(from..=address).next().is_some()
                }
                Place::Behind(_) | Place::Element(_) => self.by_pointer,
                Place::Stack => self.calls || !self.stores.is_empty(),
            }
    }

    fn add(&mut self, other: &Self) {
        self.changed.add(other.changed);
        self.by_pointer |= other.by_pointer;
        self.calls |= other.calls;
        self.unknown |= other.unknown;
        self.acts |= other.acts;
        self.acquires |= other.acquires;
        self.forget();
        if !self.unknown {
            self.stores.extend(&other.stores);
            self.taken.extend(&other.taken);
        }
        if self.is_pure() {
            self.loads.extend(&other.loads);
        }
    }

    /// Forgets what makes no difference beside the rest: a function that calls many others would collect very much of it.
    fn forget(&mut self) {
        if self.unknown {
            self.stores.clear();
            self.taken.clear();
        }
        if !self.is_pure() {
            self.loads.clear();
        }
    }
}

/// The functions of a file.
pub(crate) struct Functions<'a> {
    /// By ascending addresses.
    flows: &'a [Flow],
    imports: &'a Imports<'a>,
    /// Where nothing is ever written, in ascending order.
    constants: &'a [Range<u64>],
    /// By the address of a function that is called, once known; nothing while it is being looked at.
    known: HashMap<u64, Rc<Effects>>,
    /// How many functions are being looked at.
    depth: usize,
}

/// How many calls below each other are followed.
const DEEPEST: usize = 64;

impl<'a> Functions<'a> {
    pub(crate) fn new(flows: &'a [Flow], imports: &'a Imports<'a>, constants: &'a [Range<u64>]) -> Self {
        Self { flows, imports, constants, known: HashMap::new(), depth: 0 }
    }

    /// The place that an instruction names, unless it is the thread's own or never written.
    pub(crate) fn shared_place(&self, flow: &Flow, instruction: &Instruction) -> Option<Place> {
        if instruction.segment_prefix() != Register::None || is_on_stack(flow, instruction) {
            return None;
        }
        let distance = instruction.memory_displacement64();
        match instruction.memory_base() {
            Register::RIP | Register::None => {
                let after = self.constants.partition_point(|range| range.start <= distance);
                let is_constant =
                    after.checked_sub(1).is_some_and(|last| self.constants[last].contains(&distance));
                (!is_constant).then_some(Place::Fixed(distance))
            }
            _ if instruction.memory_index() == Register::None => Some(Place::Behind(distance)),
            _ => Some(Place::Element(distance)),
        }
    }

    /// True if a call may change a register.
    pub(crate) fn changes(&mut self, call: Call, register: Register) -> bool {
        let is_free = !matches!(
            register,
            Register::RBX
                | Register::RBP
                | Register::RSP
                | Register::R12
                | Register::R13
                | Register::R14
                | Register::R15
        );
        match call {
            // Compilers know which of the registers that it might use a function of the same file leaves alone.
            Call::Own(address) => is_free && self.of_function(address).changed.contains(register),
            _ => is_free,
        }
    }

    /// What an instruction calls, if it does.
    pub(crate) fn call(&self, instruction: &Instruction) -> Option<Call> {
        if !matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
            return None;
        }
        Some(match self.imports.callee(instruction) {
            Some(name) => kind_of(name),
            None if instruction.op0_kind() == OpKind::NearBranch64 => {
                Call::Own(instruction.near_branch_target())
            }
            None => Call::Unknown,
        })
    }

    /// What instructions of a function do together.
    pub(crate) fn effects(&mut self, flow: &Flow, instructions: impl IntoIterator<Item = usize>) -> Effects {
        let mut effects = Effects::default();
        for index in instructions {
            let instruction = &flow.instructions[index];
            let call = self.call(instruction);
            if call.is_some_and(|call| !matches!(call, Call::Own(_))) {
                effects.changed.add(lost());
            }
            match call {
                None => self.add_accesses(&mut effects, flow, index),
                Some(Call::Pause | Call::Clock) => (),
                Some(Call::Harmless | Call::Releases) => effects.acts = true,
                Some(Call::Acquires) => (effects.acquires, effects.calls) = (true, true),
                Some(Call::Library) => (effects.by_pointer, effects.calls) = (true, true),
                Some(Call::Own(address)) => {
                    let callee = self.of_function(address);
                    effects.add(&callee);
                    effects.calls |= !callee.is_pure();
                }
                Some(Call::Unknown) => (effects.unknown, effects.calls) = (true, true),
            }
        }
        effects
    }

    fn add_accesses(&self, effects: &mut Effects, flow: &Flow, index: usize) {
        let (instruction, usage) = (&flow.instructions[index], flow.usage(index));
        effects.changed.add(usage.written);
        effects.by_pointer |= usage.by_pointer;
        for operand in 0..instruction.op_count() {
            match instruction.op_kind(operand) {
                OpKind::Memory
                    if instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand() =>
                {
                    effects.taken.insert(instruction.memory_displacement64());
                }
                OpKind::Memory => {
                    let Some(place) = self.shared_place(flow, instruction) else { continue };
                    if usage.reads_memory {
                        effects.loads.insert(place);
                    }
                    if usage.writes_memory {
                        effects.stores.insert(place);
                    }
                }
                // What is no address does no harm.
                OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64
                    if instruction.mnemonic() == Mnemonic::Mov =>
                {
                    effects.taken.insert(instruction.immediate(operand));
                }
                _ => (),
            }
        }
    }

    /// What the function at an address does.
    pub(crate) fn of_function(&mut self, address: u64) -> Rc<Effects> {
        if let Some(known) = self.known.get(&address) {
            return Rc::clone(known);
        }
        let anything = || Effects { unknown: true, changed: lost(), ..Effects::default() };
        if self.depth == DEEPEST {
            return Rc::new(anything());
        }
        self.known.insert(address, Rc::default());
        self.depth += 1;
        let effects = Rc::new(self.find(address).unwrap_or_else(anything));
        self.depth -= 1;
        self.known.insert(address, Rc::clone(&effects));
        effects
    }

    /// `None` if there is no such code.
    fn find(&mut self, address: u64) -> Option<Effects> {
        let flows = self.flows;
        let after = flows.partition_point(|flow| flow.address <= address);
        let flow = &flows[after.checked_sub(1)?];
        let start = flow.instructions.binary_search_by_key(&address, Instruction::ip).ok()?;
        let reached = flow.reached(start);
        let mut effects = self.effects(flow, reached.iter().copied());
        for index in reached {
            let instruction = &flow.instructions[index];
            match instruction.flow_control() {
                FlowControl::IndirectBranch if self.imports.callee(instruction).is_none() => {
                    effects.unknown = true;
                    effects.changed.add(lost());
                }
                // The rest is elsewhere, or another function's.
                FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                    let target = instruction.near_branch_target();
                    if flow.exits.contains(&target) {
                        let rest = match self.imports.name_at(target).map(kind_of) {
                            None => self.of_function(target),
                            Some(Call::Pause | Call::Clock) => Rc::default(),
                            Some(Call::Harmless | Call::Releases) => {
                                Rc::new(Effects { acts: true, ..Effects::default() })
                            }
                            Some(Call::Acquires) => {
                                Rc::new(Effects { acquires: true, calls: true, ..Effects::default() })
                            }
                            Some(_) => {
                                Rc::new(Effects { by_pointer: true, calls: true, ..Effects::default() })
                            }
                        };
                        effects.add(&rest);
                        if self.imports.name_at(target).is_some() {
                            effects.changed.add(lost());
                        }
                    }
                }
                _ => (),
            }
        }
        Some(effects)
    }
}

/// The registers that a function of a library may change.
fn lost() -> Registers {
    let general = [
        Register::RAX,
        Register::RCX,
        Register::RDX,
        Register::RSI,
        Register::RDI,
        Register::R8,
        Register::R9,
        Register::R10,
        Register::R11,
    ];
    Registers::of((0..32).map(|number| Register::ZMM0 + number).chain(general))
}

fn kind_of(name: &str) -> Call {
    if name == "clock_gettime" {
        Call::Clock
    } else if PAUSES.contains(&name) {
        Call::Pause
    } else if HARMLESS.contains(&name) {
        Call::Harmless
    } else if RELEASES.contains(&name) {
        Call::Releases
    } else if ACQUIRES.iter().any(|prefix| name.starts_with(prefix)) {
        Call::Acquires
    } else {
        Call::Library
    }
}

/// True if the memory that an instruction names is on the thread's stack.
pub(crate) fn is_on_stack(flow: &Flow, instruction: &Instruction) -> bool {
    match instruction.memory_base() {
        Register::RSP => true,
        Register::RBP => flow.has_frame,
        _ => false,
    }
}
