//! Instructions with which threads synchronise, of which the runtime is to know under `c11` consistency.
//!
//! A fence is replaced by a trap, whose handler has the node release and acquire. A jump replaces each of the others, to code that looks
//! whether the page is known as a synchronisation page, and goes on in a copy of the instruction. If it is not, that code traps, and the
//! handler has the node make it one. Where there is no room for a jump, a trap replaces the instruction, and costs about a
//! microsecond each time.
//!
//! Pages of which nothing need be known, such as those of the node's own memory, become known as well, by a fixed table of so many pages:
//! what no thread has used lately is looked up anew.

use crate::numbers::many;
use crate::registers::REGISTERS;
use crate::traps::{self, TRAP, jump};
use gondwana_atomics::{Guarded, KNOWN_PAGES, LONGEST, MOST_GUARDED, Site, Synchronising};
use gondwana_control::Watch;
use gondwana_elf::loaded::{self, LoadedObject};
use gondwana_node::Node;
use gondwana_page::{PAGE_SIZE, to_usize};
use libc::ucontext_t;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// An instruction and the code in its place.
struct Watched {
    site: Site,
    /// The code, with instructions before it.
    code: Range<usize>,
    /// The copy of the instruction.
    copy: usize,
    /// Where that code traps.
    trap: usize,
}

/// Those of each object, by ascending addresses, of the instructions and of their code alike. Set before any of them is replaced.
static OBJECTS: OnceLock<Vec<Vec<Watched>>> = OnceLock::new();

/// The numbers of known pages, each at the place of its lowest bits.
static KNOWN: [AtomicU64; KNOWN_PAGES] = [const { AtomicU64::new(0) }; KNOWN_PAGES];

/// The instructions of an object that is there from the start, and room for the code in their place.
struct Found {
    object: LoadedObject<'static>,
    instructions: Vec<Synchronising>,
    room: Option<usize>,
}

/// What is to be replaced.
pub(crate) struct Prepared(Vec<Found>);

/// Finds room for the instructions that are to be watched. There is some near their code as long as the node has mapped nothing.
///
/// # Errors
/// If a file is not loaded: a sentence.
pub(crate) fn prepare(watched: &[Watch]) -> Result<Prepared, String> {
    if watched.is_empty() {
        return Ok(Prepared(vec![]));
    }
    // SAFETY: what is there from the start is never unloaded.
    let objects = unsafe { loaded::select(|_| true) };
    // The program comes first.
    let files: Vec<Option<PathBuf>> = objects
        .iter()
        .enumerate()
        .map(|(index, object)| (index > 0).then(|| std::fs::canonicalize(object.path()).unwrap_or_default()))
        .collect();
    let found = watched.iter().map(|Watch { file, instructions }| {
        let index = files.iter().position(|loaded| loaded == file).ok_or_else(|| {
            let name = file.as_deref().unwrap_or(Path::new("the program")).display();
            format!("{name} is not loaded, though it was searched for atomic instructions")
        })?;
        let room = traps::room_near(&objects[index].text(), instructions.len() * MOST_GUARDED);
        Ok(Found { object: objects[index], instructions: instructions.clone(), room })
    });
    found.collect::<Result<_, _>>().map(Prepared)
}

/// Replaces the instructions. No other thread may run yet.
///
/// # Errors
/// If that is not possible: a sentence.
pub(crate) fn begin(prepared: &Prepared) -> Result<(), String> {
    let Prepared(all) = prepared;
    let (mut objects, mut changes) = (vec![], vec![]);
    for Found { object, instructions, room } in all {
        let of = |why: String| format!("{}: {why}", object.path().display());
        let room = room.ok_or_else(|| of("there is no room near its code".to_owned()))?;
        objects.push(write_in(object, instructions, room, &mut changes).map_err(of)?);
    }
    // Called once.
    OBJECTS.get_or_init(|| objects);
    // SAFETY: instructions of objects that are never unloaded; nothing of the program runs yet.
    let are_replaced = changes.iter().all(|(place, with)| unsafe { traps::replace(*place, with) });
    if are_replaced { Ok(()) } else { Err(UNCHANGEABLE.to_owned()) }
}

