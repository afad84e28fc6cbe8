//! Descriptors of other nodes on the same computer: copies at the same numbers, which share offset and flags with the
//! original. They are made at first use, and closed with the original.

use super::bits::Bits;
use super::copy::{Lasting, copy};
use super::reopened;
use super::standard;
use super::status::forget_kind;
use super::stops::{self, Numbers};
use gondwana_node::{Node, ProcessChange};
use libc::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

/// Own numbers of which other nodes may have copies.
static LENT: Bits = Bits::new();

/// Numbers at which there is a copy here.
static BORROWED: Bits = Bits::new();

/// Counts the orders to close copies, whether this node had them or not.
static FORGOTTEN: AtomicU64 = AtomicU64::new(0);

/// Lets the nodes of the run, which are children of the launcher, copy descriptors of this process.
pub(super) fn begin() {
    // SAFETY: touches no memory. Systems without such restrictions do not know the call, and need none.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, gondwana_sys::parent(), 0, 0, 0) };
}

/// For another node: the number of this process, or `-EBADF` if it does not have the descriptor open either.
pub(crate) fn lend(number: c_int) -> c_int {
    if stops::is_of_runtime(number) {
        return -libc::EBADF;
    }
    // Before the check: it may be closed right after.
    LENT.set(number);
    if stops::is_open(number) { gondwana_sys::process() } else { -libc::EBADF }
}

/// The result of copying a descriptor from its owner.
pub(super) enum Borrowed {
    /// It can be used.
    Here,
    /// The owner does not have it open either.
    Closed,
    /// The owner is on another computer, or the system does not allow it.
    OutOfReach,
}

/// Copies a descriptor from its owner, in place of the placeholder.
pub(super) fn borrow(node: &'static Node, owner: usize, number: c_int) -> Borrowed {
    if !node.is_on_one_computer() {
        return Borrowed::OutOfReach;
    }
    loop {
        let forgotten = FORGOTTEN.load(Ordering::SeqCst);
        let Ok(process) = node.borrow_descriptor(owner, number) else { return Borrowed::Closed };
        let lasting = Lasting::of(process, number);
        let copied = reopened::alone(|| {
            let copied = copy(process, number, lasting);
            if copied {
                BORROWED.set(number);
                stops::taken(number);
            }
            copied
        });
        if !copied {
            return Borrowed::OutOfReach;
        }
        if FORGOTTEN.load(Ordering::SeqCst) == forgotten {
            return Borrowed::Here;
        }
        // The original may have been closed meanwhile, so this copy may be stale.
        give_up(number);
    }
}

fn give_up(number: c_int) {
    if BORROWED.clear(number)
        && let Some(numbers) = Numbers::get()
    {
        numbers.close(number);
    }
}

/// For another node: the original is closed.
pub(crate) fn forget(number: c_int) {
    FORGOTTEN.fetch_add(1, Ordering::SeqCst);
    give_up(number);
}

/// For a thread of another node that closes a descriptor of this one; 0 or an error number.
pub(crate) fn close_here(number: c_int) -> c_int {
    LENT.clear(number);
    forget_kind(number);
    // SAFETY: what the program asked for.
    if unsafe { crate::real!(close: fn(c_int) -> c_int)(number) } == 0 { 0 } else { crate::errno::get() }
}

/// Closes the copies of a descriptor that is about to be closed or was just replaced here, or renews those of standard descriptors.
pub(crate) fn recall(number: c_int) {
    if standard::is_standard(number) {
        standard::changed(number);
    } else if LENT.is_set(number)
        && LENT.clear(number)
        && let Some(node) = Node::current()
    {
        let before = crate::errno::get();
        // Forgetting cannot fail.
        let _ = node.change_elsewhere(ProcessChange::ForgetDescriptor { descriptor: number });
        crate::errno::set(before);
    }
}

/// Closes a descriptor of this node by `close`, its copies first: once it is closed, any thread here may get the number for another file,
/// and pass it on to other nodes.
pub(crate) fn close_with_copies<R>(number: c_int, close: impl FnOnce() -> R) -> R {
    let is_standard = standard::is_standard(number);
    if !is_standard {
        recall(number);
    }
    let result = close();
    if is_standard {
        recall(number);
    }
    result
}

/// Closes a descriptor of another node, its copies first.
///
/// # Errors
/// The error number.
pub(super) fn close_there(node: &'static Node, owner: usize, number: c_int) -> Result<(), i32> {
    forget(number);
    // Forgetting cannot fail.
    let _ = node.change_elsewhere(ProcessChange::ForgetDescriptor { descriptor: number });
    node.change_on_node(owner, ProcessChange::CloseDescriptor { descriptor: number })
}

/// If a number has a copy here, closes the original and all copies, and gives the result of `close`.
pub(super) fn close_borrowed(number: c_int) -> Option<c_int> {
    if !BORROWED.is_set(number) {
        return None;
    }
    let node = Node::current()?;
    let owner = Numbers::get()?.division.owner(number)?.into();
    Some(match close_there(node, owner, number) {
        Ok(()) => 0,
        Err(error) => {
            crate::errno::set(error);
            -1
        }
    })
}
