//! What clang's and Intel's programs cannot have on several nodes.

use crate::openmp::refused::refused;

refused! {
    "a distributed loop of Intel's compilers": __kmpc_dist_for_static_init_4 __kmpc_dist_for_static_init_4u __kmpc_dist_for_static_init_8
        __kmpc_dist_for_static_init_8u __kmpc_dist_dispatch_init_4 __kmpc_dist_dispatch_init_4u
        __kmpc_dist_dispatch_init_8 __kmpc_dist_dispatch_init_8u __kmpc_team_static_init_4
        __kmpc_team_static_init_4u __kmpc_team_static_init_8 __kmpc_team_static_init_8u;
    "a task reduction of clang before version 11": __kmpc_task_reduction_init __kmpc_task_reduction_modifier_init;
    "a target region on a device": __kmpc_proxy_task_completed
        __kmpc_proxy_task_completed_ooo;
    "a threadprivate object with a constructor that is no thread-local one": __kmpc_threadprivate
        __kmpc_threadprivate_register __kmpc_threadprivate_register_vec;
    "a lock with a hint of clang's": __kmpc_init_lock __kmpc_init_lock_with_hint __kmpc_init_nest_lock
        __kmpc_init_nest_lock_with_hint __kmpc_set_lock __kmpc_set_nest_lock __kmpc_unset_lock
        __kmpc_unset_nest_lock __kmpc_test_lock __kmpc_test_nest_lock __kmpc_destroy_lock
        __kmpc_destroy_nest_lock;
    "a barrier of the master thread": __kmpc_barrier_master __kmpc_barrier_master_nowait __kmpc_end_barrier_master;
}
