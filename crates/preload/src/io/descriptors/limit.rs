//! Limits of the process. That on open files: the kernel's limit must leave room for the numbers of all nodes, while the program sees
//! the limit that it was started with. Those on processes, addresses and data: the runtime has threads and mappings of its own, so that the
//! kernel knows them in children only. That on stacks: `main`'s grows.

use super::stops::{self, Numbers};
use crate::io::buffers::{Buffer, with_present};
use crate::main_thread;
use crate::numbers::int;
use crate::private_stack::uninterrupted;
use crate::process::calls::on_others;
use crate::process::{common, in_order};
use gondwana_locks::lock;
use libc::{
    RLIMIT_AS, RLIMIT_DATA, RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_STACK, c_int, c_long, c_uint, c_void, pid_t,
    rlimit,
};
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// The most descriptors of the runtime: a few, and a connection to each other node.
pub(super) fn of_runtime(nodes: u16) -> c_int {
    64 + c_int::from(nodes)
}

/// The soft limit that the program believes in; 0 for the kernel's.
static BELIEVED: AtomicU64 = AtomicU64::new(0);

fn get() -> rlimit {
    let mut limit = rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the result goes to a private variable; the call cannot fail.
    unsafe { crate::real!(getrlimit: fn(c_uint, *mut rlimit) -> c_int)(RLIMIT_NOFILE, &raw mut limit) };
    limit
}

fn set(limit: rlimit) -> c_int {
    set_of_kernel(RLIMIT_NOFILE, limit)
}

/// Sets a limit of this process as the kernel has it.
fn set_of_kernel(resource: c_uint, limit: rlimit) -> c_int {
    // The kernel cannot wait for a page of the caller's stack.
    let limit = Box::new(limit);
    // SAFETY: passes a private variable.
    unsafe { crate::real!(setrlimit: fn(c_uint, *const rlimit) -> c_int)(resource, &raw const *limit) }
}

/// The end of the numbers that this process can have, but for the program's own limit.
static ROOM: AtomicI32 = AtomicI32::new(0);

/// Raises the limit as far as possible, of which the runtime needs some.
pub(super) fn raise(of_runtime: c_int) {
    let limit = get();
    BELIEVED.store(limit.rlim_cur, Ordering::Relaxed);
    ROOM.store(number(limit.rlim_max).saturating_sub(of_runtime), Ordering::Relaxed);
    set(rlimit { rlim_cur: limit.rlim_max, ..limit });
}

/// The end of the numbers that the program may have.
pub(super) fn of_numbers() -> c_int {
    ROOM.load(Ordering::Relaxed).min(believed().map_or(c_int::MAX, number))
}

fn number(limit: u64) -> c_int {
    c_int::try_from(limit).unwrap_or(c_int::MAX)
}

/// Ends the numbers that the kernel gives the program. False if the kernel refuses.
pub(super) fn settle(end: c_int) -> bool {
    let end = u64::from(end.cast_unsigned());
    let mut starting = lock(&STARTING);
    if starting.0 > 0 {
        starting.1 = end;
        return true;
    }
    set(rlimit { rlim_cur: end, ..get() }) == 0
}

/// Bytes of the stack of the process that [`beyond`] makes.
const STACK: usize = 1 << 16;

/// Calls a function in a process that shares this one's memory and descriptors, and whose limit on open files is as high as this one's
/// can be: another thread that opens a file meanwhile is still bound by this process's own limit. False if there cannot be such a process.
///
/// The function touches private memory only, and neither allocates nor takes locks.
pub(super) fn beyond(mut call: impl FnMut()) -> bool {
    extern "C" fn enter(call: *mut c_void) -> c_int {
        let mut limit = rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: this stack is private. `beyond` passes its own reference.
        unsafe {
            gondwana_sys::syscall!(libc::SYS_getrlimit, RLIMIT_NOFILE, &raw mut limit);
            limit.rlim_cur = limit.rlim_max;
            gondwana_sys::syscall!(libc::SYS_setrlimit, RLIMIT_NOFILE, &raw const limit);
            (*call.cast::<&mut dyn FnMut()>())();
        }
        0
    }
    uninterrupted(|| {
        let mut call: &mut dyn FnMut() = &mut call;
        let mut stack = vec![0_u128; STACK / size_of::<u128>()];
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES;
        // SAFETY: the stack is the child's alone, and grows downwards from its end, which is aligned. This thread stands still until
        // the child has ended, which is reaped: its end is told by no signal.
        unsafe {
            let child =
                crate::real!(
                    clone: fn(extern "C" fn(*mut c_void) -> c_int, *mut c_void, c_int, *mut c_void) -> c_int
                )(enter, stack.as_mut_ptr_range().end.cast(), flags, (&raw mut call).cast());
            let ended = gondwana_sys::syscall!(
                libc::SYS_wait4,
                child,
                null_mut::<c_int>(),
                libc::__WCLONE,
                null_mut::<u8>()
            );
            child > 0 && ended == c_long::from(child)
        }
    })
}

