//! Starts other programs, with arguments from shared memory, and the limits that this program was started with.

use super::children;
use super::descriptors::{Place, Reopened, believed, can_open_again, for_child, is_here, place};
use super::exec::Strings;
use crate::private_stack::on_private_stack;
use libc::{c_char, c_int, pid_t, posix_spawn_file_actions_t, posix_spawnattr_t};
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;

/// Private copies of strings.
struct Strung {
    _texts: Vec<CString>,
    list: Vec<*const c_char>,
}

impl Strung {
    /// A copy of a list.
    ///
    /// # Safety
    /// The list is null or ends with a null.
    unsafe fn copy(strings: Strings) -> Self {
        let mut texts = vec![];
        // SAFETY: the caller's promise.
        unsafe {
            while !strings.is_null() && !(*strings.add(texts.len())).is_null() {
                texts.push(CStr::from_ptr(*strings.add(texts.len())).to_owned());
            }
        }
        let list = texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
        Self { _texts: texts, list }
    }
}

/// The program of a name without a slash, searched for in `PATH`.
///
/// # Errors
/// `ENOENT`, or `EACCES` if there is one that may not be executed.
fn search(name: &CStr) -> Result<CString, c_int> {
    let folders = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut error = libc::ENOENT;
    for folder in folders.as_encoded_bytes().split(|&byte| byte == b':').filter(|_| !name.is_empty()) {
        let separator: &[u8] = if folder.is_empty() { b"" } else { b"/" };
        let path = CString::new([folder, separator, name.to_bytes()].concat()).expect("texts without NUL");
        // SAFETY: strings, and place for what the kernel fills in.
        let (found, executable) = unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            (
                libc::stat(path.as_ptr(), &raw mut status) == 0
                    && status.st_mode & libc::S_IFMT == libc::S_IFREG,
                libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::X_OK, libc::AT_EACCESS) == 0,
            )
        };
        if found && executable {
            return Ok(path);
        }
        error = if found { libc::EACCES } else { error };
    }
    Err(error)
}

type Spawn = unsafe extern "C" fn(
    *mut pid_t,
    *const c_char,
    *const posix_spawn_file_actions_t,
    *const posix_spawnattr_t,
    Strings,
    Strings,
) -> c_int;

/// Starts a program. Until `execve`, the child shares this process's memory but cannot fetch pages from other nodes:
/// all memory that it reads is private, including the stack.
///
/// # Safety
/// The arguments are those of `posix_spawn`.
unsafe fn spawn(
    child: *mut pid_t,
    path: &CStr,
    actions: *const posix_spawn_file_actions_t,
    attributes: *const posix_spawnattr_t,
    lists: [Strings; 2],
) -> c_int {
    let real: Spawn = crate::real!(posix_spawn: fn(
        *mut pid_t, *const c_char, *const posix_spawn_file_actions_t, *const posix_spawnattr_t, Strings, Strings
    ) -> c_int);
    // SAFETY: null or what the caller promises. What file actions point to was allocated by the C library, privately.
    let (actions, attributes) = unsafe { (copy_of(actions), copy_of(attributes)) };
    // SAFETY: the caller's promise.
    let [arguments, environment] = lists.map(|list| unsafe { Strung::copy(list) });
    let mut number = Box::new(0);
    let mut error = 0;
    children::begin();
    let reopened = Reopened::for_program();
    for_child(|| {
        on_private_stack(&mut || {
            // SAFETY: copies of valid arguments, which live until the function returns.
            error = unsafe {
                real(
                    &raw mut *number,
                    path.as_ptr(),
                    pointer_to(&actions),
                    pointer_to(&attributes),
                    arguments.list.as_ptr(),
                    environment.list.as_ptr(),
                )
            };
        });
    });
    drop(reopened);
    if error == 0 && !child.is_null() {
        // SAFETY: the caller passes null or a place for the number.
        unsafe { *child = *number };
    }
    error
}

/// A private copy of a structure, if there is one.
///
/// # Safety
/// The pointer is null or valid.
unsafe fn copy_of<T>(original: *const T) -> Option<Box<MaybeUninit<T>>> {
    // SAFETY: the caller's promise; the copy is as initialised as the original.
    (!original.is_null()).then(|| Box::new(unsafe { original.cast::<MaybeUninit<T>>().read() }))
}

fn pointer_to<T>(copy: &Option<Box<MaybeUninit<T>>>) -> *const T {
    copy.as_ref().map_or(std::ptr::null(), |copy| copy.as_ptr())
}

/// # Safety
/// As the C library's `posix_spawn`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn posix_spawn(
    child: *mut pid_t,
    path: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attributes: *const posix_spawnattr_t,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    // SAFETY: the caller passes a string and what `posix_spawn` takes.
    unsafe {
        let path = CStr::from_ptr(path).to_owned();
        spawn(child, &path, actions, attributes, [arguments, environment])
    }
}

/// # Safety
/// As the C library's `posix_spawnp`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn posix_spawnp(
    child: *mut pid_t,
    name: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attributes: *const posix_spawnattr_t,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    // SAFETY: the caller passes a string and what `posix_spawn` takes.
    unsafe {
        let name = CStr::from_ptr(name);
        // The C library has the child search, which reads the program's environment, perhaps in shared memory.
        let path = if name.to_bytes().contains(&b'/') { Ok(name.to_owned()) } else { search(name) };
        match path {
            Ok(path) => spawn(child, &path, actions, attributes, [arguments, environment]),
            Err(error) => error,
        }
    }
}

/// # Safety
/// As the C library's `posix_spawn_file_actions_adddup2`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn posix_spawn_file_actions_adddup2(
    actions: *mut posix_spawn_file_actions_t,
    fd: c_int,
    new: c_int,
) -> c_int {
    const NAME: &str = "posix_spawn_file_actions_adddup2";
    if let Place::There(there) = place(&[fd], NAME)
        && !can_open_again(there, fd)
        && !is_here(fd, NAME)
    {
        return libc::EBADF;
    }
    // SAFETY: forwards the caller's arguments.
    unsafe {
        crate::real!(posix_spawn_file_actions_adddup2: fn(*mut posix_spawn_file_actions_t, c_int, c_int) -> c_int)(
            actions, fd, new,
        )
    }
}

/// # Safety
/// As the C library's `system`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn system(command: *const c_char) -> c_int {
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
    // The child runs in this process's memory until the shell begins.
    let _reopened = Reopened::for_program();
    let mut status = 0;
    on_private_stack(&mut || status = real(private.as_ptr()));
    status
}
