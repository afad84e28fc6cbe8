//! Peers that misbehave, made of the protocol's own parts.

use crate::tcp::frame::{Channel, prefix};
use crate::tcp::handshake::{Handshake, Identity, Step};
use crate::tcp::mesh::{Link, establish};
use crate::tcp::{Security, TcpConfig, TcpFabric};
use crate::{Event, Fabric, LostReason, SendError};
use gondwana_topology::NodeId;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

const SECRET: [u8; 32] = [3; 32];

/// Makes a connection to node 0 of 3 as node `node`.
fn join(address: SocketAddr, node: u16) -> io::Result<Channel> {
    let me = Identity { node: NodeId(node), nodes: 3, run: [0; 16], secret: Some(&SECRET) };
    let (mut handshake, hello) = Handshake::initiate(me, NodeId(0));
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(&hello)?;
    loop {
        let mut flight = vec![0; handshake.needs()];
        stream.read_exact(&mut flight)?;
        match handshake.advance(&flight).expect("the secret is right") {
            Step::Wait => {}
            Step::Send(bytes) => stream.write_all(&bytes)?,
            Step::Done(_, _, channel) => return Ok(channel),
        }
    }
}

#[test]
fn a_second_node_of_the_same_number_is_turned_away() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let config = TcpConfig {
        node: NodeId(0),
        peers: vec![address; 3],
        run: [0; 16],
        security: Security::Encrypted(SECRET),
        timeout: Duration::from_secs(20),
        silence: Duration::from_secs(20),
    };
    std::thread::scope(|scope| {
        let links = scope.spawn(|| establish(listener, &config).unwrap());
        assert!(join(address, 1).is_ok());
        assert!(join(address, 1).is_err());
        assert!(join(address, 2).is_ok());
        let peers: Vec<_> = links.join().unwrap().into_iter().map(|link| link.peer).collect();
        assert_eq!(peers, [NodeId(1), NodeId(2)]);
    });
}

/// A fabric of node 0 of 3, and the far ends of its two connections.
fn exposed() -> (TcpFabric, [TcpStream; 2]) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut links = Vec::new();
    let ends = [1, 2].map(|peer| {
        let end = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        links.push(Link { peer: NodeId(peer), stream, channel: Channel::Plain, elsewhere: false });
        end
    });
    (TcpFabric::new(NodeId(0), 3, links, Duration::from_secs(20)).unwrap(), ends)
}

/// A frame that carries these bytes.
fn frame(payload: &[u8]) -> Vec<u8> {
    [&u16::try_from(payload.len()).unwrap().to_le_bytes(), payload].concat()
}

/// Polls until a peer is lost, and returns that with the messages received until then.
fn lose(fabric: &TcpFabric) -> (Event, Vec<(NodeId, Vec<u8>)>) {
    let mut heads = Vec::new();
    loop {
        fabric.wait(None);
        fabric.poll(&mut |from, head, _| heads.push((from, head.to_vec())));
        if let Some(event) = fabric.next_event() {
            return (event, heads);
        }
    }
}

#[test]
fn a_peer_that_sends_nonsense_is_lost_and_the_others_stay() {
    let (fabric, [mut one, mut two]) = exposed();
    let message = frame(&[&prefix(2, 0)[..], b"hi"].concat());
    one.write_all(&[&message, &frame(&[0xff; 64])[..]].concat()).unwrap();
    let (event, heads) = lose(&fabric);
    assert_eq!(heads, [(NodeId(1), b"hi".to_vec())]);
    assert_eq!(event, Event::Lost(NodeId(1), LostReason::Damaged("a message is too long")));
    assert_eq!(fabric.send(NodeId(1), b"x", &[]), Err(SendError::Lost(NodeId(1))));
    // The connection is closed on this side too.
    assert!(matches!(one.read(&mut [0]), Ok(0) | Err(_)));

    two.write_all(&message).unwrap();
    fabric.send(NodeId(2), b"yo", &[]).unwrap();
    let mut answer = [0; 12];
    two.read_exact(&mut answer).unwrap();
    assert_eq!(answer[..], frame(&[&prefix(2, 0)[..], b"yo"].concat()));
    let mut count = 0;
    while count == 0 {
        fabric.wait(None);
        count += fabric.poll(&mut |from, _, _| assert_eq!(from, NodeId(2)));
    }
}

#[test]
fn a_truncated_message_is_not_delivered() {
    let (fabric, [mut one, _two]) = exposed();
    let whole = frame(&[&prefix(2, 5)[..], b"hi", b"bulk"].concat());
    one.write_all(&whole).unwrap();
    one.write_all(&whole[..3]).unwrap();
    drop(one);
    assert_eq!(lose(&fabric), (Event::Lost(NodeId(1), LostReason::Closed), vec![]));
}

#[test]
fn what_a_lost_peer_did_not_take_is_forgotten() {
    let (fabric, [one, _two]) = exposed();
    while fabric.unsent() < 10_000_000 {
        fabric.send(NodeId(1), b"", &[(&[0; 500_000]).into()]).unwrap();
    }
    drop(one);
    let (event, _) = lose(&fabric);
    assert!(matches!(event, Event::Lost(NodeId(1), _)), "{event:?}");
    assert_eq!(fabric.unsent(), 0);
}
