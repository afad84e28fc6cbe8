//! Atomic instructions that are executed under a lock, which gives release consistency what they need.
//!
//! A trap replaces the first byte of each. Its handler takes the lock of the page that the instruction is about to change, and goes on
//! in a copy of the instruction elsewhere, behind which another trap gives the lock back. Reductions of OpenMP execute one such
//! instruction for each thread and loop, so that two traps, of about a microsecond each, are no matter.

use crate::numbers::many;
use crate::registers::{REGISTERS, set_mask};
use crate::signals::ALL_BUT_TRAPS;
use gondwana_atomics::Site;
use gondwana_elf::loaded;
use gondwana_node::{MutexKind, Node};
use gondwana_page::{PAGE_SIZE, to_usize};
use libc::{c_int, c_long, ucontext_t};
use std::cell::Cell;
use std::ops::Range;
use std::sync::OnceLock;

/// The instruction that traps.
const TRAP: u8 = 0xcc;

/// Longer than any instruction and the trap behind it.
const ROOM: usize = 16;

/// The copies are within this distance of the instructions: some name memory by its distance.
const NEAR: usize = 1 << 30;

/// An instruction and its copy.
struct Locked {
    site: Site,
    copy: usize,
    /// Where the copy's trap is.
    end: usize,
}

/// What a thread that executes a copy must put back.
#[derive(Clone, Copy, Default)]
struct Inside {
    /// The lock that it holds.
    lock: Option<usize>,
    /// Its signal mask, of which the kernel has 64 bits.
    mask: u64,
}

static LOCKED: OnceLock<Vec<Locked>> = OnceLock::new();

thread_local! {
    static INSIDE: Cell<Inside> = const { Cell::new(Inside { lock: None, mask: 0 }) };
}

/// Replaces the instructions. No other thread may run yet.
///
/// # Errors
/// If one is not what it should be, or the system does not allow it: a sentence.
pub(crate) fn begin(node: &Node) -> Result<(), String> {
    let places = node.locked_instructions();
    if places.is_empty() {
        return Ok(());
    }
    let base = loaded::base_of(None).ok_or("the program's code is not found")?;
    let text = loaded::program_text();
    let copies = near(&text, places.len() * ROOM).ok_or("there is no room near the program's code")?;
    let mut locked = vec![];
    for (place, copy) in places.iter().zip((copies..).step_by(ROOM)) {
        let address = base.wrapping_add(to_usize(*place));
        let rest = text.end.saturating_sub(address).min(ROOM);
        if !text.contains(&address) {
            return Err(format!("there is no code at {place:#x}"));
        }
        // SAFETY: the loader has mapped the program's code, which nobody changes.
        let code = unsafe { std::slice::from_raw_parts(address as *const u8, rest) };
        let site = Site::at(address as u64, code).ok_or(format!("no atomic instruction is at {place:#x}"))?;
        let moved = site.moved(code, copy as u64).ok_or(format!("{place:#x} is too far from its memory"))?;
        // SAFETY: the copies have been mapped with this much room for each.
        unsafe {
            std::ptr::copy_nonoverlapping(moved.as_ptr(), copy as *mut u8, moved.len());
            ((copy + moved.len()) as *mut u8).write(TRAP);
        }
        locked.push(Locked { site, copy, end: copy + moved.len() });
    }
    protect(copies..copies + places.len() * ROOM, libc::PROT_READ | libc::PROT_EXEC)?;
    for Locked { site, .. } in &locked {
        let first = to_usize(site.address());
        protect(first..first + 1, libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC)?;
        // SAFETY: the page is writable now, and this process's own copy of it is written to; no other thread runs.
        unsafe { (first as *mut u8).write(TRAP) };
        protect(first..first + 1, libc::PROT_READ | libc::PROT_EXEC)?;
    }
    // Called once.
    let _ = LOCKED.set(locked);
    Ok(())
}

