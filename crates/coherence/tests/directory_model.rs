//! Every order of messages between a home and the agents of two or three nodes, for all short sequences of reads, writes and
//! evictions: there is one owner, a reader gets what was written last, directory and nodes agree once all is quiet, and
//! every request comes to its end. With answers that go to the requester (three hops) and to the home (four).

use gondwana_coherence::directory::{Agent, Entry, Home, Hops, Message, Node, Request, State};
use stateright::{Checker, Model, Property};

const HOME: Node = 0;

/// One message under way. `value` is the contents of the line, which the protocol does not look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Envelope {
    from: Node,
    to: Node,
    message: Message,
    value: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct System {
    home: Home,
    memory: u8,
    /// What a home that collects answers has of the line's contents.
    relayed: u8,
    agents: Vec<Agent>,
    /// What each node's caches have.
    values: Vec<u8>,
    /// Whether a node writes as soon as it owns the line.
    writes: Vec<bool>,
    /// In any order; sorted, so that equal sets are equal.
    under_way: Vec<Envelope>,
    /// Requests that each node may still make.
    left: Vec<u8>,
    /// What was written last.
    written: u8,
    /// Something that must not happen, in words.
    wrong: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Ask(Node, Request),
    Drop(Node),
    Write(Node),
    Deliver(usize),
}

struct Lines {
    hops: Hops,
    nodes: Node,
    requests: u8,
}

impl System {
    fn post(&mut self, from: Node, out: Vec<(Node, Message)>, value: u8) {
        self.under_way.extend(out.into_iter().map(|(to, message)| Envelope { from, to, message, value }));
        self.under_way.sort_unstable();
    }

    fn deliver(&mut self, envelope: Envelope) {
        let Envelope { from, to, message, value } = envelope;
        let mut out = vec![];
        let node = usize::from(to);
        if message.is_for_home() {
            if let Err(violation) = self.home.receive(from, message, &mut out) {
                self.wrong = Some(violation.to_string());
            }
            if matches!(message, Message::WriteBackData { .. }) {
                self.memory = value;
                self.values[usize::from(HOME)] = value;
                self.agents[usize::from(HOME)].follow(self.home.entry().state(HOME));
            }
            if message == (Message::Return { data: true }) {
                self.relayed = value;
            }
            let replies = out.iter().any(|(_, message)| matches!(message, Message::Reply { .. }));
            let value = if replies { std::mem::take(&mut self.relayed) } else { 0 };
            self.post(to, out, value);
            return;
        }
        let before = self.values[node];
        // The node keeps a shared copy of what it writes back if its own requests are even in number: both happen.
        let keeps = self.left[node].is_multiple_of(2);
        match self.agents[node].receive(from, message, keeps, &mut out) {
            Err(violation) => self.wrong = Some(violation.to_string()),
            Ok(done) => {
                if let Message::Reply { data: true, .. } = message {
                    self.values[node] = value;
                }
                if done && self.agents[node].state() == State::Shared && self.values[node] != self.written {
                    self.wrong = Some(format!("node {to} reads {} of {}", self.values[node], self.written));
                }
            }
        }
        // An answer has what the node had when the demand came.
        let value = if matches!(message, Message::Demand { .. }) { before } else { self.values[node] };
        self.post(to, out, value);
    }
}

impl Model for Lines {
    type State = System;
    type Action = Step;

    fn init_states(&self) -> Vec<System> {
        let count = usize::from(self.nodes);
        let entry = Entry::of_home(HOME);
        let agents = (0..self.nodes).map(|node| Agent::new(node, HOME, entry.state(node))).collect();
        vec![System {
            home: Home::new(HOME, entry, self.hops),
            memory: 0,
            relayed: 0,
            agents,
            values: vec![0; count],
            writes: vec![false; count],
            under_way: vec![],
            left: vec![self.requests; count],
            written: 0,
            wrong: None,
        }]
    }

    fn actions(&self, system: &System, actions: &mut Vec<Step>) {
        if system.wrong.is_some() {
            return;
        }
        for (node, agent) in (0..self.nodes).zip(&system.agents) {
            let left = system.left[usize::from(node)] > 0;
            if agent.is_idle() && left {
                match agent.state() {
                    State::Invalid => {
                        actions.extend([Step::Ask(node, Request::Read), Step::Ask(node, Request::Own)])
                    }
                    State::Shared => actions.extend([
                        Step::Ask(node, Request::Own),
                        // Its only copy may have been dropped by the one processor that had it.
                        Step::Ask(node, Request::Read),
                        Step::Drop(node),
                    ]),
                    State::Owned | State::Modified => {
                        if agent.state() == State::Owned {
                            actions.push(Step::Ask(node, Request::Own));
                        } else {
                            actions.push(Step::Write(node));
                        }
                        if node != HOME {
                            actions.push(Step::Ask(node, Request::WriteBack));
                        }
                    }
                }
            }
        }
        actions.extend((0..system.under_way.len()).map(Step::Deliver));
    }

