//! The start of a run over TCP with strangers on the ports.

use gondwana_fabric::{ConnectError, Event, LostReason, Security, SendError, TcpConfig, TcpFabric};
use gondwana_topology::{Id, NodeId};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

#[allow(dead_code, reason = "other tests use the rest")]
mod support;
use support::{Service, encrypted, meeting};

const SECRET: Security = Security::Encrypted([5; 32]);

/// Starts all nodes at once.
fn start(nodes: Vec<(TcpListener, TcpConfig)>) -> Vec<Result<TcpFabric, ConnectError>> {
    std::thread::scope(|scope| {
        let connect = |(listener, config)| scope.spawn(move || TcpFabric::connect(listener, &config));
        let threads: Vec<_> = nodes.into_iter().map(connect).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn nodes(count: usize) -> Vec<(TcpListener, TcpConfig)> {
    let (listeners, configs) = meeting(count, &SECRET);
    listeners.into_iter().zip(configs).collect()
}

/// Bytes without pattern.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..len).map(next).collect()
}

/// The hello of a node with another secret, as it leaves that node.
fn recorded_hello(run: &TcpConfig) -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = TcpConfig { timeout: Duration::from_secs(1), ..run.clone() };
    config.peers[0] = listener.local_addr().unwrap();
    config.security = Security::Encrypted([6; 32]);
    let own = TcpListener::bind("127.0.0.1:0").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| TcpFabric::connect(own, &config).err().expect("nobody answers"));
        let mut hello = vec![0; 82];
        listener.accept().unwrap().0.read_exact(&mut hello).unwrap();
        hello
    })
}

/// Strangers connect before the nodes: silent ones, more than the limit, and ones that send arbitrary bytes.
#[test]
fn strangers_do_not_disturb_the_start() {
    let nodes = nodes(3);
    let hello = recorded_hello(&nodes[1].1);
    let address = nodes[0].1.peers[0];
    let silent: Vec<_> = (0..80).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut talking =
        vec![b"GET / HTTP/1.1\r\n\r\n".to_vec(), hello.clone(), hello[..40].to_vec(), b"GONDWANA".to_vec()];
    talking.extend((0..30_u32).map(|seed| noise(u64::from(seed), 10 + 20 * seed as usize)));
    let talking: Vec<_> = talking
        .iter()
        .map(|words| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(words).unwrap();
            stream
        })
        .collect();
    let fabrics: Vec<_> = start(nodes).into_iter().map(Result::unwrap).collect();
    // The listener is closed, and so are all connections of strangers.
    for mut stranger in silent.into_iter().chain(talking) {
        assert!(matches!(stranger.read(&mut [0]), Ok(0) | Err(_)));
    }
    assert!(TcpStream::connect(address).is_err());
    let fabrics: Vec<std::sync::Arc<dyn gondwana_fabric::Fabric>> =
        fabrics.into_iter().map(|fabric| std::sync::Arc::new(fabric) as _).collect();
    let service = Service::start(&fabrics[2], |_, _, head, _| assert_eq!(head, b"still here"));
    fabrics[0].send(NodeId(2), b"still here", &[]).unwrap();
    fabrics[1].send(NodeId(2), b"still here", &[]).unwrap();
    service.finish_after(2);
}

fn hurry(config: &mut TcpConfig) {
    config.timeout = Duration::from_millis(300);
}

#[test]
fn another_secret_makes_no_connection() {
    let mut nodes = nodes(2);
    nodes.iter_mut().for_each(|(_, config)| hurry(config));
    nodes[1].1.security = Security::Encrypted([6; 32]);
    for (index, result) in start(nodes).into_iter().enumerate() {
        let Err(ConnectError::Timeout { missing, .. }) = result else { panic!("node {index} is connected") };
        assert_eq!(missing, [NodeId::from_index(1 - index)]);
    }
}

#[test]
fn a_node_of_another_run_is_told() {
    let changes: [fn(&mut TcpConfig); 2] =
        [|config| config.run = [2; 16], |config| config.security = Security::Plain];
    for change in changes {
        let mut nodes = nodes(2);
        nodes[0].1.timeout = Duration::from_secs(2);
        change(&mut nodes[1].1);
        let mut results = start(nodes).into_iter();
        assert!(matches!(results.next(), Some(Err(ConnectError::Timeout { .. }))));
        assert!(matches!(results.next(), Some(Err(ConnectError::Refused { node: NodeId(0), .. }))));
    }
}

#[test]
fn absent_nodes_are_named() {
    let mut nodes = nodes(4);
    nodes.truncate(2);
    nodes.iter_mut().for_each(|(_, config)| hurry(config));
    for result in start(nodes) {
        let error = result.err().expect("two are absent");
        assert!(error.to_string().starts_with("no connection to nodes 2, 3 within 300ms"), "{error}");
    }
}

#[test]
fn impossible_nodes_are_refused() {
    let address: SocketAddr = "127.0.0.1:1".parse().unwrap();
    for (node, count) in [(0, 1), (2, 2), (0, 300)] {
        let (mut listeners, mut configs) = meeting(1, &SECRET);
        let (listener, mut config) = (listeners.remove(0), configs.remove(0));
        (config.node, config.peers) = (NodeId(node), vec![address; count]);
        let result = TcpFabric::connect(listener, &config);
        assert!(matches!(result, Err(ConnectError::Parameters { .. })));
    }
}

#[test]
fn the_secret_is_not_printed() {
    let (_, configs) = meeting(1, &Security::Encrypted([251; 32]));
    assert!(!format!("{:?}", configs[0]).contains("251, 251"));
}

#[test]
fn a_peer_that_ends_is_lost() {
    let mut fabrics = encrypted(3);
    fabrics[1].send(NodeId(0), b"last words", &[]).unwrap();
    drop(fabrics.remove(1));
    let (zero, two) = (&fabrics[0], &fabrics[1]);
    let mut heads = Vec::new();
    for fabric in [zero, two] {
        let event = loop {
            fabric.wait(None);
            fabric.poll(&mut |_, head, _| heads.push(head.to_vec()));
            if let Some(event) = fabric.next_event() {
                break event;
            }
        };
        assert_eq!(event, Event::Lost(NodeId(1), LostReason::Closed));
        assert_eq!(fabric.send(NodeId(1), b"", &[]), Err(SendError::Lost(NodeId(1))));
    }
    assert_eq!(heads, [b"last words"]);
    two.send(NodeId(0), b"go on", &[]).unwrap();
    while zero.poll(&mut |from, head, _| assert_eq!((from, head), (NodeId(2), &b"go on"[..]))) == 0 {
        zero.wait(None);
    }
}
