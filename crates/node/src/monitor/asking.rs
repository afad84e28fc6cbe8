//! What the program asks of the launcher.

use crate::Node;
use crate::control::Report;
use std::path::Path;
use std::sync::{Condvar, Mutex, PoisonError};

/// An error number and a sentence.
pub type Refusal = (i32, String);

/// What the launcher has answered.
#[derive(Default)]
pub struct Answers {
    /// Held by the one that asks.
    asking: Mutex<()>,
    answer: Mutex<Option<Result<(), Refusal>>>,
    arrived: Condvar,
}

impl Answers {
    /// The launcher has answered.
    pub fn put(&self, refusal: Option<Refusal>) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal.map_or(Ok(()), Err));
        self.arrived.notify_all();
    }

    fn wait(&self) -> Result<(), Refusal> {
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
        let answers = &self.monitor.answers;
        let _one_at_a_time = answers.asking.lock().unwrap_or_else(PoisonError::into_inner);
        // A launcher that is gone takes this process with it.
        self.report(report);
        answers.wait()
    }
}
