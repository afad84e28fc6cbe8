//! Threads in sets: each stays on the node on which it started, and can be bound to processors of that node.

use super::cluster::{Cluster, asking, node, unsupported};
use super::processors::BOUND;
use crate::process::identity;
use crate::pthread;
use gondwana_api::{Backend, Error, NewThread, Routine, Whom};
use gondwana_node::{Caller, Node};
use gondwana_rset::RSet;
use gondwana_topology::{NodeId, NodeSet, ProcessorSet};
use libc::{c_int, c_void, pthread_t, sem_t};

/// The thread or process of a number: numbers are those of this node's computer.
pub(super) fn named(whom: Whom) -> Whom {
    let (process, thread) = (identity::process(), identity::thread());
    match whom {
        Whom::Thread(number) if number == thread => Whom::ThisThread,
        Whom::Process(number) if number == process => Whom::ThisProcess,
        whom => whom,
    }
}

/// The start data of a new thread, in shared memory because it may start on another node.
#[repr(C)]
struct Start {
    /// Posted when the thread is bound; then its creator reads the remark.
    bound: sem_t,
    rset: RSet,
    routine: Routine,
    argument: *mut c_void,
    remark: [u8; 512],
    length: usize,
}

impl Cluster {
    /// The node of a thread or process.
    pub(super) fn home_of(&self, whom: Whom) -> Result<NodeId, Error> {
        match whom {
            Whom::ThisThread => Ok(node()?.number()),
            // The program began on node 0.
            Whom::ThisProcess => Ok(NodeId(0)),
            Whom::Thread(_) | Whom::Process(_) => {
                // Fails if it does not exist.
                asking(|| self.host.node_of(whom))?;
                Ok(node()?.number())
            }
        }
    }

    /// As [`Backend::bind`].
    pub(super) fn bind_named(&self, whom: Whom, rset: &RSet, strict: bool) -> Result<Vec<String>, Error> {
        match whom {
            Whom::ThisThread => self.bind_this_thread(rset, strict),
            Whom::Thread(_) => {
                self.home_of(whom)?;
                if !rset.memory().is_empty() {
                    return Err(unsupported("the memory of other threads cannot be bound"));
                }
                let processors = self.processors_here(rset)?;
                self.bind_on_computer(whom, &processors, strict)
            }
            Whom::ThisProcess => self.unbind_process(rset, strict),
            Whom::Process(process) => {
                self.home_of(whom)?;
                Err(unsupported(format!("process {process} is no part of the run")))
            }
        }
    }

    /// The processors of a set that belong to this node.
    fn processors_here(&self, rset: &RSet) -> Result<ProcessorSet, Error> {
        let here = rset.processors().intersection(self.processors.own());
        if here.is_empty() && !rset.processors().is_empty() {
            let (node, processors) = (node()?.number(), rset.processors());
            return Err(unsupported(format!(
                "threads stay on their node: this one is on node {node}, which has none of processors {processors}; \
                 gw_thread_create starts threads on other nodes"
            )));
        }
        Ok(here)
    }

    fn bind_on_computer(
        &self,
        whom: Whom,
        processors: &ProcessorSet,
        strict: bool,
    ) -> Result<Vec<String>, Error> {
        let there = RSet::new(self.processors.on_computer(processors), NodeSet::EMPTY);
        asking(|| self.host.bind(whom, &there, strict))
    }

    fn bind_this_thread(&self, rset: &RSet, strict: bool) -> Result<Vec<String>, Error> {
        let here = node()?.number();
        let processors = self.processors_here(rset)?;
        let mut remarks = vec![];
        let mut memory = *rset.memory();
        if !memory.is_empty() && !memory.contains(here) {
            let sentence = format!(
                "what threads of node {here} touch first is there unless --memory or gw_alloc place it, not on {memory}"
            );
            if strict {
                return Err(unsupported(sentence));
            }
            remarks.push(sentence);
            memory = NodeSet::EMPTY;
        }
        if !processors.is_empty() {
            remarks.extend(self.bind_on_computer(Whom::ThisThread, &processors, strict)?);
        }
        let before = self.binding_of(Whom::ThisThread)?;
        let or_before = |new: ProcessorSet| if new.is_empty() { *before.processors() } else { new };
        let memory = if memory.is_empty() { *before.memory() } else { memory };
        BOUND.set(Some(RSet::new(or_before(processors), memory)));
        Ok(remarks)
    }

