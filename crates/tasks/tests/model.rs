//! Tasks, stealing and the barrier together, in every order of events (stateright, exhaustive).

use gondwana_tasks::{AtBarrier, AwayId, Crew, Dependence, Effects, Next, Run, Scope, TaskId, Work};
use gondwana_topology::{Id, NodeId};
use stateright::{Checker, Model, Property};

/// What a body does next. Bodies are known by their numbers.
#[derive(Clone, Copy, Debug)]
enum Op {
    Spawn(usize),
    /// With an `inout` dependence.
    SpawnAfter(usize),
    /// A task that runs at once.
    Now(usize),
    /// With an event, the only one of the program.
    SpawnDetached(usize),
    Fulfil,
    /// Cancels the group.
    Cancel,
    /// Must not run: its group is cancelled before.
    Never,
    Wait,
    BeginGroup,
    EndGroup,
    Barrier,
}

use Op::{Barrier, BeginGroup, Cancel, EndGroup, Fulfil, Never, Now, Spawn, SpawnAfter, SpawnDetached, Wait};

/// The name of the program's event.
const EVENT: u64 = 7;

struct Programs {
    /// The node of each thread; thread `i` runs body `i`.
    nodes: Vec<usize>,
    bodies: Vec<Vec<Op>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Message {
    Ask { epoch: u64, count: usize },
    Give { epoch: u64, tasks: Vec<(u64, u64, u64)> },
    Report { task: u64, all: bool, cancelled: bool },
    Return { task: u64 },
    Cancel { task: u64, gave: bool },
    Fulfil,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Frame {
    body: usize,
    next: usize,
    scope: Scope,
    task: Option<TaskId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Running,
    Asleep,
    /// At the barrier with nothing to do; it has asked other nodes, or need not.
    Idle {
        asked: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Thread {
    frames: Vec<Frame>,
    state: State,
    arrived: bool,
    passed: bool,
    woken: bool,
    epoch: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    /// The node of each thread.
    node_of: Vec<usize>,
    crews: Vec<Crew<usize>>,
    threads: Vec<Thread>,
    /// From, to; they arrive in any order.
    messages: Vec<(usize, usize, Message)>,
    /// A thread of the node knows that tasks are to be given, and has not yet done so.
    giving: Vec<bool>,
    arrived: usize,
    /// Tasks whose bodies have not ended.
    open: usize,
    stolen: bool,
    /// The node, the task and the body with the event, until it is fulfilled.
    event: Option<(usize, TaskId, u64)>,
    /// A task was finished without being run.
    discarded: bool,
    broken: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Step(usize),
    Ask(usize),
    Pass(usize),
    Give(usize),
    Deliver(usize),
}

impl World {
    fn new(programs: &Programs) -> Self {
        let nodes = programs.nodes.iter().max().expect("some threads") + 1;
        let thread = |body| Thread {
            frames: vec![Frame { body, next: 0, scope: Scope::OUTSIDE, task: None }],
            state: State::Running,
            arrived: false,
            passed: false,
            woken: false,
            epoch: 1,
        };
        Self {
            node_of: programs.nodes.clone(),
            crews: vec![Crew::new(nodes); nodes],
            threads: (0..programs.nodes.len()).map(thread).collect(),
            messages: vec![],
            giving: vec![false; nodes],
            arrived: 0,
            open: 0,
            stolen: false,
            event: None,
            discarded: false,
            broken: None,
        }
    }

    fn send(&mut self, from: usize, to: NodeId, message: Message) {
        self.messages.push((from, to.index(), message));
        self.messages.sort();
    }

    fn with<R>(&mut self, node: usize, act: impl FnOnce(&mut Crew<usize>) -> R) -> R {
        let result = act(&mut self.crews[node]);
        let Effects { wake, reports, returns, cancels, give } = self.crews[node].take_effects();
        for thread in wake {
            self.threads[thread].woken = true;
        }
        for report in reports {
            self.send(
                node,
                report.to,
                Message::Report { task: report.task.0, all: report.all, cancelled: report.cancelled },
            );
        }
        for (to, task) in returns {
            self.send(node, to, Message::Return { task: task.0 });
        }
        for cancel in cancels {
            self.send(node, cancel.to, Message::Cancel { task: cancel.task.0, gave: cancel.gave });
        }
        self.giving[node] |= give;
        result
    }

    fn run(&mut self, thread: usize, run: Run) {
        let me = &mut self.threads[thread];
        if run.work.data != me.epoch {
            self.broken = Some("a thread runs a task of another epoch");
        }
        if run.cancelled {
            self.discarded = true;
            self.open -= 1;
            if self.event.is_some_and(|(_, _, body)| body == run.work.function) {
                (self.event, self.open) = (None, self.open - 1);
            }
            let node = self.node_of[thread];
            return self.with(node, |crew| {
                crew.discard(run.task);
            });
        }
        let me = &mut self.threads[thread];
        let body = usize::try_from(run.work.function).expect("the number of a body");
        me.frames.push(Frame { body, next: 0, scope: run.scope, task: Some(run.task) });
    }

    /// A thread does what its body says next.
    fn step(&mut self, thread: usize, programs: &Programs) {
        let node = programs.nodes[thread];
        let me = &mut self.threads[thread];
        (me.woken, me.state) = (false, State::Running);
        let (epoch, top) = (me.epoch, me.frames.len() - 1);
        let frame = &mut me.frames[top];
        let Frame { scope, task, .. } = *frame;
        let Some(op) = programs.bodies[frame.body].get(frame.next).copied() else {
            me.frames.pop();
            return match task {
                Some(task) => {
                    self.open -= 1;
                    self.with(node, |crew| crew.finish(task));
                }
                None => self.with(node, |crew| crew.end(scope)),
            };
        };
        match op {
            Spawn(body) | SpawnAfter(body) => {
                self.open += 1;
                let work =
                    Work { function: body as u64, data: epoch, last: false, owns: false, inherited: 0 };
                let depends = matches!(op, SpawnAfter(_));
                let dependences = depends.then_some(Dependence { address: 1, changes: true });
                let dependences = dependences.into_iter().collect();
                let scope = self.with(node, |crew| crew.create(epoch, scope, work, dependences));
                self.go_on(thread, top, scope);
            }
            SpawnDetached(body) => {
                self.open += 2;
                let work =
                    Work { function: body as u64, data: epoch, last: false, owns: false, inherited: 0 };
                let (scope, task) =
                    self.with(node, |crew| crew.create_with_event(epoch, scope, work, vec![], Some(EVENT)));
                self.event = Some((node, task, work.function));
                self.go_on(thread, top, scope);
            }
            Fulfil => {
                match self.event {
                    Some((maker, ..)) if maker != node => {
                        self.send(node, NodeId::from_index(maker), Message::Fulfil);
                    }
                    _ => self.fulfil(node),
                }
                self.go_on(thread, top, scope);
            }
            Cancel => {
                self.with(node, |crew| crew.cancel_group(scope));
                self.go_on(thread, top, scope);
            }
            Never => self.broken = Some("a task of a cancelled group runs"),
            Now(body) => {
                me.frames.push(Frame { body, next: 0, scope: scope.inside(), task: None });
                self.go_on(thread, top, scope);
            }
            BeginGroup => {
                let scope = self.with(node, |crew| crew.begin_group(scope));
                self.go_on(thread, top, scope);
            }
            Wait => match self.with(node, |crew| crew.await_children(scope, thread)) {
                Next::Run(run) => self.run(thread, run),
                Next::Wait => self.threads[thread].state = State::Asleep,
                Next::Over => self.go_on(thread, top, scope),
            },
            EndGroup => match self.with(node, |crew| crew.await_group(scope, thread)) {
                Next::Run(run) => self.run(thread, run),
                Next::Wait => self.threads[thread].state = State::Asleep,
                Next::Over => {
                    let scope = self.with(node, |crew| crew.end_group(scope));
                    self.go_on(thread, top, scope);
                }
            },
            Barrier => self.at_barrier(thread, node),
        }
    }

    /// The event is fulfilled on the node that has made its task.
    fn fulfil(&mut self, node: usize) {
        if let Some((_, task, _)) = self.event.take() {
            self.open -= 1;
            self.with(node, |crew| crew.fulfil(task, EVENT));
        }
    }

    fn go_on(&mut self, thread: usize, frame: usize, scope: Scope) {
        let frame = &mut self.threads[thread].frames[frame];
        (frame.scope, frame.next) = (scope, frame.next + 1);
    }

    fn at_barrier(&mut self, thread: usize, node: usize) {
        let Thread { epoch, arrived, .. } = self.threads[thread];
        // Threads look without the lock first.
        let none = self.crews[node].unfinished() == 0 && self.crews[node].waiting() == 0;
        let what = if none && !arrived {
            AtBarrier::Arrive
        } else {
            self.with(node, |crew| crew.at_barrier(epoch, arrived, thread))
        };
        match what {
            AtBarrier::Run(run) => self.run(thread, run),
            AtBarrier::Wait => {
                let (others, _) = self.crews[node].clone().ask(epoch, NodeId::from_index(node));
                self.threads[thread].state = State::Idle { asked: others.is_empty() };
            }
            AtBarrier::Arrive => self.arrive(thread),
        }
    }

    fn arrive(&mut self, thread: usize) {
        self.threads[thread].arrived = true;
        self.arrived += 1;
        if self.arrived < self.threads.len() {
            return;
        }
        self.arrived = 0;
        if self.open > 0 {
            self.broken = Some("the barrier passes with unfinished tasks");
        }
        for thread in &mut self.threads {
            thread.passed = true;
        }
    }

    fn deliver(&mut self, place: usize) {
        let (from, to, message) = self.messages.remove(place);
        let from = NodeId::from_index(from);
        match message {
            Message::Ask { epoch, count } => self.with(to, |crew| crew.asked(from, epoch, count)),
            Message::Give { epoch, tasks } => {
                self.stolen = true;
                let work = |(task, function, data)| {
                    (AwayId(task), Work { function, data, last: false, owns: false, inherited: 0 })
                };
                self.with(to, |crew| crew.receive(from, epoch, tasks.into_iter().map(work)));
            }
            Message::Report { task, all, cancelled } => {
                self.with(to, |crew| crew.reported(AwayId(task), all, cancelled));
            }
            Message::Return { task } => self.with(to, |crew| crew.returned(AwayId(task))),
            Message::Cancel { task, gave } => {
                self.with(to, |crew| crew.cancelled(from, AwayId(task), gave));
            }
            Message::Fulfil => self.fulfil(to),
        }
    }

    fn is_finished(&self) -> bool {
        self.threads.iter().all(|thread| thread.frames.is_empty())
    }
}

impl Model for Programs {
    type State = World;
    type Action = Event;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self)]
    }

    fn actions(&self, world: &World, events: &mut Vec<Event>) {
        if world.broken.is_some() {
            return;
        }
        for (number, thread) in world.threads.iter().enumerate() {
            match thread.state {
                State::Running if thread.frames.is_empty() => {}
                State::Running => events.push(Event::Step(number)),
                _ if thread.woken => events.push(Event::Step(number)),
                State::Idle { asked: false } => events.push(Event::Ask(number)),
                State::Asleep | State::Idle { .. } => {}
            }
            // It has arrived, and runs nothing meanwhile.
            if thread.passed && thread.frames.len() == 1 {
                events.push(Event::Pass(number));
            }
        }
        events.extend((0..world.giving.len()).filter(|node| world.giving[*node]).map(Event::Give));
        // Messages from one node to another arrive in their order: a report does not overtake what its task has cancelled.
        let may_come = |place: &usize| {
            let (from, to, message) = &world.messages[*place];
            let cancels = |(other, target, message): &(usize, usize, Message)| {
                (other, target) == (from, to) && matches!(message, Message::Cancel { .. })
            };
            !matches!(message, Message::Report { .. }) || !world.messages.iter().any(cancels)
        };
        events.extend((0..world.messages.len()).filter(may_come).map(Event::Deliver));
    }

    fn next_state(&self, world: &World, event: Event) -> Option<World> {
        let mut next = world.clone();
        match event {
            Event::Step(thread) => next.step(thread, self),
            Event::Pass(thread) => {
                let me = &mut next.threads[thread];
                (me.arrived, me.passed, me.state) = (false, false, State::Running);
                me.epoch += 1;
                me.frames[0].next += 1;
            }
            Event::Ask(thread) => {
                next.threads[thread].state = State::Idle { asked: true };
                let (node, epoch) = (self.nodes[thread], next.threads[thread].epoch);
                let (others, count) = next.with(node, |crew| crew.ask(epoch, NodeId::from_index(node)));
                for other in others {
                    next.send(node, other, Message::Ask { epoch, count });
                }
            }
            Event::Give(node) => {
                next.giving[node] = false;
                while let Some(gift) = next.with(node, Crew::give) {
                    let words = |(task, work): (AwayId, Work)| (task.0, work.function, work.data);
                    let tasks = gift.tasks.into_iter().map(words).collect();
                    next.send(node, gift.to, Message::Give { epoch: gift.epoch, tasks });
                }
            }
            Event::Deliver(place) => next.deliver(place),
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("barriers wait for tasks", |_, world: &World| world.broken.is_none()),
            Property::always("nobody waits for ever", |model: &Self, world: &World| {
                let mut events = vec![];
                model.actions(world, &mut events);
                !events.is_empty() || world.is_finished()
            }),
            Property::always("nothing is left", |_, world: &World| {
                !world.is_finished() || world.crews.iter().all(Crew::is_empty)
            }),
            Property::sometimes("tasks are stolen", |_, world: &World| world.stolen),
        ]
    }
}

fn check(nodes: &[usize], bodies: &[&[Op]]) {
    let model = Programs { nodes: nodes.to_vec(), bodies: bodies.iter().map(|body| body.to_vec()).collect() };
    let checker = model.checker().spawn_bfs().join();
    println!("{} states", checker.unique_state_count());
    checker.assert_properties();
}

#[test]
fn two_nodes_of_two_threads_run_a_task() {
    let main: &[Op] = &[Spawn(4), Barrier];
    check(&[0, 0, 1, 1], &[main, &[Barrier], &[Barrier], &[Barrier], &[]]);
}

#[test]
fn a_thief_of_two_threads_runs_a_task_and_its_child() {
    let main: &[Op] = &[Spawn(3), Barrier];
    check(&[0, 1, 1], &[main, &[Barrier], &[Barrier], &[Spawn(4)], &[]]);
}

#[test]
fn threads_may_be_at_the_next_barrier_already() {
    let main: &[Op] = &[Spawn(3), Barrier, Spawn(3), Barrier];
    check(&[0, 0, 1], &[main, &[Barrier, Barrier], &[Barrier, Barrier], &[]]);
}

#[test]
fn tasks_wait_for_their_children() {
    let main: &[Op] = &[Spawn(2), Spawn(2), Wait, Barrier];
    check(&[0, 1], &[main, &[Barrier], &[Spawn(3), Wait], &[]]);
}

#[test]
fn threads_of_both_nodes_make_tasks() {
    let main: &[Op] = &[Spawn(2), Barrier, Spawn(3), Barrier];
    check(&[0, 1], &[main, &[Spawn(2), Barrier, Barrier], &[Spawn(3)], &[]]);
}

#[test]
fn three_nodes_steal_from_thieves() {
    let main: &[Op] = &[Spawn(3), Barrier];
    check(&[0, 1, 2], &[main, &[Barrier], &[Barrier], &[Spawn(4)], &[]]);
}

#[test]
fn groups_wait_for_all_descendants_and_dependences_for_bodies() {
    let main: &[Op] = &[BeginGroup, SpawnAfter(2), SpawnAfter(3), Now(2), EndGroup, Barrier];
    check(&[0, 1], &[main, &[Barrier], &[Spawn(3)], &[]]);
}

#[test]
fn tasks_of_a_cancelled_group_are_not_run() {
    // The second task follows the one that cancels; the third one has begun, or is discarded.
    let main: &[Op] = &[BeginGroup, SpawnAfter(2), SpawnAfter(3), Spawn(4), EndGroup, Barrier];
    check(&[0, 1], &[main, &[Barrier], &[Cancel], &[Never], &[]]);
}

#[test]
fn what_a_task_makes_after_it_has_cancelled_its_group_is_not_run() {
    let main: &[Op] = &[BeginGroup, Spawn(3), EndGroup, Barrier];
    check(&[0, 1, 1], &[main, &[Barrier], &[Barrier], &[Spawn(4), Cancel, Spawn(5)], &[], &[Never]]);
}

#[test]
fn groups_of_stolen_tasks_are_cancelled_over_three_nodes() {
    let main: &[Op] = &[BeginGroup, SpawnAfter(3), SpawnAfter(5), EndGroup, Barrier];
    check(&[0, 1, 2], &[main, &[Barrier], &[Barrier], &[Spawn(4), Wait], &[Cancel], &[Never]]);
}

#[test]
fn an_inner_group_is_cancelled_alone() {
    let main: &[Op] = &[BeginGroup, Spawn(2), BeginGroup, Cancel, Spawn(3), EndGroup, EndGroup, Barrier];
    check(&[0, 1], &[main, &[Barrier], &[], &[Never]]);
}

#[test]
fn a_task_ends_when_its_event_is_fulfilled() {
    let main: &[Op] = &[SpawnDetached(2), Spawn(3), Wait, Barrier];
    check(&[0, 1], &[main, &[Barrier], &[], &[Fulfil]]);
}

#[test]
fn a_task_fulfils_its_own_event_or_its_child_does() {
    let main: &[Op] = &[BeginGroup, SpawnDetached(2), EndGroup, Barrier];
    check(&[0, 1], &[main, &[Barrier], &[Fulfil]]);
    check(&[0, 1], &[main, &[Barrier], &[Spawn(3)], &[Fulfil]]);
}

#[test]
fn events_of_cancelled_tasks_need_not_be_fulfilled() {
    let main: &[Op] = &[BeginGroup, SpawnDetached(2), Spawn(3), EndGroup, Barrier];
    check(&[0, 1], &[main, &[Barrier], &[Fulfil], &[Cancel]]);
}
