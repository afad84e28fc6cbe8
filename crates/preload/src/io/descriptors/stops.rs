//! Placeholder descriptors (*stops*) at the numbers that this node must not use.
//!
//! The kernel gives a new descriptor the lowest free number. To make that a number of this node, all others are
//! occupied by descriptors that can be neither read nor written nor polled. This covers every way of opening a
//! descriptor, also inside the C library.

use super::bits::Bits;
use super::division::Division;
use super::limit;
use super::reopened;
use super::status::forget_kind;
use crate::numbers::int;
use gondwana_node::{Node, Thread};
use libc::c_int;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first number that is not a standard stream's.
const FIRST: c_int = 3;

/// The numbers that have a stop.
static STOPS: Bits = Bits::new();

/// The numbers that the runtime uses itself.
static RUNTIME: Bits = Bits::new();

/// The numbers as this node sees them.
pub(super) struct Numbers {
    pub division: &'static Division,
    pub me: u16,
    /// The placeholder that is copied to other numbers.
    model: c_int,
}

static DIVISION: Division = Division::new();

static NUMBERS: OnceLock<Numbers> = OnceLock::new();

/// True if the number is not open on this node but for a stop.
#[inline]
pub(super) fn is_stop(number: c_int) -> bool {
    STOPS.is_set(number)
}

/// The stops among 64 numbers.
pub(super) fn word(index: usize) -> u64 {
    STOPS.word(index)
}

/// Records that a number is in use, and no placeholder any more.
pub(super) fn taken(number: c_int) {
    forget_kind(number);
    STOPS.clear(number);
}

/// Takes a number from the program, for as long as the runtime has it open.
pub(super) fn withdraw(number: c_int) {
    RUNTIME.set(number);
}

/// Closes a descriptor of the runtime.
pub(crate) fn close_withdrawn(number: c_int) {
    RUNTIME.clear(number);
    // SAFETY: the number is the caller's.
    unsafe { gondwana_sys::syscall!(libc::SYS_close, number) };
}

/// True for numbers of the runtime's own descriptors.
pub(super) fn is_of_runtime(number: c_int) -> bool {
    RUNTIME.is_set(number)
        || Numbers::get().is_some_and(|numbers| !is_child() && numbers.division.is_of_runtime(number))
}

impl Numbers {
    /// The numbers of this node, once it is one of several.
    pub(super) fn get() -> Option<&'static Self> {
        NUMBERS.get()
    }

    /// True for a number that must have a placeholder whenever it is not in use.
    pub(super) fn is_foreign(&self, number: c_int) -> bool {
        !is_child()
            && (number == libc::STDIN_FILENO || (FIRST..self.division.room()).contains(&number))
            && self.division.owner(number) != Some(self.me)
    }

    /// Puts placeholders at the numbers of a range that are free, and tells of the others.
    fn put(&self, range: Range<c_int>, in_use: impl Fn(c_int)) {
        let mut next = range.start;
        while next < range.end {
            // By system call: there are many, and the interposed `fcntl` is not needed. SAFETY: touches no memory.
            let number = int(unsafe {
                gondwana_sys::syscall!(libc::SYS_fcntl, self.model, libc::F_DUPFD_CLOEXEC, next)
            });
            if number < 0 {
                break;
            }
            if number < range.end {
                STOPS.set(number);
            } else {
                // SAFETY: the descriptor was made above.
                unsafe { gondwana_sys::syscall!(libc::SYS_close, number) };
            }
            (next..number.min(range.end)).for_each(&in_use);
            next = number + 1;
        }
    }

    /// Replaces a descriptor by a placeholder, atomically: no other thread can open that number.
    pub(super) fn close(&self, number: c_int) {
        forget_kind(number);
        // SAFETY: touches no memory.
        if unsafe {
            crate::real!(dup3: fn(c_int, c_int, c_int) -> c_int)(self.model, number, libc::O_CLOEXEC)
        } >= 0
        {
            STOPS.set(number);
        }
    }
}

