//! How a process becomes a node: before the program's own start-up code runs.

use crate::io::fork_handlers::{self, ForkHandlers};
use crate::io::{
    children, descriptors, output, record_holder, record_locks, stream_memory, stream_order,
    streams_elsewhere, streams_for_others,
};
use crate::numbers::many;
use crate::stack::on_stack;
use crate::{
    alloc, api, constructors, exit, generated_frames, library, locked, main_thread, map, openmp, plt_stubs,
    private_stack, process, pthread, random, report, signals, span_stack, synchronising, system_calls,
};
use gondwana_coherence::Consistency;
use gondwana_control::{Boot, Control, Report};
use gondwana_elf::DescribedFunction;
use gondwana_node::{Caller, Hooks, Node, ProcessChange, Thread};
use gondwana_page::to_usize;
use libc::{c_char, c_int, c_void};
use std::ffi::CStr;
use std::os::fd::{FromRawFd, OwnedFd};

type Main = extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
type Init = extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char);
type Fini = extern "C" fn();

/// The arguments of `__libc_start_main`.
struct Start {
    main: Main,
    argc: c_int,
    argv: *mut *mut c_char,
    init: Option<Init>,
    fini: Option<Fini>,
    loader_fini: Option<Fini>,
    stack_end: *mut c_void,
}

impl Start {
    fn go(&self) -> c_int {
        let real = crate::real!(__libc_start_main: fn(
            Main, c_int, *mut *mut c_char, Option<Init>, Option<Fini>, Option<Fini>, *mut c_void,
        ) -> c_int);
        // SAFETY: forwards what the loader passed, with another main and init on the worker nodes.
        unsafe {
            real(self.main, self.argc, self.argv, self.init, self.fini, self.loader_fini, self.stack_end)
        }
    }
}

/// # Safety
/// Called by the program's entry code only.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __libc_start_main(
    main: Main,
    argc: c_int,
    argv: *mut *mut c_char,
    init: Option<Init>,
    fini: Option<Fini>,
    loader_fini: Option<Fini>,
    stack_end: *mut c_void,
) -> c_int {
    let mut start = Start { main, argc, argv, init, fini, loader_fini, stack_end };
    let boot = match Boot::from_env() {
        Ok(Some(boot)) => boot,
        Ok(None) => return start.go(),
        Err(error) => report::fatal(&format!("the launcher's instructions are unusable: {error}")),
    };
    // SAFETY: the environment follows the arguments on the initial stack.
    unsafe { restore_environment(argv.add(many(argc) + 1), &boot.hidden_env) };
    let (first, me, nodes) = (boot.node == 0, usize::from(boot.node), usize::from(boot.nodes));
    process::standard_streams::begin();
    plt_stubs::replace();
    exit::begin();
    library::begin();
    let hooks = Hooks {
        start_thread: pthread::start_thread,
        flush_output: exit::flush_output,
        flush_all_streams: exit::flush_all_streams,
        told: openmp::told,
        later: openmp::later,
        exit: exit::end_here,
        on_private_stack: private_stack::on_private_stack,
        apply,
        lend: descriptors::lend,
        next_descriptor: descriptors::next_open,
        call_descriptor: descriptors::call_here,
        call_descriptor_at_once: descriptors::call_at_once,
        interrupt: pthread::cancel::interrupt,
        call_stream: streams_for_others::call_here,
        call_stream_at_once: streams_for_others::call_at_once,
        native_self: pthread::native_self,
        handles_signals: signals::are_handled,
    };
    if nodes > 1 {
        descriptors::reserve(boot.nodes, boot.node);
        stream_order::begin();
        stream_memory::begin(me, nodes);
        if !first {
            output::begin(boot.outputs_apart, boot.consistency == Consistency::Rc);
        }
    }
    let control = boot.control_fd;
    if nodes > 1 {
        process::zone::use_own_variables();
        if let Err(why) = process::memory::map() {
            fail(control, &why);
        }
    }
    keep_room_in_heap();
    let watched = match synchronising::prepare(&boot.watched) {
        Ok(watched) => watched,
        Err(why) => fail(control, &format!("{why}; say --consistency sc")),
    };
    // SAFETY: no other thread runs yet.
    let node = match unsafe { Node::start(boot, hooks, __libc_start_main as *const () as usize) } {
        Ok(node) => node,
        Err(error) => fail(control, &error.to_string()),
    };
    descriptors::begin();
    alloc::begin();
    if let Err(why) = locked::begin(node) {
        fail(control, &format!("{why}; say --consistency sc"));
    }
    if let Err(why) = synchronising::begin(&watched) {
        fail(control, &format!("{why}; say --consistency sc"));
    }
    signals::begin();
    pthread::cancel::handle_signal();
    if nodes > 1 {
        system_calls::begin();
        openmp::begin(node);
        api::begin(node);
        random::begin(node);
        map::program_break::begin(node);
        process::begin();
    }
    if first {
        main_thread::run(node, move || start_main(node, start))
    } else {
        start.main = serve;
        start.init = Some(no_constructors);
        // Before it calls `serve`, the C library reads `environ`, of which the program may have a shared copy.
        Thread::become_service();
        start.go()
    }
}

