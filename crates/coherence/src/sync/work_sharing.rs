//! Work-sharing constructs: their manager gives out iterations, and lets ordered parts run one after the other.
//!
//! Where the order does not matter, each thread gets those of its own part first, which is the one that a static loop would give it,
//! and then what is left of others' parts, from their ends (*affinity scheduling*: Markatos and LeBlanc, IEEE TPDS 5(4), 1994). So
//! the data of an iteration stays with the node of the thread that the iteration was given to in earlier loops. The last iteration of
//! all is given out last: compilers take the thread's last iteration for it where a variable keeps its value (`lastprivate`).

use super::Object;
use super::request::{Caller, Reply};
use gondwana_topology::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// A work-sharing construct of a team of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Construct {
    /// The team.
    pub team: Object,
    /// Its number among those of the team, also of teams that had the address before; all threads of a team meet the same ones in
    /// the same order.
    pub number: u64,
}

/// The iterations that a thread prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Part {
    /// The number of the part, which is that of the thread in its team.
    pub number: u32,
    /// How many parts there are.
    pub of: u32,
}

impl Part {
    /// So many iterations can be divided in parts at most: the first one and the number of those of a claim fit into an answer.
    pub const MOST: u64 = 1 << 31;

    /// The iterations of the part: as many as of the others, or one more.
    #[must_use]
    pub fn range(self, total: u64) -> Range<u64> {
        let (number, of) = (u64::from(self.number), u64::from(self.of.max(1)));
        let (each, more) = (total / of, total % of);
        let start = number * each + number.min(more);
        start..start + each + u64::from(number < more)
    }
}

/// How many iterations of a construct a node wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// How many the construct has.
    pub total: u64,
    /// At least so many, if there are.
    pub least: u64,
    /// At least one of so many equal shares of those that are left, there or in the part.
    pub shares: u64,
    /// The part of the thread; `None` if all iterations are given out in their order. All claims of a construct are alike in that.
    pub part: Option<Part>,
}

impl Claim {
    /// The iterations that an answer means.
    #[must_use]
    pub fn range(&self, answer: i64) -> Range<u64> {
        let answer = answer.cast_unsigned();
        match self.part {
            None => answer..answer + self.amount(self.total.saturating_sub(answer)),
            Some(_) => answer >> 32..(answer >> 32) + (answer & u64::from(u32::MAX)),
        }
    }

    /// The answer that means these iterations; those of a claim without a part are as many as it gets.
    fn answer(&self, range: &Range<u64>) -> i64 {
        match self.part {
            None => range.start.cast_signed(),
            Some(_) => (range.start << 32 | (range.end - range.start)).cast_signed(),
        }
    }

    /// How many iterations of those that are left, of all or of a part, the claim gets.
    #[must_use]
    pub fn amount(&self, left: u64) -> u64 {
        let amount = left.div_ceil(self.shares.max(1)).max(self.least).min(left);
        // Of a part, some stay for threads that will have nothing to do.
        if self.part.is_some() { amount.min(left.div_ceil(2)) } else { amount }
    }

    /// What a part begins with: the last iteration of all is in none.
    #[must_use]
    pub fn part_at_first(&self, part: Part) -> Range<u64> {
        let (Range { start, end }, parted) = (part.range(self.total), self.total.saturating_sub(1));
        start.min(parted)..end.min(parted)
    }
}

/// The constructs that a node manages.
#[derive(Debug, Default)]
pub(super) struct WorkSharing {
    constructs: BTreeMap<Construct, Progress>,
}

/// How far a construct is.
#[derive(Debug, Default)]
struct Progress {
    /// The first iteration that nobody has claimed; of a construct with parts, all or none.
    next: u64,
    /// What nobody has claimed of the parts, if there are parts.
    parts: Vec<Left>,
    /// The iteration whose ordered part may run.
    turn: u64,
    /// Ordered parts that are over, or will never run, behind those whose turn it is: from where to where.
    over: BTreeMap<u64, u64>,
    /// Who waits for which turn.
    waiting: Vec<(u64, Caller)>,
}

/// What nobody has claimed of a part.
#[derive(Debug)]
struct Left {
    range: Range<u64>,
    /// Where its thread is, if it has claimed yet.
    node: Option<NodeId>,
}

impl WorkSharing {
    /// Which iterations the caller gets, for [`Claim::range`]; none if there are no more. No thread is in the constructs of the team
    /// up to `settled` any more.
    pub(super) fn claim(&mut self, node: NodeId, construct: Construct, settled: u64, claim: Claim) -> i64 {
        self.forget(construct.team, settled);
        let progress = self.constructs.entry(construct).or_default();
        let range = match claim.part {
            None => {
                let start = progress.next;
                progress.next += claim.amount(claim.total.saturating_sub(start));
                start..progress.next
            }
            Some(part) => progress.claim_of_part(node, &claim, part),
        };
        claim.answer(&range)
    }

