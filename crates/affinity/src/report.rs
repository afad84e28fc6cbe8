//! What the user reads on standard error.

use crate::arena::Tally;
use crate::inside;
use crate::rules::{Rules, rules};
use gondwana_host::pages::Found;

/// Writes a line, at once.
pub fn say(sentence: &str) {
    let errors = rules().map_or(libc::STDERR_FILENO, |rules| rules.errors);
    let line = format!("gondwana: {sentence}\n");
    // SAFETY: the kernel reads as many bytes as it is told. Whether anybody reads them is not our business.
    unsafe { libc::write(errors, line.as_ptr().cast(), line.len()) };
}

/// Ends a program that frees what it has not got, as the C library does.
pub fn say_and_abort(function: &str, address: usize) -> ! {
    say(&format!("{function}(): there is no block at {address:#x}: it was freed before, or never allocated"));
    std::process::abort()
}

/// Says what came of each rule, if the user wants to know.
pub extern "C" fn at_the_end() {
    let Some(rules) = rules() else { return };
    let Some(_inside) = inside::enter() else { return };
    let Some(program) = rules.plan.report else { return };
    // A forked process has what it was given by another one in its books.
    if std::process::id() == rules.process {
        of_all(rules, program.is_me());
    }
}

fn of_all(rules: &Rules, even_if_nothing: bool) {
    let program = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
    for rule in &rules.rules {
        let tally = rule.arena_so_far().map(|arena| arena.tally());
        if tally.is_some() || even_if_nothing {
            say(&line(program.trim_end(), &rule.text, &tally.unwrap_or_default()));
        }
    }
}

/// What came of a rule.
fn line(program: &str, rule: &str, tally: &Tally) -> String {
    let Tally { calls, bytes, asked, found, colours: (to_colour, coloured) } = tally;
    let on_nodes = |found: &Found, rest: &str| {
        let nodes = found.pages.iter().map(|(node, pages)| format!("{pages} on node {node}"));
        let rest = (found.absent > 0).then(|| format!("{} {rest}", found.absent));
        let parts: Vec<String> = nodes.chain(rest).collect();
        if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
    };
    let colours = match to_colour {
        0 => String::new(),
        _ => format!("; {coloured} of {to_colour} pages have the colour of their turn"),
    };
    format!(
        "{program}: {rule}: {calls} allocations of {bytes} bytes; asked for pages: {}; found: {}{colours}",
        on_nodes(asked, "on any of them"),
        on_nodes(found, "never touched"),
    )
}
