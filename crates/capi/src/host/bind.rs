//! Binding threads to resource sets.

use super::tasks;
use crate::backend::Whom;
use crate::error::Error;
use gondwana_host::sys::{self, Policy};
use gondwana_host::{Binding, UnmetRequest};
use gondwana_rset::RSet;
use gondwana_topology::{Machine, NodeSet, ProcessorSet};
use libc::c_int;
use std::io;

/// What the kernel is told about a thread in this set.
pub(super) fn of_set(machine: &Machine, rset: &RSet) -> Binding {
    let everywhere = rset.memory().contains_all(&machine.memory_nodes());
    let policy = if everywhere { Policy::Default } else { Policy::Bind(*rset.memory()) };
    Binding { processors: *rset.processors(), policy }
}

/// As [`crate::backend::Backend::bind`].
pub(super) fn bind(machine: &Machine, whom: Whom, rset: &RSet, strict: bool) -> Result<Vec<String>, Error> {
    let before = strict.then(|| Before::of(whom)).transpose()?;
    let mut remarks = vec![];
    if !rset.processors().is_empty() {
        remarks.extend(bind_processors(whom, rset.processors())?.map(|remark| remark.to_string()));
    }
    if !rset.memory().is_empty() {
        remarks.extend(bind_memory(machine, whom, rset)?);
    }
    match before {
        Some(before) if !remarks.is_empty() => {
            before.restore();
            Err(Error::new(libc::ENOTSUP, remarks.join("; ")))
        }
        _ => Ok(remarks),
    }
}

fn bind_processors(whom: Whom, processors: &ProcessorSet) -> Result<Option<UnmetRequest>, Error> {
    let mut bound: Vec<c_int> = vec![];
    let mut found = ProcessorSet::EMPTY;
    loop {
        // A thread that has started another one before it was bound has not passed the binding on.
        let rest: Vec<c_int> =
            tasks::threads(whom)?.into_iter().filter(|thread| !bound.contains(thread)).collect();
        if rest.is_empty() {
            return Ok(UnmetRequest::processors(processors, &found));
        }
        for thread in rest {
            match sys::set_affinity(thread, processors).and_then(|()| sys::affinity(thread)) {
                Ok(has) => found = found.union(&has),
                // It has ended meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) && whom != Whom::ThisThread => {}
                Err(error) => return Ok(Some(UnmetRequest::refused("binding threads", &error))),
            }
            bound.push(thread);
        }
    }
}

/// The kernel changes the policy of a thread only at its own request.
fn bind_memory(machine: &Machine, whom: Whom, rset: &RSet) -> Result<Option<String>, Error> {
    let others = match whom {
        Whom::ThisThread => 0,
        Whom::ThisProcess => tasks::threads(whom)?.len() - 1,
        Whom::Thread(_) | Whom::Process(_) => {
            return Err(Error::new(libc::ENOTSUP, "the memory of other threads cannot be bound"));
        }
    };
    let Binding { policy, .. } = of_set(machine, rset);
    if let Some(remark) = policy.apply() {
        return Ok(Some(remark.to_string()));
    }
    Ok((others > 0).then(|| {
        format!("other threads run already ({others}), and the kernel lets each bind only its own memory")
    }))
}

/// Bindings as they were.
struct Before {
    affinities: Vec<(c_int, ProcessorSet)>,
    policy: Option<Policy>,
}

impl Before {
    fn of(whom: Whom) -> Result<Self, Error> {
        let threads = tasks::threads(whom)?.into_iter();
        let affinities = threads.filter_map(|thread| Some((thread, sys::affinity(thread).ok()?))).collect();
        Ok(Self { affinities, policy: sys::policy().ok() })
    }

    /// What cannot be restored could not be changed.
    fn restore(&self) {
        for (thread, processors) in &self.affinities {
            let _ = sys::set_affinity(*thread, processors);
        }
        let _ = self.policy.map(|policy| sys::set_policy(&policy));
    }
}

/// As [`crate::backend::Backend::binding`].
pub(super) fn binding(machine: &Machine, whom: Whom) -> Result<RSet, Error> {
    let mut processors = ProcessorSet::EMPTY;
    for thread in tasks::threads(whom)? {
        match sys::affinity(thread) {
            Ok(found) => processors = processors.union(&found),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            Err(error) => return Err(Error::system("the kernel does not say where threads run", &error)),
        }
    }
    if processors.is_empty() {
        return Err(tasks::nobody(whom));
    }
    let own = matches!(whom, Whom::ThisThread | Whom::ThisProcess);
    let memory = if own { memory(machine)? } else { machine.allowed_memory_nodes() };
    Ok(RSet::new(processors, memory))
}

/// Where the calling thread has memory from.
fn memory(machine: &Machine) -> Result<NodeSet, Error> {
    match sys::policy() {
        Ok(Policy::Bind(nodes) | Policy::Interleave(nodes)) => Ok(nodes),
        Ok(Policy::Default | Policy::Local | Policy::Prefer(_)) => Ok(machine.allowed_memory_nodes()),
        Err(error) if is_without_numa(&error) => Ok(machine.allowed_memory_nodes()),
        Err(error) => Err(Error::system("the kernel does not say where memory comes from", &error)),
    }
}

/// A kernel without NUMA, or a sandbox.
fn is_without_numa(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM))
}
