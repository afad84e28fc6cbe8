//! How control flows through the instructions of one function.

use crate::usage::Usage;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register,
};
use std::cell::OnceCell;
use std::collections::HashSet;

/// A function's instructions, and which of them may follow each.
pub(crate) struct Flow {
    /// Where it begins.
    pub address: u64,
    pub instructions: Vec<Instruction>,
    /// All followers are known: there is no computed jump, and nothing that is no code.
    pub complete: bool,
    /// Where control may leave the function to without a call or a return.
    pub exits: Vec<u64>,
    /// The frame pointer is one: what it points to is on the thread's stack.
    pub has_frame: bool,
    followers: Edges,
    /// The other way round.
    leaders: Edges,
    /// Of each instruction, once somebody asks.
    usages: OnceCell<Vec<Usage>>,
}

/// Whether control goes on with what is behind an instruction, and whether it may jump to a place that this names. `None` where that is
/// computed, and for what is no code.
pub(crate) fn ways_on(instruction: &Instruction) -> Option<(bool, bool)> {
    match instruction.flow_control() {
        FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => Some((true, false)),
        FlowControl::ConditionalBranch => Some((true, true)),
        FlowControl::UnconditionalBranch => Some((false, true)),
        FlowControl::Return | FlowControl::Interrupt => Some((false, false)),
        FlowControl::IndirectBranch | FlowControl::XbeginXabortXend | FlowControl::Exception => None,
    }
}

impl Flow {
    /// The flow through a function's code. `ends` tells of calls that do not return.
    pub(crate) fn of(address: u64, code: &[u8], ends: impl Fn(&Instruction) -> bool) -> Self {
        let instructions: Vec<Instruction> =
            Decoder::with_ip(64, code, address, DecoderOptions::NONE).into_iter().collect();
        let inside = address..address + code.len() as u64;
        let (mut followers, mut exits, mut complete) = (vec![[None; 2]; instructions.len()], vec![], true);
        for (index, instruction) in instructions.iter().enumerate() {
            let next = (index + 1 < instructions.len()).then_some(index + 1);
            let is_call = matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
            let (goes_on, jumps) = ways_on(instruction).unwrap_or_else(|| {
                complete = false;
                (false, false)
            });
            let goes_on = goes_on && !(is_call && ends(instruction));
            followers[index][0] = next.filter(|_| goes_on);
            if !jumps {
                continue;
            }
            let target = instruction.near_branch_target();
            if instruction.op0_kind() != OpKind::NearBranch64 {
                complete = false;
            } else if !inside.contains(&target) {
                exits.push(target);
            } else if let Ok(to) = instructions.binary_search_by_key(&target, Instruction::ip) {
                followers[index][1] = Some(to);
            } else {
                complete = false;
            }
        }
        let mut leaders = vec![0_u32; instructions.len()];
        followers.iter().flatten().flatten().for_each(|&follower| leaders[follower] += 1);
        // What fills the room before an aligned place is executed by nobody.
        for index in 1..instructions.len() {
            if instructions[index].mnemonic() == Mnemonic::Nop && leaders[index] == 0 {
                let dropped = std::mem::take(&mut followers[index]);
                dropped.into_iter().flatten().for_each(|follower| leaders[follower] -= 1);
            }
        }
        let pairs = || {
            followers
                .iter()
                .enumerate()
                .flat_map(|(index, to)| to.iter().flatten().map(move |&to| (index, to)))
        };
        let leaders = Edges::new(instructions.len(), || pairs().map(|(index, to)| (to, index)));
        let followers = Edges::new(instructions.len(), pairs);
        let has_frame = instructions.iter().take(8).any(|instruction| {
            instruction.mnemonic() == Mnemonic::Mov
                && instruction.op0_register() == Register::RBP
                && instruction.op1_register() == Register::RSP
        });
        let usages = OnceCell::new();
        Self { address, instructions, complete, exits, has_frame, followers, leaders, usages }
    }

    /// The instructions that may follow one.
    pub(crate) fn followers(&self, index: usize) -> &[usize] {
        self.followers.of(index)
    }

