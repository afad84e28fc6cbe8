//! Older functions that set the actions of signals. The C library's own use another `sigaction` inside.

use crate::signals::{self, sigaction};
use libc::{c_int, sigaction as Action, sighandler_t};

/// What `sigset` takes and gives for a signal that is blocked.
const HOLD: sighandler_t = 2;

/// Defines variants of `signal` with other flags.
macro_rules! handling {
    ($($name:ident with $flags:expr;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(number: c_int, handler: sighandler_t) -> sighandler_t {
            handle(number, handler, $flags)
        }
    )*};
}

handling! {
    signal with libc::SA_RESTART;
    bsd_signal with libc::SA_RESTART;
    ssignal with libc::SA_RESTART;
    // `signal` for programs that are compiled for System V semantics.
    __sysv_signal with libc::SA_RESETHAND | libc::SA_NODEFER;
    sysv_signal with libc::SA_RESETHAND | libc::SA_NODEFER;
}

fn handle(number: c_int, handler: sighandler_t, flags: c_int) -> sighandler_t {
    let mut new = signals::default();
    new.sa_sigaction = handler;
    new.sa_flags = flags;
    exchange(number, Some(&new))
}

/// Sets an action, if there is a new one. Returns the handler before, or `SIG_ERR`.
fn exchange(number: c_int, new: Option<&Action>) -> sighandler_t {
    let mut old = signals::default();
    // SAFETY: null or valid actions.
    let done = unsafe { sigaction(number, new.map_or(std::ptr::null(), std::ptr::from_ref), &raw mut old) };
    if done == 0 { old.sa_sigaction } else { libc::SIG_ERR }
}

/// # Safety
/// As the C library's `sigset`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sigset(number: c_int, handler: sighandler_t) -> sighandler_t {
    let holds = handler == HOLD;
    let before = if holds { exchange(number, None) } else { handle(number, handler, 0) };
    if before == libc::SIG_ERR {
        return before;
    }
    let bit = 1 << (number - 1);
    let was_blocked = signals::blocked() & bit != 0;
    let how = if holds { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK };
    // SAFETY: the set is ours.
    unsafe { signals::sigprocmask(how, &signals::set_of(bit), std::ptr::null_mut()) };
    if was_blocked { HOLD } else { before }
}

/// # Safety
/// As the C library's `sigignore`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sigignore(number: c_int) -> c_int {
    if handle(number, libc::SIG_IGN, 0) == libc::SIG_ERR { -1 } else { 0 }
}
