//! `ordered(n)`: the program says with the loops' variables which iterations wait for which.

use super::Place;
use crate::openmp::share::Share;
use crate::openmp::{common, doacross, work_sharing};
use gondwana_page::to_usize;
use libc::c_int;
use std::cell::RefCell;

/// A loop of a nest: the values of its variable, both ends included.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Dimension {
    first: i64,
    last: i64,
    step: i64,
}

thread_local! {
    /// The nests that the calling thread is in, the innermost last.
    static NESTS: RefCell<Vec<Vec<Dimension>>> = const { RefCell::new(vec![]) };
}

impl Dimension {
    fn count(&self) -> u64 {
        let distance = if self.step > 0 { self.last - self.first } else { self.first - self.last };
        u64::try_from(distance).map_or(0, |distance| distance / self.step.unsigned_abs().max(1) + 1)
    }

    /// The number of the iteration with a value; `None` if there is none.
    fn iteration(&self, value: i64) -> Option<u64> {
        let distance = if self.step > 0 { value - self.first } else { self.first - value };
        let number = u64::try_from(distance).ok()? / self.step.unsigned_abs().max(1);
        (number < self.count()).then_some(number)
    }
}

/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_doacross_init(
    _place: Place,
    _thread: c_int,
    depth: c_int,
    dimensions: *const Dimension,
) {
    // SAFETY: the program passes so many.
    let dimensions = unsafe { std::slice::from_raw_parts(dimensions, usize::try_from(depth).unwrap_or(0)) };
    // The loop itself follows.
    work_sharing::enter(Share::of_sections(0));
    let counts: Vec<u64> = dimensions.iter().map(Dimension::count).collect();
    doacross::enter(&counts, 0);
    NESTS.with_borrow_mut(|nests| nests.push(dimensions.to_vec()));
}

/// The numbers of an iteration; `None` if it is outside the loops.
///
/// # Safety
/// There is a value for each loop.
unsafe fn numbers(values: *const i64) -> Option<Vec<u64>> {
    NESTS.with_borrow(|nests| {
        let all = nests.last()?.iter().enumerate();
        // SAFETY: the caller's promise.
        all.map(|(index, dimension)| dimension.iteration(unsafe { *values.add(index) })).collect()
    })
}

/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_doacross_wait(_place: Place, _thread: c_int, values: *const i64) {
    // SAFETY: the program passes a value for each loop.
    if let Some(numbers) = unsafe { numbers(values) }.filter(|numbers| !numbers.is_empty()) {
        // SAFETY: there is a number for each loop.
        unsafe { doacross::wait(|index| numbers[to_usize(index)]) };
    }
}

/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_doacross_post(_place: Place, _thread: c_int, values: *const i64) {
    // SAFETY: the program passes a value for each loop.
    if let Some(numbers) = unsafe { numbers(values) }.filter(|numbers| !numbers.is_empty()) {
        // SAFETY: there is a number for each loop.
        unsafe { doacross::post(|index| numbers[to_usize(index)]) };
    }
}

/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_doacross_fini(_place: Place, _thread: c_int) {
    NESTS.with_borrow_mut(Vec::pop);
    common::leave();
}
