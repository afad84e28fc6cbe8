//! The start of the program on a stack of the machine, and its end with the statistics.

use crate::fiber::{self, Fiber};
use crate::settings::Settings;
use crate::world::{self, world};
use crate::{heap, next, recorder};
use gondwana_elf::loaded;
use gondwana_interpose::message::write_line;
use libc::{c_char, c_int, c_void};
use std::ops::{ControlFlow, Range};
use std::ptr;

type Main = extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
type Hook = extern "C" fn();

/// Ends the process because of something that cannot be simulated. The status is that of `gondwana run` for its own errors.
pub(crate) fn die(why: &str) -> ! {
    write_line(2, why);
    // SAFETY: ends the process.
    unsafe { gondwana_sys::syscall!(libc::SYS_exit_group, 125) };
    unreachable!("the process has ended")
}

/// What `main` is called with.
struct Program {
    main: Main,
    argc: c_int,
    argv: *mut *mut c_char,
    environment: *mut *mut c_char,
}

static mut PROGRAM: Option<Program> = None;

/// The host thread's own stack, left for good.
static mut ORIGINAL: Option<Fiber> = None;

/// # Safety
/// Called by the program's entry code only.
#[unsafe(no_mangle)]
unsafe extern "C" fn __libc_start_main(
    main: Main,
    argc: c_int,
    argv: *mut *mut c_char,
    init: Option<Hook>,
    fini: Option<Hook>,
    loader_fini: Option<Hook>,
    stack_end: *mut c_void,
) -> c_int {
    let real = next!(__libc_start_main: unsafe extern "C" fn(
        Main, c_int, *mut *mut c_char, Option<Hook>, Option<Hook>, Option<Hook>, *mut c_void
    ) -> c_int);
    // SAFETY: nothing else runs yet; the C library gets what the loader has passed, with another main.
    unsafe {
        PROGRAM = Some(Program { main, argc, argv, environment: ptr::null_mut() });
        real(start, argc, argv, init, fini, loader_fini, stack_end)
    }
}

/// In place of `main`: builds the machine, and goes on on a stack of it.
extern "C" fn start(argc: c_int, argv: *mut *mut c_char, environment: *mut *mut c_char) -> c_int {
    fiber::begin();
    let settings = Settings::read();
    let begun = heap::map(&heap::STACKS).and(settings).and_then(world::begin);
    if let Err(why) = begun {
        die(&why);
    }
    // SAFETY: nothing else runs yet; the stack is nobody's.
    unsafe {
        let arguments = copied_arguments(argc, argv);
        if let Some(program) = (&raw mut PROGRAM).as_mut().and_then(Option::as_mut) {
            (program.argv, program.environment) = (arguments, environment);
        }
        let top = heap::STACKS.start + heap::STACK;
        let fiber = Fiber::new(top, fiber::thread_pointer(), run_main);
        ORIGINAL = Some(Fiber::current());
        let original =
            (&raw mut ORIGINAL).as_mut().and_then(Option::as_mut).map_or(ptr::null_mut(), ptr::from_mut);
        fiber::switch(original, fiber);
    }
    unreachable!("the original stack was left for good")
}

extern "C" fn run_main() -> ! {
    // SAFETY: `start` has written it.
    let program = unsafe { (&raw mut PROGRAM).as_mut().and_then(Option::take) };
    let program = program.unwrap_or_else(|| die("main has no arguments"));
    let status = (program.main)(program.argc, program.argv, program.environment);
    // SAFETY: ends the process as returning from main does.
    unsafe { libc::exit(status) }
}

/// The arguments in the heap: where the kernel puts them depends on the size of the environment.
///
/// # Safety
/// They are what the kernel has passed.
unsafe fn copied_arguments(argc: c_int, argv: *mut *mut c_char) -> *mut *mut c_char {
    let count = argc.max(0) as usize;
    // SAFETY: as the caller promises; the copies have room for what is copied.
    unsafe {
        let copies: *mut *mut c_char = libc::malloc((count + 1) * size_of::<*mut c_char>()).cast();
        for index in 0..count {
            copies.add(index).write(libc::strdup(*argv.add(index)));
        }
        copies.add(count).write(ptr::null_mut());
        copies
    }
}

/// Where the loader has put the program's own segments.
pub(crate) fn image() -> Range<usize> {
    // The executable comes first.
    loaded::visit(|object| ControlFlow::Break(object.addresses())).unwrap_or(0..0)
}

/// Passes the statistics on, once.
fn finish() {
    let Some(world) = world() else { return };
    // SAFETY: a system call.
    let process = unsafe { gondwana_sys::syscall!(libc::SYS_getpid) };
    if process != world.process {
        return;
    }
    world.process = -1;
    if let Err(wrong) = if cfg!(debug_assertions) { world.machine.check() } else { Ok(()) } {
        die(&format!("the simulated machine has contradicted itself: {wrong}"));
    }
    recorder::end(world);
    let end = world.now();
    let mut statistics = world.machine.statistics(&world.settings.machine, end);
    statistics.scheduling = world.schedule.done();
    for (node, times) in statistics.nodes.iter_mut().zip(world.schedule.idle_times(end)) {
        (node.idle, node.asleep) = (times.idle, times.asleep);
    }
    match serde_json::to_string(&statistics) {
        Ok(text) => world.settings.answer(&text),
        Err(error) => die(&format!("the statistics cannot be written: {error}")),
    }
}

extern "C" fn at_end() {
    finish();
}

/// Runs after all handlers of the program and of the libraries that use this one.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = at_end;

#[unsafe(no_mangle)]
unsafe extern "C" fn _exit(status: c_int) -> ! {
    finish();
    // SAFETY: ends the process.
    unsafe { gondwana_sys::syscall!(libc::SYS_exit_group, status) };
    unreachable!("the process has ended")
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: the same.
    unsafe { _exit(status) }
}

/// A child would have all target threads.
#[unsafe(no_mangle)]
extern "C" fn fork() -> libc::pid_t {
    die("the program forks, which cannot be simulated: posix_spawn and system are possible")
}
