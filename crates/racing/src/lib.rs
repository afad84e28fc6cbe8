//! Bytes that other threads and other processes may read and write at any time.
//!
//! The pages of a node are such bytes: threads of the program write them through the application view, and peers on
//! the same host copy them. The bytes have no owner that Rust could check, so a reference to them, or a slice of them,
//! would be undefined behaviour as soon as somebody writes. [`RacingBytes`] and [`RacingBytesMut`] take the place of
//! slices.
//!
//! # Rules
//!
//! 1. No reference and no slice to racing bytes exists, not even for a moment. They are known by address and length.
//! 2. Each access is one of the [`access`] functions: on x86-64 assembly, of which the compiler knows that it may
//!    do what relaxed atomic loads and stores of single bytes do, and nothing else. Elsewhere, and under miri, they
//!    *are* such loads and stores.
//! 3. What is read is private from then on: copied to a slice, a vector or a register. Decisions are made about the
//!    copy only. Whoever needs a byte twice reads it once and keeps it.
//! 4. A comparison tells about some state of each byte during the call, not about one moment for all of them.
//! 5. A store writes the bytes that the caller names and no other, not even with its own value.
//! 6. No access orders anything. Whoever needs that a copy has what another node wrote before gets it from an atomic
//!    word or a message, before the copy.
//! 7. Only `unsafe` constructors make racing bytes from an address; what they demand holds for the lifetime in the
//!    type. Private memory can be seen as racing bytes safely, and is borrowed meanwhile.
//! 8. The address leaves this crate for the kernel and for the kernels of the diffs only, which keep these rules.

pub mod access;

use std::marker::PhantomData;
use std::ops::Range;

/// Bytes that can be read while others write them.
#[derive(Clone, Copy, Debug)]
pub struct RacingBytes<'a> {
    start: *const u8,
    len: usize,
    memory: PhantomData<&'a [u8]>,
}

// SAFETY: any thread may read the bytes at any time; that is what the type is for.
unsafe impl Send for RacingBytes<'_> {}
// SAFETY: as above.
unsafe impl Sync for RacingBytes<'_> {}

impl<'a> RacingBytes<'a> {
    /// The `len` bytes from `start` on.
    ///
    /// # Safety
    /// During `'a` they can be read. Others may write them.
    #[must_use]
    pub unsafe fn new(start: *const u8, len: usize) -> Self {
        Self { start, len, memory: PhantomData }
    }

    /// How many bytes there are.
    #[must_use]
    pub fn len(self) -> usize {
        self.len
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The address of the first byte, for the kernel and for loops that keep the rules.
    #[must_use]
    pub fn as_ptr(self) -> *const u8 {
        self.start
    }

    /// Some of the bytes.
    ///
    /// # Panics
    /// If they are not among these.
    #[must_use]
    pub fn part(self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {} bytes", self.len);
        // SAFETY: inside these bytes.
        Self { start: unsafe { self.start.add(range.start) }, len: range.len(), memory: PhantomData }
    }

    /// Copies all bytes.
    ///
    /// # Panics
    /// If `to` is of another length.
    pub fn copy_to(self, to: &mut [u8]) {
        assert_eq!(to.len(), self.len, "a copy is as long as its source");
        // SAFETY: both are that long; the slice is private.
        unsafe { access::copy(self.start, to.as_mut_ptr(), self.len) }
    }

    /// Copies all bytes to the end of a vector.
    pub fn append_to(self, to: &mut Vec<u8>) {
        to.reserve(self.len);
        // SAFETY: there is room for as many behind the vector's last byte, and all are written before they count.
        unsafe {
            access::copy(self.start, to.as_mut_ptr().add(to.len()), self.len);
            to.set_len(to.len() + self.len);
        }
    }
}

impl<'a> From<&'a [u8]> for RacingBytes<'a> {
    /// Private bytes, which nobody writes meanwhile.
    fn from(bytes: &'a [u8]) -> Self {
        Self { start: bytes.as_ptr(), len: bytes.len(), memory: PhantomData }
    }
}

impl<'a, const LEN: usize> From<&'a [u8; LEN]> for RacingBytes<'a> {
    fn from(bytes: &'a [u8; LEN]) -> Self {
        Self::from(&bytes[..])
    }
}

impl<'a> From<&'a Vec<u8>> for RacingBytes<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::from(&bytes[..])
    }
}

/// Bytes that can be read and written while others do so, too.
#[derive(Clone, Copy, Debug)]
pub struct RacingBytesMut<'a> {
    start: *mut u8,
    len: usize,
    memory: PhantomData<&'a mut [u8]>,
}

// SAFETY: any thread may read and write the bytes at any time; that is what the type is for.
unsafe impl Send for RacingBytesMut<'_> {}
// SAFETY: as above.
unsafe impl Sync for RacingBytesMut<'_> {}

impl<'a> RacingBytesMut<'a> {
    /// The `len` bytes from `start` on.
    ///
    /// # Safety
    /// During `'a` they can be read and written. Others may do both.
    #[must_use]
    pub unsafe fn new(start: *mut u8, len: usize) -> Self {
        Self { start, len, memory: PhantomData }
    }

    /// The same bytes, for reading only.
    #[must_use]
    pub fn readable(self) -> RacingBytes<'a> {
        RacingBytes { start: self.start, len: self.len, memory: PhantomData }
    }

    /// How many bytes there are.
    #[must_use]
    pub fn len(self) -> usize {
        self.len
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The address of the first byte, for the kernel and for loops that keep the rules.
    #[must_use]
    pub fn as_mut_ptr(self) -> *mut u8 {
        self.start
    }

    /// Overwrites all bytes.
    ///
    /// # Panics
    /// If `from` is of another length.
    pub fn copy_from(self, from: RacingBytes<'_>) {
        assert_eq!(from.len, self.len, "a copy is as long as its source");
        // SAFETY: both are that long. If they overlap, some bytes get the new value of others, as in any race.
        unsafe { access::copy(from.start, self.start, self.len) }
    }

    /// Overwrites all bytes with zero.
    pub fn clear(self) {
        // SAFETY: so many can be written.
        unsafe { access::clear(self.start, self.len) }
    }
}

impl<'a> From<&'a mut [u8]> for RacingBytesMut<'a> {
    /// Private bytes, which nobody else uses meanwhile.
    fn from(bytes: &'a mut [u8]) -> Self {
        Self { start: bytes.as_mut_ptr(), len: bytes.len(), memory: PhantomData }
    }
}

impl<'a, const LEN: usize> From<&'a mut [u8; LEN]> for RacingBytesMut<'a> {
    fn from(bytes: &'a mut [u8; LEN]) -> Self {
        Self::from(&mut bytes[..])
    }
}

#[cfg(test)]
mod tests;
