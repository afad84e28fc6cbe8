use super::ring::{Consumer, Damaged, LINE, Lines, Producer, RingControl, least_lines};
use super::*;
use gondwana_racing::RacingBytesMut;
use proptest::prelude::*;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::AtomicU64;

/// A small ring in ordinary memory.
struct SmallLines(Box<[AtomicU64]>);

impl SmallLines {
    fn new(lines: usize) -> Self {
        Self((0..lines * LINE / 8).map(|_| AtomicU64::new(0)).collect())
    }

    fn base(&self) -> *mut u8 {
        self.0.as_ptr().cast_mut().cast()
    }
}

impl Lines for SmallLines {
    fn count(&self) -> usize {
        self.0.len() * 8 / LINE
    }

    fn header(&self, line: usize) -> &AtomicU64 {
        &self.0[line * LINE / 8]
    }

    unsafe fn fill(&self, offset: usize, bytes: RacingBytes<'_>) {
        assert!(offset + bytes.len() <= self.0.len() * 8);
        // SAFETY: inside the memory, which is made of cells; the test has one thread.
        unsafe { RacingBytesMut::new(self.base().add(offset), bytes.len()) }.copy_from(bytes);
    }

    unsafe fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        assert!(offset + len <= self.0.len() * 8 || len == 0);
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(self.base().add(offset), len) }
    }
}

proptest! {
    /// For all lengths and all interleavings of sending and receiving: accepted messages arrive unchanged and in
    /// order, and an empty ring accepts every message.
    #[test]
    fn a_ring_is_a_queue(turns in proptest::collection::vec((0..200usize, 0..300usize, 0..4usize, any::<bool>()), 1..200)) {
        let lines = SmallLines::new(least_lines(200, 300).next_power_of_two());
        let control = RingControl::default();
        let (mut producer, mut consumer) = (Producer::new(), Consumer::new());
        let mut expected = VecDeque::new();
        for (number, (head_len, bulk_len, taken, left)) in (0..).zip(turns) {
            let (head, mut bulk) = (vec![number; head_len], vec![!number; bulk_len]);
            let left = left && producer.leave(&lines, &control, &head);
            if left {
                bulk.clear();
            }
            let (first, second) = bulk.split_at(bulk.len() / 2);
            if left || producer.push_or_block(&lines, &control, &head, &[first.into(), second.into()]) {
                expected.push_back((head, bulk, left));
            } else {
                prop_assert!(!expected.is_empty());
                prop_assert!(control.is_blocked());
            }
            for _ in 0..taken {
                prop_assert_eq!(control.is_ready(&lines), !expected.is_empty());
                prop_assert_eq!(control.is_urgent(&lines), expected.iter().any(|(.., left)| !left));
                let popped = consumer.pop(&lines, &control, |head, bulk| {
                    let (expected_head, expected_bulk, _) = expected.pop_front().expect("one was published");
                    assert_eq!((head, bulk), (&*expected_head, &*expected_bulk));
                });
                prop_assert!(popped.is_ok());
            }
            if taken > 0 {
                let _ = consumer.take_blocked(&control);
                prop_assert!(!control.is_blocked());
            }
        }
    }

    /// For all contents that another process may write into a ring, taking from it terminates and stays inside the
    /// ring.
    #[test]
    fn a_damaged_ring_is_survived(header in any::<u64>(), flags in 0..4u64) {
        let lines = SmallLines::new(8);
        lines.header(0).store(header >> 2 | flags << 62, Ordering::Relaxed);
        let (mut consumer, control) = (Consumer::new(), RingControl::default());
        for _ in 0..20 {
            let _ = consumer.pop(&lines, &control, |_, _| {});
        }
    }
}

#[test]
fn records_that_no_producer_writes_are_damage() {
    for header in [1, 1 << 63 | 1000, 1 << 63 | 1000 << 32, 3 << 62 | 1, u64::MAX] {
        let lines = SmallLines::new(8);
        lines.header(0).store(header, Ordering::Relaxed);
        let result = Consumer::new().pop(&lines, &RingControl::default(), |_, _| panic!("delivered"));
        assert_eq!(result, Err(Damaged), "{header:x}");
    }
}

