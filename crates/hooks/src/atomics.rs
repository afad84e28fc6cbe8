//! Atomic operations. The hook makes the operation itself, after the access; between the two no other thread runs.

use crate::accesses::{read, write};
use std::ffi::c_int;

/// A read-modify-write or a store by plain accesses: only one target thread runs at a time.
macro_rules! atomics {
    ($width:literal: $type:ty, $load:ident, $store:ident, $exchange:ident, $add:ident, $sub:ident, $and:ident, $or:ident,
     $xor:ident, $nand:ident, $strong:ident, $weak:ident, $value:ident) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $load(at: *const $type, _order: c_int) -> $type {
            read(at as usize, $width);
            // SAFETY: the program's own access.
            unsafe { at.read_volatile() }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $store(at: *mut $type, value: $type, _order: c_int) {
            write(at as usize, $width);
            // SAFETY: the program's own access.
            unsafe { at.write_volatile(value) };
        }

        atomics!(@change $width $type, $exchange, |_old, value| value);
        atomics!(@change $width $type, $add, |old: $type, value| old.wrapping_add(value));
        atomics!(@change $width $type, $sub, |old: $type, value| old.wrapping_sub(value));
        atomics!(@change $width $type, $and, |old: $type, value| old & value);
        atomics!(@change $width $type, $or, |old: $type, value| old | value);
        atomics!(@change $width $type, $xor, |old: $type, value| old ^ value);
        atomics!(@change $width $type, $nand, |old: $type, value: $type| !(old & value));
        atomics!(@compare $width $type, $strong);
        atomics!(@compare $width $type, $weak);

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $value(
            at: *mut $type, expected: $type, value: $type, _order: c_int, _otherwise: c_int,
        ) -> $type {
            write(at as usize, $width);
            // SAFETY: the program's own access.
            unsafe {
                let old = at.read_volatile();
                if old == expected {
                    at.write_volatile(value);
                }
                old
            }
        }
    };
    (@change $width:literal $type:ty, $name:ident, $new:expr) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(at: *mut $type, value: $type, _order: c_int) -> $type {
            write(at as usize, $width);
            // SAFETY: the program's own access.
            unsafe {
                let old = at.read_volatile();
                let new: fn($type, $type) -> $type = $new;
                at.write_volatile(new(old, value));
                old
            }
        }
    };
    (@compare $width:literal $type:ty, $name:ident) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            at: *mut $type, expected: *mut $type, value: $type, _order: c_int, _otherwise: c_int,
        ) -> c_int {
            write(at as usize, $width);
            // SAFETY: the program's own accesses.
            unsafe {
                let old = at.read_volatile();
                if old == expected.read() {
                    at.write_volatile(value);
                    return 1;
                }
                expected.write(old);
                0
            }
        }
    };
}

atomics!(1: u8, __tsan_atomic8_load, __tsan_atomic8_store, __tsan_atomic8_exchange, __tsan_atomic8_fetch_add,
    __tsan_atomic8_fetch_sub, __tsan_atomic8_fetch_and, __tsan_atomic8_fetch_or, __tsan_atomic8_fetch_xor,
    __tsan_atomic8_fetch_nand, __tsan_atomic8_compare_exchange_strong, __tsan_atomic8_compare_exchange_weak,
    __tsan_atomic8_compare_exchange_val);
atomics!(2: u16, __tsan_atomic16_load, __tsan_atomic16_store, __tsan_atomic16_exchange, __tsan_atomic16_fetch_add,
    __tsan_atomic16_fetch_sub, __tsan_atomic16_fetch_and, __tsan_atomic16_fetch_or, __tsan_atomic16_fetch_xor,
    __tsan_atomic16_fetch_nand, __tsan_atomic16_compare_exchange_strong, __tsan_atomic16_compare_exchange_weak,
    __tsan_atomic16_compare_exchange_val);
atomics!(4: u32, __tsan_atomic32_load, __tsan_atomic32_store, __tsan_atomic32_exchange, __tsan_atomic32_fetch_add,
    __tsan_atomic32_fetch_sub, __tsan_atomic32_fetch_and, __tsan_atomic32_fetch_or, __tsan_atomic32_fetch_xor,
    __tsan_atomic32_fetch_nand, __tsan_atomic32_compare_exchange_strong, __tsan_atomic32_compare_exchange_weak,
    __tsan_atomic32_compare_exchange_val);
atomics!(8: u64, __tsan_atomic64_load, __tsan_atomic64_store, __tsan_atomic64_exchange, __tsan_atomic64_fetch_add,
    __tsan_atomic64_fetch_sub, __tsan_atomic64_fetch_and, __tsan_atomic64_fetch_or, __tsan_atomic64_fetch_xor,
    __tsan_atomic64_fetch_nand, __tsan_atomic64_compare_exchange_strong, __tsan_atomic64_compare_exchange_weak,
    __tsan_atomic64_compare_exchange_val);
atomics!(16: u128, __tsan_atomic128_load, __tsan_atomic128_store, __tsan_atomic128_exchange,
    __tsan_atomic128_fetch_add, __tsan_atomic128_fetch_sub, __tsan_atomic128_fetch_and, __tsan_atomic128_fetch_or,
    __tsan_atomic128_fetch_xor, __tsan_atomic128_fetch_nand, __tsan_atomic128_compare_exchange_strong,
    __tsan_atomic128_compare_exchange_weak, __tsan_atomic128_compare_exchange_val);

#[unsafe(no_mangle)]
extern "C" fn __tsan_atomic_thread_fence(_order: c_int) {}

#[unsafe(no_mangle)]
extern "C" fn __tsan_atomic_signal_fence(_order: c_int) {}
