//! `ordered(n)`: iterations of a nest of loops wait for others.
//!
//! The threads divide the outermost loop. For each of its iterations there is a number: how many of the inner iterations up to
//! the last one that was posted. Within one iteration of the outermost loop they are posted in order.

use super::common::{self, Use};
use super::constructs;
use super::context;
use super::loops::{self, From64};
use super::schedule::{Kind, Loop, Schedule};
use super::share::Share;
use super::sync::{self, Name};
use super::work_sharing;
use gondwana_page::to_usize;
use libc::{c_long, c_uint, c_ulonglong, c_void};
use std::arch::naked_asm;
use std::ptr::null_mut;

/// What the threads have in common in such a nest, in shared memory. The counts of the loops follow, then the numbers of the
/// outermost iterations. All but the counts is used with the lock held.
#[repr(C)]
struct Nest {
    lock: Name,
    changed: Name,
    /// Threads that wait.
    idle: u64,
    /// How many loops.
    depth: u64,
}

impl Nest {
    /// The bytes of a nest with such loops.
    fn bytes(counts: &[u64]) -> usize {
        let numbers = counts.len() as u64 + counts[0];
        size_of::<Self>().saturating_add(to_usize(numbers).saturating_mul(size_of::<u64>()))
    }

    /// The count of a loop, or beyond them the number of an outermost iteration.
    ///
    /// # Safety
    /// The nest has so many.
    unsafe fn word(nest: *mut Self, index: u64) -> *mut u64 {
        // SAFETY: the caller's promise.
        unsafe { nest.add(1).cast::<u64>().add(to_usize(index)) }
    }

    /// The place of the number of an iteration, and how many inner iterations come up to it.
    ///
    /// # Safety
    /// `iteration` has a number for each loop.
    unsafe fn find(nest: *mut Self, iteration: impl Fn(u64) -> u64) -> (*mut u64, u64) {
        // SAFETY: the caller's promise; counts never change.
        unsafe {
            let depth = (*nest).depth;
            let inner = (1..depth).fold(0u64, |all, index| {
                all.wrapping_mul(*Self::word(nest, index)).wrapping_add(iteration(index))
            });
            (Self::word(nest, depth + iteration(0)), inner + 1)
        }
    }
}

/// The nest that the calling thread is in, if other threads are in it too.
fn present() -> Option<*mut Nest> {
    let nest = common::present().cast::<Nest>();
    (!nest.is_null() && context::get().threads() > 1).then_some(nest)
}

/// An iteration is posted.
///
/// # Safety
/// It has a number for each loop.
pub(super) unsafe fn post(iteration: impl Fn(u64) -> u64) {
    let Some(nest) = present() else { return };
    // SAFETY: the caller's promise; numbers are used with the lock held.
    unsafe {
        let (place, inner) = Nest::find(nest, iteration);
        sync::lock(&raw const (*nest).lock);
        *place = inner;
        if (*nest).idle > 0 {
            sync::wake(&raw const (*nest).changed);
        }
        sync::unlock(&raw const (*nest).lock);
    }
}

/// Waits until an iteration is posted.
///
/// # Safety
/// It has a number for each loop.
pub(super) unsafe fn wait(iteration: impl Fn(u64) -> u64) {
    let Some(nest) = present() else { return };
    // SAFETY: as in `post`.
    unsafe {
        let (place, inner) = Nest::find(nest, iteration);
        sync::lock(&raw const (*nest).lock);
        while place.read() < inner {
            (*nest).idle += 1;
            sync::wait(&raw const (*nest).changed, &raw const (*nest).lock);
            (*nest).idle -= 1;
        }
        sync::unlock(&raw const (*nest).lock);
    }
}

/// The calling thread enters a nest with the counts of its loops. Returns the memory that the threads have in common behind it.
pub(super) fn enter(counts: &[u64], extra: usize) -> *mut u8 {
    let bytes = Nest::bytes(counts).next_multiple_of(64);
    let all = common::enter(Use::Program, extra.saturating_add(bytes), 64, |all| {
        let nest = all.cast::<Nest>();
        // SAFETY: the memory has room for the nest with its counts.
        unsafe {
            (*nest).depth = counts.len() as u64;
            std::ptr::copy_nonoverlapping(counts.as_ptr(), Nest::word(nest, 0), counts.len());
        }
    });
    all.wrapping_add(bytes)
}

/// True if the calling thread is in a nest.
pub(super) fn is_inside() -> bool {
    present().is_some()
}

