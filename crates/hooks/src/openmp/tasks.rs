//! Tasks: any thread of the team may run them, at a barrier or while it waits for tasks.
//!
//! A task with dependences runs at once in the thread that makes it: those that it depends on were made before, and are finished.

use super::shares::Iterations;
use super::{Line, OpenMp, allocate, state};
use crate::bytes::copied;
use crate::threads::touch;
use crate::world::{started, wait};
use gondwana_sim::{Kind, ThreadId};
use libc::{c_int, c_long, c_uint, c_ulong, c_ulonglong, c_void};
use std::ptr;

type Body = unsafe extern "C" fn(*mut c_void);
/// Copies the arguments of a task.
type Copier = Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>;

const FINAL: c_uint = 1 << 1;
const DEPEND: c_uint = 1 << 3;
const UP: c_uint = 1 << 8;
const GRAIN: c_uint = 1 << 9;
const IF: c_uint = 1 << 10;
const NO_GROUP: c_uint = 1 << 11;
const REDUCTION: c_uint = 1 << 12;
const DETACH: c_uint = 1 << 13;

/// Tasks of a team that wait for each thread of it at most; more run at once.
const MOST_WAITING: usize = 64;

/// A task that is not finished. Threads of a region run implicit ones, which have no body.
pub(super) struct Task {
    team: u64,
    body: Option<Body>,
    data: *mut c_void,
    /// The data is a copy that goes with it.
    copied: bool,
    parent: u64,
    /// Those of its own that are not finished, and the thread that waits for them.
    children: usize,
    waiter: Option<ThreadId>,
    /// Groups that it has opened, or is in; the innermost last, and at first that of its parent.
    groups: Vec<u64>,
    /// All that it makes runs at once.
    last: bool,
}

/// Tasks of a group that are not finished, and the thread that waits for them. Its number is one of tasks.
#[derive(Default)]
pub(super) struct Group {
    count: usize,
    waiter: Option<ThreadId>,
}

/// The arguments of a task, as gcc describes them.
#[derive(Clone, Copy)]
struct Arguments {
    data: *mut c_void,
    copier: Copier,
    bytes: usize,
    alignment: usize,
}

impl Arguments {
    /// A copy in memory of the machine.
    unsafe fn copied(&self) -> *mut c_void {
        let place = allocate(self.bytes.max(1), self.alignment.max(16));
        // SAFETY: the block has room; the arguments are the program's.
        unsafe {
            match self.copier {
                Some(copier) => copier(place as *mut c_void, self.data),
                None => {
                    copied(place, self.data as usize, self.bytes);
                    ptr::copy_nonoverlapping(self.data.cast::<u8>(), place as *mut u8, self.bytes);
                }
            }
        }
        place as *mut c_void
    }
}

impl OpenMp {
    /// The task that a thread of a region is.
    pub(super) fn implicit_task(&mut self, team: u64) -> u64 {
        let number = self.number();
        let task = Task {
            team,
            body: None,
            data: ptr::null_mut(),
            copied: false,
            parent: 0,
            children: 0,
            waiter: None,
            groups: vec![],
            last: false,
        };
        self.tasks.insert(number, task);
        number
    }

    /// The task that the thread runs.
    fn task(&mut self) -> &mut Task {
        let number = self.context().task;
        self.tasks.get_mut(&number).unwrap_or_else(|| super::missing())
    }

    /// True if all that the task makes runs at once.
    pub(super) fn in_final(&mut self) -> bool {
        self.task().last
    }
}

/// Makes a task. `at_once`: the thread runs it before it goes on.
unsafe fn make(body: Body, arguments: Arguments, at_once: bool, last: bool) {
    let team = state().team();
    touch(team.line(Line::Tasks), Kind::Write);
    let all = state();
    let team = all.team();
    let full = team.members.len() == 1 || team.queue.len() >= MOST_WAITING * team.members.len();
    let at_once = at_once || full || all.in_final();
    // Without a function that copies them, they are there until a task that runs at once is done.
    let copied = !at_once || arguments.copier.is_some();
    // SAFETY: as gcc passed them.
    let data = if copied { unsafe { arguments.copied() } } else { arguments.data };
    let all = state();
    let number = all.number();
    let (parent, team) = (all.context().task, all.context().team);
    let of = all.task();
    of.children += 1;
    let groups: Vec<u64> = of.groups.last().copied().into_iter().collect();
    let last = last || of.last;
    if let Some(group) = groups.last().and_then(|group| all.groups.get_mut(group)) {
        group.count += 1;
    }
    let task = Task { team, body: Some(body), data, copied, parent, children: 0, waiter: None, groups, last };
    all.tasks.insert(number, task);
    all.team().unfinished += 1;
    if at_once {
        run_task(number);
    } else {
        all.team().queue.push_back(number);
        if let Some(sleeper) = all.team().sleepers.pop() {
            started().wake(sleeper);
        }
    }
}

/// Runs a task that nobody else runs.
pub(super) fn run_task(number: u64) {
    touch(state().team().line(Line::Tasks), Kind::Write);
    let all = state();
    let mut context = all.context().clone();
    let Some(task) = all.tasks.get(&number) else { super::missing() };
    let (body, data, copied, team) = (task.body, task.data, task.copied, task.team);
    context.task = number;
    all.push(context);
    if let Some(body) = body {
        // SAFETY: what the program passed for the task.
        unsafe { body(data) };
    }
    if copied {
        // SAFETY: the copy is the task's.
        unsafe { libc::free(data) };
    }
    state().pop();
    touch(state().team().line(Line::Tasks), Kind::Write);
    let all = state();
    let Some(task) = all.tasks.remove(&number) else { super::missing() };
    if let Some(team) = all.teams.get_mut(&team) {
        team.unfinished -= 1;
    }
    let mut wake = None;
    if let Some(parent) = all.tasks.get_mut(&task.parent) {
        parent.children -= 1;
        if parent.children == 0 {
            wake = parent.waiter.take();
        }
    }
    let mut of_group = None;
    if let Some(group) = task.groups.first().and_then(|group| all.groups.get_mut(group)) {
        group.count -= 1;
        if group.count == 0 {
            of_group = group.waiter.take();
        }
    }
    for thread in wake.into_iter().chain(of_group) {
        started().wake(thread);
    }
}