    /// The instructions that one may follow.
    pub(crate) fn leaders(&self, index: usize) -> &[usize] {
        self.leaders.of(index)
    }

    /// What an instruction uses and changes.
    pub(crate) fn usage(&self, index: usize) -> &Usage {
        let find = || {
            let mut factory = InstructionInfoFactory::new();
            self.instructions.iter().map(|instruction| Usage::of(instruction, &mut factory)).collect()
        };
        &self.usages.get_or_init(find)[index]
    }

    /// The instructions that can be reached from one, that one included.
    pub(crate) fn reached(&self, start: usize) -> Vec<usize> {
        let mut reached = spread(start, usize::MAX, &self.followers, |_| true).expect("there is no limit");
        if !reached.contains(&start) {
            reached.push(start);
        }
        reached
    }

    /// For each instruction, whether control may come back to the caller from it.
    pub(crate) fn returning(&self) -> Vec<bool> {
        let leaves = |instruction: &Instruction| {
            let jumps_out = || match instruction.flow_control() {
                FlowControl::IndirectBranch => true,
                FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                    self.exits.contains(&instruction.near_branch_target())
                }
                _ => false,
            };
            instruction.flow_control() == FlowControl::Return || jumps_out()
        };
        let mut returning: Vec<bool> = self.instructions.iter().map(leaves).collect();
        let mut next: Vec<usize> = (0..returning.len()).filter(|&index| returning[index]).collect();
        while let Some(index) = next.pop() {
            let new = |&leader: &usize| !std::mem::replace(&mut returning[leader], true);
            next.extend(self.leaders(index).iter().copied().filter(new));
        }
        returning
    }

    /// The instructions that are on some way from an instruction back to itself, that one included, on which `passes` holds for each;
    /// empty if there is no such way. `None` if more than `most` instructions can be reached from it like that.
    pub(crate) fn cycle(
        &self,
        start: usize,
        most: usize,
        passes: impl Fn(&Instruction) -> bool,
    ) -> Option<Vec<usize>> {
        let reached = spread(start, most, &self.followers, |index| passes(&self.instructions[index]))?;
        let reached: HashSet<usize> = reached.into_iter().collect();
        if !reached.contains(&start) {
            return Some(vec![]);
        }
        let mut cycle = spread(start, usize::MAX, &self.leaders, |index| reached.contains(&index))?;
        cycle.sort_unstable();
        Some(cycle)
    }
}

/// Which instructions lead to which, in one piece of memory.
struct Edges {
    /// Where the edges of each instruction begin, and where the last one's end.
    starts: Vec<usize>,
    ends: Vec<usize>,
}

impl Edges {
    /// The edges of `count` instructions, those of each in the order in which `pairs` gives them, each time it is called.
    fn new<P: Iterator<Item = (usize, usize)>>(count: usize, pairs: impl Fn() -> P) -> Self {
        let mut starts = vec![0; count + 1];
        pairs().for_each(|(from, _)| starts[from + 1] += 1);
        (0..count).for_each(|index| starts[index + 1] += starts[index]);
        let (mut ends, mut next) = (vec![0; starts[count]], starts.clone());
        for (from, to) in pairs() {
            ends[next[from]] = to;
            next[from] += 1;
        }
        Self { starts, ends }
    }

    fn of(&self, index: usize) -> &[usize] {
        &self.ends[self.starts[index]..self.starts[index + 1]]
    }
}

/// What can be reached from `start` over `edges` and those that pass; `start` itself only if it is reached again. `None` if it is more
/// than `most`.
fn spread(start: usize, most: usize, edges: &Edges, passes: impl Fn(usize) -> bool) -> Option<Vec<usize>> {
    let mut seen = vec![false; edges.starts.len() - 1];
    let (mut reached, mut next) = (vec![], vec![start]);
    while let Some(index) = next.pop() {
        for &follower in edges.of(index) {
            if !std::mem::replace(&mut seen[follower], true) && (follower == start || passes(follower)) {
                reached.push(follower);
                next.push(follower);
            }
        }
        if reached.len() > most {
            return None;
        }
    }
    Some(reached)
}
