//! A processor's first cache and clock: everything that an access needs if it hits.

use crate::Time;
use crate::l1::L1;

/// The fast path of one processor.
///
/// A call of [`Port::read`] or [`Port::write`] that returns true has done all there is to do. After false, the access goes to
/// [`Machine::access`](crate::Machine::access), which does it as a whole.
///
/// The order of the fields is that of the declaration: next to each other, both counters of the fast path would be changed as
/// one vector, which the host's processor cannot load while one of them is on its way to memory.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Port {
    /// Accesses that it may still make before the time is up.
    left: i64,
    pub(crate) l1: L1,
    /// Writes that the fast path has made.
    fast_writes: u64,
    /// Accesses that were left when `left` was last set, and the time at which none would be.
    granted: i64,
    end: Time,
    /// Accesses of former grants.
    made: u64,
    /// Picoseconds from one access to the next.
    step: Time,
}

impl Port {
    pub(crate) fn new(l1: L1, step: Time) -> Self {
        Self { left: 0, l1, fast_writes: 0, granted: 0, end: 0, made: 0, step }
    }

    /// A load of up to 8 bytes that do not cross a line. False: not done.
    #[inline(always)]
    pub fn read(&mut self, address: u64) -> bool {
        if self.left > 0 && self.l1.reads_most_recent(address) {
            self.left -= 1;
            return true;
        }
        false
    }

    /// A store of `width` bytes, up to 8, that do not cross a line. False: not done.
    #[inline(always)]
    pub fn write(&mut self, address: u64, width: u64) -> bool {
        if self.left > 0 && self.l1.writes_most_recent(address, width) {
            self.left -= 1;
            self.fast_writes += 1;
            return true;
        }
        false
    }

    /// The processor's time.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Time {
        if self.left >= 0 {
            self.end - self.left.unsigned_abs() * self.step
        } else {
            self.end + self.left.unsigned_abs() * self.step
        }
    }

    /// True if its grant is used up.
    #[inline]
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.left <= 0
    }

    /// Counts an access that was not made by the fast path.
    pub(crate) fn step(&mut self) {
        self.left -= 1;
    }

    /// Accesses in all, and how many of them were writes of the fast path.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.made + (self.granted - self.left).unsigned_abs(), self.fast_writes)
    }

    /// Sets the time, and until when the processor may run without being asked.
    #[inline]
    pub fn grant(&mut self, now: Time, until: Time) {
        let accesses = until.saturating_sub(now).div_ceil(self.step);
        self.made += (self.granted - self.left).unsigned_abs();
        self.left = i64::try_from(accesses).unwrap_or(i64::MAX);
        self.granted = self.left;
        self.end = now + self.left.unsigned_abs() * self.step;
    }

    /// Lets time pass; the grant shrinks by it.
    pub fn pass(&mut self, time: Time) {
        let until = self.end;
        let now = self.now() + time;
        self.grant(now, until);
    }
}
