//! How the kernel runs threads that are named by their numbers. That of the process is the thread of `main`.

use super::identity::kernel_number;
use crate::io::{Buffer, with_buffers};
use gondwana_node::{Node, Pause, Scheduling};
use gondwana_page::to_usize;
use libc::{c_int, c_void, id_t, pid_t, pthread_attr_t, sched_param, size_t};
use std::sync::OnceLock;

macro_rules! of_a_thread {
    ($(fn $name:ident($number:ident: pid_t $(, $argument:ident: $type:ty)*) { $($buffer:expr),* })*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($number: pid_t $(, $argument: $type)*) -> c_int {
            let number = kernel_number($number);
            with_buffers(&[$($buffer),*], || {
                // SAFETY: forwards the caller's arguments.
                unsafe { crate::real!($name: fn(pid_t $(, $type)*) -> c_int)(number $(, $argument)*) }
            })
        }
    )*};
}

of_a_thread! {
    fn sched_setaffinity(number: pid_t, size: size_t, set: *const c_void) { Buffer::read(set, size) }
    fn sched_getaffinity(number: pid_t, size: size_t, set: *mut c_void) { Buffer::write(set, size) }
    fn sched_setscheduler(number: pid_t, policy: c_int, new: *const sched_param) { Buffer::value(new) }
    fn sched_getscheduler(number: pid_t) {}
    fn sched_setparam(number: pid_t, new: *const sched_param) { Buffer::value(new) }
    fn sched_getparam(number: pid_t, result: *mut sched_param) { Buffer::result(result) }
}

/// The calling thread lets time go by as long as the value lives.
pub(crate) fn pause() -> Option<Pause> {
    Node::current().map(Node::pause)
}

/// # Safety
/// Has no preconditions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sched_yield() -> c_int {
    let _pause = pause();
    // SAFETY: touches no memory.
    crate::numbers::int(unsafe { gondwana_sys::syscall!(libc::SYS_sched_yield) })
}

/// The thread's number, where a process is meant.
fn named(which: libc::__priority_which_t, number: id_t) -> id_t {
    match pid_t::try_from(number) {
        Ok(process) if which == libc::PRIO_PROCESS => kernel_number(process).unsigned_abs(),
        _ => number,
    }
}

/// # Safety
/// Has no preconditions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn setpriority(
    which: libc::__priority_which_t,
    number: id_t,
    priority: c_int,
) -> c_int {
    let real = crate::real!(setpriority: fn(libc::__priority_which_t, id_t, c_int) -> c_int);
    // SAFETY: touches no memory.
    unsafe { real(which, named(which, number), priority) }
}

/// # Safety
/// Has no preconditions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn getpriority(which: libc::__priority_which_t, number: id_t) -> c_int {
    let real = crate::real!(getpriority: fn(libc::__priority_which_t, id_t) -> c_int);
    // SAFETY: touches no memory.
    unsafe { real(which, named(which, number)) }
}

/// A set of processors.
type Processors = [u64; 16];

/// How the kernel runs the calling thread, as far as it tells.
fn of_caller() -> Scheduling {
    let mut processors = Box::new(Processors::default());
    let mut priority = Box::new(sched_param { sched_priority: 0 });
    // SAFETY: private places for the results; 0 is the calling thread.
    let (nice, filled, policy, told) = unsafe {
        (
            gondwana_sys::syscall!(libc::SYS_getpriority, libc::PRIO_PROCESS, 0),
            gondwana_sys::syscall!(
                libc::SYS_sched_getaffinity,
                0,
                size_of::<Processors>(),
                processors.as_mut_ptr()
            ),
            gondwana_sys::syscall!(libc::SYS_sched_getscheduler, 0),
            gondwana_sys::syscall!(libc::SYS_sched_getparam, 0, &raw mut *priority),
        )
    };
    Scheduling {
        // The kernel adds what makes it positive.
        nice: (nice > 0).then(|| 20 - crate::numbers::int(nice)),
        processors: (filled > 0).then_some(*processors),
        policy: (policy >= 0 && told == 0).then(|| [crate::numbers::int(policy), priority.sched_priority]),
    }
}

/// How the kernel ran this process when it was started.
static AT_START: OnceLock<Scheduling> = OnceLock::new();

/// Notes that.
pub(super) fn begin() {
    let _ = AT_START.set(of_caller());
}

/// What the calling thread passes on to a thread that it starts, perhaps on another node, where other things are usual: what the program has
/// changed.
pub(crate) fn passed_on() -> Scheduling {
    let Some(at_start) = AT_START.get() else { return Scheduling::default() };
    let before = crate::errno::get();
    let own = of_caller();
    crate::errno::set(before);
    Scheduling {
        nice: own.nice.filter(|_| own.nice != at_start.nice),
        processors: own.processors.filter(|_| own.processors != at_start.processors),
        policy: own.policy.filter(|_| own.policy != at_start.policy),
    }
}

