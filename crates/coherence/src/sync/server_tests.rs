//! Every object against what POSIX says, alone and in random runs against simple specifications.

use super::object_states::ObjectStates;
use super::request::Caller;
use super::*;
use gondwana_topology::NodeId;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

const OBJECT: Object = Object(0x80);

/// All objects, and the answers they gave, by ticket.
#[derive(Default)]
struct Manager {
    server: Server,
    states: ObjectStates,
    tickets: u64,
    /// The nodes that sent them.
    nodes: BTreeMap<u64, NodeId>,
}

impl Manager {
    /// Sends a request with the next ticket; returns the ticket and all answers.
    fn ask(&mut self, request: Request) -> (u64, Vec<(u64, Answer)>) {
        // Tickets are dealt to two nodes, so that an answer to the wrong node shows.
        self.ask_of(self.tickets % 2, request)
    }

    /// The same by a thread of one node.
    fn ask_of(&mut self, node: u64, request: Request) -> (u64, Vec<(u64, Answer)>) {
        self.tickets += 1;
        self.nodes.insert(self.tickets, NodeId(u16::try_from(node).unwrap()));
        (self.tickets, self.ask_as(self.tickets, request))
    }

    fn ask_as(&mut self, ticket: u64, request: Request) -> Vec<(u64, Answer)> {
        let bytes = postcard::to_stdvec(&request).unwrap();
        let request: Request = postcard::from_bytes(&bytes).unwrap();
        let (node, mut out) = (self.nodes[&ticket], Vec::new());
        match request.key() {
            Some(key) => {
                self.states.request(key, Caller { node, ticket: Ticket(ticket) }, &request, &mut out);
            }
            None => self.server.request(node, Ticket(ticket), request, &mut out),
        }
        out.into_iter()
            .map(|reply| {
                assert_eq!(reply.to, self.nodes[&reply.ticket.0]);
                (reply.ticket.0, reply.answer)
            })
            .collect()
    }

    /// The answer to a request that is answered at once and wakes nobody.
    fn call(&mut self, request: Request) -> Answer {
        self.call_of(self.tickets % 2, request)
    }

    fn call_of(&mut self, node: u64, request: Request) -> Answer {
        let (ticket, answers) = self.ask_of(node, request);
        let [(answered, answer)] = answers[..] else { panic!("one answer expected: {answers:?}") };
        assert_eq!(answered, ticket);
        answer
    }

    /// A request that waits: its ticket.
    fn wait(&mut self, request: Request) -> u64 {
        let (ticket, answers) = self.ask(request);
        assert!(answers.is_empty() || answers == [(ticket, Answer::Enqueued)], "{answers:?}");
        ticket
    }
}

fn done(ticket: u64) -> (u64, Answer) {
    (ticket, Answer::Done(0))
}

fn semaphore(value: u32, stamp: u64) -> Initialised {
    Initialised { object: OBJECT, value, stamp }
}

fn lock(write: bool) -> Request {
    Request::RwLock { lock: OBJECT, write, attempt: false, passes: false }
}

fn try_rw(write: bool) -> Request {
    Request::RwLock { lock: OBJECT, write, attempt: true, passes: false }
}

fn unlock(write: bool) -> Request {
    Request::RwUnlock { lock: OBJECT, write }
}

fn cancel(kind: ObjectKind) -> Request {
    Request::Cancel { key: OBJECT.of_kind(kind) }
}

fn join(thread: u64, by: u64, attempt: bool) -> Request {
    Request::Join { thread: Thread(thread), by: Thread(by), attempt }
}

