//! Accesses to the [thread memory](gondwana_memory::ThreadMemory) and the [mapped files](gondwana_node::MappedFiles) of nodes of other
//! computers, one instruction at a time.
//!
//! Nobody can access those addresses here, so that the instruction faults. Its handler gets the words of memory from the node that has
//! them, and goes on in a copy of the instruction that works on these words, behind which another instruction faults. If the words have
//! changed by then, the node exchanges them for its own; where those have changed meanwhile, an atomic instruction is executed anew.

use crate::registers::{general, set_general, set_mask};
use crate::report;
use crate::signals::ALL_BUT_NEEDED;
use gondwana_atomics::{Action, LONGEST, MOST_BYTES, Redirected};
use gondwana_node::Node;
use gondwana_page::{PAGE_SIZE, to_usize};
use gondwana_topology::NodeId;
use libc::{siginfo_t, ucontext_t};
use std::cell::Cell;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// An instruction that faults in a program (`hlt`).
const STOP: u8 = 0xf4;

/// Bytes of memory in whose blocks an instruction may need its memory to be.
const BLOCK: usize = 64;

const WORD: usize = size_of::<u64>();

/// The words of memory of one instruction, at their place in a block.
const WORDS: usize = (MOST_BYTES + BLOCK) / WORD;

/// Places for instructions, each for one thread at a time.
const PLACES: usize = 15;

/// Bytes of all places.
const BYTES: usize = 16 * PAGE_SIZE;

/// Where one thread executes an instruction. The memory is aligned as that of the program.
#[repr(C, align(64))]
struct Place {
    words: [u64; WORDS],
    code: [u8; LONGEST + 1],
    taken: AtomicBool,
}

const _: () = assert!(size_of::<Place>() * PLACES <= BYTES);

/// The places: one view of them to be written to, and one to be executed.
struct Places {
    written: usize,
    executed: usize,
}

/// An instruction that a thread executes in a place.
struct Inside {
    place: usize,
    instruction: Redirected,
    /// The registers and flags before it, and where it is in the program.
    registers: [u64; 16],
    flags: u64,
    address: u64,
    mask: u64,
    /// The node whose memory it accesses, and where that begins.
    owner: NodeId,
    memory: usize,
    /// The words before it; none if it writes all of them.
    before: Vec<u64>,
    /// What its register holds meanwhile.
    at: u64,
}

thread_local! {
    /// From a box; null outside. Without a destructor: faults come until a thread's very end.
    static INSIDE: Cell<*mut Inside> = const { Cell::new(null_mut()) };
}

impl Places {
    /// The places of this process.
    fn get() -> &'static Self {
        static PLACES_OF_PROCESS: OnceLock<Places> = OnceLock::new();
        PLACES_OF_PROCESS.get_or_init(|| match Self::new() {
            Ok(places) => places,
            Err(why) => report::fatal(&format!("memory for instructions of the program: {why}")),
        })
    }

    fn new() -> std::io::Result<Self> {
        // SAFETY: a new file, and new mappings of it.
        unsafe {
            let file = libc::memfd_create(c"gondwana-instructions".as_ptr(), libc::MFD_CLOEXEC);
            if file < 0 {
                return Err(std::io::Error::last_os_error());
            }
            let file = OwnedFd::from_raw_fd(file);
            std::fs::File::from(file.try_clone()?).set_len(BYTES as u64)?;
            let map = |protection: i32| {
                let mapped = gondwana_sys::syscall!(
                    libc::SYS_mmap,
                    0,
                    BYTES,
                    protection,
                    libc::MAP_SHARED,
                    file.as_raw_fd(),
                    0
                );
                usize::try_from(mapped).map_err(|_| std::io::Error::last_os_error())
            };
            Ok(Self {
                written: map(libc::PROT_READ | libc::PROT_WRITE)?,
                executed: map(libc::PROT_READ | libc::PROT_EXEC)?,
            })
        }
    }

    fn place(&self, index: usize) -> *mut Place {
        (self.written as *mut Place).wrapping_add(index)
    }

    /// Takes a place; waits for one if all are taken.
    fn take(&self) -> usize {
        loop {
            for index in 0..PLACES {
                // SAFETY: mapped as long as the process; zero is a valid place.
                let taken = unsafe { &(*self.place(index)).taken };
                if !taken.swap(true, Ordering::Acquire) {
                    return index;
                }
            }
            std::thread::yield_now();
        }
    }

    fn give_back(&self, index: usize) {
        // SAFETY: as above.
        unsafe { (*self.place(index)).taken.store(false, Ordering::Release) };
    }

    /// Where the code of a place is executed.
    fn code(&self, index: usize) -> usize {
        self.executed + index * size_of::<Place>() + std::mem::offset_of!(Place, code)
    }
}

