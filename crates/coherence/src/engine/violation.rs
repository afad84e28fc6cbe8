use crate::Violation;
use crate::sync::{BarrierViolation, KeeperViolation, LockViolation};

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
    /// That of resting objects.
    #[error(transparent)]
    Keeper(#[from] KeeperViolation),
}
