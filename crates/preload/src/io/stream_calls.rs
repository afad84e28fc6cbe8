//! Calls on open streams that only need to know whether the stream is this node's. Many take any number of
//! arguments, so they go on by a jump, with all registers as they were.

use super::stream_memory::{BASE, OWN, RANGES, SHIFT, STDIN, refuse_call};
use super::streams_elsewhere::print_elsewhere;
use crate::next_function;
use gondwana_interpose::{NextFunction, c_name};
use std::arch::naked_asm;

extern "C" fn address_of(real: &NextFunction) -> usize {
    next_function::address(real)
}

/// Jumps to the function that `r11` describes when its address is not known yet.
#[unsafe(naked)]
unsafe extern "C" fn find() {
    naked_asm!(
        "push rax",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "sub rsp, 128",
        "movups [rsp], xmm0",
        "movups [rsp + 16], xmm1",
        "movups [rsp + 32], xmm2",
        "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4",
        "movups [rsp + 80], xmm5",
        "movups [rsp + 96], xmm6",
        "movups [rsp + 112], xmm7",
        "mov rdi, r11",
        "call {address_of}",
        "mov r11, rax",
        "movups xmm0, [rsp]",
        "movups xmm1, [rsp + 16]",
        "movups xmm2, [rsp + 32]",
        "movups xmm3, [rsp + 48]",
        "movups xmm4, [rsp + 64]",
        "movups xmm5, [rsp + 80]",
        "movups xmm6, [rsp + 96]",
        "movups xmm7, [rsp + 112]",
        "add rsp, 128",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "pop rax",
        "jmp r11",
        address_of = sym address_of,
    )
}

/// Defines a function that interposes one of the C library and then jumps to it. Parameters: the code that checks
/// whether the stream is another node's, and jumps to 3 if so, with the node in `r10`, or to 4 for standard input;
/// and the code for these cases.
macro_rules! in_front {
    ($name:ident, [$($look:expr),*], [$($elsewhere:expr),*], $($operand:tt)*) => {
        const _: () = {
            static REAL: NextFunction = NextFunction::new(c_name!($name));

            /// # Safety
            /// As the C library's function of this name.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name() {
                naked_asm!(
                    $($look,)*
                    "2:",
                    "lea r11, [rip + {real}]",
                    "mov r10, [r11]",
                    "test r10, r10",
                    "jz {find}",
                    "jmp r10",
                    "4:",
                    "xor r10d, r10d",
                    "3:",
                    $($elsewhere,)*
                    "ret",
                    stdin = sym STDIN,
                    real = sym REAL,
                    find = sym find,
                    $($operand)*
                )
            }
        };
    };
    (stream $name:ident, $stream:literal, [$($elsewhere:expr),*], $($operand:tt)*) => {
        in_front! {
            $name,
            [
                "movabs r11, {base}",
                concat!("mov r10, ", $stream),
                "sub r10, r11",
                "shr r10, {shift}",
                concat!("cmp ", $stream, ", [rip + {stdin}]"),
                "je 4f",
                "cmp r10, {ranges}",
                "jae 2f",
                "cmp r10, [rip + {own}]",
                "jne 3f"
            ],
            [$($elsewhere),*],
            base = const BASE,
            shift = const SHIFT,
            ranges = const RANGES,
            own = sym OWN,
            $($operand)*
        }
    };
    (refuse $refused:literal, $($function:tt)*) => {
        in_front! {
            $($function)*
            [
                "sub rsp, 8",
                "mov rdi, r10",
                "lea rsi, [rip + {real}]",
                "call {refuse}",
                concat!("mov rax, ", $refused),
                "add rsp, 8"
            ],
            refuse = sym refuse_call,
        }
    };
}

/// Defines functions that are refused on streams of other nodes: the register of the stream, and the result of a
/// refused call.
macro_rules! checked {
    ($($stream:literal => $refused:literal: $($name:ident)*;)*) => {
        $($(in_front! { refuse $refused, stream $name, $stream, })*)*
    };
}

checked! {
    "rdi" => -1: fwprintf vfwprintf __fwprintf_chk __vfwprintf_chk
        fscanf vfscanf __isoc99_fscanf __isoc99_vfscanf __isoc23_fscanf __isoc23_vfscanf
        fwscanf vfwscanf __isoc99_fwscanf __isoc99_vfwscanf __isoc23_fwscanf __isoc23_vfwscanf
        getw fgetwc getwc fgetwc_unlocked getwc_unlocked telldir dirfd;
    "rdi" => 0: flockfile funlockfile __fpurge __fpending readdir readdir64 rewinddir seekdir;
    "rdi" => 1: ftrylockfile;
    "rdi" => 9: readdir_r readdir64_r; // EBADF
    "rsi" => -1: ungetwc putw fputwc putwc fputwc_unlocked putwc_unlocked fputws fputws_unlocked;
    "rdx" => 0: fgetws fgetws_unlocked;
    "rcx" => 0: __fgetws_chk;
}

/// Defines functions that print variadic arguments to a stream: the register of the format, and the bytes of the
/// register save area that belong to fixed arguments.
macro_rules! printing {
    ($($name:ident($format:literal, $named:literal);)*) => {$(
        in_front! {
            stream $name,
            "rdi",
            [
                // A `va_list` of 24 bytes, then the registers that it points to.
                "sub rsp, 216",
                "mov [rsp + 32], rdi",
                "mov [rsp + 40], rsi",
                "mov [rsp + 48], rdx",
                "mov [rsp + 56], rcx",
                "mov [rsp + 64], r8",
                "mov [rsp + 72], r9",
                "movaps [rsp + 80], xmm0",
                "movaps [rsp + 96], xmm1",
                "movaps [rsp + 112], xmm2",
                "movaps [rsp + 128], xmm3",
                "movaps [rsp + 144], xmm4",
                "movaps [rsp + 160], xmm5",
                "movaps [rsp + 176], xmm6",
                "movaps [rsp + 192], xmm7",
                concat!("mov dword ptr [rsp], ", $named),
                "mov dword ptr [rsp + 4], 48",
                "lea r10, [rsp + 224]",
                "mov [rsp + 8], r10",
                "lea r10, [rsp + 32]",
                "mov [rsp + 16], r10",
                concat!("mov rsi, ", $format),
                "mov rdx, rsp",
                "call {print}",
                "add rsp, 216"
            ],
            print = sym print_elsewhere,
        }
    )*};
}

printing! {
    fprintf("rsi", "16");
    __fprintf_chk("rdx", "24");
}

/// Defines functions that read standard input, which is node 0's, and the result of a refused call.
macro_rules! reading_stdin {
    ($($refused:literal: $($name:ident)*;)*) => {$($(
        in_front! { refuse $refused, $name, ["cmp qword ptr [rip + {stdin}], -1", "jne 4f"], }
    )*)*};
}

reading_stdin! {
    -1: getwchar getwchar_unlocked scanf vscanf __isoc99_scanf __isoc99_vscanf
        __isoc23_scanf __isoc23_vscanf wscanf vwscanf __isoc99_wscanf __isoc99_vwscanf __isoc23_wscanf
        __isoc23_vwscanf;
}
