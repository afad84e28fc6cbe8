//! What strangers and peers can send, for the fuzz targets of `crates/fuzz`.

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

/// What comes through an established connection: the first byte says how long the pieces are that it comes in, the others
/// are what comes.
///
/// # Panics
/// If the pieces matter, or limits are passed.
pub fn frames(bytes: &[u8]) {
    let Some((&piece, stream)) = bytes.split_first() else { return };
    let whole = decode(&Channel::Plain, std::iter::once(stream));
    let cut = decode(&Channel::Plain, stream.chunks(usize::from(piece).max(1)));
    assert_eq!(whole, cut);
}

/// What comes to a node while a connection is made: the first byte says which side it is and whether it encrypts, the others
/// are what comes.
///
/// # Panics
/// If a stranger who does not know the secret is let in.
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
