//! Replaces the program by another one, with arguments from shared memory, and the limits that this program was started with.

use super::descriptors::{Reopened, for_exec, is_here};
use super::{Buffer, with_buffers};
use gondwana_node::Node;
use libc::{c_char, c_int};
use std::ffi::CStr;

/// A list of strings that ends with a null.
pub(super) type Strings = *const *const c_char;

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

/// The memory that the kernel reads to start a program.
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

/// The name of a program; empty if it has none.
///
/// # Safety
/// A string or null.
unsafe fn name_of(path: *const c_char) -> String {
    if path.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(path).to_string_lossy().into_owned() }
}

/// Replaces the process, which may be a node, by a program of this name; returns an error if that fails.
fn replace_by(name: &str, replace: impl FnOnce() -> c_int) -> c_int {
    let Some(node) = Node::current() else { return replace() };
    let _reopened = Reopened::for_program();
    let (failed, error) = node.replace(name, || (replace(), crate::errno::get()));
    crate::errno::set(error);
    failed
}

/// Defines functions that replace the process: after the name, the descriptor that leads to the program.
macro_rules! replacing {
    ($(fn $name:ident$([$fd:ident])?($($argument:ident: $type:ty),*) = $path:expr, $arguments:expr, $environment:expr;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            $(if !is_here($fd, stringify!($name)) {
                return -1;
            })?
            // SAFETY: as the caller promises.
            let (buffers, name) = unsafe {
                (described($path, &[$arguments, or_own($environment)]), name_of($path))
            };
            replace_by(&name, || for_exec(|| with_buffers(&buffers, || {
                // SAFETY: forwards the caller's arguments.
                unsafe { crate::real!($name: fn($($type),*) -> c_int)($($argument),*) }
            })))
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

/// Arguments of a variadic function, all of them addresses: a `va_list` by the x86-64 calling convention.
#[repr(C)]
pub(super) struct Addresses {
    /// Where the next one is among those of registers, in bytes; behind them, the others are on the stack.
    offset: u32,
    _floats: u32,
    stack: *const *const c_char,
    registers: *const c_char,
}

impl Addresses {
    /// How many bytes the registers take.
    const REGISTERS: u32 = 48;

    /// # Safety
    /// There is another argument.
    unsafe fn next(&mut self) -> *const c_char {
        // SAFETY: the caller's promise.
        unsafe {
            if self.offset < Self::REGISTERS {
                self.offset += 8;
                return self.registers.add(self.offset as usize - 8).cast::<*const c_char>().read();
            }
            self.stack = self.stack.add(1);
            self.stack.sub(1).read()
        }
    }

    /// The strings up to the null, which ends them here, too.
    ///
    /// # Safety
    /// There is one.
    unsafe fn strings(&mut self) -> Vec<*const c_char> {
        let mut list = vec![];
        while list.last().is_none_or(|string: &*const c_char| !string.is_null()) {
            // SAFETY: no null has come yet.
            list.push(unsafe { self.next() });
        }
        list
    }
}

/// # Safety
/// As the C library's `execl`.
pub(super) unsafe extern "C" fn vexecl(path: *const c_char, list: &mut Addresses) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { execv(path, list.strings().as_ptr()) }
}

/// # Safety
/// As the C library's `execlp`.
pub(super) unsafe extern "C" fn vexeclp(name: *const c_char, list: &mut Addresses) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { execvp(name, list.strings().as_ptr()) }
}

/// # Safety
/// As the C library's `execle`.
pub(super) unsafe extern "C" fn vexecle(path: *const c_char, list: &mut Addresses) -> c_int {
    // SAFETY: the caller's promise: the environment comes behind the null.
    unsafe {
        let strings = list.strings();
        execve(path, strings.as_ptr(), list.next().cast())
    }
}