/// How many threads are starting programs, and the kernel's limit from before that.
static STARTING: Mutex<(usize, u64)> = Mutex::new((0, 0));

/// Runs a call that starts a program, which gets the limit that this program sees.
pub(crate) fn for_child<R>(start: impl FnOnce() -> R) -> R {
    let Some(believed) = believed() else { return start() };
    let starting = || lock(&STARTING);
    {
        let mut starting = starting();
        if starting.0 == 0 {
            let limit = get();
            starting.1 = limit.rlim_cur;
            set(rlimit { rlim_cur: believed.min(limit.rlim_max), ..limit });
        }
        starting.0 += 1;
    }
    let result = start();
    let before = crate::errno::get();
    let mut starting = starting();
    starting.0 -= 1;
    if starting.0 == 0 {
        set(rlimit { rlim_cur: starting.1, ..get() });
    }
    crate::errno::set(before);
    result
}

/// Gives a descriptor of the runtime a number that is none of the program's, or, where there are no more, takes its own number from the
/// program.
pub(crate) fn withdraw(number: c_int) -> c_int {
    let room = Numbers::get().map_or(0, |numbers| numbers.division.room());
    let mut moved = -1;
    beyond(|| {
        // SAFETY: touches no memory.
        moved = int(unsafe { gondwana_sys::syscall!(libc::SYS_fcntl, number, libc::F_DUPFD_CLOEXEC, room) });
    });
    if moved < 0 {
        stops::withdraw(number);
        return number;
    }
    // SAFETY: the number is the caller's.
    unsafe { gondwana_sys::syscall!(libc::SYS_close, number) };
    moved
}

/// Replaces this process by a program, which gets the limit that this program sees; returns if that fails.
pub(crate) fn for_exec(replace: impl FnOnce() -> c_int) -> c_int {
    let Some(believed) = believed() else { return replace() };
    let limit = get();
    set(rlimit { rlim_cur: believed.min(limit.rlim_max), ..limit });
    let failed = replace();
    let before = crate::errno::get();
    set(limit);
    crate::errno::set(before);
    failed
}

/// In the child of a `fork`: the limits are the program's own again.
pub(super) fn restore() {
    for (resource, limit) in OF_CHILDREN.into_iter().zip(*lock(&SET)) {
        limit.map(|limit| set_of_kernel(resource, limit));
    }
    if let Some(believed) = believed() {
        BELIEVED.store(0, Ordering::Relaxed);
        let limit = get();
        set(rlimit { rlim_cur: believed.min(limit.rlim_max), ..limit });
    }
}

/// The soft limit that the program believes in, if that is not the kernel's.
pub(crate) fn believed() -> Option<u64> {
    match BELIEVED.load(Ordering::Relaxed) {
        0 => None,
        limit => Some(limit),
    }
}

/// Limits that are the program's to set and read, and in force in its children: on processes, which counts threads, and on addresses and data,
/// of which the runtime has more than any program.
const OF_CHILDREN: [c_uint; 3] = [RLIMIT_NPROC, RLIMIT_AS, RLIMIT_DATA];

/// Those that the program has set.
static SET: Mutex<[Option<rlimit>; OF_CHILDREN.len()]> = Mutex::new([None; OF_CHILDREN.len()]);

/// Sets one of them; that of the kernel stays.
fn limit_children(index: usize, wanted: rlimit) -> c_int {
    if wanted.rlim_cur > wanted.rlim_max {
        crate::errno::set(libc::EINVAL);
        return -1;
    }
    uninterrupted(|| lock(&SET)[index] = Some(wanted));
    0
}

/// Which of them a limit is.
fn of_children(resource: c_uint) -> Option<usize> {
    OF_CHILDREN.iter().position(|&limit| limit == resource)
}

/// What the program is to find as a limit, of which the kernel says something else.
fn of_program(resource: c_uint, of_kernel: rlimit) -> Option<rlimit> {
    match resource {
        RLIMIT_NOFILE => {
            believed().map(|believed| rlimit { rlim_cur: believed.min(of_kernel.rlim_max), ..of_kernel })
        }
        _ => of_children(resource).and_then(|index| uninterrupted(|| lock(&SET)[index])),
    }
}