/// Ends this process, which could not become a node. The launcher prints the reason, once for all nodes.
fn fail(control: c_int, why: &str) -> ! {
    // SAFETY: the launcher left this descriptor to this process alone, which ends now.
    let control = Control::new(unsafe { OwnedFd::from_raw_fd(control) });
    match control.send(&Report::Failed { why: why.to_owned() }) {
        Ok(()) => report::end(),
        Err(_) => report::fatal(why),
    }
}

/// Applies a change to this process that a thread of another node made to its own; 0 or an error number.
fn apply(change: &ProcessChange) -> c_int {
    match *change {
        ProcessChange::Directory { ref path } => process::directory::go_here(path),
        ProcessChange::Mask { mask } => process::directory::set_mask_here(mask),
        ProcessChange::Common { at, ref bytes } => process::memory::write_for(to_usize(at), bytes),
        ProcessChange::Environ { list } => {
            Node::current().map_or(0, |node| process::environment::point_here(node, to_usize(list)))
        }
        ProcessChange::Action { signal, handler, flags, mask } => {
            signals::put_in_force_here(signal, to_usize(handler), flags, mask)
        }
        ProcessChange::Protect { address, length, protection, beyond_file } => {
            map::protect_here(to_usize(address), to_usize(length), protection, beyond_file)
        }
        ProcessChange::File(ref mapping) => map::change_file_here(mapping),
        ProcessChange::CloseDescriptor { descriptor } => descriptors::close_here(descriptor),
        ProcessChange::ForgetDescriptor { descriptor } => {
            descriptors::forget(descriptor);
            0
        }
        ProcessChange::Descriptors { node, first, end } => {
            descriptors::give_here(node, first, end);
            0
        }
        ProcessChange::HasChildren { node } => {
            children::note_parent(node);
            0
        }
        ProcessChange::LockRecords => {
            record_locks::note_use();
            0
        }
        ProcessChange::ForgetRecords { device, number } => {
            record_holder::forget(device, number);
            0
        }
        ProcessChange::UnmarkStream { stream } => streams_elsewhere::unmark(stream),
        ProcessChange::Standard { descriptor, stream } => descriptors::follow(descriptor, stream),
        ProcessChange::Signal { thread, signal, value } => pthread::kill_here(thread, signal, value),
        ProcessChange::Kill { group, signal, value } => process::kill::send_here(group, signal, value),
        ProcessChange::Takes { signal } => process::stray_signals::are_taken_here(signal),
        ProcessChange::Cancel { thread } => pthread::cancel::request_here(thread),
        ProcessChange::KillThread { thread, signal } => process::kill::send_to_thread_here(thread, signal),
        ProcessChange::TakePending { mask } => process::kill::take_here(mask),
        ProcessChange::AtFork { prepare, parent, child } => {
            let [prepare, parent, child] = [prepare, parent, child].map(|address| {
                // SAFETY: a function for this purpose, which is at the same address on all nodes.
                unsafe { fork_handlers::at(to_usize(address)) }
            });
            fork_handlers::add_here(ForkHandlers { prepare, parent, child });
            0
        }
        ProcessChange::AtExit { function, argument, object } => {
            exit::at_exit_here(to_usize(function), to_usize(argument), to_usize(object))
        }
        ProcessChange::ExpectRobustMutexes => pthread::expect_robust_mutexes(),
        ProcessChange::Congruential { multiplier, addend } => random::set_parameters_here(multiplier, addend),
        ProcessChange::Frames { table, ref functions } => {
            let described = |&[start, end, entry]: &[u64; 3]| DescribedFunction { code: start..end, entry };
            generated_frames::add_here(table, functions.iter().map(described).collect());
            0
        }
        ProcessChange::ForgetFrames { table } => {
            generated_frames::remove_here(table);
            0
        }
    }
}

