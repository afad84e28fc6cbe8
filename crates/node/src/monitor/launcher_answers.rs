//! Requests of the program to the launcher, and the launcher's answers.

use crate::Node;
use gondwana_control::Report;
use gondwana_locks::lock;
use gondwana_locks::wait;
use std::path::Path;
use std::sync::{Condvar, Mutex};

/// An error number and a sentence.
pub(super) type Refusal = (i32, String);

/// The answer to one request at a time.
pub(super) struct Answers<T> {
    /// Held by the thread whose request is pending.
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
    /// Stores the launcher's answer.
    pub(super) fn put(&self, answer: T) {
        *lock(&self.answer) = Some(answer);
        self.arrived.notify_all();
    }

    /// Sends a request, once no other is pending, and waits for the answer. When the launcher ends, this process ends
    /// with it.
    pub(super) fn ask(&self, ask: impl FnOnce()) -> T {
        let _one_at_a_time = lock(&self.asking);
        ask();
        self.wait()
    }

    fn wait(&self) -> T {
        let mut answer = lock(&self.answer);
        loop {
            match answer.take() {
                Some(answer) => return answer,
                None => answer = wait(&self.arrived, answer),
            }
        }
    }
}

impl Node {
    /// Has the launcher record the run in a file from now on.
    ///
    /// # Errors
    /// If the run cannot be recorded: an error number and a sentence about the run.
    pub fn record_run(&self, file: &Path) -> Result<(), Refusal> {
        self.ask_launcher(&Report::Record { file: file.to_owned() })
    }

    /// Has the launcher end the recording.
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