#[test]
fn a_lightly_used_ring_stays_within_its_first_part() {
    let lines = SmallLines::new(1024);
    let (mut producer, mut consumer) = (Producer::new(), Consumer::new());
    let control = RingControl::default();
    for _ in 0..10_000 {
        assert!(producer.push(&lines, &control, &[1; 100], &[]));
        assert_eq!(consumer.pop(&lines, &control, |_, _| {}), Ok(Some(100)));
    }
    assert!((256..1024).all(|line| lines.header(line).load(Ordering::Relaxed) == 0));
}

#[test]
fn a_damaged_ring_loses_its_sender_once() {
    let segment = ShmSegment::create(3, DEFAULT_RING_BYTES).unwrap();
    let fabrics = [0, 1, 2].map(|node| ShmFabric::attach(&segment, NodeId(node), 3).unwrap());
    fabrics[0].begin(&fabrics[0].outgoing[1]);
    fabrics[0].outgoing[1].lines.header(0).store(1, Ordering::Relaxed);
    fabrics[2].send(NodeId(1), b"unharmed", &[]).unwrap();
    let mut heads = Vec::new();
    for _ in 0..3 {
        fabrics[1].poll(&mut |from, head, _| heads.push((from, head.to_vec())));
    }
    assert_eq!(heads, [(NodeId(2), b"unharmed".to_vec())]);
    // The event ends a wait.
    fabrics[1].wait(None);
    assert!(matches!(fabrics[1].next_event(), Some(Event::Lost(NodeId(0), LostReason::Damaged(_)))));
    assert_eq!(fabrics[1].next_event(), None);
    assert_eq!(fabrics[1].send(NodeId(0), b"x", &[]), Err(SendError::Lost(NodeId(0))));
}

#[test]
fn segments_are_checked() {
    for (nodes, ring_bytes) in
        [(1, DEFAULT_RING_BYTES), (257, DEFAULT_RING_BYTES), (2, 1 << 20), (2, 5_000_000)]
    {
        assert!(matches!(ShmSegment::create(nodes, ring_bytes), Err(SegmentError::Parameters { .. })));
    }
    let segment = ShmSegment::create(2, DEFAULT_RING_BYTES).unwrap();
    let attach = |node, nodes| ShmFabric::attach(&segment, NodeId(node), nodes).err();
    assert!(matches!(attach(0, 3), Some(SegmentError::Mismatch { nodes: 3 })));
    assert!(matches!(attach(2, 2), Some(SegmentError::Parameters { .. })));
    assert!(attach(1, 2).is_none());
    assert!(matches!(attach(1, 2), Some(SegmentError::Taken(NodeId(1)))));
    let other = File::open("/dev/null").unwrap();
    assert!(matches!(ShmFabric::attach(&other, NodeId(0), 2), Err(SegmentError::Mismatch { .. })));
}

/// Polling a ring allocates its first page: 256 idle nodes would take 256 MiB.
#[test]
fn rings_without_messages_are_not_looked_into() {
    let segment = ShmSegment::create(8, DEFAULT_RING_BYTES).unwrap();
    let blocks = || File::from(segment.try_clone().unwrap()).metadata().unwrap().blocks();
    let fabrics: Vec<_> = (0..8).map(|node| ShmFabric::attach(&segment, NodeId(node), 8).unwrap()).collect();
    let before = blocks();
    for fabric in &fabrics {
        assert_eq!(fabric.poll(&mut |_, _, _| panic!("nobody has sent anything")), 0);
        assert!(!fabric.is_ready() && !fabric.is_urgent());
        fabrics.iter().for_each(|other| fabric.prompt(other.node));
    }
    assert_eq!(blocks(), before);
    fabrics[7].send(NodeId(0), b"hello", &[]).unwrap();
    assert!(fabrics[0].is_ready() && fabrics[0].is_urgent());
    let mut from = vec![];
    fabrics[0].poll(&mut |node, _, _| from.push(node));
    assert_eq!(from, [NodeId(7)]);
    // One page of one ring.
    assert_eq!(blocks(), before + 8);
}

#[test]
fn nodes_that_are_not_there_have_no_rings() {
    let segment = ShmSegment::create(2, DEFAULT_RING_BYTES).unwrap();
    let [first, _second] = [0, 1].map(|node| ShmFabric::attach(&segment, NodeId(node), 2).unwrap());
    (0..256).for_each(|node| first.map.senders(NodeId(0)).note(NodeId(node)));
    assert_eq!(first.map.senders(NodeId(0)).numbers().collect::<Vec<_>>(), (0..256).collect::<Vec<_>>());
    assert_eq!(first.poll(&mut |_, _, _| panic!("nobody has sent anything")), 0);
}
