use serde::{Deserialize, Serialize};

/// Why a synchronisation call failed, as POSIX and glibc name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum SyncError {
    /// `EPERM`: the caller does not hold the object.
    #[error("the calling thread does not hold the object")]
    NotOwner,
    /// `ESRCH`: no such thread.
    #[error("no such thread")]
    NoSuchThread,
    /// `EAGAIN`: a limit is reached, or a semaphore is 0.
    #[error("the resource is exhausted")]
    Exhausted,
    /// `EBUSY`: somebody else uses the object.
    #[error("the object is in use")]
    Busy,
    /// `EINVAL`: the object or the argument does not permit the operation.
    #[error("invalid object or argument")]
    Invalid,
    /// `EDEADLK`: the thread would wait for itself.
    #[error("the thread would wait for itself")]
    Deadlock,
    /// `EOVERFLOW`: a semaphore would exceed its largest value.
    #[error("the semaphore's value would be too large")]
    Overflow,
}

impl SyncError {
    /// The number of the error on Linux, as a pthread function returns it.
    #[must_use]
    pub fn code(self) -> i32 {
        match self {
            Self::NotOwner => 1,
            Self::NoSuchThread => 3,
            Self::Exhausted => 11,
            Self::Busy => 16,
            Self::Invalid => 22,
            Self::Deadlock => 35,
            Self::Overflow => 75,
        }
    }
}
