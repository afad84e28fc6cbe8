//! Threads that look at node processes of this computer, so that nobody waits for them.

use super::events::Event;
use crate::stacks::look::{LookRequest, LookResult, named, unwind};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// The threads that look.
pub(super) struct Lookers {
    sender: Sender<Event>,
    events: Receiver<Event>,
    /// Readable when there are events.
    bell: io::PipeReader,
    ring: io::PipeWriter,
}

impl Lookers {
    pub(super) fn new() -> io::Result<Self> {
        let (sender, events) = channel();
        let (bell, ring) = io::pipe()?;
        Ok(Self { sender, events, bell, ring })
    }

    /// Looks at the processes of nodes.
    pub(super) fn look(&self, request: LookRequest, nodes: Vec<(u16, u32)>) {
        let (sender, ring) = (self.sender.clone(), self.ring.try_clone());
        let tell = move |event| {
            // Without a receiver the launcher is ending.
            if sender.send(event).is_ok()
                && let Ok(mut ring) = ring.as_ref()
            {
                let _ = ring.write_all(&[0]);
            }
        };
        let id = request.id;
        let looker = thread::Builder::new().name("looks".to_owned());
        // Without a thread nobody is told anything: whoever has asked has a limit of time.
        let _ = looker.spawn(move || {
            let unwound =
                nodes.into_iter().map(|(node, process)| unwind(node, process, request.task)).collect();
            tell(Event::Unwound(id));
            tell(Event::Looked(LookResult { id, nodes: named(unwound, &request.addresses) }));
        });
    }

    /// What they have found since the last call.
    pub(super) fn take(&mut self) -> Vec<Event> {
        let events: Vec<Event> = self.events.try_iter().collect();
        let mut bytes = vec![0; events.len()];
        if !bytes.is_empty() {
            // A byte for each event is there or about to be.
            let _ = self.bell.read_exact(&mut bytes);
        }
        events
    }
}

impl AsRawFd for Lookers {
    fn as_raw_fd(&self) -> RawFd {
        self.bell.as_raw_fd()
    }
}
