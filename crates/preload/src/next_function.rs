//! The next functions: those that this library interposes.

use crate::private_stack::uninterrupted;
use gondwana_interpose::NextFunction;

/// The address of a function, looked up when it is first needed.
pub(crate) fn address(function: &NextFunction) -> usize {
    function.known().unwrap_or_else(|| find(function))
}

#[cold]
fn find(function: &NextFunction) -> usize {
    // The loader has a lock.
    uninterrupted(|| function.find()).unwrap_or_else(|| {
        crate::report::fatal(&format!("the C library has no {}", function.name().to_string_lossy()))
    })
}

/// `real!(name: fn(A, B) -> C)`: the function of that name and type behind this library.
#[macro_export]
macro_rules! real {
    ($name:ident : fn($($argument:ty),* $(,)?) $(-> $result:ty)?) => {{
        static REAL: gondwana_interpose::NextFunction =
            gondwana_interpose::NextFunction::new(gondwana_interpose::c_name!($name));
        // The macro is used inside unsafe blocks as well as outside.
        #[allow(unused_unsafe)]
        // SAFETY: the named function has this C signature on every Linux libc that we support.
        let function = unsafe {
            std::mem::transmute::<usize, unsafe extern "C" fn($($argument),*) $(-> $result)?>(
                $crate::next_function::address(&REAL),
            )
        };
        function
    }};
}
