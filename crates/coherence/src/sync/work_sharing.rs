//! Work-sharing constructs: their manager gives out iterations, and lets ordered parts run one after the other.

use super::Object;
use super::request::{Caller, Reply};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A work-sharing construct of a team of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Construct {
    /// The team.
    pub team: Object,
    /// Its number among those of the team, also of teams that had the address before; all threads of a team meet the same ones in
    /// the same order.
    pub number: u64,
}

/// How many iterations of a construct a node wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// How many the construct has.
    pub total: u64,
    /// At least so many, if there are.
    pub least: u64,
    /// At least one of so many equal parts of those that are left.
    pub parts: u64,
}

impl Claim {
    /// How many iterations the claim gets where `start` is the first that nobody has.
    #[must_use]
    pub fn amount(&self, start: u64) -> u64 {
        let left = self.total.saturating_sub(start);
        left.div_ceil(self.parts.max(1)).max(self.least).min(left)
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
    /// The first iteration that nobody has claimed.
    next: u64,
    /// The iteration whose ordered part may run.
    turn: u64,
    /// Ordered parts that are over, or will never run, behind those whose turn it is: from where to where.
    over: BTreeMap<u64, u64>,
    /// Who waits for which turn.
    waiting: Vec<(u64, Caller)>,
}

impl WorkSharing {
    /// The first iteration of those that the caller gets; the number of iterations if there are no more. No thread is in the
    /// constructs of the team up to `settled` any more.
    pub(super) fn claim(&mut self, construct: Construct, settled: u64, claim: Claim) -> u64 {
        self.forget(construct.team, settled);
        let progress = self.constructs.entry(construct).or_default();
        let start = progress.next;
        progress.next += claim.amount(start);
        start
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
            for (least, parts) in wanted.iter().cycle().take(2000) {
                let claim = Claim { total, least: *least, parts: *parts };
                let start = work.claim(construct(1), 0, claim);
                prop_assert_eq!(start, claimed);
                claimed += claim.amount(start);
            }
            prop_assert_eq!(claimed, total);
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
        let claim = Claim { total: 100, least: 10, parts: 4 };
        let starts: Vec<u64> = (0..9).map(|_| work.claim(construct(1), 0, claim)).collect();
        assert_eq!(starts, [0, 25, 44, 58, 69, 79, 89, 99, 100]);
    }

    #[test]
    fn constructs_that_are_over_are_forgotten() {
        let mut work = WorkSharing::default();
        let claim = Claim { total: 1, least: 1, parts: 1 };
        for number in 1..=10 {
            assert_eq!(work.claim(construct(number), 0, claim), 0);
        }
        let other = Construct { team: Object(0x48), number: 3 };
        assert_eq!(work.claim(other, 0, claim), 0);
        assert_eq!(work.claim(construct(11), 9, claim), 0);
        assert_eq!(work.constructs.len(), 3);
        assert_eq!((work.claim(construct(10), 9, claim), work.claim(other, 0, claim)), (1, 1));
    }
}