/// Puts placeholders at all numbers that a run divides at first, including this node's: descriptors that the runtime opens
/// before [`begin`] get higher numbers.
pub(crate) fn reserve(nodes: u16, node: u16) {
    let of_runtime = limit::of_runtime(nodes);
    limit::raise(of_runtime);
    DIVISION.begin(nodes, limit::of_numbers(), of_runtime);
    let room = DIVISION.room();
    // SAFETY: touches no memory but the path.
    let stop = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
    // SAFETY: touches no memory.
    let model = unsafe { libc::fcntl(stop, libc::F_DUPFD_CLOEXEC, room) };
    if stop < 0 || model < 0 {
        crate::report::fatal(
            "the limit on open files is too low for the descriptors of a node; raise ulimit -n",
        );
    }
    let numbers = Numbers { division: &DIVISION, me: node, model };
    // SAFETY: the descriptor was opened above.
    unsafe { libc::close(stop) };
    numbers.put(FIRST..room, |number| {
        if node != 0 && passes_exec(number) {
            numbers.close(number);
        }
    });
    if node != 0 {
        // This descriptor is for child processes only; it is not the program's standard input.
        STOPS.set(libc::STDIN_FILENO);
    }
    let _ = NUMBERS.set(numbers);
}

/// Puts placeholders at further numbers, up to an end, where the node's limit on open files is then.
pub(super) fn fill(numbers: &Numbers, end: c_int) {
    let room = numbers.division.room();
    if limit::beyond(|| numbers.put(room..end, withdraw)) && limit::settle(end) {
        numbers.division.set_room(end);
    }
}

/// True for descriptors that the process started with, and that are therefore node 0's.
fn passes_exec(number: c_int) -> bool {
    // SAFETY: touches no memory.
    unsafe { libc::fcntl(number, libc::F_GETFD) & libc::FD_CLOEXEC == 0 }
}

/// Frees the node's own numbers for the program.
pub(super) fn begin(numbers: &Numbers) {
    // The runtime's own descriptors are close-on-exec; inherited ones are not.
    (FIRST..numbers.division.room())
        .filter(|&number| !is_stop(number) && is_open(number) && !passes_exec(number))
        .for_each(|number| RUNTIME.set(number));
    let own: Vec<c_int> = numbers.division.of(numbers.me).collect();
    runs(&own).for_each(free);
}

/// Removes the placeholders in a range.
pub(super) fn free(own: Range<c_int>) {
    let mut next = own.start;
    while let Some(first) = (next..own.end).find(|&number| is_stop(number)) {
        next = (first..own.end).find(|&number| !is_stop(number)).unwrap_or(own.end);
        // SAFETY: closes stops only.
        unsafe { gondwana_sys::syscall!(libc::SYS_close_range, first, next - 1, 0) };
        (first..next).for_each(taken);
    }
}

/// True in a child of a node.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// In a child, which is no node: the numbers of other nodes are free, but for those of files that are out of reach.
pub(super) fn end() {
    let Some(numbers) = Numbers::get() else { return };
    let room = numbers.division.room();
    let own = (FIRST..room).filter(|&number| is_stop(number) && !reopened::is_out_of_reach(number));
    let own: Vec<c_int> = own.collect();
    runs(&own).for_each(free);
    let zone = numbers.division.of_runtime();
    zone.filter(|&number| is_open(number)).for_each(withdraw);
    IS_CHILD.store(true, Ordering::Relaxed);
}

/// Numbers in order, as ranges.
fn runs(numbers: &[c_int]) -> impl Iterator<Item = Range<c_int>> {
    numbers.chunk_by(|one, next| one + 1 == *next).map(|run| run[0]..run[run.len() - 1] + 1)
}

/// The node that a number belongs to, if that is another.
pub(super) fn other_owner(number: c_int) -> Option<(&'static Node, usize)> {
    let (node, numbers) = (Node::current()?, Numbers::get()?);
    let owner = numbers.division.owner(number).filter(|_| numbers.is_foreign(number))?;
    Some((node, owner.into()))
}

/// True if a number is open on this node, and not by a stop.
pub(super) fn is_open(number: c_int) -> bool {
    // SAFETY: touches no memory.
    let flags = || unsafe { crate::real!(fcntl: fn(c_int, c_int, usize) -> c_int)(number, libc::F_GETFD, 0) };
    !is_stop(number) && flags() >= 0
}

/// True for a number that this call of the program cannot have anything to do with.
pub(super) fn is_out_of_reach(number: c_int) -> bool {
    is_of_runtime(number) && Thread::is_of_program() && !Thread::inside_runtime()
}
