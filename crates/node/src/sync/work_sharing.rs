//! Work-sharing constructs of OpenMP.

use crate::Node;
use gondwana_coherence::sync::{Claim, Construct, Request};
use gondwana_page::to_usize;
use std::ops::Range;

impl Node {
    /// The iterations that this node gets; all threads of the team are past the constructs up to `settled`.
    pub fn claim_iterations(&'static self, construct: Construct, settled: u64, claim: Claim) -> Range<u64> {
        let answer = self.request(to_usize(construct.team.0), Request::Claim { construct, settled, claim });
        answer.map_or(claim.total..claim.total, |answer| claim.range(answer))
    }

    /// Waits for the turn of an iteration's ordered part.
    pub fn await_turn(&'static self, construct: Construct, turn: u64) {
        // No error is possible.
        let _ = self.request(to_usize(construct.team.0), Request::AwaitTurn { construct, turn });
        self.acquire(Some(construct.team));
    }

    /// The ordered parts of some iterations, from the first to before the second, are over or will be when it is their turn.
    pub fn pass_turn(&'static self, construct: Construct, settled: u64, turns: (u64, u64)) {
        self.release(Some(construct.team));
        let _ = self.request(to_usize(construct.team.0), Request::PassTurn { construct, settled, turns });
    }
}