#[test]
fn a_condition_wakes_in_order_and_forgets_signals_nobody_waits_for() {
    let mut manager = Manager::default();
    let (cond, wait) = (OBJECT, Request::CondWait { cond: OBJECT });
    assert_eq!(manager.call(Request::CondSignal { cond, awaited: true }), Answer::Done(0));
    let (first, answers) = manager.ask(wait.clone());
    assert_eq!(answers, [(first, Answer::Enqueued)]);
    let [second, third] = [(); 2].map(|()| manager.wait(wait.clone()));
    let (signal, answers) = manager.ask(Request::CondSignal { cond, awaited: true });
    assert_eq!(answers, [done(first), (signal, Answer::Done(1))]);
    let (broadcast, answers) = manager.ask(Request::CondBroadcast { cond, awaited: true });
    assert_eq!(answers, [done(second), done(third), (broadcast, Answer::Done(2))]);
}

#[test]
fn a_signal_that_is_not_awaited_wakes_without_an_answer() {
    let mut manager = Manager::default();
    let signal = Request::CondSignal { cond: OBJECT, awaited: false };
    assert_eq!(manager.ask(signal.clone()).1, []);
    let [first, second, third] = [(); 3].map(|()| manager.wait(Request::CondWait { cond: OBJECT }));
    assert_eq!(manager.ask(signal).1, [done(first)]);
    assert_eq!(manager.ask_as(second, cancel(ObjectKind::Condition)), [(second, Answer::Cancelled)]);
    assert_eq!(manager.ask(Request::CondBroadcast { cond: OBJECT, awaited: false }).1, [done(third)]);
}

#[test]
fn a_cancelled_wait_takes_no_signal() {
    let mut manager = Manager::default();
    let [first, second] = [(); 2].map(|()| manager.wait(Request::CondWait { cond: OBJECT }));
    assert_eq!(manager.ask_as(first, cancel(ObjectKind::Condition)), [(first, Answer::Cancelled)]);
    let (signal, answers) = manager.ask(Request::CondSignal { cond: OBJECT, awaited: true });
    assert_eq!(answers, [done(second), (signal, Answer::Done(1))]);
    // Too late: the signal is on its way.
    assert_eq!(manager.ask_as(second, cancel(ObjectKind::Condition)), []);
}

#[test]
fn a_futex_wakes_those_whose_bits_are_meant() {
    let mut manager = Manager::default();
    let wait = |bitset| Request::FutexWait { futex: OBJECT, bitset };
    let wake = |count, bitset| Request::FutexWake { futex: OBJECT, count, bitset };
    assert_eq!(manager.call(wait(0)), Answer::Failed(SyncError::Invalid));
    let [a, b, c] = [1, 2, 3].map(|bitset| manager.wait(wait(bitset)));
    let (ticket, answers) = manager.ask(wake(1, 2));
    assert_eq!(answers, [done(b), (ticket, Answer::Done(1))]);
    assert_eq!(manager.call(wake(5, 4)), Answer::Done(0));
    let (ticket, answers) = manager.ask(wake(5, u32::MAX));
    assert_eq!(answers, [done(a), done(c), (ticket, Answer::Done(2))]);
}

#[test]
fn a_semaphore_starts_with_what_its_memory_says() {
    let mut manager = Manager::default();
    let first = semaphore(2, 1);
    assert_eq!(manager.call(Request::SemWait { semaphore: first }), Answer::Done(0));
    assert_eq!(manager.call(Request::SemTryWait { semaphore: first }), Answer::Done(0));
    assert_eq!(manager.call(Request::SemTryWait { semaphore: first }), Answer::Failed(SyncError::Exhausted));
    let waiting = manager.wait(Request::SemWait { semaphore: first });
    let (post, answers) = manager.ask(Request::SemPost { semaphore: first });
    assert_eq!(answers, [done(waiting), done(post)]);
    assert_eq!(manager.call(Request::SemGetValue { semaphore: first }), Answer::Done(0));
    // Initialised anew at the same address, which the manager sees by the stamp.
    assert_eq!(manager.call(Request::SemGetValue { semaphore: semaphore(5, 2) }), Answer::Done(5));
}

