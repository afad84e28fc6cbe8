//! What clang's and Intel's programs cannot have on several nodes.

use crate::openmp::refused::refused;

refused! {
    "a task reduction of clang before version 11": __kmpc_task_reduction_init __kmpc_task_reduction_modifier_init;
    "a target region on a device": __kmpc_proxy_task_completed
        __kmpc_proxy_task_completed_ooo;
    "a threadprivate object with a constructor that is no thread-local one": __kmpc_threadprivate
        __kmpc_threadprivate_register __kmpc_threadprivate_register_vec;
    "a barrier of the master thread": __kmpc_barrier_master __kmpc_barrier_master_nowait __kmpc_end_barrier_master;
}
