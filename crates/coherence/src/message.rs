//! Messages of protocols as the node that carries them sees them: bytes with a kind.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What kind of message a protocol sends: the number of its name in [`Protocol::kinds`](crate::Protocol::kinds).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind(pub u8);

/// A message between two machines of one protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its kind.
    pub kind: Kind,
    /// The message itself; begins with [`MESSAGE_TAG`].
    pub bytes: &'a [u8],
}

/// The first byte of each coherence message. Whatever else nodes send begins differently, as long as its first byte is
/// neither this one nor has the highest bit set, with which a [`SyncMessage`](crate::sync::SyncMessage) begins.
pub const MESSAGE_TAG: u8 = 0x7f;

/// Room for all messages but those with lists. Encoding into an array is several times as fast as into a vector.
const SHORT: usize = 64;

/// A type that a protocol's machines exchange.
pub trait Encoded: Serialize + DeserializeOwned {
    /// The message's kind.
    fn kind(&self) -> Kind;

    /// The message that these bytes encode, if they encode one.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (&MESSAGE_TAG, encoded) = bytes.split_first()? else { return None };
        postcard::from_bytes(encoded).ok()
    }
}

/// Encodes messages; keeps memory for long ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Encoder {
    long: Vec<u8>,
    part: Option<Part>,
}

/// How the messages of a machine that is part of another one are those of the whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The number of the variant of the whole's messages that holds one of the part's, below 128.
    pub variant: u8,
    /// The number of the part's first kind among those of the whole.
    pub first_kind: u8,
}

impl Encoder {
    /// Encodes messages of a part as those of the whole.
    pub(crate) fn of_part(part: Part) -> Self {
        Self { part: Some(part), ..Self::default() }
    }

    /// Calls `send` with the encoded message. Allocates only for messages that are longer than all before.
    pub(crate) fn with<R>(&mut self, message: &impl Encoded, send: impl FnOnce(Message<'_>) -> R) -> R {
        let Kind(number) = message.kind();
        let kind = Kind(number + self.part.map_or(0, |part| part.first_kind));
        let mut short = [0; SHORT];
        short[0] = MESSAGE_TAG;
        let mut begin = 1;
        if let Some(part) = self.part {
            short[1] = part.variant;
            begin = 2;
        }
        if let Ok(encoded) = postcard::to_slice(message, &mut short[begin..]) {
            let length = encoded.len();
            return send(Message { kind, bytes: &short[..begin + length] });
        }
        let mut long = std::mem::take(&mut self.long);
        long.clear();
        long.extend_from_slice(&short[..begin]);
        self.long = postcard::to_extend(message, long).expect("messages can be encoded");
        send(Message { kind, bytes: &self.long })
    }
}

/// Decodes a message and encodes it again: the same bytes, if they are what a machine sends.
pub(crate) fn recode<M: Encoded>(bytes: &[u8]) -> Option<Vec<u8>> {
    M::decode(bytes).map(|message| Encoder::default().with(&message, |encoded| encoded.bytes.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CsmMessage, Page};
    use gondwana_topology::NodeId;

    #[test]
    fn short_and_long_messages_are_understood() {
        let notices = |count| CsmMessage::Notices {
            flush: 7,
            origin: NodeId(3),
            pages: (0..count).map(|page| Page(page * 1000)).collect(),
            updates: vec![],
        };
        let mut encoder = Encoder::default();
        for count in [0, 20, 1000, 3] {
            let message = notices(count);
            let bytes = encoder.with(&message, |encoded| encoded.bytes.to_vec());
            assert_eq!(bytes[0], MESSAGE_TAG);
            assert_eq!(CsmMessage::decode(&bytes), Some(message));
            assert_eq!(recode::<CsmMessage>(&bytes), Some(bytes.clone()));
            assert_eq!(CsmMessage::decode(&bytes[1..]), None);
        }
        assert_eq!(CsmMessage::decode(&[]), None);
    }
}
