//! Constructs that share work: loops, sections, single; and the order of `ordered`.

use super::settings::{Kind, Schedule};
use super::team::{Body, barrier, region};
use super::{Line, state};
use crate::threads::touch;
use crate::world::{started, wait};
use gondwana_sim::{Kind as Access, ThreadId};
use libc::{c_long, c_uint, c_ulonglong, c_void};
use std::ptr;

/// A construct that some threads have yet to leave.
pub(super) struct Work {
    shape: Shape,
    /// Threads that have not left it.
    pub left: usize,
    /// Of an ordered loop, the iteration whose turn it is, and threads that wait for theirs.
    turn: u64,
    waiting: Vec<ThreadId>,
}

#[derive(Clone, Copy)]
enum Shape {
    Loop(Loop),
    /// The next one, and how many there are.
    Sections(u64, u64),
    Single,
}

/// The iterations of a loop: `number` has the value `start + number * step`.
#[derive(Clone, Copy)]
pub(super) struct Iterations {
    start: i128,
    end: i128,
    step: i128,
    pub count: u64,
}

impl Iterations {
    fn new(start: i128, end: i128, step: i128) -> Self {
        let distance = if step > 0 { end - start } else { start - end };
        let count = if distance > 0 && step != 0 {
            (distance as u128).div_ceil(step.unsigned_abs()) as u64
        } else {
            0
        };
        Self { start, end, step, count }
    }

    pub(super) fn signed(start: c_long, end: c_long, step: c_long) -> Self {
        Self::new(start.into(), end.into(), step.into())
    }

    /// A step downwards is the negative one as an unsigned number.
    pub(super) fn unsigned(up: bool, (start, end, step): (c_ulonglong, c_ulonglong, c_ulonglong)) -> Self {
        let step = if up { i128::from(step) } else { -i128::from(step.wrapping_neg()) };
        Self::new(start.into(), end.into(), step)
    }

    /// The value of an iteration; of that behind the last one, the loop's end.
    pub(super) fn value(&self, number: u64) -> i128 {
        if number >= self.count { self.end } else { self.start + i128::from(number) * self.step }
    }
}

/// A loop whose iterations threads share.
#[derive(Clone, Copy)]
pub(super) struct Loop {
    iterations: Iterations,
    next: u64,
    schedule: Schedule,
    ordered: bool,
}

impl Loop {
    fn new(iterations: Iterations, schedule: Schedule, ordered: bool) -> Self {
        Self { iterations, next: 0, schedule, ordered }
    }

    /// The next chunk of a thread that has had so many: the first iteration, and the one behind the last.
    fn take(&mut self, number: u64, threads: u64, rounds: u64) -> Option<(u64, u64)> {
        let (kind, chunk) = self.schedule;
        let count = self.iterations.count;
        let (first, next) = match (kind, chunk) {
            (Kind::Static, 0) => {
                let (each, more) = (count / threads, count % threads);
                let first = number * each + number.min(more);
                if rounds > 0 { (0, 0) } else { (first, first + each + u64::from(number < more)) }
            }
            (Kind::Static, chunk) => {
                let first = rounds.saturating_mul(threads).saturating_add(number).saturating_mul(chunk);
                (first, first.saturating_add(chunk))
            }
            (Kind::Dynamic, chunk) => (self.next, self.next.saturating_add(chunk.max(1))),
            (Kind::Guided, chunk) => {
                let part = (count - self.next).div_ceil(threads).max(chunk.max(1));
                (self.next, self.next.saturating_add(part))
            }
        };
        let next = next.min(count);
        if kind != Kind::Static {
            self.next = next.max(self.next);
        }
        (first < next).then_some((first, next))
    }
}

impl Work {
    fn new(shape: Shape) -> Self {
        Self { shape, left: 0, turn: 0, waiting: vec![] }
    }
}

/// Comes to a construct. True for the first thread of the team.
fn enter(shape: Shape) -> bool {
    touch(state().team().line(Line::Work), Access::Write);
    let context = state().context();
    let number = context.met;
    (context.work, context.rounds, context.chunk) = (number, 0, (0, 0));
    context.met += 1;
    let team = state().team();
    let first = !team.works.contains_key(&number);
    if first {
        team.works.insert(number, Work { left: team.members.len(), ..Work::new(shape) });
    }
    first
}

