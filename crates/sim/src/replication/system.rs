//! What migration and replication do to the machine: the daemon's work, and where misses meet replicas.

use super::policy::{Action, Candidate, Room};
use crate::Time;
use crate::lines::{NOBODY, Place};
use crate::machine::Machine;
use crate::statistics::NodeReplication;
use gondwana_coherence::directory::{Node, State};

impl Machine {
    /// True if the operating system may move or replicate pages: [`Machine::attend`] is to be called before accesses.
    #[inline]
    #[must_use]
    pub fn moves_pages(&self) -> bool {
        self.replication.is_some()
    }

    /// What the operating system does before a processor makes an access for which its caches do not do. True if the
    /// processor's time has passed: others may be before it now, and the access is to be tried again.
    ///
    /// The daemon runs on the processor that comes first when it is due, and processors wait for pages that it works on.
    pub fn attend(&mut self, processor: usize, address: u64, width: u64) -> bool {
        let now = self.ports[processor].now();
        let Some(replication) = &self.replication else { return false };
        let until = if now >= replication.next {
            self.run_daemon(now)
        } else {
            self.unlocked(self.node_of[processor], address, width)
        };
        let waits = until.saturating_sub(now);
        self.counters[processor].system_stalled += waits;
        self.ports[processor].pass(waits);
        waits > 0
    }

    /// Until when the operating system keeps a node from pages.
    fn unlocked(&self, node: Node, address: u64, width: u64) -> Time {
        let Some(replication) = &self.replication else { return 0 };
        let ends = [address, address + width.max(1) - 1].map(|end| end >> self.line_shift);
        let pages = ends.map(|line| self.lines.page_of(line));
        pages.into_iter().flatten().map(|page| replication.pages.locked(page, node)).max().unwrap_or(0)
    }

    /// One step of the daemon: a look at the counters, or work on one page. Returns when it is over.
    fn run_daemon(&mut self, now: Time) -> Time {
        let Some(replication) = &mut self.replication else { return now };
        let Some(action) = replication.actions.pop_front() else {
            let end = now + replication.look;
            self.look(end);
            return end.max(now + 1);
        };
        let done = match action {
            Action::Migrate(page, to) => self.migrate(page, to, now),
            Action::Replicate(page, node) => self.replicate(page, node, now),
            Action::GiveUp(page, node) => self.give_up(page, node, now),
        };
        let Some(replication) = &mut self.replication else { return done };
        let end = (done + replication.page).max(now + 1);
        let (Action::Migrate(page, node) | Action::Replicate(page, node) | Action::GiveUp(page, node)) =
            action;
        let nodes = if matches!(action, Action::Migrate(..)) { u64::MAX } else { 1 << node };
        replication.pages.lock(page, nodes, end);
        replication.next = if replication.actions.is_empty() { end + replication.period } else { end };
        end
    }

    /// Reads and frees the counters, and decides what to do from `end` on.
    fn look(&mut self, end: Time) {
        let homed = self.lines.pages_by_home(self.nodes.len());
        let Some(replication) = &mut self.replication else { return };
        let (mut candidates, mut rooms) = (vec![], vec![]);
        for ((node, counters), homed) in (0..).zip(&mut replication.excess).zip(homed) {
            for (page, misses) in counters.take() {
                let (home, moves) = (self.lines.page_home(page), replication.pages.moves(page));
                // It may have become the home, or have got a replica, after it missed.
                if home != node && !replication.pages.is_replica(page, node) {
                    candidates.push(Candidate { page, node, misses, home, moves });
                }
            }
            let replicas = replication.pages.take_served(node);
            rooms.push(Room { limit: replication.limit, homed, replicas });
        }
        replication.actions = replication.policy.decide(candidates, rooms).into();
        replication.next = if replication.actions.is_empty() { end + replication.period } else { end };
    }

    /// A page moves to a node. All nodes lose what they have of it, as it has another physical address then. Returns
    /// when it is there.
    fn migrate(&mut self, page: u32, to: Node, now: Time) -> Time {
        let mut ready = now;
        for node in 0..self.nodes.len() {
            let node = Node::try_from(node).expect("machines are checked");
            ready = ready.max(self.flush(page, node, now));
            if self.replication.as_ref().is_some_and(|all| all.pages.is_replica(page, node)) {
                self.drop_replica(page, node);
            }
        }
        let written = self.copy(page, to, ready);
        self.watch_move(page, to);
        self.lines.move_page(page, to);
        self.forget_translations(page, u128::MAX);
        if let Some(replication) = &mut self.replication {
            replication.pages.moved(page);
            replication.done[usize::from(to)].migrated += 1;
        }
        written
    }

