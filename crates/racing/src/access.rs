//! The only instructions that touch racing bytes (rule 2 of the crate).
//!
//! Numbers are little-endian and may be at any address. The functions name no thread: what they cost is one
//! instruction for each number, and one string instruction for each run of bytes, which copies a page as fast as the C
//! library's `memcpy`.

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub use x86_64::*;

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub use portable::*;

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64 {
    use std::arch::asm;

    /// Up to here words are copied: to begin a string instruction takes some processors as long as this many bytes.
    const SHORT: usize = 64;

    /// Copies `len` bytes, of which the source, the target or both may be racing.
    ///
    /// # Safety
    /// So many bytes can be read from `from` and written to `to`.
    #[inline]
    pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
        if (8..=SHORT).contains(&len) {
            // SAFETY: by our contract; the last word may cover bytes of the one before it.
            unsafe {
                for at in (0..len - 8).step_by(8) {
                    store_u64(to.add(at), load_u64(from.add(at)));
                }
                store_u64(to.add(len - 8), load_u64(from.add(len - 8)));
            }
            return;
        }
        // SAFETY: by our contract. The direction flag is clear, as the ABI demands.
        unsafe {
            asm!(
                "rep movsb",
                inout("rcx") len => _,
                inout("rsi") from => _,
                inout("rdi") to => _,
                options(nostack, preserves_flags)
            );
        }
    }

    /// Writes zero to `len` bytes.
    ///
    /// # Safety
    /// So many bytes can be written.
    #[inline]
    pub unsafe fn clear(to: *mut u8, len: usize) {
        // SAFETY: as above.
        unsafe {
            asm!(
                "rep stosb",
                inout("rcx") len => _,
                inout("rdi") to => _,
                in("al") 0_u8,
                options(nostack, preserves_flags)
            );
        }
    }

    /// Reads eight bytes.
    ///
    /// # Safety
    /// They can be read.
    #[inline(always)]
    #[must_use]
    pub unsafe fn load_u64(from: *const u8) -> u64 {
        let word;
        // SAFETY: by our contract.
        unsafe {
            asm!(
                "mov {word}, qword ptr [{from}]",
                word = lateout(reg) word,
                from = in(reg) from,
                options(nostack, preserves_flags, readonly)
            );
        }
        word
    }

    macro_rules! stores {
        ($($name:ident: $number:ty, $class:ident, $instruction:literal;)*) => {$(
            /// Writes the bytes of a number, and no other.
            ///
            /// # Safety
            /// They can be written.
            #[inline(always)]
            pub unsafe fn $name(to: *mut u8, number: $number) {
                // SAFETY: by our contract.
                unsafe {
                    asm!(
                        $instruction,
                        to = in(reg) to,
                        number = in($class) number,
                        options(nostack, preserves_flags)
                    );
                }
            }
        )*};
    }

    stores! {
        store_u64: u64, reg, "mov qword ptr [{to}], {number}";
        store_u32: u32, reg, "mov dword ptr [{to}], {number:e}";
        store_u16: u16, reg, "mov word ptr [{to}], {number:x}";
        store_u8: u8, reg_byte, "mov byte ptr [{to}], {number}";
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod portable {
    use std::sync::atomic::{AtomicU8, Ordering};

    /// # Safety
    /// The byte can be read.
    unsafe fn load(from: *const u8) -> u8 {
        // SAFETY: by our contract; a byte is always aligned, and this writes nothing.
        unsafe { AtomicU8::from_ptr(from.cast_mut()) }.load(Ordering::Relaxed)
    }

    /// # Safety
    /// The byte can be written.
    unsafe fn store(to: *mut u8, byte: u8) {
        // SAFETY: by our contract; a byte is always aligned.
        unsafe { AtomicU8::from_ptr(to) }.store(byte, Ordering::Relaxed);
    }

    /// Copies `len` bytes, of which the source, the target or both may be racing.
    ///
    /// # Safety
    /// So many bytes can be read from `from` and written to `to`.
    pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
        for at in 0..len {
            // SAFETY: by our contract.
            unsafe { store(to.add(at), load(from.add(at))) }
        }
    }

    /// Writes zero to `len` bytes.
    ///
    /// # Safety
    /// So many bytes can be written.
    pub unsafe fn clear(to: *mut u8, len: usize) {
        for at in 0..len {
            // SAFETY: by our contract.
            unsafe { store(to.add(at), 0) }
        }
    }

    /// Reads eight bytes.
    ///
    /// # Safety
    /// They can be read.
    #[must_use]
    pub unsafe fn load_u64(from: *const u8) -> u64 {
        // SAFETY: by our contract.
        u64::from_le_bytes(std::array::from_fn(|at| unsafe { load(from.add(at)) }))
    }

    macro_rules! stores {
        ($($name:ident: $number:ty;)*) => {$(
            /// Writes the bytes of a number, and no other.
            ///
            /// # Safety
            /// They can be written.
            pub unsafe fn $name(to: *mut u8, number: $number) {
                for (at, byte) in number.to_le_bytes().into_iter().enumerate() {
                    // SAFETY: by our contract.
                    unsafe { store(to.add(at), byte) }
                }
            }
        )*};
    }

    stores! { store_u64: u64; store_u32: u32; store_u16: u16; store_u8: u8; }
}
