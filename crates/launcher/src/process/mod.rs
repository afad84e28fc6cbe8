//! Node processes of this computer: start, reports, end.

pub mod descriptors;
pub mod events;
mod exchange;
pub mod local;
mod lookers;
pub mod preload;
pub mod signals;
pub mod spawn;
mod stops;

use std::ffi::CStr;

/// The name of a signal, such as `SIGSEGV`.
pub fn signal_name(signal: i32) -> String {
    // SAFETY: sigabbrev_np returns null or a string that is never freed.
    let name = unsafe { sigabbrev_np(signal) };
    if name.is_null() {
        return format!("signal {signal}");
    }
    // SAFETY: not null, so a C string with static life.
    let name = unsafe { CStr::from_ptr(name) };
    format!("SIG{}", name.to_string_lossy())
}

unsafe extern "C" {
    /// From glibc 2.32: the name of a signal without `SIG`.
    fn sigabbrev_np(signal: libc::c_int) -> *const libc::c_char;
}

#[cfg(test)]
mod tests {
    use super::signal_name;

    #[test]
    fn signals_have_names() {
        assert_eq!(signal_name(libc::SIGSEGV), "SIGSEGV");
        assert_eq!(signal_name(libc::SIGKILL), "SIGKILL");
        assert_eq!(signal_name(4000), "signal 4000");
    }
}