#[test]
fn a_semaphore_has_a_largest_value() {
    let mut manager = Manager::default();
    let full = semaphore(SEM_VALUE_MAX, 1);
    assert_eq!(manager.call(Request::SemPost { semaphore: full }), Answer::Failed(SyncError::Overflow));
    assert_eq!(manager.call(Request::SemGetValue { semaphore: full }), Answer::Done(SEM_VALUE_MAX.into()));
}

#[test]
fn a_cancelled_semaphore_wait_takes_no_post() {
    let mut manager = Manager::default();
    let waiting = manager.wait(Request::SemWait { semaphore: semaphore(0, 1) });
    assert_eq!(manager.ask_as(waiting, cancel(ObjectKind::Semaphore)), [(waiting, Answer::Cancelled)]);
    assert_eq!(manager.call(Request::SemPost { semaphore: semaphore(0, 1) }), Answer::Done(0));
    assert_eq!(manager.call(Request::SemGetValue { semaphore: semaphore(0, 1) }), Answer::Done(1));
}

#[test]
fn readers_share_and_writers_queue() {
    let mut manager = Manager::default();
    for node in [1, 2] {
        assert_eq!(manager.call_of(node, lock(false)), Answer::Done(0));
    }
    let (writer, answers) = manager.ask_of(3, lock(true));
    assert_eq!(answers, []);
    let (reader, answers) = manager.ask_of(4, lock(false));
    assert_eq!(answers, []);
    let again = Request::RwLock { lock: OBJECT, write: false, attempt: false, passes: true };
    assert_eq!(manager.call_of(1, again), Answer::Done(0), "it may read again");
    let attempt = Request::RwLock { lock: OBJECT, write: false, attempt: true, passes: false };
    assert_eq!(manager.call_of(1, attempt), Answer::Failed(SyncError::Busy), "writers first");
    assert_eq!(manager.call_of(9, unlock(false)), Answer::Failed(SyncError::NotOwner));
    assert_eq!(manager.call_of(1, unlock(true)), Answer::Failed(SyncError::NotOwner));
    for node in [1, 2] {
        assert_eq!(manager.call_of(node, unlock(false)), Answer::Done(0));
    }
    let (last, answers) = manager.ask_of(1, unlock(false));
    assert_eq!(answers, [done(writer), done(last)]);
    let (last, answers) = manager.ask_of(3, unlock(true));
    assert_eq!(answers, [done(reader), done(last)]);
    assert_eq!(manager.call_of(4, unlock(false)), Answer::Done(0));
    assert_eq!(manager.call_of(4, unlock(false)), Answer::Failed(SyncError::NotOwner));
}

#[test]
fn readers_that_may_pass_go_on_when_one_does() {
    let mut manager = Manager::default();
    let passing = Request::RwLock { lock: OBJECT, write: false, attempt: false, passes: true };
    assert_eq!(manager.call_of(1, lock(true)), Answer::Done(0));
    let (first, answers) = manager.ask_of(2, passing.clone());
    assert_eq!(answers, []);
    let (writer, answers) = manager.ask_of(3, lock(true));
    assert_eq!(answers, []);
    let (second, answers) = manager.ask_of(4, passing);
    assert_eq!(answers, []);
    let (last, answers) = manager.ask_of(1, unlock(true));
    assert_eq!(answers, [done(first), done(second), done(last)]);
    assert_eq!(manager.call_of(2, unlock(false)), Answer::Done(0));
    let (last, answers) = manager.ask_of(4, unlock(false));
    assert_eq!(answers, [done(writer), done(last)]);
}

