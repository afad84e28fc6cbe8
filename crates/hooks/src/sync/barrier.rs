use super::{current, objects};
use crate::start;
use crate::threads::touch;
use crate::world::{started, wait};
use gondwana_sim::{Kind, ThreadId};
use libc::{c_int, c_uint, c_void};

/// A barrier.
pub(crate) struct Barrier {
    count: usize,
    arrived: Vec<ThreadId>,
}

#[unsafe(no_mangle)]
extern "C" fn pthread_barrier_init(barrier: *mut c_void, _attributes: *const c_void, count: c_uint) -> c_int {
    if count == 0 {
        return libc::EINVAL;
    }
    objects().barriers.insert(barrier as usize, Barrier { count: count as usize, arrived: vec![] });
    0
}

#[unsafe(no_mangle)]
extern "C" fn pthread_barrier_destroy(barrier: *mut c_void) -> c_int {
    objects().barriers.remove(&(barrier as usize));
    0
}

#[unsafe(no_mangle)]
extern "C" fn pthread_barrier_wait(barrier: *mut c_void) -> c_int {
    touch(barrier, Kind::Write);
    let thread = current();
    let Some(state) = objects().barriers.get_mut(&(barrier as usize)) else {
        start::die("the program waits at a barrier that it has not initialised")
    };
    state.arrived.push(thread);
    if state.arrived.len() == state.count {
        let mut arrived = std::mem::take(&mut state.arrived);
        arrived.pop();
        for other in arrived {
            started().wake(other);
        }
        return libc::PTHREAD_BARRIER_SERIAL_THREAD;
    }
    wait(None);
    touch(barrier, Kind::Read);
    0
}
