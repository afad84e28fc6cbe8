//! The byte format of an established connection.
//!
//! Messages form a stream of bytes: length of the head, length of the bulk data (32 bits each, little endian), head,
//! bulk data. The stream is cut anywhere into *frames*: a length (16 bits) and so many bytes, encrypted and
//! authenticated as one Noise transport message each. The nonce of a frame is its number in its direction, so a
//! dropped, repeated or moved frame fails authentication like a changed one.

use super::queue::ByteQueue;
use crate::{MAX_BULK, MAX_HEAD};
use snow::StatelessTransportState;

/// The longest payload of a frame on the wire; also the limit that Noise sets.
pub(super) const MAX_FRAME: usize = 65_535;
/// Bytes of a frame's length.
pub(super) const LENGTH: usize = 2;
/// Bytes of the tag that authenticates a frame.
pub(super) const TAG: usize = 16;
/// Bytes of the lengths at the start of a message.
const PREFIX: usize = 8;

/// How frames are protected.
pub(super) enum Channel {
    /// Not at all.
    Plain,
    /// With the keys of a Noise handshake.
    Encrypted(Box<StatelessTransportState>),
}

impl Channel {
    /// Bytes by which a frame is longer than what it carries.
    fn overhead(&self) -> usize {
        match self {
            Self::Plain => 0,
            Self::Encrypted(_) => TAG,
        }
    }

    /// Moves up to one frame's worth of bytes from `plain` to the end of `wire`, as frame number `nonce`.
    pub(super) fn seal(&self, nonce: u64, plain: &mut ByteQueue, wire: &mut ByteQueue) {
        let taken = plain.len().min(MAX_FRAME - self.overhead());
        let payload = &plain.bytes()[..taken];
        let length = taken + self.overhead();
        let frame = wire.grow(LENGTH + length);
        frame[..LENGTH].copy_from_slice(&u16::try_from(length).expect("up to MAX_FRAME").to_le_bytes());
        match self {
            Self::Plain => frame[LENGTH..].copy_from_slice(payload),
            Self::Encrypted(keys) => {
                let written = keys.write_message(nonce, payload, &mut frame[LENGTH..]);
                debug_assert_eq!(written, Ok(length), "the frame has the size that it needs");
            }
        }
        plain.consume(taken);
    }

    /// Adds the contents of frame number `nonce` to the end of `plain`.
    pub(super) fn open(&self, nonce: u64, frame: &[u8], plain: &mut ByteQueue) -> Result<(), Damage> {
        match self {
            Self::Plain => plain.extend(frame),
            Self::Encrypted(keys) => {
                let room = plain.grow(frame.len());
                let opened = keys.read_message(nonce, frame, room).map_err(|_| "a frame is not authentic")?;
                plain.shrink(frame.len() - opened);
            }
        }
        Ok(())
    }
}

/// The defect of received bytes.
pub(super) type Damage = &'static str;

/// Writes the start of a message: the lengths, which the head and the bulk data follow.
pub(super) fn prefix(head: usize, bulk: usize) -> [u8; PREFIX] {
    let mut prefix = [0; PREFIX];
    // What is longer than messages may be stays so.
    let length = |bytes| u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes();
    prefix[..4].copy_from_slice(&length(head));
    prefix[4..].copy_from_slice(&length(bulk));
    prefix
}

/// The receiving end of a connection: bytes in, messages out. Holds at most one incomplete message and one
/// incomplete frame, whatever arrives.
#[derive(Default)]
pub(super) struct Decoder {
    wire: ByteQueue,
    plain: ByteQueue,
    /// Number of the next frame.
    nonce: u64,
}

impl Decoder {
    /// A decoder that expects frame number `nonce`.
    pub(super) fn new(nonce: u64) -> Self {
        Self { nonce, ..Self::default() }
    }

    /// Takes bytes from the wire and passes the messages that they complete to `deliver`.
    ///
    /// # Errors
    /// If no node of this run can have sent these bytes here. The decoder must not be used afterwards.
    pub(super) fn feed(
        &mut self,
        channel: &Channel,
        bytes: &[u8],
        deliver: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), Damage> {
        self.wire.extend(bytes);
        while let Some((length, rest)) = self.wire.bytes().split_first_chunk::<LENGTH>() {
            let length = usize::from(u16::from_le_bytes(*length));
            if length <= channel.overhead() {
                return Err("a frame carries nothing");
            }
            let Some(frame) = rest.get(..length) else { break };
            channel.open(self.nonce, frame, &mut self.plain)?;
            self.nonce += 1;
            self.wire.consume(LENGTH + length);
            self.messages(deliver)?;
        }
        Ok(())
    }

    fn messages(&mut self, deliver: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Damage> {
        while let Some((prefix, rest)) = self.plain.bytes().split_first_chunk::<PREFIX>() {
            let [a, b, c, d, bulk @ ..] = *prefix;
            let head = u32::from_le_bytes([a, b, c, d]) as usize;
            let bulk = u32::from_le_bytes(bulk) as usize;
            if head > MAX_HEAD || bulk > MAX_BULK {
                return Err("a message is too long");
            }
            let Some(message) = rest.get(..head + bulk) else { break };
            let (head, bulk) = message.split_at(head);
            deliver(head, bulk);
            let taken = PREFIX + message.len();
            self.plain.consume(taken);
        }
        Ok(())
    }
}
