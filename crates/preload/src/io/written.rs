//! Results of calls that cannot be repeated when another node has taken the page that the kernel was to write. It writes to memory that
//! stays with its thread, and the program's is written afterwards.

use std::cell::Cell;
use std::thread::LocalKey;

/// Makes a call that writes to the `place` that it is given, and returns what is there afterwards. A handler that interrupts this and
/// makes such a call itself leaves the place as it was.
pub(super) fn written<T: Copy, R>(
    place: &'static LocalKey<Cell<T>>,
    call: impl FnOnce(*mut T) -> R,
) -> (R, T) {
    let before = place.get();
    let result = call(place.with(Cell::as_ptr));
    (result, place.replace(before))
}