/// Handles a fault. False if it has nothing to do with memory of other nodes.
///
/// # Safety
/// Description and context are those that the kernel has passed to a handler of SIGSEGV.
pub(crate) unsafe fn on_fault(info: *mut siginfo_t, context: *mut ucontext_t) -> bool {
    // SAFETY: the caller's promise.
    let (info, context) = unsafe { (&*info, &mut *context) };
    let rip = context.uc_mcontext.gregs[libc::REG_RIP as usize].cast_unsigned();
    // SAFETY: null or from a box, which only this thread uses.
    let inside = unsafe { INSIDE.get().as_ref() };
    let end = inside.map(|inside| Places::get().code(inside.place) + inside.instruction.code.len());
    if end == Some(to_usize(rip)) {
        // SAFETY: as above, and not null.
        let inside = unsafe { Box::from_raw(INSIDE.replace(null_mut())) };
        finish(&inside, context);
        return true;
    }
    // SAFETY: the kernel has filled it in.
    let address = unsafe { info.si_addr() } as usize;
    let is_access = info.si_code > 0 && info.si_code != libc::SI_KERNEL;
    let Some(node) = Node::current().filter(|_| is_access) else { return false };
    let Some(owner) = node.out_of_reach(address) else { return false };
    // SAFETY: the thread was about to execute the code there.
    if !unsafe { begin(node, owner, address, rip, context) } {
        let what = if node.mapped_files().node_of(address).is_some() {
            "a file that was mapped on"
        } else {
            "a thread-local variable of a thread of"
        };
        report::fatal(&format!(
            "an instruction at {rip:#x} accesses {what} node {owner} ({address:#x}) in a way that works on its own node only: place both \
             threads on one node, or use --fabric shm"
        ));
    }
    true
}

/// Has the thread execute its instruction on a copy of the memory. False if it cannot.
///
/// # Safety
/// The thread was about to execute the code at `rip`.
unsafe fn begin(
    node: &'static Node,
    owner: NodeId,
    address: usize,
    rip: u64,
    context: &mut ucontext_t,
) -> bool {
    if !INSIDE.get().is_null() {
        return false;
    }
    let mut code = [0; LONGEST];
    let length = readable(to_usize(rip)).min(LONGEST);
    // SAFETY: code that the thread was about to execute, as far as it is on one page, or on two that are mapped.
    unsafe { std::ptr::copy_nonoverlapping(to_usize(rip) as *const u8, code.as_mut_ptr(), length) };
    let registers = general(context);
    let flags = context.uc_mcontext.gregs[libc::REG_EFL as usize].cast_unsigned();
    let Some(instruction) = Redirected::at(rip, &code[..length], address as u64, &registers, flags) else {
        return false;
    };
    let memory = to_usize(instruction.memory);
    let words = words(memory, instruction.bytes);
    let is_elsewhere = |word: usize| node.out_of_reach(word * WORD) == Some(owner);
    // One step, for others, is one word.
    if instruction.is_atomic && words.len() > 1 || !is_elsewhere(words.start) || !is_elsewhere(words.end - 1)
    {
        return false;
    }
    let mut before = vec![];
    if instruction.action != Action::Writes {
        let mut bytes = vec![0; words.len() * WORD];
        let start = words.start * WORD;
        let all = node.read_pinned(owner, start, &mut bytes);
        all.or_else(|fault| {
            let on_page = PAGE_SIZE - start % PAGE_SIZE;
            let is_enough = instruction.may_access_less && on_page < bytes.len();
            if is_enough { node.read_pinned(owner, start, &mut bytes[..on_page]) } else { Err(fault) }
        })
        .unwrap_or_else(|_| no_access(rip, address));
        before = bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    }
    let places = Places::get();
    let index = places.take();
    // SAFETY: this thread has the place for itself.
    let at = unsafe {
        let place = &mut *places.place(index);
        place.words[words.start % (BLOCK / WORD)..][..before.len()].copy_from_slice(&before);
        place.code[..instruction.code.len()].copy_from_slice(&instruction.code);
        place.code[instruction.code.len()] = STOP;
        (&raw const place.words) as u64 + (memory % BLOCK) as u64
    };
    set_general(context, &instruction.begin(registers, at));
    context.uc_mcontext.gregs[libc::REG_RIP as usize] = (places.code(index) as u64).cast_signed();
    // No handler of the program may see these registers.
    let mask = set_mask(context, |mask| mask | ALL_BUT_NEEDED);
    let inside =
        Inside { place: index, instruction, registers, flags, address: rip, mask, owner, memory, before, at };
    INSIDE.set(Box::into_raw(Box::new(inside)));
    true
}

