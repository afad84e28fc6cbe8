//! Tasks. The program asks for a task's memory, fills it, and then gives the task away.

use super::Place;
use super::task_block::{self, Routine, TaskRecord, flag};
use super::task_reductions;
use crate::openmp::context::{self, Context};
use crate::openmp::event;
use crate::openmp::task::{self, Arguments, flag as gcc_flag};
use crate::openmp::task_wait;
use crate::openmp::taskloop::{Cut, cut};
use gondwana_tasks::Dependence;
use libc::{c_int, c_void};
use std::cell::RefCell;

/// A dependence, as the compiler describes it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct DependInfo {
    address: usize,
    length: usize,
    flags: u8,
}

/// The task only reads; it depends on all memory, as it does with the last address.
const IN: u8 = 1;
const ALL: u8 = 0x80;

impl DependInfo {
    fn address(&self) -> usize {
        if self.flags & ALL != 0 || self.address == usize::MAX { Dependence::ALL } else { self.address }
    }
}

/// Copies the private data of a task of a `taskloop`.
type Duplicate = Option<unsafe extern "C" fn(*mut TaskRecord, *mut TaskRecord, c_int)>;

thread_local! {
    /// Where the thread was before tasks that the program itself runs at once.
    static BEFORE: RefCell<Vec<Context>> = const { RefCell::new(vec![]) };
}

/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_omp_task_alloc(
    _place: Place,
    _thread: c_int,
    flags: c_int,
    bytes: usize,
    shared: usize,
    routine: Option<Routine>,
) -> *mut TaskRecord {
    task_block::create(flags, bytes, shared, routine)
}

/// The memory of a `target` region that is a task: there is no device, so that it is one like others.
///
/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_omp_target_task_alloc(
    _place: Place,
    _thread: c_int,
    flags: c_int,
    bytes: usize,
    shared: usize,
    routine: Option<Routine>,
    _device: i64,
) -> *mut TaskRecord {
    task_block::create(flags, bytes, shared, routine)
}

/// The event of a task with a `detach` clause.
///
/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_task_allow_completion_event(
    _place: Place,
    _thread: c_int,
    record: *mut TaskRecord,
) -> u64 {
    let event = event::create();
    // SAFETY: a record of `__kmpc_omp_task_alloc`.
    unsafe { task_block::event(record).write(event) };
    event
}

/// The function of these tasks: their argument is the address of a record.
pub(crate) unsafe extern "C" fn run(data: *mut c_void) {
    // SAFETY: `give` passes a record, which is this task's.
    unsafe {
        let record = *data.cast::<*mut TaskRecord>();
        let number = context::get().number.cast_signed();
        if let Some(routine) = (*record).routine {
            routine(number, record);
        }
        destroy(record, number);
    }
}

/// Such a task will not run.
///
/// # Safety
/// The data is the argument of [`run`].
pub(crate) unsafe fn discard(data: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { destroy(*data.cast::<*mut TaskRecord>(), context::get().number.cast_signed()) };
}

/// Destroys the private data of a task that has run, and frees it.
unsafe fn destroy(record: *mut TaskRecord, number: c_int) {
    // SAFETY: the caller passes a record that is not used any more.
    unsafe {
        if task_block::flags(record) & flag::DESTROY != 0 && (*record).destroy != 0 {
            let destroy: Routine = std::mem::transmute((*record).destroy);
            destroy(number, record);
        }
        task_block::discard(record);
    }
}

/// Gives a task away, or runs it at once.
unsafe fn give(mut record: *mut TaskRecord, wanted: bool, depend: &[DependInfo]) {
    let data = (&raw mut record).cast();
    let arguments = Arguments {
        data,
        copy: None,
        size: size_of_val(&record),
        align: align_of_val(&record),
        bounds: None,
    };
    let list = list(depend);
    // SAFETY: the program passes a record of `__kmpc_omp_task_alloc`; the list is as gcc makes them.
    unsafe {
        let last = if task_block::flags(record) & flag::FINAL != 0 { gcc_flag::FINAL } else { 0 };
        let depends = if depend.is_empty() { 0 } else { gcc_flag::DEPEND };
        let event = task_block::event(record).read();
        task::make(run, arguments, wanted, last | depends, list.as_ptr(), (event != 0).then_some(event));
    }
}

