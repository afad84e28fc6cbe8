//! Atomic instructions that are executed under a lock, which gives release consistency what they need.
//!
//! A trap replaces the first byte of each. Its handler takes the lock of the page that the instruction is about to change, and goes on
//! in a copy of the instruction elsewhere, behind which another trap gives the lock back. Reductions of OpenMP execute one such
//! instruction for each thread and loop, so that two traps, of about a microsecond each, are no matter.

use crate::numbers::many;
use crate::registers::{REGISTERS, set_mask};
use crate::signals::ALL_BUT_NEEDED;
use crate::traps::{self, TRAP};
use gondwana_atomics::Site;
use gondwana_elf::loaded;
use gondwana_node::{MutexKind, Node};
use gondwana_page::{PAGE_SIZE, to_usize};
use libc::ucontext_t;
use std::cell::Cell;
use std::sync::OnceLock;

/// Longer than any instruction and the trap behind it.
const ROOM: usize = 16;

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
    let copies =
        traps::room_near(&text, places.len() * ROOM).ok_or("there is no room near the program's code")?;
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
    let copied = traps::protect(copies..copies + places.len() * ROOM, libc::PROT_READ | libc::PROT_EXEC);
    // Called once.
    let locked = LOCKED.get_or_init(|| locked);
    // SAFETY: they are instructions of the program, of which no thread runs yet.
    if !copied || !locked.iter().all(|one| unsafe { traps::replace(to_usize(one.site.address()), &[TRAP]) }) {
        return Err("the system does not let the program's code be changed".to_owned());
    }
    Ok(())
}

/// Where the code is that a thread executes: of a copy, its original.
pub(crate) fn original(address: usize) -> usize {
    let copied =
        LOCKED.get().into_iter().flatten().find(|locked| (locked.copy..=locked.end).contains(&address));
    copied.map_or(address, |locked| to_usize(locked.site.address()))
}

/// Handles a trap. False if it is none of these instructions'.
///
/// # Safety
/// The context is that of a thread of this process that has trapped, as the kernel has passed it.
pub(crate) unsafe fn on_trap(context: *mut ucontext_t) -> bool {
    let Some(all) = LOCKED.get() else { return false };
    // SAFETY: the caller's promise.
    let context = unsafe { &mut *context };
    let trap = traps::place(context);
    let registers = &mut context.uc_mcontext.gregs;
    for Locked { site, copy, end } in all {
        if trap == to_usize(site.address()) {
            let memory = site.memory(|number| registers[many(REGISTERS[number])].cast_unsigned());
            let lock = lock(to_usize(memory));
            registers[libc::REG_RIP as usize] = (*copy as u64).cast_signed();
            // No handler of the program may run while the lock is held.
            let mask = set_mask(context, |mask| mask | ALL_BUT_NEEDED);
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
