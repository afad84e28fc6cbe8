//! Chunks of the recording that are on their way to the launcher.

use crate::Node;
use gondwana_control::{CHUNKS_MARK, MAX_REPORT};
use gondwana_recording::{Record, encode};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Chunks are sent when they are so many bytes together. Half of what a datagram holds, so that the C library needs no new
/// mapping for it: the addresses of mappings are the program's affair.
const BATCH: usize = MAX_REPORT / 2;

/// Chunks that wait to be sent together. Each datagram wakes the launcher, and a chunk is often a few bytes.
#[derive(Default)]
pub struct Outbox(Mutex<Vec<u8>>);

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    /// Writes down a record. It leaves with others, at the latest with [`Node::send_records`].
    pub(super) fn put_record<R: Record>(&self, record: &R) {
        self.put_chunk(&encode(self.me.0, record));
    }

    /// As [`Node::put_record`], of a record that is encoded already.
    pub(super) fn put_chunk(&self, chunk: &[u8]) {
        let mut datagram = self.monitor.outbox.lock();
        if datagram.len() + chunk.len() > BATCH {
            self.send_datagram(&mut datagram);
        }
        if datagram.is_empty() {
            datagram.push(CHUNKS_MARK);
        }
        datagram.extend_from_slice(chunk);
    }

    /// Sends the records that have been written down to the launcher. Whoever reports something that they belong to does this
    /// first.
    pub(super) fn send_records(&self) {
        self.send_datagram(&mut self.monitor.outbox.lock());
    }

    fn send_datagram(&self, datagram: &mut Vec<u8>) {
        if !datagram.is_empty() {
            // A launcher that is gone takes this process with it; nobody is left to be told.
            let _ = self.control.send_chunks(datagram);
            datagram.clear();
        }
    }
}
