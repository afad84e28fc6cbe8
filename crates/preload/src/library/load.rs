//! Loading libraries of the program's own, on node 0.

use super::companions::{self, Companions};
use super::gaps::{Filler, HUGE_PAGE, free_in};
use super::loading::{self, Loading};
use super::opened::{self, Opened};
use super::request::Answer;
use super::{error, initialisers, locals, replica, runtime, search};
use crate::constructors::in_order;
use crate::ranges::in_pages;
use crate::{report, system_calls};
use gondwana_elf::LibraryFile;
use gondwana_elf::loaded::{self, LoadedObject, Prepared};
use gondwana_interpose::NextFunction;
use gondwana_memory::PAGE_SIZE;
use gondwana_node::{Caller, Node};
use gondwana_page::to_usize;
use libc::{Elf64_Phdr, c_char, c_int, c_void};
use std::ffi::{CStr, CString};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Pages of the stack that the loader's own system calls may write to.
const STACK_PAGES: usize = 16;

/// Free bytes that the loader needs besides: it maps its list of libraries meanwhile, and other threads may map something.
const SPARE: usize = 1 << 20;

/// How often a library is loaded anew that another thread has kept from its place, by unmapping something at the same time.
const ATTEMPTS: usize = 4;

/// Makes the part of the stack present that the loader will use: the kernel cannot write to an absent page.
#[inline(never)]
pub(super) fn touch_stack() {
    let mut frame = [0u8; STACK_PAGES * PAGE_SIZE];
    for at in (0..frame.len()).step_by(PAGE_SIZE) {
        // SAFETY: within the array.
        unsafe { frame.as_mut_ptr().add(at).write_volatile(1) };
    }
}

/// Opens the library that code at `caller` means by a name, for all nodes.
///
/// # Errors
/// A sentence for `dlerror`.
pub(super) fn open(node: &'static Node, name: &CStr, caller: usize, flags: c_int) -> Result<Answer, String> {
    let Some(path) = search::library_of(name, caller) else { return Ok(from_start(name, flags)) };
    // Functions of this library stand in front of the C library's. One that looks in itself and what it needs first would pass them by.
    let flags = flags & !libc::RTLD_DEEPBIND;
    if let Some(library) = opened::in_file(&path) {
        // Of a library that came with another one the loader does not know yet where its symbols are to be looked up; and by
        // `RTLD_GLOBAL` later libraries find them.
        let _ = loading::load(&path, flags | libc::RTLD_NOLOAD);
        return Ok(Answer::Library(library.handle, 0));
    }
    if flags & libc::RTLD_NOLOAD != 0 {
        return Ok(Answer::Library(0, 0));
    }
    let Companions { shared, runtime } = companions::of(&path)?;
    if let Some((file, _)) = shared.iter().find(|(_, file)| file.has_go_runtime) {
        let sentence = format!(
            "dlopen({}): {} is a library in Go, whose runtime maps memory and wakes threads without the C library: nodes cannot share it; run the program without gondwana",
            path.display(),
            if *file == path { "it".into() } else { file.display().to_string() }
        );
        node.refuse(&sentence);
        return Err(sentence);
    }
    for (path, _) in &shared {
        if node.relies_on_search() && needs_order(path) {
            let sentence = format!(
                "dlopen({}): the library has atomic instructions or waits for what other threads write, for which the run did not start; run it with --consistency sc",
                path.display()
            );
            node.refuse(&sentence);
            return Err(sentence);
        }
    }
    for file in &runtime {
        let handle = runtime::open(node, file)?;
        if *file == path {
            return Ok(Answer::Library(handle, 0));
        }
    }
    Group { node, path: &path, flags }.open(&shared)
}

/// The program itself, which has no name, or a library that is there from the start.
fn from_start(name: &CStr, flags: c_int) -> Answer {
    let open = crate::real!(dlopen: fn(*const c_char, c_int) -> *mut c_void);
    touch_stack();
    // SAFETY: loads nothing.
    match unsafe { open(name.as_ptr(), flags | libc::RTLD_NOLOAD) } as usize {
        0 => Answer::Native,
        handle => Answer::Library(handle, 0),
    }
}

