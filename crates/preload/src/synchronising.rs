//! Instructions with which threads synchronise, of which the runtime is to know under `c11` consistency.
//!
//! A fence is replaced by a trap, whose handler has the node release and acquire. A jump replaces each of the others, to code that looks whether the page is known as a synchronisation page, and goes on in a copy of the instruction.
//! If it is not, that code traps, and the handler has the node make it one. Where there is no room for a jump, a trap replaces the
//! instruction, and costs about a microsecond each time.
//!
//! Pages of which nothing need be known, such as those of the node's own memory, become known as well, by a fixed table of so many pages:
//! what no thread has used lately is looked up anew.

use crate::numbers::many;
use crate::registers::REGISTERS;
use crate::system_calls::jump;
use crate::traps::{self, TRAP};
use gondwana_atomics::{Guarded, KNOWN_PAGES, MOST_GUARDED, Site, Synchronising};
use gondwana_control::Watch;
use gondwana_elf::loaded::{self, LoadedObject};
use gondwana_node::Node;
use gondwana_page::{PAGE_SIZE, to_usize};
use libc::ucontext_t;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Longer than any instruction.
const LONGEST: usize = 15;

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

/// The instructions of one object.
struct Object {
    /// By ascending addresses, of the instructions and of their code alike.
    watched: Vec<Watched>,
    next: *const Object,
}

/// Those of all objects. A handler reads it at any time; nothing is ever taken out.
static OBJECTS: AtomicPtr<Object> = AtomicPtr::new(null_mut());

/// The numbers of known pages, each at the place of its lowest bits.
static KNOWN: OnceLock<usize> = OnceLock::new();

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
    if all.is_empty() {
        return Ok(());
    }
    let table = traps::map(0, KNOWN_PAGES * size_of::<u64>()).ok_or("out of memory")?;
    // Called once.
    KNOWN.get_or_init(|| table);
    for Found { object, instructions, room } in all {
        let replaced = room.ok_or_else(|| "there is no room near its code".to_owned()).and_then(|room| {
            // SAFETY: nothing of the program runs yet.
            unsafe { replace_in(object, instructions, room) }
        });
        replaced.map_err(|why| format!("{}: {why}", object.path().display()))?;
    }
    Ok(())
}

/// Replaces instructions of an object.
///
/// # Errors
/// If that is not possible: why.
///
/// # Safety
/// The object has them. It is never unloaded, and no thread executes its code yet. The room is theirs.
unsafe fn replace_in(object: &LoadedObject<'_>, found: &[Synchronising], room: usize) -> Result<(), String> {
    let text = object.text();
    let bytes = found.len() * MOST_GUARDED;
    let table = KNOWN.get().map_or(0, |&table| table as u64);
    let (mut watched, mut changes) = (vec![], vec![]);
    for (one, at) in found.iter().zip((room..).step_by(MOST_GUARDED)) {
        let place = object.base().wrapping_add(to_usize(one.address));
        let before = to_usize(one.before.unwrap_or(0));
        // The file may be another one by now.
        let other = || format!("what is at {:#x} is not what was found in the file", one.address);
        if !text.contains(&place) || !text.contains(&place.wrapping_sub(before)) {
            return Err(other());
        }
        let code = code(place..text.end.min(place + LONGEST));
        let site = Site::synchronising(place as u64, code).ok_or_else(other)?;
        let Guarded { code, copy, trap } = site
            .guarded(self::code(place - before..place), code, at as u64, table)
            .ok_or_else(|| format!("{:#x} is too far from its memory", one.address))?;
        // SAFETY: the room has this much for each.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), at as *mut u8, code.len()) };
        watched.push(Watched { site, code: at..at + code.len(), copy: at + copy, trap: at + trap });
        let jump = one.before.filter(|_| !site.is_fence()).and_then(|_| jump(place - before, at));
        changes.push(jump.map_or((place, vec![TRAP]), |jump| (place - before, jump)));
    }
    let copied = traps::protect(room..room + bytes, libc::PROT_READ | libc::PROT_EXEC);
    // One list is added at a time: the program starts once, and opens one library at a time.
    let next = OBJECTS.load(Ordering::Relaxed);
    OBJECTS.store(Box::leak(Box::new(Object { watched, next })), Ordering::Release);
    // SAFETY: the caller's promise.
    if !copied || !changes.iter().all(|(place, with)| unsafe { traps::replace(*place, with) }) {
        return Err("the system does not let its code be changed".to_owned());
    }
    Ok(())
}

/// Code of an object.
fn code(range: Range<usize>) -> &'static [u8] {
    // SAFETY: the loader has mapped it, to be read, too, and its object is never unloaded.
    unsafe { std::slice::from_raw_parts(range.start as *const u8, range.len()) }
}

/// The instruction that satisfies a condition, of the objects' one by one.
fn find(place: impl Fn(&[Watched]) -> Option<&Watched>) -> Option<&'static Watched> {
    // SAFETY: nothing is ever taken out.
    let mut next = unsafe { OBJECTS.load(Ordering::Acquire).as_ref() };
    while let Some(object) = next {
        let found: Option<&'static Watched> = place(&object.watched);
        if found.is_some() {
            return found;
        }
        // SAFETY: as above.
        next = unsafe { object.next.as_ref() };
    }
    None
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
    if watched.site.is_fence() {
        registers[libc::REG_RIP as usize] = (watched.copy as u64).cast_signed();
        Node::current().into_iter().for_each(Node::fence);
        return true;
    }
    let memory = watched.site.memory(|number| registers[many(REGISTERS[number])].cast_unsigned());
    registers[libc::REG_RIP as usize] = (watched.copy as u64).cast_signed();
    if let Some(node) = Node::current() {
        let (page, last) =
            (to_usize(memory) / PAGE_SIZE, to_usize(memory) + watched.site.bytes() as usize - 1);
        for page in page..=last / PAGE_SIZE {
            node.promote(page * PAGE_SIZE);
            know(page as u64);
        }
    }
    true
}

/// From now on the instructions on this page are executed without a trap.
fn know(page: u64) {
    let Some(&table) = KNOWN.get() else { return };
    let place = table + to_usize(page) % KNOWN_PAGES * size_of::<u64>();
    // SAFETY: the table has so many entries, which threads read as whole words.
    unsafe { &*(place as *const AtomicU64) }.store(page, Ordering::Relaxed);
}
