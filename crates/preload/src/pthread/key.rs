//! Thread-specific data.
//!
//! Keys are the same on all nodes: node 0 allocates them. Values belong to one thread, and stay with it.

use crate::private_stack::uninterrupted;
use gondwana_elf::{is_runtime_library, loaded};
use gondwana_locks::lock;
use gondwana_node::{Node, Thread};
use libc::{c_int, c_void, pthread_key_t};
use std::collections::BTreeSet;
use std::sync::Mutex;

/// How often destructors are repeated for values that destructors set (`PTHREAD_DESTRUCTOR_ITERATIONS`).
const ROUNDS: usize = 4;

/// The first key of the run; the C library's own keys are smaller.
const FIRST: u32 = 1 << 16;

/// Keys that this node knows to be deleted. No key is ever made twice in a run.
static DELETED: Mutex<BTreeSet<pthread_key_t>> = Mutex::new(BTreeSet::new());

type Destructor = extern "C-unwind" fn(*mut c_void);

/// The keys of the language runtimes are their own, like all their data. Those of the C++ library can be part of objects
/// of the program, which threads of all nodes use: `std::pmr::synchronized_pool_resource`.
fn of_runtime(destructor: Destructor) -> bool {
    // SAFETY: the object of the destructor is in use.
    let object = unsafe { loaded::at(destructor as usize) };
    object.is_some_and(|object| {
        is_runtime_library(object.path) && !object.file_name().starts_with(b"libstdc++.so.")
    })
}

/// # Safety
/// As the C library's `pthread_key_create`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn pthread_key_create(
    key: *mut pthread_key_t,
    destructor: Option<Destructor>,
) -> c_int {
    let Some(node) = Node::current().filter(|_| !destructor.is_some_and(of_runtime)) else {
        // SAFETY: forwards the caller's arguments.
        return unsafe {
            crate::real!(pthread_key_create: fn(*mut pthread_key_t, Option<Destructor>) -> c_int)(
                key, destructor,
            )
        };
    };
    match node.key_create(destructor.map_or(0, |destructor| destructor as usize)) {
        Ok(index) => {
            // SAFETY: the caller passes a place for the key.
            unsafe { *key = FIRST + index };
            0
        }
        Err(error) => error,
    }
}

/// # Safety
/// As the C library's `pthread_key_delete`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn pthread_key_delete(key: pthread_key_t) -> c_int {
    match Node::current() {
        Some(node) if key >= FIRST => {
            let result = node.key_delete(key - FIRST);
            if result.is_ok() {
                uninterrupted(|| lock(&DELETED).insert(key));
            }
            super::code(result)
        }
        // SAFETY: forwards the caller's argument.
        _ => unsafe { crate::real!(pthread_key_delete: fn(pthread_key_t) -> c_int)(key) },
    }
}

/// # Safety
/// As the C library's `pthread_setspecific`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn pthread_setspecific(key: pthread_key_t, value: *const c_void) -> c_int {
    if key < FIRST {
        // SAFETY: forwards the caller's arguments.
        return unsafe {
            crate::real!(pthread_setspecific: fn(pthread_key_t, *const c_void) -> c_int)(key, value)
        };
    }
    let Some(node) = Node::current() else { return libc::EINVAL };
    // A signal handler that read a value meanwhile would find it missing.
    uninterrupted(|| {
        if lock(&DELETED).contains(&key) {
            return libc::EINVAL;
        }
        let mut values = Thread::current(node).specifics.borrow_mut();
        if value.is_null() {
            values.remove(&key)
        } else {
            values.insert(key, value as usize)
        };
        0
    })
}

/// # Safety
/// As the C library's `pthread_getspecific`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn pthread_getspecific(key: pthread_key_t) -> *mut c_void {
    if key < FIRST {
        // SAFETY: forwards the caller's argument.
        return unsafe { crate::real!(pthread_getspecific: fn(pthread_key_t) -> *mut c_void)(key) };
    }
    let Some(node) = Node::current() else { return std::ptr::null_mut() };
    let values = Thread::current(node).specifics.borrow();
    values.get(&key).map_or(std::ptr::null_mut(), |&value| value as *mut c_void)
}

/// Runs the destructors of the calling thread's values.
pub(super) fn run_destructors(node: &'static Node) {
    for _ in 0..ROUNDS {
        let values = Thread::current(node).specifics.take();
        if values.is_empty() {
            break;
        }
        for (key, value) in values {
            if let Some(destructor) = node.key_destructor(key - FIRST) {
                // SAFETY: the program gave this address as the key's destructor, and it is the same on all nodes.
                let destructor: Destructor = unsafe { std::mem::transmute(destructor) };
                destructor(value as *mut c_void);
            }
        }
    }
}
