//! What `gondwana stack` tells of a run.

use super::findings::{Conclusions, Waits};
use super::look::{NodeStacks, StackFrame, TaskStack};
use gondwana_control::{Awaited, NodeWaits, Wait, WaitingThread, number_for_people};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All threads of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackReport {
    /// The program, as the user named it.
    pub program: String,
    /// How many nodes the run has.
    pub nodes: u16,
    /// Threads that wait for each other in a ring.
    pub deadlocks: Vec<Vec<RingPart>>,
    /// Every thread of the program waits for another one.
    pub all_wait: bool,
    /// The threads of the program, in the order of their numbers, and then those of the runtime.
    pub threads: Vec<ThreadReport>,
    /// What is not known, and why.
    pub notes: Vec<String>,
}

/// A part of a ring: it waits for the next one, and the last one for the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingPart {
    /// The thread, by its number for people.
    pub thread: u32,
    /// Its node.
    pub node: u16,
    /// For what it waits.
    pub awaited: Awaited,
    /// The address or the number of that.
    pub object: u64,
    /// The name of the variable there; empty if it is unknown.
    pub name: String,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadReport {
    /// Its number for people: 0 is the one that runs `main`; `None` for a thread of the runtime.
    pub thread: Option<u32>,
    /// Its node.
    pub node: u16,
    /// The kernel's number of it.
    pub task: u32,
    /// Its name for the kernel.
    pub name: String,
    /// What it waits for, as far as the node knows.
    pub wait: Option<WaitReport>,
    /// The system call that it is in, if that is all that is known of its wait; empty if it runs.
    pub call: String,
    /// Its frames, the innermost first.
    pub frames: Vec<StackFrame>,
    /// Why there are none, if there are none.
    pub failed: Option<String>,
}

/// A wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitReport {
    /// For what.
    pub awaited: Awaited,
    /// The address of the object; 0 for a thread.
    pub object: u64,
    /// The name of the variable there; empty if it is unknown.
    pub name: String,
    /// It ends by itself when a time is over.
    pub timed: bool,
    /// The threads that it waits for: holders, those that are missing at a barrier, the thread that is joined.
    pub on: Vec<ThreadName>,
    /// How many threads are missing at a barrier.
    pub missing: Option<u32>,
}

/// A thread, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadName {
    /// Its number for people.
    pub thread: u32,
    /// Its node; `None` if it is not known, as of a thread that has ended.
    pub node: Option<u16>,
}

impl StackReport {
    /// Puts together what the nodes have told and what was read of them.
    pub fn new(
        program: &str,
        nodes: u16,
        told: &BTreeMap<u16, NodeWaits>,
        concluded: &Conclusions,
        stacks: Vec<NodeStacks>,
        notes: Vec<String>,
    ) -> Self {
        let waits = Waits(told);
        let names: BTreeMap<u64, String> =
            stacks.iter().flat_map(|node| node.names.iter().cloned()).collect();
        let name = |object: u64| names.get(&object).cloned().unwrap_or_default();
        let part = |thread: &u64| {
            let (node, known) = waits.threads().find(|(_, known)| known.thread == *thread)?;
            let wait = known.wait?;
            let (thread, object) = (number_for_people(*thread), shown_object(&wait));
            Some(RingPart { thread, node, awaited: wait.awaited, object, name: name(object) })
        };
        let ring = |ring: &Vec<u64>| ring.iter().filter_map(part).collect();
        let mut report = Self {
            program: program.to_owned(),
            nodes,
            deadlocks: concluded.deadlocks.iter().map(ring).collect(),
            all_wait: concluded.stuck_at.is_some(),
            threads: vec![],
            notes,
        };
        for NodeStacks { node, tasks, failed, .. } in stacks {
            if let Some(why) = failed {
                report.notes.push(format!("node {node} cannot be looked at: {why}"));
            }
            let of_node = |task: u32| told.get(&node)?.threads.iter().find(|known| known.task == task);
            let wait = |known: &WaitingThread| wait_report(waits, known.thread, known.wait?, name);
            report.threads.extend(tasks.into_iter().map(|task| {
                let known = of_node(task.task);
                of_task(node, task, known, known.and_then(wait))
            }));
        }
        // A node whose stacks cannot be read has told of its threads all the same.
        for (node, known) in waits.threads() {
            if !report.threads.iter().any(|thread| thread.node == node && thread.task == known.task) {
                let task = TaskStack { task: known.task, ..TaskStack::default() };
                let wait = known.wait.and_then(|wait| wait_report(waits, known.thread, wait, name));
                report.threads.push(of_task(node, task, Some(known), wait));
            }
        }
        report
            .threads
            .sort_by_key(|thread| (thread.thread.is_none(), thread.thread, thread.node, thread.task));
        report
    }
}

/// What a wait is about, unless that is a thread.
fn shown_object(wait: &Wait) -> u64 {
    if wait.awaited == Awaited::Join { 0 } else { wait.object }
}

fn wait_report(
    waits: Waits<'_>,
    thread: u64,
    wait: Wait,
    name: impl Fn(u64) -> String,
) -> Option<WaitReport> {
    let on = waits
        .awaited(thread, &wait)
        .into_iter()
        .map(|thread| ThreadName { thread: number_for_people(thread), node: waits.node_of(thread) });
    let object = shown_object(&wait);
    Some(WaitReport {
        awaited: wait.awaited,
        object,
        name: name(object),
        timed: wait.timed,
        on: on.collect(),
        missing: (wait.awaited == Awaited::Barrier).then(|| waits.missing(wait.object).1),
    })
}

fn of_task(
    node: u16,
    TaskStack { task, name, call, frames, failed }: TaskStack,
    known: Option<&WaitingThread>,
    wait: Option<WaitReport>,
) -> ThreadReport {
    let call = if wait.is_some() { String::new() } else { call };
    let thread = known.map(|known| number_for_people(known.thread));
    ThreadReport { thread, node, task, name, wait, call, frames, failed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_told_with_names_and_nodes() {
        let wait = |object| Some(Wait { awaited: Awaited::Mutex, object, timed: false });
        let thread = |thread: u64, object| WaitingThread { thread, task: 70, wait: wait(object), barrier: 0 };
        let node = |threads, mutexes| NodeWaits { threads, mutexes, ..NodeWaits::default() };
        let (a, b) = (2 | 1 << 40, 3);
        let told = BTreeMap::from([
            (0, node(vec![thread(b, 0x10)], vec![(0x20, b)])),
            (1, node(vec![thread(a, 0x20)], vec![(0x10, a)])),
        ]);
        let stacks = NodeStacks {
            tasks: vec![
                TaskStack { task: 70, ..TaskStack::default() },
                TaskStack { task: 71, ..TaskStack::default() },
            ],
            names: vec![(0x10, "first".to_owned())],
            ..NodeStacks::default()
        };
        let report = StackReport::new("p", 2, &told, &Waits(&told).conclusions(), vec![stacks], vec![]);
        let [ring] = &report.deadlocks[..] else { panic!("{report:?}") };
        let parts: Vec<_> = ring.iter().map(|part| (part.thread, part.node, part.name.as_str())).collect();
        assert_eq!(parts, [(1, 1, ""), (2, 0, "first")]);
        let order: Vec<_> = report.threads.iter().map(|thread| (thread.thread, thread.node)).collect();
        assert_eq!(order, [(Some(1), 1), (Some(2), 0), (None, 0)], "node 1 has told, but was not looked at");
        let waits = report.threads[0].wait.as_ref().unwrap();
        assert_eq!(waits.on, [ThreadName { thread: 2, node: Some(0) }]);
    }
}
