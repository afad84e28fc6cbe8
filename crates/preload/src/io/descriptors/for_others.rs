//! Calls of threads of other nodes on descriptors of this node: the counterpart of `there`.

use super::status::status;
use crate::io::Failing;
use crate::io::blocks::Blocks;
use crate::pthread::cancel::be_interruptible;
use gondwana_locks::lock;
use gondwana_node::{CallMemory, DescriptorCall, DescriptorDone, Direction, Pointer};
use libc::c_int;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::Mutex;

const WORD: usize = size_of::<u64>();

/// Any function of the C library with whole words for arguments: those that it does not have are in registers that it does not read.
type Function = unsafe extern "C-unwind" fn(u64, u64, u64, u64, u64, u64) -> i64;

/// Memory of a call, as aligned as any that a program may pass.
struct Range {
    memory: CallMemory,
    bytes: Blocks,
}

impl Range {
    /// Takes the contents from what travelled with the call.
    fn new(memory: CallMemory, bytes: &mut &[u8]) -> Self {
        let length = memory.length as usize;
        let mut range = Self { memory, bytes: Blocks::new(length) };
        if memory.direction != Direction::Filled {
            let (contents, rest) = bytes.split_at_checked(length).unwrap_or((bytes, &[]));
            *bytes = rest;
            range.bytes[..contents.len()].copy_from_slice(contents);
        }
        range
    }

    fn address(&self) -> u64 {
        self.bytes.as_ptr() as u64
    }
}

/// [`call_here`] in the receiving thread, if the call waits for nothing; otherwise `None`.
pub(crate) fn call_at_once(call: &DescriptorCall, bytes: &[u8]) -> Option<DescriptorDone> {
    let [number, _, third, fourth, ..] = call.arguments.map(u64::cast_signed);
    let before = crate::errno::get();
    if let Some(done) = about_process(call) {
        crate::errno::set(before);
        return Some(done);
    }
    let done = match (call.function.as_str(), &*call.memory) {
        ("lseek" | "lseek64", []) => {
            let offset = call.arguments[1].cast_signed();
            // SAFETY: touches no memory.
            at_once(vec![], || unsafe { gondwana_sys::syscall!(libc::SYS_lseek, number, offset, third) })
        }
        ("fstat" | "fstat64", [memory]) if memory.length as usize == size_of::<libc::stat>() => {
            let mut found = vec![0_u8; memory.length as usize];
            let place = found.as_mut_ptr();
            // SAFETY: the memory is as long as the structure.
            at_once(found, || unsafe { gondwana_sys::syscall!(libc::SYS_fstat, number, place) })
        }
        ("read", [memory]) => read_at_once(number, memory.length, -1),
        ("pread" | "pread64", [memory]) if fourth >= 0 => read_at_once(number, memory.length, fourth),
        ("write", [_]) => write_at_once(number, bytes, -1),
        ("pwrite" | "pwrite64", [_]) if fourth >= 0 => write_at_once(number, bytes, fourth),
        _ => return None,
    };
    crate::errno::set(before);
    // The file system cannot do it without waiting, or not say so, or takes aligned memory only.
    done.filter(|done| ![libc::EAGAIN, libc::EOPNOTSUPP, libc::EINVAL].contains(&done.error))
}

/// What this process has used, and its number: no functions on descriptors, and made here only, since those of this library ask all nodes.
fn about_process(call: &DescriptorCall) -> Option<DescriptorDone> {
    let [memory] = *call.memory else { return None };
    let mut found = vec![0_u8; memory.length as usize];
    let (which, place) = (call.arguments[0].cast_signed(), found.as_mut_ptr());
    match call.function.as_str() {
        "clock_gettime" => {
            // SAFETY: the memory is as long as the structure.
            at_once(found, || unsafe { gondwana_sys::syscall!(libc::SYS_clock_gettime, which, place) })
        }
        "getrusage" => {
            // SAFETY: the memory is as long as the structure.
            at_once(found, || unsafe { gondwana_sys::syscall!(libc::SYS_getrusage, which, place) })
        }
        "getpid" => {
            let number = gondwana_sys::process().to_ne_bytes().to_vec();
            Some(DescriptorDone { result: 0, error: 0, bytes: number })
        }
        _ => None,
    }
}

/// Makes a system call, after which memory travels unless it has failed.
fn at_once(memory: Vec<u8>, call: impl FnOnce() -> i64) -> Option<DescriptorDone> {
    crate::errno::set(0);
    let result = call();
    Some(DescriptorDone { result, error: crate::errno::get(), bytes: memory })
}

