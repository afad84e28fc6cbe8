//! A handshake without a network.

use super::frame::Channel;
use super::handshake::{Failure, Handshake, Identity, Step};

/// Runs a handshake of two sides, and returns both channels, or why one side failed.
pub(super) fn shake(initiator: Identity<'_>, responder: Identity<'_>) -> Result<(Channel, Channel), Failure> {
    let (mut caller, mut to_called) = Handshake::initiate(initiator, responder.node);
    let mut called = Handshake::respond(responder);
    let mut to_caller = Vec::new();
    let (mut ours, mut theirs) = (None, None);
    while ours.is_none() || theirs.is_none() {
        let heard = hear(&mut called, &mut to_called, &mut to_caller, &mut theirs);
        // The caller receives a refusal. After any other failure the connection is closed.
        if heard.is_err_and(|failure| failure.reply().is_empty()) {
            return Err(heard.unwrap_err());
        }
        hear(&mut caller, &mut to_caller, &mut to_called, &mut ours)?;
    }
    Ok((ours.expect("both are done"), theirs.expect("both are done")))
}

/// Advances one side as far as the received bytes allow.
fn hear(
    side: &mut Handshake<'_>,
    inbox: &mut Vec<u8>,
    outbox: &mut Vec<u8>,
    done: &mut Option<Channel>,
) -> Result<(), Failure> {
    while done.is_none() && inbox.len() >= side.needs() {
        let flight: Vec<_> = inbox.drain(..side.needs()).collect();
        match side.advance(&flight).inspect_err(|failure| outbox.extend(failure.reply()))? {
            Step::Wait => {}
            Step::Send(bytes) => outbox.extend(bytes),
            Step::Done(bytes, _, channel) => {
                outbox.extend(bytes);
                *done = Some(channel);
            }
        }
    }
    Ok(())
}
