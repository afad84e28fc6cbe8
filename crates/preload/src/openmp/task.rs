//! Tasks: any thread of the team may run them, at a barrier or while it waits for tasks.

use super::cancel::{self, What};
use super::context::{self, Context};
use super::crew::{self, Crew};
use super::depend;
use super::event;
use super::kmpc;
use super::reduction::Reductions;
use super::sync;
use super::target;
use super::task_wait;
use gondwana_node::Node;
use gondwana_page::to_usize;
use gondwana_tasks::{Run, Scope, Work};
use libc::{c_int, c_long, c_uint, c_void};

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
    pub(crate) const STRICT: u32 = 1 << 14;
}

/// The arguments of a task, as gcc describes them.
#[derive(Clone, Copy)]
pub(super) struct Arguments {
    pub data: *mut c_void,
    pub copy: Copy,
    pub size: usize,
    pub align: usize,
    /// Of a loop's task, the values from which and before which it runs: the first two words of its own arguments. A function that copies them
    /// leaves these out.
    pub bounds: Option<(u64, u64)>,
}

impl Arguments {
    /// As gcc passes them.
    pub(super) fn new(data: *mut c_void, copy: Copy, size: c_long, align: c_long) -> Self {
        let bytes = |number: c_long| to_usize(number.cast_unsigned());
        Self { data, copy, size: bytes(size), align: bytes(align), bounds: None }
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
            self.bound(place);
        }
        place
    }

    /// Tells a loop's task which iterations it has.
    ///
    /// # Safety
    /// The place is that of the task's arguments.
    unsafe fn bound(&self, place: *mut u8) {
        if let Some((start, end)) = self.bounds {
            // SAFETY: the caller's promise; the arguments of such tasks begin with these words.
            unsafe { place.cast::<[u64; 2]>().write_unaligned([start, end]) };
        }
    }
}

/// The node and the crew of the calling thread, if its tasks may be queued.
pub(super) fn crew() -> Option<(&'static Node, &'static Crew)> {
    let Context { team, shape, .. } = context::get();
    let node = Node::current().filter(|_| shape.tasking)?;
    Some((node, crew::of(node, team)))
}

/// Makes a task, with an event if there is one.
///
/// # Safety
/// As gcc calls `GOMP_task`.
pub(super) unsafe fn make(
    function: Function,
    arguments: Arguments,
    wanted: bool,
    flags: u32,
    depend: *const *mut c_void,
    event: Option<u64>,
) {
    if cancel::is_cancelled(What::Group) {
        // SAFETY: the caller's promise.
        return unsafe { discard(function, arguments.data) };
    }
    let last = flags & flag::FINAL != 0;
    let context = context::get();
    let Context { shape, scope, epoch, last: inside_last, reductions, .. } = context;
    // SAFETY: the caller's promise.
    unsafe {
        let dependences = if flags & flag::DEPEND != 0 { depend::parse(depend) } else { vec![] };
        // A queued task begins with the settings of its region.
        let may_wait = wanted && !inside_last && context.controls == context.region_controls;
        // A thread that waits for an event would not run the tasks that there are too many of.
        let is_to_wait = |crew: &Crew| may_wait && (event.is_some() || !crew.is_full(shape.threads));
        let Some((node, crew)) = crew().filter(|(_, crew)| is_to_wait(crew)) else {
            task_wait::await_siblings(dependences);
            run_at_once(function, arguments, last);
            return event.into_iter().for_each(event::wait);
        };
        let data = arguments.copied() as u64;
        let (function, inherited) = (function as usize as u64, reductions as u64);
        let work = Work { function, data, last, owns: arguments.copy.is_some(), inherited };
        let (scope, task) =
            crew.with(node, move |crew| crew.create_with_event(epoch, scope, work, dependences, event));
        context::update(|context| context.scope = scope);
        if let Some(event) = event {
            event::attach(node, event, crew, task);
        }
    }
}

/// Runs a task in the thread that created it.
unsafe fn run_at_once(function: Function, arguments: Arguments, last: bool) {
    let Context { scope, last: inside_last, task, controls, .. } = context::get();
    // SAFETY: the caller's promise; the copy is this task's alone.
    unsafe {
        let copy = arguments.copy.map(|_| arguments.copied());
        if copy.is_none() {
            arguments.bound(arguments.data.cast());
        }
        context::update(|context| {
            (context.scope, context.last, context.task) = (scope.inside(), inside_last || last, 0);
        });
        function(copy.map_or(arguments.data, |copy| copy.cast()));
        end();
        if let Some(copy) = copy {
            sync::discard(copy);
        }
    }
    context::update(|context| {
        (context.scope, context.last, context.task, context.controls) = (scope, inside_last, task, controls);
    });
}

/// The calling thread's present task is over, which was not queued; its children may not be.
pub(super) fn end() {
    let scope = context::get().scope;
    if let Some((node, crew)) = crew().filter(|_| scope.has_task()) {
        crew.with(node, move |crew| crew.end(scope));
        context::update(|context| context.scope = Scope::OUTSIDE);
    }
}

/// Runs a queued task.
pub(super) fn run(node: &'static Node, crew: &'static Crew, run: Run) {
    let Run { task, work, scope, cancelled } = run;
    if !work.owns && (cancelled || cancel::is_cancelled(What::Region)) {
        // SAFETY: who made the task passed a function and its arguments.
        unsafe {
            discard(std::mem::transmute::<usize, Function>(to_usize(work.function)), work.data as *mut c_void)
        };
        if let Some(data) = crew.with(node, move |crew| crew.discard(task)) {
            sync::discard(data as *mut u8);
        }
        return;
    }
    let before = context::get();
    let reductions = work.inherited as *mut Reductions;
    let controls = before.region_controls;
    context::set(Context { scope, last: work.last, reductions, controls, task: 0, ..before });
    // SAFETY: who made the task passed a function and its arguments.
    unsafe {
        let function: Function = std::mem::transmute(to_usize(work.function));
        function(work.data as *mut c_void);
    }
    context::update(|context| {
        (context.scope, context.last, context.reductions) = (before.scope, before.last, before.reductions);
        (context.controls, context.task) = (before.controls, before.task);
    });
    if let Some(data) = crew.with(node, move |crew| crew.finish(task)) {
        sync::discard(data as *mut u8);
    }
}

/// A task is cancelled and will not run: frees what belongs to it beside its arguments. Those of gcc's tasks own nothing.
///
/// # Safety
/// They are the function and the arguments of a task.
unsafe fn discard(function: Function, data: *mut c_void) {
    let place = function as usize;
    // SAFETY: the caller's promise.
    unsafe {
        if place == kmpc::run_task as *const () as usize {
            kmpc::discard_task(data);
        } else if place == target::run as *const () as usize {
            target::discard(data);
        }
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
    detach: *mut u64,
) {
    let event = (flags & flag::DETACH != 0).then(event::create);
    if let Some(event) = event {
        // SAFETY: gcc passes the place of the program's variable; the task's own is the first of its arguments.
        unsafe {
            detach.write(event);
            if !data.is_null() {
                data.cast::<u64>().write(event);
            }
        }
    }
    let arguments = Arguments::new(data, copy, size, align);
    // SAFETY: forwards what gcc passed.
    unsafe { make(function, arguments, wanted, flags, depend, event) };
}
