//! Tasks: any thread of the team may run them, at a barrier or while it waits for tasks.

use super::context::{self, Context};
use super::depend;
use super::sync;
use super::task_record::{Dependence, Group, Task};
use super::team::{self, Team};
use gondwana_page::to_usize;
use libc::{c_int, c_long, c_uint, c_void};
use std::ptr::null_mut;

/// The function of a task.
pub(super) type Function = unsafe extern "C" fn(*mut c_void);
/// The function that copies the arguments of a task.
pub(super) type Copy = Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>;

/// Bits that gcc passes.
pub(super) mod flag {
    pub(crate) const FINAL: u32 = 1 << 1;
    pub(crate) const DEPEND: u32 = 1 << 3;
    pub(crate) const UP: u32 = 1 << 8;
    pub(crate) const GRAIN: u32 = 1 << 9;
    pub(crate) const IF: u32 = 1 << 10;
    pub(crate) const NO_GROUP: u32 = 1 << 11;
    pub(crate) const REDUCTION: u32 = 1 << 12;
    pub(crate) const DETACH: u32 = 1 << 13;
}

/// The most queued tasks for each thread of the team; beyond that the creating thread runs them at once.
const MOST_WAITING: usize = 64;

/// The arguments of a task, as gcc describes them.
#[derive(Clone, Copy)]
pub(super) struct Arguments {
    pub data: *mut c_void,
    pub copy: Copy,
    pub size: usize,
    pub align: usize,
}

impl Arguments {
    /// As gcc passes them.
    pub(super) fn new(data: *mut c_void, copy: Copy, size: c_long, align: c_long) -> Self {
        let bytes = |number: c_long| to_usize(number.cast_unsigned());
        Self { data, copy, size: bytes(size), align: bytes(align) }
    }

    /// A copy in shared memory.
    ///
    /// # Safety
    /// They are as gcc passes them.
    pub(super) unsafe fn copied(&self) -> *mut u8 {
        let place = sync::allocate(self.size.max(1), self.align);
        // SAFETY: the block has room for the arguments.
        unsafe {
            match self.copy {
                Some(copy) => copy(place.cast(), self.data),
                None => std::ptr::copy_nonoverlapping(self.data.cast::<u8>(), place, self.size),
            }
        }
        place
    }
}

/// The current task of the calling thread, as the parent of tasks.
fn current() -> *mut Task {
    let context = context::get();
    if !context.task.is_null() {
        return context.task;
    }
    let task = sync::create(Task::new(null_mut(), null_mut()));
    context::set(Context { task, ..context });
    task
}

/// True if a new task is queued instead of run at once.
///
/// # Safety
/// The team is the calling thread's.
unsafe fn is_left_for_others(team: *mut Team, wanted: bool) -> bool {
    // SAFETY: a number that is off by a few decides nothing but who runs the task.
    unsafe {
        wanted
            && (*team).shape.tasking
            && !context::get().last
            && (*team).unfinished < MOST_WAITING * (*team).shape.threads as usize
    }
}

/// Makes a task.
///
/// # Safety
/// As gcc calls `GOMP_task`.
pub(super) unsafe fn make(
    function: Function,
    arguments: Arguments,
    wanted: bool,
    flags: u32,
    depend: *const *mut c_void,
) {
    let team = context::team();
    let last = flags & flag::FINAL != 0;
    // SAFETY: the caller's promise.
    unsafe {
        let dependences = if flags & flag::DEPEND != 0 { depend::parse(depend) } else { vec![] };
        if !is_left_for_others(team, wanted) {
            await_siblings(&dependences);
            return run_at_once(function, arguments, last);
        }
        let parent = current();
        let group = context::get().group;
        let task = sync::create(Task {
            function: function as usize,
            data: arguments.copied(),
            last,
            ..Task::new(parent, group)
        });
        if !dependences.is_empty() {
            let list = sync::allocate(size_of_val(&dependences[..]), align_of::<Dependence>()).cast();
            std::ptr::copy_nonoverlapping(dependences.as_ptr(), list, dependences.len());
            ((*task).dependences, (*task).count) = (list, dependences.len());
        }
        sync::lock(&raw const (*team).lock);
        (*team).unfinished += 1;
        (*parent).children += 1;
        if !group.is_null() {
            (*group).unfinished += 1;
        }
        if !dependences.is_empty() {
            let mut sibling = (*parent).dependent;
            while !sibling.is_null() {
                if depend::conflict(&dependences, (*sibling).dependences()) {
                    depend::follow(task, sibling);
                }
                sibling = (*sibling).sibling;
            }
            (*task).sibling = (*parent).dependent;
            (*parent).dependent = task;
        }
        if (*task).blockers == 0 {
            (*team).ready.push(task);
            team::wake(team);
        }
        sync::unlock(&raw const (*team).lock);
    }
}

/// Runs a task in the thread that created it.
unsafe fn run_at_once(function: Function, arguments: Arguments, last: bool) {
    let before = context::get();
    // SAFETY: the caller's promise; the copy is this task's alone.
    unsafe {
        let copy = arguments.copy.map(|_| arguments.copied());
        context::set(Context { task: null_mut(), last: before.last || last, ..before });
        function(copy.map_or(arguments.data, |copy| copy.cast()));
        end();
        if let Some(copy) = copy {
            sync::discard(copy);
        }
    }
    context::update(|context| {
        (context.task, context.last, context.group) = (before.task, before.last, before.group)
    });
}

