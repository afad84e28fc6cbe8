//! Functions that the program looks up in the C library itself, or behind one of its own libraries: where this library defines them, they
//! are those of this library, as they are for programs that are linked with the C library.

use gondwana_elf::is_runtime_library;
use gondwana_elf::loaded::{self, FoundObject, LoadedObject};
use std::ffi::CStr;
use std::ops::ControlFlow;

/// This library.
fn own() -> Option<FoundObject> {
    // SAFETY: this library is never unloaded.
    unsafe { loaded::at(own as *const () as usize) }
}

/// What a symbol found at an address stands for: a function of this library in place of one of the C library, or itself.
pub(super) fn in_place_of(address: usize, name: &CStr) -> usize {
    // SAFETY: the loader has just found it there.
    let object = unsafe { loaded::at(address) };
    let is_of_runtime = object.is_some_and(|object| is_runtime_library(object.path));
    let instead = if is_of_runtime { own().and_then(|own| own.function(name)) } else { None };
    instead.unwrap_or(address)
}

/// The function of this library that code at `caller` means by the next one of a name. `None` if it is one of another library or of the C library
/// itself, or if the code is of this library: the loader knows it.
pub(super) fn next(caller: usize, name: &CStr) -> Option<usize> {
    let own = own()?;
    // SAFETY: it is not unloaded while its code looks something up.
    if unsafe { loaded::at(caller) }.is_some_and(|object| object.base == own.base) {
        // Nor may it wait for a lock that another thread had when this process was forked.
        return None;
    }
    let function = own.function(name)?;
    let defines = |object: &LoadedObject<'_>| {
        // SAFETY: it is not unloaded while it is visited.
        unsafe { loaded::at(object.text().start) }.is_some_and(|object| object.function(name).is_some())
    };
    let (mut is_behind, mut is_of_runtime, mut passed_own) = (false, false, false);
    let is_another = loaded::visit(|object| {
        passed_own |= object.base() == own.base;
        if object.holds(caller) {
            is_behind = true;
            // What another library behind this one puts in place of a function, this one has called.
            let ends = object.base() == own.base || passed_own && defines(object);
            return if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        }
        if is_runtime_library(object.path()) {
            is_of_runtime |= object.base() != own.base && defines(object);
        } else if is_behind && object.is_of_program() && defines(object) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    (is_another.is_none() && is_of_runtime).then_some(function)
}
