//! Loads and stores: the functions that `gcc -fsanitize=thread` has the program call before each.

use crate::world::{access, port, slow_access};
use gondwana_sim::Kind;

/// A load that crosses no line if it has up to 8 bytes.
#[inline(always)]
pub(crate) fn read(address: usize, width: u64) {
    if width > 8 || !port().is_some_and(|port| port.read(address as u64)) {
        slow_access(address, width, Kind::Read);
    }
}

/// A store that crosses no line if it has up to 8 bytes.
#[inline(always)]
pub(crate) fn write(address: usize, width: u64) {
    if width > 8 || !port().is_some_and(|port| port.write(address as u64, width)) {
        slow_access(address, width, Kind::Write);
    }
}

macro_rules! hooks {
    ($($name:ident = $call:ident($($width:expr, $kind:expr)?);)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(address: usize) {
            $call(address $(, $width, $kind)?);
        }
    )*};
}

/// Loads and stores that lie within a line.
macro_rules! aligned {
    ($($name:ident = $call:ident $width:literal;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(address: usize) {
            $call(address, $width);
        }
    )*};
}

aligned! {
    __tsan_read1 = read 1;
    __tsan_read2 = read 2;
    __tsan_read4 = read 4;
    __tsan_read8 = read 8;
    __tsan_write1 = write 1;
    __tsan_write2 = write 2;
    __tsan_write4 = write 4;
    __tsan_write8 = write 8;
    __tsan_volatile_read1 = read 1;
    __tsan_volatile_read2 = read 2;
    __tsan_volatile_read4 = read 4;
    __tsan_volatile_read8 = read 8;
    __tsan_volatile_write1 = write 1;
    __tsan_volatile_write2 = write 2;
    __tsan_volatile_write4 = write 4;
    __tsan_volatile_write8 = write 8;
    __tsan_vptr_read = read 8;
}

hooks! {
    __tsan_read16 = access(16, Kind::Read);
    __tsan_write16 = access(16, Kind::Write);
    __tsan_volatile_read16 = access(16, Kind::Read);
    __tsan_volatile_write16 = access(16, Kind::Write);
    __tsan_unaligned_read2 = access(2, Kind::Read);
    __tsan_unaligned_read4 = access(4, Kind::Read);
    __tsan_unaligned_read8 = access(8, Kind::Read);
    __tsan_unaligned_read16 = access(16, Kind::Read);
    __tsan_unaligned_write2 = access(2, Kind::Write);
    __tsan_unaligned_write4 = access(4, Kind::Write);
    __tsan_unaligned_write8 = access(8, Kind::Write);
    __tsan_unaligned_write16 = access(16, Kind::Write);
    __tsan_func_entry = ignore();
}

#[inline(always)]
fn ignore(_caller: usize) {}

#[unsafe(no_mangle)]
extern "C" fn __tsan_vptr_update(address: usize, _value: usize) {
    write(address, 8);
}

#[unsafe(no_mangle)]
extern "C" fn __tsan_read_range(address: usize, bytes: u64) {
    access(address, bytes, Kind::Read);
}

#[unsafe(no_mangle)]
extern "C" fn __tsan_write_range(address: usize, bytes: u64) {
    access(address, bytes, Kind::Write);
}

#[unsafe(no_mangle)]
extern "C" fn __tsan_func_exit() {}

#[unsafe(no_mangle)]
extern "C" fn __tsan_init() {}