/// The calling thread's present task is over; its children may not be.
pub(super) fn end() {
    let Context { team, task, .. } = context::get();
    if task.is_null() {
        return;
    }
    // SAFETY: the task is the calling thread's own; the last child frees it if there are any.
    unsafe {
        sync::lock(&raw const (*team).lock);
        (*task).finished = true;
        if (*task).children == 0 {
            sync::discard(task);
        }
        sync::unlock(&raw const (*team).lock);
    }
    context::update(|context| context.task = null_mut());
}

/// Runs a queued task. The lock is held before and after, but not during the task.
///
/// # Safety
/// The team is the calling thread's, and the task was taken from its queue.
unsafe fn run(team: *mut Team, task: *mut Task) {
    // SAFETY: the task is this thread's now; what it runs was written before it was put into the queue.
    unsafe {
        sync::unlock(&raw const (*team).lock);
        let before = context::get();
        context::set(Context { task, group: (*task).group, last: (*task).last, ..before });
        let function: Function = std::mem::transmute((*task).function);
        function((*task).data.cast());
        context::update(|context| {
            (context.task, context.group, context.last) = (before.task, before.group, before.last);
        });
        sync::lock(&raw const (*team).lock);
        finish(team, task);
    }
}

/// A task that was run is finished; the lock is held.
unsafe fn finish(team: *mut Team, task: *mut Task) {
    // SAFETY: parents and groups live until their last child or task has come here.
    unsafe {
        sync::discard((*task).data);
        let Task { parent, group, .. } = *task;
        (*team).unfinished -= 1;
        if !group.is_null() {
            (*group).unfinished -= 1;
        }
        if !(*task).dependences.is_null() {
            let mut link = &raw mut (*parent).dependent;
            while *link != task {
                link = &raw mut (**link).sibling;
            }
            *link = (*task).sibling;
            depend::finished(task, |follower| (*team).ready.push(follower));
            sync::discard((*task).dependences);
        }
        (*parent).children -= 1;
        if (*parent).finished && (*parent).children == 0 {
            sync::discard(parent);
        }
        (*task).finished = true;
        if (*task).children == 0 {
            sync::discard(task);
        }
        team::wake(team);
    }
}

/// Runs tasks that are `wanted` until `done`; waits if there is none.
///
/// # Safety
/// The team is the calling thread's. Both functions are called with the lock held.
unsafe fn run_until(team: *mut Team, wanted: impl Fn(&Task) -> bool, done: impl Fn() -> bool) {
    // SAFETY: the caller's promise.
    unsafe {
        sync::lock(&raw const (*team).lock);
        while !done() {
            match (*team).ready.take(&wanted) {
                task if task.is_null() => team::wait(team),
                task => run(team, task),
            }
        }
        sync::unlock(&raw const (*team).lock);
    }
}

/// Waits until all threads of the team have arrived and all tasks are finished, and runs tasks meanwhile.
///
/// # Safety
/// The team is the calling thread's, and has tasks.
pub(super) unsafe fn barrier(team: *mut Team) {
    // SAFETY: the caller's promise; all is used with the lock held.
    unsafe {
        sync::lock(&raw const (*team).lock);
        (*team).arrived += 1;
        let phase = (*team).phase;
        while (*team).phase == phase {
            match (*team).ready.take(|_| true) {
                task if !task.is_null() => run(team, task),
                _ if (*team).arrived == (*team).shape.threads && (*team).unfinished == 0 => {
                    (*team).arrived = 0;
                    (*team).phase = phase.wrapping_add(1);
                    team::wake(team);
                }
                _ => team::wait(team),
            }
        }
        sync::unlock(&raw const (*team).lock);
    }
}

/// Waits for the children of the current task that conflict with these dependences.
unsafe fn await_siblings(dependences: &[Dependence]) {
    let Context { team, task: parent, .. } = context::get();
    if parent.is_null() || dependences.is_empty() {
        return;
    }
    // SAFETY: the parent is the calling thread's own; its children live while they are in its list.
    unsafe {
        let in_the_way = || {
            let mut child = (*parent).dependent;
            while !child.is_null() && !depend::conflict(dependences, (*child).dependences()) {
                child = (*child).sibling;
            }
            !child.is_null()
        };
        run_until(team, |task| task.parent == parent, || !in_the_way());
    }
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_task(
    function: Function,
    data: *mut c_void,
    copy: Copy,
    size: c_long,
    align: c_long,
    wanted: bool,
    flags: c_uint,
    depend: *mut *mut c_void,
    _priority: c_int,
    _detach: *mut c_void,
) {
    if flags & flag::DETACH != 0 {
        super::refused::refuse("a task with a detach clause");
    }
    let arguments = Arguments::new(data, copy, size, align);
    // SAFETY: forwards what gcc passed.
    unsafe { make(function, arguments, wanted, flags, depend) };
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_taskwait() {
    let Context { team, task: parent, .. } = context::get();
    if !parent.is_null() {
        // SAFETY: the parent is the calling thread's own.
        unsafe { run_until(team, |task| task.parent == parent, || (*parent).children == 0) };
    }
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_taskwait_depend(depend: *mut *mut c_void) {
    // SAFETY: forwards what gcc passed.
    unsafe { await_siblings(&depend::parse(depend)) };
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_taskyield() {}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_taskgroup_start() {
    context::team();
    context::update(|context| {
        context.group = sync::create(Group { outer: context.group, unfinished: 0, reductions: null_mut() })
    });
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_taskgroup_end() {
    let Context { team, group, .. } = context::get();
    if group.is_null() {
        return;
    }
    // SAFETY: the group is the calling thread's own; its last task is finished when it is freed.
    unsafe {
        run_until(team, |task| task.group == group, || (*group).unfinished == 0);
        context::update(|context| context.group = (*group).outer);
        sync::discard(group);
    }
}