/// Dependences as gcc describes them: how many there are, how many of them change, the addresses of those and of the others.
fn list(depend: &[DependInfo]) -> Vec<*mut c_void> {
    let addresses = |changes: bool| {
        depend
            .iter()
            .filter(move |info| (info.flags != IN) == changes)
            .map(|info| info.address() as *mut c_void)
    };
    let changing = addresses(true).count();
    [depend.len() as *mut c_void, changing as *mut c_void]
        .into_iter()
        .chain(addresses(true))
        .chain(addresses(false))
        .collect()
}

/// # Safety
/// There are so many, or none at all.
unsafe fn depends<'a>(count: c_int, list: *const DependInfo) -> &'a [DependInfo] {
    match usize::try_from(count) {
        // SAFETY: the caller's promise.
        Ok(count) if count > 0 && !list.is_null() => unsafe { std::slice::from_raw_parts(list, count) },
        _ => &[],
    }
}

/// Defines functions that give a task away.
macro_rules! giving {
    ($($name:ident)*) => {$(
        /// # Safety
        /// Called by code that clang has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(_place: Place, _thread: c_int, record: *mut TaskRecord) -> c_int {
            // SAFETY: forwards what the program passes.
            unsafe { give(record, true, &[]) };
            0
        }
    )*};
}

giving! { __kmpc_omp_task __kmpc_omp_task_parts }

/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_omp_task_with_deps(
    _place: Place,
    _thread: c_int,
    record: *mut TaskRecord,
    count: c_int,
    list: *const DependInfo,
    more: c_int,
    more_list: *const DependInfo,
) -> c_int {
    // SAFETY: forwards what the program passes.
    unsafe { give(record, true, &[depends(count, list), depends(more, more_list)].concat()) };
    0
}

/// As [`__kmpc_omp_wait_deps`]; for `nowait`, compilers make a task that does nothing.
///
/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_omp_taskwait_deps_51(
    place: Place,
    thread: c_int,
    count: c_int,
    depend: *const DependInfo,
    more: c_int,
    more_list: *const DependInfo,
    _nowait: c_int,
) {
    // SAFETY: forwards what the program passes.
    unsafe { __kmpc_omp_wait_deps(place, thread, count, depend, more, more_list) };
}

/// The task of a `task` with an `affinity` clause, which is a hint, is given away later.
///
/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_omp_reg_task_with_affinity(
    _place: Place,
    _thread: c_int,
    _record: *mut TaskRecord,
    _count: c_int,
    _list: *const c_void,
) -> c_int {
    0
}

/// Waits for the sibling tasks that must run before one with these dependences, which the program then runs itself.
///
/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_omp_wait_deps(
    _place: Place,
    _thread: c_int,
    count: c_int,
    depend: *const DependInfo,
    more: c_int,
    more_list: *const DependInfo,
) {
    // SAFETY: forwards what the program passes.
    unsafe {
        let mut list = list(&[depends(count, depend), depends(more, more_list)].concat());
        task_wait::GOMP_taskwait_depend(list.as_mut_ptr());
    }
}

/// The program is about to run a task itself.
///
/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_omp_task_begin_if0(
    _place: Place,
    _thread: c_int,
    record: *mut TaskRecord,
) {
    context::team();
    let before = context::get();
    BEFORE.with_borrow_mut(|all| all.push(before));
    // SAFETY: a record of `__kmpc_omp_task_alloc`.
    let last = unsafe { task_block::flags(record) } & flag::FINAL != 0;
    context::set(Context { scope: before.scope.inside(), last: before.last || last, ..before });
}

