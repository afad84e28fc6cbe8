//! Calls that wait for several descriptors.

use super::{is_here, stops};
use crate::io::{Buffer, with_buffers};
use crate::numbers::{int, many};
use crate::pthread::cancel::at_point_if;
use crate::signals::without_faults;
use gondwana_page::to_usize;
use libc::{c_int, fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};

/// Checks each descriptor of a set. The kernel returns `POLLNVAL` for those that are not here.
unsafe fn look_at_all(set: *mut pollfd, count: nfds_t, name: &str) {
    for index in 0..to_usize(count) {
        // SAFETY: the caller of `poll` passes that many.
        is_here(unsafe { (*set.add(index)).fd }, name);
    }
}

/// # Safety
/// As the C library's `poll`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn poll(set: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: forwards the caller's arguments.
    unsafe { look_at_all(set, count, "poll") };
    at_point_if(true, || {
        with_buffers(&[Buffer::write(set, to_usize(count) * size_of::<pollfd>())], || {
            // SAFETY: forwards the caller's arguments.
            unsafe { crate::real!(poll: fn(*mut pollfd, nfds_t, c_int) -> c_int)(set, count, timeout) }
        })
    })
}

/// # Safety
/// As the C library's `ppoll`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn ppoll(
    set: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: forwards the caller's arguments.
    unsafe { look_at_all(set, count, "ppoll") };
    // SAFETY: the caller passes null or a set; the call gets a copy.
    let own = unsafe { without_faults(libc::SIG_SETMASK, mask) };
    let mask = own.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let buffers = [
        Buffer::write(set, to_usize(count) * size_of::<pollfd>()),
        Buffer::value(timeout),
        Buffer::value(mask),
    ];
    at_point_if(true, || {
        with_buffers(&buffers, || {
            // SAFETY: forwards the caller's arguments.
            unsafe {
                crate::real!(ppoll: fn(*mut pollfd, nfds_t, *const timespec, *const sigset_t) -> c_int)(
                    set, count, timeout, mask,
                )
            }
        })
    })
}

fn set_length(count: c_int) -> usize {
    many(count).div_ceil(64) * 8
}

/// The sets of `select`.
struct Sets {
    count: c_int,
    sets: [*mut fd_set; 3],
}

impl Sets {
    fn buffers(&self) -> [Buffer; 3] {
        self.sets.map(|set| Buffer::write(set, set_length(self.count)))
    }

    /// True if no set names a descriptor that is not here.
    ///
    /// # Safety
    /// The sets are null or hold `count` bits.
    unsafe fn are_here(&self, name: &str) -> bool {
        self.sets.iter().filter(|set| !set.is_null()).all(|set| {
            let words = set.cast::<u64>();
            (0..set_length(self.count) / 8).all(|index| {
                // SAFETY: as promised, rounded up to the words that sets consist of.
                let stops = unsafe { words.add(index).read() } & stops::word(index);
                let numbers = (0..64).filter(|bit| stops >> bit & 1 != 0).map(|bit| int(index * 64 + bit));
                numbers.filter(|&number| number < self.count).all(|number| is_here(number, name))
            })
        })
    }
}

/// # Safety
/// As the C library's `select`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    let sets = Sets { count, sets: [read, write, except] };
    // SAFETY: as the caller promises.
    if !unsafe { sets.are_here("select") } {
        return -1;
    }
    let [r, w, e] = sets.buffers();
    at_point_if(true, || {
        with_buffers(&[r, w, e, Buffer::result(timeout)], || {
            // SAFETY: forwards the caller's arguments.
            unsafe {
                crate::real!(select: fn(c_int, *mut fd_set, *mut fd_set, *mut fd_set, *mut timeval) -> c_int)(
                    count, read, write, except, timeout,
                )
            }
        })
    })
}

/// # Safety
/// As the C library's `pselect`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let sets = Sets { count, sets: [read, write, except] };
    // SAFETY: as the caller promises.
    if !unsafe { sets.are_here("pselect") } {
        return -1;
    }
    // SAFETY: the caller passes null or a set; the call gets a copy.
    let own = unsafe { without_faults(libc::SIG_SETMASK, mask) };
    let mask = own.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let [r, w, e] = sets.buffers();
    at_point_if(true, || {
        with_buffers(&[r, w, e, Buffer::value(timeout), Buffer::value(mask)], || {
            // SAFETY: forwards the caller's arguments.
            unsafe {
                crate::real!(pselect: fn(
                c_int, *mut fd_set, *mut fd_set, *mut fd_set, *const timespec, *const sigset_t,
            ) -> c_int)(count, read, write, except, timeout, mask)
            }
        })
    })
}
