//! Stops: what stands at the numbers that this node must not use.
//!
//! The kernel gives a new descriptor the lowest free number. So that it is one of the node's own, all others are
//! taken: by descriptors that can neither be read nor written nor waited for. This reaches every way of opening
//! something, also those inside the C library.

use super::division::{Division, MOST};
use super::limit;
use libc::c_int;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The first number that is not a standard stream's.
const FIRST: c_int = 3;

/// One bit for each number that has a stop.
static STOPS: [AtomicU64; MOST.div_ceil(64)] = [const { AtomicU64::new(0) }; MOST.div_ceil(64)];

/// The numbers as this node sees them.
pub struct Numbers {
    pub division: Division,
    own: [Range<c_int>; 2],
    /// The stop that is copied to other numbers.
    model: c_int,
}

static NUMBERS: OnceLock<Numbers> = OnceLock::new();

fn word_of(number: c_int) -> Option<&'static AtomicU64> {
    STOPS.get(number as u32 as usize / 64)
}

/// The bits of 64 numbers.
pub fn word(index: usize) -> u64 {
    STOPS.get(index).map_or(0, |word| word.load(Ordering::Relaxed))
}

/// True if the number is not open on this node but for a stop.
#[inline]
pub fn is_stop(number: c_int) -> bool {
    word_of(number).is_some_and(|word| word.load(Ordering::Relaxed) >> (number % 64) & 1 != 0)
}

/// Notes that there is something at a number, and no stop any more.
pub fn taken(number: c_int) {
    if let Some(word) = word_of(number) {
        word.fetch_and(!(1 << (number % 64)), Ordering::Relaxed);
    }
}

fn stopped(number: c_int) {
    if let Some(word) = word_of(number) {
        word.fetch_or(1 << (number % 64), Ordering::Relaxed);
    }
}

impl Numbers {
    /// Those of this node, once it is one of several.
    pub fn get() -> Option<&'static Self> {
        NUMBERS.get()
    }

    /// True for a number that must have a stop whenever nothing else is there.
    pub fn is_foreign(&self, number: c_int) -> bool {
        (FIRST..self.division.room()).contains(&number) && !self.own.iter().any(|own| own.contains(&number))
    }

    /// Replaces what is at a number by a stop, in one step: no other thread can open anything there.
    pub fn close(&self, number: c_int) {
        // SAFETY: touches no memory.
        if unsafe {
            crate::real!(dup3: fn(c_int, c_int, c_int) -> c_int)(self.model, number, libc::O_CLOEXEC)
        } >= 0
        {
            stopped(number);
        }
    }
}

/// Puts stops at all numbers that a run divides, those of this node included: what the runtime itself opens before
/// [`begin`] comes to lie above.
pub fn reserve(nodes: usize, node: usize) {
    let division = Division::new(nodes, limit::raise(nodes));
    let room = division.room();
    // SAFETY: touches no memory but the path.
    let stop = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
    // SAFETY: touches no memory.
    let copy = |least: c_int| unsafe { libc::fcntl(stop, libc::F_DUPFD_CLOEXEC, least) };
    let model = copy(room);
    if stop < 0 || model < 0 {
        crate::report::fatal(
            "the limit on open files is too low for the descriptors of a node; raise ulimit -n",
        );
    }
    let numbers = Numbers { own: division.of(node), division, model };
    // SAFETY: the descriptor was opened above.
    unsafe { libc::close(stop) };
    let mut next = FIRST;
    while next < room {
        // SAFETY: touches no memory.
        let number = unsafe { libc::fcntl(model, libc::F_DUPFD_CLOEXEC, next) };
        if number < 0 {
            break;
        }
        if number < room {
            stopped(number);
        } else {
            // SAFETY: the descriptor was made above.
            unsafe { libc::close(number) };
        }
        let inherited = next..number.min(room);
        if node != 0 {
            inherited.filter(|&number| passes_exec(number)).for_each(|number| numbers.close(number));
        }
        next = number + 1;
    }
    let _ = NUMBERS.set(numbers);
}

/// True for descriptors that the process started with, and that are therefore node 0's.
fn passes_exec(number: c_int) -> bool {
    // SAFETY: touches no memory.
    unsafe { libc::fcntl(number, libc::F_GETFD) & libc::FD_CLOEXEC == 0 }
}

/// Frees the node's own numbers for the program.
pub fn begin() {
    let Some(numbers) = NUMBERS.get() else { return };
    for number in numbers.own.iter().cloned().flatten().filter(|&number| is_stop(number)) {
        // SAFETY: only the stop is there.
        unsafe { crate::real!(close: fn(c_int) -> c_int)(number) };
        taken(number);
    }
    limit::settle(numbers.division.room());
}