/// True if a library has, or may have, atomic instructions, or synchronises by plain loads and stores.
fn needs_order(path: &Path) -> bool {
    let look = |image: &[u8]| {
        let findings = gondwana_atomics::scan(image)?;
        Ok::<_, gondwana_atomics::Error>(
            !findings.atomics.is_empty() || findings.analyse(image)?.plain.is_some(),
        )
    };
    let answer = std::fs::read(path).ok().and_then(|image| look(&image).ok());
    answer.unwrap_or(true)
}

/// Free bytes needed besides the library: the loader and, for long files, the kernel reserve more to align it.
fn slack(file: &LibraryFile) -> usize {
    // The kernel may align mappings of long files to huge pages.
    let round = if file.length >= HUGE_PAGE { HUGE_PAGE } else { 0 };
    round.max(if file.align > PAGE_SIZE { file.align } else { 0 })
}

/// A library that is opened, with what it needs.
struct Group<'a> {
    node: &'static Node,
    path: &'a Path,
    flags: c_int,
}

impl Group<'_> {
    fn refuse(&self, why: &str) -> String {
        let sentence = format!("dlopen({}): {why}; link the program with it instead", self.path.display());
        self.node.refuse(&sentence);
        sentence
    }

    fn open(&self, files: &[(PathBuf, LibraryFile)]) -> Result<Answer, String> {
        // Twice as much, because what is aligned leaves gaps into which not every other library goes.
        let room = 2 * files.iter().map(|(_, file)| file.length + slack(file)).sum::<usize>() + SPARE;
        let start = self.node.map_pages(room, Caller::NONE).ok_or("out of memory")?;
        let hole = start..start + room;
        // SAFETY: the pages were just allocated, so nobody uses them.
        if !unsafe { self.node.exclude_pages(hole.clone()) } {
            return Err("out of memory".to_owned());
        }
        let loaded = self.load_within(&hole, files);
        let taken = loaded.iter().flat_map(|(_, objects, _)| objects).map(replica::pages_of).collect();
        for rest in free_in(&hole, taken) {
            // SAFETY: nobody has mapped anything there.
            if unsafe { self.node.include_pages(rest.clone()) } {
                self.node.unmap_pages(rest.start, rest.len());
            }
        }
        let (real, objects, loading) = loaded?;
        self.spread(real, &in_order(&objects), loading)
    }

    /// Has the loader load the libraries into a hole of the span and nowhere else. Its handle, and what it has loaded.
    fn load_within(
        &self,
        hole: &Range<usize>,
        files: &[(PathBuf, LibraryFile)],
    ) -> Result<(usize, Vec<LoadedObject<'static>>, Loading), String> {
        let mut why = String::new();
        for _ in 0..ATTEMPTS {
            let (real, loading) = self.load_into(hole, files)?;
            // SAFETY: the loader's handle for them is closed only where they are not used any more.
            let objects = unsafe { loading.objects() };
            let Some(stray) = objects.iter().find(|object| !object.is_in(hole)) else {
                return Ok((real, objects, loading));
            };
            why =
                format!("the loader found no place for {} that is free on all nodes", stray.path().display());
            let bases: Vec<usize> = objects.iter().map(LoadedObject::base).collect();
            // SAFETY: the handle was just obtained, and nothing of the libraries has run.
            unsafe { crate::real!(dlclose: fn(*mut c_void) -> c_int)(real as *mut c_void) };
            // What is never unloaded cannot be loaded anew elsewhere.
            // SAFETY: only their number is looked at.
            if !unsafe { loaded::select(|object| bases.contains(&object.base())) }.is_empty() {
                break;
            }
        }
        Err(self.refuse(&why))
    }

    /// Has the loader load the library into a hole of the span.
    fn load_into(
        &self,
        hole: &Range<usize>,
        files: &[(PathBuf, LibraryFile)],
    ) -> Result<(usize, Loading), String> {
        let shortest = files.iter().map(|(_, file)| file.length).min().unwrap_or(PAGE_SIZE);
        let filler = Filler::above(hole.end, shortest, files.len()).ok_or("out of memory")?;
        touch_stack();
        // The code must be bound completely before it is copied.
        let flags = self.flags & !libc::RTLD_LAZY | libc::RTLD_NOW;
        let (real, loading) = loading::during(true, || loading::load(self.path, flags));
        drop(filler);
        match real {
            Ok(real) => Ok((real, loading)),
            Err(sentence) if sentence.contains("static TLS") => {
                Err(self.refuse("its thread-local variables are too large"))
            }
            Err(sentence) => Err(sentence),
        }
    }

    /// Gives all nodes the libraries, which are in the order of their initialisers.
    fn spread(
        &self,
        real: usize,
        objects: &[&LoadedObject<'static>],
        mut loading: Loading,
    ) -> Result<Answer, String> {
        let node = self.node;
        let mut all = vec![];
        for object in objects {
            // SAFETY: the loader has loaded it, and no other thread uses it.
            let prepared = unsafe { loading.finish(object) }
                .ok_or_else(|| self.refuse("the loader did not wait for other nodes"))?;
            if object.has_thread_locals() && prepared.distance.is_none() {
                return Err(self.refuse("only other libraries use its thread-local variables"));
            }
            all.push(prepared);
        }
        let locals = |object: &LoadedObject<'_>, prepared: &Prepared| {
            prepared.distance.map(|distance| (object.thread_module(), distance))
        };
        let mine: Vec<_> =
            objects.iter().zip(&all).filter_map(|(object, prepared)| locals(object, prepared)).collect();
        let (mut handle, mut libraries) = (0, vec![]);
        for (object, prepared) in objects.iter().zip(&all) {
            // SAFETY: as above.
            if !unsafe { locals::unify(object, &mine) } {
                return Err(self.refuse("it uses thread-local variables that other nodes do not have"));
            }
            let path = std::fs::canonicalize(object.path()).unwrap_or_default();
            let is_wanted = path == self.path;
            let calls = system_calls::find_in(object, &path);
            let library = Opened {
                path,
                base: object.base(),
                handle: node.allocate(size_of::<usize>(), 16, Caller::NONE).ok_or("out of memory")?,
                real: if is_wanted { real } else { real_handle(object) },
                is_spoiled: false,
                is_whole: true,
                calls,
                locals: locals(object, prepared),
            };
            if is_wanted {
                handle = library.handle;
            }
            share(node, object).ok_or_else(|| self.refuse("the other nodes have no room for it"))?;
            libraries.push((*object, library));
        }
        replica::give(node, &libraries, self.flags)
            .ok_or_else(|| self.refuse("another node could not load it at the same place"))?;
        for (object, library) in libraries {
            // SAFETY: the object is never unloaded, and its initialisers have not run yet.
            unsafe { system_calls::replace_in(object, &library.path, &library.calls) };
            opened::add(library);
        }
        let initialisers: Vec<_> = all.into_iter().flat_map(|prepared| prepared.initialisers).collect();
        let list = initialisers::list(node, &initialisers).ok_or("out of memory")?;
        Ok(Answer::Library(handle, list))
    }
}