#[test]
fn attempts_fail_only_against_holders() {
    let mut manager = Manager::default();
    assert_eq!(manager.call_of(1, lock(true)), Answer::Done(0));
    assert_eq!(manager.call_of(1, try_rw(true)), Answer::Failed(SyncError::Busy));
    assert_eq!(manager.call_of(2, try_rw(false)), Answer::Failed(SyncError::Busy));
    assert_eq!(manager.call_of(1, unlock(true)), Answer::Done(0));
    assert_eq!(manager.call_of(2, try_rw(false)), Answer::Done(0));
    assert_eq!(manager.call_of(1, try_rw(true)), Answer::Failed(SyncError::Busy));
    assert_eq!(manager.call_of(2, unlock(false)), Answer::Done(0));
    assert_eq!(manager.call_of(1, try_rw(true)), Answer::Done(0));
}

#[test]
fn readers_behind_a_writer_that_gives_up_go_on() {
    let mut manager = Manager::default();
    assert_eq!(manager.call(lock(false)), Answer::Done(0));
    let writer = manager.wait(lock(true));
    let reader = manager.wait(lock(false));
    let answers = manager.ask_as(writer, cancel(ObjectKind::RwLock));
    assert_eq!(answers, [done(reader), (writer, Answer::Cancelled)]);
}

#[test]
fn a_routine_runs_once_unless_it_fails() {
    let mut manager = Manager::default();
    let enter = |stale| Request::OnceEnter { once: OBJECT, stale };
    assert_eq!(manager.call(Request::OnceDone { once: OBJECT }), Answer::Failed(SyncError::Invalid));
    assert_eq!(manager.call(enter(0)), Answer::Done(ONCE_RUN));
    let [second, third] = [(); 2].map(|()| manager.wait(enter(0)));
    let (failed, answers) = manager.ask(Request::OnceFailed { once: OBJECT });
    assert_eq!(answers, [(second, Answer::Done(ONCE_RUN)), done(failed)]);
    let (ended, answers) = manager.ask(Request::OnceDone { once: OBJECT });
    assert_eq!(answers, [(third, Answer::Done(1)), done(ended)]);
    assert_eq!(manager.call(enter(0)), Answer::Done(1));
    assert_eq!(manager.call(Request::OnceDone { once: OBJECT }), Answer::Failed(SyncError::Invalid));
    // The object was made anew: whoever noticed it first runs the routine, whoever notices late does not.
    assert_eq!(manager.call(enter(1)), Answer::Done(ONCE_RUN));
    assert_eq!(manager.call(Request::OnceDone { once: OBJECT }), Answer::Done(0));
    assert_eq!(manager.call(enter(1)), Answer::Done(2));
}

#[test]
fn joining_follows_glibc() {
    let mut manager = Manager::default();
    let start = |thread, detached| Request::ThreadStart { thread: Thread(thread), detached };
    let exit = |thread| Request::ThreadExit { thread: Thread(thread), value: u64::MAX - thread };
    let detach = |thread| Request::Detach { thread: Thread(thread) };
    assert_eq!(manager.call(join(1, 2, false)), Answer::Failed(SyncError::NoSuchThread));
    for thread in 1..=5 {
        assert_eq!(manager.call(start(thread, thread == 5)), Answer::Done(0));
    }
    assert_eq!(manager.call(start(1, false)), Answer::Failed(SyncError::Invalid));
    assert_eq!(manager.call(join(1, 1, false)), Answer::Failed(SyncError::Deadlock));
    assert_eq!(manager.call(join(2, 1, true)), Answer::Failed(SyncError::Busy));
    let joiner = manager.wait(join(2, 1, false));
    assert_eq!(manager.call(join(1, 2, false)), Answer::Failed(SyncError::Deadlock));
    assert_eq!(manager.call(join(2, 3, false)), Answer::Failed(SyncError::Invalid));
    assert_eq!(manager.call(detach(2)), Answer::Done(0), "without effect");
    let (ended, answers) = manager.ask(exit(2));
    assert_eq!(answers, [(joiner, Answer::Done(-3)), done(ended)]);
    assert_eq!(manager.call(join(2, 1, false)), Answer::Failed(SyncError::NoSuchThread));
    // Ended first, joined later; a thread ends once.
    assert_eq!(manager.call(exit(3)), Answer::Done(0));
    assert_eq!(manager.call(exit(3)), Answer::Failed(SyncError::Invalid));
    assert_eq!(manager.call(join(3, 1, true)), Answer::Done(-4));
    // Given up, then detached.
    let joiner = manager.wait(join(4, 1, false));
    let give_up = Request::CancelJoin { thread: Thread(4) };
    assert_eq!(manager.ask_as(joiner, give_up.clone()), [(joiner, Answer::Cancelled)]);
    assert_eq!(manager.ask_as(joiner, give_up), []);
    assert_eq!(manager.call(detach(4)), Answer::Done(0));
    for thread in [4, 5] {
        assert_eq!(manager.call(detach(thread)), Answer::Failed(SyncError::Invalid));
        assert_eq!(manager.call(join(thread, 1, false)), Answer::Failed(SyncError::Invalid));
        assert_eq!(manager.call(exit(thread)), Answer::Done(0));
        assert_eq!(manager.call(detach(thread)), Answer::Failed(SyncError::NoSuchThread));
    }
    assert_eq!(manager.call(exit(1)), Answer::Done(0));
    assert_eq!(manager.call(detach(1)), Answer::Done(0));
    assert_eq!(manager.call(exit(1)), Answer::Failed(SyncError::NoSuchThread));
}