/// Reads what is in the kernel's memory.
fn read_at_once(number: i64, length: u32, offset: i64) -> Option<DescriptorDone> {
    let mut read = vec![0_u8; length as usize];
    let piece = Box::new(libc::iovec { iov_base: read.as_mut_ptr().cast(), iov_len: read.len() });
    // SAFETY: the memory is as long as told.
    let mut done = at_once(vec![], || unsafe {
        gondwana_sys::syscall!(libc::SYS_preadv2, number, &raw const *piece, 1, offset, 0, libc::RWF_NOWAIT)
    })?;
    read.truncate(usize::try_from(done.result).unwrap_or(0));
    done.bytes = read;
    Some(done)
}

/// Writes what the kernel's memory takes, unless that might bring the receiving thread a signal: by a pipe or a socket.
fn write_at_once(number: i64, bytes: &[u8], offset: i64) -> Option<DescriptorDone> {
    let found = status(c_int::try_from(number).ok()?)?;
    // Events have no type.
    if ![libc::S_IFREG, 0].contains(&(found.st_mode & libc::S_IFMT)) {
        return None;
    }
    let piece = Box::new(libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() });
    // SAFETY: the memory is as long as told.
    at_once(vec![], || unsafe {
        gondwana_sys::syscall!(libc::SYS_pwritev2, number, &raw const *piece, 1, offset, 0, libc::RWF_NOWAIT)
    })
}

/// For another node: makes a call on a descriptor of this one, by the function that a thread of the program would call here. Waiting
/// ends when `is_interrupted`.
pub(crate) fn call_here(
    call: &DescriptorCall,
    mut bytes: &[u8],
    is_interrupted: &dyn Fn() -> bool,
) -> DescriptorDone {
    let Some(function) = function(&call.function) else {
        return DescriptorDone { result: -1, error: libc::ENOSYS, bytes: vec![] };
    };
    be_interruptible();
    let mut arguments = call.arguments;
    let mut ranges: Vec<Range> = vec![];
    for &memory in &call.memory {
        let range = Range::new(memory, &mut bytes);
        let address = range.address();
        match memory.pointer {
            Pointer::Argument(index) => {
                if let Some(argument) = arguments.get_mut(usize::from(index)) {
                    *argument = address;
                }
            }
            Pointer::Inside { memory, at } => {
                let outer = ranges.get_mut(usize::from(memory)).map(|range| &mut *range.bytes);
                let place = outer.and_then(|outer| outer.get_mut(at as usize..at as usize + WORD));
                if let Some(place) = place {
                    place.copy_from_slice(&address.to_ne_bytes());
                }
            }
        }
        ranges.push(range);
    }
    let [a, b, c, d, e, f] = arguments;
    let (result, error) = loop {
        crate::errno::set(0);
        // SAFETY: a function of this name, with the arguments that the program gave it, and memory as long as the program's.
        let result = unsafe { function(a, b, c, d, e, f) };
        let error = crate::errno::get();
        // The signal may have been for the call before. A call that has succeeded may leave any error number, and one that closes
        // has done so.
        let failed = c_int::from_word(result).failed();
        let repeats = failed && error == libc::EINTR && call.function != "close";
        if !repeats || is_interrupted() {
            break (result, error);
        }
    };
    let written = ranges.iter().flat_map(|range| {
        let length = match range.memory.direction {
            Direction::Read => 0,
            Direction::Changed => range.memory.length as usize,
            Direction::Filled => usize::try_from(result).unwrap_or(0).min(range.memory.length as usize),
        };
        range.bytes[..length].to_vec()
    });
    DescriptorDone { result, error, bytes: written.collect() }
}

/// The function of a name: this library's, in front of the C library's, or the C library's.
fn function(name: &str) -> Option<Function> {
    static KNOWN: Mutex<Option<HashMap<String, usize>>> = Mutex::new(None);
    let mut known = lock(&KNOWN);
    let known = known.get_or_insert_default();
    let address = match known.get(name) {
        Some(&address) => address,
        None => *known.entry(name.to_owned()).or_insert(address(&CString::new(name).ok()?)?),
    };
    // SAFETY: functions on descriptors have numbers and pointers for arguments, and a number or a pointer for a result.
    Some(unsafe { std::mem::transmute::<usize, Function>(address) })
}

fn address(name: &CStr) -> Option<usize> {
    // SAFETY: this library is never unloaded.
    let own = unsafe { gondwana_elf::loaded::at(address as *const () as usize) }?;
    own.function(name).or_else(|| {
        // SAFETY: the name is a C string.
        let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } as usize;
        (next != 0).then_some(next)
    })
}
