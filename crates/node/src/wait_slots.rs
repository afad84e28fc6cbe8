//! Where threads of this node wait for an answer.

pub(crate) mod event;
mod place;
mod primitive;
mod sleepers;

use gondwana_locks::lock;
use place::Place;
pub(crate) use sleepers::Sleepers;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The most threads that may live on one node at a time.
pub(crate) const MAX_THREADS: usize = 16 * 1024;

/// Names the place where one thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitSlot(pub u32);

/// All places of this node.
pub(crate) struct WaitSlots {
    places: Box<[Place]>,
    free: Mutex<Free>,
    /// Threads that have been woken and do not run yet.
    waking: AtomicU32,
}

/// Places that nobody has: those given back, and those that nobody ever had.
struct Free {
    given_back: Vec<u32>,
    /// The first that nobody ever had.
    fresh: u32,
}

impl WaitSlots {
    /// Places for [`MAX_THREADS`] threads.
    #[must_use]
    pub(crate) fn new() -> Self {
        // Few are ever used, and what is not costs nothing as long as it is not written.
        let places = Box::<[Place]>::new_zeroed_slice(MAX_THREADS);
        // SAFETY: atomic integers, for which all bytes zero is the value 0.
        let places = unsafe { places.assume_init() };
        let free = Mutex::new(Free { given_back: Vec::with_capacity(MAX_THREADS), fresh: 0 });
        Self { places, free, waking: AtomicU32::new(0) }
    }

    /// A place for one thread, until it is given back; `None` when all are taken.
    pub(crate) fn take(&self) -> Option<WaitSlot> {
        let mut free = lock(&self.free);
        free.given_back.pop().map(WaitSlot).or_else(|| {
            let fresh = free.fresh;
            ((fresh as usize) < MAX_THREADS).then(|| {
                free.fresh += 1;
                WaitSlot(fresh)
            })
        })
    }

    /// Says which thread of the program the owner of a place is, by its number for people.
    pub(crate) fn name(&self, slot: WaitSlot, thread: Option<u32>) {
        self.place(slot).thread.store(thread.map_or(0, |thread| thread + 1), Ordering::Relaxed);
    }

    /// What [`WaitSlots::name`] has said.
    #[must_use]
    pub(crate) fn thread(&self, slot: WaitSlot) -> Option<u32> {
        self.place(slot).thread.load(Ordering::Relaxed).checked_sub(1)
    }

    /// The thread has ended.
    pub(crate) fn give_back(&self, slot: WaitSlot) {
        lock(&self.free).given_back.push(slot.0);
    }

    /// Forgets earlier events of `mask`: called by the owner before it begins an operation that ends with one.
    pub(crate) fn arm(&self, slot: WaitSlot, mask: u32) {
        self.place(slot).arm(mask);
    }

    /// Announces events to the owner, with a result if one belongs to them.
    pub(crate) fn announce(&self, slot: WaitSlot, events: u32, result: i64) {
        if self.place(slot).announce(events, result, &self.waking) {
            self.place(slot).wake();
        }
    }

    /// As [`WaitSlots::announce`], but an owner that sleeps is noted in `sleepers`, to be woken later.
    pub(crate) fn announce_first(&self, slot: WaitSlot, events: u32, result: i64, sleepers: &mut Sleepers) {
        if self.place(slot).announce(events, result, &self.waking)
            && let Err(slot) = sleepers.add(slot)
        {
            self.place(slot).wake();
        }
    }

    /// Wakes those that were noted.
    pub(crate) fn wake(&self, sleepers: &Sleepers) {
        sleepers.iter().for_each(|slot| self.place(slot).wake());
    }

    /// How many threads have been woken and do not run yet.
    #[must_use]
    pub(crate) fn waking(&self) -> u32 {
        self.waking.load(Ordering::Relaxed)
    }

    /// The events of `mask` that have happened.
    #[must_use]
    pub(crate) fn seen(&self, slot: WaitSlot, mask: u32) -> u32 {
        self.place(slot).seen(mask)
    }

    /// The result that came with [`event::DONE`], [`event::FAILED`] or [`event::PASSED`].
    #[must_use]
    pub(crate) fn result(&self, slot: WaitSlot) -> i64 {
        self.place(slot).result()
    }

    /// Sleeps until an event of `mask` has happened or the deadline has passed; returns those that have happened.
    pub(crate) fn sleep(&self, slot: WaitSlot, mask: u32, deadline: Option<Instant>) -> u32 {
        self.place(slot).sleep(mask, deadline, &self.waking)
    }

    fn place(&self, slot: WaitSlot) -> &Place {
        &self.places[slot.0 as usize]
    }
}

impl Default for WaitSlots {
    fn default() -> Self {
        Self::new()
    }
}

/// Sleeps while `word` holds `expected`.
pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
    let timeout = timeout.map(|left| libc::timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    });
    let pointer = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word is alive for the whole call, and the timeout is null or valid.
    unsafe {
        gondwana_sys::syscall!(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            pointer,
        );
    }
}

/// Wakes all that sleep on `word`.
pub(crate) fn futex_wake(word: &AtomicU32) {
    // SAFETY: waking reads nothing but the address.
    unsafe {
        gondwana_sys::syscall!(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            i32::MAX
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn an_announcement_wakes_the_sleeper() {
        let slots = Arc::new(WaitSlots::new());
        let slot = slots.take().unwrap();
        slots.arm(slot, u32::MAX);
        let other = Arc::clone(&slots);
        let announcer = std::thread::spawn(move || {
            other.announce(slot, event::QUEUED, 0);
            other.announce(slot, event::DONE, 7);
        });
        assert_eq!(slots.sleep(slot, event::QUEUED, None), event::QUEUED);
        assert_eq!(slots.sleep(slot, event::DONE, None), event::DONE);
        assert_eq!(slots.result(slot), 7);
        announcer.join().unwrap();
        assert_eq!(slots.waking(), 0);
    }

    #[test]
    fn every_place_has_one_owner_at_a_time() {
        let slots = WaitSlots::new();
        let taken: Vec<WaitSlot> = std::iter::from_fn(|| slots.take()).collect();
        let different: std::collections::BTreeSet<u32> = taken.iter().map(|slot| slot.0).collect();
        assert_eq!((taken.len(), different.len()), (MAX_THREADS, MAX_THREADS));
        slots.give_back(taken[7]);
        assert_eq!((slots.take(), slots.take()), (Some(taken[7]), None));
    }

    #[test]
    fn a_deadline_ends_the_wait() {
        let slots = WaitSlots::new();
        let slot = slots.take().unwrap();
        slots.arm(slot, u32::MAX);
        assert_eq!(slots.sleep(slot, event::DONE, Some(Instant::now())), 0);
    }
}
