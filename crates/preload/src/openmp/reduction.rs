//! Task reductions: each thread of the team has its own copies of the variables, which the code that gcc has made adds up.
//!
//! gcc describes the variables of a construct by words: their number, the bytes and the alignment of one thread's copies, and
//! the next such description; then three words for each variable: its address, and where its copy is among those of a
//! thread. The runtime puts the address of all copies in place of the alignment, and their end behind it.

use super::common::{self, Use};
use super::context::{self, Context};
use super::membership::{self, Body};
use super::region;
use super::share::Share;
use super::sync;
use super::task_wait;
use super::times::{Ends, telling_return};
use super::work_sharing;
use libc::{c_uint, c_void};

/// A description by gcc.
type Words = *mut usize;

/// Places of words in a description.
mod at {
    pub(crate) const COUNT: usize = 0;
    pub(crate) const BYTES: usize = 1;
    /// First the alignment, then the address of the copies.
    pub(crate) const COPIES: usize = 2;
    pub(crate) const NEXT: usize = 4;
    pub(crate) const END: usize = 6;
    pub(crate) const VARIABLES: usize = 7;
}

/// Reductions in which tasks can take part: the innermost first, in shared memory.
#[repr(C)]
pub(super) struct Reductions {
    words: Words,
    outer: *mut Self,
}

/// The calling thread comes into the scope of reductions whose copies there are.
fn push(words: Words) {
    context::update(|context| {
        context.reductions = sync::create(Reductions { words, outer: context.reductions });
    });
}

/// The calling thread leaves the scope of its innermost reductions, which no task uses any more. Returns their description.
fn pop() -> Words {
    let innermost = context::get().reductions;
    // SAFETY: the thread has made it itself.
    let Reductions { words, outer } = unsafe { innermost.read() };
    context::update(|context| context.reductions = outer);
    sync::discard(innermost);
    words
}

/// A word of a description.
///
/// # Safety
/// There is such a word.
unsafe fn word(words: Words, index: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { *words.add(index) }
}

/// Calls `act` for a description and those that follow it.
///
/// # Safety
/// It is null or as gcc makes it.
unsafe fn each(mut words: Words, mut act: impl FnMut(Words)) {
    while !words.is_null() {
        act(words);
        // SAFETY: the caller's promise.
        words = unsafe { word(words, at::NEXT) } as Words;
    }
}

/// Notes where the copies are.
///
/// # Safety
/// The description is as gcc makes it.
unsafe fn place(words: Words, copies: *mut u8, threads: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        *words.add(at::COPIES) = copies as usize;
        *words.add(at::END) = copies as usize + word(words, at::BYTES) * threads as usize;
    }
}

/// Makes the copies for so many threads.
///
/// # Safety
/// The description is as gcc makes it.
unsafe fn make_copies(words: Words, threads: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        each(words, |words| {
            let bytes = word(words, at::BYTES) * threads as usize;
            place(words, common::zeroed(bytes, word(words, at::COPIES)), threads);
        });
    }
}

/// The calling thread begins a group of tasks with copies that there are already.
fn begin_group(words: Words) {
    // SAFETY: as gcc calls it.
    unsafe { task_wait::GOMP_taskgroup_start() };
    push(words);
}

/// The thread begins a work-sharing construct, which it has entered, with the copies that all its threads have in common.
///
/// # Safety
/// The description is null or as gcc makes it.
pub(super) unsafe fn begin_construct(words: Words) {
    if words.is_null() {
        return;
    }
    let threads = context::get().threads();
    let mut count = 0;
    // SAFETY: the caller's promise. The first thread lists what it has allocated, and all threads have equal descriptions.
    unsafe {
        each(words, |_| count += 1);
        let list: *mut usize =
            common::enter(Use::Reductions, size_of::<usize>() * count, align_of::<usize>(), |list| {
                make_copies(words, threads);
                let mut next = list.cast::<usize>();
                each(words, |words| {
                    next.write(word(words, at::COPIES));
                    next = next.add(1);
                });
            })
            .cast();
        let mut next = list;
        each(words, |words| {
            place(words, *next as *mut u8, threads);
            next = next.add(1);
        });
    }
    common::leave();
    begin_group(words);
}

/// The calling thread's copy of a variable, by the address of the variable or of any thread's copy; and the variable.
///
/// # Safety
/// The description is as gcc makes it, and has its copies.
unsafe fn find(words: Words, address: usize, thread: u32) -> Option<(usize, usize)> {
    // SAFETY: the caller's promise.
    unsafe {
        let (bytes, copies) = (word(words, at::BYTES), word(words, at::COPIES));
        let offset =
            (copies..word(words, at::END)).contains(&address).then(|| (address - copies) % bytes.max(1));
        let variables = (0..word(words, at::COUNT)).map(|index| words.add(at::VARIABLES + 3 * index));
        let mut before: Option<(usize, usize)> = None;
        for variable in variables {
            let (original, place) = (*variable, *variable.add(1));
            if offset.is_none() && original == address {
                before = Some((original, place));
                break;
            }
            // Copies may be entered at any byte: the variable is the last one that begins before it.
            let nearer = before.is_none_or(|(_, other)| other <= place);
            if offset.is_some_and(|offset| place <= offset) && nearer {
                before = Some((original, place));
            }
        }
        let (original, place) = before?;
        Some((copies + bytes * thread as usize + offset.unwrap_or(place), original))
    }
}

