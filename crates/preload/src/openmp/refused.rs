//! Parts of OpenMP that do not run on several nodes: their functions fail.

/// Ends the run with a sentence that names the construct.
pub(super) fn refuse(what: &str) -> ! {
    crate::report::fatal(&format!("OpenMP: {what} cannot run on several nodes; run it with -n 1"))
}

/// Defines functions that are refused, with their purpose.
macro_rules! refused {
    ($($what:literal: $($name:ident)*;)*) => {$($(
        /// # Safety
        /// Ends the run.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name() -> ! {
            $crate::openmp::refused::refuse($what)
        }
    )*)*};
}

pub(super) use refused;
