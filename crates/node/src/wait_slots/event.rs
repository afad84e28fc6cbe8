//! What a thread may wait for; a set, so that an answer in two parts can arrive before the first is consumed.

/// The waiter has been queued (first part of a two-part answer).
pub(crate) const QUEUED: u32 = 1;
/// The request is answered, with a result.
pub(crate) const DONE: u32 = 2;
/// The request is answered, with an error number for a result.
pub(crate) const FAILED: u32 = 4;
/// The request was given up before it was answered.
pub(crate) const CANCELLED: u32 = 8;
/// The mutex is the thread's.
pub(crate) const GRANTED: u32 = 16;
/// The mutex is somebody else's.
pub(crate) const BUSY: u32 = 32;
/// The coherence operation is complete. Apart from the others: a thread that awaits an answer may fault.
pub(crate) const COHERENT: u32 = 64;

/// The barrier is passed, with whether the thread is the serial one for a result.
pub(crate) const PASSED: u32 = 128;

/// Another thread has woken the thread, as with [`Waker`](crate::Waker).
pub(crate) const WOKEN: u32 = 256;

/// The thread is to give up what it waits for, if it can: it is cancelled.
pub(crate) const INTERRUPTED: u32 = 512;

/// The mutex is common: the thread is to lock it there.
pub(crate) const COMMON: u32 = 1024;

/// Every final answer to a request.
pub(crate) const ANSWERED: u32 = DONE | FAILED | CANCELLED;
/// Every answer to an attempt to lock.
pub(crate) const LOCKED: u32 = GRANTED | BUSY | COMMON;
