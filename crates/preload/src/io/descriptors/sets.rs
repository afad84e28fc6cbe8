//! Calls that wait for several descriptors.

use super::apart::{Apart, parts};
use super::stops;
use crate::accesses;
use crate::io::channels::waiting;
use crate::io::{Buffer, with_buffers};
use crate::numbers::many;
use crate::pthread::cancel::at_point_if;
use crate::signals::{with_mask, without_faults};
use gondwana_page::to_usize;
use libc::{c_int, fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};
use std::time::{Duration, Instant};

/// `poll` where other nodes have some of the descriptors open.
///
/// # Safety
/// The set has that many members.
unsafe fn poll_apart(apart: &Apart, set: *mut pollfd, count: nfds_t, longest: Option<Duration>) -> c_int {
    // SAFETY: as promised.
    let members = (0..to_usize(count)).map(|index| unsafe { accesses::load(set.wrapping_add(index)) });
    let Some(mut own) = members.collect::<Option<Vec<pollfd>>>() else { return fault() };
    let ready = apart.poll(&mut own, longest);
    let bytes = size_of_val(own.as_slice());
    // SAFETY: as promised.
    if unsafe { accesses::copy(own.as_ptr().cast(), set.cast(), bytes) } < bytes { fault() } else { ready }
}

/// The program has passed a pointer to where no memory is.
fn fault() -> c_int {
    crate::errno::set(libc::EFAULT);
    -1
}

/// What a timeout in milliseconds says; `None` for no end.
pub(super) fn of_milliseconds(timeout: c_int) -> Option<Duration> {
    u64::try_from(timeout).ok().map(Duration::from_millis)
}

/// The same in milliseconds, none of them too early.
pub(super) fn milliseconds(longest: Duration) -> c_int {
    c_int::try_from(longest.as_micros().div_ceil(1000)).unwrap_or(c_int::MAX)
}

/// The milliseconds until then; -1 for no end.
pub(super) fn left(until: Option<Instant>) -> c_int {
    until.map_or(-1, |until| milliseconds(until.saturating_duration_since(Instant::now())))
}

/// What a time says that the program passes; `None` for no end.
///
/// # Safety
/// It is null or a time.
pub(crate) unsafe fn of_time(time: *const timespec) -> Option<Duration> {
    // SAFETY: as promised.
    let time = unsafe { time.as_ref() }?;
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    Some(Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanoseconds.min(999_999_999)))
}

/// # Safety
/// As the C library's `poll`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn poll(set: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: forwards the caller's arguments.
    let apart = unsafe { parts(set, to_usize(count), "poll") };
    let call = || match &apart {
        // SAFETY: forwards the caller's arguments.
        Some(apart) => unsafe { poll_apart(apart, set, count, of_milliseconds(timeout)) },
        None => with_buffers(&[Buffer::write(set, to_usize(count) * size_of::<pollfd>())], || {
            // SAFETY: forwards the caller's arguments.
            unsafe { crate::real!(poll: fn(*mut pollfd, nfds_t, c_int) -> c_int)(set, count, timeout) }
        }),
    };
    waiting(|| at_point_if(true, call))
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
    // SAFETY: forwards the caller's arguments; the set is null or one, and the call gets a copy.
    let (apart, own) =
        unsafe { (parts(set, to_usize(count), "ppoll"), without_faults(libc::SIG_SETMASK, mask)) };
    let mask = own.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let buffers = [
        Buffer::write(set, to_usize(count) * size_of::<pollfd>()),
        Buffer::value(timeout),
        Buffer::value(mask),
    ];
    let call = || match &apart {
        // SAFETY: forwards the caller's arguments.
        Some(apart) => with_mask(own.as_ref(), || unsafe { poll_apart(apart, set, count, of_time(timeout)) }),
        None => with_buffers(&buffers, || {
            // SAFETY: forwards the caller's arguments.
            unsafe {
                crate::real!(ppoll: fn(*mut pollfd, nfds_t, *const timespec, *const sigset_t) -> c_int)(
                    set, count, timeout, mask,
                )
            }
        }),
    };
    waiting(|| at_point_if(true, call))
}

fn set_length(count: c_int) -> usize {
    many(count).div_ceil(64) * 8
}

/// The sets of `select`.
struct Sets {
    count: c_int,
    sets: [*mut fd_set; SETS],
}

impl Sets {
    fn buffers(&self) -> [Buffer; SETS] {
        self.sets.map(|set| Buffer::write(set, set_length(self.count)))
    }

    /// The sets as words; those of sets that are not there are empty.
    ///
    /// # Safety
    /// The sets are null or hold `count` bits.
    unsafe fn word(&self, set: usize, index: usize) -> u64 {
        let words = self.sets[set].cast::<u64>();
        // SAFETY: as promised, rounded up to the words that sets consist of.
        unsafe { accesses::load(words.wrapping_add(index)) }.unwrap_or(0)
    }