    /// The contents of a page go from its home to a node, block after block. Returns when they are there.
    fn copy(&mut self, page: u32, to: Node, ready: Time) -> Time {
        let from = self.lines.page_home(page);
        let (mut arrived, mut lines) = (ready, vec![]);
        for (first, place) in self.lines.blocks(page) {
            let mut read = ready;
            for (line, _) in self.lines.block_lines(first, place) {
                let snooped = self.snoop(from, ready);
                read = read.max(self.memory(from, line, snooped));
                lines.push(line);
            }
            if let Some(network) = &mut self.network {
                arrived = arrived.max(network.send(read, from, to, false, self.block_bytes));
            }
        }
        // The bus of the new home sees them in one go: gaps between them would be as many reservations.
        let written = lines.into_iter().map(|line| {
            let snooped = self.snoop(to, arrived);
            self.memory(to, line, snooped)
        });
        written.max().unwrap_or(arrived)
    }

    /// A node gets a replica of a page. It loses what it has, as the page has another physical address there.
    fn replicate(&mut self, page: u32, node: Node, now: Time) -> Time {
        let ready = self.flush(page, node, now);
        self.forget_translations(page, self.members[usize::from(node)]);
        if let Some(replication) = &mut self.replication {
            replication.pages.replicate(page, node);
            replication.done[usize::from(node)].replicated += 1;
        }
        ready
    }

    /// A node gives its replica of a page up; blocks that it owns go home.
    fn give_up(&mut self, page: u32, node: Node, now: Time) -> Time {
        let ready = self.flush(page, node, now);
        self.forget_translations(page, self.members[usize::from(node)]);
        self.drop_replica(page, node);
        ready
    }

    fn drop_replica(&mut self, page: u32, node: Node) {
        if let Some(replication) = &mut self.replication {
            replication.pages.give_up(page, node);
            replication.done[usize::from(node)].given_up += 1;
        }
    }

    /// The caches of a node lose a page, and what the node owns of it goes home. Returns when the node has done its part.
    fn flush(&mut self, page: u32, node: Node, now: Time) -> Time {
        let (members, home) = (self.members[usize::from(node)], self.lines.page_home(page));
        let mut last = now;
        for (line, place) in self.lines.blocks(page) {
            let owned = home != node && self.lines.block(place).entry.owner == node;
            let mut ready = now;
            for (line, place) in self.lines.block_lines(line, place) {
                let holders = self.lines.get(place).holders & members;
                if holders == 0 && !owned {
                    continue;
                }
                let snooped = self.snoop(node, now);
                let owner = self.supplier(node, place);
                self.discard(holders, line, place);
                ready = ready.max(match owner {
                    Some(_) if home == node => self.memory(node, line, snooped + self.times.intervention),
                    Some(_) => snooped + self.times.intervention,
                    None if owned => self.kept(node, line, place, snooped),
                    None => snooped,
                });
            }
            self.forget_far(node, line, place);
            if owned {
                self.write_back(node, line, place, false, ready);
            }
            last = last.max(ready);
        }
        last
    }

    /// Processors lose the translations of a page.
    fn forget_translations(&mut self, page: u32, processors: u128) {
        let (first, bytes) =
            (self.lines.page_start(page) << self.line_shift, self.lines.page_bytes(self.line_shift));
        for (processor, tlb) in self.tlbs.iter_mut().enumerate() {
            if processors >> processor & 1 == 1 {
                for gone in tlb.forget(first, bytes) {
                    self.ports[processor].l1.sleep(gone, tlb.shift());
                }
            }
        }
    }

    /// True if a node's replica has the block of a line.
    #[inline]
    pub(crate) fn has_replica(&self, node: Node, place: Place) -> bool {
        let Some(replication) = &self.replication else { return false };
        replication.pages.is_valid(place.page(), self.lines.block_index(place), node)
    }

