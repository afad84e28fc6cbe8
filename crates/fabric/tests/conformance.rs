//! Conformance tests that every fabric must pass.

use gondwana_fabric::{Fabric, MAX_BULK, MAX_HEAD, Polling, SendError};
use gondwana_racing::RacingBytes;
use gondwana_topology::NodeId;
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

mod support;
use support::{Make, Service, encrypted, plain, shm, word_at};

macro_rules! conformance {
    ($($name:ident),*) => { conformance!{ @each [$($name)*] shm } conformance!{ @each [$($name)*] encrypted }
        conformance!{ @each [$($name)*] plain } };
    (@each [$($name:ident)*] $make:ident) => {
        mod $make { $(#[test] fn $name() { super::$name(super::$make); })* }
    };
}

conformance! {
    messages_of_all_sizes_arrive_in_order, many_threads_send_to_one_node, senders_never_wait_for_a_receiver,
    longest_and_shortest_messages_pass, wrong_messages_are_refused, sleeping_nodes_wake_each_other,
    nothing_is_lost_when_polling_changes_hands, interrupts_end_a_wait, waits_end_in_time,
    what_is_left_is_received_by_those_who_wait_or_are_prompted, floods_in_both_directions_flow,
    receivers_may_poll_and_send, everything_is_counted
}

/// What fills the part of a message that tells a number.
fn byte_of(number: impl Into<u32>) -> u8 {
    number.into().to_le_bytes()[0]
}

/// A message with its sender, number and length; `check` verifies it.
fn compose(from: NodeId, number: u32, head_len: usize, bulk_len: usize) -> (Vec<u8>, Vec<u8>) {
    let mut head = number.to_le_bytes().to_vec();
    head.resize(4 + head_len, byte_of(from.0));
    (head, vec![byte_of(number); bulk_len])
}

fn check(from: NodeId, number: u32, head: &[u8], bulk: &[u8]) {
    assert_eq!(word_at(head, 0), number, "from node {from}");
    assert!(head[4..].iter().all(|&byte| byte == byte_of(from.0)));
    assert!(bulk.iter().all(|&byte| byte == byte_of(number)));
}

fn messages_of_all_sizes_arrive_in_order(make: Make) {
    let sizes = proptest::collection::vec(
        (0..2000usize, prop_oneof![0..200usize, 4000..9000usize, 0..300_000usize]),
        60,
    );
    let config = ProptestConfig { cases: 4, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(sizes in sizes)| {
        let fabrics = make(3);
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for fabric in &fabrics {
                let (sizes, done) = (&sizes, &done);
                scope.spawn(move || {
                    let mut next = [0; 3];
                    let mut receive = |from: NodeId, head: &[u8], bulk: &[u8]| {
                        let number = next[from.index()];
                        check(from, number, head, bulk);
                        let (head_len, bulk_len) = sizes[number as usize];
                        assert_eq!((head.len(), bulk.len()), (4 + head_len, bulk_len));
                        next[from.index()] += 1;
                    };
                    let mut received = 0;
                    for (number, &(head, bulk)) in (0..).zip(sizes) {
                        let (head, bulk) = compose(fabric.node(), number, head, bulk);
                        let (first, second) = bulk.split_at(bulk.len() / 3);
                        for to in (0..3).map(NodeId).filter(|&to| to != fabric.node()) {
                            fabric.send(to, &head, &[first.into(), second.into()]).unwrap();
                        }
                        received += fabric.poll(&mut receive);
                    }
                    while received < 2 * sizes.len() {
                        received += fabric.poll(&mut receive);
                        std::thread::yield_now();
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                    // Other nodes may still need messages that this node could not send at once.
                    while done.load(Ordering::Relaxed) < 3 {
                        fabric.poll(&mut |_, _, _| panic!("a message too many"));
                        std::thread::yield_now();
                    }
                });
            }
        });
    });
}

fn many_threads_send_to_one_node(make: Make) {
    const THREADS: u8 = 4;
    const EACH: u32 = 400;
    let fabrics = make(2);
    let seen = Arc::new(Mutex::new([0; THREADS as usize]));
    let service = {
        let seen = Arc::clone(&seen);
        Service::start(&fabrics[1], move |_, _, head, bulk| {
            let (thread, number) = (u8::try_from(word_at(head, 0)).unwrap(), word_at(head, 4));
            let mut seen = seen.lock().unwrap();
            let seen = &mut seen[usize::from(thread)];
            assert_eq!(number, *seen, "of thread {thread}");
            assert_eq!(bulk, vec![thread; number as usize * 5]);
            *seen += 1;
        })
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let sender = &fabrics[0];
            scope.spawn(move || {
                for number in 0..EACH {
                    let head = [u32::from(thread), number].map(u32::to_le_bytes).concat();
                    sender.send(NodeId(1), &head, &[(&vec![thread; number as usize * 5]).into()]).unwrap();
                }
            });
        }
    });
    let _draining = Service::start(&fabrics[0], |_, _, _, _| {});
    service.finish_after(usize::from(THREADS) * EACH as usize);
    assert_eq!(*seen.lock().unwrap(), [EACH; THREADS as usize]);
}

