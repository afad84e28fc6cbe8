//! Thread-specific data.
//!
//! Keys are the same on all nodes: node 0 allocates them. Values belong to one thread, and stay with it, also in a process that it
//! forks. That is no node: keys that it makes are the C library's.

use crate::private_stack::uninterrupted;
use gondwana_elf::{is_runtime_library, loaded};
use gondwana_locks::lock;
use gondwana_node::{Node, Thread};
use libc::{c_int, c_void, pthread_key_t};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::ManuallyDrop;
use std::sync::{Mutex, OnceLock};

/// How often destructors are repeated for values that destructors set (`PTHREAD_DESTRUCTOR_ITERATIONS`).
const ROUNDS: usize = 4;

/// How often a thread of a forked process tries to take a lock.
const TRIES: usize = 1000;

/// The first key of the run; the C library's own keys are smaller.
const FIRST: u32 = 1 << 16;

/// Keys that this node knows to be deleted. No key is ever made twice in a run.
static DELETED: Mutex<BTreeSet<pthread_key_t>> = Mutex::new(BTreeSet::new());

/// The destructors of the keys that this node has used, for threads of a forked process, which cannot ask node 0.
static DESTRUCTORS: Mutex<BTreeMap<pthread_key_t, Option<Destructor>>> = Mutex::new(BTreeMap::new());

thread_local! {
    /// The calling thread's values.
    static VALUES: ManuallyDrop<RefCell<BTreeMap<pthread_key_t, usize>>> =
        const { ManuallyDrop::new(RefCell::new(BTreeMap::new())) };
}

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
        // A forked process never makes the key again.
        None if key >= FIRST => 0,
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
    let node = Node::current();
    let is_forked = node.is_none();
    if let Some(node) = node {
        // The end of a thread that a library has started is noticed from now on.
        let _ = Thread::current(node);
        if !value.is_null() && !VALUES.with(|values| values.borrow().contains_key(&key)) {
            learn_destructor(node, key);
        }
    }
    // A signal handler that read a value meanwhile would find it missing.
    uninterrupted(|| {
        // In a forked process nobody may be left to unlock.
        if !is_forked && lock(&DELETED).contains(&key) {
            return libc::EINVAL;
        }
        VALUES.with(|values| match value.is_null() {
            true => values.borrow_mut().remove(&key),
            false => values.borrow_mut().insert(key, value as usize),
        });
        if is_forked { destroy_at_end() } else { 0 }
    })
}

fn learn_destructor(node: &'static Node, key: pthread_key_t) {
    if !uninterrupted(move || lock(&DESTRUCTORS).contains_key(&key)) {
        let destructor = destructor_of(node, key);
        uninterrupted(move || lock(&DESTRUCTORS).insert(key, destructor));
    }
}

fn destructor_of(node: &'static Node, key: pthread_key_t) -> Option<Destructor> {
    let destructor = node.key_destructor(key - FIRST)?;
    // SAFETY: the program gave this address as the key's destructor, and it is the same on all nodes.
    Some(unsafe { std::mem::transmute::<usize, Destructor>(destructor) })
}

/// Has the C library call the destructors at the end of a forked process's thread.
fn destroy_at_end() -> c_int {
    static KEY: OnceLock<pthread_key_t> = OnceLock::new();
    extern "C-unwind" fn end(_: *mut c_void) {
        destroy(|key| {
            // Who had the lock when the process was forked is not there to unlock it; others have it for a moment.
            let mut tries = (0..TRIES).map(|_| {
                let known = DESTRUCTORS.try_lock().ok();
                if known.is_none() {
                    std::thread::yield_now();
                }
                known
            });
            tries.find_map(|known| known)?.get(&key).copied().flatten()
        });
    }
    let key = *KEY.get_or_init(|| {
        let mut key = 0;
        // Without a key, setting its value fails, which is the caller's answer.
        // SAFETY: a place for the key, and a function of the type.
        unsafe {
            crate::real!(pthread_key_create: fn(*mut pthread_key_t, Destructor) -> c_int)(&raw mut key, end);
        }
        key
    });
    // SAFETY: the value is not null, and nobody reads it.
    unsafe { crate::real!(pthread_setspecific: fn(pthread_key_t, usize) -> c_int)(key, 1) }
}

/// # Safety
/// As the C library's `pthread_getspecific`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn pthread_getspecific(key: pthread_key_t) -> *mut c_void {
    if key < FIRST {
        // SAFETY: forwards the caller's argument.
        return unsafe { crate::real!(pthread_getspecific: fn(pthread_key_t) -> *mut c_void)(key) };
    }
    let value = VALUES.with(|values| values.borrow().get(&key).copied());
    value.map_or(std::ptr::null_mut(), |value| value as *mut c_void)
}

/// Runs the destructors of the calling thread's values.
pub(super) fn run_destructors(node: &'static Node) {
    destroy(|key| destructor_of(node, key));
}

/// Each value is there until it is its turn: destructors use others.
fn destroy(destructor_of: impl Fn(pthread_key_t) -> Option<Destructor>) {
    for _ in 0..ROUNDS {
        let mut from = 0;
        let next = |from| VALUES.with(|values| values.borrow().range(from..).next().map(|(key, _)| *key));
        while let Some(key) = next(from) {
            let value = VALUES.with(|values| values.borrow_mut().remove(&key));
            if let (Some(destructor), Some(value)) = (destructor_of(key), value) {
                destructor(value as *mut c_void);
            }
            from = key + 1;
        }
        if next(0).is_none() {
            break;
        }
    }
}
