//! The function that would be called without this library.

use gondwana_elf::loaded;
use std::ffi::CStr;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A function of the next object in the loader's search order, looked up when it is first needed.
///
/// # Examples
/// ```
/// use gondwana_interpose::NextFunction;
///
/// static GETPID: NextFunction = NextFunction::new(gondwana_interpose::c_name!(getpid));
/// assert_eq!(GETPID.find(), GETPID.known());
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct NextFunction {
    /// The first field: code that jumps to the function finds it here. 0 if it was not looked up yet.
    address: AtomicUsize,
    name: &'static CStr,
}

impl NextFunction {
    /// The function of this name.
    #[must_use]
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicUsize::new(0) }
    }

    /// Its name.
    pub fn name(&self) -> &'static CStr {
        self.name
    }

    /// Its address; `None` if it was not found yet.
    #[inline]
    pub fn known(&self) -> Option<usize> {
        match self.address.load(Ordering::Relaxed) {
            0 => None,
            address => Some(address),
        }
    }

    /// Looks its address up; `None` if no object has the function. The loader takes a lock, and may allocate.
    #[cold]
    pub fn find(&self) -> Option<usize> {
        // SAFETY: the name is a C string.
        let address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) } as usize;
        let address = if address == 0 { self.find_apart().unwrap_or(0) } else { address };
        self.address.store(address, Ordering::Relaxed);
        self.known()
    }

    /// Looks its address up in the objects that the loader does not search: what the program has opened for itself, such as the C++ library of a plug-in.
    fn find_apart(&self) -> Option<usize> {
        loaded::visit(|object| {
            if object.holds(Self::find_apart as *const () as usize) {
                return ControlFlow::Continue(());
            }
            // SAFETY: the object stays loaded while it is visited; opened ones stay until the end.
            let found = unsafe { loaded::at(object.text().start) };
            match found.and_then(|found| found.function(self.name)) {
                Some(address) => ControlFlow::Break(address),
                None => ControlFlow::Continue(()),
            }
        })
    }

    /// Its address in the C library itself, looked up once; `None` if it has no such function. A value of this type is for this one
    /// or for the next one, not for both.
    #[inline]
    pub fn of_c_library(&self) -> Option<usize> {
        self.known().or_else(|| self.find_in_c_library())
    }

    /// Looks its address up in the C library itself, whatever the objects before it define; `None` if it has no such function. Takes
    /// no lock and allocates nothing.
    #[cold]
    fn find_in_c_library(&self) -> Option<usize> {
        // A function that no other library defines.
        let here = libc::gnu_get_libc_version as *const () as usize;
        // SAFETY: the C library is never unloaded.
        let address = unsafe { loaded::at(here) }?.function(self.name)?;
        self.address.store(address, Ordering::Relaxed);
        self.known()
    }
}

/// `c_name!(name)`: the name of a function as a C string.
#[macro_export]
macro_rules! c_name {
    ($name:ident) => {
        const {
            match ::std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => unreachable!(),
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_known_once_it_was_found() {
        let function = NextFunction::new(c_name!(getpid));
        assert_eq!((function.name(), function.known()), (c"getpid", None));
        let address = function.find().unwrap();
        assert_eq!(function.known(), Some(address));
        // SAFETY: the C library is never unloaded.
        let library = unsafe { gondwana_elf::loaded::at(address) };
        assert_eq!(library.unwrap().file_name(), b"libc.so.6");
    }

    #[test]
    fn a_function_that_no_object_has_is_not_found() {
        let function = NextFunction::new(c"gondwana_has_no_such_function");
        assert_eq!((function.find(), function.known()), (None, None));
    }
}