/// The instruction has been executed: its memory goes back, and the thread goes on behind it.
fn finish(inside: &Inside, context: &mut ucontext_t) {
    let node = Node::current().expect("the memory is that of a node");
    set_mask(context, |_| inside.mask);
    let is_done = write_back(node, inside);
    Places::get().give_back(inside.place);
    let mut now = general(context);
    let flags = context.uc_mcontext.gregs[libc::REG_EFL as usize].cast_unsigned();
    let next = if is_done {
        inside.instruction.finish(inside.address, &mut now, flags, inside.at, &inside.registers)
    } else {
        now = inside.registers;
        context.uc_mcontext.gregs[libc::REG_EFL as usize] = inside.flags.cast_signed();
        inside.address
    };
    set_general(context, &now);
    context.uc_mcontext.gregs[libc::REG_RIP as usize] = next.cast_signed();
}

/// Writes what the instruction has changed to the memory of its node. False if that has changed meanwhile, and the instruction has to be
/// executed anew.
fn write_back(node: &'static Node, inside: &Inside) -> bool {
    let Inside { instruction, owner, memory, before, .. } = inside;
    // SAFETY: this thread has the place for itself.
    let place = unsafe { &*Places::get().place(inside.place) };
    let words = words(*memory, instruction.bytes);
    match instruction.action {
        Action::Reads => true,
        Action::Writes => {
            let bytes = place.words.iter().flat_map(|word| word.to_ne_bytes());
            let bytes = bytes.skip(memory % BLOCK).take(instruction.bytes).collect();
            node.write_pinned(*owner, *memory, bytes).unwrap_or_else(|_| no_access(inside.address, *memory));
            true
        }
        Action::Any => {
            let after = &place.words[words.start % (BLOCK / WORD)..];
            let mut changed =
                words.zip(before.iter().zip(after)).filter(|(_, (before, after))| before != after);
            changed.all(|(word, (&before, &after))| {
                let at = word * WORD;
                let mut current = before;
                let no_access = |_| no_access(inside.address, at);
                while !node
                    .exchange_pinned(*owner, at, current, merged(current, before, after))
                    .unwrap_or_else(no_access)
                {
                    if instruction.is_atomic {
                        return false;
                    }
                    let mut bytes = [0; WORD];
                    node.read_pinned(*owner, at, &mut bytes)
                        .unwrap_or_else(|_| self::no_access(inside.address, at));
                    current = u64::from_ne_bytes(bytes);
                }
                true
            })
        }
    }
}

/// Ends the run: the instruction's access is not allowed on the node that has the memory either.
fn no_access(instruction: u64, address: usize) -> ! {
    report::fatal(&format!(
        "an instruction at {instruction:#x} accesses the mapped file at {address:#x} on another node, where it is protected, not mapped any \
         more, or behind the end of the file"
    ));
}

/// A word in which the bytes that an instruction has changed are as it has left them.
fn merged(current: u64, before: u64, after: u64) -> u64 {
    let (before, after) = (before.to_ne_bytes(), after.to_ne_bytes());
    let mut bytes = current.to_ne_bytes();
    for index in (0..WORD).filter(|&index| before[index] != after[index]) {
        bytes[index] = after[index];
    }
    u64::from_ne_bytes(bytes)
}

/// The numbers of the words in which some bytes are.
fn words(address: usize, bytes: usize) -> Range<usize> {
    address / WORD..(address + bytes).div_ceil(WORD)
}

/// How many bytes from an address of code on can be read for sure: those of its page, and of the next one if that is mapped.
fn readable(address: usize) -> usize {
    let left = PAGE_SIZE - address % PAGE_SIZE;
    if left >= LONGEST {
        return left;
    }
    let mut resident = 0_u8;
    let next = address + left;
    // SAFETY: asks about a page.
    let result = unsafe { gondwana_sys::syscall!(libc::SYS_mincore, next, PAGE_SIZE, &raw mut resident) };
    if result == 0 { left + PAGE_SIZE } else { left }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_bytes_replace_those_of_others() {
        assert_eq!(merged(0x1122, 0x3344, 0x3355), 0x1155);
        assert_eq!(merged(7, 1, 2), 2);
    }

    #[test]
    fn accesses_have_room_in_a_place() {
        assert_eq!(words(0x1008, 8), 0x201..0x202);
        assert_eq!(words(0x1006, 4), 0x200..0x202);
        let most = words(0x103f, MOST_BYTES);
        assert!(most.start % (BLOCK / WORD) + most.len() <= WORDS);
    }
}
