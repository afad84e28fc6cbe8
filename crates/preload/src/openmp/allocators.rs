//! Allocators: what decides how blocks are aligned, how much memory they may take together, and what happens when there is none. All memory
//! comes from the shared heap: there is one kind of it here.

use super::context;
use super::query::exported;
use super::settings;
use super::sync;
use libc::c_int;
use std::cell::Cell;
use std::ops::ControlFlow;

/// A number that names an allocator of OpenMP, or the address of one that the program has made; 0 is the default one of the calling thread.
pub(super) type Handle = usize;

/// OpenMP's own allocators have the numbers below, of which the first is the usual one; the other numbers are those of Intel's for devices.
pub(super) const USUAL: Handle = 1;
const NUMBERS: usize = 4096;

/// The names of OpenMP's own allocators, of which the first has the number 1.
const NAMES: [&str; 8] = [
    "omp_default_mem_alloc",
    "omp_large_cap_mem_alloc",
    "omp_const_mem_alloc",
    "omp_high_bw_mem_alloc",
    "omp_low_lat_mem_alloc",
    "omp_cgroup_mem_alloc",
    "omp_pteam_mem_alloc",
    "omp_thread_mem_alloc",
];

/// The number of the memory space of high bandwidth, which there is none of, and of the last space.
const HIGH_BANDWIDTH: usize = 3;
const LAST_SPACE: usize = 4;

/// The value of a trait that stands for the usual one.
const AS_USUAL: usize = usize::MAX;

/// What becomes of a request that an allocator has no memory for, by the numbers of OpenMP's traits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fallback {
    /// The usual allocator is asked.
    Usual = 11,
    /// There is no block.
    Null = 12,
    /// The program ends.
    Abort = 13,
    /// Another allocator is asked.
    Other = 14,
}

/// A trait, as the program describes it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Trait {
    key: c_int,
    value: usize,
}

/// An allocator that the program has made, in shared memory.
#[repr(C)]
pub(super) struct Allocator {
    /// Each block is at a multiple of it.
    pub alignment: usize,
    pub fallback: Fallback,
    /// The other allocator.
    pub other: Handle,
    /// How many bytes its blocks may take together, and how many they do. Threads of all nodes change that, under a lock that the allocator's
    /// address names.
    pool: usize,
    taken: Cell<usize>,
}

impl Allocator {
    fn new() -> Self {
        Self { alignment: 1, fallback: Fallback::Usual, other: USUAL, pool: AS_USUAL, taken: Cell::new(0) }
    }

    /// Takes a trait into account. It breaks off at one that no allocator can have here.
    fn apply(&mut self, wish: Trait, is_pinned: bool) -> ControlFlow<()> {
        let Trait { key, value } = wish;
        let known = |values: std::ops::RangeInclusive<usize>| value == AS_USUAL || values.contains(&value);
        let is_possible = match key {
            // How threads compete for it, which of them have access, and where its memory is: all is one here.
            1 => known(3..=6),
            3 => known(7..=10),
            8 => known(15..=18),
            2 => {
                self.alignment = if value == AS_USUAL { 1 } else { value };
                self.alignment.is_power_of_two()
            }
            4 => {
                self.pool = value;
                true
            }
            5 => {
                let all = [Fallback::Usual, Fallback::Null, Fallback::Abort, Fallback::Other];
                let named = all.into_iter().find(|one| *one as usize == value);
                self.fallback = named.unwrap_or(Fallback::Usual);
                named.is_some() || value == AS_USUAL
            }
            6 => {
                self.other = value;
                true
            }
            7 => value == 0 || value == AS_USUAL || is_pinned,
            _ => false,
        };
        if is_possible { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Takes `bytes` from the pool after `freed` of its bytes are given back; false, and nothing has changed, if it has not so many.
    pub(super) fn take(&self, bytes: usize, freed: usize) -> bool {
        if self.pool == AS_USUAL {
            return true;
        }
        sync::lock(self);
        let taken = (self.taken.get() - freed).checked_add(bytes).filter(|taken| *taken <= self.pool);
        if let Some(taken) = taken {
            self.taken.set(taken);
        }
        sync::unlock(self);
        taken.is_some()
    }

    /// Gives bytes back that [`take`](Self::take) has taken.
    pub(super) fn give_back(&self, bytes: usize) {
        if self.pool != AS_USUAL {
            sync::lock(self);
            self.taken.set(self.taken.get() - bytes);
            sync::unlock(self);
        }
    }
}

/// The allocator that the program has made and calls so; `None` for OpenMP's own.
pub(super) fn made<'a>(handle: Handle) -> Option<&'a Allocator> {
    // SAFETY: other handles are those that `make` has given to the program, which does not use them after it has destroyed them.
    (handle >= NUMBERS).then(|| unsafe { &*(handle as *const Allocator) })
}

/// The allocator that a handle means to the calling thread.
pub(super) fn chosen(handle: Handle) -> Handle {
    match (handle, context::get().controls.allocator) {
        (0, 0) => settings::get().allocator,
        (0, set) => set,
        (handle, _) => handle,
    }
}

/// An allocator by its name or number, as `OMP_ALLOCATOR` may hold it.
pub(super) fn parse(text: &str) -> Option<Handle> {
    let text = text.trim();
    let named = NAMES.iter().position(|name| name.eq_ignore_ascii_case(text)).map(|index| index + 1);
    named.or_else(|| text.parse().ok().filter(|number| (1..=NAMES.len()).contains(number)))
}

/// A new allocator; 0 if none can be as described.
///
/// # Safety
/// There are so many traits.
unsafe fn make(space: usize, count: c_int, traits: *const Trait) -> Handle {
    if space > LAST_SPACE || space == HIGH_BANDWIDTH {
        return 0;
    }
    let count = if traits.is_null() { 0 } else { usize::try_from(count).unwrap_or(0) };
    let is_pinned = settings::get().by_clang;
    let mut allocator = Allocator::new();
    // SAFETY: the caller's promise.
    let possible =
        (0..count).try_for_each(|index| allocator.apply(unsafe { traits.add(index).read() }, is_pinned));
    if possible.is_continue() { sync::create(allocator) as Handle } else { 0 }
}

fn destroy(handle: Handle) {
    if handle >= NUMBERS {
        sync::discard(handle as *mut Allocator);
    }
}

exported! {
    fn omp_get_default_allocator, omp_get_default_allocator_() -> Handle = chosen(0);
    fn omp_set_default_allocator, omp_set_default_allocator_(allocator: Handle) = context::update(|context| {
        context.controls.allocator = if allocator == 0 { USUAL } else { allocator };
    });
    fn omp_destroy_allocator, omp_destroy_allocator_(allocator: Handle) = destroy(allocator);
}

/// # Safety
/// As OpenMP says.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn omp_init_allocator(
    space: usize,
    count: c_int,
    traits: *const Trait,
) -> Handle {
    // SAFETY: forwards the caller's traits.
    unsafe { make(space, count, traits) }
}

/// Defines the forms for Fortran, which passes addresses.
macro_rules! fortran {
    ($($name:ident $count:ty;)*) => {$(
        /// # Safety
        /// As OpenMP says.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $name(
            space: *const usize, count: *const $count, traits: *const Trait,
        ) -> Handle {
            // SAFETY: the caller passes places of numbers, and so many traits.
            unsafe { make(*space, c_int::try_from(*count).unwrap_or(0), traits) }
        }
    )*};
}