    /// The caller is answered when it is the turn of iteration `turn`.
    pub(super) fn await_turn(
        &mut self,
        construct: Construct,
        turn: u64,
        caller: Caller,
        out: &mut Vec<Reply>,
    ) {
        let progress = self.constructs.entry(construct).or_default();
        progress.waiting.push((turn, caller));
        progress.answer(out);
    }

    /// The ordered parts from iteration `start` to before `end` are over, or will be when it is their turn.
    pub(super) fn pass_turn(
        &mut self,
        construct: Construct,
        settled: u64,
        (start, end): (u64, u64),
        out: &mut Vec<Reply>,
    ) {
        self.forget(construct.team, settled);
        let progress = self.constructs.entry(construct).or_default();
        progress.over.insert(start, end);
        while let Some(end) = progress.over.remove(&progress.turn) {
            progress.turn = end;
        }
        progress.answer(out);
    }

    fn forget(&mut self, team: Object, settled: u64) {
        let range = Construct { team, number: 0 }..=Construct { team, number: settled };
        while let Some((&construct, _)) = self.constructs.range(range.clone()).next() {
            self.constructs.remove(&construct);
        }
    }
}

impl Progress {
    /// The next iterations of a thread's part, or else of another one: first of those of its node.
    fn claim_of_part(&mut self, node: NodeId, claim: &Claim, part: Part) -> Range<u64> {
        if self.parts.is_empty() {
            let left = |number| Left { range: claim.part_at_first(Part { number, ..part }), node: None };
            self.parts = (0..part.of).map(left).collect();
        }
        let number = part.number as usize;
        if let Some(own) = self.parts.get_mut(number) {
            own.node = Some(node);
        }
        let rank = |(index, left): &(usize, &mut Left)| {
            (*index == number, left.node == Some(node), left.range.end - left.range.start)
        };
        let any = self.parts.iter_mut().enumerate().filter(|(_, left)| !left.range.is_empty());
        let Some((index, Left { range, .. })) = any.max_by_key(rank) else {
            // The last iteration, or none.
            let start = self.next.max(claim.total.saturating_sub(1));
            self.next = claim.total;
            return start..claim.total;
        };
        let amount = claim.amount(range.end - range.start);
        if index == number {
            range.start += amount;
            range.start - amount..range.start
        } else {
            range.end -= amount;
            range.end..range.end + amount
        }
    }

