//! A protocol whose machines send no message: lazy release consistency with updates, where what was written travels with the
//! synchronisation by which others learn of it. It keeps everything for ever, so it is of use for tests only.

use gondwana_coherence::{
    Access, Counters, Env, HomeRole, Layout, Outcome, Page, PlacedPages, Protocol, SyncPoint, Violation,
    Waiter,
};
use gondwana_topology::NodeId;
use std::collections::HashSet;

/// What one node wrote to one page between two releases.
#[derive(Clone)]
struct Update {
    origin: NodeId,
    number: u32,
    page: Page,
    diff: Vec<u8>,
}

/// The protocol on one node.
pub(crate) struct LazyUpdates {
    me: NodeId,
    /// Everything that this node knows of, in an order in which it may be applied anywhere.
    log: Vec<Update>,
    known: HashSet<(NodeId, u32)>,
    /// How much of `log` is applied here.
    applied: usize,
    /// How much of `log` each node has been told.
    told: Vec<usize>,
    /// The pages that have a twin.
    used: Vec<Page>,
    counters: Counters,
}

impl LazyUpdates {
    pub(crate) fn new(layout: Layout) -> Self {
        let told = vec![0; usize::from(layout.nodes())];
        let (log, known, used) = (vec![], HashSet::new(), vec![]);
        Self { me: layout.me(), log, known, applied: 0, told, used, counters: Counters::default() }
    }

    fn apply(&mut self, env: &mut dyn Env) {
        for Update { page, diff, .. } in &self.log[self.applied..] {
            if self.used.contains(page) {
                env.patch_with_twin(*page, diff);
            } else {
                env.patch(*page, diff);
            }
        }
        self.applied = self.log.len();
    }

    fn add(&mut self, update: Update) {
        if self.known.insert((update.origin, update.number)) {
            self.log.push(update);
        }
    }
}

/// Origin, number and page, and how long the diff is that follows.
const HEAD: usize = 16;

impl Protocol for LazyUpdates {
    fn adopt(&mut self, _: Page, _: u32) {}

    fn fault(&mut self, page: Page, _: Access, _: u32, _: Waiter, env: &mut dyn Env) -> Outcome {
        env.make_twin(page);
        env.protect(page, 1, Access::Write);
        self.used.push(page);
        Outcome::Done
    }

    fn release(&mut self, _: SyncPoint, _: Waiter, env: &mut dyn Env) -> Outcome {
        // What was written here comes behind all that is known, so that is applied.
        self.apply(env);
        for page in self.used.clone() {
            let mut diff = vec![];
            if env.diff_and_keep(page, &mut diff) > 0 {
                let number = u32::try_from(self.known.len()).unwrap();
                self.add(Update { origin: self.me, number, page, diff });
            }
        }
        self.applied = self.log.len();
        Outcome::Done
    }

    fn acquire(&mut self, _: SyncPoint, env: &mut dyn Env) {
        self.apply(env);
    }

    fn publish(&mut self, to: NodeId, payload: &mut Vec<u8>, _: &mut dyn Env) {
        for Update { origin, number, page, diff } in &self.log[self.told[to.index()]..] {
            for word in [origin.0.into(), *number, page.0, u32::try_from(diff.len()).unwrap()] {
                payload.extend(word.to_le_bytes());
            }
            payload.extend(diff);
        }
        self.told[to.index()] = self.log.len();
    }

    fn learn(&mut self, _: NodeId, mut payload: &[u8], _: &mut dyn Env) -> Result<(), Violation> {
        while !payload.is_empty() {
            let (head, rest) = payload.split_at_checked(HEAD).ok_or(Violation::Unintelligible)?;
            let word = |index: usize| u32::from_le_bytes(head[4 * index..4 * index + 4].try_into().unwrap());
            let (diff, rest) = rest.split_at_checked(word(3) as usize).ok_or(Violation::Unintelligible)?;
            let origin = u16::try_from(word(0)).map_err(|_| Violation::Unintelligible)?;
            let (origin, page) = (NodeId(origin), Page(word(2)));
            self.add(Update { origin, number: word(1), page, diff: diff.to_vec() });
            payload = rest;
        }
        Ok(())
    }

    fn kinds(&self) -> &'static [&'static str] {
        &[]
    }

    fn message(&mut self, _: NodeId, _: &[u8], _: &[u8], _: &mut dyn Env) -> Result<(), Violation> {
        Err(Violation::Unintelligible)
    }

    fn place(&mut self, _: Page, _: u32, _: Option<NodeId>, _: bool, _: &mut dyn Env) {}

    fn give_placed(&mut self, _: Page, _: u32, _: &mut dyn Env) {}

    fn home_role(&self, _: Page) -> HomeRole {
        HomeRole::Elsewhere
    }

    fn placed(&self) -> PlacedPages {
        PlacedPages::default()
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
