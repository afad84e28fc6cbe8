//! The analysis of a recording as text tables: the hottest first, at most as wide as a terminal.

use crate::advice::short as headline;
use gondwana_analysis::{
    Advice, AdviceKind, Analysis, Area, AtomicVariable, BankFilter, Construct, Flow, Totals,
};
use gondwana_console::clean;
use gondwana_console::columns::{Side, amount, columns, ranges};
use std::fmt::Write;

/// Longest names of areas in tables, in letters.
const NAME: usize = 26;
/// The longest line with a name, in characters.
const LINE: usize = 100;
/// How many nodes have a column each.
const NODES: usize = 4;
/// The number of code places of an area, unless only this area is shown.
const PLACES: usize = 3;

/// All tables. With `whole`, each area is shown completely.
pub fn text(analysis: &Analysis, advice: &[Advice], top: usize, whole: bool) -> String {
    let shown = &analysis.areas[..top.min(analysis.areas.len())];
    let mut parts = vec![head(analysis)];
    if shown.is_empty() {
        parts.push("Nothing crossed between the nodes.\n".to_owned());
    } else {
        parts.push(requests(shown, analysis.nodes.len()));
        parts.push(kinds(shown));
        let more = analysis.areas.len() - shown.len();
        if more > 0 {
            parts.push(format!("{more} more data areas are not shown (--top {}).\n", analysis.areas.len()));
        }
        let places = if whole { top.max(PLACES) } else { PLACES };
        parts.push(shown.iter().map(|area| users(area, places)).collect());
        parts.push(pages(shown, top));
    }
    if !whole {
        parts.push(constructs(&analysis.constructs, top));
        parts.push(locks(analysis, top));
        parts.push(atomics(&analysis.atomics, top));
        parts.push(filters(&analysis.filters, top));
        parts.push(traffic(&analysis.flows));
    }
    parts.push(changes(advice, analysis.totals.requests(), top));
    parts.retain(|part| !part.is_empty());
    clean::text(&parts.join("\n"))
}

fn head(analysis: &Analysis) -> String {
    let (run, totals) = (&analysis.run, &analysis.totals);
    let mut text = format!(
        "{}: {} nodes, {} over {}, {:.1} s\n{} requests, {} moved; {} pages were waited for, {} of them unchanged\n",
        run.command.join(" "),
        run.nodes,
        run.consistency,
        run.fabric,
        analysis.seconds,
        totals.requests(),
        amount(totals.bytes),
        totals.reads.saturating_add(totals.writes),
        totals.excess,
    );
    for note in &analysis.notes {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "Note: {note}");
    }
    text
}

/// A name, shortened for its column. The ends of long names distinguish them: template functions begin alike, and
/// lines and numbers are at the end.
fn short(name: &str) -> String {
    let length = name.chars().count();
    if length <= NAME {
        return name.to_owned();
    }
    let (begin, end) = (NAME / 2 - 1, NAME / 2);
    name.chars().take(begin).chain(['…']).chain(name.chars().skip(length - end)).collect()
}

fn cells<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// The table of data areas and nodes: the requests of each node. If there are many nodes, those with most requests
/// have columns.
fn requests(areas: &[Area], nodes: usize) -> String {
    let mut busiest: Vec<usize> = (0..nodes).collect();
    let sum = |node: usize| {
        areas.iter().map(|area| area.nodes[node].totals.requests()).fold(0, u64::saturating_add)
    };
    busiest.sort_by_key(|&node| std::cmp::Reverse(sum(node)));
    busiest.truncate(NODES);
    busiest.sort_unstable();
    let mut head = cells(["data area", "sharing"]);
    head.extend(busiest.iter().map(|node| format!("node {node}")));
    head.extend(["others".to_owned()].into_iter().filter(|_| nodes > NODES));
    head.push("requests".to_owned());
    let mut lines = vec![head];
    lines.extend(areas.iter().map(|area| {
        let mut line = vec![short(&area.name), area.pattern.name().to_owned()];
        let of = |node: &usize| area.nodes[*node].totals.requests();
        line.extend(busiest.iter().map(|node| of(node).to_string()));
        let all = area.totals.requests();
        if nodes > NODES {
            line.push(all.saturating_sub(busiest.iter().map(of).fold(0, u64::saturating_add)).to_string());
        }
        line.push(all.to_string());
        line
    }));
    let mut sides = vec![Side::Left, Side::Left];
    sides.resize(lines[0].len(), Side::Right);
    columns(&sides, &lines)
}

