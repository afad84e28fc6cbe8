//! Waiting at addresses.
//!
//! Where a page is common, the kernel's own futexes work among the nodes, which all map one file. Elsewhere the manager of the address
//! has the queue.

use super::request::Ended;
use crate::thread::EndedBy;
use crate::wait_slots::event;
use crate::{Node, Thread};
use gondwana_coherence::sync::{Object, ObjectKind, Request};
use gondwana_control::Awaited;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

impl Node {
    /// Waits at an address while the aligned word there has the value `expected`.
    ///
    /// # Errors
    /// `EAGAIN` if the word has changed, `EINVAL` if it is not aligned, `ETIMEDOUT`, `EINTR`.
    pub fn futex_wait(
        &'static self,
        address: usize,
        bitset: u32,
        expected: u32,
        until: Option<Instant>,
    ) -> Result<(), i32> {
        if !address.is_multiple_of(align_of::<u32>()) {
            return Err(libc::EINVAL);
        }
        let is_unchanged = move || word(address).load(Ordering::SeqCst) == expected;
        if is_unchanged() && self.is_in_common_page(address) {
            return self.wait_in_common_page(address, bitset, expected, until);
        }
        let wait = move || {
            let _queued = self.sync.queued_futexes.map(Queued::begin);
            let server = self.manager(address);
            let slot = Thread::current(self).slot;
            let futex = Object(address as u64);
            self.waiting.slots.arm(slot, event::QUEUED | event::ANSWERED);
            let ticket = self.new_ticket();
            self.submit(server, ticket, Request::FutexWait { futex, bitset });
            let events = self.wait(slot, event::QUEUED | event::ANSWERED, None);
            if events & event::FAILED != 0 {
                return Err(libc::EINVAL);
            }
            let still = is_unchanged();
            let until = if still { until } else { Some(Instant::now()) };
            let _noted = self.note_wait(slot, Awaited::Futex, futex.0, until);
            let ended = self.await_or_cancel(
                (slot, ticket),
                server,
                until,
                Request::Cancel { key: futex.of_kind(ObjectKind::Futex) },
            );
            self.acquire(Some(futex));
            match ended {
                Ended::Answered(_) => Ok(()),
                Ended::TimedOut if still => Err(libc::ETIMEDOUT),
                Ended::TimedOut => Err(libc::EAGAIN),
            }
        };
        let by = EndedBy::of_waiting_until(until);
        Thread::current(self).interruptibly(self, by, || self.privately(wait))
    }

    /// Wakes threads that wait at an address; returns how many.
    ///
    /// # Errors
    /// None are known.
    pub fn futex_wake(&'static self, address: usize, count: u32, bitset: u32) -> Result<i64, i32> {
        let futex = Object(address as u64);
        self.release(Some(futex));
        // Who finds the page elsewhere finds out whether it is common: if it is here and is not, nobody waits in the kernel.
        word(address).load(Ordering::SeqCst);
        let mut woken = 0;
        if self.is_in_common_page(address) {
            woken = wake_in_kernel(address, count, bitset);
            // Who is queued after this finds the word changed.
            if woken >= count
                || self.sync.queued_futexes.is_some_and(|queued| queued.load(Ordering::SeqCst) == 0)
            {
                return Ok(woken.into());
            }
        }
        if self.nobody_waits(futex.of_kind(ObjectKind::Futex)) {
            return Ok(woken.into());
        }
        let count = count - woken;
        Ok(i64::from(woken) + self.request(address, Request::FutexWake { futex, count, bitset })?)
    }

    fn is_in_common_page(&'static self, address: usize) -> bool {
        let page = self.geometry.page_of(address).filter(|_| self.sync.queued_futexes.is_some());
        page.is_some_and(|page| self.privately(move || self.core().env.pages.is_common(page)))
    }

    fn wait_in_common_page(
        &'static self,
        address: usize,
        bitset: u32,
        expected: u32,
        until: Option<Instant>,
    ) -> Result<(), i32> {
        let slot = Thread::current(self).slot;
        let _noted = self.note_wait(slot, Awaited::Futex, address as u64, until);
        self.threads.begin_wait();
        let waited = self.threads.asleep(|| wait_in_kernel(address, bitset, expected, until));
        self.threads.end_wait();
        self.acquire(Some(Object(address as u64)));
        waited
    }
}

/// Waits at an address that all nodes map.
///
/// # Errors
/// The kernel's.
pub(super) fn wait_in_kernel(
    address: usize,
    bitset: u32,
    expected: u32,
    until: Option<Instant>,
) -> Result<(), i32> {
    let until = until.map(on_the_clock);
    let until = until.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the kernel reads the word and the time.
    let waited = unsafe {
        let operation = libc::FUTEX_WAIT_BITSET;
        gondwana_sys::syscall!(libc::SYS_futex, address, operation, expected, until, 0, bitset)
    };
    if waited == 0 {
        return Ok(());
    }
    Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL))
}

/// A thread that the runtime queues, or is about to.
struct Queued(&'static AtomicU64);

impl Queued {
    fn begin(count: &'static AtomicU64) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn word(address: usize) -> &'static AtomicU32 {
    // SAFETY: a futex word that the program names is aligned and alive.
    unsafe { AtomicU32::from_ptr(address as *mut u32) }
}

/// Wakes threads that wait at an address that all nodes map; returns how many.
pub(super) fn wake_in_kernel(address: usize, count: u32, bitset: u32) -> u32 {
    // SAFETY: waking touches no memory.
    let woken = unsafe {
        gondwana_sys::syscall!(libc::SYS_futex, address, libc::FUTEX_WAKE_BITSET, count, 0, 0, bitset)
    };
    u32::try_from(woken).unwrap_or(0)
}

/// A moment as the kernel's clock has it.
fn on_the_clock(moment: Instant) -> libc::timespec {
    let left = moment.saturating_duration_since(Instant::now());
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let nanoseconds = time.tv_nsec + i64::from(left.subsec_nanos());
    time.tv_sec = time.tv_sec.saturating_add(i64::try_from(left.as_secs()).unwrap_or(i64::MAX));
    time.tv_sec = time.tv_sec.saturating_add(nanoseconds / 1_000_000_000);
    time.tv_nsec = nanoseconds % 1_000_000_000;
    time
}
