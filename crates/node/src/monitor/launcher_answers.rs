//! What the program asks of the launcher.

use crate::Node;
use gondwana_control::Report;
use std::path::Path;
use std::sync::{Condvar, Mutex, PoisonError};

/// An error number and a sentence.
pub type Refusal = (i32, String);

/// What the launcher has answered.
pub struct Answers<T> {
    /// Held by the one that asks.
    asking: Mutex<()>,
    answer: Mutex<Option<T>>,
    arrived: Condvar,
}

impl<T> Default for Answers<T> {
    fn default() -> Self {
        Self { asking: Mutex::default(), answer: Mutex::default(), arrived: Condvar::default() }
    }
}

impl<T> Answers<T> {
    /// The launcher has answered.
    pub fn put(&self, answer: T) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        self.arrived.notify_all();
    }

    /// Asks, as soon as nobody else does, and waits for the answer. A launcher that is gone takes this process with it.
    pub fn ask(&self, ask: impl FnOnce()) -> T {
        let _one_at_a_time = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        ask();
        self.wait()
    }

    fn wait(&self) -> T {
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match answer.take() {
                Some(answer) => return answer,
                None => answer = self.arrived.wait(answer).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl Node {
    /// Has the run recorded in a file, from now on.
    ///
    /// # Errors
    /// If that is not possible: an error number and a sentence about the run.
    pub fn record_run(&self, file: &Path) -> Result<(), Refusal> {
        self.ask_launcher(&Report::Record { file: file.to_owned() })
    }

    /// Has the run be recorded no more.
    ///
    /// # Errors
    /// As for [`Node::record_run`].
    pub fn stop_recording(&self) -> Result<(), Refusal> {
        self.ask_launcher(&Report::StopRecording)
    }

    fn ask_launcher(&self, report: &Report) -> Result<(), Refusal> {
        self.monitor.answers.ask(|| self.report(report))
    }
}
