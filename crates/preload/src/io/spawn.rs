//! Other programs that this one runs: they get its arguments, wherever those are, and the limits that it was given.

use super::descriptors::{believed, for_child, for_exec, is_here};
use super::{Buffer, with_buffers, with_buffers_returning_error};
use libc::{c_char, c_int, c_void, pid_t};
use std::ffi::{CStr, CString};

/// A list of strings that ends with a null.
type Strings = *const *const c_char;

/// Adds the strings of a list, and the list itself.
unsafe fn add(buffers: &mut Vec<Buffer>, strings: Strings) {
    let mut count = 0;
    // SAFETY: as the caller of the wrapped function promises.
    unsafe {
        while !strings.is_null() && !(*strings.add(count)).is_null() {
            buffers.push(Buffer::string(*strings.add(count)));
            count += 1;
        }
    }
    buffers.push(Buffer::read(strings, (count + 1) * size_of::<*const c_char>()));
}

/// What the kernel reads to start a program.
///
/// # Safety
/// A string or null, and lists of strings or nulls.
unsafe fn described(path: *const c_char, lists: &[Strings]) -> Vec<Buffer> {
    let mut buffers = vec![];
    if !path.is_null() {
        buffers.push(Buffer::string(path));
    }
    // SAFETY: as promised.
    lists.iter().for_each(|&list| unsafe { add(&mut buffers, list) });
    buffers
}

unsafe extern "C" {
    static environ: Strings;
}

/// The list, or the program's own environment.
fn or_own(environment: Option<Strings>) -> Strings {
    // SAFETY: the C library's variable.
    environment.unwrap_or(unsafe { environ })
}

/// Defines functions that replace the process: after the name, the descriptor that leads to the program.
macro_rules! replacing {
    ($(fn $name:ident$([$fd:ident])?($($argument:ident: $type:ty),*) = $path:expr, $arguments:expr, $environment:expr;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            $(if !is_here($fd, stringify!($name)) {
                return -1;
            })?
            // SAFETY: as the caller promises.
            let buffers = unsafe { described($path, &[$arguments, or_own($environment)]) };
            for_exec(|| with_buffers(&buffers, || {
                // SAFETY: forwards the caller's arguments.
                unsafe { crate::real!($name: fn($($type),*) -> c_int)($($argument),*) }
            }))
        }
    )*};
}

replacing! {
    fn execve(path: *const c_char, arguments: Strings, environment: Strings) = path, arguments, Some(environment);
    fn execv(path: *const c_char, arguments: Strings) = path, arguments, None;
    fn execvp(path: *const c_char, arguments: Strings) = path, arguments, None;
    fn execvpe(path: *const c_char, arguments: Strings, environment: Strings) = path, arguments, Some(environment);
    fn execveat[folder](folder: c_int, path: *const c_char, arguments: Strings, environment: Strings, flags: c_int)
        = path, arguments, Some(environment);
    fn fexecve[fd](fd: c_int, arguments: Strings, environment: Strings)
        = std::ptr::null(), arguments, Some(environment);
}

macro_rules! spawning {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            child: *mut pid_t,
            path: *const c_char,
            actions: *const c_void,
            attributes: *const c_void,
            arguments: Strings,
            environment: Strings,
        ) -> c_int {
            // SAFETY: as the caller promises.
            let mut buffers = unsafe { described(path, &[arguments, environment]) };
            buffers.push(Buffer::result(child));
            for_child(|| with_buffers_returning_error(&buffers, || {
                // SAFETY: forwards the caller's arguments.
                unsafe {
                    crate::real!($name: fn(
                        *mut pid_t, *const c_char, *const c_void, *const c_void, Strings, Strings,
                    ) -> c_int)(child, path, actions, attributes, arguments, environment)
                }
            }))
        }
    )*};
}

spawning! { posix_spawn posix_spawnp }

/// # Safety
/// As the C library's `system`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn system(command: *const c_char) -> c_int {
    // SAFETY: passes a string or null.
    let real = |command| unsafe { crate::real!(system: fn(*const c_char) -> c_int)(command) };
    if command.is_null() {
        return real(command);
    }
    // SAFETY: the caller passes a string.
    let text = unsafe { CStr::from_ptr(command) };
    // The shell itself sets the limit: the call ends with the child, and until then this process needs its own.
    let limit = believed().map_or(vec![], |limit| format!("ulimit -S -n {limit}; ").into_bytes());
    let private = CString::new([&limit, text.to_bytes()].concat()).expect("two texts without NUL");
    real(private.as_ptr())
}
