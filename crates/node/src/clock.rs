//! Where the time of the program's threads goes: the split of Figure 2 of the Cashmere paper.
//!
//! Every thread of the program has a clock, which is always in exactly one [`Activity`]. So the four totals of a
//! thread add up to its life, from its start to its end (not to its join), or to now. The thread that serves other
//! nodes has a clock too, but is none of the program's: its time is told apart.

use crate::numbers::nanoseconds;
use gondwana_locks::lock;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

/// What a thread does with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Everything that is none of the others: the program's code and its system calls.
    User,
    /// The protocol's work for this thread's own faults, locks, releases and so on, and waiting for a turn at it.
    Protocol,
    /// Waiting for what another thread or node has to do first: pages, locks, barriers, threads to join.
    Waiting,
    /// Handling what other nodes have sent, with the protocol's work for it, while it would otherwise only wait.
    Message,
}

const ACTIVITIES: [Activity; 4] = [Activity::User, Activity::Protocol, Activity::Waiting, Activity::Message];

/// Nanoseconds in each activity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Split([u64; 4]);

impl Split {
    /// Microseconds in one activity.
    #[must_use]
    pub(crate) fn micros(&self, activity: Activity) -> u64 {
        self.0[activity as usize] / 1000
    }

    fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }
}

/// The clock of one thread. Only that thread changes it; others may read it.
#[derive(Debug)]
pub(crate) struct Clock {
    epoch: Instant,
    /// The current activity in the two lowest bits, and since when: one word, so that readers find both or neither.
    state: AtomicU64,
    spent: [AtomicU64; 4],
    /// Mutexes that the thread has locked.
    locked: AtomicU64,
}

thread_local! {
    static CLOCK: Cell<Option<&'static Clock>> = const { Cell::new(None) };
}

/// Set with the first clock. In a shared library a thread's variable costs a call, which every mutex would pay twice.
static ANY: AtomicBool = AtomicBool::new(false);

/// The calling thread's clock, if it has one.
#[inline]
fn current() -> Option<&'static Clock> {
    if ANY.load(Ordering::Relaxed) { CLOCK.get() } else { None }
}

impl Clock {
    fn start(epoch: Instant) -> &'static Self {
        let clock: &'static Self = Box::leak(Box::new(Self {
            epoch,
            state: AtomicU64::new(pack(epoch, Activity::User)),
            spent: Default::default(),
            locked: AtomicU64::new(0),
        }));
        CLOCK.set(Some(clock));
        ANY.store(true, Ordering::Relaxed);
        clock
    }

    fn switch(&self, to: Activity) {
        // A signal's handler that comes in between leaves the activity as it was, and a later time.
        let new = pack(self.epoch, to);
        let (old, since) = unpack(self.state.swap(new, Ordering::AcqRel));
        grow(&self.spent[old as usize], (new & !3).saturating_sub(since));
    }

    /// Turns to an activity; the one before, if it is to be resumed.
    fn enter(&self, activity: Activity) -> Option<Activity> {
        let (outer, _) = unpack(self.state.load(Ordering::Relaxed));
        // The protocol's work for a message is the message's.
        if outer == Activity::Message && activity == Activity::Protocol {
            return None;
        }
        self.switch(activity);
        Some(outer)
    }

    /// The time of the thread until now.
    fn split(&self) -> Split {
        loop {
            let state = self.state.load(Ordering::Acquire);
            let mut split = Split(self.spent.each_ref().map(|spent| spent.load(Ordering::Acquire)));
            let (activity, since) = unpack(state);
            split.0[activity as usize] += pack(self.epoch, activity).saturating_sub(since);
            if self.state.load(Ordering::Acquire) == state {
                return split;
            }
        }
    }
}

/// Adds to a number that only the calling thread changes.
fn grow(number: &AtomicU64, by: u64) {
    number.store(number.load(Ordering::Relaxed) + by, Ordering::Release);
}

fn pack(epoch: Instant, activity: Activity) -> u64 {
    nanoseconds(epoch.elapsed()) & !3 | activity as u64
}

fn unpack(state: u64) -> (Activity, u64) {
    (ACTIVITIES[(state & 3) as usize], state & !3)
}

/// One more mutex is the calling thread's.
#[inline]
pub(crate) fn count_lock() {
    if let Some(clock) = current() {
        grow(&clock.locked, 1);
    }
}

/// The calling thread's time counts as an activity while this value lives; afterwards as before.
#[must_use]
pub(crate) struct Scope {
    outer: Option<Activity>,
}

impl Scope {
    /// Begins an activity, if the thread has a clock.
    pub(crate) fn enter(activity: Activity) -> Self {
        Self { outer: current().and_then(|clock| clock.enter(activity)) }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        if let (Some(outer), Some(clock)) = (self.outer, current()) {
            clock.switch(outer);
        }
    }
}

