//! Reading the stacks of node processes of this computer, with names.

use super::shown;
use gondwana_analysis::Names;
use gondwana_inspect::{Frame, Observer, Task, tasks};
use gondwana_recording::ImageRecord;
use gondwana_symbols::Symbols;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The runtime library, whose frames are folded.
const RUNTIME: &str = "libgondwana.so";

/// Bytes of the largest object that threads wait for: `pthread_rwlock_t`.
const LARGEST_OBJECT: u64 = 56;

/// Which stacks to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookRequest {
    /// The number of the request.
    pub id: u64,
    /// The nodes.
    pub nodes: Vec<u16>,
    /// The kernel's number of the only thread to look at; `None`: all threads.
    pub task: Option<u32>,
    /// Addresses of variables whose names are wanted.
    pub addresses: Vec<u64>,
}

/// The stacks of some nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookResult {
    /// The number of the request.
    pub id: u64,
    /// The nodes that were there, in any order.
    pub nodes: Vec<NodeStacks>,
}

/// The stacks of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStacks {
    /// The node.
    pub node: u16,
    /// Its threads, in the order of the kernel's numbers.
    pub tasks: Vec<TaskStack>,
    /// The variables at the addresses that were asked for, where there are some.
    pub names: Vec<(u64, String)>,
    /// Why there are no stacks, if there are none.
    pub failed: Option<String>,
}

/// The stack of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStack {
    /// The kernel's number of the thread.
    pub task: u32,
    /// Its name for the kernel.
    pub name: String,
    /// The system call that it is in, with what its descriptor leads to, for people; empty if it runs, or that is unknown.
    pub call: String,
    /// Its frames, the innermost first. Those of the runtime are folded: the one that the program has called stands for all.
    pub frames: Vec<StackFrame>,
    /// Why there are none, if there are none.
    pub failed: Option<String>,
}

/// A frame.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackFrame {
    /// The function; empty if it is unknown.
    pub function: String,
    /// The source file; empty if it is unknown.
    pub file: String,
    /// The line in it; 0 if it is unknown.
    pub line: u32,
    /// The file name of the library; empty for the executable and for unknown code.
    pub library: String,
    /// The address of the instruction.
    pub address: u64,
    /// It is of the runtime.
    pub runtime: bool,
    /// A signal has interrupted it: the frame before is the first of its handler.
    pub interrupted: bool,
}

impl fmt::Display for StackFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.function.as_str() {
            "" => write!(f, "{:#x}", self.address)?,
            function => f.write_str(function)?,
        }
        match (self.file.as_str(), self.line, self.library.as_str()) {
            ("", _, "") => Ok(()),
            ("", _, library) => write!(f, " in {library}"),
            (file, 0, _) => write!(f, " in {file}"),
            (file, line, _) => write!(f, " at {file}:{line}"),
        }
    }
}

/// A node process to look at, with the threads that have been found.
pub struct Unwound {
    node: u16,
    observed: Result<(Observer, Vec<Task>), String>,
}

/// Stops the threads of a node process one after the other and reads their stacks, without names. Called by a thread that ends
/// soon: threads that cannot be stopped stay traced by it until then, without noticing.
pub fn unwind(node: u16, process: u32, task: Option<u32>) -> Unwound {
    let observed = Observer::new(process).map_err(|error| error.to_string()).map(|observer| {
        let tasks = task.map_or_else(|| tasks(process), |task| vec![task]);
        let tasks = tasks.into_iter().map(|task| observer.look(task)).collect();
        (observer, tasks)
    });
    Unwound { node, observed }
}

/// The names for what was read. All nodes have the same files at the same addresses, so that one node's symbols serve all.
pub fn named(nodes: Vec<Unwound>, addresses: &[u64]) -> Vec<NodeStacks> {
    let first = nodes.iter().find_map(|node| node.observed.as_ref().ok());
    let symbols = first.map(|(observer, _)| Symbols::open(&images(observer)).0);
    nodes
        .into_iter()
        .map(|Unwound { node, observed }| match (observed, &symbols) {
            (Ok((_, tasks)), Some(symbols)) => NodeStacks {
                node,
                tasks: tasks.into_iter().map(|task| named_task(task, symbols)).collect(),
                names: addresses
                    .iter()
                    .filter_map(|&address| Some((address, variable(symbols, address)?)))
                    .collect(),
                failed: None,
            },
            (observed, _) => NodeStacks { node, failed: observed.err(), ..NodeStacks::default() },
        })
        .collect()
}

fn images(observer: &Observer) -> Vec<ImageRecord> {
    let image = |object: &gondwana_inspect::Object| ImageRecord {
        path: object.path.clone(),
        base: object.base,
        start: object.addresses.start,
        end: object.addresses.end,
        build_id: object.build_id.clone(),
    };
    observer.objects().map(image).collect()
}

