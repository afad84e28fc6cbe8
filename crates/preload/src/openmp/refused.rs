//! Parts of OpenMP that do not run on several nodes: their functions fail.

/// Ends the run with a sentence that names the construct.
pub(super) fn refuse(what: &str) -> ! {
    crate::report::fatal(&format!("OpenMP: {what} cannot run on several nodes; run it with -n 1"))
}

/// Defines functions that are refused, with their purpose.
macro_rules! refused {
    ($($what:literal: $($name:ident)*;)*) => {$($(
        /// # Safety
        /// Ends the run.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name() -> ! {
            $crate::openmp::refused::refuse($what)
        }
    )*)*};
}

pub(super) use refused;

refused! {
    "a loop with an ordered(n) clause": GOMP_loop_doacross_static_start GOMP_loop_doacross_dynamic_start
        GOMP_loop_doacross_guided_start GOMP_loop_doacross_runtime_start GOMP_loop_doacross_start
        GOMP_loop_ull_doacross_static_start GOMP_loop_ull_doacross_dynamic_start
        GOMP_loop_ull_doacross_guided_start GOMP_loop_ull_doacross_runtime_start GOMP_loop_ull_doacross_start
        GOMP_doacross_post GOMP_doacross_wait GOMP_doacross_ull_post GOMP_doacross_ull_wait;
    "a task reduction, a scan or a conditional lastprivate": GOMP_parallel_reductions GOMP_loop_start
        GOMP_loop_ordered_start GOMP_loop_ull_start GOMP_loop_ull_ordered_start GOMP_sections2_start GOMP_scope_start
        GOMP_taskgroup_reduction_register GOMP_taskgroup_reduction_unregister GOMP_task_reduction_remap
        GOMP_workshare_task_reduction_unregister;
}
