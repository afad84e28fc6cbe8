//! The call that an allocation comes from.

/// The call of an allocating function: where it returns to, and where on the stack that is written, which is where to
/// begin to look for the calls around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The address that the call returns to; 0 if it is no call of the program.
    pub address: usize,
    pub(crate) slot: usize,
}

impl Caller {
    /// No call of the program.
    pub const NONE: Self = Self { address: 0, slot: 0 };

    /// The call whose return address is at this place.
    ///
    /// # Safety
    /// The function that was called has not returned yet, and runs on the calling thread.
    #[inline]
    #[must_use]
    pub unsafe fn at(slot: *const usize) -> Self {
        // SAFETY: the caller's promise.
        Self { address: unsafe { *slot }, slot: slot as usize }
    }
}
