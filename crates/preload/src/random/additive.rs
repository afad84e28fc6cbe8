//! `random`, and `rand`, which is the same.

use super::with_state;
use gondwana_node::Node;
use libc::{c_char, c_int, c_long, c_uint, size_t};
use std::ptr::null_mut;

/// The C library's `struct random_data`.
#[repr(C)]
struct RandomData {
    front: *mut i32,
    rear: *mut i32,
    /// The numbers of the present buffer, behind its first word; null before the first use.
    state: *mut i32,
    kind: c_int,
    degree: c_int,
    separation: c_int,
    end: *mut i32,
}

/// Bytes of the C library's own buffer.
const BUFFER_BYTES: usize = 128;

/// The seed of a program that gives none.
const FIRST_SEED: c_uint = 1;

unsafe extern "C" {
    fn random_r(data: *mut RandomData, result: *mut i32) -> c_int;
    fn srandom_r(seed: c_uint, data: *mut RandomData) -> c_int;
    fn initstate_r(seed: c_uint, buffer: *mut c_char, bytes: size_t, data: *mut RandomData) -> c_int;
    fn setstate_r(buffer: *mut c_char, data: *mut RandomData) -> c_int;
}

/// The state of `random`.
#[repr(C)]
pub(super) struct Additive {
    data: RandomData,
    /// The buffer that a program has which gives none.
    buffer: [u64; BUFFER_BYTES / size_of::<u64>()],
}

impl Additive {
    /// The buffer in use, as the program knows it.
    fn present(&self) -> *mut c_char {
        self.data.state.wrapping_sub(1).cast()
    }

    /// The C library's own `random` goes on with the buffer in use.
    ///
    /// # Safety
    /// Nobody else uses the state, and nobody will.
    pub(super) unsafe fn become_native(&mut self) {
        if self.data.state.is_null() {
            return;
        }
        let buffer = self.present();
        // SAFETY: the buffer is valid. The first call writes the generator's position into it.
        unsafe {
            setstate_r(buffer, &raw mut self.data);
            crate::real!(setstate: fn(*mut c_char) -> *mut c_char)(buffer);
        }
    }
}

/// Calls a function with the shared state, if this process has it.
#[inline]
fn with_additive<R>(call: impl FnOnce(&mut Additive) -> R) -> Option<R> {
    with_state(|_, state| {
        // SAFETY: the state is this thread's alone for now.
        let additive = unsafe { &mut (*state).additive };
        if additive.data.state.is_null() {
            let buffer = (&raw mut additive.buffer).cast();
            // SAFETY: all zero is data without a buffer, as the function takes it.
            unsafe { initstate_r(FIRST_SEED, buffer, BUFFER_BYTES, &raw mut additive.data) };
        }
        call(additive)
    })
}

/// The next number.
#[inline]
fn draw() -> Option<i32> {
    with_additive(|additive| {
        let mut number = 0;
        // SAFETY: initialised data, and a place for the result.
        unsafe { random_r(&raw mut additive.data, &raw mut number) };
        number
    })
}

fn seed(seed: c_uint) -> Option<()> {
    with_additive(|additive| {
        // SAFETY: initialised data.
        unsafe { srandom_r(seed, &raw mut additive.data) };
    })
}

/// Has another buffer by `change`; returns the one before, or null if that fails.
fn replace(
    call: &str,
    buffer: *mut c_char,
    change: impl FnOnce(*mut RandomData) -> c_int,
) -> Option<*mut c_char> {
    let elsewhere = |node: &Node| !buffer.is_null() && !node.is_shared(buffer as usize);
    with_additive(|additive| {
        if Node::current().is_some_and(elsewhere) {
            crate::report::fatal(&format!(
                "{call}() with a buffer that nodes do not share cannot run on several nodes: use memory of malloc() or \
                 a global variable, or run it with -n 1"
            ));
        }
        let before = additive.present();
        if change(&raw mut additive.data) == 0 { before } else { null_mut() }
    })
}

shared_or_native! {
    fn rand() -> c_int = draw();
    fn random() -> c_long = draw().map(c_long::from);
    fn srand(number: c_uint) -> () = seed(number);
    fn srandom(number: c_uint) -> () = seed(number);
    fn initstate(number: c_uint, buffer: *mut c_char, bytes: size_t) -> *mut c_char =
        // SAFETY: the caller's buffer has so many bytes.
        replace("initstate", buffer, |data| unsafe { initstate_r(number, buffer, bytes, data) });
    fn setstate(buffer: *mut c_char) -> *mut c_char =
        // SAFETY: the caller's buffer is one of `initstate`.
        replace("setstate", buffer, |data| unsafe { setstate_r(buffer, data) });
}
