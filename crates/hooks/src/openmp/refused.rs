//! Parts of OpenMP that are not simulated: their functions end the run.

/// Ends the run with a sentence that names the part.
pub(super) fn refuse(what: &str) -> ! {
    crate::start::die(&format!("OpenMP: {what} cannot be simulated"))
}

/// Defines functions that are refused, with what they are for.
macro_rules! refused {
    ($($what:literal: $($name:ident)*;)*) => {$($(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> ! {
            refuse($what)
        }
    )*)*};
}

refused! {
    "cancel":
        GOMP_barrier_cancel GOMP_cancel GOMP_cancellation_point GOMP_loop_end_cancel
        GOMP_sections_end_cancel;
    "ordered(n) with depend":
        GOMP_doacross_post GOMP_doacross_ull_post GOMP_doacross_ull_wait GOMP_doacross_wait
        GOMP_loop_doacross_dynamic_start GOMP_loop_doacross_guided_start GOMP_loop_doacross_runtime_start
        GOMP_loop_doacross_start GOMP_loop_doacross_static_start GOMP_loop_ull_doacross_dynamic_start
        GOMP_loop_ull_doacross_guided_start GOMP_loop_ull_doacross_runtime_start
        GOMP_loop_ull_doacross_start GOMP_loop_ull_doacross_static_start;
    "reduction for tasks, scan or lastprivate(conditional)":
        GOMP_loop_start GOMP_loop_ull_start GOMP_loop_ordered_start GOMP_loop_ull_ordered_start
        GOMP_parallel_reductions GOMP_scope_start GOMP_sections2_start GOMP_task_reduction_remap
        GOMP_taskgroup_reduction_register GOMP_taskgroup_reduction_unregister
        GOMP_workshare_task_reduction_unregister;
    "code of gcc before 4.9":
        GOMP_parallel_start GOMP_parallel_end GOMP_parallel_loop_dynamic_start
        GOMP_parallel_loop_guided_start GOMP_parallel_loop_runtime_start GOMP_parallel_loop_static_start
        GOMP_parallel_sections_start;
    "target":
        GOMP_target GOMP_target_data GOMP_target_data_ext GOMP_target_end_data GOMP_target_enter_exit_data
        GOMP_target_ext GOMP_target_update GOMP_target_update_ext omp_target_alloc omp_target_associate_ptr
        omp_target_disassociate_ptr omp_target_free omp_target_is_present omp_target_memcpy
        omp_target_memcpy_rect omp_pause_resource omp_pause_resource_all;
    "teams":
        GOMP_teams GOMP_teams4 GOMP_teams_reg omp_get_max_teams omp_get_teams_thread_limit omp_set_num_teams
        omp_set_teams_thread_limit;
    "an allocator":
        GOMP_alloc GOMP_free omp_alloc omp_aligned_alloc omp_calloc omp_aligned_calloc omp_realloc omp_free
        omp_init_allocator omp_destroy_allocator omp_get_default_allocator omp_set_default_allocator;
    "places":
        omp_get_partition_num_places omp_get_partition_place_nums omp_get_place_num_procs
        omp_get_place_proc_ids omp_capture_affinity omp_display_affinity omp_get_affinity_format
        omp_set_affinity_format;
    "omp_display_env":
        omp_display_env;
    "task detach":
        omp_fulfill_event;
    "error":
        GOMP_error GOMP_warning;
}
