//! `cg_*`: the calls of UnixWare 7 for its CPU groups, which are our nodes.

use crate::arguments::{count, node, room};
use crate::backend::Whom;
use crate::error::{Error, call};
use crate::installed::backend;
use gondwana_page::PAGE_SIZE;
use gondwana_rset::RSet;
use gondwana_topology::{Machine, NodeId, NodeSet, ProcessorSet};
use libc::{c_int, c_long, id_t};

/// `cgid_t`.
type CgId = c_int;

/// `CG_ONLINE` and `P_ONLINE`: the only selectors.
const ONLINE: c_int = 1;

/// Special groups, all negative.
const NONE: CgId = -1;
const CURRENT: CgId = -2;
const QUERY: CgId = -3;
const DEFAULT: CgId = -4;

/// `P_PID` is the system's own, `P_LWPID` is not.
const PID: c_int = 1;
const LWPID: c_int = 0x100;
const MYID: id_t = id_t::MAX;

/// `CGBIND_NOW`, `CGBIND_FORK`.
const NOW: c_int = 1;
const FORK: c_int = 2;

/// `cginfo_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CgInfo {
    cg_state: c_int,
    cg_near_mem: u64,
    cg_far_cache: u64,
    cg_ncpus_config: c_long,
    cg_ncpus_online: c_long,
}

fn online(selector: c_int) -> Result<(), Error> {
    match selector {
        ONLINE => Ok(()),
        _ => Err(Error::invalid(format!("the selector is {selector}, not CG_ONLINE"))),
    }
}

fn null(what: &str) -> Error {
    Error::new(libc::EFAULT, format!("{what} is NULL"))
}

/// A node, or with `CG_CURRENT` that of the calling thread.
fn group(number: CgId, machine: &Machine) -> Result<NodeId, Error> {
    if number == CURRENT { Ok(backend().here()?.1) } else { node(number, machine) }
}

/// Writes all of a list, for which there must be room.
///
/// # Safety
/// There is room for `most` numbers behind `array`.
unsafe fn list(
    all: impl ExactSizeIterator<Item = c_int>,
    array: *mut c_int,
    most: c_int,
) -> Result<c_int, Error> {
    let len = all.len();
    if array.is_null() {
        return Err(null("the array"));
    }
    if let Ok(count) = c_int::try_from(len)
        && count <= most
    {
        // SAFETY: the caller's promise.
        let to = unsafe { room(array, len, "the array")? };
        to.iter_mut().zip(all).for_each(|(to, number)| *to = number);
        return Ok(count);
    }
    Err(Error::new(libc::ENOSPC, format!("there are {len}, and the array has room for {most}")))
}

/// The nodes.
///
/// # Safety
/// There is room for `ncgids` numbers behind `array`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_ids(selector: c_int, ncgids: c_int, array: *mut CgId) -> c_int {
    call(-1, || {
        online(selector)?;
        let nodes = backend().machine()?.nodes.iter().map(|node| node.id.0.into());
        // SAFETY: the caller's promise.
        unsafe { list(nodes, array, ncgids) }
    })
}

/// The processors of a node.
///
/// # Safety
/// There is room for `nprids` numbers behind `array`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_processors(
    cgid: CgId,
    selector: c_int,
    nprids: c_int,
    array: *mut c_int,
) -> c_int {
    call(-1, || {
        online(selector)?;
        let machine = backend().machine()?;
        let processors = processors(group(cgid, machine)?, machine);
        let numbers: Vec<c_int> = processors.iter().map(|processor| processor.0.into()).collect();
        // SAFETY: the caller's promise.
        unsafe { list(numbers.into_iter(), array, nprids) }
    })
}

fn processors(id: NodeId, machine: &Machine) -> ProcessorSet {
    machine.node(id).map(|node| node.processors).unwrap_or_default()
}

/// What a node has.
///
/// # Safety
/// `infop` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_info(cgid: CgId, infop: *mut CgInfo) -> c_int {
    call(-1, || {
        let machine = backend().machine()?;
        let id = group(cgid, machine)?;
        if infop.is_null() {
            return Err(null("the place for the information"));
        }
        let processors = count(processors(id, machine).len());
        let info = CgInfo {
            cg_state: ONLINE,
            cg_near_mem: machine.node(id).map_or(0, |node| node.memory.total.0),
            cg_far_cache: 0,
            cg_ncpus_config: processors,
            cg_ncpus_online: processors,
        };
        // SAFETY: the caller's promise.
        unsafe { infop.write(info) };
        Ok(0)
    })
}

