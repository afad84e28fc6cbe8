//! Loops in which a thread may wait for what another one writes, without a call that the runtime sees.
//!
//! Two kinds of loops are taken for such:
//!
//! - Nothing of an iteration lasts: it stores nothing that others may read, calls nothing but pauses, clocks and functions of which
//!   nothing lasts, and the next iteration uses nothing that it has computed. All iterations are alike until somebody else writes what
//!   they read.
//! - The loop ends by nothing but memory that it reads at the same address each time round and does not change itself; or it ends by
//!   something else, too, such as a count of tries, but does nothing else than to look there. If only its own thread ran, it would go
//!   round for ever or not at all.
//!
//! A compiler takes such a read out of a loop, unless the program says that others may write there or the loop might.
//!
//! A loop that takes a lock, or waits in another way that the runtime sees, sees what others have released: what it reads before the
//! next release is no poll.

use crate::effects::{Call, Effects, Functions, is_on_stack};
use crate::flow::Flow;
use crate::imports::Imports;
use crate::loops::loops;
use crate::redirected::uses;
use crate::values::{Value, Values};
use gondwana_elf::Code;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::collections::BTreeSet;
use std::ops::Range;

/// How many instructions a loop has at most of which nothing lasts.
const MOST: usize = 256;

/// How many instructions before a loop are searched for addresses that it hands on.
const BEFORE: usize = 512;

/// Where a thread may wait like that first: the address of a jump out of the loop. `flows` are the functions of a file by ascending
/// addresses.
pub(crate) fn first(flows: &[Flow], imports: &Imports<'_>, code: &Code<'_>) -> Option<u64> {
    let mut functions = Functions::new(flows, imports, &code.constants);
    let variables = &code.variables[..];
    flows.iter().find_map(|flow| {
        let loops = loops(flow);
        let mut search = Search::of(flow, &mut functions, variables, &loops)?;
        loops.iter().find_map(|members| Some(search.poll_in(members)?.jump))
    })
}

/// All instructions that look at memory in such loops, by their addresses. What functions of libraries look at is no atomic object.
pub(crate) fn looks(flows: &[Flow], imports: &Imports<'_>, code: &Code<'_>) -> BTreeSet<u64> {
    let mut functions = Functions::new(flows, imports, &code.constants);
    let variables = &code.variables[..];
    let mut found = BTreeSet::new();
    for flow in flows {
        let loops = loops(flow);
        let Some(mut search) = Search::of(flow, &mut functions, variables, &loops) else { continue };
        let polls: Vec<Poll> = loops.iter().filter_map(|members| search.poll_in(members)).collect();
        for look in polls.into_iter().flat_map(|poll| poll.looks) {
            add_looks(flow, look, flows, &mut functions, &mut found);
        }
    }
    found
}

/// Adds where an instruction of a function looks at memory: there, or in the function of the file that it calls.
fn add_looks(
    flow: &Flow,
    index: usize,
    flows: &[Flow],
    functions: &mut Functions<'_>,
    found: &mut BTreeSet<u64>,
) {
    let instruction = &flow.instructions[index];
    match functions.call(instruction) {
        None if may_look(instruction) => {
            found.insert(instruction.ip());
        }
        Some(Call::Own(address)) => {
            if let Ok(callee) = flows.binary_search_by_key(&address, |flow| flow.address) {
                let callee = &flows[callee];
                let looks =
                    callee.instructions.iter().filter(|one| may_look(one) && !is_on_stack(callee, one));
                found.extend(looks.map(Instruction::ip));
            }
        }
        _ => (),
    }
}

/// True if an instruction may read memory.
fn may_look(instruction: &Instruction) -> bool {
    uses(instruction, OpKind::Memory)
        && instruction.flow_control() == FlowControl::Next
        && !matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop)
}

/// A loop in which a thread may wait.
struct Poll {
    /// The address of a jump out of it.
    jump: u64,
    /// The instructions that read what it waits for, or call what does.
    looks: Vec<usize>,
}

/// The addresses on the stack that a function takes.
pub(crate) fn taken_on_stack(flow: &Flow) -> Vec<(Register, u64)> {
    let is_address = |instruction: &&Instruction| {
        instruction.mnemonic() == Mnemonic::Lea
            && matches!(instruction.memory_base(), Register::RSP | Register::RBP)
    };
    let address =
        |instruction: &Instruction| (instruction.memory_base(), instruction.memory_displacement64());
    flow.instructions.iter().filter(is_address).map(address).collect()
}

/// A search of one function.
struct Search<'a, 'b> {
    flow: &'a Flow,
    functions: &'a mut Functions<'b>,
    variables: &'a [Range<u64>],
    taken: Vec<(Register, u64)>,
    returning: Vec<bool>,
}

impl<'a, 'b> Search<'a, 'b> {
    /// `None` if the function has no loops.
    fn of(
        flow: &'a Flow,
        functions: &'a mut Functions<'b>,
        variables: &'a [Range<u64>],
        loops: &[Vec<usize>],
    ) -> Option<Self> {
        if loops.is_empty() {
            return None;
        }
        let (taken, returning) = (taken_on_stack(flow), flow.returning());
        Some(Self { flow, functions, variables, taken, returning })
    }
}