/// The capability by which a process may use any policy and priority, and where the kernel tells which a process has.
const CAP_SYS_NICE: u32 = 23;

/// True if this process may have threads of a policy for real time with a priority.
fn may_have(priority: c_int) -> bool {
    /// As in `linux/capability.h`, version 3.
    #[repr(C)]
    struct Header {
        version: u32,
        process: c_int,
    }
    let header = Box::new(Header { version: 0x2008_0522, process: 0 });
    // Effective, permitted and inheritable ones, of which there are twice 32.
    let mut sets = Box::new([[0_u32; 3]; 2]);
    let mut limit = Box::new(libc::rlimit { rlim_cur: 0, rlim_max: 0 });
    // SAFETY: private places for the results.
    let told = unsafe {
        libc::getrlimit(libc::RLIMIT_RTPRIO, &raw mut *limit);
        gondwana_sys::syscall!(libc::SYS_capget, &raw const *header, sets.as_mut_ptr())
    };
    let is_able = told == 0 && sets[0][0] & 1 << CAP_SYS_NICE != 0;
    is_able || u64::try_from(priority).is_ok_and(|priority| priority <= limit.rlim_cur)
}

/// Why a thread of a policy and a priority would not be created; 0 if it would be.
fn refusal(policy: c_int, priority: c_int) -> c_int {
    // SAFETY: touch no memory.
    let (least, most) =
        unsafe { (libc::sched_get_priority_min(policy), libc::sched_get_priority_max(policy)) };
    if least < 0 || !(least..=most).contains(&priority) {
        libc::EINVAL
    } else if matches!(policy, libc::SCHED_FIFO | libc::SCHED_RR) && !may_have(priority) {
        libc::EPERM
    } else {
        0
    }
}

/// Changes what a new thread gets to what its attributes say.
///
/// # Safety
/// The attributes are valid.
///
/// # Errors
/// An error number: a thread cannot have that.
pub(crate) unsafe fn by_attributes(
    scheduling: &mut Scheduling,
    attributes: *const pthread_attr_t,
) -> Result<(), c_int> {
    let mut processors = Box::new(Processors::default());
    let (mut inherits, mut policy) = (libc::PTHREAD_INHERIT_SCHED, 0);
    let mut priority = sched_param { sched_priority: 0 };
    // SAFETY: the caller's promise, and private places for the results.
    unsafe {
        let told = libc::pthread_attr_getaffinity_np(
            attributes,
            size_of::<Processors>(),
            processors.as_mut_ptr().cast(),
        );
        // All processors stand for none said.
        if told == 0 && *processors != [u64::MAX; 16] {
            let count = Node::current().map_or(0, |node| node.processors()).max(configured()).min(1024);
            if (0..count).all(|number| processors[to_usize(u64::from(number / 64))] & 1 << (number % 64) == 0)
            {
                return Err(libc::EINVAL);
            }
            scheduling.processors = Some(*processors);
        }
        libc::pthread_attr_getinheritsched(attributes, &raw mut inherits);
        if inherits == libc::PTHREAD_EXPLICIT_SCHED
            && libc::pthread_attr_getschedpolicy(attributes, &raw mut policy) == 0
            && libc::pthread_attr_getschedparam(attributes, &raw mut priority) == 0
        {
            match refusal(policy, priority.sched_priority) {
                0 => scheduling.policy = Some([policy, priority.sched_priority]),
                error => return Err(error),
            }
        }
    }
    Ok(())
}

/// How many processors this computer can have; their numbers are less.
fn configured() -> u32 {
    // SAFETY: touches no memory.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    u32::try_from(count).unwrap_or(1)
}

/// In a new thread: takes over what was passed on. Processors that this computer does not have are left out; if it has none of them, the
/// thread may run on all of its node's.
pub(crate) fn take_over(scheduling: &Scheduling) {
    // SAFETY: private memory; 0 is the calling thread. A refusal leaves everything as it was.
    unsafe {
        if let Some(nice) = scheduling.nice {
            gondwana_sys::syscall!(libc::SYS_setpriority, libc::PRIO_PROCESS, 0, nice);
        }
        if let Some(processors) = scheduling.processors.map(Box::new) {
            gondwana_sys::syscall!(
                libc::SYS_sched_setaffinity,
                0,
                size_of::<Processors>(),
                processors.as_ptr()
            );
        }
        if let Some([policy, priority]) = scheduling.policy {
            let priority = Box::new(sched_param { sched_priority: priority });
            gondwana_sys::syscall!(libc::SYS_sched_setscheduler, 0, policy, &raw const *priority);
        }
    }
}
