//! Task reductions, by the machinery for gcc's: from what the compiler says of the variables, a description as gcc makes it is made.
//!
//! The compiler leaves it to the runtime to prepare each thread's copies and to add them up: the thread that ends the group does
//! so, or of those that end a construct with such a reduction the last one.

use super::Place;
use crate::openmp::common::{self, Use};
use crate::openmp::context;
use crate::openmp::share::Share;
use crate::openmp::sync::{self, Name};
use crate::openmp::{reduction, task_wait, work_sharing};
use libc::{c_int, c_void};
use std::cell::RefCell;

/// A variable, as the compiler describes it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Input {
    /// What the copies are added to.
    shared: *mut c_void,
    original: *mut c_void,
    bytes: usize,
    prepare: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    combine: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    flags: c_int,
}

/// What the threads of a team have in common that are in a construct with a task reduction, in shared memory.
struct Construct {
    lock: Name,
    /// How many threads have ended it.
    left: u32,
    copies: *mut u8,
}

/// The reductions of a group of tasks.
struct Group {
    inputs: Vec<Input>,
    copies: *mut u8,
    threads: u32,
    /// Null if the group is one thread's.
    construct: *mut Construct,
}

thread_local! {
    /// The groups that the calling thread is in, the innermost last, with their reductions.
    static GROUPS: RefCell<Vec<Option<Group>>> = const { RefCell::new(vec![]) };
}

/// Where the copy of each variable is among those of a thread, and the bytes of a thread's copies.
fn places(inputs: &[Input]) -> (Vec<usize>, usize) {
    let mut end = 0_usize;
    let places = inputs.iter().map(|input| {
        let place = end;
        end += input.bytes.next_multiple_of(16);
        place
    });
    (places.collect(), end.next_multiple_of(64))
}

/// Calls `act` with each variable and each thread's copy of it.
fn each(inputs: &[Input], copies: *mut u8, threads: u32, act: impl Fn(&Input, *mut c_void)) {
    let (places, bytes) = places(inputs);
    for thread in 0..threads as usize {
        for (input, place) in inputs.iter().zip(&places) {
            act(input, copies.wrapping_add(bytes * thread + place).cast());
        }
    }
}

/// New copies for so many threads.
///
/// # Safety
/// The variables are as the compiler describes them.
unsafe fn make_copies(inputs: &[Input], threads: u32) -> *mut u8 {
    let copies = common::zeroed(places(inputs).1 * threads as usize, 64);
    each(inputs, copies, threads, |input, copy| {
        if let Some(prepare) = input.prepare {
            // SAFETY: the caller's promise.
            unsafe { prepare(copy, input.original) };
        }
    });
    copies
}

/// The calling thread's innermost group has these copies from now on. Returns the compiler's name for the group, which nothing
/// reads.
fn begin(group: Group) -> *mut c_void {
    let (places, bytes) = places(&group.inputs);
    let variables = group.inputs.iter().map(|input| input.shared as usize).zip(places);
    let name = reduction::begin(variables, bytes, group.copies, group.threads).cast();
    GROUPS.with_borrow_mut(|groups| {
        if let Some(innermost) = groups.last_mut() {
            *innermost = Some(group);
        }
    });
    name
}

/// A group begins, as yet without reductions.
pub(super) fn begin_group() {
    // SAFETY: as the program calls it.
    unsafe { task_wait::GOMP_taskgroup_start() };
    GROUPS.with_borrow_mut(|groups| groups.push(None));
}

/// The group ends, with its reductions.
pub(super) fn end_group() {
    // SAFETY: as the program calls it.
    unsafe { task_wait::GOMP_taskgroup_end() };
    let Some(Group { inputs, copies, threads, construct }) = GROUPS.with_borrow_mut(Vec::pop).flatten()
    else {
        return;
    };
    reduction::end();
    if !construct.is_null() {
        // SAFETY: it stays until the last thread is here, and is used with its lock held.
        let is_last = unsafe {
            sync::lock(&raw const (*construct).lock);
            (*construct).left += 1;
            let is_last = (*construct).left == threads;
            sync::unlock(&raw const (*construct).lock);
            is_last
        };
        if !is_last {
            return;
        }
        sync::discard(construct);
    }
    each(&inputs, copies, threads, |input, copy| {
        // SAFETY: no task uses the copies any more; the variables are as the compiler describes them.
        unsafe {
            if let Some(combine) = input.combine {
                combine(input.shared, copy);
            }
            if let Some(destroy) = input.destroy {
                destroy(copy);
            }
        }
    });
    sync::discard(copies);
}

/// # Safety
/// There are so many.
unsafe fn copied(count: c_int, inputs: *const Input) -> Vec<Input> {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(inputs, usize::try_from(count).unwrap_or(0)) }.to_vec()
}

/// The calling thread's group has reductions.
///
/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_taskred_init(
    _thread: c_int,
    count: c_int,
    inputs: *const Input,
) -> *mut c_void {
    let threads = context::get().threads();
    // SAFETY: forwards what the program passes.
    let (inputs, copies) = unsafe {
        let inputs = copied(count, inputs);
        let copies = make_copies(&inputs, threads);
        (inputs, copies)
    };
    let group = Group { inputs, copies, threads, construct: std::ptr::null_mut() };
    begin(group)
}

/// All threads of the team begin a construct, or the region, with reductions in which tasks take part.
///
/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_taskred_modifier_init(
    _place: Place,
    _thread: c_int,
    _is_loop: c_int,
    count: c_int,
    inputs: *const Input,
) -> *mut c_void {
    let threads = context::get().threads();
    // SAFETY: forwards what the program passes; the first thread makes what the others find.
    let group = unsafe {
        let inputs = copied(count, inputs);
        work_sharing::enter(Share::of_sections(0));
        let place = common::enter(Use::Reductions, size_of::<usize>(), align_of::<usize>(), |place| {
            let copies = make_copies(&inputs, threads);
            place.cast::<*mut Construct>().write(sync::create(Construct {
                lock: Name::new(),
                left: 0,
                copies,
            }));
        });
        let construct = *place.cast::<*mut Construct>();
        work_sharing::leave();
        Group { inputs, copies: (*construct).copies, threads, construct }
    };
    begin_group();
    begin(group)
}

/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_task_reduction_modifier_fini(
    _place: Place,
    _thread: c_int,
    _is_loop: c_int,
) {
    end_group();
}

/// The calling thread's copy of a variable, by the address of the variable or of any thread's copy.
///
/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_task_reduction_get_th_data(
    _thread: c_int,
    _group: *mut c_void,
    variable: *mut c_void,
) -> *mut c_void {
    reduction::own_copy(variable as usize).0 as *mut c_void
}
