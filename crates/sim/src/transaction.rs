//! One request between nodes: the protocol's messages, each with the time at which it arrives.

use crate::Time;
use crate::counters::Supply;
use crate::lines::Place;
use crate::machine::Machine;
use crate::watch::Answered;
use gondwana_coherence::directory::{Agent, Demand, Home, Message, Node, Request};

/// A message under way.
#[derive(Clone, Copy, Debug)]
struct Envelope {
    arrival: Time,
    /// The order of sending, for messages that arrive at one time.
    number: u32,
    from: Node,
    to: Node,
    message: Message,
}

/// Buffers that one transaction leaves to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    under_way: Vec<Envelope>,
    out: Vec<(Node, Message)>,
    agents: Vec<Agent>,
}

/// What is known of a transaction.
struct Transaction {
    node: Node,
    line: u64,
    place: Place,
    supply: Supply,
    /// The other node that has sent the line, and the one that was asked first.
    supplier: Option<Node>,
    asked: Option<Node>,
    /// When the requester has all it waits for.
    done: Time,
    /// When the home has worked on the answers that it has collected so far.
    collected: Time,
    number: u32,
}

impl Machine {
    /// Asks the home for a line on behalf of a node, from the time of the snoop result. Returns when the node's bus has the
    /// answer, and who supplied the line.
    pub(crate) fn request(
        &mut self,
        node: Node,
        line: u64,
        place: Place,
        request: Request,
        at: Time,
    ) -> (Time, Supply) {
        let transaction = self.run(node, line, place, request, false, at);
        let home = self.lines.home(place);
        if let Some(watch) = &mut self.watch {
            watch.answer(Answered { home, supplier: transaction.supplier, asked: transaction.asked });
        }
        // The request is issued again on the node's bus, where the answer is ready now.
        (self.snoop(node, transaction.done), transaction.supply)
    }

    /// Writes a line of another node back. Nobody waits for it.
    pub(crate) fn write_back(&mut self, node: Node, line: u64, place: Place, keeps: bool, at: Time) {
        self.run(node, line, place, Request::WriteBack, keeps, at);
        self.watch_write_back(node, line, place);
    }

    fn run(
        &mut self,
        node: Node,
        line: u64,
        place: Place,
        request: Request,
        keeps: bool,
        at: Time,
    ) -> Transaction {
        let home_node = self.lines.home(place);
        let entry = self.lines.block(place).entry;
        let mut home = Home::new(home_node, entry, self.hops);
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.agents.clear();
        scratch.under_way.clear();
        let agent = |of: Node| Agent::new(of, home_node, entry.state(of));
        scratch.agents.push(agent(node));
        let mut transaction = Transaction {
            node,
            line,
            place,
            supply: Supply::RemoteMemory,
            supplier: None,
            asked: None,
            done: at,
            collected: at,
            number: 0,
        };
        let start = self.pass_controller(node, at) + self.to_global(node, place) + self.times.request;
        let message = scratch.agents[0].request(request);
        self.post(&mut scratch.under_way, &mut transaction, node, home_node, message, start);
        while let Some(envelope) = next(&mut scratch.under_way) {
            let Envelope { from, to, message, .. } = envelope;
            let left = self.handle(&mut transaction, home_node, &envelope);
            scratch.out.clear();
            let result = if message.is_for_home() {
                home.receive(from, message, &mut scratch.out)
            } else {
                let at = scratch.agents.iter().position(|agent| agent.node() == to);
                let at = at.unwrap_or_else(|| {
                    scratch.agents.push(agent(to));
                    scratch.agents.len() - 1
                });
                scratch.agents[at].receive(from, message, keeps, &mut scratch.out).map(|_| ())
            };
            result.unwrap_or_else(|violation| panic!("line {line:#x}: {violation}"));
            for &(receiver, message) in &scratch.out {
                self.post(&mut scratch.under_way, &mut transaction, to, receiver, message, left);
            }
        }
        debug_assert!(home.is_idle() && scratch.agents.iter().all(Agent::is_idle));
        let after = home.entry();
        // The home's memory takes a writeback, and its agent's state with it.
        debug_assert!(
            scratch
                .agents
                .iter()
                .all(|agent| { agent.node() == home_node || agent.state() == after.state(agent.node()) })
        );
        self.scratch = scratch;
        self.lines.block(place).entry = after;
        transaction
    }

    /// The controller of a node begins to work on something.
    fn pass_controller(&mut self, node: Node, at: Time) -> Time {
        let controller = &mut self.nodes[usize::from(node)].controller;
        controller.reserve(at, self.times.controller_busy)
    }