    /// The same as a set of `poll`, if other nodes have some of the descriptors open.
    ///
    /// # Safety
    /// As for [`Sets::word`].
    unsafe fn apart(&self, name: &str) -> Option<(Apart, Vec<pollfd>)> {
        let words = set_length(self.count) / 8;
        // SAFETY: as promised.
        let all = |index| (0..SETS).fold(0, |all, set| all | unsafe { self.word(set, index) });
        if (0..words).all(|index| all(index) & stops::word(index) == 0) {
            return None;
        }
        let numbers = (0..self.count).filter(|&number| all(many(number) / 64) >> (number % 64) & 1 != 0);
        let mut members: Vec<pollfd> = numbers
            .map(|fd| {
                // SAFETY: as promised.
                let is_in = |set: usize| unsafe { self.word(set, many(fd) / 64) } >> (fd % 64) & 1 != 0;
                let events = (0..SETS).filter(|&set| is_in(set)).fold(0, |events, set| events | EVENTS[set]);
                pollfd { fd, events, revents: 0 }
            })
            .collect();
        // SAFETY: the set is as long as told.
        let apart = unsafe { parts(members.as_mut_ptr(), members.len(), name) }?;
        Some((apart, members))
    }

    /// `select` by way of `poll`.
    ///
    /// # Safety
    /// As for [`Sets::word`]; the sets are the program's to be changed.
    unsafe fn poll(&self, apart: &Apart, members: &mut [pollfd], longest: Option<Duration>) -> c_int {
        if apart.poll(members, longest) < 0 {
            return -1;
        }
        if members.iter().any(|member| member.revents & libc::POLLNVAL != 0) {
            crate::errno::set(libc::EBADF);
            return -1;
        }
        let mut ready = 0;
        for (set, &words) in self.sets.iter().enumerate().filter(|(_, words)| !words.is_null()) {
            let mut result = vec![0_u64; set_length(self.count) / 8];
            let wanted = members.iter().filter(|member| member.events & EVENTS[set] == EVENTS[set]);
            for member in wanted.filter(|member| member.revents & READY[set] != 0) {
                result[many(member.fd) / 64] |= 1 << (member.fd % 64);
                ready += 1;
            }
            let bytes = size_of_val(result.as_slice());
            // SAFETY: as promised.
            if unsafe { accesses::copy(result.as_ptr().cast(), words.cast(), bytes) } < bytes {
                return fault();
            }
        }
        ready
    }
}

/// How many sets there are: to be read, to be written to, with exceptions.
const SETS: usize = 3;

/// What a member of each set waits for.
const EVENTS: [i16; SETS] = [libc::POLLIN, libc::POLLOUT, libc::POLLPRI];

/// By what it is ready.
const READY: [i16; SETS] =
    [libc::POLLIN | libc::POLLHUP | libc::POLLERR, libc::POLLOUT | libc::POLLERR, libc::POLLPRI];

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
    let apart = unsafe { sets.apart("select") };
    let call = || match apart {
        Some((apart, mut members)) => {
            // SAFETY: the caller passes null or a time.
            let longest = unsafe { timeout.as_ref() }.map(|time| {
                let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
                seconds + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
            });
            // SAFETY: as the caller promises.
            unsafe { sets.poll(&apart, &mut members, longest) }
        }
        None => {
            let [r, w, e] = sets.buffers();
            with_buffers(&[r, w, e, Buffer::result(timeout)], || {
                // SAFETY: forwards the caller's arguments.
                unsafe {
                    crate::real!(select: fn(
                        c_int, *mut fd_set, *mut fd_set, *mut fd_set, *mut timeval,
                    ) -> c_int)(count, read, write, except, timeout)
                }
            })
        }
    };
    waiting(|| at_point_if(true, call))
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
    // SAFETY: as the caller promises; the set is null or one, and the call gets a copy.
    let (apart, own) = unsafe { (sets.apart("pselect"), without_faults(libc::SIG_SETMASK, mask)) };
    let mask = own.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let call = || match apart {
        Some((apart, mut members)) => with_mask(own.as_ref(), || {
            // SAFETY: as the caller promises.
            unsafe { sets.poll(&apart, &mut members, of_time(timeout)) }
        }),
        None => {
            let [r, w, e] = sets.buffers();
            with_buffers(&[r, w, e, Buffer::value(timeout), Buffer::value(mask)], || {
                // SAFETY: forwards the caller's arguments.
                unsafe {
                    crate::real!(pselect: fn(
                        c_int, *mut fd_set, *mut fd_set, *mut fd_set, *const timespec, *const sigset_t,
                    ) -> c_int)(count, read, write, except, timeout, mask)
                }
            })
        }
    };
    waiting(|| at_point_if(true, call))
}
