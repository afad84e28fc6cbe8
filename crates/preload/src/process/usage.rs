//! What the process has used: processor time, memory and the like of all nodes together.

use super::{common, identity, result_of};
use crate::accesses;
use crate::io::Buffer;
use crate::io::descriptors::There;
use gondwana_node::Node;
use gondwana_sys::Argument;
use gondwana_topology::NodeId;
use libc::{CLOCK_PROCESS_CPUTIME_ID, c_int, c_long, clock_t, clockid_t, rusage, timespec, timeval, tms};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

const NANOSECONDS: c_long = 1_000_000_000;
const MICROSECONDS: c_long = 1_000_000;
/// For how long it is enough to know what nodes on other computers have used, in nanoseconds: a tick of most kernels.
const TOLD_FOR: c_long = NANOSECONDS / 1000;
const ZERO: timespec = timespec { tv_sec: 0, tv_nsec: 0 };

/// What a function of the C library with these arguments, a number and a place for its result, gives on each other node where it succeeds.
fn of_others<T: Copy>(function: &str, number: c_int, nothing: T) -> Vec<T> {
    common().map_or(vec![], |node| of_nodes(node, node.others(), function, number, nothing))
}

/// The same of some nodes.
fn of_nodes<T: Copy>(
    node: &'static Node,
    nodes: impl Iterator<Item = NodeId>,
    function: &str,
    number: c_int,
    nothing: T,
) -> Vec<T> {
    let of_one = |owner: usize| {
        let mut found = Box::new(nothing);
        let place = &raw mut *found;
        let words = [number.into(), place.word()];
        let result: c_int = There { node, owner }.call(function, &words, &[Buffer::result(place)]);
        (result == 0).then_some(*found)
    };
    nodes.filter_map(|other| of_one(other.index())).collect()
}

/// The kernel's numbers of the processes of other nodes on this computer.
pub(crate) fn neighbours(node: &'static Node) -> &'static [libc::pid_t] {
    static NEIGHBOURS: OnceLock<Vec<libc::pid_t>> = OnceLock::new();
    NEIGHBOURS.get_or_init(|| of_nodes(node, node.neighbours(), "getpid", 0, 0))
}

/// The same of all other nodes, where all are of one computer.
fn others(node: &'static Node) -> Option<&'static [libc::pid_t]> {
    node.is_on_one_computer().then(|| neighbours(node))
}

/// The kernel's clock of the processor time of a process.
fn clock_of(process: libc::pid_t) -> clockid_t {
    // The lower bits say that it is the process's, and that it is the time that the scheduler knows.
    !process << 3 | 2
}

/// True for a clock of a thread.
fn is_of_thread(clock: clockid_t) -> bool {
    clock == libc::CLOCK_THREAD_CPUTIME_ID || clock < 0 && clock & 4 != 0
}

/// True for the clock of the program's processor time, by each of its names.
fn is_of_program(clock: clockid_t) -> bool {
    clock == CLOCK_PROCESS_CPUTIME_ID
        || clock < 0 && [0, gondwana_sys::process(), identity::process()].map(clock_of).contains(&clock)
}

/// What a clock says here; its error number if it cannot be read.
fn read_here(clock: clockid_t) -> Result<timespec, c_int> {
    let mut time = Box::new(ZERO);
    // SAFETY: the result goes to private memory.
    let read =
        unsafe { crate::real!(clock_gettime: fn(clockid_t, *mut timespec) -> c_int)(clock, &raw mut *time) };
    if read == 0 { Ok(*time) } else { Err(crate::errno::get()) }
}

fn in_nanoseconds(time: timespec) -> c_long {
    time.tv_sec * NANOSECONDS + time.tv_nsec
}

/// The processor time of all nodes, in nanoseconds.
fn of_program() -> Result<c_long, c_int> {
    let own = in_nanoseconds(read_here(CLOCK_PROCESS_CPUTIME_ID)?);
    let Some(node) = common() else { return Ok(own) };
    let of_others: c_long = match others(node) {
        // A node that has ended has no clock any more.
        Some(others) => {
            others.iter().filter_map(|&other| read_here(clock_of(other)).ok()).map(in_nanoseconds).sum()
        }
        None => of_other_computers(),
    };
    Ok(own + of_others)
}

/// The processor time of all other nodes, in nanoseconds, by messages: they are asked once in [`TOLD_FOR`], because programs read
/// this clock in loops.
fn of_other_computers() -> c_long {
    static TIME: AtomicI64 = AtomicI64::new(0);
    /// Until when that holds, on the monotonic clock.
    static UNTIL: AtomicI64 = AtomicI64::new(c_long::MIN);
    let now = read_here(libc::CLOCK_MONOTONIC).map_or(c_long::MAX, in_nanoseconds);
    if now < UNTIL.load(Ordering::Acquire) {
        return TIME.load(Ordering::Relaxed);
    }
    let times = of_others("clock_gettime", CLOCK_PROCESS_CPUTIME_ID, ZERO);
    // Threads that ask at the same time may hear in another order.
    let time = times.into_iter().map(in_nanoseconds).sum::<c_long>();
    let time = TIME.fetch_max(time, Ordering::Relaxed).max(time);
    UNTIL.store(now + TOLD_FOR, Ordering::Release);
    time
}

fn read(clock: clockid_t) -> Result<timespec, c_int> {
    if is_of_program(clock) {
        let time = of_program()?;
        return Ok(timespec { tv_sec: time / NANOSECONDS, tv_nsec: time % NANOSECONDS });
    }
    let here = read_here(clock);
    if here.is_err() && is_of_thread(clock) {
        // Only the node where it lives can read it.
        return of_others("clock_gettime", clock, ZERO).pop().ok_or(libc::EINVAL);
    }
    here
}

/// # Safety
/// As the C library's `clock_gettime`. Most clocks are read without the kernel.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn clock_gettime(clock: clockid_t, result: *mut timespec) -> c_int {
    if clock != CLOCK_PROCESS_CPUTIME_ID && clock != libc::CLOCK_THREAD_CPUTIME_ID && clock >= 0 {
        // SAFETY: forwards the caller's arguments.
        return unsafe { crate::real!(clock_gettime: fn(clockid_t, *mut timespec) -> c_int)(clock, result) };
    }
    // SAFETY: the caller passes a place for the result.
    unsafe { give(read(clock), result) }
}

/// The C library's convention: 0 with a result, or -1 with an error number in `errno`.
///
/// # Safety
/// There is a place for the result, or nothing.
unsafe fn give<T: Copy>(found: Result<T, c_int>, result: *mut T) -> c_int {
    // SAFETY: the caller's promise.
    result_of(found.and_then(|found| match unsafe { accesses::store(&found, result) } {
        true => Ok(()),
        false => Err(libc::EFAULT),
    }))
}

/// # Safety
/// As the C library's `clock`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn clock() -> clock_t {
    of_program().map_or(-1, |time| time / (NANOSECONDS / MICROSECONDS))
}

