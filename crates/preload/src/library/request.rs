//! Asking node 0, whose loader alone knows the program's libraries with all that they need.

use super::load;
use gondwana_node::{Caller, Node};
use gondwana_topology::NodeId;
use libc::c_int;
use std::ffi::CStr;

/// A request to node 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) enum Operation {
    /// Open the library with this name for code at an address.
    Open {
        /// As for `dlopen`.
        flags: c_int,
        /// The address.
        caller: usize,
    },
    /// Find the symbol with this name, which has a version behind `@` if one is wanted.
    Find {
        /// In the library with this handle, and in what it needs.
        handle: usize,
    },
}

/// What node 0 has found.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// A library, by its handle, which is 0 if it is not open; and where its [initialisers](super::initialisers) are listed.
    Library(usize, usize),
    /// A library that every node has in its own loader, or that nobody can find.
    Native,
    /// The address of a symbol.
    Symbol(usize),
    /// The distance of a thread-local variable from the control block of each thread.
    ThreadLocal(usize),
}

/// The most bytes of an error message.
const SENTENCE: usize = 1024;

/// A question and its answer, in shared memory; the text follows.
#[repr(C)]
struct Request {
    operation: Operation,
    answer: Answer,
    /// The length of the error message; 0 for success.
    failed: usize,
    sentence: [u8; SENTENCE],
}

/// Has node 0 do something; the answer, or a sentence for `dlerror`.
pub(super) fn ask(node: &'static Node, operation: Operation, text: &CStr) -> Result<Answer, String> {
    let text = text.to_bytes_with_nul();
    let head = size_of::<Request>();
    let address = node.allocate(head + text.len(), 16, Caller::NONE).ok_or("out of memory")?;
    let request = address as *mut Request;
    // SAFETY: the block is this long and nobody else's; node 0 changes it only during the call.
    unsafe {
        request.write(Request { operation, answer: Answer::Native, failed: 0, sentence: [0; SENTENCE] });
        std::ptr::copy_nonoverlapping(text.as_ptr(), (address + head) as *mut u8, text.len());
        let answer = match node.call_on(NodeId(0), serve, address) {
            Err(_) => Err("node 0 has no room for another thread".to_owned()),
            Ok(_) if (*request).failed == 0 => Ok((*request).answer),
            Ok(_) => Err(String::from_utf8_lossy(&(&(*request).sentence)[..(*request).failed]).into_owned()),
        };
        node.free(address);
        answer
    }
}

/// Runs on node 0.
unsafe extern "C" fn serve(address: usize) -> usize {
    let Some(node) = Node::current() else { return 0 };
    // SAFETY: `ask` passes a request with its text.
    let (request, text) = unsafe {
        (&mut *(address as *mut Request), CStr::from_ptr((address + size_of::<Request>()) as *const _))
    };
    let answer = match request.operation {
        Operation::Open { flags, caller } => load::open(node, text, caller, flags),
        Operation::Find { handle } => load::find(node, handle, text),
    };
    match answer {
        Ok(answer) => request.answer = answer,
        Err(sentence) => {
            let bytes = &sentence.as_bytes()[..sentence.len().min(SENTENCE)];
            request.sentence[..bytes.len()].copy_from_slice(bytes);
            request.failed = bytes.len();
        }
    }
    0
}
