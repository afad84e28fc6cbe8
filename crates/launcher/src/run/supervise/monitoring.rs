//! Records of nodes, and requests of commands.

use super::state::Supervisor;
use crate::process::events::Nodes;
use crate::run_registry::requests::{Asked, Inbox, Request, answer};
use gondwana_control::Order;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

impl Supervisor<'_> {
    pub(super) fn recorded(&mut self, node: u16, chunk: Vec<u8>, machine: &mut dyn Nodes) {
        let Some(monitored) = &mut self.monitored else { return };
        let was_on = monitored.is_on();
        let sentence = monitored.chunk(node, chunk, machine);
        if was_on != monitored.is_on() {
            self.note_monitored();
        }
        if let Some(sentence) = sentence {
            self.say(&sentence);
        }
    }

    pub(super) fn asked_by_node(&mut self, node: u16, file: Option<PathBuf>, machine: &mut dyn Nodes) {
        let over = self.end.is_some() || self.exiting();
        // A folder that is gone is noticed when the file is made.
        let file = file.map(|file| std::path::absolute(&file).unwrap_or(file));
        if let Some(monitored) = &mut self.monitored {
            monitored.asked_by_node(node, file.as_deref(), over, machine);
        }
        self.note_monitored();
    }

    fn note_monitored(&self) {
        if let (Some(registry), Some(monitored)) = (&self.registry, &self.monitored) {
            registry.monitored(monitored.is_on());
        }
    }

    /// The inbox of requests, if there is one.
    pub(super) fn requests(&self) -> Option<Arc<Inbox>> {
        self.registry.as_ref()?.requests().cloned()
    }

    pub(super) fn requested(&mut self, machine: &mut dyn Nodes) {
        let over = self.end.is_some() || self.exiting();
        for asked in self.requests().into_iter().flat_map(|requests| requests.take()) {
            let over_stacks = || Err("is ending: it has no threads to show".to_owned());
            match asked.request {
                Request::Stacks if over => drop(answer(asked.asker, &over_stacks())),
                Request::Stacks => self.stacks_asked(asked.asker, machine),
                Request::LetTrace { process, node } => self.let_trace(process, node, asked.asker, machine),
                _ => self.asked_of_monitor(asked, over, machine),
            }
        }
        self.note_monitored();
    }

    /// The node must let a debugger trace it, where the system asks the traced. It has heard of it in a moment.
    fn let_trace(&mut self, process: u32, node: u16, asker: UnixStream, machine: &mut dyn Nodes) {
        machine.order(node, &Order::LetTrace { process });
        drop(answer(asker, &Ok(None)));
    }

    fn asked_of_monitor(&mut self, asked: Asked, over: bool, machine: &mut dyn Nodes) {
        if let Some(monitored) = &mut self.monitored {
            monitored.asked(asked, over, machine);
        }
    }
}
