//! `critical`, and `atomic` without a matching instruction: locks that are identified by their addresses.

use super::sync::{self, Name};
use libc::c_void;

/// The locks without memory in the program. This library is at the same address on all nodes.
static UNNAMED: [Name; 2] = [Name::new(); 2];

/// Defines functions without arguments.
macro_rules! exported {
    ($($name:ident $body:expr;)*) => {$(
        /// # Safety
        /// Called by code that gcc has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name() {
            $body;
        }
    )*};
}

exported! {
    GOMP_critical_start sync::lock(&raw const UNNAMED[0]);
    GOMP_critical_end sync::unlock(&raw const UNNAMED[0]);
    GOMP_atomic_start sync::lock(&raw const UNNAMED[1]);
    GOMP_atomic_end sync::unlock(&raw const UNNAMED[1]);
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_critical_name_start(name: *mut *mut c_void) {
    sync::lock(name);
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_critical_name_end(name: *mut *mut c_void) {
    sync::unlock(name);
}
