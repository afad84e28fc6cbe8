//! Hot mutexes: which they are, and how their tokens stay for some uses although another node waits.

use super::{LockEnv, Locks};
use crate::sync::entry::Word;
use crate::sync::object_map::scatter;
use crate::sync::{Object, Thread};
use gondwana_page::to_usize;
use std::time::Duration;

/// How often threads of this node may lock a hot mutex while another node waits for it. A hand-over takes as long as dozens of
/// critical sections.
pub const KEPT_USES: u32 = 200;

/// A mutex that a node wants back soon so often in turn is hot there.
pub(in crate::sync) const HOT: u8 = 4;

/// A node that asks for a mutex again so soon after it has passed it on, or sooner than the token took to come back last time,
/// spends its time on waiting for it: where nodes share processors, a hand-over takes as long as their other threads run.
const SOON: Duration = Duration::from_micros(100);

/// The token of a hot mutex stays at least so long if it is used, and otherwise for a node's share of the time that it took to come
/// last time: then hand-overs take half of the time at most, however long they are, and waits don't grow.
const HOLD: Duration = Duration::from_micros(20);

/// No thread of another node waits longer than this for each node before it.
const LONGEST_HOLD: Duration = Duration::from_millis(2);

/// How many mutexes are remembered.
const PLACES: usize = 64;

/// What is known of a mutex whose token has left this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Place {
    object: u64,
    /// When the token left.
    left: Duration,
    /// When it was wanted back.
    wanted: Duration,
    /// How long it took to come back.
    waited: Duration,
    /// How often in turn it was wanted back soon.
    soon: u8,
}

/// The *hot* mutexes of this node: threads here wanted each back soon after its token had left. The memory is small and forgets
/// one mutex for another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct HotMutexes {
    places: [Place; PLACES],
    threshold: u8,
}

impl HotMutexes {
    /// None is known; a mutex that is wanted back soon `threshold` times in turn is hot.
    pub(super) fn new(threshold: u8) -> Self {
        Self { places: [Place::default(); PLACES], threshold }
    }

    /// The token leaves at a time.
    pub(super) fn left(&mut self, object: Object, now: Duration) {
        let place = self.place(object);
        if place.object != object.0 {
            *place = Place { object: object.0, ..Place::default() };
        }
        place.left = now;
    }

    /// A thread of this node wants the mutex, whose token is elsewhere.
    pub(super) fn wanted(&mut self, object: Object, now: Duration) {
        let place = self.place(object);
        if place.object == object.0 {
            let is_soon = now.saturating_sub(place.left) < place.waited.max(SOON);
            place.soon = if is_soon { place.soon.saturating_add(1) } else { 0 };
            place.wanted = now;
        }
    }

    /// The token has come back.
    pub(super) fn came(&mut self, object: Object, now: Duration) {
        let place = self.place(object);
        if place.object == object.0 {
            place.waited = now.saturating_sub(place.wanted);
        }
    }

    /// The token stayed here, and no thread used it.
    pub(super) fn unused(&mut self, object: Object) {
        let place = self.place(object);
        if place.object == object.0 {
            place.soon = 0;
        }
    }

    /// How long the token came last time.
    fn waited(&self, object: Object) -> Duration {
        let place = &self.places[Self::index(object)];
        if place.object == object.0 { place.waited } else { Duration::ZERO }
    }

    pub(super) fn is_hot(&self, object: Object) -> bool {
        let place = &self.places[Self::index(object)];
        place.object == object.0 && place.soon >= self.threshold
    }

    fn place(&mut self, object: Object) -> &mut Place {
        &mut self.places[Self::index(object)]
    }

    fn index(object: Object) -> usize {
        to_usize(scatter(object.0)) % PLACES
    }
}

impl Locks {
    /// A thread locks a mutex whose token has stayed for that.
    pub(super) fn use_kept(&mut self, object: Object, thread: Thread) {
        let entry = self.table.entry(object);
        entry.own(thread);
        entry.set(Word::HeldQueued);
        self.queues.of(object).uses_left -= 1;
        self.counters.kept += 1;
    }

    /// True if the token stays when another node waits for it.
    pub(super) fn keeps(&self, object: Object) -> bool {
        self.kept_uses > 0 && self.hot.is_hot(object)
    }