/// Node 0 runs the program: constructors and `main` on a stack in the span.
fn start_main(node: &'static Node, mut start: Start) {
    let Some(stack) = span_stack::take_for_main(node) else {
        report::fatal("the span has no room for main's stack; give a larger --span");
    };
    let top = stack.end;
    main_thread::tell_stack_end(top);
    pthread::attributes::begin(node.main_thread(), top - node.default_stack()..top);
    Thread::begin(node, node.main_thread(), stack, start.main as usize);
    pthread::cancel::begin(node.main_thread());
    node.begin_monitoring();
    node.serve_in_background();
    node.main_begins();
    node.place_data();
    share_arguments(node, &mut start);
    // SAFETY: the loader has passed so many.
    unsafe { library::keep_arguments(node, many(start.argc), start.argv) };
    if process::common().is_some() {
        process::environment::begin(node);
    }
    // SAFETY: the stack is main's own, and `start` outlives the call.
    unsafe { on_stack(enter, (&raw mut start).cast(), top, &mut 0) };
    unreachable!("the C library's start never returns")
}

unsafe extern "C" fn enter(start: *mut c_void) -> *mut c_void {
    // SAFETY: `start_main` passes its own structure.
    let start = unsafe { &*start.cast::<Start>() };
    // Before anything else is registered, so that they run last.
    exit::register_last_handlers();
    // As a process begins. Programs look at it after calls that succeed.
    crate::errno::set(0);
    constructors::run(start.argc, start.argv, process::environment::present());
    start.go();
    std::ptr::null_mut()
}

/// Copies the arguments into shared memory: threads on other nodes follow pointers to them.
fn share_arguments(node: &'static Node, start: &mut Start) {
    for index in 0..many(start.argc) {
        // SAFETY: the initial stack holds `argc` strings.
        unsafe {
            let text = CStr::from_ptr(*start.argv.add(index)).to_bytes_with_nul();
            if let Some(address) = node.allocate(text.len(), 16, Caller::NONE) {
                std::ptr::copy_nonoverlapping(text.as_ptr(), address as *mut u8, text.len());
                *start.argv.add(index) = address as *mut c_char;
            }
        }
    }
}

/// Runs in place of `main` on nodes other than node 0: serves the others until the run ends.
extern "C" fn serve(_argc: c_int, _argv: *mut *mut c_char, _environment: *mut *mut c_char) -> c_int {
    let node = Node::current().expect("started");
    node.begin_monitoring();
    node.serve()
}

/// Nodes other than node 0 run no constructors of the program: they get the results through shared memory.
extern "C" fn no_constructors(_argc: c_int, _argv: *mut *mut c_char, _environment: *mut *mut c_char) {}

/// Restores the program's native environment: each of the launcher's variables gets its former value or is removed.
///
/// # Safety
/// `environment` is the process's initial, null-terminated environment.
unsafe fn restore_environment(environment: *mut *mut c_char, hidden: &[(String, Option<String>)]) {
    let name_of =
        |entry: &[u8]| -> Vec<u8> { entry.split(|&byte| byte == b'=').next().unwrap_or(&[]).to_vec() };
    let mut read = environment;
    let mut write = environment;
    // SAFETY: stays within the array, which only gets shorter.
    unsafe {
        while !(*read).is_null() {
            let name = name_of(CStr::from_ptr(*read).to_bytes());
            let ours = hidden.iter().find(|(hidden, _)| hidden.as_bytes() == name);
            match ours {
                Some((_, None)) => {}
                Some((name, Some(value))) => {
                    let text =
                        std::ffi::CString::new(format!("{name}={value}")).expect("came from an environment");
                    *write = text.into_raw();
                    write = write.add(1);
                }
                None => {
                    *write = *read;
                    write = write.add(1);
                }
            }
            read = read.add(1);
        }
        *write = std::ptr::null_mut();
    }
}

/// The runtime's heap, the C library's, grows by so many bytes more than are asked for; they cost nothing before they are used.
///
/// While a library is loaded the heap cannot grow (`library/gaps.rs`). What other threads of the node allocate meanwhile, as for pages that
/// another node has touched, would get a mapping of its own, in the place for the library.
fn keep_room_in_heap() {
    const ROOM: c_int = 8 << 20;
    // SAFETY: sets a number.
    unsafe { crate::private::Private::mallopt(libc::M_TOP_PAD, ROOM) };
}
