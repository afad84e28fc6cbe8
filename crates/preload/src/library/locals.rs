//! Thread-local variables of libraries that were opened.
//!
//! All of them are at one distance from each thread's control block, on all nodes (see [`super::loading`]). Loaders of different nodes may
//! have numbered the libraries differently, and the library's code passes such a number to the C library. It is replaced by the
//! number of this library's own variables, which was given at the start, with the distance between both.

use super::{opened, search};
use gondwana_elf::loaded::{self, LoadedObject};
use gondwana_page::to_usize;
use std::ops::ControlFlow;
use std::sync::OnceLock;

/// The number and the distance of this library's own variables.
fn own() -> Option<(usize, u64)> {
    static OWN: OnceLock<Option<(usize, u64)>> = OnceLock::new();
    *OWN.get_or_init(|| {
        loaded::visit(|object| {
            if !object.holds(own as *const () as usize) {
                return ControlFlow::Continue(());
            }
            let distance = object.thread_locals().start.wrapping_sub(to_usize(crate::pthread::native_self()));
            ControlFlow::Break((object.thread_module(), distance as u64))
        })
    })
}

/// Makes what a library has for the C library the same on all nodes. `mine` are the numbers and distances of libraries that are being
/// opened. False if there is a number of a library that other nodes do not have.
///
/// # Safety
/// The loader has relocated the library, and no thread uses it yet.
pub(super) unsafe fn unify(object: &LoadedObject<'_>, mine: &[(usize, u64)]) -> bool {
    let Some((own_module, own_distance)) = own() else { return false };
    object.thread_references().all(|reference| {
        // SAFETY: the loader has written two words there.
        let [module, offset] = unsafe { reference.read() };
        let module = to_usize(module);
        let known = mine.iter().find(|(number, _)| *number == module).map(|&(_, distance)| distance);
        let Some(distance) = known.or_else(|| opened::distance_of(module)) else {
            // Numbers of what was there from the start are the same everywhere; 0 is that of a symbol that nobody has.
            return module <= search::last_module_from_start();
        };
        let offset = offset.wrapping_add(distance).wrapping_sub(own_distance);
        // SAFETY: as above.
        unsafe {
            object.overwrite(reference.cast::<u64>(), own_module as u64);
            object.overwrite(reference.cast::<u64>().add(1), offset);
        }
        true
    })
}
