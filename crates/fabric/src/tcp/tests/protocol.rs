use crate::tcp::frame::{Channel, Decoder, prefix};
use crate::tcp::handshake::{FIRST_FRAME, Failure, Handshake, Identity, Refusal, Step};
use crate::tcp::queue::ByteQueue;
use crate::tcp::shake::shake;
use crate::{MAX_BULK, MAX_HEAD};
use gondwana_topology::NodeId;
use proptest::prelude::*;

const SECRET: [u8; 32] = [3; 32];

fn identity(node: u16, secret: Option<&[u8; 32]>) -> Identity<'_> {
    Identity { node: NodeId(node), nodes: 3, run: [9; 16], secret }
}

/// Frames of one message each, as sent.
fn frames(channel: &Channel, messages: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let (mut plain, mut wire, mut nonce) = (ByteQueue::default(), ByteQueue::default(), FIRST_FRAME);
    for (head, bulk) in messages {
        plain.extend(&prefix(head.len(), bulk.len()));
        plain.extend(head);
        plain.extend(bulk);
        while !plain.is_empty() {
            channel.seal(nonce, &mut plain, &mut wire);
            nonce += 1;
        }
    }
    wire.bytes().to_vec()
}

type Messages = Vec<(Vec<u8>, Vec<u8>)>;

fn decode(channel: &Channel, bytes: &[u8]) -> (Messages, Result<(), &'static str>) {
    let mut messages = Vec::new();
    let mut decoder = Decoder::new(FIRST_FRAME);
    let result =
        decoder.feed(channel, bytes, &mut |head, bulk| messages.push((head.to_vec(), bulk.to_vec())));
    (messages, result)
}

#[test]
fn equals_shake_hands() {
    for secret in [None, Some(&SECRET)] {
        let (ours, theirs) = shake(identity(2, secret), identity(1, secret)).unwrap();
        let message = vec![(b"head".to_vec(), vec![5; 100_000])];
        let (received, result) = decode(&theirs, &frames(&ours, &message));
        assert_eq!((received, result), (message, Ok(())));
    }
}

#[test]
fn others_are_refused() {
    let secret = Some(&SECRET);
    let refusal = |initiator, responder| shake(initiator, responder).err();
    let other_run = Identity { run: [8; 16], ..identity(2, secret) };
    assert_eq!(refusal(other_run, identity(1, secret)), Some(Failure::Refused(Refusal::Run)));
    let larger = Identity { nodes: 4, ..identity(2, secret) };
    assert_eq!(refusal(larger, identity(1, secret)), Some(Failure::Refused(Refusal::Run)));
    // A lower number does not connect, no node connects to itself, and numbers beyond the last are invalid.
    for number in [0, 1, 3] {
        let caller = identity(number, secret);
        assert_eq!(refusal(caller, identity(1, secret)), Some(Failure::Refused(Refusal::Run)));
    }
    assert_eq!(refusal(identity(2, None), identity(1, secret)), Some(Failure::Refused(Refusal::Security)));
    assert_eq!(refusal(identity(2, secret), identity(1, None)), Some(Failure::Refused(Refusal::Security)));
    let guess = [4; 32];
    assert_eq!(refusal(identity(2, Some(&guess)), identity(1, secret)), Some(Failure::NotAuthentic));
}

#[test]
fn another_version_is_named() {
    let (_, mut hello) = Handshake::initiate(identity(2, None), NodeId(1));
    hello[8] = 77;
    let failure = Handshake::respond(identity(1, None)).advance(&hello).err().unwrap();
    assert_eq!(failure, Failure::Refused(Refusal::Version(77)));
    // The caller learns the version of the responder, which here is his own.
    let (mut caller, _) = Handshake::initiate(identity(2, None), NodeId(1));
    let told = caller.advance(&failure.reply()).err();
    assert_eq!(told, Some(Failure::Refused(Refusal::Version(crate::tcp::handshake::VERSION))));
}

/// A replayed handshake does not make a peer: the confirmation does not match.
#[test]
fn a_replayed_handshake_ends_unconfirmed() {
    let secret = Some(&SECRET);
    let (mut caller, hello) = Handshake::initiate(identity(2, secret), NodeId(1));
    let respond = |called: &mut Handshake<'_>| {
        let (first, second) = hello.split_at(called.needs());
        assert!(matches!(called.advance(first), Ok(Step::Wait)));
        let Ok(Step::Send(answer)) = called.advance(second) else { panic!("the hello is authentic") };
        answer
    };
    let mut called = Handshake::respond(identity(1, secret));
    let answer = respond(&mut called);
    let (verdict, message) = answer.split_at(caller.needs());
    assert!(matches!(caller.advance(verdict), Ok(Step::Wait)));
    let Ok(Step::Send(confirmation)) = caller.advance(message) else { panic!("the answer is authentic") };
    assert!(matches!(called.advance(&confirmation), Ok(Step::Done(_, NodeId(2), _))));

    let mut replayed = Handshake::respond(identity(1, secret));
    respond(&mut replayed);
    assert_eq!(replayed.advance(&confirmation).err(), Some(Failure::NotAuthentic));
}