/// Leaves the construct.
fn leave() {
    let number = state().context().work;
    let team = state().team();
    if let Some(work) = team.works.get_mut(&number) {
        work.left -= 1;
        if work.left == 0 {
            team.works.remove(&number);
        }
    }
}

/// The construct that the thread is in.
fn work() -> &'static mut Work {
    let number = state().context().work;
    state().team().works.get_mut(&number).unwrap_or_else(|| super::missing())
}

/// Waits for the turn of the thread's chunk in an ordered loop.
fn await_turn() {
    loop {
        let first = state().context().chunk.0;
        let work = work();
        if work.turn == first {
            return;
        }
        work.waiting.push(started().current);
        wait(None);
    }
}

/// After its chunk of an ordered loop, has the next one's thread go on.
fn pass_turn() {
    let (first, next) = state().context().chunk;
    if first == next || !matches!(work().shape, Shape::Loop(Loop { ordered: true, .. })) {
        return;
    }
    await_turn();
    touch(state().team().line(Line::Work), Access::Write);
    let work = work();
    work.turn = next;
    for thread in std::mem::take(&mut work.waiting) {
        started().wake(thread);
    }
}

/// The next chunk of the loop as values.
fn next_chunk() -> Option<(i128, i128)> {
    pass_turn();
    if !matches!(work().shape, Shape::Loop(Loop { schedule: (Kind::Static, _), .. })) {
        touch(state().team().line(Line::Work), Access::Write);
    }
    let context = state().context();
    let (number, rounds) = (context.number as u64, context.rounds);
    context.rounds += 1;
    let threads = state().team().members.len() as u64;
    let Shape::Loop(all) = &mut work().shape else { super::missing() };
    let chunk = all.take(number, threads, rounds);
    let values = chunk.map(|(first, next)| (all.iterations.value(first), all.iterations.value(next)));
    state().context().chunk = chunk.unwrap_or((0, 0));
    values
}

/// Writes the bounds of the next chunk, as words of either sign. False if there is none.
unsafe fn give<T>(first: *mut T, next: *mut T) -> bool {
    const { assert!(size_of::<T>() == size_of::<u64>()) }
    let Some(values) = next_chunk() else { return false };
    // SAFETY: the program's variables.
    unsafe {
        first.cast::<u64>().write(values.0 as u64);
        next.cast::<u64>().write(values.1 as u64);
    }
    true
}

