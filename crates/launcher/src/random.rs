//! Random numbers of the kernel.

use gondwana_console::failure::Failure;

/// A random number that distinguishes or protects a run.
///
/// # Errors
/// If the kernel has none.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Failure::cannot(format!("no random numbers: {error}")))?;
    Ok(bytes)
}