/// The kinds of the requests.
fn kinds(areas: &[Area]) -> String {
    let mut lines = vec![cells([
        "data area",
        "reads",
        "writes",
        "excess",
        "ahead",
        "upgrades",
        "diffs",
        "notices",
        "moved",
    ])];
    lines.extend(areas.iter().map(|area| {
        let Totals { reads, writes, excess, ahead, upgrades, diffs, notices, bytes, .. } = area.totals;
        let numbers =
            [reads, writes, excess, ahead, upgrades, diffs, notices].map(|number| number.to_string());
        [short(&area.name)].into_iter().chain(numbers).chain([amount(bytes)]).collect()
    }));
    let mut sides = vec![Side::Left];
    sides.resize(lines[0].len(), Side::Right);
    columns(&sides, &lines)
}

/// The users of an area, with fields and code places.
fn users(area: &Area, most: usize) -> String {
    let writes = |totals: &Totals| totals.writes > 0 || totals.upgrades > 0 || totals.diffs > 0;
    let who = |does: &dyn Fn(&Totals) -> bool| {
        let nodes = (0..).zip(&area.nodes).filter(|(_, node)| does(&node.totals));
        list(&nodes.map(|(number, _)| number).collect::<Vec<_>>())
    };
    let (written, read) = (who(&writes), who(&|totals| totals.reads > 0));
    let blocks = if area.objects > 1 { format!(" in {} blocks", area.objects) } else { String::new() };
    let size = amount(area.bytes);
    let uses = format!("{size}{blocks}: fetched for reads by {read}, written by {written}\n");
    let fits = area.name.chars().count() + uses.len() < LINE;
    let mut text = format!("{},{}{uses}", area.name, if fits { " " } else { "\n  " });
    let lines = |count: usize, of: &dyn Fn(usize) -> (String, u64, u64)| -> String {
        let line = |index: usize| {
            let (name, reads, writes) = of(index);
            format!("  {reads:>8} reads {writes:>8} writes  {name}\n")
        };
        (0..count.min(most)).map(line).collect()
    };
    text += &lines(area.fields.len(), &|index| {
        let field = &area.fields[index];
        (format!("at {}{}", area.name, field.name), field.reads, field.writes)
    });
    text += &lines(area.places.len(), &|index| {
        let place = &area.places[index];
        let function = if place.function.is_empty() || place.text.starts_with(&place.function) {
            String::new()
        } else {
            format!(" ({})", place.function)
        };
        (format!("by {}{function}", place.text), place.reads, place.writes)
    });
    text
}

/// `node 1`, `nodes 0-2, 5`, `no node`.
fn list(nodes: &[u32]) -> String {
    match nodes {
        [] => "no node".to_owned(),
        [one] => format!("node {one}"),
        several => format!("nodes {}", ranges(several)),
    }
}

/// The falsely shared pages, with the bytes that each node uses.
fn pages(areas: &[Area], most: usize) -> String {
    let mut text = String::new();
    for area in areas.iter().filter(|area| !area.falsely_shared.is_empty()) {
        for page in area.falsely_shared.iter().take(most) {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "Falsely shared page {:#x} of {}, fetched {} times:",
                page.page, area.name, page.fetches
            );
            for side in page.writers.iter().take(most.max(16)) {
                let _ = writeln!(
                    text,
                    "  node {} {} bytes {}-{}: {}",
                    side.node,
                    if side.writes { "writes" } else { "reads " },
                    side.bytes.start.saturating_sub(page.page),
                    (side.bytes.end - 1).saturating_sub(page.page),
                    side.name,
                );
            }
        }
    }
    text
}