/// The calling thread's copy of a variable that it takes part in reducing, and the variable.
pub(super) fn own_copy(address: usize) -> (usize, usize) {
    let Context { number, mut reductions, .. } = context::get();
    // SAFETY: reductions and what describes them live as long as the tasks of their group.
    unsafe {
        while !reductions.is_null() {
            let mut found = None;
            each((*reductions).words, |words| found = found.or_else(|| find(words, address, number)));
            if let Some(found) = found {
                return found;
            }
            reductions = (*reductions).outer;
        }
    }
    crate::report::fatal("OpenMP: in_reduction names a variable that no task reduction around it names")
}

/// The calling thread comes into the scope of reductions of variables, each with its address and the place of its copy among those
/// of a thread, which have so many bytes. Returns their description, for [`end`].
pub(super) fn begin(
    variables: impl ExactSizeIterator<Item = (usize, usize)>,
    bytes: usize,
    copies: *mut u8,
    threads: u32,
) -> *mut usize {
    let count = variables.len();
    let words: Words = common::zeroed(size_of::<usize>() * (at::VARIABLES + 3 * count), 64).cast();
    // SAFETY: the block was made for so many words.
    unsafe {
        words.add(at::COUNT).write(count);
        words.add(at::BYTES).write(bytes);
        for (index, (address, copy)) in variables.enumerate() {
            let variable = words.add(at::VARIABLES + 3 * index);
            variable.write(address);
            variable.add(1).write(copy);
        }
        place(words, copies, threads);
    }
    push(words);
    words
}

/// The calling thread leaves the scope of the reductions of its last [`begin`].
pub(super) fn end() {
    sync::discard(pop());
}

/// Replaces the addresses of variables by those of the calling thread's copies. The variables of the first `originals` follow
/// the list.
///
/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_task_reduction_remap(count: usize, originals: usize, list: Words) {
    for index in 0..count {
        // SAFETY: gcc passes a list with so many entries.
        unsafe {
            let (copy, original) = own_copy(word(list, index));
            *list.add(index) = copy;
            if index < originals {
                *list.add(count + index) = original;
            }
        }
    }
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_taskgroup_reduction_register(words: Words) {
    // SAFETY: gcc describes its variables.
    unsafe { make_copies(words, context::get().threads()) };
    push(words);
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_taskgroup_reduction_unregister(words: Words) {
    let innermost = context::get().reductions;
    // SAFETY: the thread has made them itself. Those of a region, whose threads have left them, are not among them.
    if unsafe { innermost.as_ref() }.is_some_and(|innermost| innermost.words == words) {
        pop();
    }
    // SAFETY: the group is over; gcc passes what it has registered.
    unsafe { discard_copies(words) };
}

/// Frees the copies of a group that is over.
///
/// # Safety
/// The description is as gcc makes it, and has its copies.
unsafe fn discard_copies(words: Words) {
    // SAFETY: the caller's promise.
    unsafe { each(words, |words| sync::discard(word(words, at::COPIES) as *mut u8)) };
}

telling_return! {
    "rsi": GOMP_workshare_task_reduction_unregister by unregister_at;
}

/// The first thread has added up what the copies of the construct say.
extern "C" fn unregister_at(cancelled: bool, returns_to: usize) {
    // SAFETY: the group is the one that the construct has begun.
    unsafe {
        task_wait::GOMP_taskgroup_end();
        let words = pop();
        if context::get().number == 0 {
            discard_copies(words);
        }
    }
    if !cancelled {
        membership::barrier(Ends::Call(returns_to));
    }
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_scope_start(words: Words) {
    work_sharing::enter(Share::of_sections(0));
    work_sharing::leave();
    // SAFETY: forwards what gcc passed.
    unsafe { begin_construct(words) };
}

/// A region with its reductions.
#[repr(C)]
struct Region {
    function: Body,
    data: *mut c_void,
    words: Words,
}

unsafe extern "C" fn run_member(region: *mut c_void) {
    // SAFETY: `GOMP_parallel_reductions` passes a region that stays until all threads have ended it.
    unsafe {
        let Region { function, data, words } = region.cast::<Region>().read();
        begin_group(words);
        context::update(|context| context.region = function as usize);
        function(data);
        task_wait::GOMP_taskgroup_end();
    }
    pop();
}

/// Runs a region with reductions, whose data begin with their description. Returns its number of threads.
///
/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_parallel_reductions(
    function: Body,
    data: *mut c_void,
    asked: c_uint,
    _flags: c_uint,
) -> c_uint {
    let threads = region::threads(asked, &context::get());
    // SAFETY: forwards what gcc passed.
    unsafe {
        let words = data.cast::<Words>().read();
        make_copies(words, threads);
        let mut all = Region { function, data, words };
        region::run(run_member, (&raw mut all).cast(), threads, None);
    }
    threads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_by_their_addresses_and_by_copies() {
        // Two variables, at 100 and 200, with copies of 64 bytes for each of two threads from 1000 on.
        let mut words = [2, 64, 1000, usize::MAX, 0, 0, 1128, 100, 0, 0, 200, 16, 0];
        // SAFETY: the description is as gcc makes it.
        let mut found = |address, thread| unsafe { find(words.as_mut_ptr(), address, thread) };
        assert_eq!(found(100, 0), Some((1000, 100)));
        assert_eq!(found(200, 1), Some((1080, 200)));
        assert_eq!(found(1016, 1), Some((1080, 200)));
        assert_eq!(found(1064, 0), Some((1000, 100)));
        assert_eq!(found(300, 0), None);
    }
}
