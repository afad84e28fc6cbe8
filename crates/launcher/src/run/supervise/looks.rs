//! Looking at what the threads of a run do: for `gondwana stack`, for crash reports, and to notice that nobody goes on.

use super::state::Supervisor;
use crate::process::events::Nodes;
use crate::run_registry::requests::answer;
use crate::stacks::findings::{Conclusions, Waits};
use crate::stacks::look::{LookRequest, LookResult, NodeStacks};
use crate::stacks::report::StackReport;
use gondwana_control::{NodeWaits, Order, number_for_people};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

/// How long nodes may take to tell what their threads wait for.
const TOLD_WITHIN: Duration = Duration::from_secs(3);

/// How long reading stacks may take, with names.
const LOOKED_WITHIN: Duration = Duration::from_secs(20);

/// How often it is looked whether anybody goes on.
const WATCH: Duration = Duration::from_secs(2);

/// So many looks in a row must show the same waits: a message on its way takes no longer.
const SAME_LOOKS: u32 = 3;

/// How long after a look that shows threads which cannot go on another one must show the same.
const AGAIN: Duration = Duration::from_millis(50);

/// What is being looked at.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// The number of the last request.
    last: u64,
    round: Option<Round>,
    /// When nodes are asked again, for whom, and what was concluded before.
    again: Option<(Instant, Vec<UnixStream>, Conclusions)>,
    /// Requests for stacks that are under way.
    stacks: Vec<Stacks>,
    watch: Watch,
}

/// All nodes are asked what their threads wait for.
#[derive(Debug)]
struct Round {
    left: BTreeSet<u16>,
    told: BTreeMap<u16, NodeWaits>,
    until: Instant,
    askers: Vec<UnixStream>,
    /// What an earlier look for some of these askers has shown.
    earlier: Option<Conclusions>,
    /// The watch wants to know.
    watches: bool,
}

/// Stacks of all nodes are being read.
#[derive(Debug)]
struct Stacks {
    id: u64,
    left: BTreeSet<u16>,
    told: BTreeMap<u16, NodeWaits>,
    concluded: Conclusions,
    found: Vec<NodeStacks>,
    until: Instant,
    askers: Vec<UnixStream>,
    notes: Vec<String>,
}

/// Notices that no thread goes on.
#[derive(Debug, Default)]
struct Watch {
    due: Option<Instant>,
    /// The count of waits at the last look at which all waited, and how many looks have shown it.
    same: Option<(u64, u32)>,
    /// The user has been told.
    told: bool,
}

impl Watch {
    /// Takes what all nodes have told; the sentence for the user, once, if no thread can go on.
    fn look(&mut self, waits: Waits<'_>) -> Option<String> {
        let rings = waits.deadlocks();
        // A handler of a signal may end a wait, but no handler unlocks the mutexes of a ring.
        let stuck = waits.all_wait() && (!rings.is_empty() || !waits.others_may_act());
        let begun = waits.begun();
        let looks = match self.same {
            Some((before, looks)) if stuck && before == begun => looks + 1,
            _ => 1,
        };
        self.same = stuck.then_some((begun, looks));
        if !stuck || looks < SAME_LOOKS || self.told {
            return None;
        }
        self.told = true;
        let threads = waits.threads().count();
        let who = match threads {
            1 => "the only thread waits".to_owned(),
            count => format!("all {count} threads wait"),
        };
        let why = match rings.first().map(Vec::as_slice) {
            Some([one]) => {
                format!(": a deadlock, as thread {} waits for what it holds itself", number_for_people(*one))
            }
            Some(ring) => {
                let numbers: Vec<_> =
                    ring.iter().map(|thread| number_for_people(*thread).to_string()).collect();
                format!(": a deadlock, as threads {} wait for each other", numbers.join(", "))
            }
            None => " for another one".to_owned(),
        };
        Some(format!("no thread of the program can go on: {who}{why}"))
    }
}

impl Looks {
    /// When something is to be done without an event.
    pub(super) fn due(&self) -> Option<Instant> {
        let round = self.round.as_ref().map(|round| round.until);
        let stacks = self.stacks.iter().map(|stacks| stacks.until).min();
        let again = self.again.as_ref().map(|(due, ..)| *due);
        [round, again, stacks, self.watch.due].into_iter().flatten().min()
    }
}