    /// Answers those whose turn it is.
    fn answer(&mut self, out: &mut Vec<Reply>) {
        let turn = self.turn;
        out.extend(
            self.waiting.extract_if(.., |(wanted, _)| *wanted == turn).map(|(_, caller)| caller.done(0)),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::Ticket;
    use super::*;
    use gondwana_topology::NodeId;
    use proptest::prelude::*;

    const TEAM: Object = Object(0x40);
    const NODE: NodeId = NodeId(0);

    fn construct(number: u64) -> Construct {
        Construct { team: TEAM, number }
    }

    fn caller(number: u64) -> Caller {
        Caller { node: NodeId(0), ticket: Ticket(number) }
    }

    proptest! {
        #[test]
        fn each_iteration_is_claimed_once(
            total in 0_u64..500,
            wanted in prop::collection::vec((1_u64..20, 1_u64..9), 1..9),
        ) {
            let mut work = WorkSharing::default();
            let mut claimed = 0;
            for (least, shares) in wanted.iter().cycle().take(2000) {
                let claim = Claim { total, least: *least, shares: *shares, part: None };
                let range = claim.range(work.claim(NODE, construct(1), 0, claim));
                prop_assert_eq!(range.start, claimed);
                claimed = range.end;
            }
            prop_assert_eq!(claimed, total);
        }

        #[test]
        fn each_iteration_of_parts_is_claimed_once(
            total in 0_u64..500,
            of in 1_u32..9,
            wanted in prop::collection::vec((0_u32..9, 1_u64..20, 1_u64..9, 0_u16..3), 1..30),
        ) {
            let mut work = WorkSharing::default();
            let mut seen = vec![false; usize::try_from(total).unwrap()];
            for (number, least, shares, node) in wanted.iter().cycle().take(2000) {
                let part = Part { number: number % of, of };
                let claim = Claim { total, least: *least, shares: *shares, part: Some(part) };
                let own = part.range(total);
                let was_left =
                    own.clone().any(|iteration| iteration + 1 < total && !seen[usize::try_from(iteration).unwrap()]);
                let range = claim.range(work.claim(NodeId(*node), construct(1), 0, claim));
                prop_assert!(!was_left || own.contains(&range.start), "{range:?} of {own:?}");
                prop_assert!(range.end < total || seen[..seen.len().saturating_sub(1)].iter().all(|seen| *seen));
                for iteration in range {
                    let seen = &mut seen[usize::try_from(iteration).unwrap()];
                    prop_assert!(!*seen);
                    *seen = true;
                }
            }
            prop_assert!(seen.iter().all(|seen| *seen));
        }

        #[test]
        fn turns_come_in_order_however_they_are_passed(
            chunks in Just((0_u64..20).collect::<Vec<_>>()).prop_shuffle(),
            waits in Just((0_u64..20).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let mut work = WorkSharing::default();
            let (mut out, mut over) = (vec![], vec![false; 20]);
            let check = |out: &mut Vec<Reply>, over: &[bool]| {
                for reply in out.drain(..) {
                    let turn = usize::try_from(reply.ticket.0).unwrap();
                    prop_assert!(over[..turn].iter().all(|over| *over), "{turn}");
                }
                Ok(())
            };
            for (&wait, &chunk) in waits.iter().zip(&chunks) {
                work.await_turn(construct(1), wait * 3, caller(wait), &mut out);
                check(&mut out, &over)?;
                work.pass_turn(construct(1), 0, (chunk * 3, chunk * 3 + 3), &mut out);
                over[usize::try_from(chunk).unwrap()] = true;
                check(&mut out, &over)?;
            }
            let progress = &work.constructs[&construct(1)];
            // Who came when its turn was over waits for ever; a program's thread comes before it passes its own turn.
            prop_assert_eq!((progress.turn, progress.over.len()), (60, 0));
        }
    }

    #[test]
    fn guided_claims_become_smaller() {
        let mut work = WorkSharing::default();
        let claim = Claim { total: 100, least: 10, shares: 4, part: None };
        let starts: Vec<i64> = (0..9).map(|_| work.claim(NODE, construct(1), 0, claim)).collect();
        assert_eq!(starts, [0, 25, 44, 58, 69, 79, 89, 99, 100]);
    }

    #[test]
    fn who_has_done_its_part_helps_first_its_node_and_then_who_has_most_left() {
        let mut work = WorkSharing::default();
        let mut claim = |node: u16, number, least| {
            let part = Part { number, of: 4 };
            assert_eq!(part.range(42), [0..11, 11..22, 22..32, 32..42][number as usize]);
            let claim = Claim { total: 42, least, shares: u64::MAX, part: Some(part) };
            claim.range(work.claim(NodeId(node), construct(1), 0, claim))
        };
        assert_eq!((claim(0, 0, 1), claim(1, 2, 9), claim(1, 3, 2)), (0..1, 22..27, 32..34));
        assert_eq!((claim(1, 2, 9), claim(1, 2, 1), claim(1, 2, 1)), (27..30, 30..31, 31..32));
        // From the end of the part of a thread of the same node, though others have more left.
        assert_eq!((claim(1, 2, 3), claim(1, 3, 1)), (38..41, 34..35));
        assert_eq!((claim(1, 3, 9), claim(1, 3, 9)), (35..37, 37..38));
        // Of others, from who has most left, and the last one last.
        assert_eq!((claim(1, 3, 4), claim(1, 3, 4)), (18..22, 7..11));
        let rest: Vec<_> = (0..7).map(|_| claim(1, 3, 9)).collect();
        assert_eq!(rest, [14..18, 4..7, 12..14, 2..4, 11..12, 1..2, 41..42]);
        assert_eq!(claim(0, 0, 9), 42..42);
    }

    #[test]
    fn constructs_that_are_over_are_forgotten() {
        let mut work = WorkSharing::default();
        let claim = Claim { total: 1, least: 1, shares: 1, part: None };
        for number in 1..=10 {
            assert_eq!(work.claim(NODE, construct(number), 0, claim), 0);
        }
        let other = Construct { team: Object(0x48), number: 3 };
        assert_eq!(work.claim(NODE, other, 0, claim), 0);
        assert_eq!(work.claim(NODE, construct(11), 9, claim), 0);
        assert_eq!(work.constructs.len(), 3);
        assert_eq!((work.claim(NODE, construct(10), 9, claim), work.claim(NODE, other, 0, claim)), (1, 1));
    }
}
