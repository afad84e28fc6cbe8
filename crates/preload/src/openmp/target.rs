//! `target`: regions, updates and mappings of data. libgomp carries them out, on the host where there is no device.
//!
//! Here they get their place in the order of tasks: what is asynchronous or has dependences is a task of the team.

use super::context::{self, Context};
use super::sync;
use super::task::{self, Arguments, Function, flag};
use super::team::{Controls, Shape};
use libc::{c_int, c_uint, c_void};
use std::alloc::Layout;
use std::ptr::null_mut;

/// The construct does not wait for its end.
const NOWAIT: c_uint = 1;

/// The low byte of a variable's kind: the construct has a copy of the variable. The high byte is log2 of
/// its alignment.
const FIRSTPRIVATE: u16 = 12;

/// The bit of a word of the device's arguments that is followed by a value; without it, the upper bits are the value.
const HAS_VALUE: usize = 1 << 7;
const VALUE: u32 = 16;

/// The bits that say what an argument is, and those of the most threads that a team can have.
const WHAT: usize = 0xff << 8;
const THREAD_LIMIT: usize = 2 << 8;

/// A list of addresses, as gcc makes it.
type Addresses = *mut *mut c_void;

/// The kinds of constructs, with libgomp's functions.
#[derive(Clone, Copy)]
enum Construct {
    Region(Function),
    Update,
    EnterExitData,
}

/// A construct, with what gcc passes to its function.
#[derive(Clone, Copy)]
struct Target {
    construct: Construct,
    device: c_int,
    /// The number of variables.
    count: usize,
    addresses: Addresses,
    sizes: *mut usize,
    kinds: *mut u16,
    flags: c_uint,
    /// Arguments for devices, which end with a null; may be null.
    arguments: Addresses,
    /// The copies of variables that belong to it; may be null.
    copies: *mut u8,
}

impl Target {
    /// Carries it out now.
    ///
    /// # Safety
    /// All is as gcc passes it.
    unsafe fn carry_out(&self) {
        let Self { device, count, addresses, sizes, kinds, arguments, .. } = *self;
        let flags = self.flags & !NOWAIT;
        // SAFETY: the caller's promise.
        unsafe {
            match self.construct {
                Construct::Region(function) => apart(parse(arguments).1, || {
                    crate::real!(GOMP_target_ext: fn(
                        c_int, Function, usize, Addresses, *mut usize, *mut u16, c_uint, Addresses, Addresses,
                    ))(
                        device, function, count, addresses, sizes, kinds, flags, null_mut(), arguments
                    );
                }),
                Construct::Update => {
                    crate::real!(GOMP_target_update_ext: fn(
                        c_int, usize, Addresses, *mut usize, *mut u16, c_uint, Addresses,
                    ))(device, count, addresses, sizes, kinds, flags, null_mut())
                }
                Construct::EnterExitData => {
                    crate::real!(GOMP_target_enter_exit_data: fn(
                        c_int, usize, Addresses, *mut usize, *mut u16, c_uint, Addresses,
                    ))(device, count, addresses, sizes, kinds, flags, null_mut())
                }
            }
        }
    }

    /// A copy that needs nothing of the thread that has met the construct.
    ///
    /// # Safety
    /// All is as gcc passes it.
    unsafe fn copied(&self) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let mut copy = Self {
                addresses: copied(self.addresses, self.count),
                sizes: copied(self.sizes, self.count),
                kinds: copied(self.kinds, self.count),
                arguments: copied(self.arguments, parse(self.arguments).0),
                ..*self
            };
            if let Construct::Region(_) = self.construct {
                copy.copy_variables();
            }
            copy
        }
    }

    /// Copies the variables of which the construct has copies: it sees the values that they have now.
    ///
    /// # Safety
    /// All is as gcc passes it, and the list of addresses is this construct's own.
    unsafe fn copy_variables(&mut self) {
        let mut all = Layout::new::<()>();
        let mut places = vec![];
        // SAFETY: the caller's promise: there are so many addresses, sizes and kinds, and variables have their sizes.
        unsafe {
            for index in 0..self.count {
                let (address, size, kind) =
                    (self.addresses.add(index), *self.sizes.add(index), *self.kinds.add(index));
                if kind & 0xff == FIRSTPRIVATE && !(*address).is_null() {
                    let variable =
                        Layout::from_size_align(size, 1 << (kind >> 8)).expect("gcc gives an alignment");
                    let (longer, place) = all.extend(variable).expect("less than all memory");
                    all = longer;
                    places.push((address, size, place));
                }
            }
            if places.is_empty() {
                return;
            }
            self.copies = sync::allocate(all.size(), all.align());
            for (address, size, place) in places {
                let place = self.copies.add(place);
                std::ptr::copy_nonoverlapping((*address).cast(), place, size);
                *address = place.cast();
            }
        }
    }

    /// Frees what [`Self::copied`] has made.
    fn discard(self) {
        let Self { addresses, sizes, kinds, arguments, copies, .. } = self;
        for block in [addresses.cast(), sizes.cast(), kinds.cast(), arguments.cast(), copies] {
            if !block.is_null() {
                sync::discard(block);
            }
        }
    }
}

