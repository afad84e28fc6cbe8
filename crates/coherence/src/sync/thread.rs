use super::request::{Answer, Caller, Reply};
use super::{SyncError, Thread};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

#[derive(Debug)]
enum State {
    Running { joiner: Option<(Caller, Thread)> },
    Detached,
    Exited { value: u64 },
}

/// The threads of this node that run, or have ended and are not joined yet.
#[derive(Debug, Default)]
pub(super) struct Threads {
    known: HashMap<Thread, State>,
}

impl Threads {
    pub(super) fn start(&mut self, thread: Thread, detached: bool) -> Result<i64, SyncError> {
        let Entry::Vacant(unknown) = self.known.entry(thread) else { return Err(SyncError::Invalid) };
        unknown.insert(if detached { State::Detached } else { State::Running { joiner: None } });
        Ok(0)
    }

    pub(super) fn exit(
        &mut self,
        thread: Thread,
        value: u64,
        out: &mut Vec<Reply>,
    ) -> Result<i64, SyncError> {
        let Entry::Occupied(mut known) = self.known.entry(thread) else {
            return Err(SyncError::NoSuchThread);
        };
        match known.get() {
            State::Exited { .. } => return Err(SyncError::Invalid),
            State::Running { joiner: None } => *known.get_mut() = State::Exited { value },
            State::Running { joiner: Some((caller, _)) } => {
                out.push(caller.done(value.cast_signed()));
                known.remove();
            }
            State::Detached => {
                known.remove();
            }
        }
        Ok(0)
    }

    /// `None`: the caller waits and is answered later.
    pub(super) fn join(
        &mut self,
        caller: Caller,
        thread: Thread,
        by: Thread,
        attempt: bool,
    ) -> Option<Result<i64, SyncError>> {
        let joins_me =
            |state: &State| matches!(state, State::Running { joiner: Some((_, other)) } if *other == thread);
        // Two threads that join each other; seen here only if both run on this node.
        let mutual = self.known.get(&by).is_some_and(joins_me);
        match self.known.get_mut(&thread) {
            None => Some(Err(SyncError::NoSuchThread)),
            Some(State::Exited { value }) => {
                let value = value.cast_signed();
                self.known.remove(&thread);
                Some(Ok(value))
            }
            Some(_) if attempt => Some(Err(SyncError::Busy)),
            Some(State::Detached | State::Running { joiner: Some(_) }) => Some(Err(SyncError::Invalid)),
            Some(State::Running { .. }) if thread == by || mutual => Some(Err(SyncError::Deadlock)),
            Some(State::Running { joiner }) => {
                *joiner = Some((caller, by));
                None
            }
        }
    }

    /// Detaching a thread that somebody is joining has no effect, as in glibc.
    pub(super) fn detach(&mut self, thread: Thread) -> Result<i64, SyncError> {
        match self.known.get_mut(&thread) {
            None => return Err(SyncError::NoSuchThread),
            Some(State::Detached) => return Err(SyncError::Invalid),
            Some(State::Exited { .. }) => {
                self.known.remove(&thread);
            }
            Some(State::Running { joiner: Some(_) }) => {}
            Some(state) => *state = State::Detached,
        }
        Ok(0)
    }

    pub(super) fn cancel(&mut self, caller: Caller, thread: Thread, out: &mut Vec<Reply>) {
        if let Some(State::Running { joiner }) = self.known.get_mut(&thread)
            && joiner.take_if(|(joining, _)| *joining == caller).is_some()
        {
            out.push(caller.reply(Answer::Cancelled));
        }
    }
}