/// The clocks of a node. Threads have one only if somebody wants to know.
pub(crate) struct Times {
    wanted: bool,
    epoch: Instant,
    running: Mutex<Vec<&'static Clock>>,
    /// Time and locked mutexes of the threads that have ended.
    ended: Mutex<(Split, u64)>,
    service: OnceLock<&'static Clock>,
}

impl Times {
    /// No clocks yet.
    #[must_use]
    pub(crate) fn new(wanted: bool) -> Self {
        let (running, ended) = Default::default();
        Self { wanted, epoch: Instant::now(), running, ended, service: OnceLock::new() }
    }

    /// The calling thread, one of the program's, begins.
    pub(crate) fn thread_begins(&self) {
        if self.wanted {
            let clock = Clock::start(self.epoch);
            lock(&self.running).push(clock);
        }
    }

    /// The calling thread ends, if it is one of the program's.
    pub(crate) fn thread_ends(&self) {
        let Some(clock) = current() else { return };
        let mut running = lock(&self.running);
        let Some(place) = running.iter().position(|other| std::ptr::eq(*other, clock)) else { return };
        running.swap_remove(place);
        CLOCK.set(None);
        let mut ended = lock(&self.ended);
        ended.0.add(clock.split());
        ended.1 += clock.locked.load(Ordering::Relaxed);
        // SAFETY: `start` leaked the box. Of the two places that held the reference, the list is locked and has it no
        // more, and CLOCK of this thread has just been emptied.
        drop(unsafe { Box::from_raw(std::ptr::from_ref(clock).cast_mut()) });
    }

    /// The calling thread is the one that serves other nodes.
    pub(crate) fn service_begins(&self) {
        if self.wanted {
            self.service.get_or_init(|| Clock::start(self.epoch));
        }
    }

    /// The time of all threads of the program on this node so far, and how many mutexes they have locked.
    #[must_use]
    pub(crate) fn program(&self) -> (Split, u64) {
        // Both together, so that a thread that ends meanwhile is counted once.
        let running = lock(&self.running);
        let (mut split, mut locked) = *lock(&self.ended);
        for clock in running.iter() {
            split.add(clock.split());
            locked += clock.locked.load(Ordering::Relaxed);
        }
        (split, locked)
    }

    /// Microseconds that the service thread has worked for other nodes.
    #[must_use]
    pub(crate) fn service_micros(&self) -> u64 {
        let split = self.service.get().map(|clock| clock.split()).unwrap_or_default();
        split.micros(Activity::Message) + split.micros(Activity::Protocol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn spend(time: Duration) {
        let start = Instant::now();
        while start.elapsed() < time {
            std::hint::spin_loop();
        }
    }

    const MOMENT: Duration = Duration::from_millis(2);

    #[test]
    fn the_split_of_a_thread_adds_up_to_its_life() {
        let times = Times::new(true);
        let start = Instant::now();
        times.thread_begins();
        spend(MOMENT);
        {
            let _waiting = Scope::enter(Activity::Waiting);
            spend(MOMENT);
            let _message = Scope::enter(Activity::Message);
            let _protocol = Scope::enter(Activity::Protocol);
            spend(MOMENT);
        }
        {
            let _protocol = Scope::enter(Activity::Protocol);
            spend(MOMENT);
        }
        count_lock();
        let (still_running, _) = times.program();
        times.thread_ends();
        let life = start.elapsed();
        let (split, locked) = times.program();
        for activity in ACTIVITIES {
            assert!(split.micros(activity) >= 1999, "{activity:?} in {split:?}");
            assert!(split.micros(activity) >= still_running.micros(activity), "{activity:?}");
        }
        // Times are kept to four nanoseconds.
        assert!(split.0.iter().sum::<u64>() <= nanoseconds(life) + 64, "{split:?} in {life:?}");
        assert_eq!(locked, 1);
        spend(MOMENT);
        assert_eq!(times.program().0, split, "a thread that has ended spends no time");
    }

    #[test]
    fn a_wait_that_goes_on_counts_already() {
        let times = Times::new(true);
        times.thread_begins();
        let _waiting = Scope::enter(Activity::Waiting);
        let user = times.program().0.micros(Activity::User);
        spend(MOMENT);
        let (split, _) = times.program();
        assert!(split.micros(Activity::Waiting) >= 1999, "{split:?}");
        assert_eq!(split.micros(Activity::User), user);
    }

    #[test]
    fn the_service_thread_is_none_of_the_programs() {
        let times = Times::new(true);
        times.service_begins();
        {
            let _message = Scope::enter(Activity::Message);
            spend(MOMENT);
        }
        times.thread_ends();
        assert!(times.service_micros() >= 1999);
        assert_eq!(times.program(), (Split::default(), 0));
    }

    #[test]
    fn nobody_has_a_clock_unless_somebody_asks() {
        let times = Times::new(false);
        times.thread_begins();
        count_lock();
        drop(Scope::enter(Activity::Waiting));
        times.thread_ends();
        assert_eq!(times.program(), (Split::default(), 0));
    }
}
