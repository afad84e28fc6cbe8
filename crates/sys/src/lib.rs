//! System calls by their numbers.
//!
//! `libc::syscall` is a variadic function of C. An argument of 32 bits is passed as 32 bits, and the kernel reads a whole
//! register: its upper half is whatever was there, so that `-1` may arrive as 4,294,967,295 or as any other number that
//! ends alike. Here each argument becomes a word first, with its sign, and those that are not given are 0. `clippy.toml`
//! keeps all other code from calling `libc::syscall`.

use libc::c_long;

/// Most arguments that a system call has.
const MOST: usize = 6;

/// The largest number of an error: results from the negative of it on are none.
const MOST_ERROR: c_long = 4095;

/// What can be an argument of a system call.
pub trait Argument {
    /// The same as a word: numbers keep their value, and pointers their address.
    fn word(self) -> c_long;
}

macro_rules! arguments {
    ($($number:ty: $word:expr;)*) => {$(
        impl Argument for $number {
            #[inline]
            fn word(self) -> c_long {
                $word(self)
            }
        }
    )*};
}

arguments! {
    i32: c_long::from;
    u32: c_long::from;
    i64: c_long::from;
    u64: u64::cast_signed;
    isize: |number| number as c_long;
    usize: |number: usize| number.cast_signed() as c_long;
}

impl<T> Argument for *const T {
    #[inline]
    fn word(self) -> c_long {
        self as c_long
    }
}

impl<T> Argument for *mut T {
    #[inline]
    fn word(self) -> c_long {
        self as c_long
    }
}

/// Makes a system call: its number, then its arguments, each an [`Argument`]. Gives what the kernel does, or -1 with the
/// reason in `errno`.
///
/// The call is unsafe: what it does to memory, files and threads is up to the caller.
#[macro_export]
macro_rules! syscall {
    ($number:expr $(, $argument:expr)* $(,)?) => {
        $crate::call($number, [$($crate::Argument::word($argument)),*])
    };
}

/// What [`syscall!`] calls.
///
/// # Safety
/// As for the system call with this number.
#[inline]
pub unsafe fn call<const COUNT: usize>(number: c_long, arguments: [c_long; COUNT]) -> c_long {
    const { assert!(COUNT <= MOST, "no system call has so many arguments") }
    let mut words = [0; MOST];
    words[..COUNT].copy_from_slice(&arguments);
    let [a, b, c, d, e, f] = words;
    let result: c_long;
    // The instruction itself: the C library's function may be the program's, for which numbers of processes and threads are
    // those of a whole run.
    // SAFETY: as the caller promises. The kernel changes these two registers beside the result.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    if (-MOST_ERROR..0).contains(&result) {
        let error = i32::try_from(-result).expect("a small number");
        // SAFETY: the calling thread's variable.
        unsafe { *libc::__errno_location() = error };
        return -1;
    }
    result
}

/// Defines functions that give the kernel's numbers of this process and thread. The C library's functions of these names may be
/// the program's, which give numbers of the whole run.
macro_rules! numbers {
    ($($(#[$about:meta])* $name:ident: $number:expr;)*) => {$(
        $(#[$about])*
        #[must_use]
        pub fn $name() -> i32 {
            // SAFETY: touches no memory.
            i32::try_from(unsafe { syscall!($number) }).expect("the kernel's numbers are small")
        }
    )*};
}

numbers! {
    /// The number of the calling process.
    process: libc::SYS_getpid;
    /// The number of the process that the calling one is a child of.
    parent: libc::SYS_getppid;
    /// The number of the calling thread.
    thread: libc::SYS_gettid;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_value() {
        assert_eq!([(-1_i32).word(), u32::MAX.word(), i32::MIN.word()], [-1, 0xffff_ffff, -0x8000_0000]);
        assert_eq!([usize::MAX.word(), 7_u64.word(), (-7_i64).word()], [-1, 7, -7]);
        assert_eq!([std::ptr::null::<u8>().word(), (4096 as *mut u8).word()], [0, 4096]);
    }

    #[test]
    fn the_kernel_sees_the_sign_of_a_small_number() {
        // SAFETY: the name is a C string, and the other calls touch no memory.
        unsafe {
            let file = libc::memfd_create(c"words".as_ptr(), libc::MFD_CLOEXEC);
            assert!(file >= 0);
            let seek = |by: i32| syscall!(libc::SYS_lseek, file, by, libc::SEEK_CUR);
            assert_eq!([seek(5), seek(-1)], [5, 4], "with an upper half of zeros it would go on by 4 GiB");
            libc::close(file);
        }
    }

    #[test]
    fn what_is_not_given_is_zero() {
        // SAFETY: touches no memory. The kernel refuses it unless all its four arguments are 0.
        let privileges = unsafe { syscall!(libc::SYS_prctl, libc::PR_GET_NO_NEW_PRIVS) };
        assert!(privileges >= 0);
    }
}
