use super::{BarrierMessage, LockMessage, Object, Turn};
use gondwana_topology::NodeId;

/// What the machines of mutexes and barriers tell each other from node to node.
///
/// Each hand-over of a mutex and each barrier waits for such messages, and an encoding that takes a structure apart field by
/// field cost as much as all that they are about. So they have a layout of their own, of three words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMessage {
    /// About a mutex.
    Lock(LockMessage),
    /// About a barrier.
    Barrier(BarrierMessage),
}

/// The parts of which each message has some; the others are 0.
#[derive(Default)]
struct Parts {
    kind: u8,
    flag: bool,
    node: u16,
    number: u32,
    object: u64,
    value: u64,
}

/// Kinds of messages. All have the highest bit.
mod kind {
    pub(super) const REQUEST: u8 = 0x80;
    pub(super) const PASS: u8 = 0x81;
    pub(super) const TOKEN: u8 = 0x82;
    pub(super) const ASK: u8 = 0x83;
    pub(super) const ASK_BEFORE: u8 = 0x84;
    pub(super) const BUSY: u8 = 0x85;
    pub(super) const ARRIVE: u8 = 0x90;
    pub(super) const RELEASE: u8 = 0x91;
    pub(super) const PERMIT: u8 = 0x92;
    pub(super) const DECLINE: u8 = 0x93;
    pub(super) const HURRY: u8 = 0x94;
}

impl SyncMessage {
    /// How long each is, in bytes.
    pub const BYTES: usize = 24;

    /// The message as bytes. The highest bit of the first one is set.
    #[inline]
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let Parts { kind, flag, node, number, object, value } = match self {
            Self::Lock(message) => message.into(),
            Self::Barrier(message) => message.into(),
        };
        let first = u64::from(kind) | u64::from(flag) << 8 | u64::from(node) << 16 | u64::from(number) << 32;
        let mut bytes = [0; Self::BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip([first, object, value]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The message that [`SyncMessage::to_bytes`] made these bytes of; `None` for any others.
    #[inline]
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let (words, _) = bytes.as_chunks::<8>();
        let [first, object, value] = [0, 1, 2].map(|word: usize| u64::from_le_bytes(words[word]));
        let parts = Parts {
            kind: (first & 0xff) as u8,
            flag: first >> 8 & 1 != 0,
            node: (first >> 16 & 0xffff) as u16,
            number: (first >> 32) as u32,
            object,
            value,
        };
        parts.lock().map(Self::Lock).or_else(|| parts.barrier().map(Self::Barrier))
    }
}

impl From<LockMessage> for Parts {
    #[inline]
    fn from(message: LockMessage) -> Self {
        let (kind, NodeId(node), number, attempt) = match message {
            LockMessage::Request { attempt, slice, .. } => (kind::REQUEST, NodeId(0), slice, attempt),
            LockMessage::Pass { next, attempt, .. } => (kind::PASS, next.node, next.slice, attempt),
            LockMessage::Token { kept, common, .. } => {
                (kind::TOKEN, NodeId(0), u32::from(kept) | u32::from(common) << 1, None)
            }
            LockMessage::Ask { to, attempt, .. } => (kind::ASK, to, 0, Some(attempt)),
            LockMessage::AskBefore { to, attempt, .. } => (kind::ASK_BEFORE, to, 0, Some(attempt)),
            LockMessage::Busy { attempt, .. } => (kind::BUSY, NodeId(0), 0, Some(attempt)),
        };
        let (flag, value) = (attempt.is_some(), attempt.unwrap_or(0));
        Self { kind, flag, node, number, object: message.object().0, value }
    }
}

impl From<BarrierMessage> for Parts {
    #[inline]
    fn from(message: BarrierMessage) -> Self {
        let of = |kind, Object(object)| Self { kind, object, ..Self::default() };
        let counted = |kind, barrier, number, value| Self { number, value, ..of(kind, barrier) };
        match message {
            BarrierMessage::Arrive { barrier, count, threads } => {
                counted(kind::ARRIVE, barrier, count, threads.into())
            }
            BarrierMessage::Release { barrier, count, threads, serial, expected } => {
                let value = u64::from(threads) | u64::from(expected) << 32;
                Self { flag: serial, ..counted(kind::RELEASE, barrier, count, value) }
            }
            BarrierMessage::Permit { barrier, count, threads } => {
                counted(kind::PERMIT, barrier, count, threads.into())
            }
            BarrierMessage::Decline { barrier } => of(kind::DECLINE, barrier),
            BarrierMessage::Hurry { barrier } => of(kind::HURRY, barrier),
        }
    }
}

impl Parts {
    #[inline]
    fn lock(&self) -> Option<LockMessage> {
        let (object, to, attempt) = (Object(self.object), NodeId(self.node), self.value);
        let slice = self.number;
        let latest = self.flag.then_some(attempt);
        Some(match self.kind {
            kind::REQUEST => LockMessage::Request { object, attempt: latest, slice },
            kind::PASS => LockMessage::Pass { object, next: Turn { slice, node: to }, attempt: latest },
            kind::TOKEN => LockMessage::Token { object, kept: slice & 1 != 0, common: slice & 2 != 0 },
            kind::ASK => LockMessage::Ask { object, to, attempt },
            kind::ASK_BEFORE => LockMessage::AskBefore { object, to, attempt },
            kind::BUSY => LockMessage::Busy { object, attempt },
            _ => return None,
        })
    }