const UNCHANGEABLE: &str = "the system does not let the program's code be changed";

/// Writes the code in place of an object's instructions into `room`, which is theirs, and adds the `changes` by which control gets there: what
/// to write, and where.
fn write_in(
    object: &LoadedObject<'_>,
    found: &[Synchronising],
    room: usize,
    changes: &mut Vec<(usize, Vec<u8>)>,
) -> Result<Vec<Watched>, String> {
    let text = object.text();
    let mut watched = vec![];
    for (one, at) in found.iter().zip((room..).step_by(MOST_GUARDED)) {
        let place = object.base().wrapping_add(to_usize(one.address));
        let before = to_usize(one.before.unwrap_or(0));
        // The file may be another one by now.
        let other = || format!("what is at {:#x} is not what was found in the file", one.address);
        if !text.contains(&place) || !text.contains(&place.wrapping_sub(before)) {
            return Err(other());
        }
        let code = traps::code(place..text.end.min(place + LONGEST));
        let site = Site::synchronising(place as u64, code).ok_or_else(other)?;
        let Guarded { code, copy, trap } = site
            .guarded(traps::code(place - before..place), code, at as u64, KNOWN.as_ptr() as u64)
            .ok_or_else(|| format!("{:#x} is too far from its memory", one.address))?;
        // SAFETY: the room has this much for each.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), at as *mut u8, code.len()) };
        watched.push(Watched { site, code: at..at + code.len(), copy: at + copy, trap: at + trap });
        let jump = one.before.filter(|_| !site.is_fence()).and_then(|_| jump(place - before, at));
        changes.push(jump.map_or((place, vec![TRAP]), |jump| (place - before, jump)));
    }
    let written = room..room + found.len() * MOST_GUARDED;
    let copied = traps::protect(written, libc::PROT_READ | libc::PROT_EXEC);
    copied.then_some(watched).ok_or_else(|| UNCHANGEABLE.to_owned())
}

/// The instruction that one of the objects' lists holds.
fn find(in_list: impl Fn(&[Watched]) -> Option<&Watched>) -> Option<&'static Watched> {
    OBJECTS.get()?.iter().find_map(|watched| in_list(watched))
}

/// Where the code is that a thread executes: of a copy, its original.
pub(crate) fn original(address: usize) -> usize {
    let copied = find(|all| {
        let after = all.partition_point(|one| one.code.start <= address);
        after.checked_sub(1).map(|last| &all[last]).filter(|one| one.code.contains(&address))
    });
    copied.map_or(address, |one| to_usize(one.site.address()))
}

/// Handles a trap. False if it is none of these instructions'.
///
/// # Safety
/// The context is that of a thread of this process that has trapped, as the kernel has passed it.
pub(crate) unsafe fn on_trap(context: *mut ucontext_t) -> bool {
    // SAFETY: the caller's promise.
    let context = unsafe { &mut *context };
    let trap = traps::place(context);
    let watched = find(|all| {
        let by_address = all.binary_search_by_key(&trap, |one| to_usize(one.site.address()));
        by_address.or_else(|_| all.binary_search_by_key(&trap, |one| one.trap)).ok().map(|index| &all[index])
    });
    let Some(watched) = watched else { return false };
    let registers = &mut context.uc_mcontext.gregs;
    let memory = watched.site.memory(|number| registers[many(REGISTERS[number])].cast_unsigned());
    registers[libc::REG_RIP as usize] = (watched.copy as u64).cast_signed();
    match Node::current() {
        Some(node) if watched.site.is_fence() => node.fence(),
        Some(node) => {
            let (first, last) = (to_usize(memory), to_usize(memory) + watched.site.bytes() as usize - 1);
            for page in first / PAGE_SIZE..=last / PAGE_SIZE {
                node.promote(page * PAGE_SIZE);
                know(page);
            }
        }
        None => (),
    }
    true
}

/// From now on the instructions on this page are executed without a trap.
fn know(page: usize) {
    KNOWN[page % KNOWN_PAGES].store(page as u64, Ordering::Relaxed);
}