/// The constructs of OpenMP, with the waiting at the barriers that end them.
fn constructs(constructs: &[Construct], most: usize) -> String {
    if constructs.is_empty() {
        return String::new();
    }
    let mut lines = vec![cells([
        "barrier at the end of",
        "executions",
        "waited",
        "worked",
        "slowest",
        "more than average",
    ])];
    lines.extend(constructs.iter().take(most).map(|construct| {
        let slowest = construct.slowest();
        let what = if construct.region { "region " } else { "" };
        // The place is never cut: its end is the line.
        let name = if construct.name() == construct.place {
            format!("{what}{}", construct.place)
        } else {
            format!("{what}{} ({})", construct.place, short(&construct.function))
        };
        vec![
            name,
            construct.executions.to_string(),
            format!("{:.3} s", construct.waited()),
            format!("{:.3} s", construct.worked()),
            slowest.map_or_else(String::new, |it| format!("thread {}, node {}", it.number, it.node)),
            format!("{:.3} s", construct.ahead()),
        ]
    }));
    let more = constructs.len().saturating_sub(most);
    let note = if more > 0 { format!("{more} more constructs are not shown.\n") } else { String::new() };
    columns(&[Side::Left, Side::Right, Side::Right, Side::Right, Side::Left, Side::Right], &lines) + &note
}

fn locks(analysis: &Analysis, most: usize) -> String {
    if analysis.locks.is_empty() {
        return String::new();
    }
    let mut lines = vec![cells(["lock", "address", "passed between nodes"])];
    lines.extend(analysis.locks.iter().take(most).map(|lock| {
        let all = lock.hand_offs.iter().copied().fold(0, u64::saturating_add);
        vec![short(&lock.name), format!("{:#x}", lock.address), all.to_string()]
    }));
    columns(&[Side::Left, Side::Right, Side::Right], &lines)
}

/// The variables that nodes change by atomic operations, each with the line that missed most.
fn atomics(variables: &[AtomicVariable], most: usize) -> String {
    if variables.is_empty() {
        return String::new();
    }
    let mut lines = vec![cells(["atomic variable", "address", "misses", "by", "most at"])];
    lines.extend(variables.iter().take(most).map(|variable| {
        let nodes: Vec<u32> =
            (0..).zip(&variable.nodes).filter(|(_, count)| **count > 0).map(|(node, _)| node).collect();
        vec![
            short(&variable.name),
            format!("{:#x}", variable.address),
            variable.misses().to_string(),
            list(&nodes),
            variable.places.first().map_or_else(String::new, |place| short(&place.text)),
        ]
    }));
    let more = variables.len().saturating_sub(most);
    let note =
        if more > 0 { format!("{more} more atomic variables are not shown.\n") } else { String::new() };
    columns(&[Side::Left, Side::Right, Side::Right, Side::Left, Side::Left], &lines) + &note
}

