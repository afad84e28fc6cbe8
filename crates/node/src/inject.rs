//! For tests: failures that a test asks for by an environment variable. Only builds with debug assertions have them.

#[cfg(debug_assertions)]
mod asked {
    use std::sync::OnceLock;

    /// `NODE:PLACE`: that node panics when it comes to a place.
    const PANIC: &str = "GONDWANA_TEST_PANIC";
    /// `NODE`: that node stops itself while it holds a page of another one for the first time.
    const STOP: &str = "GONDWANA_TEST_STOP";

    static PLACE: OnceLock<String> = OnceLock::new();

    pub(crate) fn begin(node: u16) {
        let asked = |name| {
            let value = std::env::var(name).ok()?;
            let (of, rest) = value.split_once(':').unwrap_or((&value, ""));
            (of.parse() == Ok(node)).then(|| rest.to_owned())
        };
        if let Some(place) = asked(PANIC) {
            PLACE.get_or_init(|| place);
        }
        if asked(STOP).is_some() {
            gondwana_memory::while_held(stop_once);
        }
    }

    pub(crate) fn at(place: &str) {
        if PLACE.get().is_some_and(|asked| asked == place) {
            panic!("a test wants {place} to fail");
        }
    }

    fn stop_once() {
        static STOPPED: OnceLock<()> = OnceLock::new();
        STOPPED.get_or_init(|| {
            // To this thread, which stops before the call returns. A signal to the process may be taken by another thread,
            // and this one would go on for a while.
            // SAFETY: stops this process until somebody lets it go on.
            unsafe {
                gondwana_sys::syscall!(
                    libc::SYS_tgkill,
                    gondwana_sys::process(),
                    gondwana_sys::thread(),
                    libc::SIGSTOP
                )
            };
        });
    }
}

#[cfg(debug_assertions)]
pub(crate) use asked::{at, begin};

#[cfg(not(debug_assertions))]
pub(crate) fn begin(_node: u16) {}

#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn at(_place: &str) {}