    /// The token, which is here and which another node waits for, stays for the next uses.
    pub(super) fn keep(&mut self, object: Object) {
        let queue = self.queues.of(object);
        (queue.uses_left, queue.until) = (self.kept_uses, None);
        if !self.kept.contains(&object) {
            self.kept.push(object);
        }
    }

    /// The mutex is free, and its token stays for the next use. From now on its time runs, if it does not already: a holder that
    /// has no processor yet has not used any.
    pub(super) fn begin_to_hold(&mut self, object: Object, env: &dyn LockEnv) {
        let hold = (self.hot.waited(object) / self.nodes).clamp(HOLD, LONGEST_HOLD);
        let queue = self.queues.of(object);
        if queue.until.is_none() {
            queue.until = Some(env.now() + hold);
            self.newly_kept = true;
        }
    }

    /// True if the time of tokens has begun to run since the last time: [`Locks::let_go_due`] must be called.
    pub fn take_newly_kept(&mut self) -> bool {
        std::mem::take(&mut self.newly_kept)
    }

    /// No thread here will use tokens that stay: each leaves at once, or as soon as its holder unlocks.
    pub fn let_go(&mut self, env: &mut dyn LockEnv) {
        let mut kept = std::mem::take(&mut self.kept);
        for object in kept.drain(..) {
            self.let_go_of(object, env);
        }
        self.kept = kept;
    }

    /// As [`Locks::let_go`], of tokens whose time is over. When that of the next one is.
    pub fn let_go_due(&mut self, env: &mut dyn LockEnv) -> Option<Duration> {
        let (now, mut next) = (env.now(), None::<Duration>);
        let mut kept = std::mem::take(&mut self.kept);
        kept.retain(|&object| {
            let Some(queue) = self.queues.get(object).filter(|queue| queue.uses_left > 0) else {
                return false;
            };
            let is_due = queue.until.is_some_and(|until| until <= now);
            if is_due {
                self.let_go_of(object, env);
            } else if let Some(until) = queue.until {
                next = Some(next.map_or(until, |next| next.min(until)));
            }
            !is_due
        });
        self.kept = kept;
        next
    }

    /// As [`Locks::let_go`], of one mutex. Does nothing if its token is not here to stay.
    pub(super) fn let_go_of(&mut self, object: Object, env: &mut dyn LockEnv) {
        let Some(queue) = self.queues.get_mut(object) else { return };
        if std::mem::take(&mut queue.uses_left) == self.kept_uses {
            self.hot.unused(object);
        }
        let entry = self.table.entry(object);
        if entry.word() == Word::FreeQueued
            && let Some(to) = queue.next.take()
        {
            entry.set(Word::Leaving);
            self.leave(object, to, env);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutex_is_hot_if_it_is_wanted_back_soon() {
        let mut mutexes = HotMutexes::new(1);
        let (object, later) = (Object(0x40), Duration::from_secs(1));
        mutexes.wanted(object, later);
        assert!(!mutexes.is_hot(object), "it was never here");
        mutexes.left(object, later);
        assert!(!mutexes.is_hot(object));
        mutexes.wanted(object, later + SOON / 2);
        assert!(mutexes.is_hot(object));
        mutexes.left(object, later * 2);
        assert!(mutexes.is_hot(object), "until more is known");
        mutexes.wanted(object, later * 2 + SOON);
        assert!(!mutexes.is_hot(object));
    }

    #[test]
    fn a_mutex_is_hot_after_some_times_in_turn() {
        let mut mutexes = HotMutexes::new(3);
        let object = Object(0x40);
        for hot in [false, false, true, true] {
            mutexes.left(object, Duration::ZERO);
            mutexes.wanted(object, Duration::ZERO);
            assert_eq!(mutexes.is_hot(object), hot);
        }
        mutexes.unused(object);
        assert!(!mutexes.is_hot(object));
    }

    #[test]
    fn one_mutex_takes_the_place_of_another() {
        let mut mutexes = HotMutexes::new(1);
        for number in 1..=10 * PLACES as u64 {
            mutexes.left(Object(number), Duration::ZERO);
            mutexes.wanted(Object(number), Duration::ZERO);
            assert!(mutexes.is_hot(Object(number)));
        }
        let known = (1..=10 * PLACES as u64).filter(|number| mutexes.is_hot(Object(*number))).count();
        assert!(known <= PLACES, "{known}");
    }
}
