//! The threads of a run as text.

use gondwana_control::Awaited;
use gondwana_launcher::stacks::StackFrame;
use gondwana_launcher::stacks::report::{RingPart, StackReport, ThreadName, ThreadReport, WaitReport};

/// All threads, deadlocks first.
pub(super) fn render(report: &StackReport) -> String {
    let StackReport { program, nodes, deadlocks, all_wait, threads, notes } = report;
    let own = threads.iter().filter(|thread| thread.thread.is_some()).count();
    let mut text = format!("{program}: {}, {}\n", many(*nodes, "node"), many(own, "thread"));
    for ring in deadlocks {
        text += &format!("\nDEADLOCK: {}\n", around(ring));
    }
    if deadlocks.is_empty() && *all_wait {
        text += "\nAll threads wait for another one: nobody is left to go on, but for handlers of signals.\n";
    }
    for thread in threads {
        text += &one(thread);
    }
    for note in notes {
        text += &format!("\n{note}\n");
    }
    text
}

fn many<N: std::fmt::Display + PartialEq + From<u8>>(count: N, what: &str) -> String {
    if count == N::from(1) { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// A ring of threads, as a sentence.
fn around(ring: &[RingPart]) -> String {
    let part = |RingPart { thread, node, awaited, object, name, .. }: &RingPart| {
        let object = match awaited {
            Awaited::Join => "the end".to_owned(),
            awaited => format!("{} {}", kind(*awaited), named(name, *object)),
        };
        (format!("thread {thread} (node {node})"), object)
    };
    let mut text = String::new();
    for (index, ring_part) in ring.iter().enumerate() {
        let (thread, object) = part(ring_part);
        let verb = if index == 0 {
            format!("{thread} waits for {object}")
        } else {
            format!("which waits for {object}")
        };
        let next = ring.get(index + 1).unwrap_or(&ring[0]);
        let holder = match (ring.len(), index + 1 == ring.len()) {
            (1, _) => "itself".to_owned(),
            (_, true) => format!("thread {}", next.thread),
            _ => part(next).0,
        };
        let held = if ring_part.awaited == Awaited::Join { "of" } else { "held by" };
        text += &format!("{}{verb} {held} {holder}", if index == 0 { "" } else { ", " });
    }
    text
}

fn one(thread: &ThreadReport) -> String {
    let who = match thread.thread {
        Some(number) => format!("thread {number} on node {}", thread.node),
        None => format!("runtime thread {} on node {}", thread.name, thread.node),
    };
    let does = match (&thread.wait, thread.call.as_str()) {
        (Some(wait), _) => format!("waits {}", waits(wait)),
        (None, "") => "runs".to_owned(),
        (None, call) => format!("is in {call}"),
    };
    let mut text = format!("\n{who} (task {}) {does}\n", thread.task);
    if let Some(why) = &thread.failed {
        text += &format!("    no stack: {why}\n");
    }
    for frame in &thread.frames {
        text += &format!("    {}\n", framed(frame));
    }
    text
}

fn framed(frame: &StackFrame) -> String {
    match (frame.runtime, frame.interrupted) {
        (true, _) => format!("{frame} (the runtime)"),
        (false, true) => format!("{frame} (interrupted by a signal)"),
        _ => frame.to_string(),
    }
}

fn kind(awaited: Awaited) -> &'static str {
    match awaited {
        Awaited::Mutex => "mutex",
        Awaited::Condition => "condition",
        Awaited::Barrier => "barrier",
        Awaited::Semaphore => "semaphore",
        Awaited::ReadLock | Awaited::WriteLock => "readers-writer lock",
        Awaited::Join => "thread",
        Awaited::Once => "what is done once,",
        Awaited::Futex => "a change of the word",
        Awaited::Page => "the page of",
        Awaited::Descriptor => "descriptor",
    }
}

fn named(name: &str, object: u64) -> String {
    if name.is_empty() { format!("at {object:#x}") } else { format!("{name} ({object:#x})") }
}

/// What follows "waits".
fn waits(wait: &WaitReport) -> String {
    let WaitReport { awaited, object, name, timed, on, missing } = wait;
    let what = match awaited {
        Awaited::Join if on.len() != 1 => "for the end of all other threads".to_owned(),
        Awaited::Join => format!("for the end of {}", threads(on)),
        Awaited::Descriptor => format!("for descriptor {object} of another node"),
        awaited => {
            let purpose = match awaited {
                Awaited::ReadLock => "to read, ",
                Awaited::WriteLock => "to write, ",
                _ => "",
            };
            format!("{purpose}for {} {}", kind(*awaited), named(name, *object))
        }
    };
    let who = match (awaited, missing) {
        (Awaited::Join, _) => String::new(),
        (_, Some(missing)) if on.is_empty() => format!(", where {missing} more must come"),
        (_, Some(missing)) if on.len() == *missing as usize => format!(", where {} missing", are(on)),
        (_, Some(missing)) => format!(", where {missing} of {} are missing", threads(on)),
        (_, None) if on.is_empty() => String::new(),
        _ => format!(", held by {}", threads(on)),
    };
    let limit = if *timed { ", for a limited time" } else { "" };
    format!("{what}{who}{limit}")
}

fn are(on: &[ThreadName]) -> String {
    format!("{} {}", threads(on), if on.len() == 1 { "is" } else { "are" })
}

fn threads(on: &[ThreadName]) -> String {
    let thread = |ThreadName { thread, node }: &ThreadName| match node {
        Some(node) => format!("thread {thread} (node {node})"),
        None => format!("thread {thread}"),
    };
    on.iter().map(thread).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(thread: u32, node: u16, name: &str) -> RingPart {
        RingPart { thread, node, awaited: Awaited::Mutex, object: 16, name: name.to_owned() }
    }

    #[test]
    fn a_ring_is_one_sentence() {
        assert_eq!(
            around(&[part(1, 1, "a"), part(2, 0, "")]),
            "thread 1 (node 1) waits for mutex a (0x10) held by thread 2 (node 0), which waits for mutex at 0x10 held by thread 1"
        );
        assert_eq!(around(&[part(1, 1, "a")]), "thread 1 (node 1) waits for mutex a (0x10) held by itself");
    }

    #[test]
    fn waits_say_on_whom() {
        let on = vec![ThreadName { thread: 3, node: Some(1) }];
        let wait = |awaited, on: &[ThreadName], missing| WaitReport {
            awaited,
            object: 16,
            name: "gate".to_owned(),
            timed: false,
            on: on.to_vec(),
            missing,
        };
        let said = [
            waits(&wait(Awaited::Barrier, &on, Some(1))),
            waits(&wait(Awaited::Barrier, &[], Some(2))),
            waits(&wait(Awaited::Mutex, &on, None)),
            waits(&wait(Awaited::Condition, &[], None)),
            waits(&wait(Awaited::Join, &on, None)),
            waits(&wait(Awaited::Descriptor, &[], None)),
            waits(&WaitReport { timed: true, ..wait(Awaited::WriteLock, &on, None) }),
        ];
        assert_eq!(
            said,
            [
                "for barrier gate (0x10), where thread 3 (node 1) is missing",
                "for barrier gate (0x10), where 2 more must come",
                "for mutex gate (0x10), held by thread 3 (node 1)",
                "for condition gate (0x10)",
                "for the end of thread 3 (node 1)",
                "for descriptor 16 of another node",
                "to write, for readers-writer lock gate (0x10), held by thread 3 (node 1), for a limited time",
            ]
        );
    }
}
