//! `taskloop`: a loop cut into tasks.

use super::context;
use super::reduction;
use super::schedule::Loop;
use super::task::{self, Arguments, Copy, Function, flag};
use super::task_wait;
use libc::{c_int, c_long, c_uint, c_ulong, c_ulonglong, c_void};

/// The iterations of each task: `each`, and one more for the first `more` tasks. The last one has those that are left.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub tasks: u64,
    pub each: u64,
    pub more: u64,
}

/// Divides a loop. `wanted` is the number of tasks or, with `grain`, the least number of iterations of each; `strict` is exactly that
/// number, but for the last task.
pub(super) fn cut(count: u64, wanted: u64, grain: bool, strict: bool, threads: u64) -> Cut {
    if grain && strict {
        let each = wanted.max(1);
        return Cut { tasks: count.div_ceil(each), each, more: 0 };
    }
    let tasks = match (grain, wanted) {
        (true, least) => count / least.max(1),
        (false, 0) => threads,
        (false, tasks) => tasks,
    };
    let tasks = tasks.clamp(1, count.max(1));
    Cut { tasks, each: count / tasks, more: count % tasks }
}

/// Makes the tasks of a loop. Their arguments begin with the values from which and before which they run.
unsafe fn run(
    function: Function,
    data: *mut c_void,
    arguments: Arguments,
    flags: u32,
    wanted: u64,
    work: Loop,
) {
    let has = |bit| flags & bit != 0;
    let reduced = has(flag::REDUCTION);
    if work.count == 0 && !reduced {
        return;
    }
    context::team();
    let Cut { tasks, each, more } =
        cut(work.count, wanted, has(flag::GRAIN), has(flag::STRICT), context::get().threads().into());
    // SAFETY: forwards what gcc passed.
    unsafe {
        if !has(flag::NO_GROUP) {
            task_wait::GOMP_taskgroup_start();
        }
        if reduced {
            // The description follows the two numbers.
            reduction::GOMP_taskgroup_reduction_register(data.cast::<*mut usize>().add(2).read());
        }
        let mut first = 0;
        for number in 0..if work.count == 0 { 0 } else { tasks } {
            let next = (first + each + u64::from(number < more)).min(work.count);
            let arguments = Arguments { bounds: Some(work.values(&(first..next))), ..arguments };
            task::make(function, arguments, has(flag::IF), flags & flag::FINAL, std::ptr::null(), None);
            first = next;
        }
        if !has(flag::NO_GROUP) {
            task_wait::GOMP_taskgroup_end();
        }
    }
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_taskloop(
    function: Function,
    data: *mut c_void,
    copy: Copy,
    size: c_long,
    align: c_long,
    flags: c_uint,
    wanted: c_ulong,
    _priority: c_int,
    start: c_long,
    end: c_long,
    step: c_long,
) {
    let arguments = Arguments::new(data, copy, size, align);
    // SAFETY: forwards what gcc passed.
    unsafe { run(function, data, arguments, flags, wanted, Loop::signed(start, end, step)) };
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_taskloop_ull(
    function: Function,
    data: *mut c_void,
    copy: Copy,
    size: c_long,
    align: c_long,
    flags: c_uint,
    wanted: c_ulong,
    _priority: c_int,
    start: c_ulonglong,
    end: c_ulonglong,
    step: c_ulonglong,
) {
    let arguments = Arguments::new(data, copy, size, align);
    let work = Loop::unsigned(flags & flag::UP != 0, start, end, step);
    // SAFETY: forwards what gcc passed.
    unsafe { run(function, data, arguments, flags, wanted, work) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_iterations_are_in_tasks() {
        for (count, wanted, grain) in
            [(10, 3, false), (10, 3, true), (2, 8, false), (5, 9, true), (7, 0, false)]
        {
            let Cut { tasks, each, more } = cut(count, wanted, grain, false, 4);
            assert_eq!(tasks * each + more, count);
            assert!(more < tasks && (!grain || each >= wanted.min(count)));
        }
        assert_eq!(cut(100, 0, false, false, 4), Cut { tasks: 4, each: 25, more: 0 });
        assert_eq!(cut(100, 30, true, true, 4), Cut { tasks: 4, each: 30, more: 0 });
    }
}
