//! The program's own futex calls on shared memory.
//!
//! Callers must expect to be woken for no reason. So where the kernel would move threads from one futex to another, they are woken, and go on to
//! where they would have been moved. A lock that lends its holder the priority of those that wait for it (*PI*) lends nothing.

use super::deadline;
use crate::numbers::{after, low_half};
use gondwana_control::Consistency;
use gondwana_node::Node;
use libc::{c_int, clockid_t, timespec};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// As the kernel, newer than some of its headers.
const LOCK_PI2: c_int = 13;

/// Of the word of a PI lock, that there may be threads that wait.
const WAITERS: u32 = 1 << 31;

/// Of that word, the thread that holds the lock.
const HOLDER: u32 = (1 << 30) - 1;

/// Bits that any waker matches.
const ANY: u32 = u32::MAX;

/// The arguments of a futex call.
pub(crate) struct Call {
    pub address: usize,
    pub operation: c_int,
    pub value: u32,
    /// When a wait ends, or the number of threads to be woken or moved besides.
    pub time: usize,
    pub second: usize,
    pub third: u32,
}

impl Call {
    /// Makes the call.
    ///
    /// # Errors
    /// The kernel's error numbers.
    ///
    /// # Safety
    /// As the system call's.
    pub(crate) unsafe fn make(&self, node: &'static Node) -> Result<i64, i32> {
        let Self { address, value, .. } = *self;
        let command = self.operation & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
        let besides = low_half(self.time);
        // The kernel's numbers are signed.
        let woken_or_moved = value.saturating_add(besides).min(i32::MAX.cast_unsigned());
        let changes_words = !matches!(
            command,
            libc::FUTEX_WAIT
                | libc::FUTEX_WAKE
                | libc::FUTEX_WAIT_BITSET
                | libc::FUTEX_WAKE_BITSET
                | libc::FUTEX_REQUEUE
                | libc::FUTEX_CMP_REQUEUE
        );
        match node.consistency() {
            Consistency::Rc if changes_words => {
                node.refuse("a futex operation that changes words: run the program with --consistency sc");
                return Err(libc::ENOSYS);
            }
            Consistency::C11 => [address, self.second].into_iter().for_each(|word| node.promote(word)),
            _ => (),
        }
        // SAFETY: the caller's promise.
        unsafe {
            match command {
                libc::FUTEX_WAIT => node.futex_wait(address, ANY, value, self.after_time()).map(|()| 0),
                libc::FUTEX_WAIT_BITSET => node
                    .futex_wait(address, self.third, value, self.until(libc::CLOCK_MONOTONIC)?)
                    .map(|()| 0),
                libc::FUTEX_WAKE => node.futex_wake(address, value, ANY),
                libc::FUTEX_WAKE_BITSET => node.futex_wake(address, value, self.third),
                libc::FUTEX_REQUEUE => node.futex_wake(address, woken_or_moved, ANY),
                libc::FUTEX_CMP_REQUEUE | libc::FUTEX_CMP_REQUEUE_PI => {
                    if word(address).load(Ordering::SeqCst) != self.third {
                        return Err(libc::EAGAIN);
                    }
                    node.futex_wake(address, woken_or_moved, ANY)
                }
                libc::FUTEX_WAKE_OP => {
                    let wakes_there = change(word(self.second), self.third).ok_or(libc::ENOSYS)?;
                    let here = node.futex_wake(address, value, ANY)?;
                    let there = if wakes_there { node.futex_wake(self.second, besides, ANY)? } else { 0 };
                    Ok(here + there)
                }
                libc::FUTEX_LOCK_PI => lock(node, address, self.until_of(libc::CLOCK_REALTIME)?),
                LOCK_PI2 => lock(node, address, self.until(libc::CLOCK_MONOTONIC)?),
                libc::FUTEX_TRYLOCK_PI => try_lock(word(address), own_number(), 0).map_err(|_| libc::EAGAIN),
                libc::FUTEX_UNLOCK_PI => unlock(node, address),
                libc::FUTEX_WAIT_REQUEUE_PI => {
                    let until = self.until(libc::CLOCK_MONOTONIC)?;
                    node.futex_wait(address, ANY, value, until)?;
                    lock(node, self.second, until)
                }
                _ => {
                    node.refuse("an unknown futex operation on shared memory");
                    Err(libc::ENOSYS)
                }
            }
        }
    }

    /// When a wait ends whose time is from now on.
    unsafe fn after_time(&self) -> Option<Instant> {
        // SAFETY: the caller's promise: null or a time.
        let left = unsafe { (self.time as *const timespec).as_ref() }?;
        let nanoseconds = u32::try_from(left.tv_nsec.clamp(0, 999_999_999)).unwrap_or(0);
        after(Duration::new(u64::try_from(left.tv_sec).unwrap_or(0), nanoseconds))
    }

