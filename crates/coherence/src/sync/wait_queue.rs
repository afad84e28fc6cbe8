use super::request::{Answer, Caller, Reply};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Threads waiting to be woken by others, first come first: a condition variable or a futex.
///
/// Waiting has two phases: the caller hears that it is queued before it gives up what protects the decision to
/// wait (a mutex, the value of the futex word), so no wake-up is lost. Only a wake-up ends a wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct WaitQueue {
    waiting: VecDeque<(Caller, u32)>,
}

impl WaitQueue {
    pub(super) fn wait(&mut self, caller: Caller, bitset: u32, out: &mut Vec<Reply>) {
        self.waiting.push_back((caller, bitset));
        out.push(caller.reply(Answer::Enqueued));
    }

    /// Wakes up to `count` waiters whose bitset meets `bitset`; returns how many.
    pub(super) fn wake(&mut self, count: u32, bitset: u32, out: &mut Vec<Reply>) -> u32 {
        let mut woken = 0;
        self.waiting.retain(|(caller, mask)| {
            let wake = woken < count && mask & bitset != 0;
            if wake {
                woken += 1;
                out.push(caller.done(0));
            }
            !wake
        });
        woken
    }

    pub(super) fn cancel(&mut self, caller: Caller) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|(waiting, _)| *waiting != caller);
        self.waiting.len() != before
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }
}
