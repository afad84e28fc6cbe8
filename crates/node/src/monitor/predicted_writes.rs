//! Read-then-write prediction as the monitor records it. Pages that a thread reads are requested for writing if the
//! reading instruction has always been followed by one that writes. The recording has what the program does: the read
//! now, and the write, which causes no fault of its own.

use gondwana_coherence::Page;

/// The most requests in flight that are kept: more than there are waiting threads.
const MOST: usize = 64;

/// The predicted writes of requests in flight. Nothing is allocated after `default`.
pub(super) struct PredictedWrites {
    /// The instruction that is predicted to write what the current fault reads.
    writer: Option<u64>,
    /// The first pages of requests in flight, and the instructions that are predicted to write what they bring.
    requests: Vec<(Page, u64)>,
}

impl Default for PredictedWrites {
    fn default() -> Self {
        Self { writer: None, requests: Vec::with_capacity(MOST) }
    }
}

impl PredictedWrites {
    /// Begins a fault, with the instruction that is predicted to write what it reads, if there is one.
    pub(super) fn begin(&mut self, writer: Option<usize>) {
        self.writer = writer.map(|code| code as u64);
    }

    /// Ends a fault: its requests have been sent.
    pub(super) fn end(&mut self) {
        self.writer = None;
    }

    /// The instruction that is predicted to write the pages that arrive during the current fault.
    pub(super) fn writer(&self) -> Option<u64> {
        self.writer
    }

    /// Pages from `first` on are requested.
    pub(super) fn ask(&mut self, first: Page) {
        if let Some(writer) = self.writer {
            if self.requests.len() == MOST {
                self.requests.remove(0);
            }
            self.requests.push((first, writer));
        }
    }

    /// Pages from `first` on have arrived: returns the instruction that is predicted to write them.
    pub(super) fn answered(&mut self, first: Page) -> Option<u64> {
        let place = self.requests.iter().position(|&(page, _)| page == first)?;
        Some(self.requests.swap_remove(place).1)
    }
}