fn whom(idtype: c_int, id: id_t) -> Result<Whom, Error> {
    let number = |what| {
        let number = c_int::try_from(id).ok().filter(|&number| number > 0);
        number.ok_or_else(|| Error::invalid(format!("{id} is no number of a {what}")))
    };
    match (idtype, id) {
        (PID, MYID) => Ok(Whom::ThisProcess),
        (LWPID, MYID) => Ok(Whom::ThisThread),
        (PID, _) => number("process").map(Whom::Process),
        (LWPID, _) => number("thread").map(Whom::Thread),
        _ => Err(Error::invalid(format!("the type {idtype} is neither P_PID nor P_LWPID"))),
    }
}

/// The node that a process or thread is bound to, if it is to one.
fn bound(whom: Whom, machine: &Machine) -> Result<Option<NodeId>, Error> {
    let nodes = machine.nodes_of(backend().binding(whom)?.processors());
    Ok(nodes.first().filter(|_| nodes.len() == 1))
}

/// Binds a process or thread to the processors of a node, or asks for its binding.
///
/// # Safety
/// `ocg` and `oflags` are null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_bind(
    idtype: c_int,
    id: id_t,
    cg: CgId,
    given: c_int,
    ocg: *mut CgId,
    oflags: *mut c_int,
) -> c_int {
    call(-1, || {
        let whom = whom(idtype, id)?;
        let machine = backend().machine()?;
        let old = bound(whom, machine)?;
        match cg {
            QUERY => {}
            // Children inherit bindings: that is the default, and the only way that there is.
            DEFAULT if given == FORK => {}
            DEFAULT => return Err(Error::invalid("CG_DEFAULT goes with CGBIND_FORK only")),
            _ => {
                check_flags(given)?;
                match cg {
                    NONE => bind(whom, &machine.processors())?,
                    CURRENT => bind_to(whom, backend().node_of(whom)?, machine)?,
                    _ => bind_to(whom, node(cg, machine)?, machine)?,
                }
            }
        }
        // SAFETY: the caller's promise.
        unsafe {
            ocg.as_mut().into_iter().for_each(|to| *to = old.map_or(NONE, |node| node.0.into()));
            oflags.as_mut().into_iter().for_each(|to| *to = old.map_or(0, |_| NOW | FORK));
        }
        Ok(0)
    })
}

fn check_flags(given: c_int) -> Result<(), Error> {
    match given {
        NOW | 3 => Ok(()),
        FORK => Err(Error::new(
            libc::ENOTSUP,
            "CGBIND_FORK without CGBIND_NOW cannot be had: processes inherit the binding of those that start them",
        )),
        _ => Err(Error::invalid(format!("the flags {given:#x} are neither CGBIND_NOW nor CGBIND_FORK"))),
    }
}

fn bind_to(whom: Whom, to: NodeId, machine: &Machine) -> Result<(), Error> {
    let there = processors(to, machine);
    if there.is_empty() {
        return Err(Error::invalid(format!("node {to} has no processors")));
    }
    bind(whom, &there)
}

/// Some of the processors will do, as long as there are no others.
fn bind(whom: Whom, processors: &ProcessorSet) -> Result<(), Error> {
    let remarks = backend().bind(whom, &RSet::new(*processors, NodeSet::EMPTY), false)?;
    if processors.contains_all(backend().binding(whom)?.processors()) {
        Ok(())
    } else {
        Err(Error::new(libc::EPERM, remarks.join("; ")))
    }
}

/// The node on which a process or thread is.
#[unsafe(no_mangle)]
pub extern "C" fn cg_current(idtype: c_int, id: id_t) -> CgId {
    call(-1, || Ok(backend().node_of(whom(idtype, id)?)?.0.into()))
}

/// The nodes of the pages of a range.
///
/// # Safety
/// There is room for the number of each page behind `vec`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_memloc(addr: *const libc::c_char, len: usize, vec: *mut CgId) -> c_int {
    call(-1, || {
        let start = addr as usize;
        if !start.is_multiple_of(PAGE_SIZE) {
            return Err(Error::invalid(format!("a page does not begin at {start:#x}")));
        }
        if len == 0 || start.checked_add(len).is_none() {
            let sentence = format!("{len} bytes from {start:#x} on are no range of memory");
            return Err(Error::new(libc::ENOMEM, sentence));
        }
        if vec.is_null() {
            return Err(null("the array"));
        }
        // SAFETY: the caller's promise.
        let to = unsafe { room(vec, len.div_ceil(PAGE_SIZE), "the array")? };
        backend().nodes_of_pages(start, to)?;
        Ok(0)
    })
}