    /// The time for the translation of a local address to a global one if a node asks for a line of a page of which it has
    /// a replica (LPA2GA).
    #[inline]
    pub(crate) fn to_global(&self, node: Node, place: Place) -> Time {
        self.translation(node, place, |replication| replication.lpa2ga)
    }

    /// The same of a global address to a local one, for demands (GA2LPA).
    #[inline]
    pub(crate) fn to_local(&self, node: Node, place: Place) -> Time {
        self.translation(node, place, |replication| replication.ga2lpa)
    }

    #[inline]
    fn translation(&self, node: Node, place: Place, time: fn(&super::Replication) -> Time) -> Time {
        let replication = self.replication.as_ref();
        let replication = replication.filter(|all| all.pages.is_replica(place.page(), node));
        replication.map_or(0, |replication| time(replication))
    }

    /// What a node has of another node's memory beside its processors' caches delivers a line: its replica, or else its
    /// far memory cache.
    pub(crate) fn kept(&mut self, node: Node, line: u64, place: Place, at: Time) -> Time {
        if self.has_replica(node, place) {
            return self.memory(node, line, at);
        }
        self.far_memory(node, at)
    }

    /// A node's replica serves a miss.
    pub(crate) fn count_served(&mut self, node: Node, place: Place) {
        if let Some(replication) = &mut self.replication {
            replication.pages.serve(place.page(), node);
            replication.done[usize::from(node)].served += 1;
        }
    }

    /// A node asks for a line that it has not.
    #[inline]
    pub(crate) fn count_fetch(&mut self, node: Node, place: Place) {
        let Some(replication) = &mut self.replication else { return };
        if self.lines.home(place) == node {
            return;
        }
        if replication.pages.fetch(place.page(), self.lines.block_index(place), node) {
            replication.excess[usize::from(node)].add(place.page());
            replication.done[usize::from(node)].excess += 1;
        }
    }

    /// The block of a line has come to a node: its replica takes it, if it has one. Nobody waits for that.
    #[inline]
    pub(crate) fn fill_replica(&mut self, node: Node, line: u64, place: Place, at: Time) -> bool {
        let Some(replication) = &mut self.replication else { return false };
        let takes = replication.pages.fill(place.page(), self.lines.block_index(place), node);
        if takes {
            for (line, _) in self.lines.block_lines(line, place) {
                self.memory(node, line, at);
            }
        }
        takes
    }

    /// A node has to forget the block of a line, which another node writes.
    #[inline]
    pub(crate) fn forget_replica(&mut self, node: Node, place: Place) {
        if let Some(replication) = &mut self.replication {
            replication.pages.invalidate(place.page(), self.lines.block_index(place), node);
        }
    }

    /// What was done at a node.
    pub(crate) fn replicated(&self, node: usize) -> NodeReplication {
        let Some(replication) = &self.replication else { return NodeReplication::default() };
        let count = replication.pages.count(Node::try_from(node).expect("machines are checked"));
        NodeReplication { replicas: count, ..replication.done[node].clone() }
    }

    /// Replicas have what the caches of their nodes have, and nothing that the directory does not know of; homes have none.
    pub(crate) fn check_replicas(&self) -> Result<(), String> {
        let Some(replication) = &self.replication else { return Ok(()) };
        for (number, home, line, entry) in self.lines.all() {
            let place = self.lines.place_of(number).ok_or("a line has no page")?;
            for node in 0..self.nodes.len() {
                let node = Node::try_from(node).expect("machines are checked");
                let wrong = |what: &str| Err(format!("replica of node {node}, line {number:#x}: {what}"));
                let (replica, valid) =
                    (replication.pages.is_replica(place.page(), node), self.has_replica(node, place));
                if replica && home == node {
                    return wrong("it is of the node's own memory");
                }
                if valid && !replica {
                    return wrong("it is valid, and there is no replica");
                }
                if valid && entry.state(node) == State::Invalid {
                    return wrong("it is valid, and the directory says that the node has not got it");
                }
                if replica && !valid && line.holders & self.members[usize::from(node)] != 0 {
                    return wrong("a processor's cache has it, and it is not valid");
                }
                if replica && !valid && entry.owner == node && line.owner == NOBODY {
                    return wrong("the node owns it, and it is not valid");
                }
            }
        }
        Ok(())
    }
}
