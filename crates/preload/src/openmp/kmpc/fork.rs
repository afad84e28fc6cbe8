//! Regions: the function of a region gets the addresses of two numbers of its thread, and what it shares.

use super::{Place, teams};
use crate::numbers::low_half;
use crate::openmp::{context, region, sync};
use crate::pthread::inherited;
use libc::{c_int, c_void};
use std::arch::naked_asm;
use std::cell::Cell;

/// The outlined function of a region, of any number of arguments.
type Microtask = usize;

/// How many arguments an announcement carries. What more there are is read from shared memory.
const CARRIED: usize = 12;

/// What the threads of a region call.
#[derive(Clone, Copy, Default)]
pub(crate) struct Call {
    microtask: Microtask,
    count: usize,
    carried: [usize; CARRIED],
    /// All arguments, in shared memory; 0 if they are carried.
    all: usize,
    /// How its threads [compute](inherited): as the one that begins the region, so that it can change that between regions.
    modes: u32,
}

/// How many words a call takes.
pub(crate) const WORDS: usize = CARRIED + 3;

thread_local! {
    /// How many threads the next region is to have; 0 for no wish.
    static WANTED: Cell<u32> = const { Cell::new(0) };
}

impl Call {
    /// The arguments of its function.
    pub(crate) fn arguments(&self) -> &[usize] {
        match self.all {
            0 => &self.carried[..self.count.min(CARRIED)],
            // SAFETY: `fork` has made so many, which stay and do not change before the region ends.
            all => unsafe { std::slice::from_raw_parts(all as *const usize, self.count) },
        }
    }

    /// Its function.
    pub(crate) fn microtask(&self) -> Microtask {
        self.microtask
    }

    /// As words, for threads of other nodes.
    pub(crate) fn words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        let count = self.count as u64 | u64::from(self.modes) << 32;
        (words[0], words[1], words[2]) = (self.microtask as u64, count, self.all as u64);
        for (word, argument) in words[3..].iter_mut().zip(self.carried) {
            *word = argument as u64;
        }
        words
    }

    /// What [`Call::words`] gave.
    pub(crate) fn from_words(words: &[u64; WORDS]) -> Self {
        let word = |index: usize| gondwana_page::to_usize(words[index]);
        let carried = std::array::from_fn(|index| word(index + 3));
        let half = |number: u64| low_half(gondwana_page::to_usize(number));
        let (count, modes) = (half(words[1]) as usize, half(words[1] >> 32));
        Self { microtask: word(0), count, all: word(2), carried, modes }
    }
}

/// The body of all regions of these compilers.
///
/// # Safety
/// The data is a call that `fork` has made.
pub(crate) unsafe extern "C" fn run(data: *mut c_void) {
    // SAFETY: the caller's promise; the call lives as long as the region.
    let call = unsafe { &*data.cast::<Call>() };
    inherited::compute_by(call.modes);
    let arguments = call.arguments().as_ptr();
    let number = context::get().number.cast_signed();
    // SAFETY: the thread that has begun the region passes a function with so many arguments.
    unsafe { invoke(call.microtask, &raw const number, &raw const number, call.count, arguments) };
}

/// Calls a function with two addresses and `count` further arguments.
#[unsafe(naked)]
unsafe extern "C" fn invoke(
    function: Microtask,
    number: *const c_int,
    same: *const c_int,
    count: usize,
    arguments: *const usize,
) {
    // Six arguments are passed in registers, of which two are the addresses; the others are on the stack, the last one first and
    // the first one at a multiple of 16.
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "mov rax, rdi",
        "mov r10, rcx",
        "mov r11, r8",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "cmp r10, 4",
        "jbe 3f",
        "test r10, 1",
        "jz 2f",
        "sub rsp, 8",
        "2:",
        "push qword ptr [r11 + r10*8 - 8]",
        "dec r10",
        "cmp r10, 4",
        "ja 2b",
        "3:",
        "cmp r10, 1",
        "jb 4f",
        "mov rdx, [r11]",
        "cmp r10, 2",
        "jb 4f",
        "mov rcx, [r11 + 8]",
        "cmp r10, 3",
        "jb 4f",
        "mov r8, [r11 + 16]",
        "cmp r10, 4",
        "jb 4f",
        "mov r9, [r11 + 24]",
        "4:",
        "call rax",
        "mov rsp, rbp",
        "pop rbp",
        "ret",
    )
}

/// A call that has its arguments where a function of any number of them finds those behind its own ones: the first three in
/// registers.
///
/// # Safety
/// The caller passes so many.
unsafe fn gathered(count: c_int, microtask: Microtask, registers: *const usize, stack: *const usize) -> Call {
    let count = usize::try_from(count).unwrap_or(0);
    let argument = |index: usize| {
        // SAFETY: the caller passes so many, three of them in registers.
        unsafe { if index < 3 { *registers.add(index) } else { *stack.add(index - 3) } }
    };
    let mut call = Call { microtask, count, modes: inherited::modes(), ..Call::default() };
    if count <= CARRIED {
        for (index, place) in call.carried.iter_mut().enumerate().take(count) {
            *place = argument(index);
        }
    } else {
        let all = sync::allocate(count * size_of::<usize>(), align_of::<usize>()).cast::<usize>();
        for index in 0..count {
            // SAFETY: the block was made for so many.
            unsafe { all.add(index).write(argument(index)) };
        }
        call.all = all as usize;
    }
    call
}

