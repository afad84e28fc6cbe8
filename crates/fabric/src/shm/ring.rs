//! A ring of messages from one node to another: one producer, one consumer.
//!
//! The ring is an array of 64-byte lines. A message is a *record*: its header word at the start of a line, its
//! head right behind, its bulk data from the next line boundary on (so that pages are copied between aligned
//! addresses). A record never wraps, so that the receiver can be given slices of the ring itself; where one
//! does not fit before the end, the header says [`SKIP`] and the record starts at line 0.
//!
//! The header word publishes the record. The consumer reads no index of the producer: it polls the line that will
//! contain the message, which saves one cache miss per message.

use super::primitive::{AtomicU32, AtomicU64, Ordering, fence};
use gondwana_page::to_usize;
use gondwana_racing::RacingBytes;

/// Bytes of a line.
pub(crate) const LINE: usize = 64;
/// Bytes of the header word.
const WORD: usize = 8;

/// Header: a record is published here.
const PRESENT: u64 = 1 << 63;
/// Header: the next record is at line 0.
const SKIP: u64 = PRESENT | 1 << 62;
/// Header: this record wakes no thread.
const LEFT: u64 = 1 << 61;
const HEAD_SHIFT: u32 = 32;
/// The interval, in lines, at which the producer checks whether the ring can start over at line 0. A lightly used
/// ring starts over after the second such lap, so it uses 64 KiB, which stay in the caches.
const LAP: usize = 512;
const LENGTH_MASK: u64 = (1 << 24) - 1;

/// The memory of a ring.
///
/// The ring decides which side may access which bytes: between publishing a header and moving the tail past it, the
/// lines of the record belong to the consumer, otherwise to the producer.
pub(crate) trait Lines {
    /// How many lines there are; a power of two.
    fn count(&self) -> usize;

    /// The first word of a line.
    fn header(&self, line: usize) -> &AtomicU64;

    /// Copies bytes into the ring.
    ///
    /// # Safety
    /// The bytes lie inside the ring and are the producer's, and the caller is the producer.
    unsafe fn fill(&self, offset: usize, bytes: RacingBytes<'_>);

    /// Bytes of the ring.
    ///
    /// # Safety
    /// The bytes lie inside the ring, are the consumer's for as long as the slice is used, and the caller is the
    /// consumer.
    unsafe fn bytes(&self, offset: usize, len: usize) -> &[u8];
}

/// The control data of both sides of a ring, in shared memory.
#[derive(Default)]
#[repr(C, align(128))]
pub(crate) struct RingControl {
    /// The consumer's position: the number of lines that it has released. Only the consumer writes it.
    tail: AtomicU64,
    /// Records before this position are urgent, even if they were left. Only the producer writes it.
    urged: AtomicU64,
    /// Not 0 if the producer has messages that did not fit and waits for room.
    blocked: AtomicU32,
}

impl RingControl {
    /// True if these lines contain a message that was not taken. Called on the consumer's node, perhaps while another
    /// thread takes it.
    pub(super) fn is_ready(&self, lines: &impl Lines) -> bool {
        let at = to_usize(self.tail.load(Ordering::Relaxed)) & (lines.count() - 1);
        // Relaxed: nothing but the header is read.
        lines.header(at).load(Ordering::Relaxed) != 0
    }

    /// As [`RingControl::is_ready`], for records that were not left to be found, or that the producer urges since.
    pub(super) fn is_urgent(&self, lines: &impl Lines) -> bool {
        let count = lines.count();
        let tail = self.tail.load(Ordering::Relaxed);
        if self.urged.load(Ordering::Relaxed) > tail {
            return true;
        }
        let mut at = to_usize(tail) & (count - 1);
        for _ in 0..count {
            // Acquire: the headers behind it are as old at least.
            let header = lines.header(at).load(Ordering::Acquire);
            if header == 0 {
                return false;
            }
            at = match header {
                SKIP => 0,
                _ if header & LEFT == 0 => return true,
                _ => (at + Shape::of(header).lines()) & (count - 1),
            };
        }
        true
    }

    /// True if the producer is blocked and has not been notified of room.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Relaxed) != 0
    }
}

