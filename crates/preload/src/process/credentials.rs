//! Users, groups and the root directory: threads of all nodes have the same.
//!
//! The kernel has users and groups for each thread. The C library changes those of its process by a signal of its own to all
//! threads, which each of them must be able to handle anywhere.

use super::calls::on_others;
use super::{common, in_order};
use crate::private_stack::uninterrupted;
use crate::pthread::cancel::handle_on_private_stacks;
use gondwana_node::{CREDENTIALS_SIGNAL, Caller};
use libc::{c_char, c_int, gid_t, size_t, uid_t};
use std::ffi::{CStr, CString};

/// The most groups of a user, as the kernel limits them.
const MOST_GROUPS: usize = 65536;

/// The arguments of a function.
type Words = [usize; 3];

/// Makes a call on this node and then on all others. Gives what the first has given, or -1.
fn change(name: &str, call: fn(Words) -> c_int, words: Words) -> c_int {
    let Some(node) = common() else { return make(&mut (call, words)) };
    in_order(node, || {
        let result = make(&mut (call, words));
        if result != 0 {
            return result;
        }
        let Err((at, error)) = on_others(node, (call, words), make) else { return 0 };
        let why = std::io::Error::from_raw_os_error(error);
        node.refuse(&format!("{name}() on node {at} ({why}): its threads go on as before"));
        crate::errno::set(error);
        -1
    })
}

/// Makes a call in this process. The C library waits on a variable on the stack for all threads.
fn make(&mut (call, words): &mut (fn(Words) -> c_int, Words)) -> c_int {
    uninterrupted(|| {
        handle_on_private_stacks(CREDENTIALS_SIGNAL);
        call(words)
    })
}

/// Calls a function with the address of bytes that all nodes can read. -1 if there is no memory.
fn with_common(bytes: &[u8], call: impl FnOnce(usize) -> c_int) -> c_int {
    let Some(node) = common() else { return call(bytes.as_ptr() as usize) };
    let Some(address) = node.allocate(bytes.len(), 16, Caller::NONE) else {
        crate::errno::set(libc::ENOMEM);
        return -1;
    };
    // SAFETY: the block is this long and nobody else's.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
    let result = call(address);
    node.free(address);
    result
}

/// A private copy of such bytes.
///
/// # Safety
/// They are from [`with_common`].
unsafe fn private_copy(address: usize, bytes: usize) -> Vec<u8> {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(address as *const u8, bytes) }.to_vec()
}

/// Defines functions whose arguments are numbers of users or groups.
macro_rules! of_numbers {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// # Safety
        /// Has no preconditions.
        #[unsafe(no_mangle)]
        #[allow(clippy::cast_possible_truncation, reason = "the words are such numbers")]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            fn call(words: Words) -> c_int {
                let mut words = words.into_iter();
                $(let $argument = words.next().unwrap_or(0) as $type;)*
                // SAFETY: touches no memory.
                unsafe { crate::real!($name: fn($($type),*) -> c_int)($($argument),*) }
            }
            let mut words = [0; 3];
            words.iter_mut().zip([$($argument as usize),*]).for_each(|(word, number)| *word = number);
            change(stringify!($name), call, words)
        }
    )*};
}

of_numbers! {
    setuid(user: uid_t);
    setgid(group: gid_t);
    seteuid(user: uid_t);
    setegid(group: gid_t);
    setreuid(real: uid_t, effective: uid_t);
    setregid(real: gid_t, effective: gid_t);
    setresuid(real: uid_t, effective: uid_t, saved: uid_t);
    setresgid(real: gid_t, effective: gid_t, saved: gid_t);
}

/// # Safety
/// As the C library's `setgroups`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn setgroups(count: size_t, groups: *const gid_t) -> c_int {
    if count > MOST_GROUPS {
        crate::errno::set(libc::EINVAL);
        return -1;
    }
    let known = if count == 0 {
        vec![]
    } else {
        // SAFETY: the caller passes so many.
        unsafe { std::slice::from_raw_parts(groups, count) }.to_vec()
    };
    set_groups("setgroups", &known)
}

fn set_groups(name: &str, groups: &[gid_t]) -> c_int {
    fn call([address, bytes, _]: Words) -> c_int {
        // SAFETY: passes as many groups as it says.
        unsafe {
            let bytes = private_copy(address, bytes);
            let groups: Vec<gid_t> =
                bytes.as_chunks().0.iter().map(|group| gid_t::from_ne_bytes(*group)).collect();
            crate::real!(setgroups: fn(size_t, *const gid_t) -> c_int)(groups.len(), groups.as_ptr())
        }
    }
    let bytes: Vec<u8> = groups.iter().flat_map(|group| group.to_ne_bytes()).collect();
    with_common(&bytes, |address| change(name, call, [address, bytes.len(), 0]))
}

/// # Safety
/// As the C library's `initgroups`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn initgroups(user: *const c_char, group: gid_t) -> c_int {
    // SAFETY: the caller passes a string.
    let user = unsafe { CStr::from_ptr(user) }.to_owned();
    let mut groups = vec![0; MOST_GROUPS];
    let mut count = c_int::try_from(groups.len()).expect("a small number");
    // SAFETY: there is room for so many.
    if unsafe { libc::getgrouplist(user.as_ptr(), group, groups.as_mut_ptr(), &mut count) } < 0 {
        crate::errno::set(libc::EINVAL);
        return -1;
    }
    groups.truncate(usize::try_from(count).unwrap_or(0));
    set_groups("initgroups", &groups)
}

/// # Safety
/// As the C library's `chroot`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn chroot(path: *const c_char) -> c_int {
    fn call([address, bytes, _]: Words) -> c_int {
        // SAFETY: passes a string.
        unsafe {
            let path = CString::new(private_copy(address, bytes)).unwrap_or_default();
            crate::real!(chroot: fn(*const c_char) -> c_int)(path.as_ptr())
        }
    }
    // SAFETY: the caller passes a string.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes().to_vec();
    with_common(&path, |address| change("chroot", call, [address, path.len(), 0]))
}
