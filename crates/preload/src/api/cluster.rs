//! The run as a machine, and calls to the kernel on a private stack.

use super::processors::Processors;
use crate::private_stack::on_private_stack;
use gondwana_api::{Error, Host};
use gondwana_node::Node;
use gondwana_topology::Machine;
use std::sync::OnceLock;

/// The run, seen from this node.
pub(super) struct Cluster {
    pub machine: Machine,
    pub processors: Processors,
    /// This node's computer.
    pub host: Host,
}

static CLUSTER: OnceLock<Cluster> = OnceLock::new();

impl Cluster {
    /// Takes the machine from a node that begins.
    pub(super) fn begin(node: &'static Node) -> &'static Self {
        CLUSTER.get_or_init(|| {
            let machine = node.machine();
            let processors = Processors::of(&machine, node.number());
            Self { machine, processors, host: Host::new() }
        })
    }
}

/// The run, once it has started.
pub(super) fn cluster() -> Option<&'static Cluster> {
    CLUSTER.get()
}

/// The node, unless this is a forked child.
pub(super) fn node() -> Result<&'static Node, Error> {
    Node::current().ok_or_else(|| unsupported("the child of a fork is no part of the run"))
}

pub(super) fn unsupported(sentence: impl Into<String>) -> Error {
    Error::new(libc::ENOTSUP, sentence)
}

/// Runs a function with system calls on a stack that the kernel can write to.
pub(super) fn asking<R>(call: impl FnOnce() -> R) -> R {
    let mut call = Some(call);
    let mut result = None;
    on_private_stack(&mut || result = call.take().map(|call| call()));
    result.expect("the function is called")
}