/// Lengths in a record.
#[derive(Clone, Copy)]
struct Shape {
    head: usize,
    bulk: usize,
}

impl Shape {
    /// That of the record with this header.
    fn of(header: u64) -> Self {
        let length = |shift: u32| (header >> shift & LENGTH_MASK) as usize;
        Self { head: length(HEAD_SHIFT), bulk: length(0) }
    }

    fn header(self) -> u64 {
        PRESENT | (self.head as u64) << HEAD_SHIFT | self.bulk as u64
    }

    /// Offset of the bulk data from the start of the record.
    fn bulk_offset(self) -> usize {
        (WORD + self.head).next_multiple_of(LINE)
    }

    fn lines(self) -> usize {
        (self.bulk_offset() + self.bulk).div_ceil(LINE)
    }
}

/// The ring size in lines from which on any message of these lengths fits into an empty ring.
pub(crate) fn least_lines(max_head: usize, max_bulk: usize) -> usize {
    // The worst position for a record is one line short of its end: the same number of lines is skipped. One more
    // line is the next record's header.
    2 * Shape { head: max_head, bulk: max_bulk }.lines() + 1
}

/// The sending side; its owner serialises the calls.
pub(crate) struct Producer {
    /// Count of lines published, skipped ones included.
    position: u64,
    /// The last known position of the consumer. Reading it costs a cache miss, so it is read only when there seems to
    /// be no room.
    tail: u64,
}

impl Producer {
    /// The producer of a ring of zeroed memory.
    pub(super) fn new() -> Self {
        Self { position: 0, tail: 0 }
    }

