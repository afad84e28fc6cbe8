//! Calls on descriptors of other nodes, which those make: the other side is `for_others`.

use super::extend::extend;
use crate::accesses;
use crate::io::buffers::{Buffer, Failing, Use};
use gondwana_node::{CallMemory, DescriptorCall, Direction, MOST_BYTES, Node, Pointer};
use libc::{c_void, ssize_t};

/// Most bytes of memory of one call: with their description they fit into a message.
pub(crate) const MOST: usize = MOST_BYTES / 2;

const WORD: usize = size_of::<u64>();

/// The node that has a descriptor open.
#[derive(Clone, Copy)]
pub(crate) struct There {
    pub node: &'static Node,
    pub owner: usize,
}

/// Memory of a call, with its contents before it if it reads them.
struct Range {
    buffer: Buffer,
    pointer: Pointer,
    /// Where its contents begin among those of all.
    at: usize,
}

impl There {
    /// Has the node make a call with these arguments, which uses this memory: each buffer is an argument, or an earlier buffer points
    /// to it.
    pub(crate) fn call<R: Failing>(&self, function: &str, arguments: &[i64], buffers: &[Buffer]) -> R {
        let Some(Contents { arguments, ranges, bytes }) = contents(arguments, buffers) else {
            self.node.refuse(&format!(
                "{function}() on a descriptor of node {}, with more than {MOST} bytes of memory",
                self.owner
            ));
            crate::errno::set(libc::ENOBUFS);
            return R::FAILED;
        };
        let memory = || {
            ranges.iter().map(|range| CallMemory {
                pointer: range.pointer,
                length: u32::try_from(range.buffer.length).expect("no more than MOST"),
                direction: match range.buffer.usage {
                    Use::Read => Direction::Read,
                    Use::Write => Direction::Changed,
                },
            })
        };
        let ask = || self.ask(function, &arguments, memory().collect(), bytes.clone());
        let (mut result, mut written) = ask();
        if result == -1 && crate::errno::get() == libc::EMFILE && extend(self.owner) {
            (result, written) = ask();
        }
        let mut rest = written.as_mut_slice();
        for (range, number) in ranges.iter().zip(0_u16..) {
            if matches!(range.buffer.usage, Use::Read) {
                continue;
            }
            let Some((new, behind)) = rest.split_at_mut_checked(range.buffer.length) else { break };
            // Addresses in it are the other node's.
            for inner in &ranges {
                if let Pointer::Inside { memory, at } = inner.pointer
                    && memory == number
                {
                    new[at as usize..][..WORD].copy_from_slice(&inner.buffer.start.to_ne_bytes());
                }
            }
            rest = behind;
            if new == &bytes[range.at..][..range.buffer.length] {
                // What only reads may have been given memory that is not to be written to.
                continue;
            }
            // SAFETY: memory that the program gave the call to write to.
            let copied = unsafe { accesses::copy(new.as_ptr(), range.buffer.start as *mut u8, new.len()) };
            if copied < new.len() {
                crate::errno::set(libc::EFAULT);
                return R::FAILED;
            }
        }
        R::from_word(result)
    }

    /// Has the node move at most `length` bytes, no more than [`MOST`], between the descriptor and private memory: argument 1 of the
    /// call. Gives how many.
    ///
    /// # Safety
    /// The memory has that many bytes.
    pub(crate) unsafe fn transfer(
        &self,
        function: &str,
        arguments: &[i64],
        (memory, length): (*mut c_void, usize),
        into_memory: bool,
    ) -> ssize_t {
        let bytes = if into_memory {
            vec![]
        } else {
            // SAFETY: as promised.
            unsafe { std::slice::from_raw_parts(memory.cast::<u8>(), length) }.to_vec()
        };
        let direction = if into_memory { Direction::Filled } else { Direction::Read };
        let moved = CallMemory {
            pointer: Pointer::Argument(1),
            length: u32::try_from(length).expect("no more than MOST"),
            direction,
        };
        let (result, filled) = self.ask(function, arguments, vec![moved], bytes);
        let filled = &filled[..filled.len().min(length)];
        // SAFETY: as promised.
        unsafe { std::ptr::copy_nonoverlapping(filled.as_ptr(), memory.cast(), filled.len()) };
        ssize_t::from_word(result)
    }

    fn ask(
        &self,
        function: &str,
        arguments: &[i64],
        memory: Vec<CallMemory>,
        bytes: Vec<u8>,
    ) -> (i64, Vec<u8>) {
        let mut words = [0; 6];
        for (word, argument) in words.iter_mut().zip(arguments) {
            *word = argument.cast_unsigned();
        }
        let call = DescriptorCall { function: function.to_owned(), arguments: words, memory };
        let before = crate::errno::get();
        let breaks = writes_to_nobody(&call);
        let done = self.node.call_descriptor(self.owner, call, bytes);
        if done.error == libc::EPIPE && breaks {
            // The kernel has told the thread that made the call.
            // SAFETY: touches no memory.
            unsafe {
                gondwana_sys::syscall!(
                    libc::SYS_tgkill,
                    gondwana_sys::process(),
                    gondwana_sys::thread(),
                    libc::SIGPIPE
                )
            };
        }
        crate::errno::set(if done.error == 0 { before } else { done.error });
        (done.result, done.bytes)
    }
}

/// True if a call that nobody reads from raises `SIGPIPE`.
fn writes_to_nobody(call: &DescriptorCall) -> bool {
    let flags = match call.function.as_str() {
        "write" | "pwritev2" | "splice" | "tee" | "vmsplice" | "sendfile" | "sendfile64" => 0,
        "sendmsg" => call.arguments[2],
        "send" | "sendto" | "sendmmsg" => call.arguments[3],
        _ => return false,
    };
    flags & u64::from(libc::MSG_NOSIGNAL.cast_unsigned()) == 0
}

