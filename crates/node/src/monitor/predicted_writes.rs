//! Pages that are read, but asked for to be written, because the instruction that reads them has always been followed by one
//! that writes them. What is recorded is what the program does: the read now and, as that will not show by itself, the
//! write.

use gondwana_coherence::Page;

/// Most requests under way that are kept: more than threads that wait.
const MOST: usize = 64;

/// What is known of such pages. Nothing is allocated after the beginning.
pub struct PredictedWrites {
    /// The instruction that will write what the fault reads that is being handled.
    writer: Option<u64>,
    /// First pages of requests under way, and the instructions that will write what they bring.
    requests: Vec<(Page, u64)>,
}

impl Default for PredictedWrites {
    fn default() -> Self {
        Self { writer: None, requests: Vec::with_capacity(MOST) }
    }
}

impl PredictedWrites {
    /// A fault begins to be handled; what it reads will be written by an instruction, if one is given.
    pub fn begin(&mut self, writer: Option<usize>) {
        self.writer = writer.map(|code| code as u64);
    }

    /// What the fault needs has been asked for.
    pub fn end(&mut self) {
        self.writer = None;
    }

    /// The instruction that will write what comes now, while the fault is being handled.
    pub fn writer(&self) -> Option<u64> {
        self.writer
    }

    /// Pages from `first` on are asked for.
    pub fn ask(&mut self, first: Page) {
        if let Some(writer) = self.writer {
            if self.requests.len() == MOST {
                self.requests.remove(0);
            }
            self.requests.push((first, writer));
        }
    }

    /// Pages from `first` on have come: the instruction that will write them.
    pub fn answered(&mut self, first: Page) -> Option<u64> {
        let place = self.requests.iter().position(|&(page, _)| page == first)?;
        Some(self.requests.swap_remove(place).1)
    }
}
