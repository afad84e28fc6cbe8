use crate::Violation;
use crate::sync::{BarrierViolation, LockViolation};

/// A peer broke one of the protocols; the run can't go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineViolation {
    /// That of coherence.
    #[error(transparent)]
    Coherence(#[from] Violation),
    /// That of lock tokens.
    #[error(transparent)]
    Lock(#[from] LockViolation),
    /// That of barriers.
    #[error(transparent)]
    Barrier(#[from] BarrierViolation),
}
