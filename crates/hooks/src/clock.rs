//! Simulated time in place of the host's.

use crate::next;
use crate::world::{started, wait, world};
use gondwana_sim::{CALENDAR, NANOSECOND, Time};
use libc::{c_int, c_long, clockid_t, timespec, timeval};

const SECOND: Time = 1_000_000_000 * NANOSECOND;

/// What a calendar says when the program starts.
const EPOCH: c_long = CALENDAR as c_long;

/// The time of the thread that runs.
fn now() -> Time {
    world().map_or(0, |world| world.now())
}

fn to_timespec(time: Time, epoch: c_long) -> timespec {
    timespec { tv_sec: epoch + (time / SECOND) as c_long, tv_nsec: (time % SECOND / NANOSECOND) as c_long }
}

/// A length of time; nothing if it is negative.
fn length(of: &timespec) -> Time {
    let (seconds, rest) = (of.tv_sec.max(0) as u64, of.tv_nsec.max(0) as u64);
    seconds.saturating_mul(SECOND).saturating_add(rest * NANOSECOND)
}

/// A moment that the program names, by the calendar or since the start.
pub(crate) fn moment(of: &timespec, clock: clockid_t) -> Time {
    let epoch = if clock == libc::CLOCK_MONOTONIC { 0 } else { EPOCH };
    length(&timespec { tv_sec: of.tv_sec - epoch, tv_nsec: of.tv_nsec })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: clockid_t, to: *mut timespec) -> c_int {
    if world().is_none() {
        let real = next!(clock_gettime: unsafe extern "C" fn(clockid_t, *mut timespec) -> c_int);
        // SAFETY: the caller's own call.
        return unsafe { real(clock, to) };
    }
    let calendar = [libc::CLOCK_REALTIME, libc::CLOCK_REALTIME_COARSE, libc::CLOCK_TAI].contains(&clock);
    // SAFETY: the program's variable.
    unsafe { to.write(to_timespec(now(), if calendar { EPOCH } else { 0 })) };
    0
}

/// C11's: the calendar.
#[unsafe(no_mangle)]
unsafe extern "C" fn timespec_get(to: *mut timespec, base: c_int) -> c_int {
    /// `TIME_UTC`.
    const CALENDAR: c_int = 1;
    // SAFETY: the program's own call.
    if base == CALENDAR && unsafe { clock_gettime(libc::CLOCK_REALTIME, to) } == 0 { base } else { 0 }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn gettimeofday(to: *mut timeval, _zone: *mut libc::c_void) -> c_int {
    let time = to_timespec(now(), EPOCH);
    // SAFETY: the program's variable.
    unsafe { to.write(timeval { tv_sec: time.tv_sec, tv_usec: time.tv_nsec / 1000 }) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn time(to: *mut libc::time_t) -> libc::time_t {
    let seconds = to_timespec(now(), EPOCH).tv_sec;
    if !to.is_null() {
        // SAFETY: the program's variable.
        unsafe { to.write(seconds) };
    }
    seconds
}

#[unsafe(no_mangle)]
extern "C" fn clock() -> libc::clock_t {
    (now() / (SECOND / 1_000_000)) as libc::clock_t
}

/// The thread waits for a length of time.
fn sleep_for(time: Time) {
    if world().is_some() {
        let until = started().now().saturating_add(time);
        wait(Some(until));
    }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nanosleep(wanted: *const timespec, rest: *mut timespec) -> c_int {
    // SAFETY: the program's variables.
    unsafe {
        sleep_for(length(&*wanted));
        if !rest.is_null() {
            rest.write(to_timespec(0, 0));
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_nanosleep(
    clock: clockid_t,
    flags: c_int,
    wanted: *const timespec,
    rest: *mut timespec,
) -> c_int {
    if flags & libc::TIMER_ABSTIME == 0 {
        // SAFETY: as the caller promises.
        return unsafe { nanosleep(wanted, rest) };
    }
    // SAFETY: the program's variable.
    let until = moment(unsafe { &*wanted }, clock);
    sleep_for(until.saturating_sub(now()));
    0
}

#[unsafe(no_mangle)]
extern "C" fn usleep(microseconds: u32) -> c_int {
    sleep_for(u64::from(microseconds) * 1000 * NANOSECOND);
    0
}

#[unsafe(no_mangle)]
extern "C" fn sleep(seconds: u32) -> u32 {
    sleep_for(u64::from(seconds) * SECOND);
    0
}
