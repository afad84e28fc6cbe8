//! The functions of Fortran programs whose integers have 64 bits (`-fdefault-integer-8`).

use super::query;
use libc::c_int;

/// The nearest number that an `int` holds.
fn narrowed(number: i64) -> c_int {
    let (least, most) = (i64::from(c_int::MIN), i64::from(c_int::MAX));
    c_int::try_from(number.clamp(least, most)).expect("it is between the least and the most")
}

/// Defines functions with one argument.
macro_rules! exported {
    ($($name:ident: $function:ident $(-> $result:ty)?;)*) => {$(
        /// # Safety
        /// As OpenMP says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(argument: *const i64) $(-> $result)? {
            // SAFETY: Fortran passes the address of its argument.
            unsafe { query::$function(narrowed(*argument)) }
        }
    )*};
}

exported! {
    omp_set_num_threads_8_: omp_set_num_threads;
    omp_set_dynamic_8_: omp_set_dynamic;
    omp_set_nested_8_: omp_set_nested;
    omp_set_max_active_levels_8_: omp_set_max_active_levels;
    omp_get_ancestor_thread_num_8_: omp_get_ancestor_thread_num -> c_int;
    omp_get_team_size_8_: omp_get_team_size -> c_int;
}

/// # Safety
/// As OpenMP says.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn omp_set_schedule_8_(kind: *const c_int, chunk: *const i64) {
    // SAFETY: Fortran passes the addresses of its arguments.
    unsafe { query::omp_set_schedule(*kind, narrowed(*chunk)) };
}

/// # Safety
/// As OpenMP says.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn omp_get_schedule_8_(kind: *mut c_int, chunk: *mut i64) {
    let mut short = 0;
    // SAFETY: Fortran passes places for the results.
    unsafe {
        query::omp_get_schedule(kind, &raw mut short);
        *chunk = i64::from(short);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_narrowed_to_the_nearest() {
        assert_eq!([7, i64::MAX, i64::MIN].map(narrowed), [7, c_int::MAX, c_int::MIN]);
    }
}