impl Call {
    /// Frees what [`gathered`] has made.
    fn discard(self) {
        if self.all != 0 {
            sync::discard(self.all as *mut usize);
        }
    }
}

/// Runs a region: `arguments` are those behind the function.
unsafe extern "C" fn fork(
    _place: Place,
    count: c_int,
    microtask: Microtask,
    registers: *const usize,
    stack: *const usize,
) {
    // SAFETY: the caller passes so many arguments; the body takes what it needs from the call.
    unsafe {
        let call = gathered(count, microtask, registers, stack);
        region::run_call(run, call, WANTED.take());
        call.discard();
    }
}

/// Runs a league: one team after the other in the calling thread.
unsafe extern "C" fn fork_teams(
    _place: Place,
    count: c_int,
    microtask: Microtask,
    registers: *const usize,
    stack: *const usize,
) {
    // SAFETY: as for `fork`.
    unsafe {
        let mut call = gathered(count, microtask, registers, stack);
        teams::each(|| run((&raw mut call).cast()));
        call.discard();
    }
}

crate::variadic_words! {
    /// # Safety
    /// Called by code that clang has compiled.
    __kmpc_fork_call by fork;
    /// # Safety
    /// Called by code that clang has compiled.
    __kmpc_fork_teams by fork_teams;
}

/// A region whose function has one argument, of one thread if the condition is false.
///
/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_fork_call_if(
    _place: Place,
    _count: c_int,
    microtask: Microtask,
    condition: c_int,
    argument: usize,
) {
    let wanted = WANTED.take();
    let mut call = Call { microtask, count: 1, modes: inherited::modes(), ..Call::default() };
    call.carried[0] = argument;
    // SAFETY: the program passes the function of a region.
    unsafe { region::run_call(run, call, if condition != 0 { wanted } else { 1 }) };
}

/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_push_num_threads(_place: Place, _thread: c_int, threads: c_int) {
    WANTED.set(u32::try_from(threads).unwrap_or(0));
}

/// As [`__kmpc_push_num_threads`], with what is to be done where there are not so many; there are.
///
/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_push_num_threads_strict(
    _place: Place,
    _thread: c_int,
    threads: c_int,
    _severity: c_int,
    _message: *const libc::c_char,
) {
    WANTED.set(u32::try_from(threads).unwrap_or(0));
}

/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_push_proc_bind(_place: Place, _thread: c_int, _bind: c_int) {}

/// A region of one thread, whose function the program calls itself.
///
/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_serialized_parallel(_place: Place, _thread: c_int) {
    WANTED.set(0);
    region::begin(run, std::ptr::null_mut(), 1, None).keep();
}

/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_end_serialized_parallel(_place: Place, _thread: c_int) {
    region::end_kept();
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn ten(
        number: *const c_int,
        same: *const c_int,
        a: usize,
        b: usize,
        c: usize,
        d: usize,
        e: usize,
        f: usize,
        g: *mut usize,
    ) {
        // SAFETY: the test passes places.
        unsafe {
            *g = usize::from(number == same)
                * (number.read().unsigned_abs() as usize
                    + a
                    + b * 10
                    + c * 100
                    + d * 1000
                    + e * 10_000
                    + f * 100_000)
        };
    }

    unsafe extern "C" fn three(
        _number: *const c_int,
        _same: *const c_int,
        a: usize,
        b: usize,
        result: *mut usize,
    ) {
        // SAFETY: the test passes a place.
        unsafe { *result = a * 10 + b };
    }

    #[test]
    fn functions_of_any_number_of_arguments_are_called() {
        let (number, mut result) = (7, 0_usize);
        let place = &raw mut result as usize;
        // SAFETY: the functions take so many arguments.
        unsafe {
            invoke(
                ten as *const () as Microtask,
                &raw const number,
                &raw const number,
                7,
                [1, 2, 3, 4, 5, 6, place].as_ptr(),
            );
            assert_eq!(result, 654_321 + 7);
            invoke(
                three as *const () as Microtask,
                &raw const number,
                &raw const number,
                3,
                [4, 5, place].as_ptr(),
            );
        }
        assert_eq!(result, 45);
    }

    #[test]
    fn a_call_arrives_as_it_was_sent() {
        let carried = std::array::from_fn(|index| index + 3);
        let sent = Call { microtask: 1, count: 2, carried, all: 9, modes: 0x9fc0_027f };
        assert_eq!(Call::from_words(&sent.words()).words(), sent.words());
    }
}