/// Begins a nest with the counts of its loops.
///
/// # Safety
/// As gcc passes it.
unsafe fn begin<T: From64>(
    depth: c_uint,
    counts: *const u64,
    schedule: Schedule,
    (from, to): (*mut T, *mut T),
    (reductions, memory): (*mut usize, *mut *mut c_void),
) -> bool {
    // SAFETY: the caller's promise.
    let counts = unsafe { std::slice::from_raw_parts(counts, depth as usize) };
    // Ordered: no node has iterations that come before those of its threads.
    work_sharing::enter(Share::of_loop(Loop::unsigned(true, 0, counts[0], 1), schedule, true));
    let extra = if memory.is_null() {
        0
    } else {
        // SAFETY: the caller's promise.
        unsafe { *memory as usize }.next_multiple_of(64)
    };
    // SAFETY: the caller's promise; the memory has room for what is written.
    unsafe {
        super::reduction::begin_construct(reductions);
        let behind = enter(counts, extra);
        if !memory.is_null() {
            *memory = behind.cast();
        }
        loops::next(from, to)
    }
}

/// Defines the functions that begin a nest over one type of numbers.
macro_rules! beginning {
    ($($type:ty: $start:ident $runtime:ident ($($kind:ident $name:ident)*);)*) => {$(
        /// # Safety
        /// Called by code that gcc has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $start(
            depth: c_uint, counts: *const u64, kind: c_long, chunk: $type,
            from: *mut $type, to: *mut $type, reductions: *mut usize, memory: *mut *mut c_void,
        ) -> bool {
            #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast, reason = "one of the types is signed")]
            let schedule = constructs::schedule(kind, chunk as u64);
            // SAFETY: forwards what gcc passed.
            unsafe { begin(depth, counts, schedule, (from, to), (reductions, memory)) }
        }

        /// # Safety
        /// Called by code that gcc has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $runtime(
            depth: c_uint, counts: *const u64, from: *mut $type, to: *mut $type,
        ) -> bool {
            let schedule = context::get().controls.schedule;
            // SAFETY: forwards what gcc passed.
            unsafe { begin(depth, counts, schedule, (from, to), (null_mut(), null_mut())) }
        }

        $(/// # Safety
        /// Called by code that gcc has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            depth: c_uint, counts: *const u64, chunk: $type, from: *mut $type, to: *mut $type,
        ) -> bool {
            #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast, reason = "one of the types is signed")]
            let schedule = Schedule { kind: Kind::$kind, chunk: chunk as u64, rising: true };
            // SAFETY: forwards what gcc passed.
            unsafe { begin(depth, counts, schedule, (from, to), (null_mut(), null_mut())) }
        })*
    )*};
}

beginning! {
    c_long: GOMP_loop_doacross_start GOMP_loop_doacross_runtime_start (
        Static GOMP_loop_doacross_static_start
        Dynamic GOMP_loop_doacross_dynamic_start
        Guided GOMP_loop_doacross_guided_start
    );
    c_ulonglong: GOMP_loop_ull_doacross_start GOMP_loop_ull_doacross_runtime_start (
        Static GOMP_loop_ull_doacross_static_start
        Dynamic GOMP_loop_ull_doacross_dynamic_start
        Guided GOMP_loop_ull_doacross_guided_start
    );
}

/// Defines the functions for one type of numbers; both have 64 bits.
macro_rules! meeting {
    ($($post:ident $wait:ident;)*) => {$(
        /// # Safety
        /// Called by code that gcc has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $post(iteration: *const u64) {
            // SAFETY: gcc passes a number for each loop.
            unsafe { post(|index| *iteration.add(to_usize(index))) };
        }

        /// Its arguments are as many numbers as there are loops: those in registers are put side by side, the others are where
        /// the caller has put them.
        ///
        /// # Safety
        /// Called by code that gcc has compiled.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $wait() {
            naked_asm!(
                "sub rsp, 56",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx",
                "mov [rsp + 32], r8",
                "mov [rsp + 40], r9",
                "mov rdi, rsp",
                "lea rsi, [rsp + 64]",
                "call {}",
                "add rsp, 56",
                "ret",
                sym wait_for,
            )
        }
    )*};
}

meeting! {
    GOMP_doacross_post GOMP_doacross_wait;
    GOMP_doacross_ull_post GOMP_doacross_ull_wait;
}

/// How many arguments are in registers.
const IN_REGISTERS: u64 = 6;

/// Waits for an iteration whose first numbers are in one place and the others in another.
unsafe extern "C" fn wait_for(first: *const u64, others: *const u64) {
    let at = |index: u64| match index.checked_sub(IN_REGISTERS) {
        // SAFETY: gcc passes a number for each loop.
        None => unsafe { *first.add(to_usize(index)) },
        // SAFETY: as above.
        Some(index) => unsafe { *others.add(to_usize(index)) },
    };
    // SAFETY: as above.
    unsafe { wait(at) };
}
