//! What belongs to processes and must be alike on all nodes.

use crate::deferred::DeferredTask;
use crate::numbers::error_number;
use crate::process_change::ProcessChange;
use crate::wire::Wire;
use crate::{Node, Thread};
use gondwana_topology::NodeId;

impl Node {
    /// Makes a change that this process has made already on all other nodes: a little later, if the thread does what a message asks for and so
    /// cannot wait for them.
    ///
    /// # Errors
    /// The error number of the first node that could not.
    pub fn change_elsewhere(&'static self, change: ProcessChange) -> Result<(), i32> {
        if Thread::is_handling_message() || Thread::is_service() {
            self.defer(DeferredTask::TellOthers(change));
            return Ok(());
        }
        self.change_on_others(change)
    }

    /// [`Node::change_elsewhere`] by a thread that can wait.
    pub(crate) fn change_on_others(&'static self, change: ProcessChange) -> Result<(), i32> {
        (0..self.boot.nodes)
            .map(NodeId)
            .filter(|&node| node != self.me)
            .try_for_each(|node| self.change_on(node, change.clone()))
    }

    /// Makes a change on node 0, from another node.
    ///
    /// # Errors
    /// The error number.
    pub fn change_on_first(&'static self, change: ProcessChange) -> Result<(), i32> {
        self.change_on(NodeId(0), change)
    }

    /// Makes a change on one other node.
    ///
    /// # Errors
    /// The error number.
    pub fn change_on_node(&'static self, node: usize, change: ProcessChange) -> Result<(), i32> {
        self.change_on(node_of(node), change)
    }

    /// Has the other nodes try a change until one does not say `ESRCH`: that it does not have what this is about.
    ///
    /// # Errors
    /// The error number of the node that has it, or `ESRCH` if none has.
    pub fn change_where_it_is(&'static self, change: ProcessChange) -> Result<(), i32> {
        (0..self.boot.nodes)
            .map(NodeId)
            .filter(|&node| node != self.me)
            .map(|node| self.change_on(node, change.clone()))
            .find(|&result| result != Err(libc::ESRCH))
            .unwrap_or(Err(libc::ESRCH))
    }

    /// Asks a node for a descriptor that the program has open there. Returns the number of its process.
    ///
    /// # Errors
    /// `EBADF` if it is not open.
    pub fn borrow_descriptor(&'static self, owner: usize, descriptor: i32) -> Result<i32, i32> {
        let answer = self.ask_for(node_of(owner), move |ticket| Wire::Lend { ticket, descriptor })?;
        match i32::try_from(answer) {
            Ok(process @ 0..) => Ok(process),
            _ => Err(error_number(answer.saturating_neg())),
        }
    }

    /// The first descriptor, of a number or above, that the program has open on another node.
    pub fn next_descriptor(&'static self, owner: usize, from: i32) -> Option<i32> {
        let answer = self.ask(node_of(owner), move |ticket| Wire::NextDescriptor { ticket, from });
        i32::try_from(answer).ok().filter(|&number| number >= from)
    }

    fn change_on(&'static self, node: NodeId, change: ProcessChange) -> Result<(), i32> {
        match self.ask_for(node, move |ticket| Wire::Everywhere { ticket, change })? {
            0 => Ok(()),
            error => Err(error_number(error)),
        }
    }
}

fn node_of(number: usize) -> NodeId {
    NodeId(u16::try_from(number).expect("a node of the run"))
}