/// The name of the variable at an address, with the field.
fn variable(symbols: &Symbols, address: u64) -> Option<String> {
    let variable = symbols.variable(address)?;
    let offset = address.wrapping_sub(variable.start);
    // The first part of an object that synchronises says nothing of it.
    if offset == 0 && variable.bytes <= LARGEST_OBJECT {
        return Some(variable.name);
    }
    let field = symbols.field(&variable, offset);
    let rest = if field.is_empty() && offset > 0 { format!("+{offset:#x}") } else { String::new() };
    Some(shown::object_part(&variable.name, &field) + &rest)
}

fn named_task(Task { task, name, call, frames }: Task, symbols: &Symbols) -> TaskStack {
    let (frames, failed) = match frames {
        Ok(frames) => (named_frames(&frames, symbols), None),
        Err(why) => (vec![], Some(why)),
    };
    TaskStack { task, name, call: call.map(|call| shown::call(&call)).unwrap_or_default(), frames, failed }
}

/// What the program calls a function of the runtime: an exported one goes on in a function `whole` of its own, and may have ended.
fn called(function: &str) -> &str {
    function.strip_suffix("::whole").and_then(|path| path.rsplit("::").next()).unwrap_or(function)
}

fn named_frames(frames: &[Frame], symbols: &Symbols) -> Vec<StackFrame> {
    let mut named: Vec<StackFrame> = vec![];
    for (index, frame) in frames.iter().enumerate() {
        let address = frame.inside();
        let interrupted = index > 0 && frame.exact;
        let library = symbols.library(address).unwrap_or_default();
        if library == RUNTIME {
            let function = called(&symbols.function(address).unwrap_or_default()).to_owned();
            // What the runtime calls of the C library is the runtime's.
            if !interrupted && named.iter().all(|frame| frame.runtime || frame.library.starts_with("libc.")) {
                named.clear();
            }
            // The outermost of several.
            if named.last().is_some_and(|last| last.runtime) && !interrupted {
                named.pop();
            }
            named.push(StackFrame {
                function,
                library,
                address,
                runtime: true,
                interrupted,
                ..StackFrame::default()
            });
            continue;
        }
        let codes = symbols.code(address);
        if codes.is_empty() {
            let library = library.clone();
            named.push(StackFrame { library, address, interrupted, ..StackFrame::default() });
        }
        // Functions that were inlined come first.
        for (depth, code) in codes.into_iter().enumerate() {
            named.push(StackFrame {
                function: code.function,
                file: code.file,
                line: code.line,
                library: library.clone(),
                address,
                runtime: false,
                interrupted: interrupted && depth == 0,
            });
        }
    }
    trim(&mut named);
    named
}

/// Leaves out the frames that start threads.
fn trim(frames: &mut Vec<StackFrame>) {
    const STARTS: [&str; 9] = [
        "_start",
        "__libc_start_main",
        "__libc_start_main_impl",
        "__libc_start_call_main",
        "__libc_start_main_alias_2",
        "start_thread",
        "clone",
        "clone3",
        "__clone3",
    ];
    let starts = |frame: &StackFrame| {
        let name = frame.function.split('@').next().unwrap_or_default();
        frame.runtime
            || STARTS.contains(&name)
            || frame.function.is_empty() && frame.library.starts_with("libc.")
    };
    // A thread of the runtime has no others.
    let own = frames.iter().rposition(|frame| !starts(frame)).map_or(frames.len().min(1), |last| last + 1);
    frames.truncate(own);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exported_function_is_known_by_its_name() {
        assert_eq!(called("gondwana::pthread::mutex::pthread_mutex_lock::whole"), "pthread_mutex_lock");
        assert_eq!(called("pthread_join"), "pthread_join");
    }

    #[test]
    fn frames_that_start_threads_are_left_out() {
        let frame = |function: &str, runtime| StackFrame {
            function: function.to_owned(),
            runtime,
            ..StackFrame::default()
        };
        let mut frames = vec![
            frame("pthread_join", true),
            frame("wait_all", false),
            frame("main", false),
            frame("begin_main", true),
            frame("__libc_start_main@@GLIBC_2.34", false),
            frame("_start", false),
        ];
        trim(&mut frames);
        let names: Vec<_> = frames.iter().map(|frame| frame.function.as_str()).collect();
        assert_eq!(names, ["pthread_join", "wait_all", "main"]);
        let mut frames = vec![frame("serve", true), frame("start_thread", false), frame("clone3", false)];
        trim(&mut frames);
        assert_eq!(frames.len(), 1);
    }
}