/// What all nodes have used: `who` as `getrusage` takes it.
fn used(who: c_int) -> Result<rusage, c_int> {
    // SAFETY: zero is a valid value.
    let nothing: rusage = unsafe { std::mem::zeroed() };
    let mut own = Box::new(nothing);
    // SAFETY: the result goes to private memory.
    if unsafe { crate::real!(getrusage: fn(c_int, *mut rusage) -> c_int)(who, &raw mut *own) } != 0 {
        return Err(crate::errno::get());
    }
    if who == libc::RUSAGE_THREAD {
        return Ok(*own);
    }
    Ok(of_others("getrusage", who, nothing).into_iter().fold(*own, both))
}

/// What two processes have used.
fn both(one: rusage, other: rusage) -> rusage {
    rusage {
        ru_utime: sum(one.ru_utime, other.ru_utime),
        ru_stime: sum(one.ru_stime, other.ru_stime),
        ru_maxrss: one.ru_maxrss + other.ru_maxrss,
        ru_minflt: one.ru_minflt + other.ru_minflt,
        ru_majflt: one.ru_majflt + other.ru_majflt,
        ru_inblock: one.ru_inblock + other.ru_inblock,
        ru_oublock: one.ru_oublock + other.ru_oublock,
        ru_nvcsw: one.ru_nvcsw + other.ru_nvcsw,
        ru_nivcsw: one.ru_nivcsw + other.ru_nivcsw,
        ..one
    }
}

fn sum(one: timeval, other: timeval) -> timeval {
    let microseconds = one.tv_usec + other.tv_usec;
    timeval {
        tv_sec: one.tv_sec + other.tv_sec + microseconds / MICROSECONDS,
        tv_usec: microseconds % MICROSECONDS,
    }
}

/// # Safety
/// As the C library's `getrusage`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn getrusage(who: c_int, result: *mut rusage) -> c_int {
    // SAFETY: the caller passes a place for the result.
    unsafe { give(used(who), result) }
}

/// # Safety
/// As the C library's `times`, whose failure is a value that is not an error elsewhere.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn times(result: *mut tms) -> clock_t {
    let mut own = Box::new(tms { tms_utime: 0, tms_stime: 0, tms_cutime: 0, tms_cstime: 0 });
    // SAFETY: the result goes to private memory.
    let ticks = unsafe { crate::real!(times: fn(*mut tms) -> clock_t)(&raw mut *own) };
    // SAFETY: touches no memory.
    let tick = MICROSECONDS / unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    let in_ticks = |time: timeval| (time.tv_sec * MICROSECONDS + time.tv_usec) / tick;
    if let (Ok(own_time), Ok(of_children)) = (used(libc::RUSAGE_SELF), used(libc::RUSAGE_CHILDREN)) {
        *own = tms {
            tms_utime: in_ticks(own_time.ru_utime),
            tms_stime: in_ticks(own_time.ru_stime),
            tms_cutime: in_ticks(of_children.ru_utime),
            tms_cstime: in_ticks(of_children.ru_stime),
        };
    }
    // SAFETY: the caller passes null or a place for the result.
    let is_told = result.is_null() || unsafe { accesses::store(&*own, result) };
    if is_told {
        ticks
    } else {
        crate::errno::set(libc::EFAULT);
        -1
    }
}
