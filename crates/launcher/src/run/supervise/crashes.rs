//! Nodes that die of signals: what is said of them, with the stack of the thread that has crashed.

use super::state::{Crash, Supervisor};
use crate::process::events::Nodes;
use crate::process::signal_name;
use crate::stacks::look::{LookRequest, NodeStacks, StackFrame};
use std::time::{Duration, Instant};

/// How long the user waits for the stack after the end of the node: names of a large program take a while.
const NAMED_WITHIN: Duration = Duration::from_secs(5);

/// Most frames that are printed.
const MOST_FRAMES: usize = 12;

/// The death of a node that is not told yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Obituary {
    pub node: u16,
    pub signal: i32,
    /// Until when the stack is waited for.
    pub until: Instant,
}

impl Supervisor<'_> {
    /// A thread of a node has crashed. One with a `task` stays until its stack has been read.
    pub(super) fn crashed(&mut self, number: u16, crash: Crash, task: u32, machine: &mut dyn Nodes) {
        // What comes after it may be its consequence.
        if self.nodes.get(usize::from(number)).is_none_or(|node| node.crash.is_some()) {
            return;
        }
        let looking = (task != 0).then(|| self.next_look());
        if let Some(id) = looking {
            machine.look(&LookRequest { id, nodes: vec![number], task: Some(task), addresses: vec![] });
        }
        if let Some(node) = self.nodes.get_mut(usize::from(number)) {
            node.crash = Some(Crash { looking, ..crash });
        }
    }

    /// The stack of a thread that has crashed is here.
    pub(super) fn crash_looked_at(&mut self, id: u64, nodes: Vec<NodeStacks>) {
        let crashes = self.nodes.iter_mut().filter_map(|node| node.crash.as_mut());
        for crash in crashes.filter(|crash| crash.looking == Some(id)) {
            crash.looking = None;
            let frames = nodes.iter().flat_map(|node| &node.tasks).flat_map(|task| &task.frames);
            crash.stack = of_program(frames.cloned().collect());
        }
        self.say_obituary(false);
    }

    /// Says that a node has died, at once or when its stack is known.
    pub(super) fn bury(&mut self, node: u16, signal: i32) {
        self.obituary = Some(Obituary { node, signal, until: Instant::now() + NAMED_WITHIN });
        self.say_obituary(false);
    }

    /// Says what is still to be said, unless the stack is yet to come; at the latest when `over`.
    pub(super) fn say_obituary(&mut self, over: bool) {
        let ready = |Obituary { node, until, .. }: &Obituary| {
            let crash = self.nodes.get(usize::from(*node)).and_then(|node| node.crash.as_ref());
            over || *until <= Instant::now() || crash.is_none_or(|crash| crash.looking.is_none())
        };
        if self.obituary.as_ref().is_some_and(ready)
            && let Some(Obituary { node, signal, .. }) = self.obituary.take()
        {
            let crash = self.nodes.get(usize::from(node)).and_then(|node| node.crash.clone());
            let text = obituary(node, signal, crash.as_ref());
            self.say(&text);
        }
    }
}

/// The frames of the program: those of the handler that has noticed the crash are left out.
fn of_program(mut frames: Vec<StackFrame>) -> Vec<StackFrame> {
    if let Some(signal) = frames.iter().position(|frame| frame.interrupted) {
        frames.drain(..signal);
    }
    frames
}

/// A line about the death of a node, and one for each frame.
fn obituary(node: u16, signal: i32, crash: Option<&Crash>) -> String {
    let name = signal_name(signal);
    let Some(Crash { thread, address, what, stack, .. }) = crash else {
        return format!("node {node} was killed by {name}");
    };
    let place = match signal {
        libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE | libc::SIGTRAP => {
            format!(" at address {address:#x}")
        }
        _ => String::new(),
    };
    let more = if what.is_empty() { String::new() } else { format!(" ({what})") };
    let mut text = format!("node {node}, thread {thread} died of {name}{place}{more}");
    for frame in stack.iter().take(MOST_FRAMES) {
        text += &format!("\n    {frame}");
    }
    if stack.len() > MOST_FRAMES {
        text += &format!("\n    and {} more", stack.len() - MOST_FRAMES);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_handlers_frames_are_left_out() {
        let frame = |function: &str, interrupted| StackFrame {
            function: function.to_owned(),
            interrupted,
            ..StackFrame::default()
        };
        let all = vec![
            frame("on_fault", false),
            frame("__restore_rt", false),
            frame("work", true),
            frame("main", false),
        ];
        let names: Vec<_> = of_program(all).into_iter().map(|frame| frame.function).collect();
        assert_eq!(names, ["work", "main"]);
    }
}