    /// When a wait ends whose time is one of the clock that the call names, or else of this one.
    unsafe fn until(&self, clock: clockid_t) -> Result<Option<Instant>, i32> {
        let real = self.operation & libc::FUTEX_CLOCK_REALTIME != 0;
        // SAFETY: the caller's promise.
        unsafe { self.until_of(if real { libc::CLOCK_REALTIME } else { clock }) }
    }

    unsafe fn until_of(&self, clock: clockid_t) -> Result<Option<Instant>, i32> {
        // SAFETY: the caller's promise: null or a time.
        unsafe { (self.time as *const timespec).as_ref() }.map(|at| deadline(clock, at)).transpose()
    }
}

/// A futex's word.
///
/// # Safety
/// It is one, of memory that stays.
unsafe fn word<'memory>(address: usize) -> &'memory AtomicU32 {
    // SAFETY: the caller's promise.
    unsafe { AtomicU32::from_ptr(address as *mut u32) }
}

/// The number by which the program knows the calling thread.
fn own_number() -> u32 {
    crate::process::identity::thread().cast_unsigned()
}

/// Changes a word as `FUTEX_WAKE_OP` says, and compares what it was; `None` for a code that the kernel does not know.
fn change(word: &AtomicU32, code: u32) -> Option<bool> {
    let signed = |bits: u32| (bits << 20).cast_signed() >> 20;
    let (shift, operation, comparison) = (code >> 31 & 1 == 1, code >> 28 & 7, code >> 24 & 15);
    let argument = signed(code >> 12 & 0xfff).cast_unsigned();
    let argument = if shift { 1 << (argument & 31) } else { argument };
    let new: fn(u32, u32) -> u32 = match operation {
        0 => |_, argument| argument,
        1 => u32::wrapping_add,
        2 => |word, argument| word | argument,
        3 => |word, argument| word & !argument,
        4 => |word, argument| word ^ argument,
        _ => return None,
    };
    let compare: fn(&i32, &i32) -> bool = match comparison {
        0 => i32::eq,
        1 => i32::ne,
        2 => i32::lt,
        3 => i32::le,
        4 => i32::gt,
        5 => i32::ge,
        _ => return None,
    };
    let change = |word| Some(new(word, argument));
    let before = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change).unwrap_or_default();
    Some(compare(&before.cast_signed(), &signed(code & 0xfff)))
}

/// Takes a PI lock that nobody holds; otherwise gives its word.
fn try_lock(word: &AtomicU32, own: u32, waiters: u32) -> Result<i64, u32> {
    let take = |word: u32| (word & HOLDER == 0).then_some(own | word & WAITERS | waiters);
    word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).map(|_| 0)
}

/// Takes a PI lock, waiting for it.
unsafe fn lock(node: &'static Node, address: usize, until: Option<Instant>) -> Result<i64, i32> {
    // SAFETY: the caller's promise.
    let word = unsafe { word(address) };
    let own = own_number();
    // Who has waited does not know who else does.
    let mut waiters = 0;
    loop {
        let Err(held) = try_lock(word, own, waiters) else { return Ok(0) };
        if held & HOLDER == own {
            return Err(libc::EDEADLK);
        }
        waiters = WAITERS;
        let marked = held | WAITERS;
        if word.compare_exchange(held, marked, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            continue;
        }
        match node.futex_wait(address, ANY, marked, until) {
            Ok(()) | Err(libc::EAGAIN | libc::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Gives a PI lock up.
unsafe fn unlock(node: &'static Node, address: usize) -> Result<i64, i32> {
    // SAFETY: the caller's promise.
    let word = unsafe { word(address) };
    let own = own_number();
    let give_up = |word: u32| (word & HOLDER == own).then_some(0);
    word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, give_up).map_err(|_| libc::EPERM)?;
    node.futex_wake(address, 1, ANY).map(|_| 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_changed_and_compared_as_the_code_says() {
        let code = |operation: u32, comparison: u32, argument: u32, against: u32| {
            operation << 28 | comparison << 24 | (argument & 0xfff) << 12 | against & 0xfff
        };
        // The operation, its argument, the comparison, with what, and the word before and after with the result.
        for (operation, argument, comparison, against, before, after, result) in [
            (0, 7, 0, 5, 5, 7, true),
            (1, u32::MAX, 1, 5, 5, 4, false),
            (2, 8, 2, 6, 5, 13, true),
            (3, 4, 3, 5, 5, 1, true),
            (4, 1, 4, 5, 5, 4, false),
            (8, 4, 5, u32::MAX, 5, 16, true),
            (9, 1, 4, 0, u32::MAX, 1, false),
        ] {
            let word = AtomicU32::new(before);
            assert_eq!(change(&word, code(operation, comparison, argument, against)), Some(result));
            assert_eq!(word.into_inner(), after, "operation {operation}");
        }
        assert_eq!(change(&AtomicU32::new(0), code(5, 0, 0, 0)), None);
        assert_eq!(change(&AtomicU32::new(0), code(0, 6, 0, 0)), None);
    }
}