/// Loops with a chunk: names of the first call and of the following ones, for signed and for unsigned values.
macro_rules! loops {
    ($($start:ident $next:ident $ull_start:ident $ull_next:ident: $kind:expr, $ordered:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $start(
            start: c_long, end: c_long, step: c_long, chunk: c_long, first: *mut c_long, next: *mut c_long,
        ) -> bool {
            enter(Shape::Loop(Loop::new(Iterations::signed(start, end, step), ($kind, chunk.max(0) as u64), $ordered)));
            // SAFETY: forwards what gcc passed.
            unsafe { give(first, next) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $next(first: *mut c_long, next: *mut c_long) -> bool {
            // SAFETY: forwards what gcc passed.
            unsafe { give(first, next) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $ull_start(
            up: bool, start: c_ulonglong, end: c_ulonglong, step: c_ulonglong, chunk: c_ulonglong,
            first: *mut c_ulonglong, next: *mut c_ulonglong,
        ) -> bool {
            enter(Shape::Loop(Loop::new(Iterations::unsigned(up, (start, end, step)), ($kind, chunk), $ordered)));
            // SAFETY: forwards what gcc passed.
            unsafe { give(first, next) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $ull_next(first: *mut c_ulonglong, next: *mut c_ulonglong) -> bool {
            // SAFETY: forwards what gcc passed.
            unsafe { give(first, next) }
        }
    )*};
}

loops! {
    GOMP_loop_static_start GOMP_loop_static_next GOMP_loop_ull_static_start GOMP_loop_ull_static_next:
        Kind::Static, false;
    GOMP_loop_dynamic_start GOMP_loop_dynamic_next GOMP_loop_ull_dynamic_start GOMP_loop_ull_dynamic_next:
        Kind::Dynamic, false;
    GOMP_loop_guided_start GOMP_loop_guided_next GOMP_loop_ull_guided_start GOMP_loop_ull_guided_next:
        Kind::Guided, false;
    GOMP_loop_nonmonotonic_dynamic_start GOMP_loop_nonmonotonic_dynamic_next
        GOMP_loop_ull_nonmonotonic_dynamic_start GOMP_loop_ull_nonmonotonic_dynamic_next: Kind::Dynamic, false;
    GOMP_loop_nonmonotonic_guided_start GOMP_loop_nonmonotonic_guided_next
        GOMP_loop_ull_nonmonotonic_guided_start GOMP_loop_ull_nonmonotonic_guided_next: Kind::Guided, false;
    GOMP_loop_ordered_static_start GOMP_loop_ordered_static_next
        GOMP_loop_ull_ordered_static_start GOMP_loop_ull_ordered_static_next: Kind::Static, true;
    GOMP_loop_ordered_dynamic_start GOMP_loop_ordered_dynamic_next
        GOMP_loop_ull_ordered_dynamic_start GOMP_loop_ull_ordered_dynamic_next: Kind::Dynamic, true;
    GOMP_loop_ordered_guided_start GOMP_loop_ordered_guided_next
        GOMP_loop_ull_ordered_guided_start GOMP_loop_ull_ordered_guided_next: Kind::Guided, true;
}

/// The same with `schedule(runtime)`.
macro_rules! runtime_loops {
    ($($start:ident $next:ident $ull_start:ident $ull_next:ident: $ordered:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $start(
            start: c_long, end: c_long, step: c_long, first: *mut c_long, next: *mut c_long,
        ) -> bool {
            let schedule = state().context().controls.schedule;
            enter(Shape::Loop(Loop::new(Iterations::signed(start, end, step), schedule, $ordered)));
            // SAFETY: forwards what gcc passed.
            unsafe { give(first, next) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $next(first: *mut c_long, next: *mut c_long) -> bool {
            // SAFETY: forwards what gcc passed.
            unsafe { give(first, next) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $ull_start(
            up: bool, start: c_ulonglong, end: c_ulonglong, step: c_ulonglong, first: *mut c_ulonglong,
            next: *mut c_ulonglong,
        ) -> bool {
            let schedule = state().context().controls.schedule;
            enter(Shape::Loop(Loop::new(Iterations::unsigned(up, (start, end, step)), schedule, $ordered)));
            // SAFETY: forwards what gcc passed.
            unsafe { give(first, next) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $ull_next(first: *mut c_ulonglong, next: *mut c_ulonglong) -> bool {
            // SAFETY: forwards what gcc passed.
            unsafe { give(first, next) }
        }
    )*};
}

runtime_loops! {
    GOMP_loop_runtime_start GOMP_loop_runtime_next GOMP_loop_ull_runtime_start GOMP_loop_ull_runtime_next: false;
    GOMP_loop_nonmonotonic_runtime_start GOMP_loop_nonmonotonic_runtime_next
        GOMP_loop_ull_nonmonotonic_runtime_start GOMP_loop_ull_nonmonotonic_runtime_next: false;
    GOMP_loop_maybe_nonmonotonic_runtime_start GOMP_loop_maybe_nonmonotonic_runtime_next
        GOMP_loop_ull_maybe_nonmonotonic_runtime_start GOMP_loop_ull_maybe_nonmonotonic_runtime_next: false;
    GOMP_loop_ordered_runtime_start GOMP_loop_ordered_runtime_next
        GOMP_loop_ull_ordered_runtime_start GOMP_loop_ull_ordered_runtime_next: true;
}

#[unsafe(no_mangle)]
extern "C" fn GOMP_loop_end() {
    GOMP_loop_end_nowait();
    barrier(false);
}

#[unsafe(no_mangle)]
extern "C" fn GOMP_loop_end_nowait() {
    pass_turn();
    leave();
}

#[unsafe(no_mangle)]
extern "C" fn GOMP_ordered_start() {
    await_turn();
    touch(state().team().line(Line::Work), Access::Read);
}

/// The turn goes on when the thread has done its chunk.
#[unsafe(no_mangle)]
extern "C" fn GOMP_ordered_end() {}

/// Regions that begin with a loop.
macro_rules! parallel_loops {
    ($($name:ident: $kind:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            body: Body, data: *mut c_void, threads: c_uint, start: c_long, end: c_long, step: c_long, chunk: c_long,
            _flags: c_uint,
        ) {
            let all = Loop::new(Iterations::signed(start, end, step), ($kind, chunk.max(0) as u64), false);
            // SAFETY: forwards what gcc passed.
            unsafe { region(body, data, threads, Some(Work::new(Shape::Loop(all)))) };
        }
    )*};
}

parallel_loops! {
    GOMP_parallel_loop_static: Kind::Static;
    GOMP_parallel_loop_dynamic: Kind::Dynamic;
    GOMP_parallel_loop_guided: Kind::Guided;
    GOMP_parallel_loop_nonmonotonic_dynamic: Kind::Dynamic;
    GOMP_parallel_loop_nonmonotonic_guided: Kind::Guided;
}

/// The same with `schedule(runtime)`.
macro_rules! parallel_runtime_loops {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            body: Body, data: *mut c_void, threads: c_uint, start: c_long, end: c_long, step: c_long, _flags: c_uint,
        ) {
            let all = Loop::new(Iterations::signed(start, end, step), state().context().controls.schedule, false);
            // SAFETY: forwards what gcc passed.
            unsafe { region(body, data, threads, Some(Work::new(Shape::Loop(all)))) };
        }
    )*};
}

parallel_runtime_loops! {
    GOMP_parallel_loop_runtime GOMP_parallel_loop_nonmonotonic_runtime GOMP_parallel_loop_maybe_nonmonotonic_runtime
}

/// The number of the next section, from 1 on; 0 if there is none.
#[unsafe(no_mangle)]
extern "C" fn GOMP_sections_next() -> c_uint {
    touch(state().team().line(Line::Work), Access::Write);
    let Shape::Sections(next, count) = &mut work().shape else { super::missing() };
    if *next > *count {
        return 0;
    }
    *next += 1;
    (*next - 1) as c_uint
}

#[unsafe(no_mangle)]
extern "C" fn GOMP_sections_start(count: c_uint) -> c_uint {
    enter(Shape::Sections(1, count.into()));
    GOMP_sections_next()
}

#[unsafe(no_mangle)]
extern "C" fn GOMP_sections_end() {
    leave();
    barrier(false);
}

#[unsafe(no_mangle)]
extern "C" fn GOMP_sections_end_nowait() {
    leave();
}

#[unsafe(no_mangle)]
unsafe extern "C" fn GOMP_parallel_sections(
    body: Body,
    data: *mut c_void,
    threads: c_uint,
    count: c_uint,
    _flags: c_uint,
) {
    // SAFETY: forwards what gcc passed.
    unsafe { region(body, data, threads, Some(Work::new(Shape::Sections(1, count.into())))) };
}

#[unsafe(no_mangle)]
extern "C" fn GOMP_single_start() -> bool {
    let first = enter(Shape::Single);
    leave();
    first
}

/// Null for the thread that runs the block; for the others, when that one has, what it passes on.
#[unsafe(no_mangle)]
extern "C" fn GOMP_single_copy_start() -> *mut c_void {
    if GOMP_single_start() {
        return ptr::null_mut();
    }
    barrier(false);
    touch(state().team().line(Line::Work), Access::Read);
    state().team().copied as *mut c_void
}

#[unsafe(no_mangle)]
extern "C" fn GOMP_single_copy_end(data: *mut c_void) {
    touch(state().team().line(Line::Work), Access::Write);
    state().team().copied = data as usize;
    barrier(false);
}