/// The loader's handle for an object.
fn real_handle(object: &LoadedObject<'_>) -> usize {
    // SAFETY: the object is never unloaded.
    unsafe { loaded::at(object.text().start) }.map_or(0, |found| found.handle() as usize)
}

/// Makes a library's variables shared.
fn share(node: &'static Node, object: &LoadedObject<'_>) -> Option<()> {
    for segment in object.loads() {
        let (_, shared) = divide(object, segment);
        if shared.is_empty() {
            continue;
        }
        // SAFETY: the loader has mapped the segment; nobody uses the library yet, so that it may be replaced by what will be its
        // variables for good.
        unsafe {
            let bytes = std::slice::from_raw_parts(shared.start as *const u8, shared.len()).to_vec();
            if !node.include_pages(shared.clone()) {
                return None;
            }
            // The new pages read as zero: those that stay so are not touched.
            for (page, bytes) in shared.step_by(PAGE_SIZE).zip(bytes.chunks(PAGE_SIZE)) {
                if bytes.iter().any(|&byte| byte != 0) {
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), page as *mut u8, bytes.len());
                }
            }
        }
    }
    Some(())
}

/// The pages of a segment that hold code and constants, and those that hold variables.
pub(super) fn divide(object: &LoadedObject<'_>, segment: &Elf64_Phdr) -> (Range<usize>, Range<usize>) {
    let Range { start, end } = in_pages(&object.range(segment));
    if segment.p_flags & libc::PF_W == 0 {
        return (start..end, end..end);
    }
    let constants = object.read_only_pages().end;
    let middle = if (start..=end).contains(&constants) { constants } else { start };
    (start..middle, middle..end)
}

