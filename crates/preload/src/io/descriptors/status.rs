//! What is open at a number of this process.

use super::bits::Bits;
use super::stops;
use crate::numbers::many;
use crate::private_stack::uninterrupted;
use libc::c_int;
use std::sync::OnceLock;

/// What the kernel says of an open descriptor; `None` if it is not open. `errno` stays as it was.
pub(crate) fn status(number: c_int) -> Option<libc::stat> {
    // The caller's stack may be shared memory, which the kernel cannot fault in.
    uninterrupted(|| {
        let before = crate::errno::get();
        // SAFETY: zero is a valid value, and the kernel fills it in on a private stack.
        let found = unsafe {
            let mut found: libc::stat = std::mem::zeroed();
            (gondwana_sys::syscall!(libc::SYS_fstat, number, &raw mut found) == 0).then_some(found)
        };
        crate::errno::set(before);
        found
    })
}

/// True for a regular file.
pub(crate) fn is_file(number: c_int) -> bool {
    status(number).is_some_and(|found| found.st_mode & libc::S_IFMT == libc::S_IFREG)
}

/// The same file, device, pipe or socket.
type Identity = (libc::dev_t, libc::ino_t);

fn identity(found: &libc::stat) -> Identity {
    (found.st_dev, found.st_ino)
}

/// What the standard descriptors were when the program began.
static OUTSIDE: OnceLock<[Option<Identity>; 3]> = OnceLock::new();

/// Notes what the standard descriptors are.
pub(super) fn begin() {
    let _ = OUTSIDE.set([0, 1, 2].map(|number| status(number).as_ref().map(identity)));
}

/// True for a standard descriptor that still is what it was when the program began.
pub(super) fn is_as_at_start(number: c_int) -> bool {
    let now = status(number).as_ref().map(identity);
    now.is_some() && OUTSIDE.get().is_some_and(|all| all[many(number)] == now)
}

/// True if a descriptor may lead from one thread of the program to another: a pipe, a socket, an event. Files and what the program
/// was started with do not.
pub(crate) fn is_channel(number: c_int) -> bool {
    let of_files = [libc::S_IFREG, libc::S_IFDIR, libc::S_IFBLK];
    // What another node has open may be anything.
    stops::is_stop(number)
        || status(number).is_some_and(|found| {
            let outside = || OUTSIDE.get().is_some_and(|all| all.contains(&Some(identity(&found))));
            !of_files.contains(&(found.st_mode & libc::S_IFMT)) && !outside()
        })
}

/// Numbers whose kind was decided for a stream, and those of them that are channels.
static DECIDED: Bits = Bits::new();
static CHANNELS: Bits = Bits::new();

/// [`is_channel`] for the descriptor of a stream of this node, which does not change often.
#[inline]
pub(crate) fn is_channel_of_stream(number: c_int) -> bool {
    if DECIDED.is_set(number) { CHANNELS.is_set(number) } else { decide(number) }
}

#[cold]
fn decide(number: c_int) -> bool {
    let is_channel = is_channel(number);
    if is_channel {
        CHANNELS.set(number);
    }
    DECIDED.set(number);
    is_channel
}

/// Something else is open at a number from now on, or nothing.
pub(crate) fn forget_kind(number: c_int) {
    DECIDED.clear(number);
    CHANNELS.clear(number);
}
