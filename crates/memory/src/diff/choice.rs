//! The inner loops for the processor that this process runs on, chosen once.

use super::kernel::Kernel;
use super::portable;
use std::sync::LazyLock;

/// The kernels that this processor can run, the fastest first.
pub(super) fn available() -> Vec<&'static Kernel> {
    let mut kernels = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vbmi2") {
            kernels.push(&super::x86::AVX512);
        }
        if is_x86_feature_detected!("avx2") {
            kernels.push(&super::x86::AVX2);
        }
    }
    kernels.push(&portable::KERNEL);
    kernels
}

/// The fastest one that this processor can run.
pub(super) fn best() -> &'static Kernel {
    static BEST: LazyLock<&Kernel> = LazyLock::new(|| available()[0]);
    &BEST
}