    /// The threads of a process are on many nodes, so that only everything holds all of them.
    fn unbind_process(&self, rset: &RSet, strict: bool) -> Result<Vec<String>, Error> {
        let everything = RSet::global(&self.machine);
        let holds = |part: &RSet| {
            (part.processors().is_empty() || part.processors() == everything.processors())
                && (part.memory().is_empty() || part.memory() == everything.memory())
        };
        if !holds(rset) {
            return Err(unsupported(format!(
                "the threads of a run stay on their nodes: all of them together cannot be bound to {rset}"
            )));
        }
        let remark =
            "threads but for the calling one stay bound as they are: each can only be bound by itself";
        if strict && node()?.has_remote_threads() {
            return Err(unsupported(remark));
        }
        let mut remarks = self.bind_this_thread(rset, strict)?;
        if node()?.has_remote_threads() {
            remarks.push(remark.to_owned());
        }
        Ok(remarks)
    }

    /// As [`Backend::binding`].
    pub(super) fn binding_of(&self, whom: Whom) -> Result<RSet, Error> {
        let everything = RSet::global(&self.machine);
        match whom {
            Whom::ThisProcess => Ok(everything),
            Whom::Process(process) => {
                self.home_of(whom)?;
                Err(unsupported(format!("process {process} is no part of the run")))
            }
            Whom::ThisThread | Whom::Thread(_) => {
                let there = asking(|| self.host.binding(whom))?;
                let now = self.processors.of_computer(there.processors());
                let bound = BOUND.get().filter(|_| whom == Whom::ThisThread);
                // A processor of the computer can map to several, not all of which the thread was bound to.
                let narrowed = bound.map_or(now, |bound| now.intersection(bound.processors()));
                let processors = if narrowed.is_empty() { now } else { narrowed };
                Ok(RSet::new(processors, bound.map_or(*everything.memory(), |bound| *bound.memory())))
            }
        }
    }

    /// As [`Backend::start_thread`].
    ///
    /// # Safety
    /// As for `pthread_create`.
    pub(super) unsafe fn start_bound(
        &self,
        node: &'static Node,
        thread: NewThread<'_>,
    ) -> Result<(pthread_t, Vec<String>), Error> {
        let failed = |number: c_int| {
            let why = std::io::Error::from_raw_os_error(number);
            Error::new(number, format!("no thread can be started: {why}"))
        };
        let NewThread { rset, attributes, routine, argument } = thread;
        let address = node
            .allocate(size_of::<Start>(), align_of::<Start>(), Caller::NONE)
            .ok_or_else(|| failed(libc::ENOMEM))?;
        let start = address as *mut Start;
        // SAFETY: the memory is fresh; the attributes are the caller's; `begin` gets what it expects. The thread is done
        // with it when it posts.
        unsafe {
            (&raw mut (*start).rset).write(*rset);
            (&raw mut (*start).routine).write(routine);
            (&raw mut (*start).argument).write(argument);
            (&raw mut (*start).length).write(0);
            libc::sem_init(&raw mut (*start).bound, 0, 0);
            let spec = pthread::spec(attributes, begin as *const () as usize, address);
            let nodes = self.machine.nodes_of(rset.processors());
            let created = spec.and_then(|spec| node.create_thread_in(nodes, spec));
            if created.is_ok() {
                while libc::sem_wait(&raw mut (*start).bound) != 0 {}
            }
            let remark = (&raw const (*start).remark).read();
            let length = (&raw const (*start).length).read();
            libc::sem_destroy(&raw mut (*start).bound);
            node.free(address);
            let remark = String::from_utf8_lossy(&remark[..length]).into_owned();
            let remarks = if remark.is_empty() { vec![] } else { vec![remark] };
            created.map(|id| (id, remarks)).map_err(failed)
        }
    }

    /// Binds a new thread before it does anything; returns the remark.
    fn bind_new(&self, rset: &RSet) -> String {
        self.bind_this_thread(rset, false).map_or_else(|error| error.sentence, |remarks| remarks.join("; "))
    }
}

/// # Safety
/// The argument is a `Start`, whose creator waits.
unsafe extern "C-unwind" fn begin(start: *mut c_void) -> *mut c_void {
    let start = start.cast::<Start>();
    // SAFETY: the creator's promise, until the semaphore is posted.
    let (routine, argument) = unsafe {
        let Start { rset, routine, argument, .. } = start.read();
        let remark = super::cluster::cluster().map_or_else(String::new, |cluster| cluster.bind_new(&rset));
        let length = remark.len().min((*start).remark.len());
        (&raw mut (*start).remark).cast::<u8>().copy_from_nonoverlapping(remark.as_ptr(), length);
        (&raw mut (*start).length).write(length);
        libc::sem_post(&raw mut (*start).bound);
        (routine, argument)
    };
    // No value is left to drop: the routine may never return. SAFETY: the program's routine and argument.
    unsafe { routine(argument) }
}