    fn next_state(&self, before: &System, step: Step) -> Option<System> {
        let mut system = before.clone();
        match step {
            Step::Ask(node, request) => {
                let index = usize::from(node);
                system.left[index] -= 1;
                let message = system.agents[index].request(request);
                let value = system.values[index];
                system.post(node, vec![(HOME, message)], value);
            }
            Step::Drop(node) => {
                system.left[usize::from(node)] -= 1;
                system.agents[usize::from(node)].drop_shared();
            }
            Step::Write(node) => {
                system.left[usize::from(node)] -= 1;
                system.written += 1;
                system.values[usize::from(node)] = system.written;
            }
            Step::Deliver(index) => {
                let envelope = system.under_way.remove(index);
                system.deliver(envelope);
            }
        }
        Some(system)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "every message is allowed for, and reads return the last write",
                |_, system: &System| system.wrong.is_none(),
            ),
            Property::always("one node writes, and then nobody else has the line", |_, system: &System| {
                let states: Vec<State> = system.agents.iter().map(Agent::state).collect();
                let writers = states.iter().filter(|state| **state == State::Modified).count();
                let readers = states.iter().filter(|state| **state != State::Invalid).count();
                // A node that has dropped the line is still in the directory, but has nothing.
                writers <= 1 && (writers == 0 || readers == 1)
            }),
            Property::always(
                "nothing is under way only if all requests are complete",
                |_, system: &System| {
                    let idle = system.home.is_idle() && system.agents.iter().all(Agent::is_idle);
                    !system.under_way.is_empty() || idle
                },
            ),
            Property::always("directory and nodes agree when all is quiet", |_, system: &System| {
                if !system.under_way.is_empty() {
                    return true;
                }
                let entry = system.home.entry();
                let agree = |agent: &Agent| {
                    let (has, says) = (agent.state(), entry.state(agent.node()));
                    // Shared lines are dropped silently; an owner learns of that by its next request.
                    has == says || has == State::Invalid && says == State::Shared
                };
                system.agents.iter().all(agree) && system.values[usize::from(entry.owner)] == system.written
            }),
            Property::sometimes("a third node supplies the line", |_, system: &System| {
                system.under_way.iter().any(|e| {
                    let direct = matches!(e.message, Message::Reply { data: true, .. });
                    let by_home = e.message == Message::Return { data: true };
                    e.from != HOME && (direct && e.to != HOME || by_home)
                })
            }),
            Property::always("only three hops lead from agent to agent", |lines: &Self, system: &System| {
                lines.hops == Hops::Three
                    || system
                        .under_way
                        .iter()
                        .all(|e| !matches!(e.message, Message::Reply { .. }) || e.from == HOME)
            }),
            Property::sometimes("a writeback is canceled", |_, system: &System| {
                system.under_way.iter().any(|e| e.message == Message::Cancel)
            }),
        ]
    }
}

fn check(hops: Hops, nodes: Node, requests: u8) {
    let checker = Lines { hops, nodes, requests }.checker().threads(2).spawn_bfs().join();
    for name in [
        "every message is allowed for, and reads return the last write",
        "one node writes, and then nobody else has the line",
        "nothing is under way only if all requests are complete",
        "directory and nodes agree when all is quiet",
        "only three hops lead from agent to agent",
    ] {
        checker.assert_no_discovery(name);
    }
    if nodes > 2 {
        checker.assert_any_discovery("a third node supplies the line");
    }
    checker.assert_any_discovery("a writeback is canceled");
    println!(
        "{hops:?} hops, {nodes} nodes, {requests} requests each: {} states",
        checker.unique_state_count()
    );
}

#[test]
fn two_nodes() {
    check(Hops::Three, 2, 5);
    check(Hops::Four, 2, 5);
}

#[test]
fn three_nodes() {
    check(Hops::Three, 3, 2);
    check(Hops::Four, 3, 2);
}

#[test]
#[ignore = "a minute"]
fn three_nodes_for_longer() {
    check(Hops::Three, 3, 3);
    check(Hops::Four, 3, 3);
}