#[test]
fn keys_are_many_but_bounded_and_never_the_same() {
    let mut manager = Manager::default();
    let create = |destructor| Request::KeyCreate { destructor };
    for key in 0..KEYS_MAX {
        assert_eq!(manager.call(create(u64::from(key))), Answer::Done(key.into()));
    }
    assert_eq!(manager.call(create(0)), Answer::Failed(SyncError::Exhausted));
    assert_eq!(manager.call(Request::KeyDestructor { key: 5 }), Answer::Done(5));
    assert_eq!(manager.call(Request::KeyDelete { key: 5 }), Answer::Done(0));
    let new = 5 + KEYS_MAX;
    assert_eq!(manager.call(create(u64::MAX)), Answer::Done(new.into()));
    assert_eq!(manager.call(Request::KeyDestructor { key: new }), Answer::Done(-1));
    for request in [Request::KeyDelete { key: 5 }, Request::KeyDestructor { key: 5 }] {
        assert_eq!(manager.call(request), Answer::Failed(SyncError::Invalid));
    }
}

#[test]
fn objects_of_two_types_can_share_an_address() {
    let mut manager = Manager::default();
    let waiting = manager.wait(Request::CondWait { cond: OBJECT });
    assert_eq!(manager.call_of(0, lock(true)), Answer::Done(0));
    assert_eq!(manager.call(Request::FutexWake { futex: OBJECT, count: 1, bitset: 1 }), Answer::Done(0));
    assert_eq!(manager.ask_as(waiting, cancel(ObjectKind::RwLock)), []);
    assert_eq!(manager.ask_as(waiting, cancel(ObjectKind::Condition)), [(waiting, Answer::Cancelled)]);
    assert_eq!(manager.call_of(0, unlock(true)), Answer::Done(0));
}