fortran! {
    omp_init_allocator_ c_int;
    omp_init_allocator_8_ i64;
}

/// What clang's code calls: the same, with the number of the thread before it.
macro_rules! by_clang {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $function:ident;)*) => {$(
        /// # Safety
        /// Called by code that clang has compiled.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $name(_thread: c_int $(, $argument: $type)*) $(-> $result)? {
            // SAFETY: forwards the caller's arguments.
            unsafe { $function($($argument),*) }
        }
    )*};
}

pub(super) use by_clang;

by_clang! {
    __kmpc_init_allocator(space: usize, count: c_int, traits: *const Trait) -> Handle = omp_init_allocator;
    __kmpc_destroy_allocator(allocator: Handle) = omp_destroy_allocator;
    __kmpc_set_default_allocator(allocator: Handle) = omp_set_default_allocator;
    __kmpc_get_default_allocator() -> Handle = omp_get_default_allocator;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(traits: &[(c_int, usize)]) -> Option<Allocator> {
        let mut allocator = Allocator::new();
        let all = traits.iter().try_for_each(|&(key, value)| allocator.apply(Trait { key, value }, false));
        all.is_continue().then_some(allocator)
    }

    #[test]
    fn traits_are_as_libgomp_takes_them() {
        let allocator = with(&[(2, 64), (4, 1000), (5, 14), (6, 5)]).unwrap();
        assert_eq!((allocator.alignment, allocator.pool, allocator.other), (64, 1000, 5));
        assert_eq!(allocator.fallback, Fallback::Other);
        for refused in [(2, 48), (2, 0), (5, 10), (5, 15), (7, 1), (99, 1), (1, 7), (3, 11), (8, 19)] {
            assert!(with(&[refused]).is_none(), "{refused:?}");
        }
        for usual in [(1, AS_USUAL), (2, AS_USUAL), (4, 0), (5, AS_USUAL), (7, 0), (3, 7), (8, 15)] {
            assert!(with(&[usual]).is_some(), "{usual:?}");
        }
    }

    #[test]
    fn a_pool_has_so_many_bytes() {
        let allocator = with(&[(4, 1000)]).unwrap();
        assert!(allocator.take(600, 0) && !allocator.take(401, 0) && allocator.take(400, 0));
        assert!(allocator.take(300, 400) && !allocator.take(601, 500));
        allocator.give_back(900);
        assert!(allocator.take(1000, 0));
        assert!(Allocator::new().take(usize::MAX, 0));
    }

    #[test]
    fn allocators_have_names_and_numbers() {
        assert_eq!(parse(" OMP_thread_mem_alloc"), Some(8));
        assert_eq!((parse("3"), parse("0"), parse("9"), parse("other")), (Some(3), None, None, None));
    }
}
