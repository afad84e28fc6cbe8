//! `gw_bind` and its relatives: threads in resource sets.

use crate::arguments::{Handle, flags};
use crate::backend::{NewThread, Routine, Whom};
use crate::error::{Error, call, keep_remarks};
use crate::installed::backend;
use gondwana_rset::RSet;
use libc::{c_int, c_uint, c_void, pthread_attr_t, pthread_t};
use std::ptr::null_mut;

/// `GW_STRICT`: what cannot be had is an error.
const STRICT: c_uint = 1 << 1;

/// `GW_THREAD` and `GW_PROCESS`.
fn whom(number: c_int) -> Result<Whom, Error> {
    match number {
        1 => Ok(Whom::ThisThread),
        2 => Ok(Whom::ThisProcess),
        _ => Err(Error::invalid(format!("{number} is neither GW_THREAD nor GW_PROCESS"))),
    }
}

/// A set in which threads can be.
///
/// # Safety
/// `set` is null or a set.
unsafe fn inhabitable(set: *const Handle) -> Result<RSet, Error> {
    // SAFETY: the caller's promise.
    let rset = unsafe { Handle::rset(set, "the set")? };
    let missing = rset.difference(&RSet::global(backend().machine()?));
    if !missing.is_empty() {
        return Err(Error::invalid(format!("the machine doesn't have {missing}")));
    }
    let lacks = match (rset.processors().is_empty(), rset.memory().is_empty()) {
        (true, _) => "processors to run on",
        (_, true) => "memory",
        _ => return Ok(rset),
    };
    Err(Error::invalid(format!("the resource set {rset} has no {lacks}")))
}

/// Binds the calling thread, or all threads of the program.
///
/// # Safety
/// `set` is null or a set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_bind(who: c_int, set: *const Handle, given: c_uint) -> c_int {
    call(-1, || {
        // SAFETY: the caller's promise.
        let rset = unsafe { inhabitable(set)? };
        let strict = flags(given, STRICT)? & STRICT != 0;
        keep_remarks(&backend().bind(whom(who)?, &rset, strict)?);
        Ok(0)
    })
}

/// Where the calling thread, or all threads of the program, may run and have memory from.
#[unsafe(no_mangle)]
pub extern "C" fn gw_binding(who: c_int) -> *mut Handle {
    call(null_mut(), || Handle::give(backend().binding(whom(who)?)?))
}

/// Starts a thread in a set.
///
/// # Safety
/// As for `pthread_create`; `set` is null or a set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_thread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    set: *const Handle,
    routine: Option<Routine>,
    argument: *mut c_void,
) -> c_int {
    call(-1, || {
        let routine = routine.ok_or_else(|| Error::invalid("the start routine is NULL"))?;
        if thread.is_null() {
            return Err(Error::invalid("the place for the thread's name is NULL"));
        }
        // SAFETY: the caller's promises.
        unsafe {
            let rset = inhabitable(set)?;
            let new = NewThread { rset: &rset, attributes, routine, argument };
            let (created, remarks) = backend().start_thread(new)?;
            thread.write(created);
            keep_remarks(&remarks);
        }
        Ok(0)
    })
}