    /// Publishes a message if there is room. The caller has checked that the lengths are within the limits that were
    /// passed to [`least_lines`].
    pub(super) fn push(
        &mut self,
        lines: &impl Lines,
        control: &RingControl,
        head: &[u8],
        bulk: &[RacingBytes<'_>],
    ) -> bool {
        self.publish(lines, control, head, bulk, 0)
    }

    /// As [`Producer::push`], for a message that is left to be found.
    pub(super) fn leave(&mut self, lines: &impl Lines, control: &RingControl, head: &[u8]) -> bool {
        self.publish(lines, control, head, &[], LEFT)
    }

    /// Makes the messages urgent that were left and not taken; false if there are none. The caller rings afterwards: a thread
    /// that polls, for which nobody rings, may be about to stop without another look.
    pub(super) fn urge(&mut self, control: &RingControl) -> bool {
        self.look_at_tail(control);
        let waits = self.tail != self.position;
        if waits {
            control.urged.store(self.position, Ordering::Relaxed);
        }
        waits
    }

    fn publish(
        &mut self,
        lines: &impl Lines,
        control: &RingControl,
        head: &[u8],
        bulk: &[RacingBytes<'_>],
        mark: u64,
    ) -> bool {
        let shape = Shape { head: head.len(), bulk: bulk.iter().map(|piece| piece.len()).sum() };
        let count = lines.count();
        let at = to_usize(self.position) & (count - 1);
        let skipped = if at + shape.lines() > count || self.should_rewind(at, shape, count, control) {
            count - at
        } else {
            0
        };
        // One more line than the record: the header behind it must be empty.
        let wanted = self.position + (skipped + shape.lines() + 1) as u64;
        if wanted - self.tail > count as u64 {
            self.look_at_tail(control);
            if wanted - self.tail > count as u64 {
                return false;
            }
        }
        let at = if skipped > 0 {
            lines.header(0).store(0, Ordering::Relaxed);
            // Release: the consumer that follows sees the empty header at line 0.
            lines.header(at).store(SKIP, Ordering::Release);
            self.position += skipped as u64;
            0
        } else {
            at
        };
        let start = at * LINE;
        // SAFETY: the record lies between the producer's position and the consumer's (checked above), so it is
        // the producer's, and it does not reach beyond the end of the ring.
        unsafe {
            lines.fill(start + WORD, head.into());
            let mut offset = start + shape.bulk_offset();
            // Most messages have none, or one that is empty.
            for piece in bulk.iter().filter(|piece| !piece.is_empty()) {
                lines.fill(offset, *piece);
                offset += piece.len();
            }
        }
        let next = (at + shape.lines()) & (count - 1);
        lines.header(next).store(0, Ordering::Relaxed);
        // Release: a thread that sees this header sees the record, and the empty header behind it.
        lines.header(at).store(shape.header() | mark, Ordering::Release);
        self.position += shape.lines() as u64;
        true
    }

    /// As [`Producer::push`]; if there is no room, asks the consumer for a notification of room.
    pub(super) fn push_or_block(
        &mut self,
        lines: &impl Lines,
        control: &RingControl,
        head: &[u8],
        bulk: &[RacingBytes<'_>],
    ) -> bool {
        if self.push(lines, control, head, bulk) {
            return true;
        }
        control.blocked.store(1, Ordering::Relaxed);
        // Orders the flag before the next read of the tail; the consumer does the opposite in `take_blocked`, so at
        // least one side sees the other.
        fence();
        self.push(lines, control, head, bulk)
    }

    /// True if the ring is empty and far enough advanced to start over at line 0. A ring that is used lightly so
    /// stays within a few pages, which remain in the caches, instead of marching through all its memory.
    fn should_rewind(&mut self, at: usize, shape: Shape, count: usize, control: &RingControl) -> bool {
        // A power of two, as all three are: no division on the way of each message.
        let lap = LAP.min(count / 8).max(1);
        // This costs a cache miss, so it is done once a lap: in a ring that is never empty it finds nothing.
        let ends_lap = at ^ (at + shape.lines()) >= lap;
        if at < lap || at <= shape.lines() || !ends_lap {
            return false;
        }
        self.look_at_tail(control);
        self.tail == self.position
    }

    fn look_at_tail(&mut self, control: &RingControl) {
        // Acquire: the consumer has read the released lines before this node writes them.
        self.tail = control.tail.load(Ordering::Acquire);
    }
}

/// The ring holds something that no producer writes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

/// The receiving side; its owner serialises the calls.
pub(crate) struct Consumer {
    /// The number of released lines. The copy in the control block is not trusted: the other side can write it.
    position: u64,
}

impl Consumer {
    /// The consumer of a ring of zeroed memory.
    pub(super) fn new() -> Self {
        Self { position: 0 }
    }

    /// Passes the oldest message to `deliver` and releases its lines; returns its length in bytes, `None` if there is
    /// no message.
    pub(super) fn pop(
        &mut self,
        lines: &impl Lines,
        control: &RingControl,
        deliver: impl FnOnce(&[u8], &[u8]),
    ) -> Result<Option<usize>, Damaged> {
        let count = lines.count();
        let mut at = to_usize(self.position) & (count - 1);
        // Acquire: the record was written before its header.
        let mut header = lines.header(at).load(Ordering::Acquire);
        if header == SKIP {
            self.give_back(control, count - at);
            at = 0;
            header = lines.header(0).load(Ordering::Acquire);
        }
        if header == 0 {
            return Ok(None);
        }
        let shape = Shape::of(header);
        if header & !LEFT != shape.header() || at + shape.lines() > count {
            return Err(Damaged);
        }
        let start = at * LINE;
        // SAFETY: the record is inside the ring (just checked) and published, so it is the consumer's until it is
        // released below.
        let (head, bulk) = unsafe {
            (lines.bytes(start + WORD, shape.head), lines.bytes(start + shape.bulk_offset(), shape.bulk))
        };
        deliver(head, bulk);
        self.give_back(control, shape.lines());
        Ok(Some(shape.head + shape.bulk))
    }

    /// After messages were popped: true if the producer waits for room and must be woken.
    pub(super) fn take_blocked(&self, control: &RingControl) -> bool {
        // Orders the move of the tail before the read of the flag, see `Producer::push_or_block`.
        fence();
        control.blocked.load(Ordering::Relaxed) != 0 && control.blocked.swap(0, Ordering::Relaxed) != 0
    }

    fn give_back(&mut self, control: &RingControl, lines: usize) {
        self.position += lines as u64;
        // Release: the record was read before the producer writes there again.
        control.tail.store(self.position, Ordering::Release);
    }
}
