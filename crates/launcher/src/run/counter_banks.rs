//! Requests of the program to the counter banks of all nodes. Each is sent to all nodes, one request after the other,
//! so that all banks have the same filters; the answers are combined.

use crate::process::events::Nodes;
use gondwana_control::{BankAnswer, BankError, BankRequest, Order};
use gondwana_monitor::{FilterError, MOST_FILTERS, SECONDARIES};
use std::collections::{BTreeSet, VecDeque};

/// The counter banks of a run.
#[derive(Default)]
pub(super) struct CounterBanks {
    /// Numbers that filters and secondary counters have, a bit each.
    filters: u64,
    secondaries: u64,
    /// Requests without an answer, with their nodes.
    waiting: VecDeque<(u16, BankRequest)>,
    current: Option<Current>,
}

/// The request in progress.
struct Current {
    asker: u16,
    number: u8,
    request: BankRequest,
    /// The nodes that have not answered.
    left: BTreeSet<u16>,
    answer: BankAnswer,
    /// A request that failed on some nodes is being undone on the others.
    undoes: bool,
}

impl CounterBanks {
    /// Takes a request of a thread of the program, while these nodes run.
    pub(super) fn ask(&mut self, asker: u16, request: BankRequest, nodes: &[u16], machine: &mut dyn Nodes) {
        self.waiting.push_back((asker, request));
        self.go_on(nodes, machine);
    }

    /// Takes the answer of a node.
    pub(super) fn done(&mut self, node: u16, answer: BankAnswer, nodes: &[u16], machine: &mut dyn Nodes) {
        if let Some(current) = &mut self.current
            && current.left.remove(&node)
        {
            current.take(answer);
            self.go_on(nodes, machine);
        }
    }

    /// A node has ended.
    pub(super) fn ended(&mut self, node: u16, nodes: &[u16], machine: &mut dyn Nodes) {
        if self.current.as_mut().is_some_and(|current| current.left.remove(&node)) {
            self.go_on(nodes, machine);
        }
    }

    fn go_on(&mut self, nodes: &[u16], machine: &mut dyn Nodes) {
        loop {
            match self.current.take_if(|current| current.left.is_empty()) {
                Some(current) => self.finish(current, nodes, machine),
                None if self.current.is_some() => return,
                None => {
                    let Some((asker, request)) = self.waiting.pop_front() else { return };
                    self.begin(asker, request, nodes, machine);
                }
            }
        }
    }

    fn begin(&mut self, asker: u16, request: BankRequest, nodes: &[u16], machine: &mut dyn Nodes) {
        let free = |taken: u64, most: usize| (0_u8..).take(most).find(|number| taken >> number & 1 == 0);
        let number = match &request {
            BankRequest::Set { .. } => {
                free(self.filters, MOST_FILTERS).ok_or(FilterError::TooManyFilters(MOST_FILTERS))
            }
            BankRequest::Shadow { .. } => {
                free(self.secondaries, SECONDARIES).ok_or(FilterError::TooManySecondaries(SECONDARIES))
            }
            _ => Ok(0),
        };
        let number = match number {
            Ok(number) => number,
            Err(error) => return machine.order(asker, &Order::BankAnswer(Err(error.into()))),
        };
        let of = match &request {
            BankRequest::Read { node, .. } | BankRequest::Secondary { node, .. } => *node,
            _ => None,
        };
        let left: BTreeSet<u16> =
            nodes.iter().copied().filter(|&node| of.is_none_or(|of| of == node)).collect();
        if left.is_empty() {
            let why = format!("there is no node {} in this run", of.unwrap_or_default());
            return machine.order(asker, &Order::BankAnswer(Err(BankError::Refused(libc::EINVAL, why))));
        }
        let current = Current { asker, number, request, left, answer: Ok(vec![]), undoes: false };
        current.order(machine);
        self.current = Some(current);
    }

    fn finish(&mut self, mut current: Current, nodes: &[u16], machine: &mut dyn Nodes) {
        let Current { number, ref request, .. } = current;
        let undo = match *request {
            BankRequest::Set { .. } => Some(BankRequest::Remove { filter: number }),
            BankRequest::Shadow { .. } => Some(BankRequest::Unshadow { secondary: number }),
            _ => None,
        };
        match (undo, &current.answer) {
            (Some(undo), Err(_)) => {
                current.left = nodes.iter().copied().collect();
                (current.request, current.undoes) = (undo, true);
                current.order(machine);
                self.current = Some(current);
                return;
            }
            (Some(_), Ok(_)) => {
                match request {
                    BankRequest::Set { .. } => self.filters |= 1 << number,
                    _ => self.secondaries |= 1 << number,
                }
                current.answer = Ok(vec![u64::from(number)]);
            }
            (None, Ok(_)) => match *request {
                BankRequest::Remove { filter } => self.filters &= !(1 << filter),
                BankRequest::Unshadow { secondary } => self.secondaries &= !(1 << secondary),
                _ => {}
            },
            (None, Err(_)) => {}
        }
        machine.order(current.asker, &Order::BankAnswer(current.answer));
    }
}

impl Current {
    fn order(&self, machine: &mut dyn Nodes) {
        let order = Order::Bank { asker: self.asker, number: self.number, request: self.request.clone() };
        self.left.iter().for_each(|&node| machine.order(node, &order));
    }

