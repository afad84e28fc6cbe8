//! Asking node 0, which alone has the program's libraries in its loader.

use super::load;
use gondwana_node::{Caller, Node};
use gondwana_topology::NodeId;
use libc::{c_char, c_int};
use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A request to node 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) enum Operation {
    /// Open the library with this path.
    Open,
    /// Find the symbol with this name.
    Find,
}

/// The most bytes of an error message.
const SENTENCE: usize = 1024;

/// A question and its answer, in shared memory; the text follows.
#[repr(C)]
struct Request {
    operation: Operation,
    flags: c_int,
    handle: usize,
    result: usize,
    /// The length of the error message; 0 for success.
    failed: usize,
    sentence: [u8; SENTENCE],
}

/// Has node 0 do something; the result, or a sentence for `dlerror`.
pub(super) fn ask(
    node: &'static Node,
    operation: Operation,
    flags: c_int,
    handle: usize,
    text: &CStr,
) -> Result<usize, String> {
    let text = text.to_bytes_with_nul();
    let head = size_of::<Request>();
    let address = node.allocate(head + text.len(), 16, Caller::NONE).ok_or("out of memory")?;
    let request = address as *mut Request;
    // SAFETY: the block is this long and nobody else's; node 0 changes it only during the call.
    unsafe {
        request.write(Request { operation, flags, handle, result: 0, failed: 0, sentence: [0; SENTENCE] });
        std::ptr::copy_nonoverlapping(text.as_ptr(), (address + head) as *mut u8, text.len());
        let answer = match node.call_on(NodeId(0), serve, address) {
            Err(_) => Err("node 0 has no room for another thread".to_owned()),
            Ok(_) if (*request).failed == 0 => Ok((*request).result),
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
        (&mut *(address as *mut Request), CStr::from_ptr((address + size_of::<Request>()) as *const c_char))
    };
    let answer = match request.operation {
        Operation::Open => {
            load::open(node, Path::new(std::ffi::OsStr::from_bytes(text.to_bytes())), request.flags)
        }
        Operation::Find => load::find(request.handle, text),
    };
    match answer {
        Ok(result) => request.result = result,
        Err(sentence) => {
            let bytes = &sentence.as_bytes()[..sentence.len().min(SENTENCE)];
            request.sentence[..bytes.len()].copy_from_slice(bytes);
            request.failed = bytes.len();
        }
    }
    0
}
