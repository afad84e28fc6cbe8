//! Threads that make calls for other nodes. A call may wait as long as the writer at the other end of a pipe likes, and others must
//! not wait for it: there are as many threads as there have been calls at a time.

use crate::deferred::DeferredTask;
use crate::{Node, Thread};
use gondwana_locks::{lock, wait_while};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};

/// A call to make. It says [`Callers::finish`] when it will not wait any more, ahead of its answer: the next call may be made right
/// after that.
pub(crate) type Job = Box<dyn FnOnce(&Callers) + Send>;

/// The threads, and the calls that wait for one.
#[derive(Default)]
pub(crate) struct Callers {
    jobs: Mutex<Jobs>,
    came: Condvar,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    /// Threads that are free for a call, or will be when they have begun.
    free: usize,
}

impl Callers {
    /// Queues a call; true if another thread is needed, which counts as free from now on.
    fn add(&self, job: Job) -> bool {
        let mut jobs = lock(&self.jobs);
        jobs.waiting.push_back(job);
        if jobs.free >= jobs.waiting.len() {
            self.came.notify_one();
            return false;
        }
        jobs.free += 1;
        true
    }

    /// The next call, for a thread that is free; waits for one.
    fn next(&self) -> Job {
        let mut jobs = lock(&self.jobs);
        loop {
            if let Some(job) = jobs.waiting.pop_front() {
                jobs.free -= 1;
                return job;
            }
            jobs = wait_while(&self.came, jobs, |jobs| jobs.waiting.is_empty());
        }
    }

    /// The calling thread has made its call and is free.
    pub(crate) fn finish(&self) {
        lock(&self.jobs).free += 1;
    }
}

impl Node {
    /// Has another thread of this node make a call.
    pub(crate) fn call_apart(&self, job: Job) {
        if self.callers.add(job) {
            self.defer(DeferredTask::StartCaller);
        }
    }

    /// Has another thread of this node do something that may wait.
    pub fn in_background(&self, run: impl FnOnce() + Send + 'static) {
        self.call_apart(Box::new(move |callers| {
            run();
            callers.finish();
        }));
    }

    /// Starts another thread that makes calls.
    pub(crate) fn start_caller(&'static self) {
        let make_calls = || {
            loop {
                self.callers.next()(&self.callers);
            }
        };
        if let Err(error) = Thread::start_native("calls", make_calls) {
            crate::fatal(&format!("starting a thread for calls of other nodes: {error}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    fn job(number: i32, made: &Sender<i32>) -> Job {
        let made = made.clone();
        Box::new(move |callers| {
            callers.finish();
            made.send(number).unwrap();
        })
    }

    #[test]
    fn there_are_as_many_threads_as_calls_at_a_time() {
        let (made, calls) = channel();
        let callers = Callers::default();
        assert!(callers.add(job(1, &made)), "there is no thread");
        assert!(callers.add(job(2, &made)), "the first thread will have the first call");
        let (first, second) = (callers.next(), callers.next());
        first(&callers);
        assert!(!callers.add(job(3, &made)), "one of the two threads is free");
        assert!(callers.add(job(4, &made)));
        second(&callers);
        callers.next()(&callers);
        assert_eq!(calls.try_iter().collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn a_thread_that_is_free_waits_for_the_next_call() {
        let (made, calls) = channel();
        let callers = Callers::default();
        assert!(callers.add(job(1, &made)));
        callers.next()(&callers);
        std::thread::scope(|scope| {
            scope.spawn(|| callers.next()(&callers));
            assert!(!callers.add(job(2, &made)));
        });
        assert_eq!(calls.try_iter().collect::<Vec<_>>(), [1, 2]);
    }
}
