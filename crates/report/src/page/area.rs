//! Data areas on the page: rows of the table, and details.

use super::limits::{COLOURS, MOST_NODES};
use super::words;
use gondwana_analysis::{Analysis, Area, FalselySharedPage, Origin, Pattern, UsedBytes};
use gondwana_console::columns::{amount, grouped, ranges};

/// Details have this many fields, places in the source, calls, falsely shared pages, and users of such a page.
const MOST_FIELDS: usize = 20;
const MOST_PLACES: usize = 20;
const MOST_CALLS: usize = 20;
const MOST_PAGES: usize = 10;
const MOST_WRITERS: usize = 64;
/// The number of areas with details.
const MOST_DETAILED: usize = 300;

/// The sentence that a reader in a hurry needs.
pub(super) struct Hottest {
    pub name: String,
    pub rest: String,
}

/// The hottest area; none if there were no transactions.
pub(super) fn hottest(analysis: &Analysis) -> Option<Hottest> {
    let area = analysis.areas.first()?;
    let (part, whole) = (area.totals.requests(), analysis.totals.requests());
    let share = words::percent(part, whole);
    let meaning = words::meaning(area.pattern);
    let pattern = area.pattern.name();
    let rest = format!(
        "causes {share} of the requests ({} of {}). It is {pattern}: {meaning}.",
        grouped(part),
        grouped(whole)
    );
    Some(Hottest { name: words::name(&area.name), rest })
}

/// A part of a bar, with the colour of a node.
pub(super) struct Bar {
    pub colour: usize,
    pub start: String,
    pub length: String,
    pub title: String,
}

/// A row of the table. Numbers are there twice: for sorting and for people.
pub(super) struct AreaRow {
    pub index: usize,
    pub detailed: bool,
    pub name: String,
    pub kind: &'static str,
    pub pattern: &'static str,
    pub class: &'static str,
    pub numbers: Vec<(u64, String)>,
    pub share: String,
    pub bars: Vec<Bar>,
}

impl AreaRow {
    /// The row of an area.
    pub(super) fn new(index: usize, area: &Area, analysis: &Analysis) -> Self {
        let totals = &area.totals;
        let numbers = [totals.requests(), totals.reads, totals.writes, totals.diffs];
        let mut numbers: Vec<(u64, String)> =
            numbers.into_iter().map(|number| (number, grouped(number))).collect();
        numbers.push((totals.bytes, amount(totals.bytes)));
        Self {
            index,
            detailed: index < MOST_DETAILED,
            name: words::name(&area.name),
            kind: kind(&area.origin),
            pattern: area.pattern.name(),
            class: class(area.pattern),
            numbers,
            share: words::percent(totals.requests(), analysis.totals.requests()),
            bars: bars(area),
        }
    }
}

/// The requests of the nodes as bars, with a total length of 100.
fn bars(area: &Area) -> Vec<Bar> {
    let counts: Vec<u64> = area.nodes.iter().take(MOST_NODES).map(|node| node.totals.requests()).collect();
    let whole = counts.iter().map(|&count| count as f64).sum::<f64>().max(1.0);
    let mut start = 0.0;
    let mut bars = vec![];
    for (node, &count) in counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
        let length = count as f64 / whole * 100.0;
        bars.push(Bar {
            colour: node % COLOURS,
            start: format!("{start:.2}"),
            length: format!("{length:.2}"),
            title: format!("node {node}: {}", words::things(count, "request", "requests")),
        });
        start += length;
    }
    bars
}

fn kind(origin: &Origin) -> &'static str {
    match origin {
        Origin::Variable { .. } => "variable",
        Origin::Allocation { .. } => "allocation",
        Origin::Stack { .. } => "stack",
        Origin::Mapping => "mapping",
        Origin::Other => "other",
    }
}

fn class(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Private | Pattern::ReadOnly => "calm",
        Pattern::ProducerConsumer | Pattern::Migratory => "warm",
        Pattern::FalselyShared | Pattern::WidelyWritten => "hot",
    }
}

/// The details of an area.
pub(super) struct Details {
    pub index: usize,
    pub name: String,
    pub what: String,
    pub pattern: &'static str,
    pub meaning: &'static str,
    pub calls: Vec<String>,
    pub nodes: Vec<NodeRow>,
    pub fields: Vec<FieldRow>,
    pub places: Vec<PlaceRow>,
    pub pages: Vec<PageRow>,
}

/// What one node did with an area.
pub(super) struct NodeRow {
    pub node: usize,
    pub colour: usize,
    pub numbers: Vec<String>,
    pub threads: String,
    pub from: String,
}

/// A part of an area that has a name.
pub(super) struct FieldRow {
    pub name: String,
    pub reads: String,
    pub writes: String,
}