proptest! {
    /// A condition is a queue: a signal takes the front, a broadcast all, a time limit its own.
    #[test]
    fn conditions_are_queues(steps in proptest::collection::vec((0..6u8, any::<prop::sample::Index>()), 0..80)) {
        let mut manager = Manager::default();
        let mut queue = VecDeque::new();
        for (step, which) in steps {
            let (expected, answers, ticket) = match step {
                0..3 => {
                    let (ticket, answers) = manager.ask(Request::CondWait { cond: OBJECT });
                    queue.push_back(ticket);
                    (vec![(ticket, Answer::Enqueued)], answers, ticket)
                }
                3 if !queue.is_empty() => {
                    let ticket = queue.remove(which.index(queue.len())).unwrap();
                    let answers = manager.ask_as(ticket, cancel(ObjectKind::Condition));
                    (vec![(ticket, Answer::Cancelled)], answers, ticket)
                }
                4 => {
                    let (ticket, answers) = manager.ask(Request::CondBroadcast { cond: OBJECT, awaited: true });
                    let count = i64::try_from(queue.len()).unwrap();
                    let mut expected: Vec<_> = queue.drain(..).map(done).collect();
                    expected.push((ticket, Answer::Done(count)));
                    (expected, answers, ticket)
                }
                _ => {
                    let (ticket, answers) = manager.ask(Request::CondSignal { cond: OBJECT, awaited: true });
                    let mut expected: Vec<_> = queue.pop_front().map(done).into_iter().collect();
                    expected.push((ticket, Answer::Done(i64::try_from(expected.len()).unwrap())));
                    (expected, answers, ticket)
                }
            };
            prop_assert_eq!(expected, answers, "ticket {}", ticket);
        }
    }

    /// Waits that succeeded never exceed the initial value and the posts, and nobody waits while there is one.
    #[test]
    fn semaphores_conserve(initial in 0..4u32, steps in proptest::collection::vec(0..4u8, 0..80)) {
        let mut manager = Manager::default();
        let (mut value, mut waiting) = (initial, VecDeque::new());
        let semaphore = semaphore(initial, 1);
        for step in steps {
            match step {
                0 | 1 => {
                    let (ticket, answers) = manager.ask(Request::SemPost { semaphore });
                    match waiting.pop_front() {
                        Some(first) => prop_assert_eq!(answers, [done(first), done(ticket)]),
                        None => {
                            value += 1;
                            prop_assert_eq!(answers, [done(ticket)]);
                        }
                    }
                }
                2 => {
                    let (ticket, answers) = manager.ask(Request::SemWait { semaphore });
                    if value > 0 {
                        value -= 1;
                        prop_assert_eq!(answers, [done(ticket)]);
                    } else {
                        waiting.push_back(ticket);
                        prop_assert_eq!(answers, []);
                    }
                }
                _ => {
                    let answer = manager.call(Request::SemGetValue { semaphore });
                    prop_assert_eq!(answer, Answer::Done(value.into()));
                }
            }
        }
    }

    /// Readers and writers never hold the lock together, nobody waits for a lock that is free, and writers are
    /// not overtaken by threads that come later.
    #[test]
    fn rwlocks_exclude_and_admit_in_order(steps in proptest::collection::vec((1..8u64, any::<bool>()), 0..120)) {
        let mut manager = Manager::default();
        let mut holding: BTreeMap<u64, bool> = BTreeMap::new();
        let mut waiting: VecDeque<(u64, u64, bool)> = VecDeque::new();
        for (thread, writes) in steps {
            if waiting.iter().any(|(_, waiter, _)| *waiter == thread) {
                continue;
            }
            let answers = if let Some(writes) = holding.remove(&thread) {
                let (ticket, answers) = manager.ask_of(thread, unlock(writes));
                prop_assert_eq!(answers.last(), Some(&done(ticket)));
                answers[..answers.len() - 1].to_vec()
            } else {
                let (ticket, answers) = manager.ask_of(thread, lock(writes));
                waiting.push_back((ticket, thread, writes));
                answers
            };
            for answer in answers {
                let (ticket, thread, writes) = waiting.pop_front().unwrap();
                prop_assert_eq!(answer, done(ticket));
                holding.insert(thread, writes);
            }
            let writers = holding.values().filter(|writes| **writes).count();
            prop_assert!(writers == 0 || holding.len() == 1);
            if let Some((_, _, writes)) = waiting.front() {
                let must_wait = if *writes { !holding.is_empty() } else { writers == 1 };
                prop_assert!(must_wait);
            }
        }
    }
}