    /// Does what a message does to caches, buses and memory; returns when the answers leave.
    fn handle(&mut self, transaction: &mut Transaction, home: Node, envelope: &Envelope) -> Time {
        let Envelope { arrival, to, message, .. } = *envelope;
        let Transaction { line, place, .. } = *transaction;
        match message {
            Message::Request(_) => {
                // The home takes up a request when the last one for the line is complete.
                let free = self.lines.block(place).blocked.max(arrival);
                let looked_up = self.look_up_entry(to, line, place);
                self.pass_controller(to, free) + self.times.home + looked_up
            }
            Message::Demand { demand, .. } => {
                let begun = self.pass_controller(to, arrival) + self.to_local(to, place) + self.times.slave;
                self.watch_demand(demand, to, transaction.node, line, place);
                if to != transaction.node {
                    transaction.asked = transaction.asked.or(Some(to));
                }
                // The line that was asked for goes first, and the others of its block keep buses and memory busy behind it.
                let (supplied, owner) = self.obey(demand, to, home, line, place, begun);
                for (line, place) in self.lines.block_lines(line, place).skip(1) {
                    self.obey(demand, to, home, line, place, begun);
                }
                if demand != Demand::Supply {
                    self.forget_far(to, line, place);
                    self.forget_replica(to, place);
                }
                if demand != Demand::Invalidate {
                    transaction.supplier = (to != transaction.node).then_some(to);
                    transaction.supply = match owner {
                        None if to == home => Supply::RemoteMemory,
                        _ if to == home || home == transaction.node => Supply::RemoteCache,
                        _ => Supply::ThreeHop,
                    };
                }
                supplied
            }
            Message::Reply { .. } | Message::Grant | Message::Cancel => {
                let ready = self.pass_controller(to, arrival) + self.times.reply;
                transaction.done = transaction.done.max(ready);
                transaction.done
            }
            Message::Return { .. } => {
                // What the home's own node answers is there.
                let ready = match envelope.from == to {
                    true => arrival,
                    false => self.pass_controller(to, arrival) + self.times.home,
                };
                transaction.collected = transaction.collected.max(ready);
                transaction.collected
            }
            Message::Complete => {
                self.lines.block(place).blocked = arrival;
                arrival
            }
            Message::WriteBackData { .. } => {
                let begun = self.pass_controller(to, arrival) + self.times.slave;
                for (line, _) in self.lines.block_lines(line, place) {
                    let snooped = self.snoop(to, begun);
                    self.memory(to, line, snooped);
                }
                self.lines.block(place).blocked = arrival;
                arrival
            }
        }
    }

    /// Does what a demand wants of a node for one line of the block. Returns when the answer may leave, and the processor
    /// whose cache had the line as its owner.
    fn obey(
        &mut self,
        demand: Demand,
        node: Node,
        home: Node,
        line: u64,
        place: Place,
        begun: Time,
    ) -> (Time, Option<usize>) {
        let snooped = self.snoop(node, begun);
        let owner = self.supplier(node, place);
        let supplied = match owner {
            // The answer leaves as soon as the bus has the request in its queue.
            _ if demand == Demand::Invalidate => begun,
            Some(_) => snooped + self.times.intervention,
            None if node == home => self.memory(node, line, snooped),
            None => self.kept(node, line, place, snooped),
        };
        match (demand, owner) {
            (Demand::Supply, Some(owner)) => self.demote(owner, line, place),
            (Demand::Supply, None) => {}
            _ => self.invalidate(self.members[usize::from(node)], line, place),
        }
        (supplied, owner)
    }

    fn post(
        &mut self,
        under_way: &mut Vec<Envelope>,
        transaction: &mut Transaction,
        from: Node,
        to: Node,
        message: Message,
        at: Time,
    ) {
        let contents = match message {
            Message::Reply { data: true, .. }
            | Message::Return { data: true }
            | Message::WriteBackData { .. } => self.block_bytes,
            _ => 0,
        };
        let arrival = match &mut self.network {
            Some(network) if from != to => network.send(at, from, to, message.is_request(), contents),
            _ => at,
        };
        transaction.number += 1;
        under_way.push(Envelope { arrival, number: transaction.number, from, to, message });
    }
}

/// The message that arrives first.
fn next(under_way: &mut Vec<Envelope>) -> Option<Envelope> {
    let (at, _) = under_way.iter().enumerate().min_by_key(|(_, e)| (e.arrival, e.number))?;
    Some(under_way.swap_remove(at))
}
