//! A world as a model for stateright: every schedule of threads and messages is tried.

use crate::setup::{Op, Setup};
use crate::world::{Action, Machine, World};
use gondwana_coherence::Layout;
use stateright::{Checker, Model, Property};

/// All schedules of small programs on machines of one protocol.
pub struct Schedules<P> {
    /// The nodes and their programs.
    pub setup: Setup,
    /// Makes the machine of a node.
    pub machine: fn(Layout) -> P,
    /// A final state that must never be.
    pub forbidden: fn(&World<P>) -> bool,
    /// A final state that must be possible: a model without it would show nothing.
    pub possible: fn(&World<P>) -> bool,
}

impl<P: Machine + Send> Schedules<P> {
    /// Threads run the given programs on pages of two bytes; every final state may be.
    pub fn new(nodes: usize, pages: usize, threads: &[(usize, &[Op])], machine: fn(Layout) -> P) -> Self {
        let setup = Setup {
            threads: threads.iter().map(|(node, program)| (*node, program.to_vec())).collect(),
            locks: 2,
            lazy: false,
            ..Setup::new(nodes, pages, 2)
        };
        Self { setup, machine, forbidden: |_| false, possible: |_| true }
    }

    /// The same with a changed setup.
    pub fn with(mut self, change: impl FnOnce(&mut Setup)) -> Self {
        change(&mut self.setup);
        self
    }

    /// Tries every schedule.
    ///
    /// # Panics
    /// If one violates a property.
    pub fn check(self) {
        let started = std::time::Instant::now();
        let checker = self.checker().threads(2).spawn_bfs().join();
        println!("{} states in {:.1} s", checker.unique_state_count(), started.elapsed().as_secs_f64());
        checker.assert_properties();
    }

    fn ended(&self, world: &World<P>) -> bool {
        world.failure.is_none() && world.actions(&self.setup).is_empty()
    }
}

impl<P: Machine + Send> Model for Schedules<P> {
    type State = World<P>;
    type Action = Action;

    fn init_states(&self) -> Vec<Self::State> {
        vec![World::new(&self.setup, self.machine)]
    }

    fn actions(&self, world: &Self::State, actions: &mut Vec<Self::Action>) {
        actions.extend(world.actions(&self.setup));
    }

    fn next_state(&self, world: &Self::State, action: Self::Action) -> Option<Self::State> {
        let mut next = world.clone();
        next.apply(&self.setup, action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "every read returns what it must, and no message is refused",
                |_, world: &World<P>| world.failure.is_none(),
            ),
            Property::always("no deadlock", |model: &Self, world| {
                !model.ended(world) || world.finished(&model.setup)
            }),
            Property::always("directory and nodes agree when quiet", |model: &Self, world| {
                !model.ended(world) || world.check_quiet(&model.setup).is_ok()
            }),
            Property::always("no forbidden outcome", |model: &Self, world| {
                !model.ended(world) || !(model.forbidden)(world)
            }),
            Property::sometimes("the interesting outcome is possible", |model: &Self, world| {
                model.ended(world) && (model.possible)(world)
            }),
        ]
    }
}
