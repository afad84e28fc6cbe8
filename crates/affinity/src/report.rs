//! The report of all rules, printed when the program ends.

use crate::arena::PageCounts;
use crate::inside;
use crate::message::say;
use crate::rules::{Rules, rules};
use gondwana_host::pages::Found;

/// Prints the report, if requested.
pub(crate) extern "C" fn at_the_end() {
    let Some(rules) = rules() else { return };
    let Some(_inside) = inside::enter() else { return };
    let Some(program) = rules.plan.report else { return };
    // A forked process has inherited the counts of its parent.
    if std::process::id() == rules.process {
        of_all(rules, program.is_me());
    }
}

fn of_all(rules: &Rules, even_if_nothing: bool) {
    let program = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
    for rule in &rules.rules {
        let counts = rule.arena_so_far().map(|arena| arena.page_counts());
        if counts.is_some() || even_if_nothing {
            say(&line(program.trim_end(), &rule.text, &counts.unwrap_or_default()));
        }
    }
}

/// The report of a rule.
fn line(program: &str, rule: &str, counts: &PageCounts) -> String {
    let PageCounts { calls, bytes, asked, found, colours: (to_colour, coloured) } = counts;
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
