//! Hot mutexes: which they are.

use crate::sync::Object;
use crate::sync::object_map::scatter;
use gondwana_page::to_usize;
use std::time::Duration;

/// A mutex that a node wants back soon so often in turn is hot there.
pub(in crate::sync) const HOT: u8 = 4;

/// A node that asks for a mutex again so soon after it has passed it on, or sooner than the token took to come back last time,
/// spends its time on waiting for it: where nodes share processors, a hand-over takes as long as their other threads run.
const SOON: Duration = Duration::from_micros(100);

/// How many mutexes are remembered.
const PLACES: usize = 64;

/// What is known of a mutex whose token has left this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Place {
    object: u64,
    /// When the token left.
    left: Duration,
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
        }
    }

    /// The token has come back, for which a thread has waited so long.
    pub(super) fn came(&mut self, object: Object, waited: Duration) {
        let place = self.place(object);
        if place.object == object.0 {
            place.waited = waited;
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
    pub(super) fn waited(&self, object: Object) -> Duration {
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