/// The address of a symbol of one of our libraries; on node 0 only.
///
/// # Errors
/// A sentence for `dlerror`.
pub(super) fn find(node: &'static Node, handle: usize, name: &CStr) -> Result<Answer, String> {
    let handle = match opened::with_handle(handle) {
        None if node.is_shared(handle) => return Err(not_a_library(handle)),
        None => handle,
        Some(library) => library.real,
    };
    error::clear();
    let mut texts =
        name.to_bytes().splitn(2, |&byte| byte == b'@').map(|text| CString::new(text).unwrap_or_default());
    let (name, version) = (texts.next().unwrap_or_default(), texts.next());
    // A symbol may well have the value 0: only `dlerror` tells.
    // SAFETY: has no preconditions.
    unsafe { error::dlerror() };
    let address = find_here(handle, &name, version.as_deref());
    // SAFETY: as above.
    let sentence = unsafe { error::dlerror() };
    if !sentence.is_null() {
        // SAFETY: a string.
        return Err(unsafe { CStr::from_ptr(sentence) }.to_string_lossy().into_owned());
    }
    // Nothing but thread-local variables is there.
    if node.thread_memory().own().contains(&address) {
        return Ok(Answer::ThreadLocal(address.wrapping_sub(to_usize(crate::pthread::native_self()))));
    }
    Ok(Answer::Symbol(address))
}

/// The address of a symbol that this node's loader finds by a handle of its own; 0 with a message of `dlerror` if there is none.
pub(super) fn find_here(handle: usize, name: &CStr, version: Option<&CStr>) -> usize {
    let handle = handle as *mut c_void;
    // SAFETY: every C library has these types of the functions.
    unsafe {
        match version {
            None => {
                let dlsym: unsafe extern "C" fn(*mut c_void, *const c_char) -> usize =
                    std::mem::transmute(real_dlsym());
                dlsym(handle, name.as_ptr())
            }
            Some(version) => {
                let dlvsym: unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> usize =
                    std::mem::transmute(real_dlvsym());
                dlvsym(handle, name.as_ptr(), version.as_ptr())
            }
        }
    }
}

/// The sentence for a handle that is none of ours.
pub(super) fn not_a_library(handle: usize) -> String {
    format!("{handle:#x} is no library that was opened")
}

/// The C library's `dlsym`.
pub(super) fn real_dlsym() -> usize {
    static FUNCTION: NextFunction = NextFunction::new(c"dlsym");
    in_c_library(&FUNCTION)
}

/// The C library's `dlvsym`.
pub(super) fn real_dlvsym() -> usize {
    static FUNCTION: NextFunction = NextFunction::new(c"dlvsym");
    in_c_library(&FUNCTION)
}

/// The address of a function that looks others up.
fn in_c_library(function: &NextFunction) -> usize {
    function
        .of_c_library()
        .unwrap_or_else(|| report::fatal("the C library has no function to look symbols up"))
}
