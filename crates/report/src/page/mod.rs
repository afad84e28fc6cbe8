//! A report as one self-contained HTML page, without external fonts or scripts. The design note is `design/page.md`
//! beside this code.
//!
//! The tables are HTML and work without JavaScript; the script draws the picture of addresses, sorts and filters the
//! tables and links them to the picture. Names in a recording are untrusted: the template escapes them, the script's
//! data cannot end its element (see `data.rs`), and the Content-Security-Policy allows only the page's own script and
//! style, by their hashes.

mod advice;
mod area;
mod atomics;
mod cells;
mod constructs;
mod data;
mod flow;
mod limits;
mod things;
mod time;
mod words;

use askama::Template;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gondwana_analysis::{Advice, Analysis, LockHandOffs};
use gondwana_console::columns::grouped;
use gondwana_plan::Plan;
use limits::{MOST_AREAS, MOST_ATOMICS, MOST_CONSTRUCTS, MOST_LOCKS, MOST_NODES};
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("page.css");
/// The parts of the script, in the order of their dependencies, in a scope of their own.
const SCRIPT: &str = concat!(
    "'use strict';\n{\n",
    include_str!("script/words.js"),
    include_str!("script/things.js"),
    include_str!("script/data.js"),
    include_str!("script/layout.js"),
    include_str!("script/bins.js"),
    include_str!("script/view.js"),
    include_str!("script/drawing.js"),
    include_str!("script/reading.js"),
    include_str!("script/gestures.js"),
    include_str!("script/picture.js"),
    include_str!("script/tables.js"),
    include_str!("script/timeline.js"),
    include_str!("script/main.js"),
    "}\n",
);

/// The page of a run with the plan `earlier`, which may be empty.
pub fn render(analysis: &Analysis, advice: &[Advice], earlier: &Plan) -> String {
    let (cells, too_many) = data::shown(analysis);
    let areas = &analysis.areas[..analysis.areas.len().min(MOST_AREAS)];
    let timeline = time::timeline(analysis);
    let mut notes: Vec<String> = analysis.notes.iter().map(|note| words::name(note)).collect();
    notes.extend(too_many);
    notes.extend(left_out(analysis));
    let page = ReportPage {
        policy: policy(),
        style: STYLE,
        script: SCRIPT,
        program: words::name(program(analysis)),
        command: words::name(&analysis.run.command.join(" ")),
        head: head(analysis),
        hottest: area::hottest(analysis),
        advice: advice.iter().map(|one| advice::Item::new(one, analysis, earlier)).collect(),
        plan: advice::plan_of(advice, analysis, earlier),
        areas: areas
            .iter()
            .enumerate()
            .map(|(index, area)| area::AreaRow::new(index, area, analysis))
            .collect(),
        details: areas
            .iter()
            .enumerate()
            .filter_map(|(index, area)| area::Details::new(index, area, analysis))
            .collect(),
        flows: flow::matrix(analysis),
        locks: analysis.locks.iter().take(MOST_LOCKS).map(lock).collect(),
        atomics: atomics::rows(analysis),
        constructs: constructs::rows(analysis),
        notes,
        data: data::json(analysis, &cells, areas.len(), &timeline.slots),
        pictured: !cells.is_empty(),
        timeline,
    };
    page.render().expect("writing to a text does not fail")
}

#[derive(Template)]
#[template(path = "page.html")]
struct ReportPage {
    policy: String,
    style: &'static str,
    script: &'static str,
    program: String,
    command: String,
    head: Vec<(&'static str, String)>,
    hottest: Option<area::Hottest>,
    advice: Vec<advice::Item>,
    plan: String,
    areas: Vec<area::AreaRow>,
    details: Vec<area::Details>,
    flows: Vec<flow::FlowRow>,
    timeline: time::Timeline,
    locks: Vec<LockRow>,
    atomics: Vec<atomics::AtomicRow>,
    constructs: Vec<constructs::ConstructRow>,
    notes: Vec<String>,
    data: String,
    pictured: bool,
}

struct LockRow {
    name: String,
    address: String,
    total: String,
    nodes: String,
}

/// The Content-Security-Policy: only the page's own script and style, by their hashes.
fn policy() -> String {
    let sum = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        sum(SCRIPT),
        sum(STYLE)
    )
}

/// The file name of the program.
fn program(analysis: &Analysis) -> &str {
    let path = analysis.run.executable.as_str();
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("a program")
}

/// The figures at the top.
fn head(analysis: &Analysis) -> Vec<(&'static str, String)> {
    let totals = &analysis.totals;
    let mut head = vec![
        ("nodes", grouped(analysis.run.nodes.into())),
        ("threads", grouped(analysis.threads.len() as u64)),
        ("recorded", words::seconds(analysis.seconds)),
        ("requests to other nodes", grouped(totals.requests())),
        ("moved", gondwana_console::columns::amount(totals.bytes)),
    ];
    let run = &analysis.run;
    for (what, value) in [("consistency", &run.consistency), ("fabric", &run.fabric), ("plan", &run.plan)] {
        if !value.is_empty() {
            head.push((what, words::name(value)));
        }
    }
    head
}

/// Sentences about data that the page leaves out because of its limits.
fn left_out(analysis: &Analysis) -> Vec<String> {
    let mut notes = vec![];
    let mut note = |what: &str, all: usize, most: usize| {
        if all > most {
            notes.push(format!(
                "Of {} {what} this page shows {}; --json has all.",
                grouped(all as u64),
                grouped(most as u64)
            ));
        }
    };
    note("data areas", analysis.areas.len(), MOST_AREAS);
    note("locks", analysis.locks.len(), MOST_LOCKS);
    note("atomic variables", analysis.atomics.len(), MOST_ATOMICS);
    note("constructs", analysis.constructs.len(), MOST_CONSTRUCTS);
    note("nodes", analysis.nodes.len(), MOST_NODES);
    notes
}

fn lock(lock: &LockHandOffs) -> LockRow {
    LockRow {
        name: words::name(&lock.name),
        address: format!("{:#x}", lock.address),
        total: grouped(lock.hand_offs.iter().fold(0, |sum, &count| sum.saturating_add(count))),
        nodes: words::by_node(&lock.hand_offs),
    }
}

#[cfg(test)]
mod tests;
