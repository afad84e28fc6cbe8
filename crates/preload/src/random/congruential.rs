//! `drand48` and its relatives.
//!
//! Functions that draw from the caller's state (`erand48`, `nrand48`, `jrand48`) are the C library's: they need only
//! the two parameters of the generator, which each process has. Parameters that `lcong48` sets go to all nodes.

use super::with_state;
use gondwana_node::{Node, ProcessChange};
use libc::{c_double, c_int, c_long, c_ushort};

/// The C library's `struct drand48_data`.
#[repr(C)]
struct Drand48Data {
    state: [c_ushort; 3],
    old_state: [c_ushort; 3],
    addend: c_ushort,
    initialised: c_ushort,
    multiplier: u64,
}

unsafe extern "C" {
    fn drand48_r(data: *mut Drand48Data, result: *mut c_double) -> c_int;
    fn lrand48_r(data: *mut Drand48Data, result: *mut c_long) -> c_int;
    fn mrand48_r(data: *mut Drand48Data, result: *mut c_long) -> c_int;
    fn srand48_r(seed: c_long, data: *mut Drand48Data) -> c_int;
    fn seed48_r(state: *const c_ushort, data: *mut Drand48Data) -> c_int;
    fn lcong48_r(parameters: *const c_ushort, data: *mut Drand48Data) -> c_int;
}

/// The state of `drand48`.
#[repr(C)]
pub(super) struct Congruential {
    data: Drand48Data,
    /// Those that nodes have for callers' states; zero for the usual ones.
    parameters: Parameters,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
struct Parameters {
    multiplier: u64,
    addend: c_ushort,
}

/// The parameters that the C library begins with, and that `srand48` and `seed48` restore.
const USUAL: Parameters = Parameters { multiplier: 0x5_deec_e66d, addend: 0xb };

/// The three words of a number of 48 bits, the lowest first.
fn words(number: u64) -> [c_ushort; 3] {
    let [a, b, c, d, e, f, ..] = number.to_le_bytes();
    [[a, b], [c, d], [e, f]].map(c_ushort::from_le_bytes)
}

/// The C library's own generator has this state and these parameters.
fn set_native(state: [c_ushort; 3], Parameters { multiplier, addend }: Parameters) {
    let ([x, y, z], [a, b, c]) = (state, words(multiplier));
    let mut all = [x, y, z, a, b, c, addend];
    // SAFETY: the function reads seven words.
    unsafe { crate::real!(lcong48: fn(*mut c_ushort))(all.as_mut_ptr()) };
}

/// Callers' states have other parameters from now on in this process; 0.
pub(crate) fn set_parameters_here(multiplier: u64, addend: u16) -> c_int {
    set_native([0; 3], Parameters { multiplier, addend });
    0
}

impl Congruential {
    /// The C library's own `drand48` goes on with the state.
    pub(super) fn become_native(&self) {
        let Drand48Data { state, addend, multiplier, initialised, .. } = self.data;
        if initialised != 0 {
            set_native(state, Parameters { multiplier, addend });
        }
    }

    /// After a change of the state: if the parameters have changed, all nodes get them.
    fn publish(&mut self, node: &'static Node) {
        let now = Parameters { multiplier: self.data.multiplier, addend: self.data.addend };
        let known = if self.parameters.multiplier == 0 && self.parameters.addend == 0 {
            USUAL
        } else {
            self.parameters
        };
        if now == known {
            return;
        }
        let Parameters { multiplier, addend } = now;
        set_parameters_here(multiplier, addend);
        super::done(node.change_elsewhere(ProcessChange::Congruential { multiplier, addend }));
        self.parameters = now;
    }
}

/// The number that `call` draws from the shared state, if this process has it.
#[inline]
fn draw<N: Default>(call: unsafe extern "C" fn(*mut Drand48Data, *mut N) -> c_int) -> Option<N> {
    with_state(|_, state| {
        let mut number = N::default();
        // SAFETY: the state is this thread's alone for now; there is a place for the result.
        unsafe { call(&raw mut (*state).congruential.data, &raw mut number) };
        number
    })
}

/// Changes the shared state, if this process has it. Returns where the previous one is kept.
fn change(call: impl FnOnce(*mut Drand48Data)) -> Option<*mut c_ushort> {
    with_state(|node, state| {
        // SAFETY: the state is this thread's alone for now.
        let congruential = unsafe { &mut (*state).congruential };
        call(&raw mut congruential.data);
        congruential.publish(node);
        (&raw mut congruential.data.old_state).cast()
    })
}

shared_or_native! {
    fn drand48() -> c_double = draw(drand48_r);
    fn lrand48() -> c_long = draw(lrand48_r);
    fn mrand48() -> c_long = draw(mrand48_r);
    // SAFETY: the data are valid.
    fn srand48(seed: c_long) -> () = change(|data| _ = unsafe { srand48_r(seed, data) }).map(drop);
    fn seed48(words: *mut c_ushort) -> *mut c_ushort =
        // SAFETY: the data are valid, and the caller passes three words.
        change(|data| _ = unsafe { seed48_r(words, data) });
    fn lcong48(words: *mut c_ushort) -> () =
        // SAFETY: the data are valid, and the caller passes seven words.
        change(|data| _ = unsafe { lcong48_r(words, data) }).map(drop);
}