/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_omp_task_complete_if0(
    _place: Place,
    _thread: c_int,
    record: *mut TaskRecord,
) {
    task::end();
    if let Some(before) = BEFORE.with_borrow_mut(Vec::pop) {
        context::update(|context| (context.scope, context.last) = (before.scope, before.last));
    }
    // SAFETY: the task has run.
    unsafe {
        let event = task_block::event(record).read();
        if event != 0 {
            event::wait(event);
        }
        destroy(record, context::get().number.cast_signed());
    }
}

/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_omp_taskwait(_place: Place, _thread: c_int) -> c_int {
    // SAFETY: in a team or outside, as gcc calls it.
    unsafe { task_wait::GOMP_taskwait() };
    0
}

/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_omp_taskyield(_place: Place, _thread: c_int, _end: c_int) -> c_int {
    0
}

/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_taskgroup(_place: Place, _thread: c_int) {
    task_reductions::begin_group();
}

/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_end_taskgroup(_place: Place, _thread: c_int) {
    task_reductions::end_group();
}

/// Makes the tasks of a loop: copies of one, each with its own ends.
///
/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_taskloop(
    place: Place,
    thread: c_int,
    record: *mut TaskRecord,
    wanted: c_int,
    first: *mut u64,
    last: *mut u64,
    step: i64,
    no_group: c_int,
    schedule: c_int,
    grain: u64,
    duplicate: Duplicate,
) {
    // SAFETY: forwards what the program passes.
    unsafe {
        __kmpc_taskloop_5(
            place, thread, record, wanted, first, last, step, no_group, schedule, grain, 0, duplicate,
        );
    }
}

/// As [`__kmpc_taskloop`], with whether the schedule is meant strictly.
///
/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_taskloop_5(
    place: Place,
    thread: c_int,
    record: *mut TaskRecord,
    wanted: c_int,
    first: *mut u64,
    last: *mut u64,
    step: i64,
    no_group: c_int,
    schedule: c_int,
    grain: u64,
    strict: c_int,
    duplicate: Duplicate,
) {
    // SAFETY: the program passes a record, and places in it for the ends.
    unsafe {
        let (start, end) = (*first, *last);
        let distance = if step > 0 { end.wrapping_sub(start) } else { start.wrapping_sub(end) };
        let is_empty = if step > 0 { end.wrapping_add(1) == start } else { end == start.wrapping_add(1) };
        let count = if is_empty { 0 } else { distance / step.unsigned_abs().max(1) + 1 };
        if no_group == 0 {
            __kmpc_taskgroup(place, thread);
        }
        if count > 0 {
            let threads = u64::from(context::get().threads());
            let wished = if schedule == 0 { 0 } else { grain };
            let Cut { tasks, each, more } = cut(count, wished, schedule == 1, strict != 0, threads);
            let value = |iteration: u64| start.wrapping_add(step.cast_unsigned().wrapping_mul(iteration));
            let mut next = 0;
            for number in 0..tasks {
                let end = (next + each + u64::from(number < more)).min(count);
                let copy = task_block::duplicate(record);
                let place =
                    |of: *mut u64| copy.cast::<u8>().offset(of.byte_offset_from(record)).cast::<u64>();
                place(first).write(value(next));
                place(last).write(value(end - 1));
                if let Some(duplicate) = duplicate {
                    duplicate(copy, record, c_int::from(number + 1 == tasks));
                }
                give(copy, wanted != 0, &[]);
                next = end;
            }
        }
        destroy(record, thread);
        if no_group == 0 {
            __kmpc_end_taskgroup(place, thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openmp::depend;

    #[test]
    fn dependences_are_told_as_gcc_tells_them() {
        let info = |address, flags| DependInfo { address, length: 8, flags };
        let list = list(&[info(0x10, IN), info(0x20, 3), info(0x30, IN), info(0x40, 4)]);
        // SAFETY: a list as gcc makes them.
        let parsed = unsafe { depend::parse(list.as_ptr()) };
        let parsed: Vec<_> = parsed.iter().map(|one| (one.address, one.changes)).collect();
        assert_eq!(parsed, [(0x20, true), (0x40, true), (0x10, false), (0x30, false)]);
    }
}
