//! Entry points for the fuzz targets of `crates/fuzz`: bytes of strangers and of peers.

use super::frame::{Channel, Decoder};
use super::handshake::{FIRST_FRAME, Handshake, Identity, Step};
use crate::{MAX_BULK, MAX_HEAD};
use gondwana_topology::NodeId;

const SECRET: [u8; 32] = [3; 32];

type Messages = Vec<(Vec<u8>, Vec<u8>)>;

fn identity(node: u16, secret: Option<&[u8; 32]>) -> Identity<'_> {
    Identity { node: NodeId(node), nodes: 3, run: [9; 16], secret }
}

fn decode<'a>(channel: &Channel, pieces: impl Iterator<Item = &'a [u8]>) -> (Messages, bool) {
    let mut messages = vec![];
    let mut decoder = Decoder::new(FIRST_FRAME);
    for piece in pieces {
        let mut deliver = |head: &[u8], bulk: &[u8]| {
            assert!(head.len() <= MAX_HEAD && bulk.len() <= MAX_BULK, "limits hold");
            messages.push((head.to_vec(), bulk.to_vec()));
        };
        if decoder.feed(channel, piece, &mut deliver).is_err() {
            return (messages, false);
        }
    }
    (messages, true)
}

/// Bytes of an established connection: the first byte is the length of the pieces in which the others arrive.
///
/// # Panics
/// If the result depends on the pieces, or limits are exceeded.
pub fn frames(bytes: &[u8]) {
    let Some((&piece, stream)) = bytes.split_first() else { return };
    let whole = decode(&Channel::Plain, std::iter::once(stream));
    let cut = decode(&Channel::Plain, stream.chunks(usize::from(piece).max(1)));
    assert_eq!(whole, cut);
}

/// Bytes during a handshake: the first byte selects the side and encryption, the others are received.
///
/// # Panics
/// If a stranger without the secret is accepted.
pub fn handshake(bytes: &[u8]) {
    let Some((&how, mut stream)) = bytes.split_first() else { return };
    let secret = (how & 1 != 0).then_some(&SECRET);
    let mut side = if how & 2 != 0 {
        Handshake::initiate(identity(2, secret), NodeId(1)).0
    } else {
        Handshake::respond(identity(1, secret))
    };
    while side.needs() > 0
        && let Some((flight, rest)) = stream.split_at_checked(side.needs())
    {
        stream = rest;
        match side.advance(flight) {
            Ok(Step::Done(_, peer, _)) => {
                assert!(secret.is_none() && peer.index() < 3, "nobody can have known the secret");
                return;
            }
            Ok(Step::Send(_) | Step::Wait) => {}
            Err(failure) => {
                assert!(failure.reply().len() <= 4, "a refusal tells no more than the versions");
                return;
            }
        }
    }
}