/// Defines `getrlimit`, with the program's limit in place of the kernel's.
macro_rules! telling {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(resource: c_uint, result: *mut rlimit) -> c_int {
            with_present(&[Buffer::result(result)], || {
                // SAFETY: forwards the caller's arguments; the structure is there when the call has not failed.
                unsafe {
                    let failed = crate::real!($name: fn(c_uint, *mut rlimit) -> c_int)(resource, result);
                    if failed == 0
                        && let Some(limit) = of_program(resource, *result)
                    {
                        *result = limit;
                    }
                    failed
                }
            })
        }
    )*};
}

telling! { getrlimit getrlimit64 }

/// Sets a limit of this process. For open files, the kernel's limit stays as long as the hard limit allows.
fn set_here(&mut (resource, limit): &mut (c_uint, rlimit)) -> c_int {
    if resource == RLIMIT_NOFILE && BELIEVED.load(Ordering::Relaxed) != 0 {
        return believe(limit);
    }
    if let Some(index) = of_children(resource) {
        return limit_children(index, limit);
    }
    let result = set_of_kernel(resource, limit);
    if result == 0 && resource == RLIMIT_STACK {
        main_thread::lengthen_stack(limit.rlim_cur);
    }
    result
}

/// Sets a limit on all nodes: it is one of the process.
fn set_everywhere(resource: c_uint, limit: rlimit) -> c_int {
    let Some(node) = common() else { return set_here(&mut (resource, limit)) };
    in_order(node, || {
        let mut before = Box::new(rlimit { rlim_cur: 0, rlim_max: 0 });
        // SAFETY: the result goes to a private variable.
        if unsafe { getrlimit(resource, &raw mut *before) } != 0 || set_here(&mut (resource, limit)) != 0 {
            return -1;
        }
        let Err((at, error)) = on_others(node, (resource, limit), set_here) else { return 0 };
        set_here(&mut (resource, *before));
        let _ = on_others(node, (resource, *before), set_here);
        node.refuse(&format!(
            "setrlimit(): node {at} cannot have the limit {} of resource {resource} ({}), so no node has it",
            limit.rlim_cur,
            std::io::Error::from_raw_os_error(error)
        ));
        crate::errno::set(error);
        -1
    })
}

/// Defines `setrlimit`.
macro_rules! setting {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(resource: c_uint, limit: *const rlimit) -> c_int {
            // SAFETY: the caller passes null or a valid limit.
            match unsafe { limit.as_ref().copied() } {
                Some(limit) => set_everywhere(resource, limit),
                None => {
                    crate::errno::set(libc::EFAULT);
                    -1
                }
            }
        }
    )*};
}

setting! { setrlimit setrlimit64 }

/// Defines `prlimit`, which for this process is the other two.
macro_rules! doing_both {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            process: pid_t,
            resource: c_uint,
            new: *const rlimit,
            old: *mut rlimit,
        ) -> c_int {
            // SAFETY: forwards the caller's arguments.
            unsafe {
                let own = process == 0 || process == crate::process::identity::process();
                if own {
                    let wanted = new.as_ref().copied();
                    if !old.is_null() && getrlimit(resource, old) != 0 {
                        return -1;
                    }
                    return wanted.map_or(0, |wanted| setrlimit(resource, &raw const wanted));
                }
                with_present(&[Buffer::value(new), Buffer::result(old)], || {
                    crate::real!($name: fn(pid_t, c_uint, *const rlimit, *mut rlimit) -> c_int)(
                        process, resource, new, old,
                    )
                })
            }
        }
    )*};
}

doing_both! { prlimit prlimit64 }

/// # Safety
/// As the C library's `sysconf`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn sysconf(name: c_int) -> c_long {
    match believed() {
        // As there, -1 is no limit.
        Some(limit) if name == libc::_SC_OPEN_MAX => limit.cast_signed(),
        // SAFETY: forwards the caller's argument.
        _ => unsafe { crate::real!(sysconf: fn(c_int) -> c_long)(name) },
    }
}

/// # Safety
/// As the C library's `getdtablesize`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn getdtablesize() -> c_int {
    // SAFETY: touches no memory.
    unsafe { int(sysconf(libc::_SC_OPEN_MAX)) }
}

fn believe(wanted: rlimit) -> c_int {
    if wanted.rlim_cur > wanted.rlim_max {
        crate::errno::set(libc::EINVAL);
        return -1;
    }
    let result = set(rlimit { rlim_cur: get().rlim_cur.min(wanted.rlim_max), ..wanted });
    if result == 0 {
        BELIEVED.store(wanted.rlim_cur, Ordering::Relaxed);
    }
    result
}
