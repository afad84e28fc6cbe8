use super::request::{Caller, Reply};

/// What one thread of each barrier phase gets: `PTHREAD_BARRIER_SERIAL_THREAD`.
pub const BARRIER_SERIAL_THREAD: i64 = -1;

/// A barrier: the threads of the present phase that have arrived.
#[derive(Debug, Default)]
pub(super) struct Barrier {
    arrived: Vec<Caller>,
}

impl Barrier {
    /// A thread arrives; the last of `count` completes the phase, and the next phase begins.
    pub fn arrive(&mut self, caller: Caller, count: u32, out: &mut Vec<Reply>) {
        if self.arrived.len() + 1 < count as usize {
            self.arrived.push(caller);
            return;
        }
        out.push(caller.done(BARRIER_SERIAL_THREAD));
        out.extend(self.arrived.drain(..).map(|earlier| earlier.done(0)));
    }

    pub fn is_idle(&self) -> bool {
        self.arrived.is_empty()
    }
}
