//! The functions that this library stands in front of.

use crate::handler_stack::uninterrupted;
use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A function of the next library in search order, looked up when it is first needed.
#[repr(C)]
pub struct NextFunction {
    /// The first field: code that jumps to the function finds it here. 0 if it was not looked up yet.
    address: AtomicUsize,
    name: &'static CStr,
}

impl NextFunction {
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicUsize::new(0) }
    }

    /// What it is called.
    pub fn name(&self) -> &'static CStr {
        self.name
    }

    /// Its address.
    pub fn address(&self) -> usize {
        match self.address.load(Ordering::Relaxed) {
            0 => self.find(),
            address => address,
        }
    }

    #[cold]
    fn find(&self) -> usize {
        // The loader has a lock. SAFETY: the name is a valid string.
        let address = uninterrupted(|| unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) }) as usize;
        if address == 0 {
            crate::report::fatal(&format!("the C library has no {}", self.name.to_string_lossy()));
        }
        self.address.store(address, Ordering::Relaxed);
        address
    }
}

/// `real!(name: fn(A, B) -> C)`: the function of that name and type behind this library.
#[macro_export]
macro_rules! real {
    ($name:ident : fn($($argument:ty),* $(,)?) $(-> $result:ty)?) => {{
        static REAL: $crate::next_function::NextFunction = $crate::next_function::NextFunction::new(
            // SAFETY: `concat!` ends it with the only NUL.
            unsafe { std::ffi::CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) },
        );
        // The macro is used inside unsafe blocks as well as outside.
        #[allow(unused_unsafe)]
        // SAFETY: the named function has this C signature on every Linux libc that we support.
        let function = unsafe {
            std::mem::transmute::<usize, unsafe extern "C" fn($($argument),*) $(-> $result)?>(REAL.address())
        };
        function
    }};
}