/// What travels with a call.
struct Contents {
    arguments: Vec<i64>,
    ranges: Vec<Range>,
    /// What is in the ranges.
    bytes: Vec<u8>,
}

/// What goes to the other node in place of a pointer to where no memory is: its kernel finds none there either, if it looks.
const NOWHERE: u64 = 1;

/// The ranges of memory of a call, and what is in them; `None` if that is too much.
fn contents(arguments: &[i64], buffers: &[Buffer]) -> Option<Contents> {
    let mut arguments = arguments.to_vec();
    let mut ranges: Vec<Range> = vec![];
    let (mut bytes, mut is_any_nowhere) = (vec![], false);
    for &buffer in buffers.iter().filter(|buffer| buffer.start != 0 && buffer.length != 0) {
        let pointers =
            arguments.iter().zip(0_u8..).filter(|(word, _)| word.cast_unsigned() == buffer.start as u64);
        let mut pointers = pointers.map(|(_, index)| Pointer::Argument(index)).peekable();
        let pointer = if pointers.peek().is_none() {
            match inside(&ranges, &bytes, buffer.start) {
                Some(pointer) => pointer,
                // What would point to it is nowhere.
                None if is_any_nowhere => continue,
                None => return None,
            }
        } else {
            // A buffer may be named twice, and two arguments may be the same one.
            match pointers.find(|&pointer| ranges.iter().all(|range| range.pointer != pointer)) {
                Some(pointer) => pointer,
                None => continue,
            }
        };
        if bytes.len() + buffer.length > MOST {
            return None;
        }
        let at = bytes.len();
        bytes.resize(at + buffer.length, 0);
        // SAFETY: memory that the program gave the call to read or to write to, if it is there.
        let read =
            unsafe { accesses::copy(buffer.start as *const u8, bytes[at..].as_mut_ptr(), buffer.length) };
        // There may be less memory than a result might need.
        let is_there = match buffer.usage {
            Use::Read => read == buffer.length,
            Use::Write => read > 0,
        };
        if is_there {
            ranges.push(Range { buffer, pointer, at });
            continue;
        }
        bytes.truncate(at);
        is_any_nowhere = true;
        match pointer {
            Pointer::Argument(index) => arguments[usize::from(index)] = NOWHERE.cast_signed(),
            Pointer::Inside { memory, at } => {
                let outer = ranges[usize::from(memory)].at;
                bytes[outer + at as usize..][..WORD].copy_from_slice(&NOWHERE.to_ne_bytes());
            }
        }
    }
    Some(Contents { arguments, ranges, bytes })
}

/// Where an address is among the contents of earlier ranges.
fn inside(ranges: &[Range], bytes: &[u8], address: usize) -> Option<Pointer> {
    let places = ranges.iter().zip(0_u16..).flat_map(|(range, memory)| {
        let contents = &bytes[range.at..range.at + range.buffer.length];
        let words = contents.chunks_exact(WORD).zip((0_u32..).step_by(WORD));
        words
            .filter(|(word, _)| **word == address.to_ne_bytes())
            .map(move |(_, at)| Pointer::Inside { memory, at })
    });
    places.into_iter().find(|&place| ranges.iter().all(|range| range.pointer != place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_found_by_arguments_and_by_what_is_in_memory() {
        let (text, more) = ([1_u8, 2, 3], [4_u8; 2]);
        let pieces = [
            libc::iovec { iov_base: text.as_ptr().cast_mut().cast(), iov_len: 3 },
            libc::iovec { iov_base: more.as_ptr().cast_mut().cast(), iov_len: 2 },
        ];
        let header = [pieces.as_ptr() as u64, 2];
        let buffers = [
            Buffer::value(&raw const header),
            Buffer::value(&raw const pieces),
            Buffer::read(text.as_ptr(), 3),
            Buffer::read(more.as_ptr(), 2),
            Buffer::read(std::ptr::null::<u8>(), 8),
        ];
        let Contents { ranges, bytes, .. } = contents(&[5, header.as_ptr() as i64, 0], &buffers).unwrap();
        let pointers: Vec<Pointer> = ranges.iter().map(|range| range.pointer).collect();
        let inside = |memory, at| Pointer::Inside { memory, at };
        assert_eq!(pointers, [Pointer::Argument(1), inside(0, 0), inside(1, 0), inside(1, 16)]);
        assert_eq!(bytes[size_of_val(&header) + size_of_val(&pieces)..], [1, 2, 3, 4, 4]);
    }

    #[test]
    fn the_same_memory_may_be_two_arguments_and_be_named_twice() {
        let text = [7_u8; 4];
        let word = text.as_ptr() as i64;
        let both = [Buffer::read(text.as_ptr(), 4), Buffer::read(text.as_ptr(), 4)];
        assert_eq!(contents(&[1, word, word], &both).unwrap().ranges.len(), 2);
        let Contents { ranges, bytes, .. } = contents(&[1, word, 0], &both).unwrap();
        assert_eq!((ranges.len(), bytes.len()), (1, 4));
    }

    #[test]
    fn memory_that_nothing_points_to_or_that_is_too_much_cannot_travel() {
        let text = vec![0_u8; MOST + 1];
        let word = text.as_ptr() as i64;
        assert!(contents(&[0], &[Buffer::read(text.as_ptr(), 4)]).is_none());
        assert!(contents(&[word], &[Buffer::read(text.as_ptr(), MOST)]).is_some());
        assert!(contents(&[word], &[Buffer::read(text.as_ptr(), MOST + 1)]).is_none());
    }
}
