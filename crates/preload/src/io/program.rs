//! Calls whose argument types depend on the operation.

use super::formatted::formatted;
use super::{Buffer, by_number, with_buffers};
use crate::numbers::{int, low_half};
use crate::pthread::cancel::without_points;
use crate::pthread::futex;
use gondwana_memory::PAGE_SIZE;
use gondwana_node::{Node, Thread};
use gondwana_page::to_usize;
use libc::{c_char, c_int, c_long, c_ulong, c_void, ssize_t};

crate::guarded! {
    fn ioctl[fd](fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
        Buffer::write(argument, argument_of(request))
    }
    fn prctl(operation: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int { named_by(operation, a) }
    fn sendfile[out, input; giving out](out: c_int, input: c_int, offset: *mut libc::off_t, count: usize) -> ssize_t {
        Buffer::result(offset)
    }
}

/// Bytes of the argument of a request of `ioctl`; 0 if it is a number, or there is none.
fn argument_of(request: c_ulong) -> usize {
    /// Where a request has the size of its argument, and whether it has one.
    const SIZE: (u32, c_ulong) = (16, 0x3fff);
    const USES: c_ulong = 3 << 30;
    if request & USES != 0 {
        return to_usize(request >> SIZE.0 & SIZE.1);
    }
    // Older requests do not say.
    match request {
        libc::TIOCEXCL
        | libc::TIOCNXCL
        | libc::TIOCSCTTY
        | libc::TIOCNOTTY
        | libc::TIOCSBRK
        | libc::TIOCCBRK
        | libc::TCSBRK
        | libc::TCSBRKP
        | libc::TCXONC
        | libc::TCFLSH
        | libc::FIOCLEX
        | libc::FIONCLEX => 0,
        libc::TIOCGWINSZ | libc::TIOCSWINSZ => size_of::<libc::winsize>(),
        // The terminal's settings as the kernel has them.
        libc::TCGETS..=0x5408 => 36,
        0x5409..=0x54ff => size_of::<c_int>(),
        // `SIOCATMARK`
        0x8905 => size_of::<c_int>(),
        // Those of network interfaces.
        0x8900..=0x89ff => size_of::<libc::ifreq>(),
        _ => 0,
    }
}

/// Defines `vdprintf`: the text is written as by `write`, on whatever node.
macro_rules! printing {
    ($($name:ident($($flag:ident: $type:ty)?);)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $name(
            fd: c_int,
            $($flag: $type,)?
            format: *const c_char,
            arguments: *mut c_void,
        ) -> c_int {
            $(let _unchecked = $flag;)?
            // SAFETY: forwards the caller's arguments.
            let text = match unsafe { formatted(format, arguments) } {
                Ok(text) => text,
                Err(failed) => return failed,
            };
            // SAFETY: the text has that many bytes.
            int(unsafe { super::transfer::write(fd, text.as_ptr().cast(), text.len()) })
        }
    )*};
}

printing! {
    vdprintf();
    __vdprintf_chk(flag: c_int);
}

/// The buffer that an operation of `prctl` uses.
fn named_by(operation: c_int, argument: c_ulong) -> Buffer {
    match operation {
        libc::PR_SET_NAME => Buffer::string(argument as *const c_char),
        libc::PR_GET_NAME => Buffer::write(argument as *mut u8, 16),
        libc::PR_GET_PDEATHSIG => Buffer::result(argument as *mut c_int),
        _ => Buffer::read(std::ptr::null::<u8>(), 0),
    }
}

/// `syscall`: futexes on shared memory become cluster-wide futexes, and what this library does under a name it does by number, too; other
/// calls go to the kernel.
/// Where their arguments can be addresses of shared memory, that is there.
///
/// # Safety
/// As the C library's `syscall`. Arguments that the caller did not pass have arbitrary values, which the kernel
/// ignores.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    if let Some(node) = Node::current()
        && number == libc::SYS_futex
        && node.is_common(a)
    {
        let call = futex::Call {
            address: a,
            operation: low_half(b).cast_signed(),
            value: low_half(c),
            time: d,
            second: e,
            third: low_half(f),
        };
        // SAFETY: the caller's promise.
        return match unsafe { call.make(node) } {
            Ok(result) => result,
            Err(error) => {
                crate::errno::set(error);
                -1
            }
        };
    }
    let arguments = [a, b, c, d, e, f];
    if Node::current().is_some() {
        // SAFETY: forwards the caller's arguments.
        if let Some(result) = without_points(|| unsafe { by_number::call(number, arguments) }) {
            return result;
        }
    }
    let made = || {
        // SAFETY: forwards the caller's arguments.
        unsafe {
            crate::real!(syscall: fn(c_long, usize, usize, usize, usize, usize, usize) -> c_long)(
                number, a, b, c, d, e, f,
            )
        }
    };
    // The runtime makes calls, too, and a futex that is not common is in memory that nobody takes.
    if number == libc::SYS_futex || !Thread::is_of_program() || Thread::inside_runtime() {
        return made();
    }
    // Which arguments are addresses, and of how many bytes, is known of the calls above only.
    with_buffers(&arguments.map(|word| Buffer::write(word as *mut u8, PAGE_SIZE)), made)
}