fn senders_never_wait_for_a_receiver(make: Make) {
    const COUNT: u32 = 60;
    let fabrics = make(2);
    for number in 0..COUNT {
        let (head, bulk) = compose(NodeId(0), number, 10, 300_000);
        fabrics[0].send(NodeId(1), &head, &[(&bulk).into()]).unwrap();
    }
    assert!(fabrics[0].unsent() > 0, "18 MB fit nowhere, so that the test tests nothing");
    // The sender sleeps now: only room that the receiver makes can wake it.
    let sender = Service::start(&fabrics[0], |_, _, _, _| {});
    let mut next = 0;
    let receiver = Service::start(&fabrics[1], move |_, from, head, bulk| {
        check(from, next, head, bulk);
        next += 1;
    });
    receiver.finish_after(COUNT as usize);
    drop(sender);
    assert_eq!(fabrics[0].unsent(), 0);
}

fn longest_and_shortest_messages_pass(make: Make) {
    let fabrics = make(2);
    let (head, bulk) = (vec![1; MAX_HEAD], vec![2; MAX_BULK]);
    let lengths = Arc::new(Mutex::new(Vec::new()));
    let service = {
        let lengths = Arc::clone(&lengths);
        Service::start(&fabrics[1], move |_, _, head, bulk| {
            lengths.lock().unwrap().push((head.len(), bulk.len()));
        })
    };
    let _draining = Service::start(&fabrics[0], |_, _, _, _| {});
    for _ in 0..6 {
        fabrics[0].send(NodeId(1), &head, &[(&bulk[..5]).into(), (&[]).into(), (&bulk[5..]).into()]).unwrap();
        fabrics[0].send(NodeId(1), &[], &[]).unwrap();
        fabrics[0].send(NodeId(1), &[], &[(&bulk[..1]).into()]).unwrap();
    }
    service.finish_after(18);
    let expected = [(MAX_HEAD, MAX_BULK), (0, 0), (0, 1)].repeat(6);
    assert_eq!(*lengths.lock().unwrap(), expected);
}

fn wrong_messages_are_refused(make: Make) {
    let fabrics = make(2);
    let long = vec![0; MAX_BULK];
    let send = |to, head: &[u8], bulk: &[RacingBytes<'_>]| fabrics[0].send(NodeId(to), head, bulk);
    assert_eq!(send(0, b"x", &[]), Err(SendError::NoSuchPeer(NodeId(0))));
    assert_eq!(send(2, b"x", &[]), Err(SendError::NoSuchPeer(NodeId(2))));
    assert_eq!(send(1, &long[..=MAX_HEAD], &[]), Err(SendError::HeadTooLong(MAX_HEAD + 1)));
    assert_eq!(send(1, b"x", &[(&long).into(), b"y".into()]), Err(SendError::BulkTooLong(MAX_BULK + 1)));
    assert_eq!(fabrics[0].counters().messages_sent, 0);
}

fn sleeping_nodes_wake_each_other(make: Make) {
    const ROUNDS: u32 = 500;
    let fabrics = make(2);
    let answer = |fabric: &dyn Fabric, from: NodeId, head: &[u8], _: &[u8]| {
        let number = word_at(head, 0);
        if number < ROUNDS {
            fabric.send(from, &(number + 1).to_le_bytes(), &[]).unwrap();
        }
    };
    let services = [Service::start(&fabrics[0], answer), Service::start(&fabrics[1], answer)];
    fabrics[0].send(NodeId(1), &1u32.to_le_bytes(), &[]).unwrap();
    for service in services {
        service.finish_after(ROUNDS as usize / 2);
    }
}

fn nothing_is_lost_when_polling_changes_hands(make: Make) {
    const ROUNDS: usize = 2000;
    let fabrics = make(2);
    let received = Arc::new(AtomicUsize::new(0));
    let count = {
        let received = Arc::clone(&received);
        move |_: &dyn Fabric, _: NodeId, _: &[u8], _: &[u8]| {
            received.fetch_add(1, Ordering::SeqCst);
        }
    };
    let service = Service::start(&fabrics[1], count.clone());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // An application thread that polls in some of its iterations.
        scope.spawn(|| {
            let mut turn = 0;
            while !done.load(Ordering::SeqCst) {
                let _polling = Polling::begin(&*fabrics[1]);
                for _ in 0..turn % 3 {
                    fabrics[1].poll(&mut |from, head, bulk| count(&*fabrics[1], from, head, bulk));
                }
                turn += 1;
                std::thread::yield_now();
            }
        });
        // Each message is sent after the previous one was received: a single lost wake-up stops the exchange.
        for round in 1..=ROUNDS {
            fabrics[0].send(NodeId(1), b"ping", &[]).unwrap();
            if round == ROUNDS {
                done.store(true, Ordering::SeqCst);
            }
            while received.load(Ordering::SeqCst) < round {
                std::thread::yield_now();
            }
        }
    });
    drop(service);
    assert_eq!(received.load(Ordering::SeqCst), ROUNDS);
}