/// Where in the program an area is touched.
pub(super) struct PlaceRow {
    pub text: String,
    pub function: String,
    pub reads: String,
    pub writes: String,
}

/// A falsely shared page.
pub(super) struct PageRow {
    pub address: String,
    pub fetches: String,
    pub length: u64,
    pub users: Vec<User>,
}

/// A range of its bytes that one node uses.
pub(super) struct User {
    pub node: u16,
    pub colour: usize,
    pub writes: bool,
    pub start: u64,
    pub length: u64,
    pub bytes: String,
    pub name: String,
}

impl Details {
    /// The details of an area; short ones for areas beyond the hottest.
    pub(super) fn new(index: usize, area: &Area, analysis: &Analysis) -> Option<Self> {
        (index < MOST_DETAILED).then(|| Self {
            index,
            name: words::name(&area.name),
            what: what(area),
            pattern: area.pattern.name(),
            meaning: words::meaning(area.pattern),
            calls: match &area.origin {
                Origin::Allocation { stack, .. } => {
                    stack.iter().take(MOST_CALLS).map(|call| words::name(call)).collect()
                }
                _ => vec![],
            },
            nodes: area.nodes.iter().take(MOST_NODES).enumerate().map(node_row).collect(),
            fields: area.fields.iter().take(MOST_FIELDS).map(field_row).collect(),
            places: area.places.iter().take(MOST_PLACES).map(place_row).collect(),
            pages: area.falsely_shared.iter().take(MOST_PAGES).map(|page| shared(page, analysis)).collect(),
        })
    }
}

/// A description of an area.
fn what(area: &Area) -> String {
    let size = amount(area.bytes);
    let of = |library: &str| match library {
        "" => String::new(),
        library => format!(" of {}", words::name(library)),
    };
    match &area.origin {
        Origin::Variable { library, .. } => format!("Variable{}, {size}.", of(library)),
        Origin::Allocation { threads, library, .. } => {
            let by = match threads.as_slice() {
                [] => String::new(),
                [only] => format!(" by thread {only}"),
                many => format!(" by threads {}", ranges(many)),
            };
            let blocks = words::things(area.objects, "block", "blocks");
            format!("{blocks}, {size} together, allocated{by}{}.", of(library))
        }
        Origin::Stack { thread } => format!("The stack of thread {thread}, {size}."),
        Origin::Mapping => format!("Memory that the program has mapped, {size}."),
        Origin::Other => format!("Other memory, {size}."),
    }
}

fn node_row((node, used): (usize, &gondwana_analysis::AreaNode)) -> NodeRow {
    let totals = &used.totals;
    let from = used.from.iter().take(MOST_NODES).enumerate().filter(|&(_, &pages)| pages > 0);
    let mut numbers = [
        totals.reads,
        totals.writes,
        totals.upgrades,
        totals.diffs,
        totals.notices,
        totals.invalidations,
        totals.recalls,
        totals.cold,
        totals.excess,
        totals.ahead,
    ]
    .map(grouped)
    .to_vec();
    numbers.extend([amount(totals.bytes), amount(used.written)]);
    NodeRow {
        node,
        colour: node % COLOURS,
        numbers,
        threads: ranges(&used.threads),
        from: from.map(|(node, &pages)| format!("{node}: {}", grouped(pages))).collect::<Vec<_>>().join(", "),
    }
}

fn field_row(field: &gondwana_analysis::Field) -> FieldRow {
    FieldRow { name: words::name(&field.name), reads: grouped(field.reads), writes: grouped(field.writes) }
}

fn place_row(place: &gondwana_analysis::CodePlace) -> PlaceRow {
    PlaceRow {
        text: words::name(&place.text),
        function: words::name(&place.function),
        reads: grouped(place.reads),
        writes: grouped(place.writes),
    }
}

fn shared(page: &FalselySharedPage, analysis: &Analysis) -> PageRow {
    let length = u64::from(analysis.run.page_bytes).max(1);
    let users = page.writers.iter().take(MOST_WRITERS).map(|writer| user(writer, page.page, length));
    PageRow {
        address: format!("{:#x}", page.page),
        fetches: words::things(page.fetches, "fetch", "fetches"),
        length,
        users: users.collect(),
    }
}

fn user(writer: &UsedBytes, page: u64, length: u64) -> User {
    let start = writer.bytes.start.saturating_sub(page).min(length);
    let end = writer.bytes.end.saturating_sub(page).clamp(start, length);
    User {
        node: writer.node,
        colour: usize::from(writer.node) % COLOURS,
        writes: writer.writes,
        start,
        length: end - start,
        bytes: match end - start {
            0 => format!("{start}"),
            _ => format!("{start}-{}", end - 1),
        },
        name: words::name(&writer.name),
    }
}
