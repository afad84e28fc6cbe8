//! A world on a schedule drawn at random.

use crate::programs::Rng;
use crate::setup::Setup;
use crate::world::{Action, Machine, World};

impl<P: Machine> World<P> {
    /// Takes steps at random, at most `most`, until there are none.
    ///
    /// # Errors
    /// What is wrong then: a failure, threads that are stuck, or nodes that disagree.
    pub fn run_at_random(&mut self, setup: &Setup, seed: u64, most: usize) -> Result<(), String> {
        let mut rng = Rng(seed);
        let mut slow = Vec::new();
        for _ in 0..most {
            let mut actions = self.actions(setup);
            if actions.is_empty() {
                if let Some(failure) = &self.failure {
                    return Err(failure.clone());
                }
                if !self.finished(setup) {
                    return Err(format!("stuck: {:?}", self.threads));
                }
                return self.check_quiet(setup);
            }
            // Some channels are slow for a while, so that messages of different pairs overtake each other by far.
            if rng.chance(3) {
                let roll = |rng: &mut Rng| (rng.below(setup.nodes), rng.below(setup.nodes));
                slow = (0..rng.below(2 * setup.nodes)).map(|_| roll(&mut rng)).collect();
            }
            let is_slow = |action: &Action| matches!(action, Action::Deliver { from, to } if slow.contains(&(*from, *to)));
            if !actions.iter().all(is_slow) {
                actions.retain(|action| !is_slow(action));
            }
            self.apply(setup, actions[rng.below(actions.len())]);
        }
        Err("no end".to_owned())
    }
}
