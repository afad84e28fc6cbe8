//! The shared memory fabric between processes.

use gondwana_fabric::{DEFAULT_RING_BYTES, Fabric, ShmFabric, ShmSegment};
use gondwana_topology::NodeId;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::process::{Command, Stdio};

const NODES: u16 = 4;
const MESSAGES: u32 = 3000;
/// The exit status of a child that completed; a test run without tests has another one.
const DONE: i32 = 77;
const NODE: &str = "FABRIC_TEST_NODE";

/// Every node floods every other and checks what it gets; asleep when nothing comes.
fn run(fabric: &ShmFabric) {
    let me = fabric.node();
    let mut next = [0_u32; NODES as usize];
    let mut receive = |from: NodeId, head: &[u8], bulk: &[u8]| {
        assert_eq!(head, [u32::from(from.0), next[from.index()]].map(u32::to_le_bytes).concat());
        assert!(bulk.iter().all(|&byte| byte == head[4]));
        assert_eq!(bulk.len(), next[from.index()] as usize * 7 % 9000);
        next[from.index()] += 1;
    };
    let mut left = MESSAGES as usize * usize::from(NODES - 1);
    for number in 0..MESSAGES {
        let head = [u32::from(me.0), number].map(u32::to_le_bytes).concat();
        let bulk = vec![number.to_le_bytes()[0]; number as usize * 7 % 9000];
        for to in (0..NODES).map(NodeId).filter(|to| *to != me) {
            fabric.send(to, &head, &[(&bulk).into()]).unwrap();
        }
        if number % 100 == 0 {
            left -= fabric.poll(&mut receive);
        }
    }
    while left > 0 || fabric.unsent() > 0 {
        let taken = fabric.poll(&mut receive);
        left -= taken;
        // The limit turns a lost wake-up into a failure instead of a hang.
        if taken == 0 && (left > 0 || fabric.unsent() > 0) {
            let limit = std::time::Duration::from_secs(60);
            let start = std::time::Instant::now();
            fabric.wait(Some(limit));
            assert!(start.elapsed() < limit, "{left} messages are missing");
        }
    }
}

#[test]
fn processes_exchange_messages() {
    if let Ok(node) = std::env::var(NODE) {
        // A child: the segment is its standard input.
        // SAFETY: nobody else in this process uses it.
        let segment = unsafe { OwnedFd::from_raw_fd(0) };
        run(&ShmFabric::attach(&segment, NodeId(node.parse().unwrap()), NODES.into()).unwrap());
        std::process::exit(DONE);
    }
    let segment = ShmSegment::create(NODES.into(), DEFAULT_RING_BYTES).unwrap();
    assert!(segment.as_fd().as_raw_fd() > 2);
    let test = std::env::current_exe().unwrap();
    let child = |node: u16| {
        Command::new(&test)
            .args(["--exact", "processes_exchange_messages", "--nocapture"])
            .env(NODE, node.to_string())
            .stdin(segment.try_clone().unwrap())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..NODES).map(child).collect();
    for mut child in children {
        assert_eq!(child.wait().unwrap().code(), Some(DONE));
    }
}
