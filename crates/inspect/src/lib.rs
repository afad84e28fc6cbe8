//! Looks at another process from outside: its threads, what they do in the kernel, and their stacks.
//!
//! [`Observer::look`] stops one thread after the other, each for as long as it takes to read its stack. A thread is stopped as
//! a debugger stops it, so nothing in the process has to work, and system calls go on afterwards. The design note
//! is `design/stacks.md` beside this code.

mod calls;
mod mappings;
mod memory;
mod objects;
mod stopped;
mod threads;
mod unwind;

pub use calls::{Call, call_of};
pub use objects::Object;
pub use threads::tasks;
pub use unwind::Frame;

use mappings::Mapping;
use memory::Memory;
use objects::Objects;
use std::io;
use stopped::Stopped;
use unwind::Unwinder;

/// Most frames of a stack that are read.
pub const MOST_FRAMES: usize = 256;

/// A thread of a process.
#[derive(Clone, Debug)]
pub struct Task {
    /// The kernel's number of it.
    pub task: u32,
    /// Its name.
    pub name: String,
    /// What it does in the kernel; `None` if it runs, or that is unknown.
    pub call: Option<Call>,
    /// Its calls, the innermost first, or why they are unknown.
    pub frames: Result<Vec<Frame>, String>,
}

/// What is known of a process: enough to look at the stacks of its threads.
pub struct Observer {
    process: u32,
    mappings: Vec<Mapping>,
    objects: Objects,
}

impl Observer {
    /// Reads what a process has mapped.
    ///
    /// # Errors
    /// If there is no such process, or it may not be looked at.
    pub fn new(process: u32) -> io::Result<Self> {
        let mappings = mappings::of(process)?;
        let objects = Objects::of(&mappings);
        Ok(Self { process, mappings, objects })
    }

    /// The files that are mapped, the executable first.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.objects.iter()
    }

    /// Looks at one thread. The calling thread must be one that waits for no children of its own: it becomes the tracer.
    #[must_use]
    pub fn look(&self, task: u32) -> Task {
        let name = threads::name(self.process, task);
        // Before it is stopped: a thread that is stopped does nothing in the kernel.
        let call = calls::now(self.process, task);
        Task { task, name, call, frames: self.frames(task).map_err(|error| explained(&error)) }
    }

    fn frames(&self, task: u32) -> io::Result<Vec<Frame>> {
        let memory = Memory::open(self.process, &self.mappings)?;
        let stopped = Stopped::stop(task)?;
        let registers = stopped.registers()?;
        let frames = Unwinder::new(&self.objects, &memory).walk(registers, MOST_FRAMES);
        drop(stopped);
        Ok(frames)
    }
}

/// Why a thread could not be looked at, and what to do.
fn explained(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "the system does not let this process trace it (a debugger that is attached, \
            kernel.yama.ptrace_scope, or the container's filter of system calls)"
                .to_owned()
        }
        Some(libc::ESRCH) => "it has ended".to_owned(),
        _ => error.to_string(),
    }
}
