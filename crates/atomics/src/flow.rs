//! How control flows through the instructions of one function.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
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
    followers: Vec<Vec<usize>>,
    /// The other way round.
    leaders: Vec<Vec<usize>>,
}

impl Flow {
    /// The flow through a function's code. `ends` tells of calls that do not return.
    pub(crate) fn of(address: u64, code: &[u8], ends: impl Fn(&Instruction) -> bool) -> Self {
        let instructions: Vec<Instruction> =
            Decoder::with_ip(64, code, address, DecoderOptions::NONE).into_iter().collect();
        let inside = address..address + code.len() as u64;
        let (mut followers, mut exits, mut complete) = (vec![vec![]; instructions.len()], vec![], true);
        for (index, instruction) in instructions.iter().enumerate() {
            let next = (index + 1 < instructions.len()).then_some(index + 1);
            let (goes_on, jumps) = match instruction.flow_control() {
                FlowControl::Call | FlowControl::IndirectCall => (!ends(instruction), false),
                FlowControl::Next => (true, false),
                FlowControl::ConditionalBranch => (true, true),
                FlowControl::UnconditionalBranch => (false, true),
                FlowControl::Return | FlowControl::Interrupt => (false, false),
                FlowControl::IndirectBranch | FlowControl::XbeginXabortXend | FlowControl::Exception => {
                    complete = false;
                    (false, false)
                }
            };
            followers[index].extend(next.filter(|_| goes_on));
            if !jumps {
                continue;
            }
            let target = instruction.near_branch_target();
            if instruction.op0_kind() != OpKind::NearBranch64 {
                complete = false;
            } else if !inside.contains(&target) {
                exits.push(target);
            } else if let Ok(to) = instructions.binary_search_by_key(&target, Instruction::ip) {
                followers[index].push(to);
            } else {
                complete = false;
            }
        }
        let mut leaders = vec![vec![]; instructions.len()];
        for (index, followers) in followers.iter().enumerate() {
            followers.iter().for_each(|&follower| leaders[follower].push(index));
        }
        // What fills the room before an aligned place is executed by nobody.
        for index in 1..instructions.len() {
            if instructions[index].mnemonic() == Mnemonic::Nop && leaders[index].is_empty() {
                for follower in std::mem::take(&mut followers[index]) {
                    leaders[follower].retain(|&leader| leader != index);
                }
            }
        }
        let has_frame = instructions.iter().take(8).any(|instruction| {
            instruction.mnemonic() == Mnemonic::Mov
                && instruction.op0_register() == Register::RBP
                && instruction.op1_register() == Register::RSP
        });
        Self { address, instructions, complete, exits, has_frame, followers, leaders }
    }

    /// The instructions that may follow one.
    pub(crate) fn followers(&self, index: usize) -> &[usize] {
        &self.followers[index]
    }

    /// The instructions that one may follow.
    pub(crate) fn leaders(&self, index: usize) -> &[usize] {
        &self.leaders[index]
    }

    /// The instructions that can be reached from one, that one included.
    pub(crate) fn reached(&self, start: usize) -> Vec<usize> {
        let mut reached = spread(start, usize::MAX, &self.followers, |_| true).expect("there is no limit");
        if !reached.contains(&start) {
            reached.push(start);
        }
        reached
    }

    /// The instructions from which control may come back to the caller.
    pub(crate) fn returning(&self) -> HashSet<usize> {
        let ways_out = self.instructions.iter().enumerate().filter(|(_, instruction)| {
            let jumps_out = || match instruction.flow_control() {
                FlowControl::IndirectBranch => true,
                FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                    self.exits.contains(&instruction.near_branch_target())
                }
                _ => false,
            };
            instruction.flow_control() == FlowControl::Return || jumps_out()
        });
        let mut returning: HashSet<usize> = ways_out.map(|(index, _)| index).collect();
        let mut next: Vec<usize> = returning.iter().copied().collect();
        while let Some(index) = next.pop() {
            next.extend(self.leaders[index].iter().copied().filter(|&leader| returning.insert(leader)));
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

/// What can be reached from `start` over `edges` and those that pass; `start` itself only if it is reached again. `None` if it is more
/// than `most`.
fn spread(
    start: usize,
    most: usize,
    edges: &[Vec<usize>],
    passes: impl Fn(usize) -> bool,
) -> Option<Vec<usize>> {
    let mut seen = HashSet::new();
    let (mut reached, mut next) = (vec![], vec![start]);
    while let Some(index) = next.pop() {
        for &follower in &edges[index] {
            if seen.insert(follower) && (follower == start || passes(follower)) {
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