fn what_is_left_is_received_by_those_who_wait_or_are_prompted(make: Make) {
    let fabrics = make(2);
    let service = Service::start(&fabrics[1], |_, _, _, _| {});
    for round in 0..300 {
        match round % 3 {
            0 => fabrics[1].begin_waiting(),
            1 => fabrics[0].leave(NodeId(1), b"word").unwrap(),
            _ => {}
        }
        match round % 3 {
            1 => fabrics[1].begin_waiting(),
            _ => fabrics[0].leave(NodeId(1), b"word").unwrap(),
        }
        if round % 3 == 2 {
            fabrics[0].prompt(NodeId(1));
        }
        service.wait_for(round + 1);
        if round % 3 < 2 {
            fabrics[1].end_waiting();
        }
    }
    assert_eq!(fabrics[0].leave(NodeId(2), b"x"), Err(SendError::NoSuchPeer(NodeId(2))));
}

fn interrupts_end_a_wait(make: Make) {
    let fabrics = make(2);
    let fabric = &fabrics[0];
    fabric.interrupt();
    fabric.wait(None);
    // Also with a polling thread.
    let _polling = Polling::begin(&**fabric);
    fabric.interrupt();
    fabric.wait(None);
    let (began, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=200 {
                began.store(round, Ordering::SeqCst);
                fabric.wait(None);
                ended.store(round, Ordering::SeqCst);
            }
        });
        for round in 1..=200 {
            while began.load(Ordering::SeqCst) < round {
                std::thread::yield_now();
            }
            while ended.load(Ordering::SeqCst) < round {
                fabric.interrupt();
                std::thread::yield_now();
            }
        }
    });
}

fn waits_end_in_time(make: Make) {
    let fabrics = make(2);
    let start = std::time::Instant::now();
    let mut waits = 0;
    // A wait may end early, but not for ever.
    while start.elapsed() < Duration::from_millis(20) {
        fabrics[0].wait(Some(Duration::from_millis(20)));
        waits += 1;
    }
    assert!(waits < 100, "{waits} waits of 20 ms in {:?}", start.elapsed());
    assert_eq!(fabrics[0].poll(&mut |_, _, _| panic!("nobody sent anything")), 0);
}

fn floods_in_both_directions_flow(make: Make) {
    const MESSAGES: u32 = 400;
    let fabrics = make(2);
    // Every request is answered from inside `deliver` with as much data, while this side floods as well.
    let answer = |fabric: &dyn Fabric, from: NodeId, head: &[u8], bulk: &[u8]| {
        if head[0] == 0 {
            fabric.send(from, &[1], &[bulk.into()]).unwrap();
        }
    };
    let services: Vec<_> = fabrics.iter().map(|fabric| Service::start(fabric, answer)).collect();
    std::thread::scope(|scope| {
        for fabric in &fabrics {
            let to = NodeId(1 - fabric.node().0);
            scope.spawn(move || {
                for _ in 0..MESSAGES {
                    fabric.send(to, &[0], &[(&[7; 40_000]).into()]).unwrap();
                }
            });
        }
    });
    // No node may end before all have received everything: it may still have to send.
    for service in &services {
        service.wait_for(2 * MESSAGES as usize);
    }
}

fn receivers_may_poll_and_send(make: Make) {
    let fabrics = make(2);
    let nested = Arc::new(AtomicUsize::new(0));
    let service = {
        let nested = Arc::clone(&nested);
        Service::start(&fabrics[1], move |fabric, from, head, bulk| {
            nested.fetch_add(fabric.poll(&mut |_, _, _| {}), Ordering::Relaxed);
            fabric.send(from, head, &[bulk.into()]).unwrap();
        })
    };
    let asker =
        Service::start(&fabrics[0], |_, _, head, bulk| assert_eq!((head, bulk), (&b"ask"[..], &b"me"[..])));
    for _ in 0..100 {
        fabrics[0].send(NodeId(1), b"ask", &[b"me".into()]).unwrap();
    }
    asker.finish_after(100);
    service.finish_after(100);
    assert_eq!(nested.load(Ordering::Relaxed), 0);
}

fn everything_is_counted(make: Make) {
    let fabrics = make(3);
    let service = Service::start(&fabrics[2], |_, _, _, _| {});
    for _ in 0..10 {
        fabrics[0].send(NodeId(2), &[0; 3], &[(&[0; 4]).into(), (&[0; 5]).into()]).unwrap();
        fabrics[1].send(NodeId(2), &[0; 30], &[]).unwrap();
    }
    service.finish_after(20);
    let (sent, received) = (fabrics[0].counters(), fabrics[2].counters());
    assert_eq!((sent.messages_sent, sent.bytes_sent, sent.messages_received), (10, 120, 0));
    assert_eq!((received.messages_received, received.bytes_received, received.bytes_sent), (20, 420, 0));
}
