//! Places: each node is one. Its threads stay on it, so that a thread is bound to its node's place, whatever the system does with it
//! there. Without `OMP_PLACES` and `OMP_PROC_BIND` there are no places, as natively.

use super::query::exported;
use super::settings;
use crate::numbers::int;
use gondwana_node::Node;
use libc::c_int;
use std::ops::Range;

/// The processors of a node, whose numbers are unique in the run.
fn processors_of(node: &Node, place: usize) -> Range<u32> {
    let each = node.processors() / u32::try_from(node.nodes()).unwrap_or(1).max(1);
    let first = u32::try_from(place).unwrap_or(0) * each;
    first..first + each
}

/// The nodes, if they are places.
fn places() -> Option<&'static Node> {
    Node::current().filter(|_| settings::get().has_places)
}

fn count() -> usize {
    places().map_or(0, |node| node.nodes())
}

/// All places, as `OMP_PLACES` names them.
pub(super) fn described() -> String {
    let place = |place: usize| {
        let numbers = processors(int(place));
        format!("{{{}:{}}}", numbers.start, numbers.len())
    };
    (0..count()).map(place).collect::<Vec<_>>().join(",")
}

/// The processors of a place; none if there is no such place.
fn processors(place: c_int) -> Range<u32> {
    let place = usize::try_from(place).ok().filter(|place| *place < count());
    places().zip(place).map_or(0..0, |(node, place)| processors_of(node, place))
}

/// The processors that the calling thread may run on.
pub(super) fn here() -> Range<u32> {
    Node::current().map_or_else(|| 0..settings::processors(), |node| processors_of(node, node.id().index()))
}

/// Writes numbers one after the other.
///
/// # Safety
/// There is room for them.
unsafe fn write<T: TryFrom<u32>>(numbers: Range<u32>, to: *mut T) {
    for (index, number) in numbers.enumerate() {
        if let Ok(number) = T::try_from(number) {
            // SAFETY: the caller's promise.
            unsafe { to.add(index).write(number) };
        }
    }
}

exported! {
    fn omp_get_proc_bind, omp_get_proc_bind_() -> c_int = settings::get().bind as c_int;
    fn omp_get_num_places, omp_get_num_places_() -> c_int = int(count());
    fn omp_get_place_num, omp_get_place_num_() -> c_int = places().map_or(-1, |node| int(node.id().index()));
    fn omp_get_place_num_procs, omp_get_place_num_procs_(place: c_int) -> c_int = int(processors(place).len());
    fn omp_get_partition_num_places, omp_get_partition_num_places_() -> c_int = int(count());
}

/// # Safety
/// As OpenMP says.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn omp_get_place_proc_ids(place: c_int, numbers: *mut c_int) {
    // SAFETY: the caller has room for as many as `omp_get_place_num_procs` says.
    unsafe { write(processors(place), numbers) };
}

/// # Safety
/// As OpenMP says.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn omp_get_place_proc_ids_(place: *const c_int, numbers: *mut c_int) {
    // SAFETY: Fortran passes the addresses of its arguments.
    unsafe { omp_get_place_proc_ids(*place, numbers) };
}

/// # Safety
/// As OpenMP says.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn omp_get_partition_place_nums(numbers: *mut c_int) {
    let end = u32::try_from(count()).unwrap_or(0);
    // SAFETY: the caller has room for as many as `omp_get_partition_num_places` says.
    unsafe { write(0..end, numbers) };
}

/// # Safety
/// As OpenMP says.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn omp_get_partition_place_nums_(numbers: *mut c_int) {
    // SAFETY: forwards the caller's place.
    unsafe { omp_get_partition_place_nums(numbers) };
}

/// The function of Fortran programs whose integers have 64 bits.
///
/// # Safety
/// As OpenMP says.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn omp_get_place_num_procs_8_(place: *const i64) -> c_int {
    // SAFETY: Fortran passes the address of its argument.
    int(processors(c_int::try_from(unsafe { *place }).unwrap_or(-1)).len())
}

/// # Safety
/// As OpenMP says.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn omp_get_place_proc_ids_8_(place: *const i64, numbers: *mut i64) {
    // SAFETY: Fortran passes the addresses of its arguments, and has room for the numbers.
    unsafe { write(processors(c_int::try_from(*place).unwrap_or(-1)), numbers) };
}

/// # Safety
/// As OpenMP says.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn omp_get_partition_place_nums_8_(numbers: *mut i64) {
    // SAFETY: Fortran has room for the numbers.
    unsafe { write(0..u32::try_from(count()).unwrap_or(0), numbers) };
}
