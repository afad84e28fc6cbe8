//! Chunks of the recording on their way to the launcher.

use crate::Node;
use gondwana_control::{CHUNKS_MARK, MAX_REPORT};
use gondwana_locks::lock;
use gondwana_recording::{Record, encode};
use std::sync::{Mutex, MutexGuard};

/// Chunks are sent once they have this many bytes together: half a datagram, so that growing the buffer never makes
/// the C library map memory. The addresses of mappings belong to the program.
const BATCH: usize = MAX_REPORT / 2;

/// Chunks that wait to be sent together: each datagram wakes the launcher, and a chunk is often a few bytes.
#[derive(Default)]
pub(super) struct Outbox(Mutex<Vec<u8>>);

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        lock(&self.0)
    }
}

impl Node {
    /// Writes a record. It is sent with others, at the latest by [`Node::send_records`].
    pub(super) fn put_record<R: Record>(&self, record: &R) {
        self.put_chunk(&encode(self.me.0, record));
    }

    /// Writes a record that is encoded already; see [`Node::put_record`].
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

    /// Sends the written records to the launcher. A report that refers to records must be sent after this.
    pub(super) fn send_records(&self) {
        self.send_datagram(&mut self.monitor.outbox.lock());
    }

    fn send_datagram(&self, datagram: &mut Vec<u8>) {
        if !datagram.is_empty() {
            // When the launcher ends, this process ends with it: no error to report.
            let _ = self.control.send_chunks(datagram);
            datagram.clear();
        }
    }
}