impl Search<'_, '_> {
    fn poll_in(&mut self, members: &[usize]) -> Option<Poll> {
        let exits = self.exits(members);
        let first = self.flow.instructions[*exits.first()?].ip();
        if exits.iter().any(|&exit| self.is_bound_of_switch(exit, members)) {
            return None;
        }
        let mut effects: Effects = self.functions.effects(self.flow, members.iter().copied());
        if self.repeats(members, &effects) {
            let (flow, taken) = (self.flow, &self.taken);
            let is_shared = |&&index: &&usize| {
                let instruction = &flow.instructions[index];
                let place = (instruction.memory_base(), instruction.memory_displacement64());
                !is_on_stack(flow, instruction) || taken.contains(&place)
            };
            return Some(Poll { jump: first, looks: members.iter().filter(is_shared).copied().collect() });
        }
        let before = members[0].saturating_sub(BEFORE)..members[0];
        effects.taken.extend(self.functions.effects(self.flow, before).taken);
        let mut values = Values::new(self.flow, members, self.functions, &self.taken);
        let conditions: Vec<(u64, Value)> =
            exits.iter().map(|&exit| (self.flow.instructions[exit].ip(), values.condition(exit))).collect();
        let polls: Vec<_> =
            conditions.iter().filter(|(_, value)| self.is_polled(members, &effects, value)).collect();
        let &&(jump, _) = polls.first()?;
        let all_poll = polls.len() == conditions.len();
        let looks = polls.iter().flat_map(|(_, value)| &value.read).map(|&(index, _)| index).collect();
        let reads = || conditions.iter().flat_map(|(_, value)| &value.read).map(|&(_, place)| place);
        let only_looks =
            || effects.leaves_nothing() && effects.loads.iter().all(|load| reads().any(|read| read == *load));
        (all_poll || only_looks()).then_some(Poll { jump, looks })
    }

    /// The jumps by which control leaves a loop; those to where the program ends only if there are no others.
    fn exits(&self, members: &[usize]) -> Vec<usize> {
        let is_outside = |&&follower: &&usize| members.binary_search(&follower).is_err();
        let flow = self.flow;
        let leaves = |index: usize| {
            flow.instructions[index].flow_control() == FlowControl::ConditionalBranch
                && (flow.followers(index).len() < 2 || flow.followers(index).iter().any(|to| is_outside(&to)))
        };
        let goes_on = |index: usize| {
            flow.followers(index).len() < 2
                || flow.followers(index).iter().filter(is_outside).any(|&to| self.returning[to])
        };
        let all: Vec<usize> = members.iter().copied().filter(|&index| leaves(index)).collect();
        let going_on: Vec<usize> = all.iter().copied().filter(|&index| goes_on(index)).collect();
        if going_on.is_empty() { all } else { going_on }
    }

    /// True if a jump leaves the loop for a `switch` over the memory that it compares, which is read again there: a compiler reads twice
    /// only what no other thread writes meanwhile. `while (there is more) switch (state)` becomes such a loop for unknown states.
    fn is_bound_of_switch(&self, exit: usize, members: &[usize]) -> bool {
        /// Instructions from the comparison's jump to the one of the `switch`.
        const MOST: usize = 6;
        let flow = self.flow;
        let Some(compared) = exit.checked_sub(1).map(|before| &flow.instructions[before]) else {
            return false;
        };
        let is_outside = |&&to: &&usize| members.binary_search(&to).is_err();
        let Some(&outside) = flow.followers(exit).iter().find(is_outside) else { return false };
        let is_same = |other: &Instruction| {
            other.mnemonic() == Mnemonic::Mov
                && other.op1_kind() == OpKind::Memory
                && other.memory_base() == compared.memory_base()
                && other.memory_index() == compared.memory_index()
                && other.memory_displacement64() == compared.memory_displacement64()
        };
        let then = &flow.instructions[outside..flow.instructions.len().min(outside + MOST)];
        let end = then.iter().position(|instruction| instruction.flow_control() != FlowControl::Next);
        compared.mnemonic() == Mnemonic::Cmp
            && compared.op0_kind() == OpKind::Memory
            && end.is_some_and(|end| {
                then[end].flow_control() == FlowControl::IndirectBranch && then[..end].iter().any(is_same)
            })
    }

    /// True if nothing of an iteration lasts, and the loop reads what others may write.
    fn repeats(&mut self, members: &[usize], effects: &Effects) -> bool {
        if members.len() > MOST || effects.loads.is_empty() || !effects.leaves_nothing() {
            return false;
        }
        let is_entry = |&&member: &&usize| {
            self.flow.leaders(member).iter().any(|leader| members.binary_search(leader).is_err())
        };
        let mut entries = members.iter().filter(is_entry);
        let (Some(&entry), None) = (entries.next(), entries.next()) else { return false };
        !Values::new(self.flow, members, self.functions, &self.taken).are_carried(entry)
    }

    /// True if a value changes only when others write, who need not have released it for this thread.
    fn is_polled(&mut self, members: &[usize], effects: &Effects, value: &Value) -> bool {
        !value.varies
            && !value.read.is_empty()
            && value.read.iter().all(|&(index, place)| {
                !effects.may_change(place, self.variables)
                    && (!effects.acquires || !self.is_fresh(members, index))
            })
    }

    /// True if on every way round to an instruction the thread sees what others have released, and has released nothing itself since.
    fn is_fresh(&mut self, members: &[usize], index: usize) -> bool {
        let (mut seen, mut next) = (BTreeSet::new(), vec![index]);
        while let Some(at) = next.pop() {
            for &leader in self.flow.leaders(at) {
                if members.binary_search(&leader).is_err() || !seen.insert(leader) {
                    continue;
                }
                match self.functions.call(&self.flow.instructions[leader]) {
                    Some(Call::Acquires | Call::Unknown) => (),
                    Some(Call::Own(address)) if self.functions.of_function(address).acquires => (),
                    Some(Call::Releases) => return false,
                    _ if leader == index => return false,
                    _ => next.push(leader),
                }
            }
        }
        true
    }
}