/// The counts of filters, with the hottest unit of each: the user's filters, and those of adaptive refinement.
fn filters(filters: &[BankFilter], most: usize) -> String {
    let (own, asked): (Vec<_>, Vec<_>) = filters.iter().partition(|filter| filter.own);
    let table = |filters: Vec<&BankFilter>, what: &str| {
        if filters.is_empty() {
            return String::new();
        }
        let mut lines = vec![cells([what, "unit", "seconds", "counted", "hottest unit", ""])];
        lines.extend(filters.iter().take(most).map(|filter| {
            let hottest = filter.hottest.first();
            vec![
                format!("{:#x}-{:#x}", filter.range.start, filter.range.end),
                amount(filter.unit),
                format!("{:.1}-{:.1}", filter.seconds.start, filter.seconds.end),
                filter.counted().to_string(),
                hottest.map_or_else(String::new, |unit| match &unit.name[..] {
                    "" => format!("{:#x}", unit.address),
                    name => short(name),
                }),
                hottest.map_or_else(String::new, |unit| unit.counted.to_string()),
            ]
        }));
        let more = filters.len().saturating_sub(most);
        let note = if more > 0 { format!("{more} more filters are not shown.\n") } else { String::new() };
        columns(&[Side::Left, Side::Right, Side::Right, Side::Right, Side::Left, Side::Right], &lines) + &note
    };
    let parts = [table(asked, "filter"), table(own, "filter that moved here")];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Bytes and pages from each node to each other; of many nodes only those that sent most.
fn traffic(flows: &[Vec<Flow>]) -> String {
    const SHOWN: usize = 6;
    let sent = |node: usize| flows[node].iter().map(|flow| flow.bytes).fold(0, u64::saturating_add);
    if flows.iter().flatten().all(|flow| *flow == Flow::default()) {
        return String::new();
    }
    let mut busiest: Vec<usize> = (0..flows.len()).collect();
    busiest.sort_by_key(|&node| std::cmp::Reverse(sent(node)));
    let hidden = busiest.len().saturating_sub(SHOWN);
    busiest.truncate(SHOWN);
    busiest.sort_unstable();
    let mut lines = vec![vec!["from, to".to_owned()]];
    lines[0].extend(busiest.iter().map(|node| format!("node {node}")));
    lines.extend(busiest.iter().map(|&from| {
        let cell = |&to: &usize| if from == to { String::new() } else { amount(flows[from][to].bytes) };
        [format!("node {from}")].into_iter().chain(busiest.iter().map(cell)).collect()
    }));
    let mut sides = vec![Side::Left];
    sides.resize(busiest.len() + 1, Side::Right);
    let note = if hidden > 0 { format!("{hidden} more nodes sent less.\n") } else { String::new() };
    columns(&sides, &lines) + &note
}

/// The advice, one line each.
fn changes(advice: &[Advice], requests: u64, most: usize) -> String {
    let something = advice.iter().filter(|advice| advice.kind != AdviceKind::Nothing);
    let lines: String =
        something.take(most).map(|advice| format!("  {}\n", headline(advice, requests))).collect();
    if lines.is_empty() { lines } else { format!("Advice, of which gondwana advise tells more:\n{lines}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_analysis::{HotUnit, Pattern};

    #[test]
    fn nodes_are_listed_as_ranges() {
        assert_eq!(list(&[]), "no node");
        assert_eq!(list(&[3]), "node 3");
        assert_eq!(list(&[0, 1, 2, 5]), "nodes 0-2, 5");
    }

    #[test]
    fn tables_fit_terminals() {
        let totals = Totals { reads: 1_234_567, notices: 1_234_567, bytes: 1 << 35, ..Totals::default() };
        let area = Area {
            name: "a_function_with_a_long_name, a_file_with_a_long_name.c:1234".into(),
            origin: gondwana_analysis::Origin::Other,
            ranges: vec![],
            objects: 1,
            bytes: 1 << 33,
            totals,
            nodes: vec![gondwana_analysis::AreaNode { totals, ..Default::default() }; 8],
            pattern: Pattern::ProducerConsumer,
            places: vec![],
            fields: vec![],
            falsely_shared: vec![],
        };
        let analysis = Analysis {
            nodes: vec![gondwana_analysis::NodeTotal::default(); 8],
            flows: vec![vec![Flow { bytes: 12_345_678_901, ..Flow::default() }; 8]; 8],
            areas: vec![area],
            totals,
            ..Analysis::default()
        };
        let text = text(&analysis, &[], 10, false);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.contains("others") && text.contains("2 more nodes sent less."), "{text}");
    }

    #[test]
    fn filters_tell_their_hottest_unit() {
        let hot = |name: &str| HotUnit { address: 0x1020, counted: 7, name: name.to_owned() };
        let filter = |own, unit, hottest| BankFilter {
            range: 0x1000..0x2000,
            unit,
            kinds: vec![],
            own,
            seconds: 0.25..1.5,
            nodes: vec![3, 9],
            hottest,
        };
        let all = [
            filter(false, 4096, vec![]),
            filter(true, 32, vec![hot("counters[4]")]),
            filter(true, 2 << 20, vec![hot("")]),
            filter(true, 2 << 20, vec![]),
        ];
        let expected = "\
filter          unit  seconds  counted  hottest unit
0x1000-0x2000  4 KiB  0.2-1.5       12

filter that moved here   unit  seconds  counted  hottest unit
0x1000-0x2000            32 B  0.2-1.5       12  counters[4]   7
0x1000-0x2000           2 MiB  0.2-1.5       12  0x1020        7
1 more filters are not shown.
";
        assert_eq!(filters(&all, 2), expected);
    }

    #[test]
    fn constructs_tell_who_waited_for_whom() {
        let thread = |number, worked, waited| gondwana_analysis::ConstructThread {
            number,
            node: 1,
            executions: 20,
            worked,
            longest: worked,
            waited,
        };
        let threads = vec![thread(0, 1.0, 2.0), thread(3, 3.0, 0.0)];
        let (place, function) = ("a.c:7".to_owned(), "main".to_owned());
        let uneven = Construct { place, function, executions: 20, threads, ..Construct::default() };
        let region = Construct { region: true, ..uneven.clone() };
        let expected = "\
barrier at the end of  executions   waited   worked  slowest           more than average
a.c:7 (main)                   20  2.000 s  4.000 s  thread 3, node 1            1.000 s
region a.c:7 (main)            20  2.000 s  4.000 s  thread 3, node 1            1.000 s
1 more constructs are not shown.
";
        assert_eq!(constructs(&[uneven.clone(), region, uneven], 2), expected);
        assert_eq!(constructs(&[], 2), "");
    }

    #[test]
    fn atomic_variables_tell_who_missed_where() {
        let place = |text: &str| gondwana_analysis::CodePlace { text: text.to_owned(), ..Default::default() };
        let variable = |name: &str, nodes, places| AtomicVariable {
            name: name.to_owned(),
            address: 0x1040,
            nodes,
            threads: vec![0, 3],
            places,
        };
        let both = variable("counter", vec![3, 0, 9], vec![place("a.c:7"), place("a.c:9")]);
        let expected = "\
atomic variable  address  misses  by          most at
counter           0x1040      12  nodes 0, 2  a.c:7
1 more atomic variables are not shown.
";
        assert_eq!(atomics(&[both, variable("flag", vec![0, 1], vec![])], 1), expected);
        assert_eq!(atomics(&[], 1), "");
    }

    #[test]
    fn advice_is_told_in_short() {
        let (_, advice) = crate::sample::sample();
        let heading = "Advice, of which gondwana advise tells more:";
        let line = "  grid: block, saves about 1,500 requests (75 %) and 1 MiB";
        assert_eq!(changes(&advice, 2000, 1), format!("{heading}\n{line}\n"));
        let nothing = Advice { kind: AdviceKind::Nothing, ..advice[0].clone() };
        assert_eq!(changes(&[nothing], 2000, 1), "");
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(short("counters"), "counters");
        let long = "Cache<std::string, std::vector<double> >::put(std::string), cache.cpp:";
        let cut = |line: u32| short(&format!("{long}{line}"));
        assert_eq!(cut(13), "Cache<std::s… cache.cpp:13");
        assert!(cut(14).chars().count() == NAME && cut(13) != cut(14));
    }
}
