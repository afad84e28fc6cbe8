//! Variadic functions that allocate, use a descriptor or a stream, or replace the program: they call variants with a `va_list`.

use super::allocating::{
    __isoc23_vsscanf, __isoc23_vswscanf, __isoc99_vsscanf, __isoc99_vswscanf, __vasprintf_chk, vasprintf,
    vsscanf, vswscanf,
};
use super::exec::{vexecl, vexecle, vexeclp};
use super::program::{__vdprintf_chk, vdprintf};
use super::scanning::{
    __isoc23_vfscanf, __isoc23_vfwscanf, __isoc23_vscanf, __isoc23_vwscanf, __isoc99_vfscanf,
    __isoc99_vfwscanf, __isoc99_vscanf, __isoc99_vwscanf, vfscanf, vfwscanf, vscanf, vwscanf,
};
use super::streams_elsewhere::{__vfprintf_chk, vfprintf};
use super::wide_streams::{__vfwprintf_chk, vfwprintf};
use libc::c_int;
use std::arch::naked_asm;

/// Builds a `va_list` by the x86-64 calling convention behind so many fixed arguments, and passes it in the register
/// of the argument after them.
macro_rules! listing {
    ($($name:ident => $target:ident, $fixed:literal, $list:literal;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name() -> c_int {
            naked_asm!(
                "sub rsp, 0xd8",
                "mov [rsp + 0x28], rsi",
                "mov [rsp + 0x30], rdx",
                "mov [rsp + 0x38], rcx",
                "mov [rsp + 0x40], r8",
                "mov [rsp + 0x48], r9",
                "test al, al",
                "je 2f",
                "movaps [rsp + 0x50], xmm0",
                "movaps [rsp + 0x60], xmm1",
                "movaps [rsp + 0x70], xmm2",
                "movaps [rsp + 0x80], xmm3",
                "movaps [rsp + 0x90], xmm4",
                "movaps [rsp + 0xa0], xmm5",
                "movaps [rsp + 0xb0], xmm6",
                "movaps [rsp + 0xc0], xmm7",
                "2:",
                "mov dword ptr [rsp + 0x08], 8 * {fixed}",
                "mov dword ptr [rsp + 0x0c], 48",
                "lea rax, [rsp + 0xe0]",
                "mov [rsp + 0x10], rax",
                "lea rax, [rsp + 0x20]",
                "mov [rsp + 0x18], rax",
                concat!("lea ", $list, ", [rsp + 0x08]"),
                "call {target}",
                "add rsp, 0xd8",
                "ret",
                fixed = const $fixed,
                target = sym $target,
            )
        }
    )*};
}

listing! {
    execl => vexecl, 1, "rsi";
    execlp => vexeclp, 1, "rsi";
    execle => vexecle, 1, "rsi";
    dprintf => vdprintf, 2, "rdx";
    __dprintf_chk => __vdprintf_chk, 3, "rcx";
    asprintf => vasprintf, 2, "rdx";
    __asprintf => vasprintf, 2, "rdx";
    __asprintf_chk => __vasprintf_chk, 3, "rcx";
    sscanf => vsscanf, 2, "rdx";
    __isoc99_sscanf => __isoc99_vsscanf, 2, "rdx";
    __isoc23_sscanf => __isoc23_vsscanf, 2, "rdx";
    swscanf => vswscanf, 2, "rdx";
    __isoc99_swscanf => __isoc99_vswscanf, 2, "rdx";
    __isoc23_swscanf => __isoc23_vswscanf, 2, "rdx";
    fprintf => vfprintf, 2, "rdx";
    __fprintf_chk => __vfprintf_chk, 3, "rcx";
    fwprintf => vfwprintf, 2, "rdx";
    __fwprintf_chk => __vfwprintf_chk, 3, "rcx";
    fscanf => vfscanf, 2, "rdx";
    scanf => vscanf, 1, "rsi";
    fwscanf => vfwscanf, 2, "rdx";
    wscanf => vwscanf, 1, "rsi";
    __isoc99_fscanf => __isoc99_vfscanf, 2, "rdx";
    __isoc99_scanf => __isoc99_vscanf, 1, "rsi";
    __isoc99_fwscanf => __isoc99_vfwscanf, 2, "rdx";
    __isoc99_wscanf => __isoc99_vwscanf, 1, "rsi";
    __isoc23_fscanf => __isoc23_vfscanf, 2, "rdx";
    __isoc23_scanf => __isoc23_vscanf, 1, "rsi";
    __isoc23_fwscanf => __isoc23_vfwscanf, 2, "rdx";
    __isoc23_wscanf => __isoc23_vwscanf, 1, "rsi";
}