impl Supervisor<'_> {
    /// The number for a new request.
    pub(super) fn next_look(&mut self) -> u64 {
        self.looks.last += 1;
        self.looks.last
    }

    /// Begins to notice whether anybody goes on.
    pub(super) fn watch_progress(&mut self) {
        self.looks.watch.due = Some(Instant::now() + WATCH);
    }

    /// A command wants the stacks of all threads.
    pub(super) fn stacks_asked(&mut self, asker: UnixStream, machine: &mut dyn Nodes) {
        self.begin_round(Some(asker), machine);
    }

    fn begin_round(&mut self, asker: Option<UnixStream>, machine: &mut dyn Nodes) {
        let watches = asker.is_none();
        if let Some(round) = &mut self.looks.round {
            round.watches |= watches;
            round.askers.extend(asker);
            return;
        }
        let left: BTreeSet<u16> = self.running().collect();
        left.iter().for_each(|&node| machine.order(node, &Order::Waits));
        self.looks.round = Some(Round {
            left,
            told: BTreeMap::new(),
            until: Instant::now() + TOLD_WITHIN,
            askers: asker.into_iter().collect(),
            earlier: None,
            watches,
        });
        self.go_on_looking(machine);
    }

    /// The nodes that run the program.
    fn running(&self) -> impl Iterator<Item = u16> {
        (0..).zip(&self.nodes).filter(|(_, node)| node.up && !node.ended).map(|(number, _)| number)
    }

    /// A node has told what its threads wait for, or a part of it.
    pub(super) fn waits_told(&mut self, node: u16, mut part: NodeWaits, last: bool, machine: &mut dyn Nodes) {
        let Some(round) = &mut self.looks.round else { return };
        let told = round.told.entry(node).or_default();
        told.threads.append(&mut part.threads);
        if last {
            *told = NodeWaits { threads: std::mem::take(&mut told.threads), ..part };
            round.left.remove(&node);
            self.go_on_looking(machine);
        }
    }

    /// Does what is due.
    pub(super) fn go_on_looking(&mut self, machine: &mut dyn Nodes) {
        let now = Instant::now();
        let running: BTreeSet<u16> = self.running().collect();
        let over = |left: &BTreeSet<u16>, until: Instant| until <= now || left.is_disjoint(&running);
        if let Some(round) = self.looks.round.take_if(|round| over(&round.left, round.until)) {
            self.end_round(round, machine);
        }
        if let Some((_, askers, earlier)) = self.looks.again.take_if(|(due, ..)| *due <= now) {
            for asker in askers {
                self.begin_round(Some(asker), machine);
            }
            if let Some(round) = &mut self.looks.round {
                round.earlier = Some(earlier);
            }
        }
        while let Some(place) = self.looks.stacks.iter().position(|stacks| over(&stacks.left, stacks.until)) {
            let stacks = self.looks.stacks.swap_remove(place);
            self.tell_stacks(stacks);
        }
        if self.looks.watch.due.is_some_and(|due| due <= now) {
            self.looks.watch.due = (!self.looks.watch.told && self.end.is_none()).then(|| now + WATCH);
            let all_up = self.nodes.iter().all(|node| node.up && !node.ended && !node.stopped);
            if all_up && !self.exiting() && self.end.is_none() {
                self.begin_round(None, machine);
            }
        }
    }

    fn end_round(&mut self, round: Round, machine: &mut dyn Nodes) {
        let Round { left, told, askers, earlier, watches, .. } = round;
        let waits = Waits(&told);
        if watches
            && left.is_empty()
            && told.len() == self.nodes.len()
            && !self.exiting()
            && self.end.is_none()
            && let Some(sentence) = self.looks.watch.look(waits)
        {
            self.say(&format!("{sentence}; gondwana stack {} shows where", std::process::id()));
        }
        if askers.is_empty() {
            return;
        }
        let now = waits.conclusions();
        let concluded = match earlier {
            Some(earlier) => now.confirmed_by(&earlier),
            None if now.are_none() => now,
            None => {
                let (mut all, mut earlier) = (askers, now);
                if let Some((_, waiting, before)) = self.looks.again.take() {
                    all.extend(waiting);
                    earlier = before;
                }
                self.looks.again = Some((Instant::now() + AGAIN, all, earlier));
                return;
            }
        };
        let objects: BTreeSet<u64> =
            waits.threads().filter_map(|(_, thread)| Some(thread.wait?.object)).collect();
        let mut notes: Vec<String> = left
            .iter()
            .filter(|node| self.nodes.get(usize::from(**node)).is_some_and(|node| !node.ended))
            .map(|node| format!("node {node} has not told in time what its threads wait for"))
            .collect();
        notes.extend(told.iter().filter(|(_, waits)| waits.incomplete).map(|(node, _)| {
            format!("node {node} has told less than it should: a thread of it is held up within the runtime")
        }));
        let nodes: Vec<u16> = self.running().collect();
        let request = LookRequest {
            id: self.next_look(),
            nodes: nodes.clone(),
            task: None,
            addresses: objects.into_iter().collect(),
        };
        machine.look(&request);
        self.looks.stacks.push(Stacks {
            id: request.id,
            left: nodes.into_iter().collect(),
            told,
            concluded,
            found: vec![],
            until: Instant::now() + LOOKED_WITHIN,
            askers,
            notes,
        });
        self.go_on_looking(machine);
    }

    /// Stacks have been read, and their threads go on.
    pub(super) fn unwound(&mut self, id: u64, machine: &mut dyn Nodes) {
        for (number, node) in (0..).zip(&self.nodes) {
            if node.crash.as_ref().is_some_and(|crash| crash.looking == Some(id)) {
                machine.order(number, &Order::Die);
            }
        }
    }

    /// The stacks of some nodes are here.
    pub(super) fn looked(&mut self, LookResult { id, nodes }: LookResult, machine: &mut dyn Nodes) {
        if let Some(stacks) = self.looks.stacks.iter_mut().find(|stacks| stacks.id == id) {
            for node in &nodes {
                stacks.left.remove(&node.node);
            }
            stacks.found.extend(nodes);
            return self.go_on_looking(machine);
        }
        self.crash_looked_at(id, nodes);
    }

    fn tell_stacks(&mut self, Stacks { left, told, concluded, found, askers, mut notes, .. }: Stacks) {
        notes.extend(left.iter().map(|node| format!("the stacks of node {node} could not be read in time")));
        let program = self.registry.as_ref().map(|registry| registry.program()).unwrap_or_default();
        let nodes = u16::try_from(self.nodes.len()).unwrap_or(u16::MAX);
        let report = StackReport::new(&program, nodes, &told, &concluded, found, notes);
        let text = serde_json::to_vec(&report).unwrap_or_default();
        for asker in askers {
            let stream = answer(asker, &Ok(None));
            let text = text.clone();
            // An asker that reads slowly keeps nobody waiting. Without a thread it learns that the run has said nothing.
            let _ = thread::Builder::new().name("stacks".to_owned()).spawn(move || {
                let mut stream = stream;
                let _ = stream.set_nonblocking(false).and_then(|()| stream.write_all(&text));
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_control::{Awaited, Wait, WaitingThread};

    fn stuck(begun: u64, others_may_act: bool) -> BTreeMap<u16, NodeWaits> {
        let wait = Some(Wait { awaited: Awaited::Condition, object: 0x10, timed: false });
        let thread = WaitingThread { thread: 1, task: 7, wait, barrier: 0 };
        let waits = NodeWaits { threads: vec![thread], begun, others_may_act, ..NodeWaits::default() };
        BTreeMap::from([(0, waits)])
    }

    /// The looks, from 0, at which the user is told.
    fn told(looks: &[BTreeMap<u16, NodeWaits>]) -> Vec<usize> {
        let mut watch = Watch::default();
        (0..looks.len()).filter(|&look| watch.look(Waits(&looks[look])).is_some()).collect()
    }

    #[test]
    fn waits_that_stay_the_same_are_told_once() {
        assert_eq!(told(&[(); 7].map(|()| stuck(5, false))), [2]);
    }

    #[test]
    fn whoever_goes_on_is_left_alone() {
        let looks: Vec<_> = (0..9).map(|look| stuck(look / 2, false)).collect();
        assert_eq!(told(&looks), [0; 0]);
        let idle = BTreeMap::from([(0, NodeWaits::default())]);
        assert_eq!(told(&[stuck(1, false), stuck(1, false), idle, stuck(1, false), stuck(1, false)]), [0; 0]);
        assert_eq!(told(&[(); 7].map(|()| stuck(5, true))), [0; 0], "a handler of a signal may end the wait");
    }

    #[test]
    fn a_ring_of_mutexes_is_one_whatever_signals_come() {
        let mut nodes = stuck(5, true);
        let node = nodes.get_mut(&0).unwrap();
        node.threads[0].wait = Some(Wait { awaited: Awaited::Mutex, object: 0x10, timed: false });
        node.mutexes = vec![(0x10, 1)];
        let mut watch = Watch::default();
        let said: Vec<_> = (0..3).filter_map(|_| watch.look(Waits(&nodes))).collect();
        let expected = "no thread of the program can go on: the only thread waits: a deadlock, as thread 0 waits for what it \
            holds itself";
        assert_eq!(said, [expected]);
    }
}