/// Takes the youngest task that waits and is wanted.
fn take(wanted: impl Fn(&Task) -> bool) -> Option<u64> {
    let all = state();
    let number = all.context().team;
    let queue = &mut all.teams.get_mut(&number)?.queue;
    let at = queue.iter().rposition(|number| all.tasks.get(number).is_some_and(&wanted))?;
    queue.remove(at)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn GOMP_task(
    body: Body,
    data: *mut c_void,
    copier: Copier,
    bytes: c_long,
    alignment: c_long,
    condition: bool,
    flags: c_uint,
    _depend: *mut *mut c_void,
    _priority: c_int,
    _detach: *mut c_void,
) {
    if flags & DETACH != 0 {
        super::refused::refuse("task detach");
    }
    let arguments = Arguments { data, copier, bytes: bytes as usize, alignment: alignment as usize };
    let last = flags & FINAL != 0;
    // SAFETY: forwards what gcc passed.
    unsafe { make(body, arguments, !condition || last || flags & DEPEND != 0, last) };
}

/// Makes the tasks of a loop, whose arguments begin with the values from which and before which they run.
unsafe fn make_loop(body: Body, arguments: Arguments, flags: c_uint, wanted: u64, all: &Iterations) {
    if flags & REDUCTION != 0 {
        super::refused::refuse("taskloop reduction");
    }
    let count = all.count;
    if count == 0 {
        return;
    }
    let threads = state().team().members.len() as u64;
    let tasks = match (flags & GRAIN != 0, wanted) {
        (true, least) => count / least.max(1),
        (false, 0) => threads,
        (false, tasks) => tasks,
    };
    let tasks = tasks.clamp(1, count);
    if flags & NO_GROUP == 0 {
        GOMP_taskgroup_start();
    }
    let (each, more) = (count / tasks, count % tasks);
    let mut first = 0;
    for number in 0..tasks {
        let next = first + each + u64::from(number < more);
        let bounds = arguments.data.cast::<u64>();
        // SAFETY: as above.
        unsafe {
            bounds.write(all.value(first) as u64);
            bounds.add(1).write(all.value(next) as u64);
            make(body, arguments, flags & IF == 0 || flags & FINAL != 0, flags & FINAL != 0);
        }
        first = next;
    }
    if flags & NO_GROUP == 0 {
        GOMP_taskgroup_end();
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn GOMP_taskloop(
    body: Body,
    data: *mut c_void,
    copier: Copier,
    bytes: c_long,
    alignment: c_long,
    flags: c_uint,
    wanted: c_ulong,
    _priority: c_int,
    start: c_long,
    end: c_long,
    step: c_long,
) {
    let arguments = Arguments { data, copier, bytes: bytes as usize, alignment: alignment as usize };
    let all = Iterations::signed(start, end, step);
    // SAFETY: forwards what gcc passed.
    unsafe { make_loop(body, arguments, flags, wanted, &all) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn GOMP_taskloop_ull(
    body: Body,
    data: *mut c_void,
    copier: Copier,
    bytes: c_long,
    alignment: c_long,
    flags: c_uint,
    wanted: c_ulong,
    _priority: c_int,
    start: c_ulonglong,
    end: c_ulonglong,
    step: c_ulonglong,
) {
    let arguments = Arguments { data, copier, bytes: bytes as usize, alignment: alignment as usize };
    let all = Iterations::unsigned(flags & UP != 0, (start, end, step));
    // SAFETY: forwards what gcc passed.
    unsafe { make_loop(body, arguments, flags, wanted, &all) };
}

#[unsafe(no_mangle)]
extern "C" fn GOMP_taskwait() {
    touch(state().team().line(Line::Tasks), Kind::Read);
    loop {
        let number = state().context().task;
        if state().task().children == 0 {
            return;
        }
        if let Some(task) = take(|task| task.parent == number) {
            run_task(task);
        } else {
            state().task().waiter = Some(started().current);
            wait(None);
        }
    }
}

/// Tasks with dependences are finished when the next one is made.
#[unsafe(no_mangle)]
extern "C" fn GOMP_taskwait_depend(_depend: *mut *mut c_void) {}

#[unsafe(no_mangle)]
extern "C" fn GOMP_taskyield() {
    let number = state().context().task;
    if let Some(task) = take(|task| task.parent == number) {
        run_task(task);
    }
}

#[unsafe(no_mangle)]
extern "C" fn GOMP_taskgroup_start() {
    let all = state();
    let group = all.number();
    all.groups.insert(group, Group::default());
    all.task().groups.push(group);
}

#[unsafe(no_mangle)]
extern "C" fn GOMP_taskgroup_end() {
    touch(state().team().line(Line::Tasks), Kind::Read);
    let Some(&number) = state().task().groups.last() else { super::missing() };
    loop {
        let Some(group) = state().groups.get_mut(&number) else { super::missing() };
        if group.count == 0 {
            break;
        }
        if let Some(task) = take(|task| task.groups.first() == Some(&number)) {
            run_task(task);
        } else if let Some(group) = state().groups.get_mut(&number) {
            group.waiter = Some(started().current);
            wait(None);
        }
    }
    state().groups.remove(&number);
    state().task().groups.pop();
}