/// A copy of a list in shared memory; null for one without entries.
///
/// # Safety
/// The list has so many entries.
unsafe fn copied<T: Copy>(list: *const T, count: usize) -> *mut T {
    if count == 0 {
        return null_mut();
    }
    let place = sync::allocate(size_of::<T>() * count, align_of::<T>()).cast();
    // SAFETY: the caller's promise; the block has room for them.
    unsafe { std::ptr::copy_nonoverlapping(list, place, count) };
    place
}

/// How many words a device's arguments have, with the null at their end, and the most threads that a team can have by them.
///
/// # Safety
/// They are null or as gcc makes them.
unsafe fn parse(arguments: Addresses) -> (usize, Option<u32>) {
    if arguments.is_null() {
        return (0, None);
    }
    let (mut index, mut limit) = (0, None);
    // SAFETY: the caller's promise.
    unsafe {
        while !(*arguments.add(index)).is_null() {
            let word = *arguments.add(index) as usize;
            let has_value = word & HAS_VALUE != 0;
            let value = if has_value { *arguments.add(index + 1) as usize } else { word >> VALUE };
            if word & WHAT == THREAD_LIMIT {
                limit = u32::try_from(value).ok().filter(|limit| *limit > 0);
            }
            index += if has_value { 2 } else { 1 };
        }
    }
    (index + 1, limit)
}

/// Calls a function as the only thread outside all regions, as a device's first thread is. Its regions have so many threads at most.
fn apart(limit: Option<u32>, call: impl FnOnce()) {
    let before = context::get();
    let usual = Controls::at(0);
    let controls = Controls { limit: limit.unwrap_or(usual.limit), ..usual };
    context::set(Context::new(null_mut(), Shape::ALONE, 0, controls));
    call();
    task::end();
    let team = context::get().team;
    if !team.is_null() {
        sync::discard(team);
    }
    context::set(before);
}

/// Carries a construct out: now, or as a task if it has dependences or nobody waits for the end of the region.
///
/// # Safety
/// All is as gcc passes it.
unsafe fn meet(target: Target, depend: Addresses) {
    let asynchronous = target.flags & NOWAIT != 0;
    // SAFETY: the caller's promise.
    unsafe {
        if depend.is_null() && !(asynchronous && matches!(target.construct, Construct::Region(_))) {
            return target.carry_out();
        }
        let mut task = sync::create(target.copied());
        let data = (&raw mut task).cast();
        let arguments = Arguments {
            data,
            copy: None,
            size: size_of_val(&task),
            align: align_of_val(&task),
            bounds: None,
        };
        let flags = if depend.is_null() { 0 } else { flag::DEPEND };
        task::make(run, arguments, asynchronous, flags, depend, None);
    }
}

/// The function of the tasks.
pub(super) unsafe extern "C" fn run(data: *mut c_void) {
    // SAFETY: `meet` passes a construct of its own, which is this task's.
    unsafe {
        (**data.cast::<*mut Target>()).carry_out();
        discard(data);
    }
}

/// Frees what belongs to a task, which has run or will not.
///
/// # Safety
/// The data is of such a task.
pub(super) unsafe fn discard(data: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe {
        let task = *data.cast::<*mut Target>();
        (*task).discard();
        sync::discard(task);
    }
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_target_ext(
    device: c_int,
    function: Function,
    count: usize,
    addresses: Addresses,
    sizes: *mut usize,
    kinds: *mut u16,
    flags: c_uint,
    depend: Addresses,
    arguments: Addresses,
) {
    let construct = Construct::Region(function);
    let copies = null_mut();
    // SAFETY: forwards what gcc passed.
    unsafe {
        meet(Target { construct, device, count, addresses, sizes, kinds, flags, arguments, copies }, depend);
    }
}

/// Defines the functions of constructs that only map or copy data.
macro_rules! data {
    ($($name:ident: $construct:ident;)*) => {$(
        /// # Safety
        /// Called by code that gcc has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            device: c_int,
            count: usize,
            addresses: Addresses,
            sizes: *mut usize,
            kinds: *mut u16,
            flags: c_uint,
            depend: Addresses,
        ) {
            let construct = Construct::$construct;
            let (arguments, copies) = (null_mut(), null_mut());
            // SAFETY: forwards what gcc passed.
            unsafe {
                meet(Target { construct, device, count, addresses, sizes, kinds, flags, arguments, copies }, depend);
            }
        }
    )*};
}

data! {
    GOMP_target_update_ext: Update;
    GOMP_target_enter_exit_data: EnterExitData;
}