    #[inline]
    fn barrier(&self) -> Option<BarrierMessage> {
        let (barrier, count) = (Object(self.object), self.number);
        let threads = (self.value & 0xffff_ffff) as u32;
        Some(match self.kind {
            kind::ARRIVE => BarrierMessage::Arrive { barrier, count, threads },
            kind::RELEASE => {
                let expected = (self.value >> 32) as u32;
                BarrierMessage::Release { barrier, count, threads, serial: self.flag, expected }
            }
            kind::PERMIT => BarrierMessage::Permit { barrier, count, threads },
            kind::DECLINE => BarrierMessage::Decline { barrier },
            kind::HURRY => BarrierMessage::Hurry { barrier },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn locks() -> impl Strategy<Value = LockMessage> {
        let parts = (0..6, any::<u64>(), any::<u16>(), any::<u64>(), any::<bool>(), any::<u32>());
        parts.prop_map(|(kind, object, to, attempt, tries, slice)| {
            let (object, to, latest) = (Object(object), NodeId(to), tries.then_some(attempt));
            match kind {
                0 => LockMessage::Request { object, attempt: latest, slice },
                1 => LockMessage::Pass { object, next: Turn { slice, node: to }, attempt: latest },
                2 => LockMessage::Token { object, kept: tries, common: slice % 2 == 1 },
                3 => LockMessage::Ask { object, to, attempt },
                4 => LockMessage::AskBefore { object, to, attempt },
                _ => LockMessage::Busy { object, attempt },
            }
        })
    }

    fn barriers() -> impl Strategy<Value = BarrierMessage> {
        let parts = (0..5, any::<u64>(), any::<[u32; 3]>(), any::<bool>());
        parts.prop_map(|(kind, object, [count, threads, expected], serial)| {
            let barrier = Object(object);
            match kind {
                0 => BarrierMessage::Arrive { barrier, count, threads },
                1 => BarrierMessage::Release { barrier, count, threads, serial, expected },
                2 => BarrierMessage::Permit { barrier, count, threads },
                3 => BarrierMessage::Decline { barrier },
                _ => BarrierMessage::Hurry { barrier },
            }
        })
    }

    proptest! {
        #[test]
        fn messages_survive_encoding(
            message in prop_oneof![locks().prop_map(SyncMessage::Lock), barriers().prop_map(SyncMessage::Barrier)],
        ) {
            let bytes = message.to_bytes();
            prop_assert_eq!(SyncMessage::from_bytes(&bytes), Some(message));
            prop_assert!(bytes[0] >= 0x80);
        }

        /// Of other bytes there is no message, or one that these bytes say, but for the parts that it has not.
        #[test]
        fn other_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(message) = SyncMessage::from_bytes(&bytes) {
                prop_assert_eq!(bytes.len(), SyncMessage::BYTES);
                prop_assert_eq!(SyncMessage::from_bytes(&message.to_bytes()), Some(message));
            }
        }
    }
}