#[test]
fn lengths_beyond_the_limits_are_damage() {
    for (head, bulk) in [(MAX_HEAD + 1, 0), (0, MAX_BULK + 1), (usize::MAX, usize::MAX)] {
        let mut bytes = vec![8, 0];
        bytes.extend(prefix(head, bulk));
        assert_eq!(decode(&Channel::Plain, &bytes).1, Err("a message is too long"));
    }
    assert_eq!(decode(&Channel::Plain, &[0, 0]).1, Err("a frame carries nothing"));
}

#[test]
fn frames_must_come_unchanged_and_in_order() {
    let secret = Some(&SECRET);
    let (ours, theirs) = shake(identity(2, secret), identity(1, secret)).unwrap();
    let messages = [(b"first".to_vec(), vec![]), (b"other".to_vec(), vec![])];
    let wire = frames(&ours, &messages);
    assert_eq!(decode(&theirs, &wire).0, messages);
    let (first, second) = wire.split_at(wire.len() / 2);
    let not_authentic = Err("a frame is not authentic");
    assert_eq!(decode(&theirs, second), (vec![], not_authentic));
    assert_eq!(decode(&theirs, &[first, first].concat()), (messages[..1].to_vec(), not_authentic));
    // Each direction has its own key: a frame cannot be sent back.
    assert_eq!(decode(&ours, &wire), (vec![], not_authentic));
}

proptest! {
    #[test]
    fn messages_pass_in_pieces(
        messages in proptest::collection::vec(
            (proptest::collection::vec(any::<u8>(), 0..40), prop_oneof![0..60usize, 60_000..140_000usize]), 1..6),
        cuts in proptest::collection::vec(1..70_000usize, 1..8),
        encrypt in any::<bool>(),
    ) {
        let secret = encrypt.then_some(&SECRET);
        let (ours, theirs) = shake(identity(2, secret), identity(1, secret)).unwrap();
        let messages: Vec<_> = messages.into_iter().map(|(head, bulk)| (head, vec![0x77; bulk])).collect();
        let wire = frames(&ours, &messages);
        let mut received = Vec::new();
        let mut decoder = Decoder::new(FIRST_FRAME);
        let (mut rest, mut cuts) = (&wire[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, others) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
            let mut collect = |head: &[u8], bulk: &[u8]| received.push((head.to_vec(), bulk.to_vec()));
            prop_assert_eq!(decoder.feed(&theirs, piece, &mut collect), Ok(()));
            rest = others;
        }
        prop_assert_eq!(received, messages);
    }

    /// The decoder survives arbitrary bytes in arbitrary pieces; delivered messages are within the limits.
    #[test]
    fn arbitrary_bytes_are_survived(pieces in proptest::collection::vec(
        proptest::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 0..300), 0..20)) {
        let mut decoder = Decoder::new(FIRST_FRAME);
        for piece in pieces {
            let check = &mut |head: &[u8], bulk: &[u8]| {
                assert!(head.len() <= MAX_HEAD && bulk.len() <= MAX_BULK);
            };
            if decoder.feed(&Channel::Plain, &piece, check).is_err() {
                break;
            }
        }
    }

    /// One changed bit anywhere in an encrypted stream: no changed message is delivered, and the damage is detected
    /// unless a longer length makes the decoder wait for more.
    #[test]
    fn a_changed_bit_is_noticed(at in any::<prop::sample::Index>(), bit in 0..8) {
        let secret = Some(&SECRET);
        let (ours, theirs) = shake(identity(2, secret), identity(1, secret)).unwrap();
        let messages = [(b"head".to_vec(), vec![1; 100]), (b"tail".to_vec(), vec![2; 50])];
        let mut wire = frames(&ours, &messages);
        let at = at.index(wire.len());
        wire[at] ^= 1_u8 << bit;
        let (received, result) = decode(&theirs, &wire);
        prop_assert!(messages.starts_with(&received) && received.len() < 2);
        // The frames have 130 and 80 bytes.
        prop_assert!(result.is_err() || at % 130 < 2);
    }

    /// Arbitrary bytes make no connection, at any step.
    #[test]
    fn arbitrary_flights_make_no_peer(
        flights in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..100), 1..5),
        hello_first in any::<bool>(), encrypt in any::<bool>(),
    ) {
        let secret = encrypt.then_some(&SECRET);
        let mut side = if hello_first {
            Handshake::initiate(identity(2, secret), NodeId(1)).0
        } else {
            Handshake::respond(identity(1, secret))
        };
        for flight in flights {
            match side.advance(&flight) {
                Ok(Step::Done(..)) => prop_assert!(false, "a stranger became a peer"),
                Ok(_) => {}
                Err(_) => break,
            }
        }
    }
}
