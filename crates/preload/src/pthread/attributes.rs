//! What a thread is like (`pthread_getattr_np`), on whatever node it is.

use super::identity::native;
use crate::accesses;
use crate::io::Buffer;
use crate::io::descriptors::There;
use crate::private_stack::uninterrupted;
use gondwana_locks::lock;
use gondwana_node::{Node, Thread};
use gondwana_page::PAGE_SIZE;
use gondwana_sys::Argument;
use libc::{c_int, c_void, cpu_set_t, pthread_attr_t, pthread_t, sched_param, size_t};
use std::collections::BTreeMap;
use std::mem::{MaybeUninit, zeroed};
use std::ops::Range;
use std::sync::Mutex;

unsafe extern "C" {
    fn pthread_attr_getguardsize(attributes: *const pthread_attr_t, size: *mut size_t) -> c_int;
    fn pthread_attr_setschedparam(attributes: *mut pthread_attr_t, parameters: *const sched_param) -> c_int;
    fn pthread_attr_getschedparam(attributes: *const pthread_attr_t, parameters: *mut sched_param) -> c_int;
    fn pthread_attr_setschedpolicy(attributes: *mut pthread_attr_t, policy: c_int) -> c_int;
    fn pthread_attr_getschedpolicy(attributes: *const pthread_attr_t, policy: *mut c_int) -> c_int;
    fn pthread_attr_setaffinity_np(
        attributes: *mut pthread_attr_t,
        size: size_t,
        set: *const cpu_set_t,
    ) -> c_int;
    fn pthread_attr_getaffinity_np(
        attributes: *const pthread_attr_t,
        size: size_t,
        set: *mut cpu_set_t,
    ) -> c_int;
}

/// The stacks of the threads of this node, by the numbers of the threads.
static STACKS: Mutex<BTreeMap<u64, Range<usize>>> = Mutex::new(BTreeMap::new());

/// A thread begins on a stack in the span.
pub(crate) fn begin(thread: u64, stack: Range<usize>) {
    uninterrupted(|| lock(&STACKS).insert(thread, stack));
}

/// A thread ends.
pub(super) fn end(thread: u64) {
    uninterrupted(|| lock(&STACKS).remove(&thread));
}

/// What travels of a thread's attributes, which have pointers to memory of their process.
#[repr(C)]
#[derive(Clone, Copy)]
struct Told {
    stack: usize,
    length: usize,
    guard: usize,
    policy: c_int,
    parameters: sched_param,
    processors: cpu_set_t,
}

impl Told {
    fn new() -> Box<Self> {
        // SAFETY: all zero is valid.
        Box::new(unsafe { zeroed() })
    }

    /// That of a thread of this node, by its number and the C library's name for it.
    ///
    /// # Errors
    /// An error number.
    fn of(thread: u64, native: pthread_t) -> Result<Box<Self>, c_int> {
        let mut attributes = Box::new(MaybeUninit::<pthread_attr_t>::uninit());
        let mut told = Self::new();
        // SAFETY: the attributes are used once they are filled in; all memory is private.
        unsafe {
            let failed = crate::real!(pthread_getattr_np: fn(pthread_t, *mut pthread_attr_t) -> c_int)(
                native,
                attributes.as_mut_ptr(),
            );
            if failed != 0 {
                return Err(failed);
            }
            let attributes = attributes.as_mut_ptr();
            let mut stack = std::ptr::null_mut();
            libc::pthread_attr_getstack(attributes, &raw mut stack, &raw mut told.length);
            told.stack = stack as usize;
            pthread_attr_getguardsize(attributes, &raw mut told.guard);
            pthread_attr_getschedpolicy(attributes, &raw mut told.policy);
            pthread_attr_getschedparam(attributes, &raw mut told.parameters);
            pthread_attr_getaffinity_np(attributes, size_of::<cpu_set_t>(), &raw mut told.processors);
            libc::pthread_attr_destroy(attributes);
        }
        if let Some(stack) = uninterrupted(|| lock(&STACKS).get(&thread).cloned()) {
            // The C library knows of no guard below a stack that it has not made.
            (told.stack, told.length, told.guard) = (stack.start, stack.len(), PAGE_SIZE);
        }
        Ok(told)
    }

    /// The attributes of a thread that can be joined. Gives 0 or an error number.
    ///
    /// # Safety
    /// There is a place for them.
    unsafe fn put(&self, attributes: *mut pthread_attr_t) -> c_int {
        // SAFETY: the caller's promise; the attributes are initialised first.
        unsafe {
            [
                libc::pthread_attr_init(attributes),
                libc::pthread_attr_setstack(attributes, self.stack as *mut c_void, self.length),
                libc::pthread_attr_setguardsize(attributes, self.guard),
                pthread_attr_setschedpolicy(attributes, self.policy),
                pthread_attr_setschedparam(attributes, &raw const self.parameters),
                pthread_attr_setaffinity_np(attributes, size_of::<cpu_set_t>(), &raw const self.processors),
            ]
            .into_iter()
            .find(|&failed| failed != 0)
            .unwrap_or(0)
        }
    }
}

/// For other nodes: what a thread of this one is like; 0 or an error number.
///
/// # Safety
/// There is a place for the result.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __gondwana_thread_attributes(thread: u64, result: *mut Told) -> c_int {
    match native(thread).and_then(|native| Told::of(thread, native)) {
        // SAFETY: the caller's promise.
        Ok(told) if unsafe { accesses::store(&*told, result) } => 0,
        Ok(_) => libc::EFAULT,
        Err(error) => error,
    }
}

/// # Safety
/// As the C library's function of this name. The stack is that in the span.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn pthread_getattr_np(
    thread: pthread_t,
    attributes: *mut pthread_attr_t,
) -> c_int {
    let Some(node) = Node::current() else {
        // SAFETY: forwards the caller's arguments.
        return unsafe {
            crate::real!(pthread_getattr_np: fn(pthread_t, *mut pthread_attr_t) -> c_int)(thread, attributes)
        };
    };
    let owner = node.place_of_thread(thread).filter(|&owner| owner != node.number().index());
    let told = match owner.filter(|_| thread != Thread::current(node).id) {
        Some(owner) => {
            let mut told = Told::new();
            let place = &raw mut *told;
            let failed: c_int = There { node, owner }.call(
                "__gondwana_thread_attributes",
                &[i64::from_ne_bytes(thread.to_ne_bytes()), place.word()],
                &[Buffer::result(place)],
            );
            if failed == 0 { Ok(told) } else { Err(failed) }
        }
        None => native(thread).and_then(|native| Told::of(thread, native)),
    };
    match told {
        // SAFETY: the caller passes a place for them.
        Ok(told) => unsafe { told.put(attributes) },
        Err(error) => error,
    }
}
