use super::{current, objects};
use crate::next;
use crate::threads::touch;
use crate::world::{started, wait, world};
use gondwana_sim::{Kind, ThreadId};
use libc::c_int;

/// A function that is called once.
#[derive(Default)]
pub(crate) struct Once {
    done: bool,
    caller: ThreadId,
    waiting: Vec<ThreadId>,
}

/// Decides whether the current thread is the one that calls; if another one does, waits for it.
pub(super) fn begin(address: usize) -> bool {
    let thread = current();
    if let Some(state) = objects().onces.get_mut(&address) {
        // A function that comes back to its own object would wait for itself.
        if !state.done && state.caller != thread {
            state.waiting.push(thread);
            wait(None);
            // The function may have failed, so this thread may be the next one to call it.
            return begin(address);
        }
        return false;
    }
    objects().onces.insert(address, Once { caller: thread, ..Once::default() });
    true
}

/// The function has returned, or failed and is to be called again.
pub(super) fn end(address: usize, done: bool) {
    let Some(state) = objects().onces.get_mut(&address) else { return };
    state.done = true;
    let waiting = std::mem::take(&mut state.waiting);
    if !done {
        objects().onces.remove(&address);
    }
    for thread in waiting {
        started().wake(thread);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_once(control: *mut c_int, function: extern "C" fn()) -> c_int {
    if world().is_none() {
        let real = next!(pthread_once: unsafe extern "C" fn(*mut c_int, extern "C" fn()) -> c_int);
        // SAFETY: the caller's own call.
        return unsafe { real(control, function) };
    }
    touch(control, Kind::Read);
    if begin(control as usize) {
        function();
        touch(control, Kind::Write);
        end(control as usize, true);
    }
    0
}
