//! A thread as a member of a team: it enters a region, runs the body, and leaves.

use super::context::{self, Context};
use super::task;
use super::team::Team;
use libc::c_void;

/// The outlined body of a region.
pub(super) type Body = unsafe extern "C" fn(*mut c_void);

/// Enters a region as thread `number`.
pub(super) fn come(team: *mut Team, number: u32) {
    // SAFETY: what is read was written before the thread was told of the team.
    let (controls, league, first) = unsafe { ((*team).controls, (*team).league, (*team).first) };
    let sequence = u64::from(!first.is_null());
    context::set(Context { league, share: first, sequence, ..Context::new(team, number, controls) });
}

/// Waits for the other threads at the end of a region.
pub(super) fn leave() {
    barrier();
    task::end();
}

/// Does another thread's part in a region.
pub(super) fn take_part(team: *mut Team, number: u32) {
    let before = context::get();
    come(team, number);
    // SAFETY: the thread that has begun the region passes a function and its argument.
    unsafe {
        let function: Body = std::mem::transmute((*team).function);
        function((*team).data as *mut c_void);
    }
    leave();
    context::set(before);
}

/// Waits for all threads of the team, and for all its tasks.
pub(super) fn barrier() {
    let Context { team, .. } = context::get();
    // SAFETY: the team is the calling thread's; what is read never changes.
    unsafe {
        match team.as_ref() {
            None => {}
            Some(Team { threads: 1, .. }) => {}
            Some(_) => task::barrier(team),
        }
    }
}
