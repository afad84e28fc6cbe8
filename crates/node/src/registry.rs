//! Node 0's record of the threads of all nodes, and its choice of the node of each new one.

use crate::thread_number::thread_number;
use gondwana_control::ThreadGroup;
use gondwana_rset::{ThreadPlan, ThreadPolicy};
use gondwana_topology::{NodeId, NodeSet};

/// What node 0 knows of all threads.
pub(crate) struct Registry {
    plan: ThreadPlan,
    /// Groups of threads that go to the same node; once one of them has started, it is known which.
    groups: Vec<ThreadGroup>,
    nodes: u16,
    processors: u16,
    /// Threads on each node, main included.
    running: Vec<u32>,
    /// Where round-robin stands: node 0 has main, so the first thread goes to the next node.
    last: u16,
    numbers: u32,
    /// Threads that have not ended, main included.
    live: u64,
    /// Main has left by `pthread_exit` and waits for the rest.
    main_waits: bool,
}

impl Registry {
    pub(crate) fn new(plan: ThreadPlan, mut groups: Vec<ThreadGroup>, nodes: u16, processors: u16) -> Self {
        let mut running = vec![0; usize::from(nodes)];
        running[0] = 1;
        for group in groups.iter_mut().filter(|group| group.threads.contains(&0)) {
            group.node = Some(NodeId(0));
        }
        Self { plan, groups, nodes, processors, running, last: 0, numbers: 1, live: 1, main_waits: false }
    }

    /// A node, of all or of some, and a number for a new thread.
    pub(crate) fn place(&mut self, among: Option<NodeSet>) -> u64 {
        let running = |node: &u16| self.running[usize::from(*node)];
        let chosen = among.and_then(|among| {
            (0..self.nodes).filter(|node| among.contains(NodeId(*node))).min_by_key(running)
        });
        // A choice of the program itself comes before its group.
        let number = self.numbers;
        let group = self.groups.iter().position(|group| chosen.is_none() && group.threads.contains(&number));
        let chosen = chosen.or_else(|| Some(self.groups[group?].node?.0));
        let node = match self.plan.policy() {
            _ if chosen.is_some() => chosen.unwrap_or(0),
            // `main` is thread 0, and on node 0 whatever the first set is.
            ThreadPolicy::Explicit(_) => self.plan.place_of(self.numbers as usize).node.0,
            ThreadPolicy::RoundRobin => {
                self.last = (self.last + 1) % self.nodes;
                self.last
            }
            ThreadPolicy::Fill => {
                let full = |node: &u16| self.running[usize::from(*node)] >= u32::from(self.processors);
                (0..self.nodes).find(|node| !full(node)).unwrap_or_else(|| {
                    (0..self.nodes).min_by_key(|node| self.running[usize::from(*node)]).unwrap_or(0)
                })
            }
        };
        if let Some(group) = group {
            self.groups[group].node = Some(NodeId(node));
        }
        self.running[usize::from(node)] += 1;
        self.live += 1;
        self.numbers += 1;
        thread_number(NodeId(node), self.numbers)
    }

    /// A thread of a node has ended; true if main waits for just this.
    pub(crate) fn ended(&mut self, node: NodeId) -> bool {
        self.running[node.index()] = self.running[node.index()].saturating_sub(1);
        self.live -= 1;
        self.live == 0 && self.main_waits
    }
    /// Main leaves by `pthread_exit`; true if it was the last thread.
    pub(crate) fn main_leaves(&mut self) -> bool {
        self.main_waits = true;
        self.ended(NodeId(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread_number::node_of;
    use gondwana_rset::RSet;
    use gondwana_topology::{Bytes, Machine};

    #[test]
    fn of_some_nodes_the_least_busy_one_gets_a_thread() {
        let machine = Machine::uniform(4, 2, Bytes(1 << 30));
        let plan = ThreadPlan::new(ThreadPolicy::Fill, &RSet::global(&machine), &machine).unwrap();
        let mut registry = Registry::new(plan, vec![], 4, 2);
        let some: NodeSet = [NodeId(0), NodeId(2), NodeId(3)].into_iter().collect();
        // `main` is on node 0.
        let mut next = |among| node_of(registry.place(among)).0;
        assert_eq!([(); 4].map(|()| next(Some(some))), [2, 3, 0, 2]);
        assert_eq!([(); 2].map(|()| next(Some(NodeSet::only(NodeId(1))))), [1, 1]);
        assert_eq!(next(None), 3);
    }

    #[test]
    fn threads_of_a_group_go_to_one_node() {
        let machine = Machine::uniform(3, 1, Bytes(1 << 30));
        let plan = ThreadPlan::new(ThreadPolicy::RoundRobin, &RSet::global(&machine), &machine).unwrap();
        let group = |threads: &[u32], node: Option<u16>| ThreadGroup {
            threads: threads.to_vec(),
            node: node.map(NodeId),
        };
        let groups = vec![group(&[2, 6], Some(2)), group(&[1, 4], None), group(&[0, 7], None)];
        let mut registry = Registry::new(plan, groups, 3, 1);
        let mut next = |among| node_of(registry.place(among)).0;
        // Round-robin goes on where it stood: at the nodes 1, 2, 0 for threads 1, 3 and 5.
        assert_eq!([(); 7].map(|()| next(None)), [1, 2, 2, 1, 0, 2, 0]);
        assert_eq!(next(Some(NodeSet::only(NodeId(1)))), 1);
    }
}