    /// Adds the answer of one node: numbers are summed, and one refusal refuses the request.
    fn take(&mut self, answer: BankAnswer) {
        if self.undoes {
            return;
        }
        match (&mut self.answer, answer) {
            (Ok(sums), Ok(numbers)) => {
                sums.resize(sums.len().max(numbers.len()), 0);
                sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum = sum.saturating_add(number));
            }
            (answer, Err(error)) => *answer = Err(error),
            (Err(_), Ok(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::events::Event;
    use gondwana_console::failure::Failure;
    use gondwana_monitor::Filter;
    use std::os::fd::RawFd;
    use std::time::Instant;

    /// Values, each with the number of the node that it is for or from.
    type ByNode<T> = Vec<(u16, T)>;

    /// Records the orders that nodes get, in the order in which they get them.
    #[derive(Default)]
    struct Sent(Vec<(u16, Order)>);

    impl Nodes for Sent {
        fn next(&mut self, _deadline: Option<Instant>) -> Result<Option<Event>, Failure> {
            Ok(None)
        }

        fn order(&mut self, node: u16, order: &Order) {
            self.0.push((node, order.clone()));
        }

        fn watch(&mut self, _fd: RawFd) {}

        fn signal(&mut self, _node: u16, _signal: i32) {}

        fn kill(&mut self) {}
    }

    impl Sent {
        /// The requests sent to nodes and the answers to askers since the last call.
        fn take(&mut self) -> (ByNode<BankRequest>, ByNode<BankAnswer>) {
            let (mut requests, mut answers) = (vec![], vec![]);
            for (node, order) in self.0.drain(..) {
                match order {
                    Order::Bank { request, .. } => requests.push((node, request)),
                    Order::BankAnswer(answer) => answers.push((node, answer)),
                    other => panic!("{other:?}"),
                }
            }
            (requests, answers)
        }
    }

    const NODES: [u16; 2] = [0, 1];

    fn set() -> BankRequest {
        BankRequest::Set { filter: Filter::new(0x1000, 0x2000, 5), token: None }
    }

    fn read(node: Option<u16>) -> BankRequest {
        BankRequest::Read { filter: 0, node, first: 0, count: 2 }
    }

    /// A filter that all nodes have set; its number.
    fn set_one(banks: &mut CounterBanks, sent: &mut Sent) -> u64 {
        banks.ask(1, set(), &NODES, sent);
        NODES.iter().for_each(|&node| banks.done(node, Ok(vec![]), &NODES, sent));
        sent.take().1[0].1.as_ref().unwrap()[0]
    }

    #[test]
    fn filters_get_numbers_that_the_whole_run_has() {
        let (mut banks, mut sent) = (CounterBanks::default(), Sent::default());
        assert_eq!((set_one(&mut banks, &mut sent), set_one(&mut banks, &mut sent)), (0, 1));
        banks.ask(0, BankRequest::Remove { filter: 0 }, &NODES, &mut sent);
        banks.done(0, Ok(vec![]), &NODES, &mut sent);
        assert_eq!(sent.take().1, [], "one has not answered yet");
        banks.done(1, Ok(vec![]), &NODES, &mut sent);
        assert_eq!(sent.take().1, [(0, Ok(vec![]))]);
        assert_eq!(set_one(&mut banks, &mut sent), 0);
        for number in 2..MOST_FILTERS as u64 {
            assert_eq!(set_one(&mut banks, &mut sent), number);
        }
        banks.ask(1, set(), &NODES, &mut sent);
        let refused = Err(FilterError::TooManyFilters(MOST_FILTERS).into());
        assert_eq!(sent.take(), (vec![], vec![(1, refused)]));
    }

    #[test]
    fn counters_are_those_of_one_node_or_added_up() {
        let (mut banks, mut sent) = (CounterBanks::default(), Sent::default());
        set_one(&mut banks, &mut sent);
        banks.ask(1, read(None), &NODES, &mut sent);
        banks.ask(0, read(Some(1)), &NODES, &mut sent);
        banks.ask(0, read(Some(2)), &NODES, &mut sent);
        assert_eq!(sent.take().0, [(0, read(None)), (1, read(None))], "one request at a time");
        banks.done(1, Ok(vec![3, 4]), &NODES, &mut sent);
        banks.done(0, Ok(vec![10, 20]), &NODES, &mut sent);
        assert_eq!(sent.take(), (vec![(1, read(Some(1)))], vec![(1, Ok(vec![13, 24]))]));
        banks.done(1, Ok(vec![3, 4]), &NODES, &mut sent);
        let none = BankError::Refused(libc::EINVAL, "there is no node 2 in this run".to_owned());
        assert_eq!(sent.take().1, [(0, Ok(vec![3, 4])), (0, Err(none))]);
    }

    #[test]
    fn what_one_node_refuses_none_has() {
        let (mut banks, mut sent) = (CounterBanks::default(), Sent::default());
        banks.ask(1, set(), &NODES, &mut sent);
        banks.done(0, Ok(vec![]), &NODES, &mut sent);
        banks.done(1, Err(FilterError::NoKinds.into()), &NODES, &mut sent);
        let undone = BankRequest::Remove { filter: 0 };
        let (requests, answers) = sent.take();
        assert_eq!((&requests[2..], answers), (&[(0, undone.clone()), (1, undone)][..], vec![]));
        banks.done(0, Ok(vec![]), &NODES, &mut sent);
        banks.done(1, Err(FilterError::NotSet.into()), &NODES, &mut sent);
        assert_eq!(sent.take().1, [(1, Err(FilterError::NoKinds.into()))]);
        assert_eq!(set_one(&mut banks, &mut sent), 0);
    }

    #[test]
    fn a_node_that_ends_is_not_waited_for() {
        let (mut banks, mut sent) = (CounterBanks::default(), Sent::default());
        set_one(&mut banks, &mut sent);
        banks.ask(1, read(None), &NODES, &mut sent);
        banks.done(1, Ok(vec![1, 2]), &NODES, &mut sent);
        banks.ended(0, &[1], &mut sent);
        assert_eq!(sent.take().1, [(1, Ok(vec![1, 2]))]);
    }
}
