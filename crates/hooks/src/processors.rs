//! What the program asks about the machine's processors, and which of them its threads may run on.

use crate::next;
use crate::threads::find;
use crate::world::{go_to_another, started, world};
use gondwana_sim::{Allowed, ThreadId};
use libc::{c_int, c_uint, cpu_set_t, pid_t, pthread_attr_t, pthread_t};

/// How many processors the machine has, for programs that ask the C library.
#[unsafe(no_mangle)]
extern "C" fn get_nprocs() -> c_int {
    started().machine.processors() as c_int
}

#[unsafe(no_mangle)]
extern "C" fn get_nprocs_conf() -> c_int {
    get_nprocs()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sysconf(name: c_int) -> libc::c_long {
    let real = next!(sysconf: unsafe extern "C" fn(c_int) -> libc::c_long);
    match (name, world()) {
        (libc::_SC_NPROCESSORS_ONLN | libc::_SC_NPROCESSORS_CONF, Some(world)) => {
            world.machine.processors() as libc::c_long
        }
        // SAFETY: the caller's own call.
        _ => unsafe { real(name) },
    }
}

#[unsafe(no_mangle)]
extern "C" fn sched_getcpu() -> c_int {
    started().schedule.current() as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getcpu(processor: *mut c_uint, node: *mut c_uint) -> c_int {
    let world = started();
    let current = world.schedule.current();
    // SAFETY: the program's variables, or null.
    unsafe {
        if !processor.is_null() {
            processor.write(current as c_uint);
        }
        if !node.is_null() {
            node.write(c_uint::from(world.machine.node_of(current)));
        }
    }
    0
}

/// The processors of the machine that are in a set of the program.
///
/// # Safety
/// There are so many bytes.
unsafe fn read_set(bytes: usize, set: *const cpu_set_t) -> Vec<usize> {
    // SAFETY: as the caller promises.
    let set = unsafe { std::slice::from_raw_parts(set.cast::<u8>(), bytes) };
    let has = |processor: &usize| set.get(processor / 8).is_some_and(|byte| byte >> (processor % 8) & 1 == 1);
    (0..started().machine.processors()).filter(has).collect()
}

/// Writes the processors that a thread may run on. Returns how many bytes are needed.
///
/// # Safety
/// There is room for so many bytes.
unsafe fn write_set(thread: ThreadId, bytes: usize, set: *mut cpu_set_t) -> usize {
    let world = started();
    let allowed = world.schedule.allowed(thread);
    // SAFETY: as the caller promises.
    let set = unsafe { std::slice::from_raw_parts_mut(set.cast::<u8>(), bytes) };
    set.fill(0);
    for processor in (0..world.machine.processors()).filter(|processor| allowed.has(*processor)) {
        if let Some(byte) = set.get_mut(processor / 8) {
            *byte |= 1 << (processor % 8);
        }
    }
    world.machine.processors().div_ceil(64) * 8
}

/// The processors that attributes of the program name for a new thread; none if they say nothing about it.
///
/// # Safety
/// The program's attributes, or null.
pub(crate) unsafe fn of_attributes(attributes: *const pthread_attr_t) -> Option<Allowed> {
    if attributes.is_null() {
        return None;
    }
    let mut set = [0_u8; size_of::<cpu_set_t>()];
    let address = set.as_mut_ptr().cast();
    // SAFETY: as the caller promises; the set has room.
    let named = unsafe {
        libc::pthread_attr_getaffinity_np(attributes, set.len(), address);
        read_set(set.len(), address)
    };
    // The C library says all if nothing was set.
    (!named.is_empty() && named.len() < started().machine.processors()).then(|| Allowed::new(named))
}

/// Lets a thread run only on some processors. One that runs on another now goes on until it waits, unless it is this one.
unsafe fn allow(thread: ThreadId, bytes: usize, set: *const cpu_set_t) -> c_int {
    // SAFETY: the program's set.
    let named = unsafe { read_set(bytes, set) };
    if named.is_empty() {
        return libc::EINVAL;
    }
    let world = started();
    world.schedule.allow(thread, Allowed::new(named));
    let last = world.threads[thread].processor;
    if world.schedule.must_leave(thread, last) {
        go_to_another(thread);
    }
    0
}

/// The thread that a number of the kernel names: this one, the only one whose number the program can know.
fn of_number(number: pid_t) -> Option<ThreadId> {
    // SAFETY: a system call.
    let own = unsafe { gondwana_sys::syscall!(libc::SYS_getpid) };
    (number == 0 || i64::from(number) == own).then(|| started().current)
}

fn failed(error: c_int) -> c_int {
    // SAFETY: the thread's own variable.
    unsafe { *libc::__errno_location() = error };
    -1
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sched_setaffinity(number: pid_t, bytes: usize, set: *const cpu_set_t) -> c_int {
    let Some(thread) = of_number(number) else { return failed(libc::ESRCH) };
    // SAFETY: the program's set.
    match unsafe { allow(thread, bytes, set) } {
        0 => 0,
        error => failed(error),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sched_getaffinity(number: pid_t, bytes: usize, set: *mut cpu_set_t) -> c_int {
    if world().is_none() {
        let real = next!(sched_getaffinity: unsafe extern "C" fn(pid_t, usize, *mut cpu_set_t) -> c_int);
        // SAFETY: the caller's own call.
        return unsafe { real(number, bytes, set) };
    }
    let Some(thread) = of_number(number) else { return failed(libc::ESRCH) };
    // SAFETY: the program's set.
    if unsafe { write_set(thread, bytes, set) } > bytes { failed(libc::EINVAL) } else { 0 }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_setaffinity_np(handle: pthread_t, bytes: usize, set: *const cpu_set_t) -> c_int {
    let Some(thread) = find(handle) else { return libc::ESRCH };
    // SAFETY: the program's set.
    unsafe { allow(thread, bytes, set) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_getaffinity_np(handle: pthread_t, bytes: usize, set: *mut cpu_set_t) -> c_int {
    if world().is_none() {
        let real =
            next!(pthread_getaffinity_np: unsafe extern "C" fn(pthread_t, usize, *mut cpu_set_t) -> c_int);
        // SAFETY: the caller's own call.
        return unsafe { real(handle, bytes, set) };
    }
    let Some(thread) = find(handle) else { return libc::ESRCH };
    // SAFETY: the program's set.
    if unsafe { write_set(thread, bytes, set) } > bytes { libc::EINVAL } else { 0 }
}