/// True if there are such instructions.
pub(crate) fn are_some() -> bool {
    LOCKED.get().is_some()
}

/// Where the code is that a thread executes: of a copy, its original.
pub(crate) fn original(address: usize) -> usize {
    let copied =
        LOCKED.get().into_iter().flatten().find(|locked| (locked.copy..=locked.end).contains(&address));
    copied.map_or(address, |locked| to_usize(locked.site.address()))
}

/// Pages for the copies, which can be written to.
fn near(text: &Range<usize>, bytes: usize) -> Option<usize> {
    let length = bytes.next_multiple_of(PAGE_SIZE);
    let highest = text.start.checked_sub(length)? & !(PAGE_SIZE - 1);
    let lowest = highest.saturating_sub(NEAR).max(1 << 16);
    // Below the program there is mostly nothing.
    (lowest..=highest).rev().step_by(16 * PAGE_SIZE).find(|place| {
        // SAFETY: maps nothing over what is there.
        let mapped = unsafe {
            gondwana_sys::syscall!(
                libc::SYS_mmap,
                *place,
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
                -1,
                0,
            )
        };
        usize::try_from(mapped).is_ok_and(|mapped| mapped == *place)
    })
}

fn protect(range: Range<usize>, protection: c_int) -> Result<(), String> {
    let start = range.start & !(PAGE_SIZE - 1);
    let length = range.end.next_multiple_of(PAGE_SIZE) - start;
    // SAFETY: the pages are code of the program or copies of it, and stay executable.
    let result: c_long = unsafe { gondwana_sys::syscall!(libc::SYS_mprotect, start, length, protection) };
    if result == 0 { Ok(()) } else { Err("the system does not let the program's code be changed".to_owned()) }
}

/// Handles a trap. False if it is none of these instructions'.
///
/// # Safety
/// The context is that of a thread of this process that has trapped, as the kernel has passed it.
pub(crate) unsafe fn on_trap(context: *mut ucontext_t) -> bool {
    let Some(all) = LOCKED.get() else { return false };
    // SAFETY: the caller's promise.
    let context = unsafe { &mut *context };
    let registers = &mut context.uc_mcontext.gregs;
    let trap = to_usize(registers[libc::REG_RIP as usize].cast_unsigned()).wrapping_sub(1);
    for Locked { site, copy, end } in all {
        if trap == to_usize(site.address()) {
            let memory = site.memory(|number| registers[many(REGISTERS[number])].cast_unsigned());
            let lock = lock(to_usize(memory));
            registers[libc::REG_RIP as usize] = (*copy as u64).cast_signed();
            // No handler of the program may run while the lock is held.
            let mask = set_mask(context, |mask| mask | ALL_BUT_TRAPS);
            INSIDE.set(Inside { lock, mask });
            return true;
        }
        if trap == *end {
            let Inside { lock, mask } = INSIDE.take();
            set_mask(context, |_| mask);
            unlock(lock);
            context.uc_mcontext.gregs[libc::REG_RIP as usize] = site.next().cast_signed();
            return true;
        }
    }
    false
}

/// Takes the lock of the page of an address, if threads of other nodes may change it.
fn lock(address: usize) -> Option<usize> {
    let node = Node::current().filter(|node| node.is_shared(address))?;
    // No object of the program is there: they are aligned.
    let lock = address & !(PAGE_SIZE - 1) | 1;
    match node.mutex_lock(lock, || MutexKind::Normal, None) {
        Ok(()) => Some(lock),
        Err(_) => crate::report::fatal("the lock of an atomic instruction cannot be taken"),
    }
}

fn unlock(lock: Option<usize>) {
    if let (Some(lock), Some(node)) = (lock, Node::current())
        && node.mutex_unlock(lock, || MutexKind::Normal).is_err()
    {
        crate::report::fatal("the lock of an atomic instruction cannot be given back");
    }
}
