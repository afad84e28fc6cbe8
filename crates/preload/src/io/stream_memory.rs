//! The memory of the C library's open streams and directories: its address gives the node that opened them.
//!
//! A stream is valid on its node only, but the program may pass its address to a thread of another node. So each node
//! allocates streams in its own range of addresses. The ranges of other nodes are zeroed memory: inlined code such as
//! `getc_unlocked` finds empty buffers there, and then calls an interposed function.

use crate::map::kernel;
use crate::private_stack::uninterrupted;
use gondwana_locks::lock;
use gondwana_node::StreamCall;
use libc::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The start of node 0's range: between the runtime's mappings and the addresses of programs.
pub(crate) const BASE: usize = 0x4000_0000_0000;

/// The ranges have this many bytes, as a power of two.
pub(crate) const SHIFT: u32 = 26;

/// The number of ranges: the most nodes of a run.
pub(crate) const RANGES: usize = 256;

/// The number of this node; that of none as long as streams are anywhere.
pub(crate) static OWN: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The C library's standard input on nodes other than node 0; otherwise an invalid address. Its buffer is node 0's.
pub(crate) static STDIN: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The C library's standard input, whether it is this node's or not.
static INPUT: AtomicPtr<libc::FILE> = AtomicPtr::new(std::ptr::null_mut());

/// Its standard output and error. Each node prints by its own; their locks are common.
static OUTPUTS: [AtomicPtr<libc::FILE>; 2] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 2];

/// The header of each block: its class. Its size keeps blocks aligned as `malloc` does.
const HEADER: usize = 16;

/// Free blocks by class (log2 of the size), linked through their first word.
struct Blocks {
    /// Memory that was never handed out.
    fresh: usize,
    end: usize,
    free: [usize; SHIFT as usize + 1],
}

static BLOCKS: Mutex<Blocks> = Mutex::new(Blocks { fresh: 0, end: 0, free: [0; SHIFT as usize + 1] });

/// Maps the ranges of all nodes: its own for streams, those of others for the marks of their streams.
pub(crate) fn begin(node: usize, nodes: usize) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: maps fresh memory where nothing is.
    let ranges = unsafe {
        kernel::mmap(BASE as *mut c_void, nodes << SHIFT, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    if ranges as usize != BASE {
        crate::report::fatal("the memory for streams cannot be had; allow more address space (ulimit -v)");
    }
    let start = BASE + (node << SHIFT);
    let mut blocks = lock(&BLOCKS);
    (blocks.fresh, blocks.end) = (start, start + (1 << SHIFT));
    OWN.store(node, Ordering::Relaxed);
    // SAFETY: the C library has set the variable, and no other thread runs yet.
    let [input, output, errors] = unsafe { [stdin, stdout, stderr] };
    INPUT.store(input, Ordering::Relaxed);
    for (place, stream) in OUTPUTS.iter().zip([output, errors]) {
        place.store(stream, Ordering::Relaxed);
    }
    if node != 0 {
        STDIN.store(input as usize, Ordering::Relaxed);
    }
}

unsafe extern "C" {
    static stdin: *mut libc::FILE;
    static stdout: *mut libc::FILE;
    static stderr: *mut libc::FILE;
}

/// The node in whose range an address is.
#[inline]
fn range_of(address: usize) -> Option<usize> {
    let range = address.wrapping_sub(BASE) >> SHIFT;
    (range < RANGES).then_some(range)
}

/// True for a block from [`allocate`].
#[inline]
pub(crate) fn contains(address: usize) -> bool {
    range_of(address).is_some()
}

/// A block of memory; null when there is none left.
pub(crate) fn allocate(size: usize) -> *mut c_void {
    uninterrupted(|| take(size))
}

fn take(size: usize) -> *mut c_void {
    let mut blocks = lock(&BLOCKS);
    let bytes = size.saturating_add(HEADER).checked_next_power_of_two().unwrap_or(usize::MAX);
    let class = bytes.trailing_zeros() as usize;
    let block = match blocks.free.get(class) {
        None => 0,
        Some(0) if blocks.end - blocks.fresh < bytes => 0,
        Some(0) => {
            let block = blocks.fresh;
            blocks.fresh += bytes;
            block
        }
        Some(&block) => {
            // SAFETY: a free block of this range, which holds the address of the next.
            blocks.free[class] = unsafe { ((block + HEADER) as *const usize).read() };
            block
        }
    };
    if block == 0 {
        crate::errno::set(libc::ENOMEM);
        return std::ptr::null_mut();
    }
    // SAFETY: the block is longer than its header, and nobody else's.
    unsafe { (block as *mut usize).write(class) };
    (block + HEADER) as *mut c_void
}

/// A block of memory that is all zero; null when there is none left.
pub(crate) fn allocate_zeroed(size: usize) -> *mut c_void {
    let block = allocate(size);
    if !block.is_null() {
        // SAFETY: the block has that many bytes.
        unsafe { block.cast::<u8>().write_bytes(0, size) };
    }
    block
}

/// Frees a block of this node.
pub(crate) fn free(pointer: *mut c_void) {
    uninterrupted(|| give_back(pointer));
}

fn give_back(pointer: *mut c_void) {
    let block = pointer as usize - HEADER;
    let mut blocks = lock(&BLOCKS);
    // SAFETY: a block from `allocate` that its owner gives back; its first words are ours again.
    unsafe {
        let class = (block as *const usize).read();
        pointer.cast::<usize>().write(blocks.free[class]);
        blocks.free[class] = block;
    }
}

/// How many bytes a block of this node has.
pub(crate) fn usable_size(pointer: *mut c_void) -> usize {
    // SAFETY: a block from `allocate`, which its header precedes.
    let class = unsafe { ((pointer as usize - HEADER) as *const usize).read() };
    (1 << class) - HEADER
}

/// The node that has opened a stream or directory, if it is another one.
#[inline]
pub(crate) fn opener_of(address: usize) -> Option<usize> {
    match range_of(address) {
        Some(opener) => Some(opener).filter(|&opener| opener != OWN.load(Ordering::Relaxed)),
        None => (address == STDIN.load(Ordering::Relaxed)).then_some(0),
    }
}

/// The C library's standard input, read at the start. A program that uses `stdin` has that variable in its own data,
/// which is shared.
pub(crate) fn standard_input() -> *mut libc::FILE {
    INPUT.load(Ordering::Relaxed)
}

/// The names, in messages, of the streams of which there is one for the whole program.
const COMMON: [u64; 2] = [StreamCall::OUTPUT, StreamCall::ERRORS];

/// The name of standard output or error in messages.
pub(super) fn common_name_of(stream: *mut libc::FILE) -> Option<u64> {
    let at = OUTPUTS.iter().position(|output| output.load(Ordering::Relaxed) == stream)?;
    COMMON.get(at).copied()
}

/// Standard output or error, by its name.
pub(super) fn common_stream(name: u64) -> Option<*mut libc::FILE> {
    let at = COMMON.iter().position(|&common| common == name)?;
    Some(OUTPUTS[at].load(Ordering::Relaxed))
}
