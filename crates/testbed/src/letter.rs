//! What engines send each other, as bytes.

use crate::effects::Told;
use crate::memory::SimEnv;
use gondwana_coherence::sync::{Answer, KeeperMessage, LockGrant, Request, SyncMessage, Ticket};
use gondwana_coherence::{Continuation, EngineEnv, MESSAGE_TAG, Waiter};
use gondwana_topology::NodeId;
use serde::{Deserialize, Serialize};

/// A message between two engines, without what is beside it.
pub(crate) enum Letter<'a> {
    /// Of the coherence protocol.
    Coherence(&'a [u8]),
    /// Of mutexes and barriers.
    Sync(SyncMessage),
    /// About other objects.
    Server(ServerLetter),
}

/// What threads and managers of objects say to each other.
#[derive(Serialize, Deserialize)]
pub(crate) enum ServerLetter {
    Request(Ticket, Request),
    Answer(Ticket, Answer),
    Keeper(KeeperMessage),
}

impl<'a> Letter<'a> {
    /// The message that these bytes encode.
    pub(crate) fn read(bytes: &'a [u8]) -> Self {
        if bytes.first() == Some(&MESSAGE_TAG) {
            return Self::Coherence(bytes);
        }
        match SyncMessage::from_bytes(bytes) {
            Some(message) => Self::Sync(message),
            None => Self::Server(postcard::from_bytes(bytes).expect("an engine has sent it")),
        }
    }
}

impl SimEnv<'_> {
    fn send_letter(&mut self, to: NodeId, letter: &ServerLetter, payload: &[u8]) {
        let bytes = postcard::to_stdvec(letter).expect("letters can be encoded");
        self.effects.sent.push((to, bytes, payload.to_vec()));
    }
}

impl EngineEnv for SimEnv<'_> {
    fn is_active(&self) -> bool {
        true
    }

    fn next_continuation(&mut self) -> Option<Continuation> {
        self.effects.continuations.pop()
    }

    fn send_sync(&mut self, to: NodeId, message: SyncMessage, payload: &[u8]) {
        self.effects.sent.push((to, message.to_bytes().to_vec(), payload.to_vec()));
    }

    fn send_request(&mut self, to: NodeId, ticket: Ticket, request: Request, payload: &[u8]) {
        self.send_letter(to, &ServerLetter::Request(ticket, request), payload);
    }

    fn send_answer(&mut self, to: NodeId, ticket: Ticket, answer: Answer, payload: &[u8]) {
        self.send_letter(to, &ServerLetter::Answer(ticket, answer), payload);
    }

    fn send_keeper(&mut self, to: NodeId, message: KeeperMessage, payload: &[u8]) {
        self.send_letter(to, &ServerLetter::Keeper(message), payload);
    }

    fn answered(&mut self, ticket: Ticket, answer: Answer) {
        self.effects.told.push(Told::Answered(ticket, answer));
    }

    fn granted(&mut self, waiter: Waiter, grant: LockGrant) {
        assert_eq!(grant, LockGrant::Acquired, "no thread only tries");
        self.effects.told.push(Told::Granted(waiter));
    }

    fn passed(&mut self, waiter: Waiter, _serial: bool) {
        self.effects.told.push(Told::Passed(waiter));
    }
}
